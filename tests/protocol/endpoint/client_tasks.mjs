// The official TypeScript SDK as a client that calls a tool as a task and answers what it asks: its folder, address,
// prefix of the tools' names. Tells what it saw as one JSON object.
const [sdk, url, prefix] = process.argv.slice(1);
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { CallToolResultSchema, ElicitRequestSchema } = await import(`${sdk}/types.js`);

const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: { form: {} } } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { interpretation: "snake" } };
});
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const name = `${prefix}simulate-research-query`;
const { tools } = await client.listTools();
const support = tools.find((tool) => tool.name === name).execution?.taskSupport;
const call = { name, arguments: { topic: "python", ambiguous: true } };
const stream = client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: 60_000 } });
const told = { support, asked, seen: [] };
for await (const message of stream) {
    if (message.type === "taskCreated") told.task = message.task.taskId;
    if (message.type === "taskStatus") told.seen.push(message.task.status);
    if (message.type === "error") told.error = String(message.error);
    if (message.type === "result") told.text = message.result.content[0].text;
}
told.after = (await client.experimental.tasks.getTask(told.task)).status;
told.listed = (await client.experimental.tasks.listTasks()).tasks.map((task) => task.taskId);
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
