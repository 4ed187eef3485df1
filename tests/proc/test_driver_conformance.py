"""The conformance suite over the drivers that are here, and the way to those of third parties."""

import json
import shlex
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graphd.children import drivers
from graphd.children.acp.driver import AcpDriver
from graphd.children.command.driver import CommandDriver
from graphd.children.driver import Driver, Order
from graphd.children.drivers import DriverMissing, driver_of
from graphd.children.profiles import PROFILES
from graphd.children.shell import ShellDriver
from tests.kit.acp import acp_order
from tests.kit.conformance import Conformance
from tests.kit.kept import make_order

ASK = {"toolCall": {"toolCallId": "t1", "title": "Write", "kind": "edit"}}


class TestAcp(Conformance):
    SCENARIOS: ClassVar[dict[str, list[list[dict[str, Any]]]]] = {
        "result": [[{"say": "a"}, {"tool": {"toolCallId": "t"}}, {"wait": 0.3}, {"say": "the "}, {"say": "result"}]],
        "question": [[{"ask": ASK}, {"wait": 0.2}, {"say": "the result"}], [{"say": "the result"}]],
        "failure": [[{"say": "half"}, {"die": 0}]],
        "noise": [[{"bytes": "fffe00410a"}, {"line": "word"}, {"pad": 300_000}, {"tool": {}}, {"say": "the result"}]],
        "hang": [[{"say": "x"}, {"wait": 1000}]],
    }  # fmt: skip

    def driver(self) -> Driver:
        return AcpDriver()

    def order(self, tmp_path: Path, scenario: str) -> Order:
        return acp_order(tmp_path, {"turns": self.SCENARIOS[scenario], "on_cancel": "ignore", "tick_s": 0.01})


class TestShell(Conformance):
    asks = False
    SCENARIOS: ClassVar[dict[str, str]] = {
        "result": "sleep 0.3; printf 'the '; sleep 0.1; echo result",
        "failure": "echo half; exit 3",
        "noise": "printf '\\377\\376\\n'; head -c 300000 /dev/zero | tr '\\0' x | head -c 30000; echo; echo the result",
        "hang": "trap '' INT; while :; do sleep 0.1; done",
    }

    def driver(self) -> Driver:
        return ShellDriver()

    def order(self, tmp_path: Path, scenario: str) -> Order:
        return make_order(tmp_path, self.SCENARIOS[scenario])


def says(*events: dict[str, Any]) -> str:
    """A shell's command that prints these, a line each."""
    return " ".join(["printf '%s\\n'", *(shlex.quote(json.dumps(event)) for event in events)])


class TestCommand(Conformance):
    asks = False
    BEGUN: ClassVar[str] = says({"type": "system", "subtype": "init", "session_id": "s-1"})
    RESULT: ClassVar[str] = says(
        {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "the result"}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "the result", "session_id": "s-1"},
    )
    SCENARIOS: ClassVar[dict[str, str]] = {
        "result": f"{BEGUN}; sleep 0.3; {RESULT}",
        "failure": f"{BEGUN}; exit 0",
        "noise": f"printf '\\377\\376\\n'; head -c 300000 /dev/zero | tr '\\0' x; echo; {BEGUN}; echo word; {RESULT}",
        "hang": f"{BEGUN}; trap '' INT; while :; do sleep 0.1; done",
    }

    def driver(self) -> Driver:
        return CommandDriver()

    def order(self, tmp_path: Path, scenario: str) -> Order:
        argv = ("/bin/sh", "-c", self.SCENARIOS[scenario])
        return make_order(tmp_path, argv=argv, told="do it", headless=PROFILES["claude-headless"].headless)


class Theirs(ShellDriver):
    """A third party's."""


def test_drivers_are_found_by_name_ours_first(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{__name__}:Theirs", drivers.GROUP) for name in ("theirs", "acp")]
    monkeypatch.setattr(
        drivers, "entry_points", lambda group, name=None: [p for p in points if name in (None, p.name) and group]
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    driver_of.cache_clear()
    assert type(driver_of("shell")) is ShellDriver
    assert type(driver_of("acp")) is AcpDriver
    assert driver_of("theirs") is driver_of("theirs")
    assert type(driver_of("theirs")).__name__ == "Theirs"
    assert drivers.names() == (*drivers.OURS, "theirs")
    with pytest.raises(DriverMissing, match="no driver nothing"):
        driver_of("nothing")
    driver_of.cache_clear()
