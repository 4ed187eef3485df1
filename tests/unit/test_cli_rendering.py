"""What people see of a graph: the tree, what is folded away, the live screen, plain lines, the closing words."""

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from graphd.cli.closing import also, closing, final_output, is_at_rest
from graphd.cli.exits import code_of_graph
from graphd.cli.oracle import tally
from graphd.cli.plain import PlainLines
from graphd.cli.screen import Screen
from graphd.cli.shelf import nodes_of, slug_of, title_of
from graphd.cli.steering import Face, Steering
from graphd.cli.tree import arranged, fitted, lines_of
from graphd.cli.words import duration, harmless, last_line, seconds_of
from graphd_protocol.model import Limits, Node, Retry, Snapshot, Source, Spending, Spent

NOW = 1_700_000_060_000
BEGUN = NOW - 60_000
GRAPH = "0198c1d2-3f4a-7000-8000-000000000001"
Wire = dict[str, Any]


def node(slug: str, state: str = "waiting", needs: tuple[str, ...] = (), **more: Any) -> Wire:
    """A node as the wire has it, checked by the wire's own model."""
    value = Node(
        id=f"gn-{slug}", slug=slug, title=slug, spec=more.pop("spec", "true"), worker="shell", needs=list(needs),
        required=more.pop("required", False), state=state, attempts=more.pop("attempts", 0), rounds=0,
        timeout_ms=600_000, retry=Retry(), report_to_parent=False, priority=0, changed_at=1, spent=Spent(),
        **{"started_at": BEGUN if state != "waiting" else None, **more},
    )  # fmt: skip
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def snapshot(*nodes: Wire, status: str = "active", **more: Any) -> Wire:
    """A graph as the wire has it."""
    counts: dict[str, int] = {}
    for one in nodes:
        counts[one["state"]] = counts.get(one["state"], 0) + 1
    value = Snapshot(
        id=GRAPH, title=more.pop("title", "checkup"), objective="", status=status, plan_version=1, rev=7,
        counts=counts, spent=Spending(), limits=Limits(), workspace="/w", source=Source(kind="nodes"),
        created_at=BEGUN, updated_at=NOW, nodes=[Node.model_validate(one) for one in nodes], history=[],
        **more,
    )  # fmt: skip
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def diamond(**states: str) -> Wire:
    names = {"discover": (), "lint": ("discover",), "tests": ("discover",), "report": ("lint", "tests")}
    return snapshot(*(node(slug, states.get(slug, "waiting"), needs) for slug, needs in names.items()))


def drawn(value: Wire, *, width: int = 80, height: int = 24, activity: dict[str, Wire] | None = None) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False, highlight=False)
    screen = Screen(console, lambda: NOW)
    screen.show(value, activity or {})
    console.print(screen.frame(value))
    return out.getvalue().splitlines()


