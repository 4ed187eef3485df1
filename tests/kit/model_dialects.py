"""The four protocols that real agents speak to a model: how each request is read and how each answer is written.

`STREAMED[dialect]` gives server-sent events (name or None, object or text), `WHOLE[dialect]` one object.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.kit.model_script import Call, Properties, Said, Step, Turn

Event = tuple[str | None, Any]
Usage = tuple[int, int]


def flat(content: Any) -> str:
    """The text of a message's content in any of the protocols."""
    if content is None or isinstance(content, str):
        return content or ""
    blocks = [content] if isinstance(content, dict) else content
    return "\n".join(
        str(block.get("text") or block.get("content") or "") if isinstance(block, dict) else str(block)
        for block in blocks
    )


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


def _words(step: Step) -> list[str]:
    text = step.get("say", "")
    pieces: list[str] = re.findall(r"\S+\s*|\s+", text)
    return pieces * int(step.get("repeat", 1))


# ------------------------------------------------------------------ requests
def read_chat(body: dict[str, Any]) -> tuple[list[tuple[str, Properties]], list[Said]]:
    """A request of OpenAI's chat completions."""
    functions = [tool.get("function", tool) for tool in body.get("tools") or []]
    tools = [(f.get("name", ""), (f.get("parameters") or {}).get("properties") or {}) for f in functions]
    history = [
        Said(message["role"], flat(message.get("content")))
        for message in body.get("messages") or []
        if message.get("role") in ("tool", "assistant", "user")
    ]
    return tools, history


def read_responses(body: dict[str, Any]) -> tuple[list[tuple[str, Properties]], list[Said]]:
    """A request of OpenAI's responses. A tool in a namespace is NAMESPACE.TOOL, and is called so."""
    tools: list[tuple[str, Properties]] = []
    for tool in body.get("tools") or []:
        inside = tool.get("tools") if tool.get("type") == "namespace" else None
        for each in inside or [tool]:
            name = each.get("name") or each.get("type", "")
            properties = (each.get("parameters") or {}).get("properties") or {}
            tools.append((f"{tool['name']}.{name}" if inside else name, properties))
    items = body.get("input") or []
    history: list[Said] = []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            history.append(Said("tool", flat(item.get("output"))))
        elif kind.endswith("_call") or item.get("role") == "assistant":
            history.append(Said("assistant", flat(item.get("content"))))
        elif item.get("role") == "user":
            history.append(Said("user", flat(item.get("content"))))
    return tools, history


def read_messages(body: dict[str, Any]) -> tuple[list[tuple[str, Properties]], list[Said]]:
    """A request of Anthropic's messages."""
    tools = [
        (tool.get("name", ""), (tool.get("input_schema") or {}).get("properties") or {})
        for tool in body.get("tools") or []
    ]
    history: list[Said] = []
    for message in body.get("messages") or []:
        content = message.get("content")
        if message.get("role") == "assistant":
            history.append(Said("assistant", flat(content)))
            continue
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results:
            history.append(Said("tool", "\n".join(flat(result.get("content")) for result in results)))
            content = [block for block in blocks if block.get("type") != "tool_result"]
        if content:
            history.append(Said("user", flat(content)))
    return tools, history


def read_gemini(body: dict[str, Any]) -> tuple[list[tuple[str, Properties]], list[Said]]:
    """A request of Gemini's generateContent."""
    tools = [
        (f.get("name", ""), (f.get("parameters") or f.get("parametersJsonSchema") or {}).get("properties") or {})
        for tool in body.get("tools") or []
        for f in tool.get("functionDeclarations") or []
    ]
    history: list[Said] = []
    for content in body.get("contents") or []:
        parts = content.get("parts") or []
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if content.get("role") == "model":
            history.append(Said("assistant", flat(parts)))
        elif results:
            history.append(Said("tool", json.dumps(results)))
        else:
            history.append(Said("user", flat(parts)))
    return tools, history


READERS: Final = {"chat": read_chat, "responses": read_responses, "messages": read_messages, "gemini": read_gemini}


