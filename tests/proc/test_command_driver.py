"""The driver `command` with real keepers and programs that replay real ones: success, lies, sessions, weather, cuts."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphd.children.command.driver import CommandDriver
from graphd.children.command.fold import STATE, CommandFold
from graphd.children.command.words import ARGUMENT_LIMIT_BYTES, own_session
from graphd.children.driver import Ending, Fact, Order
from graphd.children.journal import Record
from graphd.children.keeping.files import OUT
from graphd.children.profiles import PROFILES
from graphd.children.run import KeptRun
from graphd.children.sink import CaptureShort
from graphd.core.commands import AttemptEnded
from graphd.daemon.orders import quirks_of
from graphd.daemon.talking import words_of
from graphd.daemon.texts import Texts
from tests.kit.kept import PROGRAMS, Heard, make_order

DIALECTS = ("claude", "codex", "opencode", "gemini")
RECORDED = Path(__file__).resolve().parents[1] / "data" / "headless"


def order_for(tmp_path: Path, dialect: str, told: str = "do it", **changes: Any) -> Order:
    profile = PROFILES[f"{dialect}-headless"]
    order = make_order(
        tmp_path, told=told, driver="command", profile=profile.name, permissions="full", headless=profile.headless,
        quirks=quirks_of(profile), argv=(sys.executable, str(PROGRAMS / "fake_headless.py"), dialect),
        environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_TRACE": str(tmp_path / "trace")},
    )  # fmt: skip
    return replace(order, **changes)


class Kept:
    """What a run told: its facts, in order."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    async def take(self, facts: tuple[Fact, ...], cursor: tuple[int, int]) -> None:
        self.facts += facts

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [fact.content for fact in self.facts if fact.kind == kind]


async def run(order: Order) -> tuple[AttemptEnded, Kept]:
    kept = Kept()
    attempt = KeptRun(order, Heard(), driver=CommandDriver(), on_facts=kept.take)
    ended = await attempt.start()
    await attempt.collect()
    return ended, kept


def asked(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]


def text_of(ended: AttemptEnded) -> str:
    assert ended.output is not None, ended
    return ended.output.text


# ---- each program, as it was recorded ------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_turn_that_went_well_is_achieved_with_its_last_message(tmp_path: Path, dialect: str) -> None:
    ended, kept = await run(order_for(tmp_path, dialect))
    assert (ended.outcome, ended.exit_code, text_of(ended)) == ("achieved", 0, "all done")
    (session,) = kept.of("session")
    assert session == {"id": asked(tmp_path)[0]["session"], "restored": "new"}
    usage = kept.of("usage")[-1]
    assert usage["toolCalls"] == 1
    assert usage["tokens"] == {"claude": 300, "codex": 310, "opencode": 280, "gemini": 280}[dialect]
    assert usage["costUsd"] == {"claude": 0.00184, "opencode": 0.0}.get(dialect)
    assert [item["text"] for item in kept.of("item") if item["kind"] == "text"][0].startswith("I ")
    (used,) = [item for item in kept.of("item") if item["kind"] == "tool"]
    assert used["tool"]["title"] in words_of(used), "people see what it does"
    assert Texts(order_for(tmp_path, dialect, max_tool_calls=0)).over_limit(kept.facts) is not None
    assert (tmp_path / "attempts" / "0197" / "gn-e40c292c@1" / "output").read_text() == "all done"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_session_is_resumed_by_its_id_and_told_that_it_was_interrupted(tmp_path: Path, dialect: str) -> None:
    _, first = await run(order_for(tmp_path, dialect))
    session = first.of("session")[0]["id"]
    order = order_for(
        tmp_path, dialect, resume_session=session, interrupted="go on", number=2, folder=tmp_path / "attempts/0197/2"
    )
    ended, kept = await run(order)
    assert (ended.outcome, text_of(ended)) == ("achieved", "resumed")
    assert kept.of("session") == [{"id": session, "restored": "resumed"}]
    assert asked(tmp_path)[1]["prompt"] == "go on"
    if dialect == "claude":
        assert kept.of("usage")[-1]["costUsd"] == pytest.approx(0.00104), "of this run, not of the session"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_session_that_is_gone_is_lost_and_said_and_not_replaced_in_silence(
    tmp_path: Path, dialect: str
) -> None:
    ended, kept = await run(order_for(tmp_path, dialect, resume_session="11111111-1111-4111-8111-111111111111"))
    assert (ended.outcome, ended.failure_class) == ("lost", None)
    assert "can't be opened again" in (ended.reason or "")
    assert [s for s in kept.of("session") if s["restored"] == "new"] == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_models_error_fails_with_what_it_said(tmp_path: Path, dialect: str) -> None:
    ended, _ = await run(order_for(tmp_path, dialect, "case: 400"))
    assert (ended.outcome, ended.failure_class) == ("failed", "exec_failed")
    assert "scripted failure" in (ended.reason or "")


