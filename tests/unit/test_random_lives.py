"""Whole lives by chance: random graphs of every kind of node under random verbs, facts and restarts.

Nothing here knows what the right answer is. It holds the core to what is always true: no illegal move, no active graph
without a next step, a refusal leaves no trace, the log rebuilds to the state that it left (issue 5), a node whose
session a person has starts nothing, and a file that was applied differs in nothing from the plan.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from graphd.base.refusal import Refused
from graphd.core import commands as c
from graphd.core.compare import compare, plan_of
from graphd.core.definition import Approval, Budget, Definition, ForEach, Gate, Verify, Wait
from graphd.core.derive import goes_on, last_begun, rebuild_state
from graphd.core.edits import Edits, Patch
from graphd.core.evolve import evolve
from graphd.core.model import Graph, Identity, Limits, Output, Source, Spent, State
from graphd.core.policy import Leave
from graphd.core.proposals import open_proposals
from graphd.core.tape import Tape
from tests.unit.core_drive import ME, Drive, define, picture, plan

STEPS = 30
VERDICTS = ("ACCEPT", "REVISE", "REJECT", "BLOCKED", "REPLAN")
APART: set[type[c.Command]] = {c.Import, c.Acknowledge, c.Tick, c.Revoke}
"""They need what no life here has (a log, an owner), are a tick, or are too rare to count on."""
PROFILES = (("shell", "shell"), ("build", "acp"), ("verify", "acp"))


class Life(Drive):
    """A workspace whose invariants are looked at after every commit, its log at the end."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(concurrency=chance.choice([1, 3, 8]), profiles=PROFILES)
        self.chance = chance
        self.taken: Counter[type[c.Command]] = Counter()
        self.held: dict[tuple[str, str], int] = {}
        """(graph, node id) whose session a person has → the number of the attempt that it was taken over from."""

    def check(self) -> None:
        """Only what costs little; `end` looks at the rest."""
        for graph in self.state.graphs.values():
            self._check_graph(graph)
        for (name, node), number in self.held.items():
            if name in self.state.graphs:
                assert self.state.graphs[name].nodes[node].last_number == number, "nothing starts while it is held"

    def hold(self, graph: str, node: str) -> bool:
        """A person takes a node's session over, as `workgraph/hold` does it; False where that is refused."""
        before = self.taken[c.Hold]
        self._keep_held({**self.held, (graph, node): self.state.graphs[graph].nodes[node].last_number})
        self.run(c.Hold(graph, node))
        if self.taken[c.Hold] == before:
            self.let_go((graph, node))
        return self.taken[c.Hold] > before

    def let_go(self, *held: tuple[str, str]) -> None:
        """They leave."""
        self._keep_held({key: number for key, number in self.held.items() if key not in held})
        self.tick(0)

    def _keep_held(self, held: dict[tuple[str, str], int]) -> None:
        self.held = held
        self.capacity = self.capacity._replace(held=frozenset(held))

    def run(self, command: c.Command, actor: Any = ME, **condition: Any) -> c.Done:
        """A command whose refusal is no trouble."""
        self.is_checked = False
        before = {graph.id: (graph.rev, graph.status) for graph in self.state.graphs.values()}
        try:
            done = super().run(command, actor, **condition)
        except Refused:
            assert all(before[g.id][0] <= g.rev for g in self.state.graphs.values())
            return c.Done(None, 0)
        finally:
            self.is_checked = True
            self.check()
        self.taken[type(command)] += 1
        return done

    def end(self) -> None:
        """The log, replayed from nothing, is the state."""
        again = State()
        for event in self.log:
            evolve(again, Tape.unwound(), event)
        rebuild_state(again)
        ours, theirs = picture(self.state), picture(again)
        for key in ("graphs", "derived", "tombstones", "running", "profiles"):
            assert theirs[key] == ours[key], key


# ---- graphs -------------------------------------------------------------------------------------------------------


def size_of(chance: random.Random) -> int:
    return chance.choice([1, 2, 3, 4, 5, 6, 8, 10, 15]) if chance.random() < 0.97 else chance.randint(30, 200)


