"""Recorded conversations with real agents (tests/data/acp/AGENT/SCENARIO.jsonl) as the journal of a keeper has them.

They are written by `python -m tests.kit.agent_scenarios --record`; the probe's own ids are 1, 2, 3 … in its order.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from graphd.children.journal import Decoder, Header, Record
from graphd.children.keeping.files import IN, OUT, RECORD, VERSION

FOLDER: Final = Path(__file__).resolve().parents[1] / "data" / "acp"
_Edit = Callable[[dict[str, Any]], dict[str, Any]]


def recorded() -> list[tuple[str, str]]:
    """Every (agent, scenario) that there is."""
    return [(path.parent.name, path.stem) for path in sorted(FOLDER.glob("*/*.jsonl"))]


def messages(agent: str, scenario: str, process: int = 1) -> list[tuple[bool, dict[str, Any]]]:
    """(is ours, message) of one process of the agent; the second is the one that restored the session."""
    lines = [json.loads(line) for line in (FOLDER / agent / f"{scenario}.jsonl").read_text().splitlines()]
    return [(line["whose"] == "ours", line["message"]) for line in lines if line["process"] == process]


def journal(agent: str, scenario: str, process: int = 1, *, edit: _Edit = lambda message: message) -> list[Record]:
    """The same as records, `edit` applied to each message: for other ids, paths or times."""
    written = b""
    for index, (is_ours, message) in enumerate(messages(agent, scenario, process)):
        text = message["noise"] if "noise" in message else json.dumps(edit(message), ensure_ascii=False) + "\n"
        payload = text.encode()
        written += RECORD.pack(VERSION, IN if is_ours else OUT, len(payload), index * 1_000_000) + payload
    return Decoder(Header()).feed(written)
