"""The model of `core_model` with what bounds a graph: a budget in tokens, the step, deadlines that are moved."""

from dataclasses import dataclass, field

from tests.unit.core_model import Model
from tests.unit.model_parts import STRENGTH, TAKES, demand

LIMIT = "budget_limited"
STRENGTH["budget"] = 0
TAKES[LIMIT] = {
    "extend": "stays", "replan": "stays", "pause": "yes", "resume": "top up", "retry": "stays", "finish": "yes",
    "cancel": "yes", "clear": "yes",
}  # fmt: skip
for _status in ("active", "user_paused", "infra_paused"):
    TAKES[_status]["step"] = "yes"
for _status in ("active", "user_paused", "infra_paused", "blocked", LIMIT):
    TAKES[_status]["extendTimeout"] = "yes"


@dataclass
class BoundedModel(Model):
    budget: int | None = None
    spent: int = 0
    used: dict[str, int] = field(default_factory=dict)
    extended: dict[str, int] = field(default_factory=dict)
    stepping: str | None = None

    @property
    def total(self) -> int:
        return self.spent + sum(self.used.values())

    @property
    def is_spent(self) -> bool:
        return self.budget is not None and self.total >= self.budget

    # ---- what follows -----------------------------------------------------------------------------------------

    def conclude(self) -> None:
        if self.wish is None and self.having("waiting", "ready", "running"):
            self.trip()
            if self.wish is None:
                self.end_step()
        was = self.status
        is_at_rest = self.wish is None and not self.having("waiting", "ready", "running")
        if is_at_rest and not self.finishing and self.trouble():
            self.trip()  # a spent budget is said before what blocks
            if self.status == LIMIT:
                return
        super().conclude()
        self.forget_step(was)

    def trip(self) -> None:
        if not self.is_spent or not (self.status == "active" or self.having("running")):
            return
        if self.having("running"):
            self.stop_all("budget")
        else:
            self.status, self.cause = LIMIT, None
            self.stepping = None

    def end_step(self) -> None:
        is_over = self.stepping is not None and self.nodes[self.stepping].state not in ("ready", "running")
        if is_over and self.status == "active":
            self.status, self.cause, self.stepping = "user_paused", None, None

    def forget_step(self, was: str) -> None:
        if self.status != was and self.status not in ("active", "infra_paused"):
            self.stepping = None

    def can_start_beside(self, running: int) -> bool:
        return self.stepping is None and super().can_start_beside(running)

    def fulfil(self) -> None:
        if self.wish == "budget":
            self.wish, self.cause, self.status, self.stepping = None, None, LIMIT, None
            self.conclude()
            return
        if self.wish == "pause":
            self.stepping = None
        super().fulfil()

    # ---- verbs ------------------------------------------------------------------------------------------------

    def pause(self, mode: str) -> None:
        super().pause("stop" if self.wish == "budget" else mode)
        if self.wish is None:
            self.stepping = None

    def resume_with(self, top_up: int | None) -> None:
        self.admit("resume")
        demand(self.having("waiting", "ready", "running"))
        if top_up is not None:
            demand(self.budget is not None, "invalidBudget")
            limit = self.total + top_up
        else:
            limit = self.budget if self.budget is not None else self.total + 1
        demand(self.total < limit)
        self.budget = limit if self.budget is not None else None
        self.status, self.cause, self.stepping = "active", None, None
        self.conclude()

    def step(self, slug: str | None) -> None:
        self.admit("step")
        demand(not self.having("running"))
        if slug is None:
            demand(self.having("ready"))
        else:
            demand(slug in self.nodes, "notFound")
            demand(self.nodes[slug].state == "ready")
        self.status, self.cause, self.stepping = "active", None, slug
        if slug is not None:
            self.conclude()

    def extend_timeout(self, slug: str) -> None:
        self.admit("extendTimeout")
        demand(slug in self.nodes, "notFound")
        demand(self.nodes[slug].live in ("starting", "live"))
        demand(self.extended.get(slug, 0) < 20, "capacity")
        self.extended[slug] = self.extended.get(slug, 0) + 1

    # ---- facts ------------------------------------------------------------------------------------------------

    def start(self, slug: str, number: int) -> None:
        assert self.stepping in (None, slug), (self.stepping, slug)
        assert not self.is_spent
        self.extended.pop(slug, None)
        super().start(slug, number)

    def use(self, slug: str, tokens: int) -> None:
        self.used[slug] = max(self.used.get(slug, 0), tokens)
        if self.wish is None and self.is_spent and self.having("running"):
            self.stop_all("budget")
            self.conclude()

    def settle_use(self, slug: str, tokens: int) -> None:
        self.spent += max(self.used.pop(slug, 0), tokens)

    def release(self, slug: str, pids: tuple[int, ...]) -> None:
        demand(slug in self.nodes, "notFound")
        demand(self.nodes[slug].live == "stuck")
        demand(set(pids) == set(self.nodes[slug].pids), "stuck")
        self.settle_use(slug, 0)
        super().ended(slug, "lost", None, None)

    def ended(self, slug: str, outcome: str, failure_class: str | None, output: str | None) -> None:
        self.settle_use(slug, 1)
        node = self.nodes[slug]
        if node.stop == "budget":
            node.stop = "pause"  # these two are the same to a node
        super().ended(slug, outcome, failure_class, output)
