# The official Python SDK as a client: address or, as JSON, the process to start; era (`legacy` or `auto`; `sse` = the
# former over HTTP+SSE), prefix of the tools' names. Tells what it saw as one JSON object.
import asyncio, json, sys
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

server, mode, prefix = sys.argv[1:]
if server.startswith("{"):
    server = StdioServerParameters(**json.loads(server))
if mode == "sse":
    server, mode = sse_client(server), "legacy"


async def main():
    progress = []

    async def reported(done, total, message):
        progress.append([done, total])

    async with Client(server, mode=mode) as client:
        listed = await client.list_tools()
        echoed = await client.call_tool(prefix + "echo", {"message": "moss"})
        long = {"duration": 1, "steps": 2}
        await client.call_tool(prefix + "trigger-long-running-operation", long, progress_callback=reported)
        told = {
            "version": client.protocol_version,
            "server": client.server_info.name if client.server_info else None,
            "tools": [tool.name for tool in listed.tools],
            "echo": echoed.content[0].text,
            "progress": progress,
        }
        told["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
        resources = (await client.list_resources()).resources
        read = await client.read_resource(str(resources[0].uri))
        told["read"] = [len(resources), str(read.contents[0].uri) == str(resources[0].uri)]
        print(json.dumps(told))


asyncio.run(asyncio.wait_for(main(), 60))
