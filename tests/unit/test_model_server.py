"""The scripted model server itself: every dialect answers the step that the history asks for, and fails when told."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import pytest

from tests.kit.model_script import find_script, script
from tests.kit.model_server import ModelServer

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}}
WRITE = {"type": "object", "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}}
STEPS = script({"think": "hm", "write": {"path": "/w/a.txt", "content": "hi"}}, {"shell": "ls"}, {"say": "all done"})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


def post(server: ModelServer, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def events(text: str) -> list[Any]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


# Each dialect: a request with `results` tool results after the prompt, what its answer comes down to.
def chat(text: str, results: int, **more: Any) -> tuple[str, dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": text}]
    for _ in range(results):
        call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": "{}"}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": "c", "content": "ok"}]
    functions = [{"name": "bash", "parameters": SHELL}, {"name": "write", "parameters": WRITE}]
    tools = [{"type": "function", "function": f} for f in functions]
    return "/v1/chat/completions", {"model": "m", "messages": messages, "tools": tools, **more}


def responses(text: str, results: int, **more: Any) -> tuple[str, dict[str, Any]]:
    items: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": text}]}]
    for _ in range(results):
        items += [{"type": "function_call", "call_id": "c", "name": "write", "arguments": "{}"}]
        items += [{"type": "function_call_output", "call_id": "c", "output": "ok"}]
    tools = [
        {"type": "function", "name": "bash", "parameters": SHELL},
        {"type": "function", "name": "write", "parameters": WRITE},
        {"type": "namespace", "name": "mcp__graphd", "tools": [{"type": "function", "name": "submit_result"}]},
    ]
    return "/v1/responses", {"model": "m", "input": items, "tools": tools, **more}


def messages(text: str, results: int, **more: Any) -> tuple[str, dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    for _ in range(results):
        said += [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "write", "input": {}}]}]
        result = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
        said += [{"role": "user", "content": [result, {"type": "text", "text": "a reminder"}]}]
    tools = [{"name": "bash", "input_schema": SHELL}, {"name": "write", "input_schema": WRITE}]
    return "/v1/messages", {"model": "m", "messages": said, "tools": tools, **more}


def gemini(text: str, results: int, **more: Any) -> tuple[str, dict[str, Any]]:
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": text}]}]
    for _ in range(results):
        contents += [{"role": "model", "parts": [{"functionCall": {"name": "write", "args": {}}}]}]
        contents += [{"role": "user", "parts": [{"functionResponse": {"name": "write", "response": {}}}]}]
    functions = [{"name": "bash", "parameters": SHELL}, {"name": "write", "parametersJsonSchema": WRITE}]
    verb = "streamGenerateContent" if more.pop("stream", False) else "generateContent"
    return f"/v1beta/models/m:{verb}", {"contents": contents, "tools": [{"functionDeclarations": functions}]}


def said_by(path: str, text: str) -> tuple[str, list[tuple[str, Any]]]:
    """(text, [(tool, arguments)]) of a streamed answer."""
    told, calls = "", []
    for event in events(text):
        if "completions" in path:
            for choice in event["choices"]:
                told += choice["delta"].get("content", "")
                functions = [call["function"] for call in choice["delta"].get("tool_calls", [])]
                calls += [(function.get("name", ""), function["arguments"]) for function in functions]
        elif "responses" in path:
            told += event["delta"] if event["type"] == "response.output_text.delta" else ""
            item = event.get("item") or {}
            if event["type"] == "response.output_item.done" and item["type"] == "function_call":
                calls.append((item["name"], item["arguments"]))
        elif "messages" in path:
            delta = event.get("delta") or {}
            told += delta.get("text", "")
            if (event.get("content_block") or {}).get("type") == "tool_use":
                calls.append((event["content_block"]["name"], ""))
            if "partial_json" in delta:
                calls.append(("", delta["partial_json"]))
        else:
            for part in event["candidates"][0]["content"]["parts"]:
                told += "" if part.get("thought") else part.get("text", "")
                if "functionCall" in part:
                    calls.append((part["functionCall"]["name"], json.dumps(part["functionCall"]["args"])))
    names = [name for name, _ in calls if name]
    given = [json.loads(arguments) for _, arguments in calls if arguments]
    return told, list(zip(names, given, strict=True))


DIALECTS = (chat, responses, messages, gemini)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_history_says_which_step_is_due(server: ModelServer, dialect: Any) -> None:
    found = []
    for results in range(4):
        path, body = dialect(STEPS, results, stream=True)
        found.append(said_by(path, post(server, path, body)))
    assert found == [
        ("", [("write", {"filePath": "/w/a.txt", "content": "hi"})]),
        ("", [("bash", {"command": "ls"})]),
        ("all done", []),
        ("script over", []),
    ]
    assert [row.step for row in server.scripted] == [0, 1, 2, 3]
    assert server.asked[0].user_texts[0] == STEPS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_answer_says_the_same(server: ModelServer, dialect: Any) -> None:
    assert "all done" in post(server, *dialect(STEPS, 2))
    assert '"filePath' in post(server, *dialect(STEPS, 0)).replace("\\", "")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_befalls_the_first_tries(server: ModelServer, dialect: Any) -> None:
    steps = script({"error": 429, "retryAfterS": 7, "times": 2, "say": "through"})
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as failed:
            post(server, *dialect(steps, 0, stream=True))
        with failed.value as error:
            assert (error.code, error.headers["retry-after"]) == (429, "7")
    assert "through" in post(server, *dialect(steps, 0, stream=True))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_breaks_in_the_middle_once(server: ModelServer, dialect: Any) -> None:
    steps = script({"drop": True, "times": 1, "say": "a text of quite a few words that never all arrive"})
    with pytest.raises((HTTPException, OSError)):
        post(server, *dialect(steps, 0, stream=True))
    path, body = dialect(steps, 0, stream=True)
    assert said_by(path, post(server, path, body))[0].endswith("all arrive")


def test_an_answer_is_held_until_released_and_only_for_its_tries(server: ModelServer) -> None:
    steps = script({"hold": "door", "times": 1, "say": "through"})
    answers: list[str] = []
    held = threading.Thread(target=lambda: answers.append(post(server, *chat(steps, 0))))
    held.start()
    server.wait_for_step(0, 10)
    assert "through" in post(server, *chat(steps, 0))
    assert answers == []
    server.release("door")
    held.join(10)
    assert "through" in answers[0]


def test_an_error_befalls_until_it_is_released(server: ModelServer) -> None:
    steps = script({"error": 429, "until": "calm", "say": "through"})
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as failed:
            post(server, *chat(steps, 0))
        failed.value.close()
    server.release("calm")
    assert "through" in post(server, *chat(steps, 0))


def test_a_prompt_without_a_script_is_known_by_a_phrase() -> None:
    known = {"Move auth.": [{"shell": "ls"}, {"say": "moved"}], "Move all.": [{"say": "all moved"}]}
    with ModelServer(by_phrase=known) as server:
        assert "moved" in post(server, *chat("Please: Move auth. Soon.", 1))
        assert "all moved" in post(server, *chat("Move all.", 0))
        assert "through" in post(server, *chat("Move all. " + script({"say": "through"}), 0)), "a mark counts more"
        assert [row.step for row in server.scripted] == [1, 0, 0]


def test_a_later_prompt_without_a_script_goes_on_with_the_last(server: ModelServer) -> None:
    path, body = chat(STEPS, 1)
    body["messages"].append({"role": "user", "content": "You were interrupted. Go on."})
    assert '"ls' in post(server, path, body).replace("\\", "")


def test_a_request_without_tools_gets_a_title_at_once(server: ModelServer) -> None:
    path, body = chat(STEPS, 0)
    del body["tools"]
    assert "Scripted title" in post(server, path, body)
    assert server.scripted == []


def test_a_tool_behind_a_prefix_is_called_by_its_whole_name(server: ModelServer) -> None:
    steps = script({"tool": {"name": "submit_result", "args": {"text": "r"}}})
    item = json.loads(post(server, *responses(steps, 0)))["output"][0]
    assert (item["namespace"], item["name"]) == ("mcp__graphd", "submit_result")
    path, body = messages(steps, 0)
    body["tools"].append({"name": "mcp__graphd__submit_result", "input_schema": SHELL})
    assert json.loads(post(server, path, body))["content"][0]["name"] == "mcp__graphd__submit_result"


def test_a_relative_path_is_told_whole_where_the_agent_says_its_folder(server: ModelServer) -> None:
    path, body = chat(script({"write": {"path": "a.txt", "content": "hi"}}), 0)
    body["messages"][0]["content"] = "Working directory: /w/tree\nPlatform: linux"
    assert "/w/tree/a.txt" in post(server, path, body)


def test_what_it_does_not_serve_is_told(server: ModelServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as failed:
        post(server, "/v1/embeddings", {})
    failed.value.close()
    assert server.strays == ["POST /v1/embeddings"]


@pytest.mark.parametrize("text", ["", "[[script: nonsense", '[[script: {"say": "x"} ]]'])
def test_what_is_no_script_is_none(text: str) -> None:
    assert find_script(text) is None


def test_a_script_is_found_where_it_was_quoted(server: ModelServer) -> None:
    quoted = json.dumps(f"before {STEPS} after")
    assert find_script(quoted) == find_script(STEPS)
