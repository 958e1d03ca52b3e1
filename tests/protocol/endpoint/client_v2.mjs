// The official TypeScript SDK, version 2, as a client: its module, address, prefix of the tools' names, era (`legacy` or
// `auto`). Tells what it saw as one JSON object.
const [sdk, url, prefix, mode] = process.argv.slice(1);
const { Client, StreamableHTTPClientTransport } = await import(sdk);

const client = new Client({ name: "typescript", version: "2" }, { versionNegotiation: { mode } });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const echoed = await client.callTool({ name: `${prefix}echo`, arguments: { message: "moss" } });
const progress = [];
const long = { name: `${prefix}trigger-long-running-operation`, arguments: { duration: 1, steps: 2 } };
await client.callTool(long, { onprogress: (report) => progress.push([report.progress, report.total]) });
const told = {
    version: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion()?.name,
    tools: tools.map((tool) => tool.name),
    echo: echoed.content[0].text,
    progress,
    session: typeof transport.sessionId,
};
told.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const { resources } = await client.listResources();
const read = await client.readResource({ uri: resources[0].uri });
told.read = [resources.length, read.contents[0].uri === resources[0].uri];
if (transport.sessionId) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
