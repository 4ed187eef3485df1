"""Random plans under random verbs and facts: the core against the model of `core_model`, compared after every step."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from graphd.base.refusal import Refused
from graphd.core.commands import (
    Cancel,
    Clear,
    DaemonStarted,
    DeadlineReached,
    Finish,
    Pause,
    Release,
    Replan,
    Resume,
    RetryNodes,
)
from graphd.core.edits import Edits, Patch
from graphd.core.model import Definition, Graph, Limits, Retry
from tests.unit.core_drive import ME, Drive, ended, identified, live_key, plan, stuck
from tests.unit.core_model import Model
from tests.unit.model_parts import Condition, ModelEdits, ModelNode, ModelRefusal

SLUGS = [f"n{i}" for i in range(12)]
PICK = st.integers(0, 99)


@st.composite
def conditions(draw: st.DrawFn, needs: tuple[str, ...]) -> Condition | None:
    if not needs or draw(st.integers(0, 2)):
        return None
    slug = draw(st.sampled_from(needs))
    if draw(st.booleans()):
        value = draw(st.sampled_from(["achieved", "failed", "skipped"]))
        return Condition(slug, "state", draw(st.sampled_from(["==", "!="])), value)
    return Condition(slug, "n", draw(st.sampled_from(["==", "!=", ">"])), draw(st.integers(0, 3)))


@st.composite
def model_nodes(draw: st.DrawFn, most: int = 12) -> dict[str, ModelNode]:
    nodes: dict[str, ModelNode] = {}
    for slug in SLUGS[: draw(st.integers(1, most))]:
        earlier = list(nodes)
        needs = tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3))) if earlier else ()
        nodes[slug] = ModelNode(
            slug, needs, required=draw(st.booleans()), condition=draw(conditions(needs)),
            priority=draw(st.integers(-1, 1)), retry_max=draw(st.sampled_from([0, 0, 1, 2])),
            backoff_s=draw(st.sampled_from([0, 5])), on_lost=draw(st.sampled_from(["resume", "pause", "fail"])),
        )  # fmt: skip
    return nodes


def definition_of(node: ModelNode) -> Definition:
    return Definition(
        node.slug, "do it", "shell", needs=node.needs, required=node.required, priority=node.priority,
        condition=node.condition.text() if node.condition else None, on_lost=node.on_lost,  # type: ignore[arg-type]
        retry=Retry(node.retry_max, node.backoff_s),
    )  # fmt: skip


PLACES = st.integers(0, 19)


@st.composite
def drawn_edits(draw: st.DrawFn) -> dict[str, Any]:
    """Edits by place in a plan that is not known yet; mostly of one kind, so that many may be taken."""
    some, needs = st.lists(PLACES, max_size=2), st.lists(PLACES, unique=True, max_size=2)
    kind = draw(st.sampled_from(["add", "change", "remove", "restart", "restart", "cancel", "mixed"]))
    is_mixed = kind == "mixed"
    return {
        "add": draw(st.lists(st.tuples(PLACES, needs, st.booleans()), max_size=2)) if is_mixed or kind == "add" else [],
        "change": draw(st.lists(st.tuples(PLACES, needs), max_size=2)) if is_mixed or kind == "change" else [],
        "remove": draw(some) if is_mixed or kind == "remove" else [],
        "restart": draw(some) if is_mixed or kind == "restart" else [],
        "cancel": draw(some) if is_mixed or kind == "cancel" else [],
        "rewire": draw(needs) if kind == "restart" and draw(st.booleans()) else None,
    }


def edits_for(model: Model, drawn: dict[str, Any]) -> ModelEdits:
    """The drawn places as names of this plan: one in twenty names nothing, the rest mostly nodes that are there."""
    known = list(model.nodes)

    def name(place: int) -> str:
        return "ghost" if place == 19 else known[place % len(known)]

    def earlier(slug: str, places: list[int]) -> tuple[str, ...]:
        """Mostly needs that make no cycle: nodes from before."""
        before = known[: known.index(slug)] if slug in known else known
        found = [name(p) if p > 16 else before[p % len(before)] for p in places if p > 16 or before]
        return tuple(dict.fromkeys(found))

    edits = ModelEdits(remove=[name(p) for p in drawn["remove"]], cancel=[name(p) for p in drawn["cancel"]])
    edits.restart = [name(p) for p in drawn["restart"]]
    new = [known[0] if place == 18 else f"x{len(known) + at}" for at, (place, _, _) in enumerate(drawn["add"])]
    for slug, (_, needs, required) in zip(new, drawn["add"], strict=True):
        edits.add.append(ModelNode(slug, earlier(slug, needs), required=required))
    edits.change = {name(place): earlier(name(place), needs) for place, needs in drawn["change"]}
    if drawn["rewire"] is not None and edits.restart:
        edits.change[edits.restart[0]] = earlier(edits.restart[0], drawn["rewire"])
    return edits


class CoreMachine(RuleBasedStateMachine):
    """One workspace with up to three graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.drive = Drive(concurrency=6)
        self.models: dict[str, Model] = {}

    @initialize(nodes=model_nodes(), concurrency=st.integers(1, 5), attempts=st.integers(1, 5), start=st.booleans())
    def first(self, nodes: dict[str, ModelNode], concurrency: int, attempts: int, start: bool) -> None:
        self.set_graph(nodes, concurrency, attempts, start or attempts > 1)

    @precondition(lambda self: len(self.models) < 3)
    @rule(nodes=model_nodes(5), concurrency=st.integers(1, 3), attempts=st.integers(1, 3), start=st.booleans())
    def set_graph(self, nodes: dict[str, ModelNode], concurrency: int, attempts: int, start: bool) -> None:
        graph = f"g{len(self.models)}"
        limits = Limits(concurrency=concurrency, attempts_per_node=attempts)
        definitions = [definition_of(node) for node in nodes.values()]
        self.models[graph] = Model(nodes, concurrency, attempts, status="active" if start else "user_paused")
        self.drive.run(plan(graph, *definitions, limits=limits, start=start), ME)
        self.follow()

    # ---- both sides -------------------------------------------------------------------------------------------

    def both(self, pick: int, command: Callable[[str], Any], expect: Callable[[Model], None]) -> None:
        """Run a command on a graph and on its model: both refuse with one code, or both end in one state."""
        graph = list(self.models)[pick % len(self.models)]
        model = self.models[graph]
        model.now = self.drive.now
        expected = code = None
        try:
            if model.cleared:
                raise ModelRefusal("notFound")
            expect(model)
        except ModelRefusal as refusal:
            expected = str(refusal)
        try:
            self.drive.run(command(graph), ME)
        except Refused as refusal:
            code = refusal.code
        assert code == expected, (command(graph), self.describe(graph))
        self.follow()

    def fact(self, pick: int, command: Callable[[Graph, str], Any], expect: Callable[[Model, ModelNode], None]) -> None:
        """Report a fact about a random unsettled attempt, where there is one."""
        live = [(g, n) for g, m in self.models.items() if not m.cleared for n in m.having("running")]
        if not live:
            return
        graph, node = live[pick % len(live)]
        model = self.models[graph]
        model.now = self.drive.now
        made = command(self.drive.state.graphs[graph], node.slug)
        expect(model, node)
        self.drive.run(made)
        self.follow()

    def follow(self) -> None:
        """Give the model the scheduler's starts, then compare."""
        for change in self.drive.changes:
            for event in change.events:
                if event.kind == "attempt_started" and event.node is not None:
                    slug = self.drive.state.graphs[event.graph].nodes[event.node].slug
                    self.models[event.graph].now = self.drive.now
                    self.models[event.graph].start(slug, event.payload["number"])
        for graph_id, model in self.models.items():
            self.compare(graph_id, model)

    def compare(self, graph_id: str, model: Model) -> None:
        graph = self.drive.state.graphs.get(graph_id)
        assert (graph is None) == model.cleared
        if graph is None:
            return
        wish = graph.stopping.verb if graph.stopping else None
        where = self.describe(graph_id)
        assert (graph.status, graph.outcome, wish) == (model.status, model.outcome, model.wish), where
        for node in graph.nodes.values():
            ours = model.nodes[node.slug]
            assert (node.state, node.skip, node.attempts, node.last_number) == (
                ours.state, ours.skip, ours.attempts, ours.numbers,
            ), (node.slug, where)  # fmt: skip
            assert node.not_before == ours.not_before, (node.slug, where)
            assert (node.output.text if node.output else None) == ours.output
            live = next((graph.attempts[key].state for key in graph.live if key[0] == node.id), None)
            assert live == ours.live, (node.slug, where)

    def describe(self, graph: str) -> str:
        core = self.drive.state.graphs.get(graph)
        log = [(e.rev, e.kind, e.node, e.payload.get("reason")) for e in self.drive.log if e.graph == graph]
        return f"{graph}: {core.status if core else 'cleared'} {log[-12:]} model: {self.models[graph]}"

    # ---- verbs ------------------------------------------------------------------------------------------------

    @rule(pick=PICK, mode=st.sampled_from(["drain", "stop"]))
    def pause(self, pick: int, mode: Any) -> None:
        self.both(pick, lambda g: Pause(g, mode), lambda m: m.pause(mode))

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        self.both(pick, Resume, lambda m: m.resume())

    @rule(pick=PICK, slug=st.none() | st.sampled_from(SLUGS[:8]))
    def retry(self, pick: int, slug: str | None) -> None:
        self.both(pick, lambda g: RetryNodes(g, slug), lambda m: m.retry(slug))

    @rule(pick=PICK, drawn=drawn_edits())
    def replan(self, pick: int, drawn: dict[str, Any]) -> None:
        self.edit(pick, drawn)

    @rule(pick=PICK, drawn=drawn_edits())
    def replan_again(self, pick: int, drawn: dict[str, Any]) -> None:
        """Drawn as often as two verbs: most edits of a random plan are refused."""
        self.edit(pick, drawn)

    def edit(self, pick: int, drawn: dict[str, Any]) -> None:
        edits = edits_for(self.models[list(self.models)[pick % len(self.models)]], drawn)
        core = Edits(
            add=tuple(definition_of(node) for node in edits.add),
            change=tuple(Patch(slug, {"needs": list(n), "condition": None}) for slug, n in edits.change.items()),
            remove=tuple((slug, "no") for slug in edits.remove), restart=tuple(edits.restart),
            cancel=tuple(edits.cancel),
        )  # fmt: skip
        self.both(pick, lambda g: Replan(g, core), lambda m: m.replan(edits))

    @rule(pick=PICK, dice=st.integers(0, 2))
    def cancel(self, pick: int, dice: int) -> None:
        if dice == 0:
            self.both(pick, Cancel, lambda m: m.cancel())

    @rule(pick=PICK, dice=st.integers(0, 2))
    def clear(self, pick: int, dice: int) -> None:
        if dice == 0:
            self.both(pick, Clear, lambda m: m.cancel("clear"))

    @rule(pick=PICK, dice=st.integers(0, 1))
    def finish(self, pick: int, dice: int) -> None:
        if dice == 0:
            self.both(pick, lambda g: Finish(g, "enough"), lambda m: m.finish())

    @rule(pick=PICK, slug=st.sampled_from(SLUGS[:8]), is_right=st.booleans())
    def release(self, pick: int, slug: str, is_right: bool) -> None:
        pids = (7, 9) if is_right else (7,)
        self.both(pick, lambda g: Release(g, slug, pids), lambda m: m.release(slug, pids))

    # ---- facts ------------------------------------------------------------------------------------------------

    @rule(pick=PICK)
    def identify(self, pick: int) -> None:
        self.fact(pick, identified, lambda m, n: m.identified(n.slug))

    @rule(pick=PICK, n=st.sampled_from(['{"n": 1}', '{"n": 2}', "{}", "text", None]))
    def achieve(self, pick: int, n: str | None) -> None:
        self.fact(pick, lambda g, slug: ended(g, slug, text=n), lambda m, node: m.ended(node.slug, "achieved", None, n))

    @rule(
        pick=PICK,
        end=st.sampled_from(
            [("failed", "exec_failed"), ("failed", "timeout"), ("failed", None), ("failed", "limit"), ("lost", None),
             ("lost", None), ("put_back", None), ("not_achieved", "verdict_fail")]
        ),
    )  # fmt: skip
    def fail(self, pick: int, end: tuple[str, Any]) -> None:
        outcome, failure_class = end
        self.fact(
            pick,
            lambda g, slug: ended(g, slug, outcome, failure_class=failure_class),
            lambda m, n: m.ended(n.slug, outcome, failure_class, None),
        )

    @rule(pick=PICK, pids=st.sampled_from([(7, 9), (7, 9), ()]))
    def get_stuck(self, pick: int, pids: tuple[int, ...]) -> None:
        self.fact(pick, lambda g, slug: stuck(g, slug, *pids), lambda m, n: m.stuck(n.slug, pids))

    @rule(pick=PICK)
    def reach_deadline(self, pick: int) -> None:
        self.fact(pick, lambda g, slug: DeadlineReached(g.id, live_key(g, slug)), lambda m, n: m.deadline(n.slug))

    @rule(recent=st.sampled_from([1, 1, 5]))
    def restart(self, recent: int) -> None:
        for model in self.models.values():
            model.daemon(recent)
        self.drive.run(DaemonStarted(2, "0", recent))
        self.follow()

    @rule(ms=st.sampled_from([1, 4_999, 60_000]))
    def wait(self, ms: int) -> None:
        self.drive.tick(ms)
        self.follow()

    @rule(pick=PICK)
    def repeat_a_settled_fact(self, pick: int) -> None:
        """What is late or foreign changes nothing."""
        settled = [
            (g, a) for g in self.drive.state.graphs.values() for a in g.attempts.values() if a.state == "settled"
        ]
        if settled:
            graph, attempt = settled[pick % len(settled)]
            late = DeadlineReached(graph.id, attempt.key)
            with contextlib.suppress(Refused):
                self.drive.run(late)
            assert not self.drive.changes
            self.follow()


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=200, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_sequences() -> None:
    run_state_machine_as_test(
        CoreMachine, settings=settings(TestCore.settings, max_examples=10_000, stateful_step_count=12)
    )
