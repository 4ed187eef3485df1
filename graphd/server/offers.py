"""The verbs that a view offers for a graph as it stands: those that the daemon would admit. Pure.

Source: spec model.md, Verbs.
"""

from graphd.core.model import Graph
from graphd_protocol.states import VERB_TABLE


def verbs_for(graph: Graph) -> frozenset[str]:
    """Of pause, resume, retry (of all that failed), replan and cancel those that make sense now."""
    is_offered = {
        "pause": admits(graph, "pause") and graph.status != "user_paused",
        "resume": _can_go_on(graph),
        "retry": admits(graph, "retry") and bool(graph.counts.get("failed") or graph.counts.get("blocked")),
        "replan": admits(graph, "replan"),
        "cancel": not graph.is_ended and (graph.stopping is None or graph.stopping.verb == "pause"),
    }
    return frozenset(verb for verb, is_so in is_offered.items() if is_so)


def admits(graph: Graph, verb: str) -> bool:
    """The verb table does, and no wish to stop stands."""
    return graph.stopping is None and VERB_TABLE[verb][graph.status] != "no"


def _can_go_on(graph: Graph) -> bool:
    has_work = any(graph.counts.get(state) for state in ("ready", "running", "waiting"))
    return has_work and admits(graph, "resume") and graph.status != "budget_limited"
