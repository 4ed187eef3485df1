"""Fill the slots: once after each batch, over all graphs, its starts in the same transaction (execution.md,
One attempt, 1).
"""

import heapq

from graphd.base.text import t
from graphd.core.admission import ADMITTED, Admission, Gates
from graphd.core.codec import dump_budget
from graphd.core.commands import Capacity
from graphd.core.deadlines import first_timeout_ms
from graphd.core.definition import Budget
from graphd.core.derive import goes_on, is_unchecked, last_begun, rebuild_queues
from graphd.core.draft import Draft
from graphd.core.events import DAEMON, Change, Effect, StartAttempt, WakeAt
from graphd.core.facts import put_back_unchecked, refuse_check
from graphd.core.model import Graph, Node, State
from graphd.core.rounds import start_check
from graphd.core.settle import conclude, has_timer, pause_for_stuck, ripple
from graphd.core.tape import Tape


def schedule(state: State, tape: Tape, capacity: Capacity, now: int) -> tuple[list[Change], list[Effect]]:
    """Start ready nodes while slots last.

    The next slot goes to the graph with the fewest running nodes, then the longest wait.
    """
    if state.are_queues_stale:
        rebuild_queues(state)
    starts = _Starts(state, tape, capacity, now)
    starts.start_checks()
    if not capacity.can_admit:
        return starts.finish()
    starts.begin_early()
    starts.go_on()
    while state.running < capacity.concurrency:
        graph = starts.next_graph()
        if graph is None:
            break
        starts.start_one(graph)
    changes, effects = starts.finish()
    wakes = [*starts.wakes, *(at for at, _, _ in state.timers[:1])]
    if wakes:
        effects.append(WakeAt(min(wakes)))
    return changes, effects


