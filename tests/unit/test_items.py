"""`for_each`: one node per item of a list, joined in item order; retried, revised and named as the spec says."""

import json
from typing import Any

import pytest

from graphd.core.commands import Cancel, DaemonStarted, Finish, Pause, Resume, RetryNodes
from graphd.core.definition import Approval, ForEach, Gate
from graphd.core.events import Refused
from graphd.core.items import items_of
from graphd.core.model import Limits
from graphd_protocol.ids import node_id
from tests.unit.core_drive import ME, Drive, G, define, end, ended, graph_of, live_key, node, plan, states


def each(slug: str = "each", *needs: str, source: str = "list.output", most: int = 50, **more: Any) -> Any:
    return define(slug, *(needs or ("list",)), for_each=ForEach(source, "x", most), **more)


def listed(values: Any, *definitions: Any, media: str | None = None, **more: Any) -> Drive:
    """A graph whose first node put out `values`; a text goes out as it is."""
    drive = Drive()
    limits = more.pop("limits", None) or Limits(concurrency=10)
    drive.run(plan(G, define("list"), *(definitions or (each(),)), define("sum", "each"), limits=limits, **more))
    end(drive, "list", values if isinstance(values, str) else json.dumps(values))
    return drive


def output(drive: Drive, slug: str) -> Any:
    found = node(drive, slug).output
    assert found is not None
    return json.loads(found.text)


def test_a_list_becomes_one_node_per_item_in_the_change_that_starts_the_node() -> None:
    drive = listed(["a", {"b": 1}])
    assert states(graph_of(drive)) == {
        "list": "achieved", "each": "running", "sum": "waiting", "each-1": "running", "each-2": "running",
    }  # fmt: skip
    items = [node(drive, slug).definition.item for slug in ("each-1", "each-2")]
    assert [(i.of, i.index, i.value) for i in items if i] == [("each", 1, '"a"'), ("each", 2, '{"b": 1}')]
    assert node(drive, "each").attempts == 0
    assert [key[0] for key in graph_of(drive).live] == [node_id("each-1"), node_id("each-2")]
    assert drive.state.running == 2


def test_the_list_is_joined_in_item_order_with_null_for_what_was_not_achieved() -> None:
    drive = listed([1, 2, 3, 4], each(required=False))
    end(drive, "each-4", "four\n")
    end(drive, "each-2", None, "failed")
    end(drive, "each-1", '{"n": 1}')
    assert states(graph_of(drive))["each"] == "running"
    end(drive, "each-3")
    assert output(drive, "each") == ['{"n": 1}', None, None, "four"]
    assert states(graph_of(drive))["sum"] == "running"


def test_a_result_that_is_json_is_a_value_of_the_list() -> None:
    from graphd.core.items import value_of

    assert value_of('{"n": 1}', "application/json; charset=utf-8") == {"n": 1}
    assert value_of('{"n": ', "application/json") == '{"n": '
    assert value_of("1\n", "text/plain") == "1"


def test_required_wants_all_items_and_optional_wants_one() -> None:
    drive = listed([1, 2])
    end(drive, "each-1")
    end(drive, "each-2", None, "failed", failure_class="exec_failed", reason="no")
    failure = node(drive, "each").failure
    assert failure is not None
    assert (failure.failure_class, failure.reason) == ("exec_failed", "1 of 2 items were not achieved; each-2: no")
    assert graph_of(drive).status == "blocked"
    optional = listed([1, 2], each(required=False))
    end(optional, "each-1", None, "failed")
    end(optional, "each-2", None, "failed", failure_class="verdict_fail")
    assert states(graph_of(optional))["each"] == "failed"


def test_the_failure_of_an_item_alone_blocks_nothing() -> None:
    drive = listed([1, 2], each(required=False))
    end(drive, "each-1", None, "failed")
    end(drive, "each-2", "x")
    end(drive, "sum")
    assert (graph_of(drive).status, graph_of(drive).outcome) == ("complete", "withFailures")


