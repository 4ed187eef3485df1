"""What an editor's lenses and actions offer for a graph, as it stands: nothing that would be refused."""

from collections.abc import Callable

import pytest

from graphd.core.commands import Cancel, Command, Finish, Pause
from graphd.core.definition import Budget
from graphd.core.model import Source
from graphd.server.lsp.actions import for_file, for_node
from graphd.server.lsp.live import live_graph
from tests.unit.core_drive import ME, Drive, define, ended, plan

G = "g"
PATH = "/w/w.yaml"


def begun(budget: Budget | None = None) -> Drive:
    drive = Drive()
    drive.run(plan(G, define("a"), define("b", "a"), source=Source("file", path=PATH), budget=budget), ME)
    return drive


def failed() -> Drive:
    drive = begun()
    drive.run(ended(drive.state.graphs[G], "a", "failed"))
    return drive


def spent() -> Drive:
    drive = begun(Budget(tokens=1))
    drive.run(ended(drive.state.graphs[G], "a"))
    assert drive.state.graphs[G].status == "budget_limited"
    return drive


def after(drive: Drive, command: Command) -> Drive:
    drive.run(command, ME)
    return drive


CASES: dict[str, tuple[Callable[[], Drive], list[str], list[str]]] = {
    # the graph, what is offered for its file, and for node a beside its output
    "active": (begun, ["Pause", "Cancel"], []),
    "paused": (lambda: after(begun(), Pause(G)), ["Resume", "Cancel"], []),
    "stopping": (lambda: after(begun(), Pause(G, "stop")), ["Cancel"], []),
    "cancelling": (lambda: after(begun(), Cancel(G)), [], []),
    "finishing": (lambda: after(begun(), Finish(G, "enough")), ["Pause", "Cancel"], []),
    "blocked": (failed, ["Retry what failed", "Cancel"], ["Retry"]),
    "spent": (spent, ["Cancel"], []),
    "cancelled": (lambda: after(failed(), Cancel(G)), ["Run"], []),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_the_daemon_admits_is_offered(case: str) -> None:
    make, of_file, of_node = CASES[case]
    live = live_graph(make().state, PATH, {}, {})
    assert [offer.title for offer in for_file("file:///w", live)] == of_file
    assert [offer.title for offer in for_node("file:///w", "a", live) if offer.title != "Open output"] == of_node
