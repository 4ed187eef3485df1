"""The MCP server of a child: whatever a line holds, each request gets one answer that can be read."""

import io
import json
import time
from typing import Any

from graphd.mcp.serving import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR, McpServer, Tool, ToolFailed

Json = dict[str, Any]
WAIT_S = 10.0


def tell(given: Json) -> str:
    if given["text"] == "fail":
        raise ToolFailed("no\udcff")
    return str(given["text"])


def answers(*lines: bytes) -> dict[Any, Json]:
    """What a server whose stdout is no UTF-8 says to these lines, by id: one answer each."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="latin-1", write_through=True) as out:
        McpServer((Tool("tell", "Tells.", {"required": ["text"]}, tell),), out=out).run(lines)
        deadline = time.monotonic() + WAIT_S
        while raw.getvalue().count(b"\n") < len(lines) and time.monotonic() < deadline:
            time.sleep(0.01)
        said = [json.loads(line) for line in raw.getvalue().splitlines()]
    assert len(said) == len(lines)
    return {message["id"]: message for message in said}


def request(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def call(number: int, arguments: Any) -> bytes:
    return request(number, "tools/call", name="tell", arguments=arguments)


def text(answer: Json) -> tuple[str, bool]:
    return answer["result"]["content"][0]["text"], answer["result"]["isError"]


def test_any_text_is_answered_whatever_the_encoding_of_stdout() -> None:
    said = answers(call(1, {"text": "答案 🎉"}), call(2, '{"text": "\\ud800"}'), call(3, {"text": "fail"}))
    assert (text(said[1]), text(said[2])) == (("答案 🎉", False), ("\ud800", False))
    assert text(said[3]) == ("no\udcff", True)


def test_what_is_no_request_of_ours_ends_nothing() -> None:
    said = answers(b"[" * 200_000 + b"\n", request(1, "ping"), request(2, "resources/list"))
    assert said[None]["error"]["code"] == PARSE_ERROR
    assert said[1]["result"] == {}
    assert said[2]["error"]["code"] == METHOD_NOT_FOUND
    said = answers(b"{\n", call(1, {}), request(2, "tools/call", name="none"))
    assert said[None]["error"]["code"] == PARSE_ERROR
    assert text(said[1]) == ("tell needs text", True)
    assert said[2]["error"]["code"] == INVALID_PARAMS
