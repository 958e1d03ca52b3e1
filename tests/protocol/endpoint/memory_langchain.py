# The MCP adapters of LangChain as agents in several threads, which note something and read it back later, in other
# sessions: addresses by thread, as JSON. Tells what each thread read as one JSON object.
import asyncio, json, sys
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

doors = json.loads(sys.argv[1])


def connection(thread):
    return {"transport": "streamable_http", "url": doors[thread], "headers": {"X-Caribou-Thread": thread}}


def named(tools):
    return {tool.name: tool for tool in tools}


async def main():
    client = MultiServerMCPClient({thread: connection(thread) for thread in doors})
    for thread in doors:
        async with client.session(thread) as session:
            tools = named(await load_mcp_tools(session))
            for n in range(2):
                entity = {"name": f"{thread} {n}", "entityType": "note", "observations": ["seen"]}
                await tools["create_entities"].ainvoke({"entities": [entity]})
    read = {}
    for thread in doors:
        tools = named(await client.get_tools(server_name=thread))
        graphs = [await tools["read_graph"].ainvoke({}) for _ in range(2)]
        read[thread] = [[entity["name"] for entity in json.loads(graph[0]["text"])["entities"]] for graph in graphs]
    print(json.dumps(read))


asyncio.run(asyncio.wait_for(main(), 85))
