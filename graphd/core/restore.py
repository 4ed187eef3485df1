"""Bring a loaded state to life. Nothing is guessed: unsettled attempts stay unsettled until the supervisor
has looked at them.
"""

from graphd.core.derive import rebuild, rebuild_state
from graphd.core.model import State


def restore(state: State) -> None:
    """Recompute all derived fields after a load from a base and its later events."""
    for graph in state.graphs.values():
        rebuild(graph)
    rebuild_state(state)
