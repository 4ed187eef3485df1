"""The fold of the driver `acp`: its start, every row of the turn table, sessions taken up again."""

from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.quirks import Quirks
from tests.kit.acp import EXIT, OFFERS, Tape, acp_order, kinds, reject, wait


def tape(tmp_path: Path, **changes: Any) -> Tape:
    return Tape(acp_order(tmp_path, **changes))


# --- from the first line to the first prompt ---------------------------------------------------------------------


def test_a_plain_turn_from_its_first_line_to_its_result(tmp_path: Path) -> None:
    made = tape(tmp_path, mcp_argv=("/bin/graphd", "mcp"))
    first = made.sent()[0]
    assert (first["id"], first["method"], first["params"]["protocolVersion"]) == (0, "initialize", 1)
    assert first["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True,
    }  # fmt: skip
    made.open()
    opened = made.last("session/new")["params"]
    assert opened["cwd"] == str(tmp_path)
    assert opened["mcpServers"] == [{"name": "graphd", "command": "/bin/graphd", "args": ["mcp"], "env": []}]
    assert made.last("session/prompt")["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "do it"}]}
    assert [message["id"] for message in made.sent()] == [0, 1, 2]
    made.text("Let me see.")
    made.update("tool_call", toolCallId="t1", title="Read", kind="read")
    assert made.fold.is_in_turn
    made.text("It is ")
    made.text("done.")
    made.stop(usage={"totalTokens": 10, "inputTokens": 4, "outputTokens": 6})
    assert not made.fold.is_in_turn
    assert kinds(made.facts) == ["say", "session", "say", "candidate"]
    candidate = made.core.of("candidate")[0]
    assert candidate["output"] == {
        "text": "It is done.",
        "total_bytes": 11,
        "media_type": "text/plain",
        "is_cut": False,
    }
    assert made.core.of("usage")[-1] == {"tokens": 10, "costUsd": None, "toolCalls": 1}
    assert made.core.of("session") == [{"id": "s1", "restored": "new"}]
    assert (made.order.folder / "result.1").read_text() == "It is done."
    ending = made.fold.end(EXIT)
    assert (ending.outcome, ending.output and ending.output.text) == ("achieved", "It is done.")
    assert (made.order.folder / "output").read_text() == "It is done."


def test_mode_and_model_are_set_before_the_first_prompt_by_what_the_session_offers(tmp_path: Path) -> None:
    made = tape(tmp_path, mode="ask", model="big", thinking="high")
    options = [{"id": "think", "category": "thought_level", "type": "select", "currentValue": "low", "options": []}]
    made.open({"modes": {"currentModeId": "auto", "availableModes": []}, "models": {"x": 1}, "configOptions": options})
    assert made.last("session/set_mode")["params"] == {"sessionId": "s1", "modeId": "ask"}
    made.respond("session/set_mode", {})
    assert made.last("session/set_model")["params"]["modelId"] == "big"
    made.respond("session/set_model", error={"code": -32602, "message": "no such model"})
    assert "no such model" in made.facts[-2].content["text"]
    assert made.last("session/set_config_option")["params"] == {"sessionId": "s1", "configId": "think", "value": "high"}
    made.respond("session/set_config_option", {})
    assert made.last("session/prompt")
    (tmp_path / "2").mkdir()
    other = tape(tmp_path / "2", mode="ask")
    other.open({"configOptions": [{"id": "m", "category": "mode"}]})
    assert other.last("session/set_config_option")["params"]["configId"] == "m"


def test_a_refused_mode_ends_the_attempt_unless_it_may_do_all(tmp_path: Path) -> None:
    made = tape(tmp_path, mode="ask").open()
    made.respond("session/set_mode", error={"code": -32601, "message": "what?"})
    assert made.core.of("turn_failed")[0]["class"] == "exec_failed"
    assert "refused the mode ask" in made.core.of("turn_failed")[0]["reason"]
    (tmp_path / "2").mkdir()
    free = tape(tmp_path / "2", mode="bypass", permissions="full").open()
    free.respond("session/set_mode", error={"code": -32601, "message": "what?"})
    assert free.last("session/prompt")


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        ({"protocolVersion": 2}, None, "speaks version 2"),
        (None, {"code": -32603, "message": "broken"}, "broken"),
        ("nonsense", None, "version None"),
    ],
)
def test_what_initialize_may_answer(tmp_path: Path, result: Any, error: Any, words: str) -> None:
    made = tape(tmp_path)
    made.respond("initialize", result, error=error)
    assert words in made.core.of("turn_failed")[0]["reason"]
    ending = made.fold.end(EXIT)
    assert (ending.outcome, ending.failure_class) == ("failed", "exec_failed")


