"""Drive the core as the store's writer does: decide, schedule, commit; and check what must hold after every commit."""

import copy
from typing import Any

import pytest

from graphd.base.refusal import Refused
from graphd.core.admission import Gates
from graphd.core.codec import dump_graph
from graphd.core.commands import AttemptEnded, AttemptIdentified, AttemptStuck, Capacity, Command, Done, Request, Set
from graphd.core.decide import decide
from graphd.core.events import DAEMON, Actor, AttemptKey, Change, Effect, Event, WakeAt
from graphd.core.evolve import evolve
from graphd.core.model import Attempt, Definition, Graph, Identity, Limits, Node, Output, Source, Spent, State
from graphd.core.overlap import writes_meet
from graphd.core.restore import restore
from graphd.core.schedule import schedule
from graphd.core.tape import Tape
from graphd.store import rows
from graphd_protocol.ids import node_id

ME = Actor("person", client="me")
_KEYS = {rows.UPSERT_NODE: 2, rows.UPSERT_ATTEMPT: 4, rows.UPSERT_ASK: 2, rows.UPSERT_DELIVERY: 2}

# model.md, Node: every move that one change may make. `restart` and gates (not in this issue) give the moves of
# achieved, ready and running nodes back to waiting.
MOVES = {
    "waiting": {"ready", "skipped", "blocked", "failed", "cancelled"},
    "ready": {"running", "failed", "skipped", "cancelled", "waiting"},
    "running": {"achieved", "failed", "ready", "waiting", "cancelled"},
    "achieved": {"waiting"},
    "failed": {"waiting", "cancelled"},
    "blocked": {"waiting", "cancelled", "skipped"},
    "skipped": {"waiting"},
    "cancelled": {"waiting"},
}
# model.md, Attempt: what each state leaves to.
ATTEMPT_MOVES = {
    "starting": {"live", "stopping", "settled", "stuck"},
    "live": {"stopping", "settled", "stuck"},
    "stopping": {"settled", "stuck"},
    "stuck": {"settled"},
    "settled": set(),
}


def picture(state: State) -> dict[str, Any]:
    """All of a state that counts: everything but the heaps, which are rebuilt when stale."""
    derived = {
        graph.id: [
            graph.counts, list(graph.live), sorted(graph.ready), sorted(graph.removed),
            {n.id: (sorted(n.dependants), n.unsettled, n.rank) for n in graph.nodes.values()},
        ]
        for graph in state.graphs.values()
    }  # fmt: skip
    return {
        "graphs": {graph.id: dump_graph(graph) for graph in state.graphs.values()},
        "derived": derived,
        "tombstones": dict(state.tombstones),
        "running": state.running,
        "profiles": {name: count for name, count in state.running_by_profile.items() if count},
        "with_ready": sorted(state.with_ready),
        "checks": sorted(state.checks),
    }


