"""Random plans with gates, lists, waits, approvals and writers under random verbs and facts.

No model stands beside the core here (`test_core_machine` has one for what it knows): what is checked after every step
are the invariants of `core_drive`, of them above all that an active graph has a next step; and that every graph comes
to an end when people answer and children end.
"""

import contextlib
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from graphd.core.commands import (
    Cancel,
    Clear,
    Command,
    DaemonStarted,
    DeadlineReached,
    Finish,
    Pause,
    Respond,
    Resume,
    RetryNodes,
    Signal,
)
from graphd.core.definition import Approval, Definition, ForEach, Gate, Terms, Wait
from graphd.core.events import Refused
from graphd.core.model import Graph, Limits, Retry
from graphd.core.plan import check_plan
from tests.unit.core_drive import ME, Drive, ended, live_key, plan, stuck

SLUGS = [f"n{i}" for i in range(9)]
PICK = st.integers(0, 99)
TEXTS = st.sampled_from(
    [
        '{"verdict": "ACCEPT"}', '{"verdict": "ACCEPT"}', '{"verdict": "REVISE"}', '{"verdict": "REVISE"}',
        '{"verdict": "REJECT"}', '{"verdict": "REPLAN"}', "[]", "[1]", "[1, 2]", '["a", "b", "c"]', "text", None,
    ]
)  # fmt: skip
G = "g0"


@st.composite
def definitions(draw: st.DrawFn) -> list[Definition]:
    made: list[Definition] = []
    earlier: list[str] = []
    for slug in SLUGS[: draw(st.integers(2, 9))]:
        earlier = [d.slug for d in made]
        needs = tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3))) if earlier else ()
        made.append(draw(definition(slug, needs, earlier)))
    return made if not check_plan(made, limits=Limits()) else [_plain(d) for d in made]


def _plain(found: Definition) -> Definition:
    """Without the way back that this plan does not allow."""
    gate = Gate() if found.gate is not None else None
    return Definition(
        found.slug, found.spec, found.worker, needs=found.needs, required=found.required, gate=gate, wait=found.wait,
        for_each=found.for_each, approval=found.approval, writes=found.writes, retry=found.retry,
    )  # fmt: skip


@st.composite
def definition(draw: st.DrawFn, slug: str, needs: tuple[str, ...], earlier: list[str]) -> Definition:
    kind = draw(st.sampled_from(["plain", "gate", "gate", "list", "until", "signal", "approval", "writer"]))
    more: dict[str, Any] = {"needs": needs, "required": draw(st.booleans())}
    if kind in ("until", "signal"):
        timeout_s = draw(st.sampled_from([None, 5.0]))
        wait = Wait(until="5s") if kind == "until" else Wait(signal="s", timeout_s=timeout_s)
        return Definition(slug, "", "", wait=wait, **more)
    more["retry"] = Retry(draw(st.integers(0, 1)), 0, ("exec_failed", "timeout", "verdict_fail"))
    if kind == "gate":
        is_revising = bool(earlier) and draw(st.booleans())
        revise = draw(st.sampled_from(earlier)) if is_revising else None
        more["gate"] = Gate(revise, draw(st.integers(0, 2)))
    elif kind == "list" and needs:
        more["for_each"] = ForEach(f"{needs[0]}.output", "x", 2)
    elif kind == "approval":
        more["approval"] = Approval(default=draw(st.sampled_from([None, "allow", "deny"])))
    elif kind == "writer":
        more["writes"] = (draw(st.sampled_from(["src/**", "src/a", "docs/**"])),)
    return Definition(slug, "do it", "shell", **more)


