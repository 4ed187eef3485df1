"""Deliveries: written with what settles, for owners alone, acknowledged once."""

from graphd.core.commands import Acknowledge, Cancel
from graphd_protocol.ids import node_id
from tests.unit.core_drive import Drive, G, define, ended, plan, refused


def test_deliveries_are_written_with_what_settles_and_acknowledged_once() -> None:
    drive = Drive()
    rows = [
        define("a", report_to_parent=True, required=False), define("b", report_to_parent=True, required=False),
        define("c", required=False),
    ]  # fmt: skip
    drive.run(plan(G, *rows, owner="agent:x", delivery_node="c"))
    graph = drive.state.graphs[G]
    drive.run(ended(graph, "a", text="fine"))
    drive.run(ended(graph, "b", "failed", reason="broken"))
    drive.run(ended(graph, "c", text="\u00e9" * 40_000))
    rows_made = [(d.kind, d.node, d.text[:6]) for d in graph.deliveries.values()]
    assert rows_made == [
        ("result", node_id("a"), "fine"),
        ("failure", node_id("b"), "broken"),
        ("end", None, "\u00e9" * 6),
    ]
    assert all(len(d.text.encode()) <= 65_536 for d in graph.deliveries.values())
    first = next(iter(graph.deliveries))
    drive.run(Acknowledge(G, (first,)))
    assert graph.deliveries[first].is_acknowledged
    drive.run(Acknowledge(G, (first,)))
    assert drive.changes == []
    assert refused(drive, Acknowledge(G, (first, "nobody"))).code == "notFound"


def test_a_graph_without_an_owner_delivers_nothing_and_one_without_a_result_says_how_it_ended() -> None:
    drive = Drive()
    drive.run(plan(G, define("a", report_to_parent=True)))
    drive.run(ended(drive.state.graphs[G], "a", text="x"))
    assert drive.state.graphs[G].deliveries == {}
    drive.run(plan("h", define("a", report_to_parent=True), owner="agent:x"))
    drive.run(ended(drive.state.graphs["h"], "a"))
    assert [(d.kind, d.text) for d in drive.state.graphs["h"].deliveries.values()] == [
        ("result", ""),
        ("end", "h: complete ok"),
    ]
    drive.run(plan("i", define("a", report_to_parent=True), owner="agent:z"))
    drive.run(Cancel("i", "tea"))
    drive.run(ended(drive.state.graphs["i"], "a", "failed"))
    assert [(d.kind, d.text) for d in drive.state.graphs["i"].deliveries.values()] == [("end", "i: cancelled")]