def test_a_login_that_is_missing_is_said_so(tmp_path: Path) -> None:
    made = tape(tmp_path)
    made.respond("initialize", {"protocolVersion": 1})
    made.respond("session/new", error={"code": -32000, "message": "Authentication required"})
    assert "logged in" in made.core.of("turn_failed")[0]["reason"]


def test_a_start_that_is_not_answered_is_due_at_a_moment_that_the_journal_says(tmp_path: Path) -> None:
    made = tape(tmp_path, quirks=Quirks(init_s=2.0, open_s=3.0))
    due = made.fold.due
    assert due is not None
    assert due.at_ns == made.records()[0].at_ns + 2_000_000_000
    assert "initialize within 2 s" in due.reason
    made.respond("initialize", {"protocolVersion": 1})
    due = made.fold.due
    assert due is not None
    assert due.at_ns == made.records()[-1].at_ns + 3_000_000_000
    made.respond("session/new", {"sessionId": "s1"})
    assert made.fold.due is None, "a turn takes its time"


# --- how a turn ends -----------------------------------------------------------------------------------------------


def rejected(made: Tape) -> Tape:
    made.core.decide = reject
    made.ask()
    return made


def test_end_turn_after_a_reject_gets_one_nudge_then_counts(tmp_path: Path) -> None:
    made = rejected(tape(tmp_path).open())
    made.text("I was not allowed.")
    made.stop()
    assert "not allowed" in made.last("session/prompt")["params"]["prompt"][0]["text"]
    assert not made.core.of("candidate")
    made.text("Done without it.")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "Done without it."


def test_a_reject_and_then_nothing_is_a_failed_verdict(tmp_path: Path) -> None:
    made = rejected(tape(tmp_path).open())
    made.stop()
    made.stop()
    failed = made.core.of("turn_failed")[0]
    assert failed["class"] == "verdict_fail"
    assert made.fold.end(EXIT).failure_class == "verdict_fail"