def node_of(chance: random.Random, slug: str, before: list[str]) -> Definition:
    """Any kind of node, its needs among those before it."""
    needs = chance.sample(before, min(len(before), chance.choice([0, 1, 1, 2, 3])))
    kind = chance.random()
    more: dict[str, Any] = {
        "required": chance.random() < 0.3, "priority": chance.randint(-2, 2),
        "worker": chance.choice(["shell", "shell", "build"]),
        "on_lost": chance.choice(["resume", "resume", "pause", "fail"]),
    }  # fmt: skip
    if kind < 0.12 and before:
        more["gate"] = Gate(chance.choice([None, chance.choice(before)]), chance.randint(0, 2))
    elif kind < 0.18 and needs:
        more["for_each"] = ForEach(f"{needs[0]}.output", "item", 3)
    elif kind < 0.24:
        more |= {"worker": "", "wait": Wait(signal="go", timeout_s=5) if chance.random() < 0.5 else Wait(until="5s")}
    elif kind < 0.32:
        more["approval"] = Approval(default=chance.choice([None, "allow", "deny"]))
    elif kind < 0.42:
        more["verify"] = chance.choice([Verify(run="true"), Verify(worker="verify")])
    if needs and chance.random() < 0.15:
        more["condition"] = f'{needs[0]}.state == "{chance.choice(["achieved", "failed"])}"'
    if chance.random() < 0.15:
        more["writes"] = ("src/**",)
    return define(slug, *needs, **more)


def nodes_of(chance: random.Random, count: int, prefix: str = "n", before: tuple[str, ...] = ()) -> list[Definition]:
    slugs, made = list(before), []
    for number in range(count):
        made.append(node_of(chance, f"{prefix}{number}", slugs[-20:]))
        slugs.append(f"{prefix}{number}")
    return made


def begin(life: Life, number: int) -> None:
    """Set a graph; what its plan does not bear is left out."""
    chance = life.chance
    definitions = nodes_of(chance, size_of(chance))
    limits = Limits(concurrency=chance.choice([1, 2, 5]), max_nodes=400, attempts_per_node=chance.choice([1, 2, 5]))
    budget = chance.choice([None, None, None, Budget(tokens=chance.choice([5, 100_000]))])
    for softer in (lambda d: d, lambda d: replace(d, gate=Gate() if d.gate else None), plain):
        before = len(life.state.graphs)
        life.run(plan(f"g{number}", *map(softer, definitions), limits=limits, budget=budget,
                      start=chance.random() < 0.9))  # fmt: skip
        if len(life.state.graphs) > before:
            return


def plain(definition: Definition) -> Definition:
    return replace(definition, gate=None, for_each=None, condition=None, worker=definition.worker or "shell", wait=None)


# ---- what happens to them -----------------------------------------------------------------------------------------

Act = Callable[[Life, Graph], None]


def any_slug(life: Life, graph: Graph) -> str:
    return life.chance.choice([node.slug for node in graph.nodes.values()])


def a_live_slug(life: Life, graph: Graph) -> str:
    return graph.nodes[life.chance.choice(list(graph.live))[0]].slug if graph.live else any_slug(life, graph)


def settle(life: Life, graph: Graph) -> None:
    """An attempt ends, in any way."""
    if not graph.live:
        return
    chance, key = life.chance, life.chance.choice(list(graph.live))
    text = chance.choice([
        "done", '["a", "b"]', "[]", f'{{"verdict": "{chance.choice(VERDICTS)}"}}',
        '{"verdict": "achieved", "gaps": []}', '{"verdict": "not_achieved", "gaps": ["x"]}',
    ])  # fmt: skip
    outcome: Any = chance.choices(["achieved", "failed", "lost", "put_back"], [6, 2, 1, 1])[0]
    life.run(c.AttemptEnded(
        graph.id, key, outcome, failure_class="exec_failed" if outcome == "failed" else None,
        signal=chance.choice([None, 9]), output=Output(text, len(text), "application/json"),
        spent=Spent(tokens=chance.choice([0, 3, 40]), wall_ms=5),
    ))  # fmt: skip


def speak(life: Life, graph: Graph) -> None:
    """An agent says something: its session, a question, a result, a turn that failed."""
    if not graph.live:
        return
    chance, key = life.chance, life.chance.choice(list(graph.live))
    life.run(c.AttemptIdentified(graph.id, key, Identity("boot", "ns", 7, 8)))
    options = ({"id": "y", "kind": "allow_once", "label": "Y"}, {"id": "n", "kind": "reject_once", "label": "N"})
    action = {"toolKind": "edit", "paths": [chance.choice(["/w/x", "/else/x"])]}
    said = chance.choice([
        {"session": f"s{chance.randint(0, 3)}"},
        {"asks": (c.AgentAsk(str(chance.randint(0, 5)), "permission", "t", action, options),)},
        {"candidate": Output('{"verdict": "ACCEPT"}', 21, "application/json")},
        {"trouble": (chance.choice(["limit", "refused", "verdict_fail"]), "why")},
        {"is_cancelled": True},
        {"gone": (str(chance.randint(0, 5)),)},
    ])  # fmt: skip
    life.run(c.AttemptSaid(graph.id, key, Leave("edit", "/w"), **said))  # type: ignore[arg-type]  # by the table above