def test_an_empty_list_gives_an_empty_list() -> None:
    drive = listed([])
    assert output(drive, "each") == []
    assert states(graph_of(drive)) == {"list": "achieved", "each": "achieved", "sum": "running"}


@pytest.mark.parametrize(
    ("text", "failure_class", "said"),
    [
        ("[1,2,3,4]", "limit", "4 items; at most 3"), ('{"a": [1]}', "verdict_fail", "is no list"),
        ("none", "verdict_fail", "not JSON"),
        ("[" * 100_000, "verdict_fail", "not JSON"), ("7", "verdict_fail", "no list"),
    ],
)  # fmt: skip
def test_without_a_list_of_bearable_length_the_node_fails(text: str, failure_class: str, said: str) -> None:
    drive = listed(text, each(most=3))
    failure = node(drive, "each").failure
    assert failure is not None
    assert failure.failure_class == failure_class
    assert said in failure.reason
    assert states(graph_of(drive))["sum"] == "blocked"


def test_the_list_may_lie_inside_the_output() -> None:
    drive = listed({"a": {"b": [1]}}, each(source="list.output.a.b"))
    assert "each-1" in states(graph_of(drive))
    missing = listed({"a": 1}, each(source="list.output.a.b"))
    assert states(graph_of(missing))["each"] == "failed"


def test_an_output_that_is_not_all_there_is_no_list() -> None:
    drive = Drive()
    drive.run(plan(G, define("list", required=False), define("b"), each("each", "list", "b")))
    end(drive, "list", None, "failed")
    end(drive, "b")
    failure = node(drive, "each").failure
    assert failure is not None
    assert "has no output" in failure.reason
    cut = Drive()
    cut.run(plan(G, define("list"), each()))
    fact = ended(graph_of(cut), "list", text="[1]")
    assert fact.output is not None
    fact.output.is_cut = True
    cut.run(fact)
    failure = node(cut, "each").failure
    assert failure is not None
    assert "64 KiB" in failure.reason


def test_items_count_as_nodes_of_the_graph() -> None:
    drive = listed([1, 2, 3], limits=Limits(max_nodes=5))
    failure = node(drive, "each").failure
    assert failure is not None
    assert failure.failure_class == "limit"
    assert "1 more nodes than the 5" in failure.reason


def test_a_name_that_is_taken_gets_a_number_behind_it() -> None:
    drive = listed(["x"], each(), define("each-1", required=False), define("each-1-2", required=False))
    assert "each-1-3" in states(graph_of(drive))
    assert node(drive, "each-1").definition.item is None
    name = "e" * 61
    long = listed(["x"], define("each", required=False), define(f"{name}-1", required=False), each(name, most=9))
    assert f"{name}-2" in states(graph_of(long))  # `-1` would have made it too long


def test_an_item_may_start_only_with_a_slot_and_the_node_itself_takes_none() -> None:
    drive = listed([1, 2, 3], limits=Limits(concurrency=1))
    assert list(states(graph_of(drive)).values()).count("running") == 2  # the node, and one item
    end(drive, "each-1")
    end(drive, "each-2")
    end(drive, "each-3")
    assert states(graph_of(drive))["sum"] == "running"


def test_items_are_made_once_over_a_crash() -> None:
    drive = listed([1, 2])
    drive.run(DaemonStarted(2, "0", 1))
    assert len(graph_of(drive).nodes) == 5
    end(drive, "each-1")
    drive.run(DaemonStarted(3, "0", 1))
    end(drive, "each-2")
    assert states(graph_of(drive))["each"] == "achieved"


def test_a_paused_graph_makes_no_items_and_one_that_pauses_keeps_joining() -> None:
    drive = Drive()
    drive.run(plan(G, define("list"), each()))
    drive.run(Pause(G))
    end(drive, "list", "[1, 2]")
    assert states(graph_of(drive)) == {"list": "achieved", "each": "ready"}
    drive.run(Resume(G))
    drive.run(Pause(G, "stop"))
    for slug in ("each-1", "each-2"):
        end(drive, slug, None, "failed")
    assert states(graph_of(drive)) == {"list": "achieved", "each": "running", "each-1": "ready", "each-2": "ready"}
    assert graph_of(drive).status == "user_paused"


