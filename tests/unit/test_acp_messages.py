"""What agents ask and tell, and the lines that no protocol allows."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.quirks import Quirks
from tests.kit.acp import EXIT, Tape, acp_order, kinds, wait


def tape(tmp_path: Path, **changes: Any) -> Tape:
    return Tape(acp_order(tmp_path, **changes))


# --- what agents ask and tell --------------------------------------------------------------------------------------


def test_a_permission_is_joined_to_its_tool_call_and_its_options_pass_unchanged(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.update(
        "tool_call", toolCallId="t1", title="Write a.txt", kind="edit", rawInput={"file_path": "/x/a.txt"},
        locations=[{"path": "/x/a.txt"}, {"path": "/x/b.txt"}],
    )  # fmt: skip
    made.ask()
    ask = made.core.of("ask")[0]
    assert (ask["key"], ask["kind"], ask["title"]) == ("7", "permission", "Write a.txt")
    assert ask["action"]["toolKind"] == "edit"
    assert ask["action"]["paths"] == ["/x/a.txt", "/x/b.txt"]
    assert [(o["id"], o["kind"]) for o in ask["options"]] == [
        ("a+", "allow_always"),
        ("a", "allow_once"),
        ("r", "reject_once"),
    ]
    assert made.sent()[-1] == {
        "jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "a"}},
    }  # fmt: skip
    made.ask("x-1", title="Run", kind="execute", rawInput={"command": ["bash", "-lc", "ls | wc"]})
    ask = made.core.of("ask")[1]
    assert (ask["key"], ask["action"]["command"]) == ('"x-1"', "ls | wc")
    made.ask("x-2", rawInput={"command": ["ls", "a b"]})
    assert made.core.of("ask")[2]["action"]["command"] == "ls 'a b'"
    made.agent({"id": 9, "method": "session/request_permission", "params": None})
    assert made.core.of("ask")[3]["action"] == {
        "toolKind": "other",
        "title": made.core.of("ask")[3]["title"],
        "paths": [],
    }
    assert made.sent()[-1]["result"]["outcome"] == {"outcome": "cancelled"}, "nothing could be chosen"


@pytest.mark.parametrize(
    "call",
    [
        {"title": "mcp__graphd__submit_result", "kind": "other"},
        {"title": "mcp.graphd.submit_result", "kind": "execute"}, {"title": "graphd_submit_result"},
        {"title": "submit_result (graphd MCP Server)", "kind": "other"}, {"title": "Tool: graphd/submit_result"},
        {"rawInput": {"server": "graphd", "tool": "submit_result"}},
    ],
)  # fmt: skip
def test_a_tool_of_ours_is_known_however_it_is_written(tmp_path: Path, call: dict[str, Any]) -> None:
    """Its agent may ask for it, by the request or the tool call alone; it changes nothing, it hands in the result."""
    made = tape(tmp_path).open()
    made.update("tool_call", toolCallId="t1", **call)
    made.ask(title="Approve MCP tool call")
    assert made.core.of("ask")[0]["action"]["toolKind"] == "think"
    assert made.core.of("ask")[0]["action"]["own"] == "submit_result"
    made.update("tool_call_update", toolCallId="t1", status="completed")
    made.stop()
    assert made.core.of("candidate")[0]["submitted"] is True


@pytest.mark.parametrize(
    "title", ["mcp__other__submit_result", "graphd", "run graphd_submit_result now", "mcp__graphd__"]
)
def test_a_tool_of_others_is_not_taken_for_ours(tmp_path: Path, title: str) -> None:
    made = tape(tmp_path).open()
    made.ask(title=title, kind="execute")
    assert made.core.of("ask")[0]["action"]["toolKind"] == "execute"


def test_a_turn_that_failed_inside_is_no_result_though_it_ends_well(tmp_path: Path) -> None:
    quirks = Quirks(failure_mark=("codex", "threadStatus", "type", "systemError"))
    made = tape(tmp_path, quirks=quirks).open()
    made.text("exceeded retry limit, last status: 429 Too Many Requests")
    made.update("session_info_update", _meta={"codex": {"threadStatus": {"type": "systemError"}}})
    made.stop()
    assert made.core.of("turn_failed")[0]["weather"] == {}
    assert not made.core.of("candidate")


def test_an_id_that_is_used_again_is_another_ask(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), decide=wait).open()
    made.ask(7)
    made.ask(7)
    assert len(made.core.of("ask")) == 1, "a repeated request is served by one answer"
    made.core.add(*made.core.driver.answer("7", "a", None))
    made.flush()
    made.ask(7)
    keys = [ask["key"] for ask in made.core.of("ask")]
    assert len(set(keys)) == 2
    made.core.add(*made.core.driver.answer(keys[1], "r", None))
    made.flush()
    assert made.sent()[-1]["id"] == 7
    made.stop()
    assert "not allowed" in made.last("session/prompt")["params"]["prompt"][0]["text"]


def test_an_ask_that_is_taken_back_is_gone_and_answered(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), decide=wait).open()
    made.ask()
    facts = made.agent({"method": "$/cancel_request", "params": {"requestId": 7}})
    assert kinds(facts) == ["ask_gone", "say"]
    assert made.sent()[-1]["error"]["code"] == -32800
    assert made.agent({"method": "$/cancel_request", "params": {"requestId": 7}}) == []


def test_every_request_is_answered_unknown_ones_too(tmp_path: Path) -> None:
    made = tape(tmp_path, quirks=Quirks(runs_commands=False)).open()
    for key, method in enumerate(("craft/drainMidTurnQueue", "terminal/create", "_x/y", "elicitation/create"), 500):
        made.agent({"id": key, "method": method, "params": {"a": 1}})
        assert made.sent()[-1] == {
            "jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "Method not found"},
        }  # fmt: skip
    facts = made.agent({"method": "_auth/status_update", "params": {"b": 2}})
    assert facts[0].content == {"kind": "unknown", "update": {"method": "_auth/status_update", "params": {"b": 2}}}
    facts = made.update("holo_deck", depth=3)
    assert facts[0].content == {"kind": "holo_deck", "update": {"sessionUpdate": "holo_deck", "depth": 3}}


def test_files_are_served_and_the_reply_takes_the_place_of_the_request(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    path = str(tmp_path / "new" / "a.txt")
    made.agent({"id": 1, "method": "fs/write_text_file", "params": {"sessionId": "s1", "path": path, "content": "é\n"}})
    assert made.sent()[-1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    made.agent({"id": 2, "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": path}})
    assert made.sent()[-1]["result"] == {"content": "é\n"}
    (tmp_path / "2").mkdir()
    reader = tape(tmp_path / "2", permissions="read").open()
    assert reader.sent()[0]["params"]["clientCapabilities"]["fs"]["writeTextFile"] is False
    path = str(tmp_path / "2" / "no")
    reader.agent({"id": 1, "method": "fs/write_text_file", "params": {"path": path, "content": "x"}})
    assert "error" in reader.sent()[-1]
    assert not (tmp_path / "2" / "no").exists()


def test_usage_and_cost_are_totals_of_the_attempt(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("again",)).open()
    made.update("usage_update", used=50, size=200, cost={"amount": 0.5, "currency": "USD"})
    made.update("usage_update", used=60, size=200, cost={"amount": float("nan"), "currency": "USD"})
    for tokens in (100, 40):
        made.text("r")
        made.stop(usage={"totalTokens": tokens})
    assert made.core.of("usage")[-1] == {"tokens": 140, "costUsd": 0.5, "toolCalls": 0}
    (tmp_path / "2").mkdir()
    made = Tape(acp_order(tmp_path / "2", quirks=Quirks(are_totals_of_session=True)), rounds=("again",)).open()
    for tokens in (100, 140):
        made.text("r")
        made.stop(usage={"inputTokens": tokens, "outputTokens": 0})
    assert made.core.of("usage")[-1]["tokens"] == 140


def test_what_the_program_says_itself_is_no_result(tmp_path: Path) -> None:
    made = tape(tmp_path, quirks=Quirks(own_texts=(r"Model metadata for .* not found.*",))).open()
    made.text("Model metadata for `x` not found. Defaulting.")
    made.text("The answer")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "The answer"


def test_messages_of_the_turn_are_told_apart_by_id_and_by_tools(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.text("first", messageId="m1")
    made.text("second", messageId="m2")
    made.update("plan", entries=[{"content": "x"}])
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "second"
    (tmp_path / "2").mkdir()
    made = tape(tmp_path / "2").open()
    made.text("the answer")
    made.update("tool_call", toolCallId="t", kind="think")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "the answer"
    (tmp_path / "3").mkdir()
    made = tape(tmp_path / "3").open()
    made.text("another session", session="sub")
    made.stop()
    assert not made.core.of("candidate")


# --- what no protocol allows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"Debugger attached.", b"{not json}", b"[1, 2, 3]", b"null", b"{}", b'"text"', b"\xff\xfe\x00", b"[" * 100_000,
        b'{"id": 12345, "result": {}}', b'{"id": null, "result": {}}', b'{"jsonrpc": "2.0"}', b'{"method": 5, "id": 1}',
        b'{"method": "session/update"}', b'{"method": "session/update", "params": {"update": []}}',
        b'{"method": "session/update", "params": [1]}', b'{"id": [1], "method": 3}', b'{"id": {"a": 1}, "result": 1}',
        b'{"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "toolCallId": 5}}}',
        b'{"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": 5}}}',
        b'{"method": "session/update", "params": {"update": {"sessionUpdate": {"a": 1}}}}',
        b'{"method": "$/cancel_request"}', b'{"id": 1e400, "method": "x"}', b"\x1b[31mred\x1b[0m",
    ],
)  # fmt: skip
def test_lines_that_mean_nothing_break_nothing(tmp_path: Path, line: bytes) -> None:
    made = tape(tmp_path).open()
    facts = made.raw(line + b"\n")
    assert set(kinds(facts)) <= {"say"}
    json.dumps([fact.content for fact in facts])
    made.text("result")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "result"


def test_bytes_that_no_database_holds_are_made_even(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    odd = "a\\ud800b\\u0000c\\ud83d\\ude00"
    update = f'{{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": "{odd}"}}}}'
    made.raw(b'{"method": "session/update", "params": {"sessionId": "s1", "update": ' + update.encode() + b"}}\n")
    made.raw(b'{"method": "_big", "params": {"n": 123456789012345678901234567890, "f": NaN, "g": 1e999}}\n')
    made.text("\udcff end")
    made.raw(b'{"method": "session/update", "params": {"sessionId": "s1", "update": {"sessionUpdate": ')
    made.raw(b'"agent_message_chunk", "content": {"type": "text", "text": "\xff\xc3("}}}}\n')
    made.stop()
    text = made.core.of("candidate")[0]["output"]["text"]
    assert text == "a\ufffdb\ufffdc\U0001f600\ufffd end\ufffd\ufffd("
    text.encode()
    assert made.core.of("item")[1]["update"]["params"] == {
        "n": "123456789012345678901234567890", "f": None, "g": None,
    }  # fmt: skip


def test_a_line_that_is_too_long_is_bounded_and_a_request_in_it_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("graphd.children.acp.wire.LINE_LIMIT", 1000)
    monkeypatch.setattr("graphd.children.acp.fold.LINE_LIMIT", 1000)
    made = tape(tmp_path).open()
    made.text("x" * 2000)
    assert made.facts[-1].content["kind"] == "noise"
    made.ask(title="y" * 2000)
    assert made.sent()[-1]["error"]["code"] == -32600
    assert made.sent()[-1]["id"] == 7
    made.text("result")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "result"


def test_the_end_of_an_overtaken_turn_is_not_that_of_the_running_one(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    first = made.last("session/prompt")["id"]
    made.text("one")
    made.core.add(*made.core.driver.turn("s1", "and this"))
    made.flush()
    made.agent({"id": first, "result": {"stopReason": "refusal"}})
    assert made.fold.is_in_turn
    made.text("two")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "two"
    assert made.core.of("turn_failed") == []


def test_responses_twice_late_and_out_of_order(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    first = made.last("session/prompt")["id"]
    made.text("one")
    made.core.add(*made.core.driver.turn("s1", "and this"))
    made.flush()
    made.text("two")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "two"
    facts = made.agent({"id": first, "result": {"stopReason": "end_turn"}})
    assert kinds(facts) == [], "the overtaken turn decides nothing"
    facts = made.agent({"id": first, "result": {"stopReason": "refusal"}})
    assert facts[0].content["kind"] == "noise"
    made.text("after the end")
    assert len(made.core.of("candidate")) == 1
    assert made.fold.end(EXIT).output is not None
    (tmp_path / "2").mkdir()
    made = tape(tmp_path / "2").open()
    made.text("as a text")
    made.agent({"id": str(made.last("session/prompt")["id"]), "result": {"stopReason": "end_turn"}})
    assert made.core.of("candidate")
    (tmp_path / "3").mkdir()
    made = tape(tmp_path / "3").open()
    made.text("in a batch")
    batch = [
        {"id": 900, "method": "_x"},
        {"id": made.last("session/prompt")["id"], "result": {"stopReason": "end_turn"}},
    ]
    facts = made.raw(json.dumps(batch).encode() + b"\n")
    assert kinds(facts) == ["say", "candidate"]
    assert [fact.index for fact in facts] == list(range(len(facts)))
