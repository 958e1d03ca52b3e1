// The official TypeScript SDK, version 2, as a client that is asked in the middle of its calls: its module, address, era
// (`legacy` or `auto`), prefix of the tools' names, answers. Tells how each call ended as one JSON object.
const [sdk, url, mode, prefix, ...answers] = process.argv.slice(1);
const { Client, StreamableHTTPClientTransport } = await import(sdk);

const capabilities = { elicitation: { form: {} } };
const client = new Client({ name: "typescript", version: "2" }, { capabilities, versionNegotiation: { mode } });
const [asked, ended, left] = [[], [], [...answers]];
client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { name: left.shift() } };
});
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
for (const _ of answers) {
    const result = await client.callTool({ name: `${prefix}trigger-elicitation-request`, arguments: {} });
    ended.push(result.content.map((block) => block.text).join(""));
}
const told = { version: client.getNegotiatedProtocolVersion(), asked, ended };
if (transport.sessionId) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
