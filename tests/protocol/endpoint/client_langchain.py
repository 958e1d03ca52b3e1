# The MCP adapters of LangChain as a client: address, prefix of the tools' names. Tells what it saw as one JSON object.
import asyncio, json, sys
from langchain_mcp_adapters.client import MultiServerMCPClient

url, prefix = sys.argv[1:]


async def main():
    client = MultiServerMCPClient({"caribou": {"transport": "streamable_http", "url": url}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    echoed = await tools[prefix + "echo"].ainvoke({"message": "moss"})
    print(json.dumps({"tools": list(tools), "echo": echoed[0]["text"]}))


asyncio.run(asyncio.wait_for(main(), 85))
