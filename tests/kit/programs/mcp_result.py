"""A stdio MCP server with one tool, `submit_result`: appends what it was given to the file argv[1]. Stdlib alone."""

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"name": "submit_result", "description": "Hand in the result of the work.", "inputSchema": SCHEMA}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        server = {"name": "results", "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        with open(sys.argv[1], "a") as taken:
            taken.write(json.dumps(params) + "\n")
        return {"result": {"content": [{"type": "text", "text": "accepted"}]}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    said = json.loads(line)
    if "id" in said and "method" in said:
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], **answer(said)}), flush=True)