def test_an_empty_result_and_a_missing_contract_get_one_nudge(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.text("  \n")
    made.stop()
    assert "without a result" in made.last("session/prompt")["params"]["prompt"][0]["text"]
    made.text("here")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "here"
    (tmp_path / "2").mkdir()
    made = tape(tmp_path / "2", output_schema='{"type": "object"}').open()
    made.text("I think that it is fine.")
    made.stop()
    assert '{"type": "object"}' in made.last("session/prompt")["params"]["prompt"][0]["text"]
    made.text('Here:\n```json\n{"verdict": "ACCEPT"}\n```\n')
    made.stop()
    output = made.core.of("candidate")[0]["output"]
    assert (output["text"], output["media_type"]) == ('{"verdict": "ACCEPT"}', "application/json")


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests"])
def test_a_limit_gets_one_continue_turn(tmp_path: Path, reason: str) -> None:
    made = tape(tmp_path).open()
    made.text("half")
    made.stop(reason)
    assert "cut off" in made.last("session/prompt")["params"]["prompt"][0]["text"]
    made.stop(reason)
    assert made.core.of("turn_failed")[0]["class"] == "limit"
    (tmp_path / "2").mkdir()
    made = tape(tmp_path / "2").open()
    made.stop(reason)
    made.text("whole")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "whole"


def test_each_round_has_its_own_nudge_and_its_own_continue_turn(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("again",)).open()
    for _ in range(2):
        made.stop("max_tokens")
        made.stop()
        made.text("result")
        made.stop()
    assert [content["round"] for content in made.core.of("candidate")] == [1, 2]
    assert made.core.of("turn_failed") == []


def test_a_refusal_is_refused(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.text("I won't.")
    made.stop("refusal")
    failed = made.core.of("turn_failed")[0]
    assert (failed["class"], "I won't." in failed["reason"]) == ("refused", True)


def test_cancelled_by_us_is_the_stop_whatever_the_agent_calls_it(tmp_path: Path) -> None:
    for number, response in enumerate(({"stopReason": "cancelled"}, {"stopReason": "end_turn"}, None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = Tape(acp_order(folder), decide=wait).open()
        made.text("half a result")
        made.ask()
        made.core.add(*made.core.driver.cancel("s1", tuple(made.core.open_asks)))
        made.flush()
        assert made.sent()[-2] == {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}}
        assert made.sent()[-1]["method"] == "session/cancel"
        made.respond("session/prompt", response, error=None if response else {"code": -32603, "message": "NoneType"})
        assert not made.fold.is_in_turn
        assert kinds(made.facts)[3:] == ["ask"], "no candidate, no failure"
        assert made.fold.end(EXIT).outcome == "failed"


def test_cancelled_by_nobody_asks_a_person_but_after_a_reject_where_that_is_the_agents_way(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.stop("cancelled")
    assert kinds(made.facts)[-1] == "turn_cancelled"
    made.core.add(*made.core.driver.turn("s1", "continue"))
    made.flush()
    made.text("went on")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "went on"
    (tmp_path / "2").mkdir()
    made = rejected(tape(tmp_path / "2", quirks=Quirks(reject_cancels=True)).open())
    made.stop("cancelled")
    assert "not allowed" in made.last("session/prompt")["params"]["prompt"][0]["text"]


def test_an_unknown_stop_reason_counts_as_end_turn_and_is_said_once(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("again",)).open()
    for _ in range(2):
        made.text("result")
        made.stop("pondering")
    assert [content["round"] for content in made.core.of("candidate")] == [1, 2]
    notices = [item for item in made.core.of("item") if item["kind"] == "notice"]
    assert len(notices) == 1
    made.respond("session/close", None)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (
            {
                "code": -32603,
                "message": "Internal error",
                "data": {"details": "429 Too Many Requests, retry-after: 30"},
            },
            30,
        ),
        ({"code": -32603, "message": "Overloaded"}, None),
        ({"code": 529, "message": "overloaded_error"}, None),
        ({"code": -32603, "message": "quota", "data": "RESOURCE_EXHAUSTED, retryDelay: 1500ms"}, 1.5),
        ({"code": -32603, "message": "rate limit: try again in 500 milliseconds"}, 0.5),
        ({"code": -32603, "message": "rate limit: retry after 5 minutes."}, 300.0),
        ({"code": -32603, "message": "usage limit, 429: try again in 2 hours"}, 7200.0),
    ],
)
def test_provider_weather_is_recognised_in_errors(tmp_path: Path, error: dict[str, Any], wanted: float | None) -> None:
    made = tape(tmp_path).open()
    made.respond("session/prompt", error=error)
    failed = made.core.of("turn_failed")[0]
    assert (failed["class"], failed["acted"]) == ("exec_failed", False)
    assert failed["weather"] == ({} if wanted is None else {"retryAfterS": wanted})


def test_weather_in_a_text_and_what_is_none(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.update("tool_call", toolCallId="t", kind="execute")
    made.text("API Error: 429 rate limited, try again in 2 minutes")
    made.stop()
    failed = made.core.of("turn_failed")[0]
    assert (failed["weather"], failed["acted"]) == ({"retryAfterS": 120.0}, True)
    (tmp_path / "2").mkdir()
    made = tape(tmp_path / "2").open()
    made.text("The rate limit of the API is 429 requests; I wrote it down.")
    made.stop()
    assert made.core.of("candidate")
    (tmp_path / "3").mkdir()
    made = tape(tmp_path / "3").open()
    made.respond("session/prompt", error={"code": -32603, "message": "boom"})
    assert "weather" not in made.core.of("turn_failed")[0]
    (tmp_path / "4").mkdir()
    made = tape(tmp_path / "4").open()
    made.respond("session/prompt", error={"message": "prompt is too long: 300000 tokens"})
    assert made.core.of("turn_failed")[0]["class"] == "limit"


def test_a_process_that_goes_without_a_result_failed_and_with_one_did_not(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    made.text("almost")
    (made.order.folder / "err").write_bytes(b"out of memory\n")
    ending = made.fold.end(EXIT | {"code": 3, "errBytes": 14})
    assert (ending.outcome, ending.failure_class, ending.output) == ("failed", "exec_failed", None)
    assert "out of memory" in (ending.reason or "")
    made.stop()
    assert made.fold.end(EXIT | {"code": None, "signal": 9}).outcome == "achieved"
    made.core.add(*made.core.driver.turn("s1", "one more thing"))
    made.flush()
    assert made.fold.end(EXIT).outcome == "failed", "a later prompt takes the result back"


def test_a_turn_that_ends_with_an_open_ask_is_no_result(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), decide=wait).open()
    made.text("done?")
    made.ask()
    made.stop()
    assert kinds(made.facts)[-3:] == ["ask_gone", "say", "say"]
    assert {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}} in made.sent()
    assert not made.core.of("candidate")


def test_a_result_that_was_submitted_needs_no_words(tmp_path: Path) -> None:
    made = tape(tmp_path, output_schema="{}").open()
    assert hand_in(made, '{"a": 1}')
    made.stop()
    assert made.core.of("candidate") == [
        {"output": {"text": '{"a": 1}', "total_bytes": 8, "media_type": "application/json", "is_cut": False},
         "round": 1, "submitted": True}
    ]  # fmt: skip


def hand_in(made: Tape, text: str) -> bool:
    """`submit_result`, at this moment of the conversation."""
    staged = made.order.folder / "staged"
    staged.write_text(text)
    return made.fold.hand_in(staged)


def test_what_was_handed_in_counts_over_the_last_message_and_over_a_reject(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), decide=reject).open()
    assert hand_in(made, "first")
    assert hand_in(made, "second")
    made.ask()
    made.text("I could not do all of it")
    made.stop()
    (candidate,) = made.core.of("candidate")
    assert (candidate["output"]["text"], candidate["submitted"]) == ("second", True)
    made.fold.end(EXIT)
    assert (made.order.folder / "output").read_text() == "second"


def test_a_result_of_a_turn_that_a_limit_cut_off_counts_at_the_end_of_the_next(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    assert hand_in(made, "done")
    made.stop("max_tokens")
    assert not made.core.of("candidate")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "done"


def test_a_result_counts_for_its_round_alone_and_is_late_between_turns(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("mend it",)).open()
    assert hand_in(made, "one")
    made.stop()
    made.text("two")
    made.stop()
    assert [found["output"]["text"] for found in made.core.of("candidate")] == ["one", "two"]
    assert not hand_in(made, "late")
    assert (made.order.folder / "staged").exists()


def test_another_fold_of_the_same_journal_finds_the_same_results(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("mend it",)).open()
    assert hand_in(made, "one")
    made.stop()
    made.text("two")
    made.stop()
    again = made.core.driver.fold(made.order, out_bytes=0)
    facts = [fact for record in made.records() for fact in again.feed(record)]
    assert [fact.content for fact in facts if fact.kind == "candidate"] == made.core.of("candidate")


# --- sessions taken up again ---------------------------------------------------------------------------------------


def wanting(tmp_path: Path, offers: dict[str, Any] = OFFERS, **changes: Any) -> Tape:
    changes = {"resume_session": "old", "interrupted": "you were interrupted", "summary": "it wrote a.txt"} | changes
    made = tape(tmp_path, **changes)
    made.respond("initialize", {"protocolVersion": 1, "agentCapabilities": offers})
    return made


def prompt_of(made: Tape) -> str:
    return str(made.last("session/prompt")["params"]["prompt"][0]["text"])


def test_resume_is_preferred_and_told_of_the_interruption(tmp_path: Path) -> None:
    made = wanting(tmp_path, mode="ask")
    params = made.last("session/resume")["params"]
    assert (params["sessionId"], params["mcpServers"]) == ("old", [])
    made.respond("session/resume", {})
    assert made.core.of("session") == [{"id": "old", "restored": "resumed"}]
    assert made.last("session/set_mode")["params"]["sessionId"] == "old", "the mode is set again"
    made.respond("session/set_mode", {})
    assert prompt_of(made) == "you were interrupted"


@pytest.mark.parametrize("result", [{}, None, {"sessionId": "other"}])
def test_what_a_load_replays_is_kept_out_of_the_live_fold(tmp_path: Path, result: Any) -> None:
    made = wanting(tmp_path, {"loadSession": True}, mode="ask")
    made.update("user_message_chunk", session="old", content={"type": "text", "text": "do it"})
    made.update("tool_call", session="old", toolCallId="t", kind="edit", title="submit_result")
    made.text("an old result", session="old")
    made.respond("session/load", result)
    made.text("late replay", session="old")
    made.respond("session/set_mode", {})
    assert made.core.of("session") == [{"id": "old", "restored": "loaded"}]
    assert [item for item in made.core.of("item") if item["kind"] in ("text", "tool")] == []
    made.text("new", session="old")
    made.stop()
    assert made.core.of("candidate")[0]["output"]["text"] == "new"
    assert made.core.of("usage")[-1]["toolCalls"] == 0


def test_a_refused_resume_is_followed_by_a_load_and_that_by_a_fresh_session_with_a_summary(tmp_path: Path) -> None:
    made = wanting(tmp_path)
    made.respond("session/resume", error={"code": -32603, "message": "service failure"})
    assert made.last("session/load")["params"]["sessionId"] == "old"
    made.respond("session/load", error={"code": -32002, "message": "gone"})
    assert made.last("session/list")
    made.respond("session/list", {"sessions": [], "nextCursor": "2"})
    assert made.last("session/list")["params"]["cursor"] == "2"
    made.respond("session/list", {"sessions": [{"sessionId": "another"}]})
    made.respond("session/new", {"sessionId": "s1"})
    session = made.core.of("session")[0]
    assert (session["id"], session["restored"]) == ("s1", "new")
    assert "does not know it any more: gone" in session["whyFresh"]
    assert prompt_of(made).startswith("do it\n")
    assert "it wrote a.txt" in prompt_of(made)
    notice = next(item for item in made.core.of("item") if item["kind"] == "notice")
    assert "old could not be taken up again" in notice["text"], "never silently"


def test_a_success_for_a_session_that_is_not_there_is_found_out_by_the_list(tmp_path: Path) -> None:
    quirks = Quirks(restore=("load",), is_restore_doubtful=True)
    made = wanting(tmp_path, quirks=quirks)
    made.respond("session/load", {})
    made.respond("session/list", {"sessions": []})
    made.respond("session/new", {"sessionId": "s1"})
    assert made.core.of("session")[0]["restored"] == "new"
    (tmp_path / "2").mkdir()
    made = wanting(tmp_path / "2", quirks=quirks)
    made.respond("session/load", {})
    made.respond("session/list", {"sessions": [{"sessionId": "old"}]})
    assert made.core.of("session")[0] == {"id": "old", "restored": "loaded"}


def test_no_way_back_is_offered(tmp_path: Path) -> None:
    made = wanting(tmp_path, {})
    made.respond("session/new", {"sessionId": "s1"})
    assert "no way" in made.core.of("session")[0]["whyFresh"]
