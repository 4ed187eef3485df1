"""The verb `signal`: something happened outside, and whoever waits for it goes on (protocol.md, `signal`).

A signal is for what is there: every live graph with a wait for this name. One that comes before its node waits is kept
for that node, the newest one where several come, so that nothing depends on who is first. Graphs that are set
later do not see it.
"""

from graphd.core.commands import Done, Signal
from graphd.core.draft import Draft
from graphd.core.early import signal_output
from graphd.core.events import Actor
from graphd.core.model import Graph, Node, State
from graphd.core.settle import achieve, conclude, ripple
from graphd.core.tape import Tape


def signal(state: State, tape: Tape, command: Signal, actor: Actor, *, now: int) -> tuple[list[Draft], Done]:
    """One change for each graph that waits, or will; the answer names the nodes."""
    drafts: list[Draft] = []
    woke: list[tuple[str, str]] = []
    kept: list[tuple[str, str]] = []
    for graph in list(state.graphs.values()):
        nodes = [node for node in graph.nodes.values() if _is_for(node, command.name)] if _takes(graph) else []
        if not nodes:
            continue
        draft = Draft(state, tape, graph.id, now=now, actor=actor, operation="signal")
        drafts.append(draft)
        for node in nodes:
            if node.state == "running":
                woke.append((graph.id, node.slug))
                ripple(draft, achieve(draft, node, signal_output(command.payload)))
            else:
                kept.append((graph.id, node.slug))
                draft.emit("signal_kept", node, payload=command.payload)
        conclude(draft)
    return drafts, Done(None, 0, woke=tuple(woke), kept=tuple(kept))


def _takes(graph: Graph) -> bool:
    wish = graph.stopping.verb if graph.stopping is not None else None
    return not graph.is_ended and wish not in ("cancel", "clear")


def _is_for(node: Node, name: str) -> bool:
    wait = node.definition.wait
    return wait is not None and wait.signal == name and node.state in ("waiting", "ready", "running", "blocked")