def drawn_with(face: Face, steering: Steering, *, width: int = 80, height: int = 24) -> list[str]:
    """The screen with a face, at its last value; its lines are no wider than it."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False, highlight=False)
    screen = Screen(console, lambda: NOW)
    screen.face = face
    assert steering.snapshot is not None
    screen.show(steering.snapshot, {})
    console.print(screen.frame(steering.snapshot))
    lines = out.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    return lines


# ---- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0.0s"), (400, "0.4s"), (9949, "9.9s"), (12_000, "12s"), (59_900, "1m 00s"), (64_000, "1m 04s"),
     (3_600_000, "1h 00m"), (7_500_000, "2h 05m"), (-5, "0.0s")],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(ms: int, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("2h", 7200), ("1m30s", 90), ("90", 90)])
def test_durations_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "soon", "-3s", "5 parsecs", "1s2m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of(text)


def test_text_of_children_cannot_reach_the_terminal() -> None:
    hostile = "a\x1b[2J\x1b]0;title\x07b\x9b31m\u202ec\x00d\n"

    assert harmless(hostile) == "ab31mcd\n"


def test_the_last_line_is_what_a_terminal_would_show() -> None:
    assert last_line("one\n10%\r50%\r100%\n\n") == "100%"
    assert last_line("\n\n") == ""


# ---- tree ----------------------------------------------------------------------------------------------------------


def test_nodes_come_in_plan_order_but_never_before_what_they_need() -> None:
    placed = arranged([node("report", needs=("b",)), node("a"), node("b", needs=("a",)), node("c")])

    assert [(n["slug"], wave) for n, wave in placed] == [("a", 0), ("b", 1), ("report", 2), ("c", 0)]


def test_a_long_chain_is_arranged_without_recursion() -> None:
    chain = [node(f"n{i}", needs=(f"n{i - 1}",) if i else ()) for i in range(1000)]

    assert arranged(chain[::-1])[-1][1] == 999


def test_the_stems_draw_a_tree() -> None:
    lines = lines_of(diamond(), {}, NOW)

    assert [line.stem + line.slug for line in lines] == ["discover", "├ lint", "└ tests", "  └ report"]


def test_every_state_has_its_note() -> None:
    value = snapshot(
        node("done", "achieved", output={"text": "a\nall good\n", "total": 11, "media_type": "text/plain"}),
        node("bad", "failed", failure={"class": "exec_failed", "reason": "exit code 3"}, attempts=2),
        node("hung", "running", phase="stuck"),
        node("busy", "running"),
        node("later", "ready", not_before=NOW + 4000),
        node("behind", "blocked", ("bad",), blocked_by="bad"),
        node("never", "skipped", ("bad",), skip="no_input"),
        node("next", "waiting", ("busy", "done")),
        node("gone", "cancelled", cancel_reason="by a person"),
        node("removed", "cancelled", cancel_reason="removed: not needed", removed_in=2),
    )

    lines = {line.slug: line for line in lines_of(value, {"busy": {"lastLine": "50%\r99%", "phase": "working"}}, NOW)}

    assert {slug: line.note for slug, line in lines.items()} == {
        "done": "all good", "bad": "exec_failed: exit code 3", "hung": "stuck", "busy": "99%",
        "later": "again in 4.0s", "behind": "behind bad", "never": "nothing that it needs was achieved",
        "next": "needs busy", "gone": "by a person",
    }  # fmt: skip
    assert lines["hung"].state == "stuck"
    assert lines["bad"].attempt == "2/5"
    assert lines["busy"].time == "1m 00s"


def test_what_an_earlier_attempt_said_is_not_shown_of_a_node_that_waits_again() -> None:
    value = snapshot(node("again", "ready"))

    assert lines_of(value, {"again": {"lastLine": "old", "phase": "working"}}, NOW)[0].note == ""


def test_two_hundred_nodes_fit_and_nothing_that_matters_is_folded_away() -> None:
    nodes = [node(f"done-{i}", "achieved") for i in range(120)]
    nodes += [node("bad", "failed"), node("busy", "running"), node("slow", "running")]
    nodes += [node(f"next-{i}", "waiting") for i in range(77)]

    lines = fitted(lines_of(snapshot(*nodes), {}, NOW), 20)

    assert [line.slug for line in lines] == ["120 done", "bad", "busy", "slow", "77 waiting"]


def test_with_no_room_at_all_what_runs_comes_first_and_the_rest_is_counted() -> None:
    nodes = [node(f"n{i}", ("running", "achieved", "waiting")[i % 3]) for i in range(60)]

    lines = fitted(lines_of(snapshot(*nodes), {}, NOW), 6)

    assert len(lines) == 6
    assert {line.state for line in lines[:-1]} == {"running"}
    assert sum(line.count for line in lines) == 60


def test_a_node_that_is_looked_at_is_never_folded_away() -> None:
    nodes = [node(f"done-{i}", "achieved") for i in range(50)] + [node(f"busy-{i}", "running") for i in range(50)]
    lines = lines_of(snapshot(*nodes), {}, NOW)

    assert "done-7" in [line.slug for line in fitted(lines, 60, keep=["done-7"])]
    for keep in ("done-7", "busy-49"):
        tight = fitted(lines, 6, keep=[keep, "done-3"])
        assert keep in [line.slug for line in tight]
        assert (len(tight), sum(line.count for line in tight)) == (6, 100)


# ---- screen and plain lines ----------------------------------------------------------------------------------------


def test_the_screen_shows_title_nodes_and_counts() -> None:
    lines = drawn(diamond(discover="achieved", lint="running"), activity={"lint": {"lastLine": "checking a.py"}})

    assert lines[0].split() == ["checkup", "running", "1", "of", "4", "1m", "00s"]
    assert "✓ discover" in lines[1]
    assert lines[2].endswith("checking a.py")
    assert "needs lint, tests" in lines[4]
    assert lines[5].strip() == "1 running, 2 waiting, 1 achieved"


@pytest.mark.parametrize("width", [20, 40, 200])
def test_no_line_is_wider_or_the_picture_higher_than_the_terminal(width: int) -> None:
    nodes = [node(f"node-with-a-long-name-{i}", "running") for i in range(50)]
    activity = {n["slug"]: {"lastLine": "長い行" * 60} for n in nodes}

    lines = drawn(snapshot(*nodes), width=width, height=12, activity=activity)

    assert len(lines) <= 12
    assert max(cell_len(line) for line in lines) <= width


def test_plain_lines_tell_each_change_once() -> None:
    out = io.StringIO()
    plain = PlainLines(out, lambda: NOW)
    for value in (diamond(), diamond(discover="running"), diamond(discover="running"), diamond(discover="achieved")):
        plain.show(value, {})

    assert [line.split()[:2] for line in out.getvalue().splitlines()] == [
        ["checkup:", "running"], ["running", "discover"], ["achieved", "discover"],
    ]  # fmt: skip


# ---- the end -------------------------------------------------------------------------------------------------------


SHORT = GRAPH[:13]
ENDS = [
    ("complete", {"outcome": "ok"}, "achieved", 0, f"graphd output --graph {SHORT}"),
    ("complete", {"outcome": "withFailures"}, "failed", 1, f"graphd why a --graph {SHORT}"),
    ("blocked", {"pause_reason": "a failed"}, "failed", 1, f"graphd why a --graph {SHORT}"),
    ("cancelled", {}, "cancelled", 3, f"graphd history {SHORT}"),
    ("budget_limited", {"pause_reason": "spent"}, "ready", 4, f"graphd resume {SHORT}"),
    ("infra_paused", {"pause_reason": "lost"}, "ready", 5, f"graphd resume {SHORT}"),
    ("infra_paused", {"pause_reason": "stuck"}, "running", 5, f"graphd why a --graph {SHORT}"),
    ("user_paused", {"pause_reason": "a person"}, "ready", 7, f"graphd resume {SHORT}"),
]


@pytest.mark.parametrize(("status", "more", "state", "code", "command"), ENDS)
def test_every_end_has_its_exit_code_and_a_line_to_paste(
    status: str, more: Wire, state: str, code: int, command: str
) -> None:
    value = snapshot(node("a", state, phase="stuck" if state == "running" else None), status=status, **more)

    assert code_of_graph(value) == code
    assert closing(value)[1] == command
    assert is_at_rest(value)


def test_failures_can_be_allowed_but_a_rejection_cannot() -> None:
    failed = snapshot(node("a", "failed"), status="complete", outcome="withFailures")
    rejected = snapshot(node("a", "achieved"), status="complete", outcome="rejected")

    assert code_of_graph(failed, allow_failures=True) == 0
    assert code_of_graph(rejected, allow_failures=True) == 1
    assert also(failed) == "graphd retry --all 0198c1d2-3f4a"


def test_a_graph_is_not_at_rest_while_something_still_moves() -> None:
    assert not is_at_rest(diamond())
    assert not is_at_rest(snapshot(node("a", "running"), status="user_paused", pause_reason="a person"))
    assert not is_at_rest(snapshot(node("a", "running", phase="working"), status="infra_paused", pause_reason="lost"))


def test_the_result_is_the_delivery_node_or_the_only_sink() -> None:
    assert final_output(diamond()) == "report"
    assert final_output(snapshot(node("a"), node("b"))) is None
    assert final_output(snapshot(node("a"), node("b"), delivery_node="b")) == "b"


# ---- --sh, --then, the oracle --------------------------------------------------------------------------------------


def test_then_needs_what_nothing_needs_yet() -> None:
    nodes = nodes_of(
        [("sh", "make lint"), ("sh", "make test"), ("then", "./deploy.sh x"), ("sh", "date"), ("then", "ls")]
    )

    assert [(n["slug"], n.get("needs")) for n in nodes] == [
        ("make", None), ("make-2", None), ("deploy-sh", ["make", "make-2"]), ("date", None),
        ("ls", ["deploy-sh", "date"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "slug"),
    [("FOO=1 /usr/bin/env x", "env"), ("true", "sh-true"), ("  ", "step"), ("!!", "step"), ("gn-x", "sh-gn-x"),
     ("ls; date", "ls"), ("前 x", "step")],
)  # fmt: skip
def test_a_node_is_named_after_its_first_word(script: str, slug: str) -> None:
    assert slug_of(script) == slug


def test_the_title_is_the_commands() -> None:
    assert (
        title_of([("sh", "make  lint"), ("sh", "make test"), ("then", "./deploy")]) == "make lint, make test → ./deploy"
    )
    assert len(title_of([("sh", "x" * 500)])) == 72


def test_the_witness_tells_a_second_start_from_two_alive_at_once() -> None:
    again = ["start a 1", "beat a 1", "start a 2", "beat a 2", "end a 2", "start b 1", "end b 1"]
    doubled = ["start a 1", "start a 2", "beat a 1", "end a 2"]

    assert tally(again, ["a", "b"]).started_again == ("a",)
    assert tally(again, ["a", "b"]).double_live == ()
    assert tally(again, ["a", "b", "c"]).never_ended == ("c",)
    assert tally(doubled, ["a"]).double_live == ("a",)
