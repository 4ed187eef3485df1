"""Random plans with budgets, under steps and moved deadlines: the core against the model of `bounds_model`."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from graphd.core.commands import AttemptUsed, ExtendTimeout, Resume, Step
from graphd.core.definition import Budget
from graphd.core.model import Limits, Spent
from tests.unit.bounds_model import BoundedModel
from tests.unit.core_drive import ME, live_key, plan
from tests.unit.core_model import Model
from tests.unit.model_parts import ModelNode
from tests.unit.test_core_machine import PICK, SLUGS, CoreMachine, definition_of, model_nodes

BUDGETS = st.sampled_from([None, None, 2, 5, 20, 100])


class BoundsMachine(CoreMachine):
    """As `CoreMachine`; every model is a bounded one."""

    @initialize(nodes=model_nodes(), concurrency=st.integers(1, 5), budget=BUDGETS, start=st.booleans())
    def first(self, nodes: dict[str, ModelNode], concurrency: int, budget: int | None, start: bool) -> None:
        self.set_bounded(nodes, concurrency, 3, budget, start)

    @precondition(lambda self: len(self.models) < 3)
    @rule(nodes=model_nodes(5), concurrency=st.integers(1, 3), attempts=st.integers(1, 3), budget=BUDGETS)
    def set_graph(self, nodes: dict[str, ModelNode], concurrency: int, attempts: int, budget: int | None) -> None:
        self.set_bounded(nodes, concurrency, attempts, budget, attempts > 1)

    def set_bounded(
        self, nodes: dict[str, ModelNode], concurrency: int, attempts: int, budget: int | None, start: bool
    ) -> None:
        graph = f"g{len(self.models)}"
        limits = Limits(concurrency=concurrency, attempts_per_node=attempts)
        status = "active" if start else "user_paused"
        self.models[graph] = BoundedModel(nodes, concurrency, attempts, status=status, budget=budget)
        definitions = [definition_of(node) for node in nodes.values()]
        bound = Budget(tokens=budget) if budget is not None else None
        self.drive.run(plan(graph, *definitions, limits=limits, start=start, budget=bound), ME)
        self.follow()

    def bounded(self, graph: str) -> BoundedModel:
        model = self.models[graph]
        assert isinstance(model, BoundedModel)
        return model

    def compare(self, graph_id: str, model: Model) -> None:
        super().compare(graph_id, model)
        graph = self.drive.state.graphs.get(graph_id)
        if graph is None:
            return
        ours = self.bounded(graph_id)
        stepping = graph.nodes[graph.stepping].slug if graph.stepping else None
        assert stepping == ours.stepping, self.describe(graph_id)
        assert graph.spent.tokens == ours.spent, self.describe(graph_id)
        assert (graph.budget.tokens if graph.budget else None) == ours.budget, self.describe(graph_id)

    # ---- verbs ------------------------------------------------------------------------------------------------

    @rule(pick=PICK, top_up=st.sampled_from([None, None, 1, 10]))
    def resume(self, pick: int, top_up: int | None = None) -> None:
        more = Budget(tokens=top_up) if top_up is not None else None
        self.both(pick, lambda g: Resume(g, None, more), lambda m: self._as_bounded(m).resume_with(top_up))

    @rule(pick=PICK, slug=st.none() | st.sampled_from(SLUGS[:8]))
    def step(self, pick: int, slug: str | None) -> None:
        graph_id = list(self.models)[pick % len(self.models)]
        if slug is None:  # which one is next is not the model's to say
            graph = self.drive.state.graphs.get(graph_id)
            ready = [graph.nodes[i] for i in graph.ready] if graph is not None else []
            slug = min(ready, key=lambda n: (n.not_before or 0, n.rank)).slug if ready else None
        named = slug
        self.both(pick, lambda g: Step(g, named), lambda m: self._as_bounded(m).step(named))

    @rule(pick=PICK, slug=st.sampled_from(SLUGS[:8]))
    def extend_timeout(self, pick: int, slug: str) -> None:
        self.both(pick, lambda g: ExtendTimeout(g, slug, 1000), lambda m: self._as_bounded(m).extend_timeout(slug))

    # ---- facts ------------------------------------------------------------------------------------------------

    @rule(pick=PICK, tokens=st.sampled_from([1, 3, 10, 50]))
    def use(self, pick: int, tokens: int) -> None:
        self.fact(
            pick,
            lambda g, slug: AttemptUsed(g.id, live_key(g, slug), Spent(tokens)),
            lambda m, node: self._as_bounded(m).use(node.slug, tokens),
        )

    def _as_bounded(self, model: Any) -> BoundedModel:
        assert isinstance(model, BoundedModel)
        return model


TestBounds = BoundsMachine.TestCase
TestBounds.settings = settings(max_examples=40, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