@pytest.mark.parametrize("dialect", ["claude", "opencode"])
async def test_exit_code_0_after_a_denied_tool_is_no_success(tmp_path: Path, dialect: str) -> None:
    ended, _ = await run(order_for(tmp_path, dialect, "case: denied"))
    assert (ended.outcome, ended.failure_class, ended.exit_code) == ("failed", "refused", 0)
    assert "denied what it needed: " in (ended.reason or "")
    assert (ended.reason or "").lower().endswith("write")


async def test_weather_before_it_acted_puts_the_node_back(tmp_path: Path) -> None:
    ended, _ = await run(order_for(tmp_path, "codex", "case: 429"))
    assert (ended.outcome, ended.failure_class) == ("put_back", None)
    assert "the provider is busy: exceeded retry limit" in (ended.reason or "")


async def test_a_program_that_refuses_to_start_says_why(tmp_path: Path) -> None:
    ended, _ = await run(order_for(tmp_path, "claude", "case: root"))
    assert ended.outcome == "failed"
    assert "root/sudo" in (ended.reason or "")


# ---- what it is started with ---------------------------------------------------------------------------------------


async def test_terms_are_words_of_the_program_and_a_prompt_is_never_an_option(tmp_path: Path) -> None:
    order = order_for(tmp_path, "codex", "--version please", model="m1", thinking="high")
    ended, _ = await run(order)
    assert ended.outcome == "achieved", ended.reason
    words = asked(tmp_path)[0]["words"]
    assert words[:3] == ["exec", "--json", "--skip-git-repo-check"]
    assert words[3:7] == ["-m", "m1", "-c", 'model_reasoning_effort="high"']
    assert words[-1] == "\n--version please"
    await run(order_for(tmp_path, "claude", model="opus", folder=tmp_path / "c"))
    words = asked(tmp_path)[1]["words"]
    assert words[words.index("--session-id") + 1] == own_session(order)
    assert words[words.index("--permission-mode") + 1] == "bypassPermissions"
    assert words[words.index("--model") + 1] == "opus"


async def test_a_long_task_is_a_file_and_an_argument_holds_no_key(tmp_path: Path) -> None:
    key = "sk-ant-" + "x" * 40
    order = order_for(tmp_path, "gemini", f"use {key}")
    await run(order)
    assert asked(tmp_path)[0]["prompt"] == "use [redacted:anthropic-key]"
    long = "y" * (ARGUMENT_LIMIT_BYTES + 1)
    order = order_for(tmp_path, "gemini", long, folder=tmp_path / "2")
    ended, _ = await run(order)
    assert ended.outcome == "achieved"
    assert asked(tmp_path)[1]["prompt"].startswith(f"Your task is in the file {tmp_path}/2/told.md.")
    assert (tmp_path / "2" / "told.md").read_text() == long


async def test_an_agent_that_can_not_ask_is_not_started_with_less_than_full(tmp_path: Path) -> None:
    ended, _ = await run(order_for(tmp_path, "claude", permissions="edit"))
    assert (ended.outcome, ended.failure_class) == ("failed", "exec_failed")
    assert "permissions full only, and this asks for edit" in (ended.reason or "")
    assert not (tmp_path / "trace").exists()
    ended, _ = await run(order_for(tmp_path, "claude", argv=(), folder=tmp_path / "2"))
    assert "has no command" in (ended.reason or "")


