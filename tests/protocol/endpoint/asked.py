# The official Python SDK as a client that is asked in the middle of its calls: address, era (`legacy` or `auto`), prefix of
# the tools' names, answers. Tells how each call ended as one JSON object.
import asyncio, json, sys
from mcp import Client
from mcp.types import ElicitResult

url, mode, prefix, *answers = sys.argv[1:]


async def main():
    asked, ended, left = [], [], list(answers)

    async def answer(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": left.pop(0)})

    async with Client(url, mode=mode, elicitation_callback=answer) as client:
        for _ in answers:
            result = await client.call_tool(prefix + "trigger-elicitation-request", {})
            ended.append("".join(block.text for block in result.content))
        print(json.dumps({"version": client.protocol_version, "asked": asked, "ended": ended}))


asyncio.run(asyncio.wait_for(main(), 85))