class Drive:
    """A workspace without store and processes. `check` looks at every invariant after every commit."""

    def __init__(self, *, concurrency: int = 8, check: bool = True, **capacity: Any) -> None:
        self.state = State()
        self.replica = State()
        self.tape = Tape()
        self.now = 1000
        self.capacity = Capacity(concurrency=concurrency, **capacity)
        self.log: list[Event] = []
        self.effects: list[Effect] = []
        self.changes: list[Change] = []
        self.is_checked = check
        self.moves: set[tuple[str, str]] = set()
        self.tables: dict[str, dict[Any, rows.SqlRow]] = {}

    def run(self, command: Command, actor: Actor = DAEMON, **condition: Any) -> Done:
        """One command as a batch of its own. Raises Refused."""
        before = repr(picture(self.state)) if self.is_checked else ""
        request = Request(command, actor, **condition)
        try:
            decision = decide(self.state, self.tape, request, self.now)
        except Refused:
            if self.is_checked:
                assert repr(picture(self.state)) == before, "a refused command leaves no trace"
            self.commit([], [])
            raise
        self.commit(decision.changes, decision.effects)
        return decision.done

    def commit(self, changes: list[Change], effects: list[Effect]) -> None:
        """Schedule at the end of the batch, then commit."""
        more, starts = schedule(self.state, self.tape, self.capacity, self.now)
        self.tape.clear()
        self.changes = [*changes, *more]
        self.effects = [*effects, *starts]
        for change in self.changes:
            self.log += change.events
        if self.is_checked:
            self.check()

    def tick(self, ms: int) -> None:
        """Let time pass, and the timer go off."""
        self.now += ms
        self.commit([], [])

    # ---- invariants -------------------------------------------------------------------------------------------

    def check(self) -> None:
        """All that holds between commits, whatever happened."""
        self._replay()
        assert picture(self.replica) == picture(self.state), "the log is the truth"
        loaded = copy.deepcopy(self.state)
        restore(loaded)
        assert picture(loaded) == picture(self.state), "derived fields are what a load recomputes"
        self._check_tables()
        assert self.state.running <= self.capacity.concurrency
        for graph in self.state.graphs.values():
            self._check_graph(graph)

    def _check_tables(self) -> None:
        """The store writes the rows that events name: what else changed would be missing in its tables."""
        events: dict[str, list[Event]] = {}
        for change in self.changes:
            events.setdefault(change.graph, []).extend(change.events)
        for graph in [self.state.graphs[name] for name in events if name in self.state.graphs]:
            table = self.tables.setdefault(graph.id, {})
            for statement, values in rows.touched_rows(graph, events[graph.id]):
                table.update({(statement, row[: _KEYS[statement]]): row for row in values})
            for node in graph.nodes.values():
                assert table[rows.UPSERT_NODE, (graph.id, node.id)] == rows.node_row(graph, node)
            for attempt in graph.attempts.values():
                assert table[rows.UPSERT_ATTEMPT, (graph.id, *attempt.key)] == rows.attempt_row(attempt)
            for ask in graph.asks.values():
                assert table[rows.UPSERT_ASK, (graph.id, ask.id)] == rows.ask_row(graph, ask)

    def _replay(self) -> None:
        revs: dict[str, int] = {}
        for change in self.changes:
            known = self.replica.graphs.get(change.graph)
            assert change.events, "no rev without an event"
            assert change.rev == revs.get(change.graph, known.rev if known else 0) + 1
            revs[change.graph] = change.rev
            assert [(e.graph, e.rev, e.index) for e in change.events] == [
                (change.graph, change.rev, index) for index in range(len(change.events))
            ]
            for event in change.events:
                self._apply(copy.deepcopy(event))

    def _apply(self, event: Event) -> None:
        """Apply an event to the replica, each move of a node or an attempt held to the tables above."""
        graph = self.replica.graphs.get(event.graph)
        nodes = {n.id: n.state for n in graph.nodes.values()} if graph else {}
        attempts = {key: a.state for key, a in graph.attempts.items()} if graph else {}
        evolve(self.replica, Tape(), event)
        graph = self.replica.graphs.get(event.graph)
        if graph is None or event.kind == "states_imported":  # these nodes came as they are, in the graph's first rev
            return
        for node in graph.nodes.values():
            was = nodes.get(node.id, node.state)
            assert was == node.state or node.state in MOVES[was], (event.kind, node.slug, was, node.state)
            self.moves |= {(was, node.state)} if was != node.state else set()
        for key, attempt in graph.attempts.items():
            old = attempts.get(key, attempt.state)
            assert old == attempt.state or attempt.state in ATTEMPT_MOVES[old], (event.kind, key, old, attempt.state)

    def _check_graph(self, graph: Graph) -> None:
        live = [a for a in graph.attempts.values() if a.state != "settled"]
        slotless = [n for n in graph.nodes.values() if n.state == "running" and n.definition.takes_no_slot]
        running = [n.id for n in graph.nodes.values() if n.state == "running" and n not in slotless]
        assert sorted(graph.slotless) == sorted(n.id for n in slotless)
        assert {a.node for a in live} == set(running), "running is exactly: an attempt of it is not settled"
        assert len({(a.node, a.role) for a in live}) == len(live), "one at a time for a node and role"
        assert len(running) <= graph.limits.concurrency
        assert (graph.pause_reason is not None) == (
            graph.status in ("user_paused", "infra_paused", "blocked", "budget_limited")
        )
        assert (graph.outcome is not None) == (graph.status == "complete")
        assert not (graph.is_ended and (live or slotless or graph.stopping or graph.holding))
        self._check_asks(graph)
        assert len(graph.history) <= 64
        for node in graph.nodes.values():
            workers = [a for a in graph.attempts.values() if (a.node, a.role) == (node.id, "worker")]
            assert sum(a.is_counted for a in workers) == node.attempts <= graph.limits.attempts_per_node
            assert [a.number for a in workers] == list(range(1, node.last_number + 1))
        self._check_next_step(graph, live)

    def _check_asks(self, graph: Graph) -> None:
        asked = [graph.asks[ask].node for ask in graph.open_asks if graph.asks[ask].kind == "approval"]
        assert len(asked) == len(set(asked)), "asked once"
        assert all(graph.nodes[node or ""].state == "ready" for node in asked)
        for node in graph.nodes.values():
            if node.state == "running" and node.definition.approval is not None:
                assert node.is_approved, "nothing that waits for an approval has started"

    def _check_next_step(self, graph: Graph, live: list[Attempt]) -> None:
        asked = {graph.asks[ask].node for ask in graph.open_asks if graph.asks[ask].kind == "approval"}
        ready = [n for n in graph.nodes.values() if n.state == "ready" and n.id not in asked]
        waits = [n for n in graph.nodes.values() if n.state == "running" and n.definition.wait is not None]
        at_work = [a for a in live if a.state != "stuck"]
        if graph.stopping is not None:
            assert at_work or graph.status == "infra_paused", "a wish waits for a tree, or names the stuck one"
            return
        if graph.status != "active" or not self.capacity.can_admit:
            return
        may_start = ready and len(live) < graph.limits.concurrency
        assert at_work or may_start or waits or asked, "an active graph has a next step"
        for node in waits:
            if node.wake_at is not None:
                assert any(at == node.wake_at for at, *_ in self.state.timers), "somebody wakes it"
        is_waiting_for_slot = self.state.running >= self.capacity.concurrency
        for node in ready if may_start and not is_waiting_for_slot else []:
            is_held = graph.replaces in self.state.graphs or self._has_no_profile_slot(node)
            away = self.capacity.held | self.capacity.elsewhere
            is_held = is_held or graph.failed_by is not None or (graph.id, node.id) in away
            is_held = is_held or any(writes_meet(node.definition, graph.nodes[a.node].definition) for a in live)
            is_held = is_held or self._is_bounded(graph, node, at_work)
            assert is_held or (node.not_before or 0) > self.now, f"{node.slug} could start"
            if node.not_before is not None and not is_held:
                assert any(at == node.not_before for at, *_ in self.state.timers), "somebody wakes it"

    def _has_no_profile_slot(self, node: Node) -> bool:
        profile = dict(self.capacity.profiles).get(node.definition.worker)
        caps = dict(self.capacity.per_profile)
        return profile is None or profile in caps and self.state.running_by_profile.get(profile, 0) >= caps[profile]

    def _is_bounded(self, graph: Graph, node: Node, at_work: list[Attempt]) -> bool:
        """Another one is stepped, the budget waits for what runs, or a profile's gate is shut and somebody opens it."""
        profile = dict(self.capacity.profiles)[node.definition.worker]
        if graph.stepping not in (None, node.id):
            return True
        if graph.budget is not None and profile != "shell" and any(a.profile != "shell" for a in at_work):
            return True
        gate = Gates(self.state, self.capacity, self.now).hold(profile)
        if gate in ("rest", "stagger"):
            assert any(isinstance(effect, WakeAt) and effect.at > self.now for effect in self.effects)
        return gate is not None


