"""A server of the Model Context Protocol with one tool, which gives or refuses leave: ``permission_server.py allow``.

It speaks JSON-RPC in lines on its standard input and output, as far as an agent program needs that for one tool.
"""

import json
import sys
from typing import Any, Final

NAME: Final = "lifefold"
TOOL: Final = "permission"
REFUSAL: Final = "the operator refuses it"


def config(answer: str) -> str:
    """Return the configuration of this server for an agent program, as JSON."""
    return json.dumps({"mcpServers": {NAME: {"command": sys.executable, "args": [__file__, answer]}}})


def result(request: dict[str, Any], answer: str) -> dict[str, Any]:
    """Return the result of a request."""
    parameters: dict[str, Any] = request.get("params") or {}
    match request["method"]:
        case "initialize":
            server = {"name": NAME, "version": "1"}
            version = parameters.get("protocolVersion", "2025-06-18")
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            schema = {"type": "object", "properties": {"tool_name": {"type": "string"}, "input": {"type": "object"}}}
            return {"tools": [{"name": TOOL, "description": "Ask the operator for leave.", "inputSchema": schema}]}
        case "tools/call":
            wanted = parameters.get("arguments", {}).get("input", {})
            allowed = {"behavior": "allow", "updatedInput": wanted}
            verdict = allowed if answer == "allow" else {"behavior": "deny", "message": REFUSAL}
            return {"content": [{"type": "text", "text": json.dumps(verdict)}]}
        case _:
            return {}


def main() -> None:
    """Answer requests until the input ends; a notification has no answer."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            answered = {"jsonrpc": "2.0", "id": request["id"], "result": result(request, sys.argv[1])}
            print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main()
