"""A client of the gRPC API that knows nothing of it but its published definitions.

Usage: grpc_client.py ADDRESS FOLDER, where FOLDER holds what grpc_tools made of proto/. Lists the tools, calls one, and
follows another one's progress. Prints what it got as one line of JSON.
"""

import json
import sys

import grpc

address, folder = sys.argv[1:]
sys.path.insert(0, folder)
from caribou.v1 import tools_pb2, tools_pb2_grpc  # noqa: E402

SOON = 30  # seconds

with grpc.insecure_channel(address) as channel:
    tools = tools_pb2_grpc.ToolServiceStub(channel)
    listed = tools.ListTools(tools_pb2.ListToolsRequest(), timeout=SOON)
    scope = tools_pb2.Scope(user_id="ann", thread_id="t1")
    called = tools.CallTool(tools_pb2.CallToolRequest(name="fake_bump", scope=scope), timeout=SOON)
    events = tools.CallToolStreaming(tools_pb2.CallToolRequest(name="fake_work", scope=scope), timeout=SOON)
    followed = [(event.WhichOneof("event"), event) for event in events]
    try:
        tools.CallTool(tools_pb2.CallToolRequest(name="fake_absent"), timeout=SOON)
        refused = None
    except grpc.RpcError as error:
        refused = {"status": error.code().name, **dict(error.trailing_metadata())}
    print(
        json.dumps(
            {
                "tools": [tool.name for tool in listed.tools],
                "result": json.loads(called.result),
                "epoch": called.session.epoch,
                "events": [kind for kind, _ in followed],
                "progress": [json.loads(event.progress) for kind, event in followed if kind == "progress"],
                "last": json.loads(followed[-1][1].result.result),
                "refused": refused,
            }
        )
    )
