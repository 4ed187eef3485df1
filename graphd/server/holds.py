"""What keeps a ready node from its start, asked of the same gates as the scheduler asks. Pure."""

from collections.abc import Iterator
from typing import Final

from graphd.base.text import t
from graphd.core.admission import Gate, Gates
from graphd.core.model import Graph, Node, State
from graphd.core.schedule import writer_before
from graphd.server.project import Wire
from graphd.server.reason import Surroundings, at, why

_GATES: Final = {
    "slots": ("profileSlots", t("all slots of its agent are taken")),
    "memory": ("memory", t("its agent has no room in the memory yet")),
    "stagger": ("staggered", t("agents are started one after the other")),
}


def holds(graph: Graph, node: Node, around: Surroundings) -> list[Wire]:
    """All that holds it, the nearest first; a node that nothing holds starts with the next look at the queue."""
    found = [*_of_node(graph, node, around), *_of_graph(graph, node, around)]
    if graph.status == "active" and graph.stopping is None:
        found += [*_of_daemon(graph, around), *_of_agent(graph, node, around)]
        return found or [why("queued", t("it starts with the next free slot"), f"graphd watch {graph.id}")]
    return found or [why("held", t("its graph starts nothing now"), f"graphd status {graph.id}")]


def _of_node(graph: Graph, node: Node, around: Surroundings) -> Iterator[Wire]:
    for ask_id in graph.open_asks:
        ask = graph.asks[ask_id]
        if ask.node == node.id:
            detail = t("it waits for an answer: {title}", title=ask.title)
            yield why(ask.kind, detail, f"graphd ask {ask.id}", since=ask.opened_at, on=ask.id)
    if (graph.id, node.id) in around.capacity.held:
        yield why("takenOver", t("a person has its session"), f"graphd watch {graph.id}")
    if (graph.id, node.id) in around.capacity.elsewhere:
        yield why("sessionTaken", t("another process has its session open"), "graphd workspace list")
    if node.not_before is not None and node.not_before > around.now:
        left_s = -(-(node.not_before - around.now) // 1000)
        yield why("retryDue", t("it is tried again in {count} s", count=left_s), f"graphd watch {graph.id}")


def _of_graph(graph: Graph, node: Node, around: Surroundings) -> Iterator[Wire]:
    if graph.stepping is not None and graph.stepping != node.id:
        slug = graph.nodes[graph.stepping].slug
        detail = t("only {node} may start: it is stepped", node=slug)
        yield why("stepping", detail, f"graphd why {slug} {at(graph)}", on=slug)
    writer = writer_before(graph, node) if node.definition.writes else None
    if writer is not None:
        detail = t("{node} writes the same files: one goes after the other", node=writer.slug)
        yield why("writes", detail, f"graphd why {writer.slug} {at(graph)}", on=writer.slug)
    if graph.replaces is not None and graph.replaces in around.state.graphs:
        detail = t("the graph that it replaces still has processes")
        yield why("replaces", detail, f"graphd status {graph.replaces}", on=graph.replaces)
    if graph.counts.get("running", 0) >= graph.limits.concurrency:
        detail = t("all {limit} slots of its graph are taken", limit=graph.limits.concurrency)
        yield why("graphSlots", detail, f"graphd watch {graph.id}")


def _of_daemon(graph: Graph, around: Surroundings) -> Iterator[Wire]:
    if around.store_health != "ok":
        yield why(
            "storeUnavailable", t("the store is {health}: nothing is started", health=around.store_health),
            "graphd doctor",
        )  # fmt: skip
    if around.state.running >= around.capacity.concurrency:
        detail = t("all {limit} slots of the daemon are taken", limit=around.capacity.concurrency)
        yield why("slots", detail, "graphd processes")


def _of_agent(graph: Graph, node: Node, around: Surroundings) -> Iterator[Wire]:
    worker = node.definition.worker
    profile = dict(around.capacity.profiles).get(worker)
    if profile is None:
        detail = t("no installed agent serves worker {worker}", worker=worker)
        yield why("agentMissing", detail, "graphd agents", on=worker)
        return
    gate = Gates(around.state, around.capacity, around.now).hold(profile)
    if gate is not None:
        yield _gate(graph, around.state, profile, gate, now=around.now)
    if graph.budget is not None:
        from graphd.core.budget import admission

        if not admission(around.state, graph, profile, around.capacity, now=around.now).is_admitted:
            detail = t("what runs may use up the budget: the next one starts when that is known")
            yield why("budget", detail, f"graphd status {graph.id}")


def _gate(graph: Graph, state: State, profile: str, gate: Gate, *, now: int) -> Wire:
    if gate != "rest":
        code, detail = _GATES[gate]
        return why(code, detail, "graphd processes", on=profile)
    rest = state.cooling[profile]
    detail = t(
        "{agent} rests for {count} s: {reason}", agent=profile, count=-(-(rest.until - now) // 1000), reason=rest.reason
    )  # fmt: skip
    return why("coolingDown", detail, f"graphd watch {graph.id}", since=rest.since, on=profile)
