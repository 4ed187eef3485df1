"""Agents that talk, with real processes: one life each, through every bad habit that real agents were seen to have.

The fake agent's trace proves what it got and did. Rows: research agents.md §8 item 1, §9, §10.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.quirks import Quirks
from graphd.children.driver import Input
from graphd.core.commands import AttemptEnded
from tests.kit.acp import Core, Decide, acp_order, allow, reject, traced, wait
from tests.kit.kept import is_gone, until

ASK = {"toolCall": {"toolCallId": "t1", "title": "Write", "kind": "edit"}, "effect": "write"}


async def play(
    tmp_path: Path, script: dict[str, Any], *, decide: Decide = allow, rounds: tuple[str, ...] = (), **changes: Any
) -> tuple[AttemptEnded, Core]:
    """One attempt from its start to its settlement, under one daemon."""
    core = Core(acp_order(tmp_path, script, **changes), decide=decide, rounds=rounds)
    ended = await core.make().start()
    await core.run.collect()
    return ended, core


def text_of(ended: AttemptEnded) -> str:
    assert ended.outcome == "achieved", ended.reason
    assert ended.output is not None
    return ended.output.text


async def test_a_turn_with_a_permission_a_file_and_a_second_round(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write = {"method": "fs/write_text_file", "params": {"sessionId": "session-1", "path": str(path), "content": "hi"}}
    script = {
        "turns": [[{"think": "hm"}, {"ask": ASK}, {"request": write}, {"say": "first"}], [{"say": "second"}]],
        "session": {"modes": {"currentModeId": "auto", "availableModes": []}},
    }
    ended, core = await play(tmp_path, script, mode="ask", rounds=("do more",))
    assert text_of(ended) == "second"
    assert path.read_text() == "hi"
    assert [line["name"] for line in traced(tmp_path, did="effect")] == ["write"]
    prompts = [line["params"]["prompt"][0]["text"] for line in traced(tmp_path, got="session/prompt")]
    assert prompts == ["do it", "do more"]
    assert [line["params"]["modeId"] for line in traced(tmp_path, got="session/set_mode")] == ["ask"]
    assert [fact["round"] for fact in core.of("candidate")] == [1, 2]
    order = core.order
    assert (order.folder / "result.1").read_text() == "first"
    assert (order.folder / "output").read_text() == "second"
    got = [line["got"] for line in traced(tmp_path) if "got" in line]
    assert got[-2:] == ["session/close", "eof"], "closed with words, then its stdin, and no signal was needed"
    assert ended.exit_code == 0


async def test_one_that_does_not_mind_its_stdin_is_terminated_without_a_grace(tmp_path: Path) -> None:
    script = {"turns": [[{"say": "result"}]], "on_eof": "stay"}
    quirks = Quirks(ends_with_stdin=False)
    async with asyncio.timeout(60):  # far from the grace
        ended, _ = await play(tmp_path, script, quirks=quirks, grace_s=600.0)
    assert text_of(ended) == "result"
    assert traced(tmp_path, got="session/close"), "it was told before"


async def test_reject_goes_on_or_ends_the_turn_with_either_stop_reason(tmp_path: Path) -> None:
    for number, (how, quirks) in enumerate(
        [("go_on", Quirks()), ("end_turn", Quirks()), ("cancelled", Quirks(reject_cancels=True))]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        turns = [[{"ask": ASK}, {"say": "worked around"}], [{"say": "without it"}]]
        ended, _ = await play(folder, {"turns": turns, "on_reject": how}, decide=reject, quirks=quirks)
        assert text_of(ended) == "without it"
        assert traced(folder, did="effect") == []
        assert len(traced(folder, got="session/prompt")) == 2


async def test_an_agent_that_offers_no_once_gets_a_cancelled_and_never_an_always(tmp_path: Path) -> None:
    options = [{"optionId": "go", "name": "Always", "kind": "allow_always"}]
    script = {"turns": [[{"ask": ASK | {"options": options}}, {"say": "x"}]], "on_cancel": "ignore"}
    core = Core(acp_order(tmp_path, script))
    task = asyncio.create_task(core.make().start())
    await until(lambda: traced(tmp_path, got="reply"))
    assert traced(tmp_path, got="reply")[0]["reply"] == {"outcome": {"outcome": "cancelled"}}
    core.stop()
    await task
    await core.run.collect()
    assert traced(tmp_path, did="effect") == []


async def test_floods_long_lines_and_log_lines_on_stdout(tmp_path: Path) -> None:
    turn = [
        {"line": "Debugger listening on ws://127.0.0.1:9229"}, {"bytes": "fffe0d0a"}, {"stderr": 2_000_000},
        {"pad": 5_000_000}, {"tool": {"toolCallId": "t", "kind": "read"}}, {"flood": 300},
        {"update": {"sessionUpdate": "telepathy", "of": [1]}}, {"notify": {"method": "_auth/status_update"}},
        {"request": {"method": "craft/drainMidTurnQueue", "params": {}}}, {"say": "still here"},
        {"stop": {"result": {"stopReason": "enlightened"}}},
    ]  # fmt: skip
    ended, core = await play(tmp_path, {"greeting": ["npm notice"], "turns": [turn]})
    assert text_of(ended) == "still here"
    kinds = [item["kind"] for item in core.of("item")]
    assert kinds.count("noise") == 3
    assert "telepathy" in kinds
    assert "unknown" in kinds
    assert traced(tmp_path, did="request")[0]["reply"]["code"] == -32601
    assert core.of("usage")[-1]["toolCalls"] == 2


async def test_a_journal_beyond_its_limit_is_trimmed_and_the_fold_goes_on(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("graphd.children.attempt.JOURNAL_LIMIT", 200_000)
    turns = [[{"say": "first"}, {"flood": 1000}, {"ask": ASK}, {"flood": 1000}, {"say": "end"}]]
    ended, core = await play(tmp_path, {"turns": turns})
    assert text_of(ended) == "end"
    assert (core.order.folder / "journal").stat().st_size < 1_000_000
    assert (core.order.folder / "fold.json").exists()
    assert core.of("session")[0]["id"] == "session-1"


async def test_notifications_behind_the_end_of_a_turn_and_responses_nobody_waits_for(tmp_path: Path) -> None:
    turn = [
        {"respond": {"id": 4711, "result": {}}}, {"respond": {"id": None, "result": None}}, {"say": "result"},
        {"after": [{"say": "late"}, {"respond": {"id": 2, "result": {"stopReason": "refusal"}}}]},
    ]  # fmt: skip
    ended, core = await play(tmp_path, {"turns": [turn]})
    assert text_of(ended) == "result"
    assert core.of("turn_failed") == []


@pytest.mark.parametrize("how", ["cancelled", "end_turn", "error"])
async def test_a_cancel_with_an_open_permission_however_the_turn_ends_then(tmp_path: Path, how: str) -> None:
    script = {"turns": [[{"say": "half"}, {"ask": ASK}, {"say": "never"}]], "on_cancel": how}
    core = Core(acp_order(tmp_path, script, grace_s=3.0), decide=wait)
    task = asyncio.create_task(core.make().start())
    await until(lambda: core.open_asks)
    core.stop()
    ended = await task
    await core.run.collect()
    assert ended.outcome == "failed"
    got = [line["got"] for line in traced(tmp_path) if "got" in line]
    assert got[-2:] == ["reply", "session/cancel"], "the ask is answered before the cancel"
    assert len(traced(tmp_path, did="turn")) == 1, "the turn had the time to end by itself"
    assert core.of("candidate") == []


async def test_a_cancel_that_is_never_answered_is_followed_by_signals_and_nothing_is_left(tmp_path: Path) -> None:
    """Also what ignores the interrupt, and what the agent started in a session of its own."""
    script = {"turns": [[{"child": 1000}, {"say": "x"}, {"wait": 1000}]], "on_cancel": "ignore"}
    core = Core(acp_order(tmp_path, script))
    task = asyncio.create_task(core.make().start())
    await until(lambda: traced(tmp_path, did="child"))
    child, agent = traced(tmp_path, did="child")[0]["child"], traced(tmp_path, did="start")[0]["pid"]
    core.stop()
    ended = await task
    assert is_gone(child)
    assert is_gone(agent)
    await core.run.collect()
    assert (ended.outcome, traced(tmp_path, did="turn")) == ("failed", [])


async def test_a_cancel_right_after_the_prompt(tmp_path: Path) -> None:
    core = Core(acp_order(tmp_path, {"turns": [[{"until_cancel": True}]]}, grace_s=3.0))
    task = asyncio.create_task(core.make().start())
    await until(lambda: traced(tmp_path, got="session/prompt"))
    core.stop()
    assert (await task).outcome == "failed"
    await core.run.collect()
    assert traced(tmp_path, did="turn")[0]["response"] == {"result": {"stopReason": "cancelled"}}


@pytest.mark.parametrize(
    ("die", "signal_number", "code"), [("KILL", 9, None), ("mid_line", 9, None), (3, None, 3), (0, None, 0)]
)
async def test_an_agent_that_dies_in_its_turn_failed_whatever_its_exit_code(
    tmp_path: Path, die: Any, signal_number: int | None, code: int | None
) -> None:
    ended, _ = await play(tmp_path, {"turns": [[{"say": "half"}, {"stderr": 1000}, {"die": die}]]})
    assert (ended.outcome, ended.failure_class) == ("failed", "exec_failed")
    assert (ended.signal, ended.exit_code) == (signal_number, code)
    assert ended.output is None
    assert "eee" in (ended.reason or "")


async def test_a_death_right_after_the_result_does_not_take_it_back(tmp_path: Path) -> None:
    ended, _ = await play(tmp_path, {"turns": [[{"say": "result"}, {"after": [{"die": "KILL"}]}]]})
    assert text_of(ended) == "result"


async def test_an_agent_that_does_not_leave_at_the_end_of_its_input_is_ended(tmp_path: Path) -> None:
    script = {"turns": [[{"child": 1000}, {"say": "result"}]], "on_eof": "stay", "answers": {"session/close": "silent"}}
    ended, _ = await play(tmp_path, script)
    assert text_of(ended) == "result"
    assert is_gone(traced(tmp_path, did="child")[0]["child"])
    assert is_gone(traced(tmp_path, did="start")[0]["pid"])


@pytest.mark.parametrize("method", ["initialize", "session/new"])
async def test_a_start_that_hangs_is_ended_and_says_where(tmp_path: Path, method: str) -> None:
    script = {"answers": {method: "silent"}}
    ended, _ = await play(tmp_path, script, quirks=Quirks(init_s=0.7, open_s=0.7))
    assert (ended.outcome, ended.failure_class) == ("failed", "exec_failed")
    assert ended.reason == f"the agent did not answer {method} within 0.7 s"


async def test_an_agent_that_is_not_there_or_speaks_something_else(tmp_path: Path) -> None:
    for number, argv in enumerate([("/nowhere/agent",), ("/bin/cat",), ("/bin/echo", "no"), ("/bin/true",)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        ended, _ = await play(folder, {}, argv=argv, quirks=Quirks(init_s=0.5))
        assert (ended.outcome, ended.failure_class) == ("failed", "exec_failed"), argv
        assert ended.reason


async def test_weather_and_refusals_of_a_session_end_the_attempt_with_their_reason(tmp_path: Path) -> None:
    error = {"error": {"code": -32603, "message": "Internal error", "data": "429 rate limit, Retry-After: 7"}}
    ended, core = await play(tmp_path, {"turns": [[{"stop": error}]]})
    assert core.of("turn_failed")[0]["weather"] == {"retryAfterS": 7.0}
    assert "429" in (ended.reason or "")
    (tmp_path / "2").mkdir()
    login = {"error": {"code": -32000, "message": "Authentication required"}}
    ended, _ = await play(tmp_path / "2", {"answers": {"session/new": login}})
    assert "logged in" in (ended.reason or "")


# --- a session taken up again by a fresh process --------------------------------------------------------------------


async def killed(tmp_path: Path, script: dict[str, Any]) -> None:
    """A first attempt whose agent dies in its turn, after an effect."""
    turns = [[{"say": "working"}, {"tool": {"toolCallId": "t", "kind": "edit"}}, {"effect": "once"}, {"die": "KILL"}]]
    ended, core = await play(tmp_path, script | {"turns": turns})
    assert ended.outcome == "failed"
    assert core.session == "session-1"


@pytest.mark.parametrize(
    ("answers", "restored"),
    [
        ({}, "resumed"), ({"session/resume": "replays"}, "resumed"),
        ({"session/resume": {"error": {"code": -32603, "message": "no"}}}, "loaded"),
        ({"session/resume": {"error": {"code": -32601, "message": "no"}}, "session/load": "null"}, "loaded"),
        ({"session/resume": {"error": {"code": -32601, "message": "no"}}, "session/load": "empty"}, "loaded"),
    ],
)  # fmt: skip
async def test_a_killed_agents_session_goes_on_in_a_fresh_process(
    tmp_path: Path, answers: dict[str, Any], restored: str
) -> None:
    await killed(tmp_path, {})
    script = {"turns": [[], [{"say": "went on"}]], "answers": answers}
    folder = acp_order(tmp_path).folder.with_name("gn-e40c292c@2")
    ended, core = await play(
        tmp_path, script, folder=folder, resume_session="session-1", interrupted="you were cut off", mode="ask"
    )
    assert text_of(ended) == "went on"
    assert core.of("session") == [{"id": "session-1", "restored": restored}]
    assert [item for item in core.of("item") if item.get("text") == "working"] == [], "the replay is no part of it"
    assert traced(tmp_path, got="session/prompt")[-1]["params"]["prompt"][0]["text"] == "you were cut off"
    assert len(traced(tmp_path, did="effect")) == 1
    assert len(traced(tmp_path, got="session/set_mode")) == 1


async def test_a_session_that_is_gone_is_replaced_by_one_that_is_told_so(tmp_path: Path) -> None:
    for number, (answers, quirks) in enumerate(
        [({}, Quirks()), ({"session/load": "any"}, Quirks(restore=("load",), is_restore_doubtful=True))]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        script = {"answers": answers}
        ended, core = await play(folder, script, resume_session="long-gone", summary="it did a", quirks=quirks)
        assert text_of(ended) == "done"
        assert core.of("session")[0]["restored"] == "new"
        prompt = traced(folder, got="session/prompt")[0]["params"]["prompt"][0]["text"]
        assert prompt.startswith("do it")
        assert "it did a" in prompt


async def test_needs_are_files_for_agents_too(tmp_path: Path) -> None:
    _, core = await play(tmp_path, {}, inputs=(Input("discover", "the text"),))
    assert (core.order.folder / "inputs" / "discover").read_text() == "the text"
    assert os.listdir(core.order.folder / "inputs") == ["discover"]
