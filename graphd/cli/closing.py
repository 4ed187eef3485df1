"""The last words of a run: what happened, and a line to paste that goes on from there. Pure.

Every stop says why and what to type next (spec product.md, What it must feel like). A test runs the lines.
"""

from typing import Any

from graphd.cli.tree import counts_text
from graphd.cli.words import STATUS_WORDS, counted, duration, harmless, short_id

Wire = dict[str, Any]


def closing(snapshot: Wire) -> tuple[str, str]:
    """What happened in one line, and the command that goes on."""
    return _summary(snapshot), _next(snapshot)


def _summary(snapshot: Wire) -> str:
    took = duration(snapshot["updatedAt"] - snapshot["createdAt"])
    title = harmless(snapshot["title"])
    status, reason = snapshot["status"], harmless(snapshot.get("pauseReason") or "")
    if status == "complete":
        nodes = counted(sum(snapshot["counts"].values()), "node")
        failed = snapshot["counts"].get("failed", 0)
        how = {"ok": "complete", "withFailures": f"complete, {failed} failed", "rejected": "complete, rejected"}
        return f"{title}: {how.get(snapshot.get('outcome') or 'ok', 'complete')} ({nodes} in {took})"
    counts = counts_text(snapshot["counts"])
    return f"{title}: {STATUS_WORDS[status]}" + (f", {reason}" if reason else "") + f" ({counts}; {took})"


def _next(snapshot: Wire) -> str:
    graph, status = short_id(snapshot["id"]), snapshot["status"]
    if status == "complete":
        failed = _first(snapshot, "failed")
        return f"graphd why {failed} --graph {graph}" if failed else f"graphd output --graph {graph}"
    if status == "blocked":
        failed = _first(snapshot, "failed")
        return f"graphd why {failed} --graph {graph}" if failed else f"graphd retry --all {graph}"
    if status == "infra_paused":
        stuck = next((n["slug"] for n in snapshot["nodes"] if n["state"] == "running"), None)
        return f"graphd why {stuck} --graph {graph}" if stuck else f"graphd resume {graph}"
    if status == "budget_limited":
        return f"graphd resume {graph}{_top_up(snapshot)}"
    if status == "user_paused":
        return f"graphd resume {graph}"
    return f"graphd history {graph}" if status == "cancelled" else f"graphd watch {graph}"


def _top_up(snapshot: Wire) -> str:
    """What is to be topped up, for every unit that is used up."""
    spent = snapshot["spent"]
    used = {"tokens": spent["tokens"], "costUsd": spent["costUsd"] or 0, "wallSeconds": spent["wallMs"] / 1000}
    examples = {"tokens": "200k", "costUsd": "2.50usd", "wallSeconds": "30m"}
    reached = [unit for unit, limit in snapshot.get("budget", {}).items() if used[unit] >= limit]
    return f" --top-up {','.join(examples[unit] for unit in reached)}" if reached else ""


def also(snapshot: Wire) -> str | None:
    """A second line for a graph that can be tried again."""
    if snapshot["status"] == "blocked" or (
        snapshot["status"] == "complete" and snapshot.get("outcome") == "withFailures"
    ):
        return f"graphd retry --all {short_id(snapshot['id'])}"
    return None


def _first(snapshot: Wire, state: str) -> str | None:
    required = [n["slug"] for n in snapshot["nodes"] if n["state"] == state and n["required"]]
    any_of = [n["slug"] for n in snapshot["nodes"] if n["state"] == state]
    return next(iter(required or any_of), None)


def final_output(snapshot: Wire) -> str | None:
    """Slug of the node whose output is the graph's result: the delivery node, else the only sink."""
    delivery: str | None = snapshot.get("deliveryNode")
    if delivery:
        return delivery
    needed = {need for n in snapshot["nodes"] for need in n["needs"]}
    sinks = [n["slug"] for n in snapshot["nodes"] if n["slug"] not in needed]
    return sinks[0] if len(sinks) == 1 else None


def is_at_rest(snapshot: Wire) -> bool:
    """Whether nothing more happens without a person: what a follower waits for.

    A paused graph still drains what runs; of a held-up one only stuck trees may be left.
    """
    status = snapshot["status"]
    if status == "active":
        return False
    if status in ("complete", "cancelled"):
        return True
    running = [n for n in snapshot["nodes"] if n["state"] == "running"]
    if status == "infra_paused":
        return all(n.get("phase") == "stuck" for n in running)
    return not running and not snapshot.get("stopping")