def other_fact(life: Life, graph: Graph) -> None:
    if not graph.live:
        return
    chance, key = life.chance, life.chance.choice(list(graph.live))
    facts: list[c.Command] = [
        c.AttemptStuck(graph.id, key, (7,), "no proof"),
        c.DeadlineReached(graph.id, key, chance.random() < 0.5),
        c.AttemptUsed(graph.id, key, Spent(tokens=chance.choice([1, 60]))),
        c.ChildAsk(graph.id, key, "which?", is_alone=chance.random() < 0.3),
        c.ProfileCooling(graph.id, key, "build", life.now + chance.choice([1000, 60_000]), "busy"),
        c.MachineSlept(chance.choice([1000, 600_000])),
    ]
    life.run(chance.choice(facts))


def answer(life: Life, graph: Graph) -> None:
    """A person answers, or takes an answer back that covers more than what was asked."""
    chance, standing = life.chance, [ask.id for ask in graph.asks.values() if ask.scope not in (None, "once")]
    if standing and chance.random() < 0.5:
        life.run(c.Revoke(graph.id, chance.choice(standing)))
    elif graph.open_asks:
        ask = graph.asks[chance.choice(list(graph.open_asks))]
        if ask.kind == "proposal" and chance.random() < 0.3:
            life.run(c.Dismiss(graph.id, ask.id))
        elif ask.options:
            option, scope = chance.choice(ask.options)["id"], chance.choice(ask.scopes)
            life.run(c.Respond(graph.id, ask.id, ask.action_hash, option, scope=scope))
        else:
            life.run(c.Respond(graph.id, ask.id, ask.action_hash, text="this one"))


def release(life: Life, graph: Graph) -> None:
    for key in list(graph.live):
        if graph.attempts[key].state == "stuck":
            life.run(c.Release(graph.id, key[0], graph.attempts[key].stuck_pids))
            return


def revise(life: Life, graph: Graph) -> None:
    """Edits of any kind, most of them refused for good reasons."""
    chance = life.chance
    slugs = tuple(node.slug for node in graph.nodes.values() if node.removed_in is None)
    added = nodes_of(chance, chance.choice([0, 1, 2]), f"x{graph.rev}-", slugs[-6:])
    edits = Edits(
        add=tuple(added),
        change=(Patch(any_slug(life, graph), {"spec": "else"}),) if chance.random() < 0.4 else (),
        remove=((any_slug(life, graph), "not needed"),) if chance.random() < 0.3 else (),
        restart=(any_slug(life, graph),) if chance.random() < 0.3 else (),
        cancel=(any_slug(life, graph),) if chance.random() < 0.2 else (),
        resume=chance.random() < 0.2,
    )
    if chance.random() < 0.7:
        life.run(c.Replan(graph.id, edits))
    else:
        life.run(c.Propose(graph.id, edits, "me", "better", is_automatic=chance.random() < 0.3))


def verb(life: Life, graph: Graph) -> None:
    chance, name = life.chance, graph.id
    wanted: list[tuple[int, c.Command]] = [
        (4, c.Pause(name, chance.choice(["drain", "stop"]))),
        (6, c.Resume(name, None, chance.choice([None, Budget(tokens=50)]))),
        (4, c.RetryNodes(name, chance.choice([None, any_slug(life, graph)]))),
        (2, c.Step(name, chance.choice([None, any_slug(life, graph)]))),
        (1, c.Cancel(name)), (1, c.Clear(name)), (1, c.Finish(name, "enough")),
        (2, c.ExtendTimeout(name, a_live_slug(life, graph), 1000)),
        (2, c.Extend(name, tuple(nodes_of(chance, 2, f"e{graph.rev}-", (any_slug(life, graph),))))),
        (2, c.Signal("go")),
    ]  # fmt: skip
    life.run(chance.choices([command for _, command in wanted], [weight for weight, _ in wanted])[0])


