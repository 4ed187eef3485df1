"""`graphd mcp --attempt`: the tools of a child. It speaks of itself alone: it can't approve, cancel or widen anything.

What a tool answers is for a model: English, bounded, and says how to read on. Source: spec protocol.md, MCP.
"""

import os
import sys
from typing import Any, Final

from graphd.mcp.daemon import Attempt
from graphd.mcp.serving import McpServer, Tool, ToolFailed

Json = dict[str, Any]
RESULT_LIMIT_BYTES: Final = 24 << 10
READ_LIMIT_BYTES: Final = 16 << 10
TEXT: Final = {"type": "string"}


def main(arguments: list[str]) -> int:
    """Serve until stdin ends. 2 where this is no attempt."""
    token_file = os.environ.get("GRAPHD_TOKEN_FILE")
    if arguments != ["--attempt"] or not token_file:
        sys.stderr.write("graphd mcp --attempt serves the tools of a child: an agent starts it, inside an attempt\n")
        return 2
    McpServer(tools_of(Attempt(token_file))).run()
    return 0


def tools_of(attempt: Attempt) -> tuple[Tool, ...]:
    """The tools of a child."""
    return (
        Tool(
            "submit_result",
            "Hand in the result of your task when it is done, then end your turn. `output` is a text or a JSON value; "
            "where the task has a JSON Schema it must fit. Handing in again replaces what you handed in before.",
            _schema({"output": {"description": "the result: a text, or a JSON value"}}, "output"),
            lambda given: _submit(attempt, given),
        ),
        Tool(
            "report_progress",
            "Tell the people who watch how far you are, in one line.",
            _schema({"text": TEXT}, "text"),
            lambda given: _report(attempt, given),
        ),
        Tool(
            "report_discovery",
            "Report work that you found and that is not part of your task: it is proposed to the people who run it as "
            "a task of its own. `spec` says what to do, `needs` names tasks that it needs. Don't do it yourself.",
            _schema({"title": TEXT, "spec": TEXT, "needs": {"type": "array", "items": TEXT}}, "title", "spec"),
            lambda given: _discover(attempt, given),
        ),
        Tool(
            "ask_parent",
            "Ask the people who run this task something that you can't find out yourself, and wait for the answer. If "
            "none came in time, ask with the very same words to go on waiting, or go on without it.",
            _schema({"question": TEXT, "wait_ms": {"type": "integer", "minimum": 0, "maximum": 3_600_000}}, "question"),
            lambda given: _ask(attempt, given),
        ),
        Tool(
            "read_input",
            "Read one of the results that this task needs, by its name, from a byte offset on.",
            _schema(
                {"name": TEXT, "offset": {"type": "integer", "minimum": 0}, "limit": {"type": "integer", "minimum": 1}},
                "name",
            ),
            lambda given: _read(attempt, given),
        ),
    )


def _schema(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _submit(attempt: Attempt, given: Json) -> str:
    attempt.call("workgraph/submitResult", {"output": given["output"]})
    return "The result is kept. End your turn now."


def _report(attempt: Attempt, given: Json) -> str:
    attempt.call("workgraph/reportProgress", {"text": _text(given, "text")[:4096]})
    return "Told."


def _discover(attempt: Attempt, given: Json) -> str:
    needs = given.get("needs") or []
    names = [str(name) for name in needs] if isinstance(needs, list) else [str(needs)]
    params = {"title": _text(given, "title")[:200], "spec": _text(given, "spec"), "needs": names}
    attempt.call("workgraph/reportDiscovery", params)
    return "Proposed. Go on with your own task."


def _ask(attempt: Attempt, given: Json) -> str:
    wait = {"waitMs": _whole(given, "wait_ms", 0)} if "wait_ms" in given else {}
    answered = attempt.call("workgraph/askParent", {"question": _text(given, "question"), **wait})
    if answered.get("answer") is not None:
        return _bounded(f"{answered.get('answeredBy', 'somebody')} answered:\n{answered['answer']}")
    if answered.get("state") == "open":
        return "Nobody has answered yet. Ask with the very same words to go on waiting, or go on without an answer."
    return "Nobody is there to answer. Go on without an answer."


def _read(attempt: Attempt, given: Json) -> str:
    offset, limit = _whole(given, "offset", 0), _whole(given, "limit", READ_LIMIT_BYTES)
    name = _text(given, "name")
    params = {"name": name, "offset": offset, "limit": max(1, min(limit, READ_LIMIT_BYTES))}
    found = attempt.call("workgraph/readInput", params)
    if found["next"] >= found["total"]:
        return str(found["text"])
    call = f'read_input {{"name":"{name}","offset":{found["next"]}}}'
    return f"{found['text']}\n[bytes {offset} to {found['next']} of {found['total']}; {call}]"


def _bounded(text: str) -> str:
    content = text.encode("utf-8", "replace")
    if len(content) <= RESULT_LIMIT_BYTES:
        return text
    kept = content[: RESULT_LIMIT_BYTES - 100].decode("utf-8", "ignore")
    return f"{kept}\n[cut at {len(kept.encode())} of {len(content)} bytes; ask for it in smaller parts]"


def _text(given: Json, name: str) -> str:
    value = given[name]
    if not isinstance(value, str) or not value.strip():
        raise ToolFailed(f"{name} must be a text")
    return value


def _whole(given: Json, name: str, default: int) -> int:
    """A number that is not negative; some models send it as text."""
    value = given.get(name, default)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ToolFailed(f"{name} must be a whole number of 0 or more")
    return value