# ---- short names for commands -------------------------------------------------------------------------------------


def define(slug: str, *needs: str, **more: Any) -> Definition:
    """A node for the worker `shell`; required unless said otherwise."""
    given: dict[str, Any] = {"worker": "shell", "needs": needs, "required": True} | more
    return Definition(slug, f"do {slug}", **given)


def plan(graph: str, *definitions: Definition, limits: Limits | None = None, **more: Any) -> Set:
    """A `Set` of these nodes."""
    fields: dict[str, Any] = {"title": graph, "objective": "o", "source": Source("nodes"), "workspace": "w"} | more
    return Set(graph=graph, definitions=definitions, limits=limits or Limits(), **fields)


G = "g"
"""The graph of a test that needs one alone."""


def begun(*definitions: Definition, **more: Any) -> Drive:
    """A graph of these nodes, set."""
    drive = Drive()
    drive.run(plan(G, *definitions, **more))
    return drive


def graph_of(drive: Drive) -> Graph:
    return drive.state.graphs[G]


def node(drive: Drive, slug: str) -> Node:
    return graph_of(drive).nodes[node_id(slug)]


def end(drive: Drive, slug: str, text: str | None = None, outcome: str = "achieved", **more: Any) -> None:
    """Its attempt ends."""
    drive.run(ended(graph_of(drive), slug, outcome, text=text, **more))


def live_key(graph: Graph, slug: str) -> AttemptKey:
    """The key of the node's unsettled attempt."""
    return next(key for key in graph.live if key[0] == node_id(slug))


def identified(graph: Graph, slug: str) -> AttemptIdentified:
    return AttemptIdentified(graph.id, live_key(graph, slug), Identity("boot", "ns", 7, 8))


def ended(graph: Graph, slug: str, outcome: Any = "achieved", text: str | None = None, **more: Any) -> AttemptEnded:
    output = Output(text, len(text), "text/plain") if text is not None else None
    spent = more.pop("spent", Spent(tokens=1, cost_usd=0.0, wall_ms=2))
    return AttemptEnded(graph.id, live_key(graph, slug), outcome, output=output, spent=spent, **more)


def stuck(graph: Graph, slug: str, *pids: int) -> AttemptStuck:
    return AttemptStuck(graph.id, live_key(graph, slug), pids, "no proof")


def states(graph: Graph) -> dict[str, str]:
    return {node.slug: node.state for node in graph.nodes.values()}


def effects_of(drive: Drive) -> list[tuple[Any, ...]]:
    """The last commit's effects as plain tuples."""
    return [(type(effect).__name__, *(part for part in effect if part is not False)) for effect in drive.effects]


def started(drive: Drive) -> list[str]:
    """Slugs in the order in which they were started, as `graph/slug`."""
    graphs = drive.state.graphs
    return [
        f"{event.graph}/{graphs[event.graph].nodes[event.node].slug}"
        for event in drive.log
        if event.kind == "attempt_started" and event.node is not None
    ]


def states_of(drive: Drive) -> dict[str, str]:
    return {graph.id: graph.status for graph in drive.state.graphs.values()}


def refused(drive: Drive, command: Command, **condition: Any) -> Refused:
    """The refusal of a person's command."""
    with pytest.raises(Refused) as caught:
        drive.run(command, ME, **condition)
    return caught.value