def hold(life: Life, graph: Graph) -> None:
    """A person opens a node's session, or leaves one."""
    chance, mine = life.chance, [key for key in life.held if key[0] == graph.id]
    if mine and chance.random() < 0.5:
        life.let_go(chance.choice(mine))
        return
    node = chance.choice(list(graph.nodes.values()))
    if graph.live and chance.random() < 0.9:  # most others have no session
        key = chance.choice(list(graph.live))
        node = graph.nodes[key[0]]
        life.run(c.AttemptSaid(graph.id, key, Leave("edit", "/w"), session=f"s{chance.randint(0, 3)}"))
    if (graph.id, node.id) in life.held or not life.hold(graph.id, node.id):
        return
    attempt = last_begun(graph, node)
    assert attempt is not None
    assert attempt.child_session is not None
    assert goes_on(attempt) if node.state == "ready" else attempt.stop_reason == "hold"


def apply(life: Life, graph: Graph) -> None:
    """The graph's file was edited, and is applied: what changed is proposed, and often accepted at once."""
    file = edited(life, graph)
    found = compare(graph, file)
    if found.edits.is_empty:
        return
    proposed = life.taken[c.Propose]
    life.run(
        c.Propose(graph.id, found.edits, "me", "flow.yaml was changed", Source("workflow", "flow", "/w/flow.yaml"))
    )
    if life.taken[c.Propose] == proposed or life.chance.random() < 0.3:
        return
    proposal = open_proposals(graph)[-1].id
    for _ in range(life.chance.choice([0, 0, 1, 3])):
        settle(life, graph)  # what was compared moves on
    accepted = life.taken[c.Accept]
    life.run(c.Accept(graph.id, proposal))
    if life.taken[c.Accept] > accepted:
        left = compare(graph, file).edits
        done = {*found.kept, *(slug for slug, _ in found.edits.remove)}
        assert left == Edits(remove=left.remove), "the plan is what the file says"
        assert {slug for slug, _ in left.remove} <= done, "what was done stays, and runs again with what it reads"
        assert graph.source.name == "flow"


def edited(life: Life, graph: Graph) -> list[Definition]:
    """The plan as a person would leave its file: some nodes gone, some changed, some new."""
    chance, kept = life.chance, list[Definition]()
    for definition in plan_of(graph):
        kind = chance.random()
        if kind < 0.1:
            continue
        if kind < 0.2:
            definition = replace(definition, spec=f"else {graph.rev}", timeout_ms=60_000)
        elif kind < 0.25:
            definition = replace(definition, timeout_ms=chance.choice([1000, 90_000]))
        kept.append(definition)
    slugs = tuple(definition.slug for definition in kept)
    return kept + nodes_of(chance, chance.choice([0, 0, 1, 2]), f"f{graph.rev}-", slugs[-6:])


def pass_time(life: Life, graph: Graph) -> None:
    life.tick(life.chance.choice([1, 1000, 6000, 600_000]))


def restart(life: Life, graph: Graph) -> None:
    """The daemon starts again: nobody who was connected holds anything any more."""
    life.let_go(*life.held)
    life.run(c.DaemonStarted(life.chance.randint(2, 9), "1", life.chance.choice([1, 1, 1, 6])))


ACTS: tuple[tuple[int, Act], ...] = (
    (14, settle), (7, speak), (4, other_fact), (6, answer), (4, release), (3, revise), (7, verb), (2, pass_time),
    (1, restart), (3, hold), (2, apply),
)  # fmt: skip


def live(seed: int) -> Life:
    """One life, from its seed alone."""
    life = Life(random.Random(seed))  # noqa: S311  not for secrets
    begin(life, 0)
    for step in range(STEPS):
        if step == STEPS // 2 and life.chance.random() < 0.2:
            begin(life, 1)
        if not life.state.graphs:
            break
        graph = life.chance.choice(list(life.state.graphs.values()))
        life.chance.choices([act for _, act in ACTS], [weight for weight, _ in ACTS])[0](life, graph)
    life.end()
    return life


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_random_lives(first: int) -> None:
    """Every life is its seed: `live(SEED)` plays it again."""
    taken = sum((live(seed).taken for seed in range(first, first + 250)), Counter[type[c.Command]]())
    assert taken.total() > 1500, "enough of what is asked happens"
    assert {*get_args(c.Command)} - APART - {*taken} == set(), "and of every kind"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_ten_thousand_random_lives(first: int) -> None:
    for seed in range(first, first + 500):
        live(seed)