class GatesMachine(RuleBasedStateMachine):
    """One graph."""

    def __init__(self) -> None:
        super().__init__()
        self.drive = Drive(concurrency=3)

    @initialize(nodes=definitions(), mode=st.sampled_from(["drain", "drain", "stop"]), start=st.booleans())
    def first(self, nodes: list[Definition], mode: Any, start: bool) -> None:
        terms = Terms(on_required_failure=mode)
        self.drive.run(plan(G, *nodes, limits=Limits(concurrency=2, attempts_per_node=3), terms=terms, start=start), ME)

    @property
    def graph(self) -> Graph | None:
        return self.drive.state.graphs.get(G)

    def do(self, command: Command) -> None:
        with contextlib.suppress(Refused):
            self.drive.run(command, ME)

    def live(self, pick: int) -> str | None:
        graph = self.graph
        if graph is None or not graph.live:
            return None
        return graph.nodes[list(graph.live)[pick % len(graph.live)][0]].slug

    # ---- verbs ------------------------------------------------------------------------------------------------

    @rule(mode=st.sampled_from(["drain", "stop"]))
    def pause(self, mode: Any) -> None:
        self.do(Pause(G, mode))

    @rule()
    def resume(self) -> None:
        self.do(Resume(G))

    @rule(pick=PICK, is_all=st.booleans())
    def retry(self, pick: int, is_all: bool) -> None:
        graph = self.graph
        if graph is not None:
            slugs = [node.slug for node in graph.nodes.values()]
            self.do(RetryNodes(G, None if is_all else slugs[pick % len(slugs)]))

    @rule(dice=st.integers(0, 9))
    def end_it(self, dice: int) -> None:
        commands: list[Command] = [Cancel(G), Clear(G), Finish(G, "enough")]
        if dice < len(commands):
            self.do(commands[dice])

    @rule(payload=st.sampled_from(["null", "[1, 2]", '{"verdict": "ACCEPT"}']))
    def signal(self, payload: str) -> None:
        self.do(Signal("s", payload))

    @rule(pick=PICK, option=st.sampled_from(["allow", "allow", "deny"]))
    def answer(self, pick: int, option: str) -> None:
        graph = self.graph
        if graph is not None and graph.open_asks:
            ask = graph.asks[list(graph.open_asks)[pick % len(graph.open_asks)]]
            self.do(Respond(G, ask.id, ask.action_hash, option=option))

    # ---- facts ------------------------------------------------------------------------------------------------

    @rule(pick=PICK, text=TEXTS)
    def achieve(self, pick: int, text: str | None) -> None:
        if (slug := self.live(pick)) and self.graph:
            self.do(ended(self.graph, slug, text=text))

    @rule(pick=PICK, outcome=st.sampled_from(["failed", "failed", "lost", "put_back"]))
    def fail(self, pick: int, outcome: str) -> None:
        if (slug := self.live(pick)) and self.graph:
            self.do(ended(self.graph, slug, outcome))

    @rule(pick=PICK, dice=st.integers(0, 3))
    def get_stuck(self, pick: int, dice: int) -> None:
        if dice == 0 and (slug := self.live(pick)) and self.graph:
            self.do(stuck(self.graph, slug, 7))

    @rule(pick=PICK)
    def be_late(self, pick: int) -> None:
        if (slug := self.live(pick)) and self.graph:
            self.do(DeadlineReached(G, live_key(self.graph, slug)))

    @rule(recent=st.sampled_from([1, 1, 5]), is_attended=st.booleans())
    def restart(self, recent: int, is_attended: bool) -> None:
        self.drive.capacity = self.drive.capacity._replace(is_attended=is_attended)
        self.do(DaemonStarted(2, "0", recent))

    @rule(ms=st.sampled_from([1, 5_000, 200_000]))
    def wait(self, ms: int) -> None:
        self.drive.tick(ms)

    # ---- the end ----------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Children end, people answer, signals come: the graph ends, or is blocked by a failure that is named."""
        graph = self.graph
        for _ in range(400):
            graph = self.graph
            if graph is None or graph.is_ended or (graph.status == "blocked" and not graph.live):
                return
            if not any(graph.counts[state] for state in ("waiting", "ready", "running")) and not graph.holding:
                return  # blocked, and then paused by a person: only a retry goes on
            self._help_on(graph)
        assert graph is None, f"{graph.status} never ends: {[(n.slug, n.state) for n in graph.nodes.values()]}"

    def _help_on(self, graph: Graph) -> None:
        if graph.live:
            slug = graph.nodes[next(iter(graph.live))[0]].slug
            self.drive.run(ended(graph, slug, text='{"verdict": "ACCEPT"}'))
        elif graph.open_asks:
            ask = graph.asks[next(iter(graph.open_asks))]
            self.drive.run(Respond(G, ask.id, ask.action_hash, option="allow"), ME)
        elif graph.status in ("user_paused", "infra_paused"):
            with contextlib.suppress(Refused):
                self.drive.run(Resume(G), ME)
        else:
            self.do(Signal("s"))
            self.drive.tick(300_000)


TestGates = GatesMachine.TestCase
TestGates.settings = settings(max_examples=40, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