def test_retry_of_the_node_tries_its_failed_items_again() -> None:
    drive = listed([1, 2, 3])
    end(drive, "each-1", "one")
    end(drive, "each-2", None, "failed")
    end(drive, "each-3", None, "failed")
    drive.run(RetryNodes(G, "each"), ME)
    assert states(graph_of(drive)) == {
        "list": "achieved", "each": "running", "sum": "waiting", "each-1": "achieved", "each-2": "running",
        "each-3": "running",
    }  # fmt: skip
    end(drive, "each-2", "two")
    end(drive, "each-3", "three")
    assert output(drive, "each") == ["one", "two", "three"]
    assert graph_of(drive).status == "active"


def test_retry_of_an_item_joins_again_and_of_a_joined_one_is_refused() -> None:
    drive = listed([1, 2])
    end(drive, "each-1", "one")
    end(drive, "each-2", None, "failed")
    drive.run(RetryNodes(G, "each-2"), ME)
    assert states(graph_of(drive))["each"] == "running"
    end(drive, "each-2", "two")
    assert states(graph_of(drive))["each"] == "achieved"
    optional = listed([1, 2], each(required=False))
    end(optional, "each-1", None, "failed")
    end(optional, "each-2", "x")
    with pytest.raises(Refused, match="each is achieved without it"):
        optional.run(RetryNodes(G, "each-1"), ME)
    with pytest.raises(Refused, match="no node failed"):
        optional.run(RetryNodes(G), ME)


def test_an_item_can_be_tried_again_while_the_others_run() -> None:
    drive = listed([1, 2])
    end(drive, "each-1", None, "failed")
    drive.run(RetryNodes(G, "each-1"), ME)
    assert states(graph_of(drive))["each-1"] == "running"


def test_retry_all_tries_node_and_items() -> None:
    drive = listed([1, 2])
    end(drive, "each-1", None, "failed")
    end(drive, "each-2", None, "failed")
    drive.run(RetryNodes(G), ME)
    assert [states(graph_of(drive))[s] for s in ("each", "each-1", "each-2")] == ["running"] * 3


def test_cancel_ends_the_node_at_once_and_its_items_with_their_trees() -> None:
    drive = listed([1, 2])
    drive.run(Cancel(G))
    assert states(graph_of(drive))["each"] == "cancelled"
    for slug in ("each-1", "each-2"):
        end(drive, slug, "late")
    assert graph_of(drive).status == "cancelled"


def test_finish_skips_items_that_have_not_started_and_joins_what_there_is() -> None:
    drive = listed([1, 2], each(required=False), limits=Limits(concurrency=1))
    drive.run(Finish(G, "enough"), ME)
    end(drive, "each-1", "one")
    assert output(drive, "each") == ["one", None]
    assert graph_of(drive).status == "complete"
    idle = listed([1], each(required=False))
    idle.run(Pause(G, "stop"))
    end(idle, "each-1", None, "failed")
    idle.run(Finish(G, "enough"), ME)
    assert states(graph_of(idle))["each"] == "failed"
    assert graph_of(idle).status == "complete"


def revised(first: Any, second: Any) -> Drive:
    """A list whose items were judged and sent back; the list is read again."""
    drive = Drive()
    drive.run(
        plan(G, define("list"), each(), define("review", "each", gate=Gate("list")), limits=Limits(concurrency=9))
    )
    end(drive, "list", json.dumps(first))
    for slug in [s for s, state in states(graph_of(drive)).items() if s.startswith("each-")]:
        end(drive, slug, "old")
    end(drive, "review", '{"verdict": "REVISE", "findings": "again"}')
    assert {s: state for s, state in states(graph_of(drive)).items() if s != "list"} == dict.fromkeys(
        [s for s in states(graph_of(drive)) if s != "list"], "waiting"
    )
    end(drive, "list", json.dumps(second))
    return drive