def read_turn(dialect: str, body: dict[str, Any]) -> Turn:
    """A request of this dialect."""
    tools, history = READERS[dialect](body)
    return Turn(dialect, body.get("model") or "scripted", body, tuple(tools), tuple(history))


# ---------------------------------------------------------- streamed answers
def stream_chat(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Iterator[Event]:
    """Chunks of chat completions."""
    base = {"id": _id("chatcmpl-"), "object": "chat.completion.chunk", "created": int(time.time()), "model": turn.model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if step.get("think"):
        yield chunk({"reasoning_content": step["think"]})
    for word in _words(step):
        yield chunk({"content": word})
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": _id("call_"), "type": "function", "function": function}]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": json.dumps(arguments)}}]})
    yield chunk({}, "tool_calls" if calls else "stop")
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    yield None, {**base, "choices": [], "usage": counted}
    yield None, "[DONE]"


class _Responses:
    """The events of one answer of the responses protocol; each has the next number."""

    def __init__(self, turn: Turn, usage: Usage) -> None:
        self.number = -1
        self.output: list[dict[str, Any]] = []
        self.usage = {
            "input_tokens": usage[0], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage[1], "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(usage),
        }  # fmt: skip
        self.response = {
            "id": _id("resp_"), "object": "response", "created_at": int(time.time()), "status": "in_progress",
            "model": turn.model, "output": [], "error": None, "incomplete_details": None, "instructions": None,
            "metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0,
            "top_p": 1.0,
        }  # fmt: skip

    def event(self, kind: str, **more: Any) -> Event:
        self.number += 1
        return kind, {"type": kind, "sequence_number": self.number, **more}

    def item(
        self, empty: dict[str, Any], middle: list[tuple[str, dict[str, Any]]], full: dict[str, Any]
    ) -> Iterator[Event]:
        at = len(self.output)
        yield self.event("response.output_item.added", output_index=at, item=empty)
        for kind, more in middle:
            yield self.event(kind, item_id=empty["id"], output_index=at, **more)
        yield self.event("response.output_item.done", output_index=at, item=full)
        self.output.append(full)

    def thought(self, text: str) -> Iterator[Event]:
        item = {"type": "reasoning", "id": _id("rs_"), "summary": []}
        part = {"summary_index": 0, "part": {"type": "summary_text", "text": ""}}
        middle = [
            ("response.reasoning_summary_part.added", part),
            ("response.reasoning_summary_text.delta", {"summary_index": 0, "delta": text}),
        ]
        yield from self.item(item, middle, {**item, "summary": [{"type": "summary_text", "text": text}]})

    def message(self, words: list[str]) -> Iterator[Event]:
        item = {"type": "message", "id": _id("msg_"), "role": "assistant", "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        full = {**part, "text": "".join(words)}
        middle: list[tuple[str, dict[str, Any]]] = [("response.content_part.added", {"content_index": 0, "part": part})]
        middle += [("response.output_text.delta", {"content_index": 0, "delta": word}) for word in words]
        middle.append(("response.output_text.done", {"content_index": 0, "text": full["text"]}))
        middle.append(("response.content_part.done", {"content_index": 0, "part": full}))
        yield from self.item(item, middle, {**item, "status": "completed", "content": [full]})

    def call(self, name: str, arguments: dict[str, Any]) -> Iterator[Event]:
        text = json.dumps(arguments)
        namespace, _, own = name.rpartition(".")
        item = {
            "type": "function_call", "id": _id("fc_"), "call_id": _id("call_"), "name": own, "arguments": "",
            "status": "in_progress", **({"namespace": namespace} if namespace else {}),
        }  # fmt: skip
        middle: list[tuple[str, dict[str, Any]]] = [
            ("response.function_call_arguments.delta", {"delta": text}),
            ("response.function_call_arguments.done", {"arguments": text}),
        ]
        yield from self.item(item, middle, {**item, "arguments": text, "status": "completed"})


def stream_responses(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Iterator[Event]:
    """Events of the responses protocol."""
    made = _Responses(turn, usage)
    yield made.event("response.created", response=made.response)
    yield made.event("response.in_progress", response=made.response)
    if step.get("think"):
        yield from made.thought(step["think"])
    if step.get("say"):
        yield from made.message(_words(step))
    for name, arguments in calls:
        yield from made.call(name, arguments)
    done = {**made.response, "status": "completed", "output": made.output, "usage": made.usage}
    yield made.event("response.completed", response=done)


def stream_messages(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Iterator[Event]:
    """Events of Anthropic's messages."""

    def event(kind: str, **more: Any) -> Event:
        return kind, {"type": kind, **more}

    def block(at: int, empty: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[Event]:
        yield event("content_block_start", index=at, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=at, delta=delta)
        yield event("content_block_stop", index=at)

    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    yield event("message_start", message={
        "id": _id("msg_"), "type": "message", "role": "assistant", "model": turn.model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": usage[0], "output_tokens": 1, **cached},
    })  # fmt: skip
    at = 0
    if step.get("think") and (turn.body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        deltas = [
            {"type": "thinking_delta", "thinking": step["think"]},
            {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="},
        ]
        yield from block(at, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        at += 1
    if step.get("say"):
        words = [{"type": "text_delta", "text": word} for word in _words(step)]
        yield from block(at, {"type": "text", "text": ""}, words)
        at += 1
    for name, arguments in calls:
        empty = {"type": "tool_use", "id": _id("toolu_"), "name": name, "input": {}}
        yield from block(at, empty, [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}])
        at += 1
    delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": usage[1]})
    yield event("message_stop")


def stream_gemini(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> Iterator[Event]:
    """Frames of Gemini's streamGenerateContent."""
    counted = {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1], "totalTokenCount": sum(usage)}

    def frame(parts: list[dict[str, Any]], finish: str | None = None) -> Event:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        more = {"modelVersion": turn.model, "responseId": "scripted", "usageMetadata": counted}
        return None, {"candidates": [candidate], **more}

    if step.get("think"):
        yield frame([{"text": step["think"], "thought": True}])
    for word in _words(step):
        yield frame([{"text": word}])
    called = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls]
    yield frame(called or [{"text": ""}], "STOP")


# ------------------------------------------------------------- whole answers
def _text(step: Step) -> str:
    return "".join(_words(step))


def whole_chat(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> dict[str, Any]:
    """One chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": _text(step)}
    if calls:
        message["tool_calls"] = [
            {"id": _id("call_"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return {
        "id": _id("chatcmpl-"), "object": "chat.completion", "created": int(time.time()), "model": turn.model,
        "choices": [choice], "usage": counted,
    }  # fmt: skip


def whole_responses(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> dict[str, Any]:
    """One answer of the responses protocol."""
    *_, (_, last) = stream_responses(turn, step, calls, usage)
    done: dict[str, Any] = last["response"]
    return done


def whole_messages(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> dict[str, Any]:
    """One answer of Anthropic's messages."""
    content: list[dict[str, Any]] = [{"type": "text", "text": _text(step)}] if step.get("say") else []
    content += [{"type": "tool_use", "id": _id("toolu_"), "name": name, "input": given} for name, given in calls]
    return {
        "id": _id("msg_"), "type": "message", "role": "assistant", "model": turn.model, "content": content,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }  # fmt: skip


def whole_gemini(turn: Turn, step: Step, calls: list[Call], usage: Usage) -> dict[str, Any]:
    """One answer of Gemini's generateContent."""
    *_, (_, last) = stream_gemini(turn, {}, calls, usage)
    whole: dict[str, Any] = last
    if step.get("say"):
        whole["candidates"][0]["content"]["parts"].insert(0, {"text": _text(step)})
    return whole


Streamer = Callable[[Turn, Step, list[Call], Usage], Iterator[Event]]
Answerer = Callable[[Turn, Step, list[Call], Usage], dict[str, Any]]
STREAMED: Final[dict[str, Streamer]] = {
    "chat": stream_chat, "responses": stream_responses, "messages": stream_messages, "gemini": stream_gemini,
}  # fmt: skip
WHOLE: Final[dict[str, Answerer]] = {
    "chat": whole_chat, "responses": whole_responses, "messages": whole_messages, "gemini": whole_gemini,
}  # fmt: skip
