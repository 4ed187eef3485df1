"""The fold over what real agents said: every recorded conversation, line by line, in the order in which it came.

The recordings are of a bare client without graphd (tests/data/acp); here its lines stand for ours.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from graphd.children.acp.driver import AcpDriver
from graphd.children.driver import Fact
from graphd.children.journal import Decoder, Header
from graphd.children.keeping.files import IN, OUT, RECORD, VERSION
from graphd.children.profiles import PROFILES
from graphd.daemon.orders import quirks_of
from tests.kit.acp import acp_order, kinds

RECORDED = sorted((Path(__file__).parents[1] / "data" / "acp").glob("*/*.jsonl"))
TRANSIENT = {"error_429", "error_500", "dropped"}  # over by themselves, at most agents


def facts_of(path: Path, process: int, folder: Path) -> list[Fact]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    mine = [line for line in lines if line["process"] == process]
    quirks = quirks_of(PROFILES[path.parent.name])
    order = acp_order(folder, quirks=quirks, resume_session="session-1" if process > 1 else None)
    order.folder.mkdir(parents=True, exist_ok=True)
    fold, decoder, facts = AcpDriver().fold(order, out_bytes=0), Decoder(Header()), []
    for line in mine:
        content = json.dumps(line["message"]).encode() + b"\n"
        kind = IN if line["whose"] == "ours" else OUT
        for record in decoder.feed(RECORD.pack(VERSION, kind, len(content), 0) + content):
            facts += fold.feed(record)
    return facts


def has(path: Path, *, whose: str, word: str) -> bool:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return any(word in json.dumps(line["message"]) for line in lines if line["whose"] == whose)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_a_real_agent_said_is_read_as_it_was_meant(path: Path, tmp_path: Path) -> None:
    scenario = path.stem
    facts = facts_of(path, 1, tmp_path)
    json.dumps([fact.content for fact in facts])
    found: dict[str, list[Any]] = {}
    for fact in facts:
        found.setdefault(fact.kind, []).append(fact.content)
    texts = [candidate["output"]["text"] for candidate in found.get("candidate", [])]
    assert [item for item in found.get("item", []) if item["kind"] == "noise"] == []
    if scenario == "allow":
        assert texts == ["all done"]
    elif scenario in ("cancel_wait", "cancel_tool", "cancel_ask") and has(path, whose="ours", word="session/cancel"):
        assert texts == ["still here"], "the cancelled turn is no result"
        assert "turn_cancelled" not in found
    elif scenario == "reject" and "ask" in found:
        assert texts == []
        assert "not allowed" in json.dumps(facts[-1].content), "a nudge is said"
    elif scenario.startswith(("limit", "refused")):
        assert texts == [], "a failure is no result, whatever it looks like"
    elif scenario in TRANSIENT and "turn_failed" not in found:
        assert texts[0].endswith("a text of several words") or "Retry" not in texts[0]
    elif scenario == "mcp_result" and has(path, whose="theirs", word='"accepted"'):
        assert [candidate["submitted"] for candidate in found["candidate"]] == [True]
        assert [ask["action"]["toolKind"] for ask in found.get("ask", [])] in ([], ["think"])


@pytest.mark.parametrize(
    "path", [path for path in RECORDED if path.stem.startswith("killed")], ids=lambda path: path.parent.name + path.stem
)
def test_a_real_agents_replay_is_no_part_of_what_goes_on(path: Path, tmp_path: Path) -> None:
    facts = facts_of(path, 2, tmp_path)
    sessions = [fact.content for fact in facts if fact.kind == "session"]
    if not sessions:
        assert not [fact for fact in facts if fact.kind == "candidate"]  # refused: nothing went on in the recording
        return
    assert [session["restored"] for session in sessions] in (["loaded"], ["resumed"])
    first = next(at for at, fact in enumerate(facts) if fact.kind == "session")
    assert kinds(facts[:first]) == ["say"] * len(kinds(facts[:first]))
    assert [f.content for f in facts[:first] if f.content.get("kind") in ("text", "tool", "thought")] == []
    assert [fact.content["output"]["text"] for fact in facts if fact.kind == "candidate"] == ["finished"]
