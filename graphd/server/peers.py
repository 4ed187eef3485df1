"""Whose process is at the other end: one below a keeper of ours belongs to that keeper's attempt, whatever it says.

A guard rail within one user, not a wall. Source: spec protocol.md (`principal`); research security.md §3.2.
"""

import hmac
from pathlib import Path
from typing import Final

from graphd.core.model import State
from graphd.server.hello import AttemptRef

PARENTS_LIMIT: Final = 64


def attempt_of_peer(pid: int | None, state: State, *, proc: Path = Path("/proc")) -> AttemptRef | None:
    """The live attempt that a process belongs to, by its parents, else by the cookie in its environment."""
    if pid is None:
        return None
    by_pid: dict[int, AttemptRef] = {}
    by_cookie: dict[str, AttemptRef] = {}
    for graph in state.graphs.values():
        for key in graph.live:
            attempt = graph.attempts[key]
            reference = (graph.id, attempt.node, attempt.number, str(attempt.role))
            by_cookie[attempt.cookie] = reference
            if attempt.identity is not None:
                by_pid[attempt.identity.pid] = reference
                if attempt.identity.keeper_pid:
                    by_pid[attempt.identity.keeper_pid] = reference
    if not by_cookie:
        return None
    return _by_parents(pid, by_pid, proc) or by_cookie.get(_cookie(pid, proc).partition("/")[2])


def attempt_of_token(token: str, state: State, folder: Path) -> AttemptRef | None:
    """The live attempt whose folder holds this token; a child keeps its own over any number of daemons."""
    given = token.strip().encode()
    for graph in state.graphs.values():
        for key in graph.live:
            attempt = graph.attempts[key]
            try:
                kept = (folder / "attempts" / graph.id / attempt.folder / "token").read_bytes().strip()
            except OSError:
                continue
            if kept and hmac.compare_digest(kept, given):
                return graph.id, attempt.node, attempt.number, str(attempt.role)
    return None


def _by_parents(pid: int, by_pid: dict[int, AttemptRef], proc: Path) -> AttemptRef | None:
    for _ in range(PARENTS_LIMIT):
        if pid in by_pid:
            return by_pid[pid]
        pid = _parent(pid, proc)
        if pid <= 1:
            return None
    return None


def _parent(pid: int, proc: Path) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _cookie(pid: int, proc: Path) -> str:
    try:
        for item in (proc / str(pid) / "environ").read_bytes().split(b"\0"):
            if item.startswith(b"GRAPHD_ATTEMPT="):
                return item.partition(b"=")[2].decode(errors="replace")
    except OSError:
        pass
    return ""