def test_a_revision_reads_the_list_anew_and_works_on_every_item_again() -> None:
    drive = revised(["a", "b"], ["a", "c", "d"])
    found = items_of(graph_of(drive), node(drive, "each"))
    assert [(n.slug, n.state, n.definition.item.value) for n in found if n.definition.item] == [
        ("each-1", "running", '"a"'), ("each-2", "running", '"c"'), ("each-3", "running", '"d"'),
    ]  # fmt: skip
    assert node(drive, "each-2").attempts == 2
    assert node(drive, "each-1").findings == "again"


def test_a_list_that_got_shorter_takes_its_items_away_and_one_that_grows_again_makes_new_ones() -> None:
    drive = revised(["a", "b"], ["a"])
    assert states(graph_of(drive))["each-2"] == "cancelled"
    assert (node(drive, "each-2").cancel_reason or "").startswith("removed: ")
    end(drive, "each-1", "x")
    assert output(drive, "each") == ["x"]
    end(drive, "review", '{"verdict": "REVISE"}')
    end(drive, "list", '["a", "b"]')
    assert states(graph_of(drive))["each-2"] == "cancelled"
    assert states(graph_of(drive))["each-2-2"] == "running"
    end(drive, "each-1", "x")
    end(drive, "each-2-2", "y")
    assert output(drive, "each") == ["x", "y"]


def test_a_revision_of_the_node_itself_does_its_items_again() -> None:
    drive = Drive()
    drive.run(plan(G, define("list"), each(), define("review", "each", gate=Gate("each"))))
    end(drive, "list", '["a"]')
    end(drive, "each-1", "x")
    end(drive, "review", '{"verdict": "REVISE"}')
    assert states(graph_of(drive)) == {"list": "achieved", "each": "running", "review": "waiting", "each-1": "running"}


def test_an_approval_comes_once_before_the_items() -> None:
    drive = listed([1, 2], each(approval=Approval("all of them?")))
    assert states(graph_of(drive))["each"] == "ready"
    assert len(graph_of(drive).open_asks) == 1


def test_a_changed_item_that_had_settled_is_worked_on_again() -> None:
    """As after an import, or a restart of the node alone."""
    from graphd.core.draft import Draft
    from graphd.core.events import DAEMON
    from graphd.core.items import expand

    drive = listed(["a", "b"])
    end(drive, "each-1", "x")
    end(drive, "each-2", None, "failed")
    drive.run(RetryNodes(G, "each"))
    drive.run(Pause(G))
    end(drive, "each-2", None, "failed")
    draft = Draft(drive.state, drive.tape, G, now=drive.now, actor=DAEMON, operation="retry")
    for slug in ("each", "sum"):
        draft.emit("node_retried", node(drive, slug))
    draft.emit("node_ready", node(drive, "each"))
    found = node(drive, "list").output
    assert found is not None
    found.text = '["z", "b"]'
    expand(draft, node(drive, "each"), ForEach("list.output", "x"))
    assert (states(graph_of(drive))["each-1"], states(graph_of(drive))["each-2"]) == ("waiting", "failed")


def test_a_long_list_of_results_is_cut_and_says_so() -> None:
    drive = listed([1, 2], limits=Limits(concurrency=2))
    end(drive, "each-1", "é" * 30_000)
    end(drive, "each-2", "é" * 30_000)
    found = node(drive, "each").output
    assert found is not None
    assert found.is_cut
    assert len(found.text.encode()) <= 65_536 < found.total_bytes


def test_a_failed_list_is_delivered_to_its_owner_as_any_result() -> None:
    drive = listed([1], each(report_to_parent=True), owner="agent:a:b:c")
    end(drive, "each-1", "x")
    kinds = [(d.node, d.kind) for d in graph_of(drive).deliveries.values()]
    assert kinds == [(node_id("each"), "result")]
    assert live_key(graph_of(drive), "sum")