class _Starts:
    def __init__(self, state: State, tape: Tape, capacity: Capacity, now: int) -> None:
        self._state = state
        self._tape = tape
        self._now = now
        self._capacity = capacity
        self._profiles = dict(capacity.profiles)
        self._gates = Gates(state, capacity, now)
        self._drafts: dict[str, Draft] = {}
        self._held: list[tuple[Graph, Node]] = []
        self._exhausted: set[str] = set()
        self._agentless: dict[str, str] = {}
        self._serialised: dict[str, None] = {}
        self._is_attended = capacity.is_attended

    def begin_early(self) -> None:
        """Timers that are due, and all that comes before a slot."""
        state = self._state
        is_due = state.timers and state.timers[0][0] <= self._now
        has_early = any(state.graphs[graph_id].early for graph_id in state.with_ready)
        if not is_due and not has_early and self._is_attended:
            return
        from graphd.core import early  # few graphs wait for anything

        for graph in early.fire(state, self._draft, self._now):
            self.trip(graph)
        if not self._is_attended:
            early.answer_for_nobody(state, self._draft, self._now)
        early.begin(state, self._draft, self._may_begin)

    @property
    def wakes(self) -> list[int]:
        """When something that is held now may start, in ms since the epoch."""
        return self._gates.wakes

    def trip(self, graph: Graph) -> None:
        """Stop a graph whose wall time is used up."""
        from graphd.core.budget import trip_if_reached  # as in `decide`: with the first one

        trip_if_reached(self._draft(graph))

    def go_on(self) -> None:
        """Graphs that a provider held up go on by themselves when its rest is over."""
        for graph_id in list(self._state.with_ready):
            graph = self._state.graphs[graph_id]
            if graph.status == "infra_paused" and graph.pause_cause == "provider":
                ready = [graph.nodes[node_id] for node_id in graph.ready]
                profiles = [self._profiles.get(node.definition.worker) for node in ready]
                if graph.stopping is None and any(p is not None and not self._gates.rests(p) for p in profiles):
                    draft = self._draft(graph)
                    draft.emit("resumed")
                    conclude(draft)

    def next_graph(self) -> Graph | None:
        """The graph whose turn it is, or None where no graph can start anything."""
        best: Graph | None = None
        for graph_id in self._state.with_ready:
            graph = self._state.graphs[graph_id]
            if graph_id in self._exhausted or not self._may_start(graph):
                continue
            if best is None or _turn(graph) < _turn(best):
                best = graph
        return best

    def _may_begin(self, graph: Graph) -> bool:
        """It admits what takes no slot."""
        if graph.status != "active" or graph.stopping is not None or graph.failed_by is not None:
            return False
        return graph.replaces is None or graph.replaces not in self._state.graphs

    def _may_start(self, graph: Graph) -> bool:
        return bool(graph.queue) and self._may_begin(graph) and graph.slots_taken < graph.limits.concurrency

    def start_one(self, graph: Graph) -> None:
        """Start the graph's first node that may start now."""
        if graph.stepping is not None:
            self._step(graph, graph.nodes[graph.stepping])
            return
        while graph.queue:
            _, node_id = heapq.heappop(graph.queue)
            node = graph.nodes.get(node_id)
            is_stale = node is None or node.state != "ready" or node_id in graph.early
            if node is None or is_stale or not self._is_due(node):
                continue
            if self._is_started(graph, node):
                return
        self._exhausted.add(graph.id)

    def start_checks(self) -> None:
        """Results that were given, or whose check ended without a word: checked in the slot they hold."""
        for graph_id, node_id in list(self._state.checks):
            graph = self._state.graphs[graph_id]
            node, draft = graph.nodes[node_id], self._draft(graph)
            check = node.definition.verify
            is_free = check is not None and check.run is not None
            if graph.stopping is not None or (graph.status == "budget_limited" and not is_free):
                put_back_unchecked(draft, node)
            elif not is_free and self._is_check_held(graph, node):
                continue
            elif not start_check(draft, node, self._profiles):
                refuse_check(draft, node)

    def _is_check_held(self, graph: Graph, node: Node) -> bool:
        """The agent that would make it rests, or one was started just now: it waits while its worker lives.

        Never for slots or memory: its worker may be what has them, and goes only after the check.
        """
        check, worker = node.definition.verify, graph.attempts[(node.id, "worker", node.last_number)]
        profile = self._profiles.get((check.worker if check is not None else None) or "")
        return worker.state == "live" and profile is not None and self._gates.hold(profile) in ("rest", "stagger")

    def _step(self, graph: Graph, node: Node) -> None:
        """The one node that may start; its entry in the queue is stale then, as others are."""
        self._exhausted.add(graph.id)
        if node.state == "ready" and node.id not in graph.early and self._is_due(node):
            self._is_started(graph, node)

    def _is_started(self, graph: Graph, node: Node) -> bool:
        """Start a node, or hold it. False where another one of the graph may be tried."""
        if (graph.id, node.id) in self._capacity.held or (graph.id, node.id) in self._capacity.elsewhere:
            self._held.append((graph, node))
            return False
        profile = self._profiles.get(node.definition.worker)
        if profile is None:
            self._missing(graph, node)
            return True
        if node.definition.writes and writer_before(graph, node) is not None:
            self._serialised[graph.id] = None
            self._held.append((graph, node))
            return False
        if self._gates.hold(profile):
            self._held.append((graph, node))
            return False
        allowed = self._admission(graph, profile)
        if not allowed.is_admitted:
            self._held.append((graph, node))
            return False
        self._start(graph, node, profile, limit=allowed.limit)
        return True

    def _admission(self, graph: Graph, profile: str) -> Admission:
        if graph.budget is None:
            return ADMITTED
        from graphd.core.budget import admission  # as in `decide`: with the first one

        return admission(self._state, graph, profile, self._capacity, now=self._now)

    def _is_due(self, node: Node) -> bool:
        return node.not_before is None or node.not_before <= self._now

    def _draft(self, graph: Graph) -> Draft:
        if graph.id not in self._drafts:
            self._drafts[graph.id] = Draft(
                self._state, self._tape, graph.id, now=self._now, actor=DAEMON, operation="checkpoint"
            )
        return self._drafts[graph.id]

    def _start(self, graph: Graph, node: Node, profile: str, *, limit: Budget | None) -> None:
        draft = self._draft(graph)
        if is_unchecked(graph, node):
            if not start_check(draft, node, self._profiles):
                refuse_check(draft, node)
            return
        number = node.last_number + 1
        allowed_ms = first_timeout_ms(node)
        draft.emit(
            "attempt_started", node, role="worker", number=number, worker=node.definition.worker, profile=profile,
            environment=graph.environment, deadline_at=self._now + allowed_ms, allowed_ms=allowed_ms,
            resumes=_resumes(graph, node), limit=dump_budget(limit),
        )  # fmt: skip
        draft.then(StartAttempt(graph.id, (node.id, "worker", number)))

    def _missing(self, graph: Graph, node: Node) -> None:
        """No installed agent serves this worker: an optional node fails, a required one holds the graph."""
        worker = node.definition.worker
        if node.required:
            self._held.append((graph, node))
            self._agentless[graph.id] = t(
                "{node}: no installed agent serves worker {worker}; graphd agents shows what was searched",
                node=node.slug, worker=worker,
            )  # fmt: skip
            return
        reason = t("no installed agent serves worker {worker}; graphd agents shows what was searched", worker=worker)
        draft = self._draft(graph)
        draft.emit("node_failed", node, **{"class": "agent_missing"}, reason=reason)
        ripple(draft, [node])
        conclude(draft)

    def _check_writers(self, graph: Graph) -> None:
        """What holds the others' files may be a tree whose end can't be proven: then somebody has to look."""
        is_waking = any(graph_id == graph.id for _, graph_id, _ in self._state.timers)
        if graph.status == "active" and graph.stopping is None and not graph.queue and not is_waking:
            pause_for_stuck(self._draft(graph), graph)

    def finish(self) -> tuple[list[Change], list[Effect]]:
        """Put back what was only held, and give the changes."""
        for graph_id in self._serialised:
            self._check_writers(self._state.graphs[graph_id])
        for graph, node in self._held:
            heapq.heappush(graph.queue, (node.rank, node.id))
        for graph in {graph.id: graph for graph, _ in self._held}.values():
            self._hold_up(graph)
        drafts = [draft for draft in self._drafts.values() if draft.change.events]
        return [d.change for d in drafts], [effect for d in drafts for effect in d.effects]

    def _hold_up(self, graph: Graph) -> None:
        """Pause a graph that can do nothing but for agents that are missing, or providers that have been down for long.

        With a provider it goes on by itself, so that is said first.
        """
        if graph.status != "active" or graph.slots_taken:
            return
        if graph.stepping is None and (has_timer(graph) or graph.early):
            return
        nodes = graph.ready if graph.stepping is None else [graph.stepping]
        if any((graph.id, node) in self._capacity.held for node in nodes):
            return  # a person works in its session
        found = [self._profiles.get(graph.nodes[node].definition.worker) for node in nodes]
        profiles = [profile for profile in found if profile is not None]
        if not all(map(self._gates.is_down, profiles)):
            return
        draft = self._draft(graph)
        if profiles:
            why = self._state.cooling[profiles[0]].reason
            reason = t("{agent} rests, and has for long: {why}", agent=profiles[0], why=why)
            draft.emit("paused", status="infra_paused", reason=reason, cause="provider")
        else:
            draft.emit("paused", status="infra_paused", reason=self._agentless[graph.id], cause="agent")


def writer_before(graph: Graph, node: Node) -> Node | None:
    """A node that runs and writes the same files in the same tree: two writers go one after the other."""
    from graphd.core.overlap import writes_meet

    if _has_own_tree(graph, node):
        return None
    others = {graph.nodes[key[0]].id: graph.nodes[key[0]] for key in graph.live}.values()
    meeting = (o for o in others if not _has_own_tree(graph, o) and writes_meet(node.definition, o.definition))
    return next(meeting, None)


def _has_own_tree(graph: Graph, node: Node) -> bool:
    return (node.definition.isolation or graph.terms.isolation) == "node"


def _turn(graph: Graph) -> tuple[int, int]:
    return (graph.slots_taken, graph.last_start_at)


def _resumes(graph: Graph, node: Node) -> int | None:
    """The attempt whose child session goes on: one that was interrupted, never one whose result was judged."""
    before = last_begun(graph, node)
    return before.number if before is not None and goes_on(before) else None
