"""A small model of one graph, from model.md alone: naive, recomputed from scratch, sharing no code with the core.

The state machine test drives it beside the core and compares them after every step.
"""

import json
from dataclasses import dataclass, field

from tests.unit.model_parts import RETRY_ON, STRENGTH, TAKES, Condition, ModelEdits, ModelNode, demand


@dataclass
class Model:
    nodes: dict[str, ModelNode]
    concurrency: int = 5
    attempts_per_node: int = 5
    status: str = "active"
    cause: str | None = None
    wish: str | None = None
    outcome: str | None = None
    finishing: bool = False
    cleared: bool = False
    now: int = 0
    started: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.require()
        self.settle()

    def require(self) -> None:
        """The only end of the plan is required, whatever its definition says."""
        planned = [node for node in self.nodes.values() if not node.removed]
        ends = self.ends([node for node in planned if node.state != "cancelled" and node.then != "cancelled"])
        for node in planned:
            node.required = node.wanted or (len(ends) == 1 and node is ends[0])

    @staticmethod
    def ends(nodes: list[ModelNode]) -> list[ModelNode]:
        needed = {need for node in nodes for need in node.needs}
        return [node for node in nodes if node.slug not in needed]

    def having(self, *states: str) -> list[ModelNode]:
        return [node for node in self.nodes.values() if node.state in states]

    # ---- what follows -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Move waiting nodes until nothing moves any more."""
        moved = True
        while moved:
            moved = False
            for node in self.having("waiting"):
                node.state, node.skip = self.judge(node)
                moved = moved or node.state != "waiting"

    def judge(self, node: ModelNode) -> tuple[str, str | None]:
        needs = [self.nodes[need] for need in node.needs]
        if any(need.dead_end for need in needs):
            return "blocked", None
        if not all(need.settled for need in needs):
            return "waiting", None
        if node.condition is not None:
            holds = self.answer(node.condition)
            return ("failed", None) if holds is None else ("ready", None) if holds else ("skipped", "condition_false")
        if needs and not any(need.state == "achieved" for need in needs):
            return "skipped", "no_input"
        return "ready", None

    def answer(self, condition: Condition) -> bool | None:
        need = self.nodes[condition.slug]
        if condition.part == "state":
            return bool(need.state == condition.value) == (condition.operator == "==")
        found = None
        if need.output is not None:
            try:
                found = json.loads(need.output).get("n")
            except ValueError:
                return None
        if condition.operator == ">":
            return bool(found > condition.value) if found is not None else None
        return bool(found == condition.value) == (condition.operator == "==")

    def conclude(self) -> None:
        """The status that the nodes now mean."""
        stuck = [node.live == "stuck" for node in self.having("running")]
        if self.wish is not None:
            if not stuck:
                self.fulfil()
            elif all(stuck):
                self.status, self.cause = "infra_paused", "stuck"
            return
        if not self.having("waiting", "ready", "running"):
            trouble = None if self.finishing else self.trouble()
            self.status, self.cause = ("blocked" if trouble else "complete"), None
            if not trouble:
                self.outcome = "withFailures" if self.having("failed") else "ok"
        elif self.status == "active" and stuck and all(stuck) and not self.can_start_beside(len(stuck)):
            self.status, self.cause = "infra_paused", "stuck"

    def can_start_beside(self, running: int) -> bool:
        return bool(self.having("ready")) and running < self.concurrency

    def fulfil(self) -> None:
        wish, self.wish, self.cause = self.wish, None, None
        if wish == "pause":
            self.status = "user_paused"
            self.conclude()
        elif wish == "cancel":
            self.status = "cancelled"
        else:
            self.cleared = True

    def trouble(self) -> bool:
        if any(node.dead_end for node in self.nodes.values()):
            return True
        return all(self.failed_through(node) for node in self.ends([n for n in self.nodes.values() if not n.removed]))

    def failed_through(self, node: ModelNode) -> bool:
        """Failed, or skipped only because what came before failed."""
        if node.state == "failed":
            return True
        return node.skip == "no_input" and all(self.failed_through(self.nodes[need]) for need in node.needs)

    # ---- verbs ------------------------------------------------------------------------------------------------

    def admit(self, verb: str, *, stop: bool = False) -> str:
        demand(self.wish is None or (stop and STRENGTH[verb] >= STRENGTH[self.wish]))
        if stop and self.wish == verb:
            return "repeat"
        demand(verb in TAKES[self.status])
        return TAKES[self.status][verb]

    def stop_all(self, verb: str) -> None:
        self.wish = verb
        for node in self.having("running"):
            node.stop = verb
            node.live = "stuck" if node.live == "stuck" else "stopping"

    def pause(self, mode: str) -> None:
        word = self.admit("pause", stop=True)
        if word == "repeat":
            return
        if mode == "stop" and self.having("running"):
            self.stop_all("pause")
            self.conclude()
        else:
            demand(word == "yes" or mode == "stop")
            self.status, self.cause = "user_paused", None

    def resume(self) -> None:
        self.admit("resume")
        demand(self.having("waiting", "ready", "running"))
        self.status, self.cause = "active", None
        self.conclude()

    def retry(self, slug: str | None) -> None:
        word = self.admit("retry")
        if slug is None:
            targets = self.having("failed", "blocked")
            demand(targets)
        else:
            demand(slug in self.nodes, "notFound")
            targets = [self.nodes[slug]]
            demand(not targets[0].removed)
            demand(targets[0].state in ("failed", "blocked", "skipped", "cancelled"))
        batch = {node.slug for node in targets}
        grown = True
        while grown:
            hung = {
                node.slug
                for node in self.nodes.values()
                if not node.removed
                and batch & set(node.needs)
                and (node.state in ("blocked", "ready") or node.skip == "no_input")
            }
            grown = not hung <= batch
            batch |= hung
        for name in sorted(batch, key=list(self.nodes).index):
            node = self.nodes[name]
            demand(all(need in batch or not self.nodes[need].dead_end for need in node.needs), "upstreamNotAchieved")
            demand(node.attempts < self.attempts_per_node, "capacity")
        if word in ("then active", "reopens"):
            self.status, self.cause, self.outcome = "active", None, None
            self.finishing = self.finishing and word != "reopens"
        for name in batch:
            node = self.nodes[name]
            node.state, node.skip, node.output, node.not_before = "waiting", None, None, None
            node.retries = node.lost_in_row = node.put_backs = 0
        self.settle()
        self.conclude()

    # ---- edits ------------------------------------------------------------------------------------------------

    def replan(self, edits: ModelEdits) -> None:
        """Edits as model.md has them: refused whole, or done whole."""
        is_extension = bool(edits.add) and not (edits.change or edits.remove or edits.restart or edits.cancel)
        word = self.admit("extend" if is_extension else "replan")
        demand(not self.finishing or word == "reopens")
        demand(edits.add or edits.change or edits.remove or edits.restart or edits.cancel, "invalidPlan")
        for slug in [*edits.change, *edits.remove, *edits.cancel, *edits.restart]:  # the first trouble is told
            demand(slug in self.nodes, "notFound")
            demand(not self.nodes[slug].removed)
        ended = {*edits.remove, *edits.cancel}
        moved = [*edits.remove, *edits.restart, *edits.cancel]
        demand(len(moved) == len(set(moved)) and not ended & set(edits.change), "invalidPlan")
        demand(not any(self.nodes[slug].settled for slug in ended))
        again = self.readers(edits.restart, ended)
        was = {slug: (self.nodes[slug].needs, self.nodes[slug].condition) for slug in edits.change}
        change = {slug: needs for slug, needs in edits.change.items() if was[slug] != (needs, None)}
        demand(all(slug in again or self.nodes[slug].state in ("waiting", "ready", "blocked") for slug in change))
        demand(all(self.nodes[slug].attempts < self.attempts_per_node for slug in again), "capacity")
        self.check_shape(edits, change, ended, again)
        if not (edits.add or change or ended or again):
            return
        for slug, needs in change.items():
            self.nodes[slug].needs, self.nodes[slug].condition = needs, None
        for node in edits.add:
            self.nodes[node.slug] = ModelNode(node.slug, node.needs, required=node.required)
        for slug in ended:
            node = self.nodes[slug]
            node.removed = slug in edits.remove
            self.stop_for(node, "cancelled")
        for slug in again:
            self.stop_for(self.nodes[slug], "waiting")
        for slug in change:
            self.refresh(self.nodes[slug]) if self.nodes[slug].state in ("ready", "blocked") else None
        self.require()
        self.free()
        if word == "reopens":
            self.status, self.outcome, self.finishing = "active", None, False
        self.settle()
        if word == "then active" and self.having("waiting", "ready", "running"):
            self.status, self.cause = "active", None
        self.conclude()

    def readers(self, restarts: list[str], ended: set[str]) -> set[str]:
        """What restarts: these, and all behind them that is not waiting."""
        again = {slug for slug in restarts if self.nodes[slug].state != "waiting"}
        grown = True
        while grown:
            more = {
                node.slug
                for node in self.nodes.values()
                if not node.removed and again & set(node.needs) and node.state not in ("waiting", "cancelled")
            }
            more -= ended | again
            grown, again = bool(more), again | more
        return again

    def check_shape(
        self, edits: ModelEdits, change: dict[str, tuple[str, ...]], ended: set[str], again: set[str]
    ) -> None:
        """The plan that would come out: no dead need, no cycle, no name used again."""
        gone = {n.slug for n in self.nodes.values() if n.removed or (n.state == "cancelled" and n.slug not in again)}
        gone |= set(edits.remove)
        plan = {n.slug: change.get(n.slug, n.needs) for n in self.nodes.values() if not n.removed}
        plan = {slug: needs for slug, needs in plan.items() if slug not in edits.remove}
        demand(not any(node.slug in self.nodes for node in edits.add), "invalidPlan")
        plan |= {node.slug: node.needs for node in edits.add}
        touched = {node.slug for node in edits.add} | set(change) | again
        for slug, needs in plan.items():
            node = self.nodes.get(slug)
            if slug in gone | ended or (node is not None and node.settled and slug not in touched):
                demand(all(need in plan for need in needs), "invalidPlan")
                continue
            demand(not set(needs) & ended, "invalidPlan")
            demand(slug not in touched or not set(needs) & (gone | ended), "invalidPlan")
            demand(all(need in plan for need in needs), "invalidPlan")
        demand(plan and not self.is_cyclic(plan), "invalidPlan")

    @staticmethod
    def is_cyclic(plan: dict[str, tuple[str, ...]]) -> bool:
        left = dict(plan)
        while left:
            free = [slug for slug, needs in left.items() if not set(needs) & left.keys()]
            if not free:
                return True
            for slug in free:
                del left[slug]
        return False

    def stop_for(self, node: ModelNode, then: str) -> None:
        if node.state == "running":
            node.then, node.stop = then, "replan"
            node.live = "stuck" if node.live == "stuck" else "stopping"
        elif then == "cancelled":
            node.state = "cancelled"
        else:
            self.refresh(node)

    @staticmethod
    def refresh(node: ModelNode) -> None:
        node.state, node.skip, node.output, node.not_before, node.then = "waiting", None, None, None, None
        node.retries = node.lost_in_row = node.put_backs = 0

    def free(self) -> None:
        """Blocked nodes wait again unless what blocks them still does."""
        blocked = self.having("blocked")
        for node in blocked:
            self.refresh(node)
        moved = True
        while moved:
            moved = False
            for node in blocked:
                if node.state == "waiting" and any(self.nodes[need].dead_end for need in node.needs):
                    node.state, moved = "blocked", True

    def cancel(self, verb: str = "cancel") -> None:
        word = self.admit(verb, stop=True)
        if word == "repeat":
            return
        is_ended = self.status in ("complete", "cancelled")
        self.stop_all(verb)
        for node in self.having("waiting", "ready", "blocked"):
            node.state = node.state if is_ended else "cancelled"
        self.conclude()

    def finish(self) -> None:
        self.admit("finish")
        self.finishing = True
        for node in self.having("waiting", "ready", "blocked"):
            node.state, node.skip = "skipped", "finished_early"
        self.conclude()

    def release(self, slug: str, pids: tuple[int, ...]) -> None:
        demand(slug in self.nodes, "notFound")
        node = self.nodes[slug]
        demand(node.live == "stuck")
        demand(set(pids) == set(node.pids), "stuck")
        self.ended(slug, "lost", None, None)

    # ---- facts ------------------------------------------------------------------------------------------------

    def start(self, slug: str, number: int) -> None:
        """The scheduler says that it started this; the model says whether it may."""
        node = self.nodes[slug]
        assert (self.status, self.wish, node.state) == ("active", None, "ready"), (slug, node)
        assert number == node.numbers + 1
        assert node.not_before is None or node.not_before <= self.now
        assert len(self.having("running")) < self.concurrency
        assert node.attempts < self.attempts_per_node
        node.state, node.live, node.stop, node.pids = "running", "starting", None, ()
        node.numbers, node.attempts, node.not_before = number, node.attempts + 1, None
        self.started.append(slug)

    def identified(self, slug: str) -> None:
        node = self.nodes[slug]
        node.live = "live" if node.live == "starting" else node.live

    def stuck(self, slug: str, pids: tuple[int, ...]) -> None:
        node = self.nodes[slug]
        is_news = node.live != "stuck" or node.pids != pids
        node.live, node.pids = "stuck", pids
        if is_news:
            self.conclude()

    def deadline(self, slug: str) -> None:
        node = self.nodes[slug]
        if node.live in ("starting", "live"):
            node.live, node.stop = "stopping", "timeout"

    def daemon(self, recent_starts: int) -> None:
        if recent_starts >= 5 and self.status == "active" and self.wish is None:
            self.status, self.cause = "infra_paused", "starts"

    def ended(self, slug: str, outcome: str, failure_class: str | None, output: str | None) -> None:
        node = self.nodes[slug]
        was_stuck, node.live, node.pids = node.live == "stuck", None, ()
        is_proven = was_stuck and not any(other.live == "stuck" for other in self.nodes.values())
        if is_proven and self.cause == "stuck" and self.wish is None:
            self.status, self.cause = "active", None
        if node.then is not None and not (self.wish in ("cancel", "clear") and node.then == "waiting"):
            node.attempts -= outcome == "put_back"
            if node.then == "waiting":
                self.refresh(node)
                node.state, node.skip = ("skipped", "finished_early") if self.finishing else ("waiting", None)
            else:
                node.state, node.output, node.then = "cancelled", output, None
        elif self.wish in ("cancel", "clear"):
            node.then = None
            node.attempts -= outcome == "put_back"
            node.state, node.output = "cancelled", output
        elif outcome == "achieved":
            node.state, node.output, node.lost_in_row = "achieved", output, 0
        elif node.stop == "timeout" and outcome != "put_back":
            self.fail(node, "timeout", output)
        elif node.stop == "pause" or outcome == "put_back":
            node.attempts -= 1
            node.lost_in_row = 0
            is_pause = node.stop == "pause"
            if node.put_backs and not is_pause:  # it never got to act, again: not at once any more
                node.not_before = self.now + min(60_000, 1000 * 2**node.put_backs)
            node.put_backs = 0 if is_pause else node.put_backs + 1
            self.put_back(node)
        elif outcome == "lost":
            self.lose(node)
        else:
            self.fail(node, failure_class or "exec_failed", output)
        self.settle()
        self.conclude()

    def put_back(self, node: ModelNode) -> None:
        node.state, node.skip = ("skipped", "finished_early") if self.finishing else ("ready", None)

    def fail(self, node: ModelNode, failure_class: str, output: str | None) -> None:
        may = node.retries < node.retry_max and node.attempts < self.attempts_per_node and not self.finishing
        if failure_class in RETRY_ON and may:
            node.not_before = self.now + node.backoff_s * 1000 * 2**node.retries if node.backoff_s else None
            node.retries, node.lost_in_row, node.put_backs = node.retries + 1, 0, 0
            self.put_back(node)
        else:
            node.state, node.output = "failed", output

    def lose(self, node: ModelNode) -> None:
        if node.on_lost == "fail" or node.attempts >= self.attempts_per_node:
            node.state, node.output = "failed", None
            return
        node.lost_in_row, node.put_backs = node.lost_in_row + 1, 0
        self.put_back(node)
        if self.status == "active" and self.wish is None and (node.on_lost == "pause" or node.lost_in_row >= 3):
            self.status, self.cause = "infra_paused", "lost"
