// The official TypeScript SDK as a client: its folder, address, prefix of the tools' names. Tells what it saw as one
// JSON object.
const [sdk, url, prefix] = process.argv.slice(1);
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);

const client = new Client({ name: "typescript", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const echoed = await client.callTool({ name: `${prefix}echo`, arguments: { message: "moss" } });
const progress = [];
const long = { name: `${prefix}trigger-long-running-operation`, arguments: { duration: 1, steps: 2 } };
await client.callTool(long, undefined, { onprogress: (report) => progress.push([report.progress, report.total]) });
const told = {
    version: transport.protocolVersion,
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
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