async def test_a_program_of_no_dialect_answers_with_what_it_prints(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text('echo "got: $1"; cat "$GRAPHD_INPUT_DIR"/a 2>/dev/null; exit "${2:-0}"')
    order = order_for(tmp_path, "codex", "the task", headless=None, argv=("/bin/sh", str(script)))
    ended, kept = await run(order)
    assert (ended.outcome, text_of(ended), kept.facts) == ("achieved", "got: the task\n", [])


# ---- the fold ------------------------------------------------------------------------------------------------------


def records_of(lines: list[str], size: int = 1 << 16) -> Iterator[Record]:
    """A journal of these lines in records of at most `size` bytes."""
    content = "".join(f"{line}\n" for line in lines).encode()
    offset, out = 100, 0
    for at in range(0, len(content), size):
        part = content[at : at + size]
        yield Record(OUT, part, 0, offset, out, 0)
        offset, out = offset + len(part) + 14, out + len(part)


def folded(order: Order, lines: list[str], code: int = 0, size: int = 1 << 16) -> tuple[Ending, list[Fact]]:
    order.folder.mkdir(parents=True, exist_ok=True)
    fold = CommandDriver().fold(order, out_bytes=0)
    facts = [fact for record in records_of(lines, size) for fact in fold.feed(record)]
    return fold.end({"code": code, "signal": None, "errBytes": 0}), facts


def recorded(dialect: str, case: str) -> list[str]:
    found: list[str] = json.loads((RECORDED / dialect / f"{case}.json").read_text())["stdout"]
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_lines_are_the_same_facts_however_they_are_cut(tmp_path: Path, dialect: str) -> None:
    lines = recorded(dialect, "ok")
    whole = [(fact.kind, fact.content) for fact in folded(order_for(tmp_path, dialect), lines)[1]]
    for size in (1, 7, 100, 1000):
        ended, facts = folded(order_for(tmp_path, dialect), lines, size=size)
        assert ended.outcome == "achieved"
        assert [(fact.kind, fact.content) for fact in facts] == whole


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fold_goes_on_where_the_journal_was_trimmed(tmp_path: Path, dialect: str) -> None:
    order = order_for(tmp_path, dialect)
    order.folder.mkdir(parents=True)
    records = list(records_of(recorded(dialect, "ok"), 90))
    whole = [(fact.kind, fact.content) for fact in folded(order, recorded(dialect, "ok"), size=90)[1]]
    for cut in range(1, len(records)):
        first = CommandDriver().fold(order, out_bytes=0)
        assert isinstance(first, CommandFold)
        facts = [fact for record in records[:cut] for fact in first.feed(record)]
        trimmed_to = first.release()
        second = CommandDriver().fold(order, out_bytes=1)
        for record in records:
            if record.end > trimmed_to:
                skipped = max(0, trimmed_to - record.offset)
                rest = replace(record, payload=record.payload[skipped:], offset=record.offset + skipped)
                facts += second.feed(rest)
        assert [(fact.kind, fact.content) for fact in facts] == whole, cut
        assert second.end({"code": 0, "signal": None, "errBytes": 0}).outcome == "achieved"


def test_a_state_that_is_gone_is_a_short_capture(tmp_path: Path) -> None:
    order = order_for(tmp_path, "claude")
    order.folder.mkdir(parents=True)
    for content in (None, "{", '{"position": 1}', '{"position": 1, "turn": {"x": 1, "trouble": null}}'):
        if content is not None:
            (order.folder / STATE).write_text(content)
        with pytest.raises(CaptureShort):
            CommandDriver().fold(order, out_bytes=1)


@pytest.mark.parametrize(
    ("dialect", "lines", "code", "outcome", "failure"),
    [
        ("claude", [], 0, "failed", "exec_failed"),
        ("claude", ['{"type":"result","subtype":"success","is_error":true,"result":"no"}'], 0, "failed", "exec_failed"),
        ("claude", ['{"type":"result","subtype":"success","is_error":false,"result":""}'], 0, "failed", "verdict_fail"),
        ("claude", ['{"type":"result","subtype":"success","is_error":false,"result":"x"}'], 1, "failed", "exec_failed"),
        ("claude", ['{"type":"result","subtype":"error_max_turns","is_error":true}'], 1, "failed", "limit"),
        (
            "claude",
            ['{"type":"result","subtype":"success","is_error":false,"result":"x","stop_reason":"refusal"}'],
            0, "failed", "refused",
        ),
        ("codex", ['{"type":"item.completed","item":{"type":"agent_message","text":"h"}}'], 0, "failed", "exec_failed"),
        ("codex", ['{"type":"error","message":"prompt is too long"}'], 1, "failed", "limit"),
        ("opencode", ['{"type":"text","part":{"text":"hi"}}'], 0, "failed", "exec_failed"),
        ("gemini", ['{"type":"result","status":"error"}'], 0, "failed", "exec_failed"),
        ("gemini", ["null", "7", "[]", "{", '{"type":3}', '{"type":"result","status":[]}'], 0, "failed", "exec_failed"),
    ],
)  # fmt: skip
def test_nothing_else_is_a_success(
    tmp_path: Path, dialect: str, lines: list[str], code: int, outcome: str, failure: str
) -> None:
    ended, _ = folded(order_for(tmp_path, dialect), lines, code)
    assert (ended.outcome, ended.failure_class) == (outcome, failure)


def test_weather_after_it_acted_is_a_failure_that_says_how_long(tmp_path: Path) -> None:
    lines = [
        '{"type":"item.completed","item":{"type":"command_execution","command":"rm x"}}',
        '{"type":"turn.failed","error":{"message":"429 Too Many Requests, retry after 12 s"}}',
    ]
    ended, _ = folded(order_for(tmp_path, "codex"), lines, 1)
    assert (ended.outcome, ended.failure_class, ended.weather) == ("failed", "exec_failed", {"retryAfterS": 12.0})
    ended, _ = folded(order_for(tmp_path, "codex"), lines[1:], 1)
    assert (ended.outcome, ended.weather) == ("put_back", {"retryAfterS": 12.0})


def test_a_trouble_that_was_overcome_is_none(tmp_path: Path) -> None:
    lines = recorded("codex", "ok")
    lines.insert(3, '{"type":"error","message":"stream disconnected before completion, retrying"}')
    assert folded(order_for(tmp_path, "codex"), lines)[0].outcome == "achieved"


def test_a_schema_takes_one_json_value_out_of_its_code_fence(tmp_path: Path) -> None:
    def answer(text: str, schema: str | None) -> tuple[str, str]:
        line = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": text})
        output = folded(order_for(tmp_path, "claude", output_schema=schema), [line])[0].output
        assert output is not None
        return output.text, output.media_type

    assert answer('```json\n{"a": 1}\n```', "{}") == ('{"a": 1}', "application/json")
    assert answer('```json\n{"a": 1}\n```', None) == ('```json\n{"a": 1}\n```', "text/plain")
    assert answer("7", "{}") == ("7", "application/json")
    assert answer("7", None) == ("7", "text/plain")
    assert answer("```\nno\n```", "{}") == ("```\nno\n```", "text/plain")


def test_texts_that_no_database_holds_are_mended(tmp_path: Path) -> None:
    """Programs in JavaScript cut texts in the middle of a character, and write the half of it as an escape."""
    lines = [
        '{"type":"thread.started","thread_id":"a\\ud83d"}',
        '{"type":"turn.failed","error":{"message":"it said \\ud83d\\u0000"}}',
    ]
    ended, facts = folded(order_for(tmp_path, "codex"), lines, 1)
    assert ended.reason is not None
    assert "it said \ufffd\ufffd" in ended.reason
    assert facts[0].content["id"] == "a\ufffd"
