"""The test of tests: a journal cut anywhere gives the same facts and exactly the missing lines."""

from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.driver import AcpDriver
from graphd.children.driver import Fact, PromptRefused
from graphd.children.journal import Decoder, Header, Record
from graphd.children.keeping.files import IN, NOTE, OUT
from graphd.children.keeping.output import OFFSET
from graphd.children.sink import CaptureShort
from tests.kit.acp import EXIT, Core, Tape, acp_order, allow, reject


def tape(tmp_path: Path, **changes: Any) -> Tape:
    return Tape(acp_order(tmp_path, **changes))


def conversation(tmp_path: Path) -> Tape:
    """A nudge, a continue turn, a second round, asks, files, noise, a restored session, unknown things."""
    (tmp_path / "a.txt").write_text("content")
    order = acp_order(tmp_path, resume_session="old", mode="ask", output_schema='{"type": "object"}')
    made = Tape(order, rounds=("the verifier says: more",))
    made.respond("initialize", {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    made.text("replayed", session="old")
    made.raw(b"a log line\n")
    made.respond("session/load", {})
    made.respond("session/set_mode", {})
    made.update("tool_call", session="old", toolCallId="t1", kind="edit", title="Write")
    made.ask()
    made.agent({"id": 8, "method": "fs/read_text_file", "params": {"path": str(tmp_path / "a.txt")}})
    terminals(made)
    made.text("thinking of it", session="old")
    made.stop("max_tokens")
    made.text("no JSON", session="old")
    made.stop(usage={"totalTokens": 5})
    made.text('{"n": 1}', session="old")
    made.stop(usage={"totalTokens": 7})
    made.agent({"id": "u", "method": "what/is_this"})
    made.core.decide = reject
    made.ask(7)
    made.core.decide = allow
    made.text('{"n": 2, "umlaut": "ä"}', session="old")
    made.agent(
        {"method": "session/update", "params": {"sessionId": "old", "update": {"sessionUpdate": "usage_update"}}},
        {"id": made.last("session/prompt")["id"], "result": {"stopReason": "end_turn"}},
    )
    made.text('```\n{"n": 3}\n```', session="old")
    made.stop()
    made.respond("session/close", {})
    assert len(made.core.of("candidate")) == 2
    return made


def terminals(made: Tape) -> None:
    """One that runs, is waited for, read and released; one that is rejected; one that can't be run."""
    (made.order.folder / "terminal.t1").write_bytes(OFFSET.pack(0) + "né".encode())
    made.agent({"id": 20, "method": "terminal/create", "params": {"command": "make"}})
    made.note(id="t1", event="started", pid=1)
    for number, what in enumerate(("wait_for_exit", "output", "kill"), 21):
        made.agent({"id": number, "method": f"terminal/{what}", "params": {"terminalId": "t1"}})
    made.note(id="t1", event="exited", code=None, signal=15)
    for number, what in enumerate(("wait_for_exit", "output", "release", "output"), 31):
        made.agent({"id": number, "method": f"terminal/{what}", "params": {"terminalId": "t1"}})
    made.core.decide = reject
    made.agent({"id": 41, "method": "terminal/create", "params": {"command": "rm -rf x"}})
    made.core.decide = allow
    made.agent({"id": 42, "method": "terminal/create", "params": {"command": "no", "args": ["x"], "cwd": "/etc"}})
    made.agent({"id": 43, "method": "terminal/create", "params": {"command": "no", "args": ["x"]}})
    made.note(id="t4", event="failed", message="no: not there")


def by_key(fact: Fact) -> str | None:
    """The decisions of `conversation`: they are committed, so a crash does not change them."""
    return reject(fact) if fact.content["key"] in ("7 ", "terminal:41") else allow(fact)


def refold(made: Tape, records: list[Record]) -> tuple[Core, int]:
    """What a new fold makes of these records and the core of its facts; and how many lines were sent."""
    fold = AcpDriver().fold(made.order, out_bytes=0)
    core = Core(made.order, decide=by_key, rounds=made.core.rounds)
    for record in records:
        for fact in fold.feed(record):
            done = fold.finish(fact)
            core.facts.append(done)
            core.commit(done)
    return core, sum(record.kind == IN for record in records)


def test_a_journal_cut_at_every_byte_gives_the_same_facts_and_exactly_the_missing_lines(tmp_path: Path) -> None:
    made = conversation(tmp_path)
    sent = made.core.rows[: made.written]
    boundaries = {record.end for record in made.records()}
    step = max(1, len(made.content) // 600)  # every record, and inside of every record
    cuts = sorted({*range(0, len(made.content) + 1, step), *boundaries, *(end - 1 for end in boundaries)})
    for cut in cuts:
        records = Decoder(Header()).feed(made.content[:cut])
        core, ins = refold(made, records)
        assert core.facts == made.facts[: len(core.facts)]
        assert core.rows == sent[: len(core.rows)]
        assert ins <= len(core.rows), "what is missing is rows[ins:]"
    core, _ = refold(made, made.records())
    assert core.facts == made.facts
    assert core.rows == sent


def test_facts_do_not_depend_on_how_the_bytes_came(tmp_path: Path) -> None:
    """The same stdout in one-byte records: other offsets of records, the same facts of the same lines."""
    made = conversation(tmp_path)
    again = Tape(made.order, rounds=made.core.rounds)
    again.core.decide = by_key
    for record in made.records():
        for at in range(len(record.payload) if record.kind == OUT else 0):
            again.raw(record.payload[at : at + 1])
        if record.kind == NOTE:
            again.noted(record.payload)
    assert [(f.kind, f.content) for f in again.facts] == [(f.kind, f.content) for f in made.facts]
    assert again.core.rows == made.core.rows


def test_a_trim_at_every_record_loses_no_fact(tmp_path: Path) -> None:
    """What `release` wrote down takes the place of the records before it."""
    whole = conversation(tmp_path)
    made = Tape(whole.order, decide=by_key, rounds=whole.core.rounds)
    for record in whole.records():
        for at in range(0, len(record.payload) if record.kind == OUT else 0, 90):  # lines over the borders of records
            made.raw(record.payload[at : at + 90])
        if record.kind == NOTE:
            made.noted(record.payload)
    records = made.records()
    assert len(records) > 40
    for count in range(1, len(records)):
        before = AcpDriver().fold(made.order, out_bytes=0)
        facts = [fact for record in records[:count] for fact in before.feed(record)]
        assert before.release() == records[count - 1].end
        out_bytes = records[count].out_offset
        after = AcpDriver().fold(made.order, out_bytes=out_bytes)
        facts += [fact for record in records[max(0, count - 3) :] for fact in after.feed(record)]
        assert [fact.position for fact in facts] == [fact.position for fact in made.facts]
        assert after.end(EXIT).output == made.fold.end(EXIT).output
        (made.order.folder / "fold.json").unlink()


def test_a_trimmed_journal_without_what_was_written_down_is_lost(tmp_path: Path) -> None:
    made = tape(tmp_path).open()
    with pytest.raises(CaptureShort):
        AcpDriver().fold(made.order, out_bytes=10)
    made.fold.release()
    (made.order.folder / "fold.json").write_bytes(b"")
    with pytest.raises(CaptureShort):
        AcpDriver().fold(made.order, out_bytes=10)


def test_an_order_without_a_command_or_an_absolute_folder_is_refused(tmp_path: Path) -> None:
    for changes in ({"argv": ()}, {"cwd": Path("somewhere")}):
        with pytest.raises(PromptRefused):
            AcpDriver().start(acp_order(tmp_path, **changes))
