"""The keys of the live tree: what each does, whether the graph's present state admits it, and if not, why. Pure.

What is admitted is the protocol's own table of verbs; the daemon has the last word. Source: spec model.md, Verbs.
"""

from dataclasses import dataclass
from typing import Any, Final

from graphd.base.text import t
from graphd.cli.words import STATUS_WORDS, short_id
from graphd_protocol.states import ENDED_STATUSES, VERB_TABLE

Wire = dict[str, Any]
_RETRIABLE: Final = ("failed", "blocked", "skipped", "cancelled")


@dataclass(slots=True, frozen=True)
class Key:
    """A key, the command behind it, what it is called now, and why it does nothing now (`""` where it does)."""

    key: str
    command: str
    label: str
    refusal: str = ""


def keys_of(snapshot: Wire, slug: str | None, *, opened: str | None = None, followed: str | None = None) -> list[Key]:
    """All keys, those first that are wanted most. `slug` is the node that is selected."""
    node: Wire | None = next((n for n in snapshot["nodes"] if n["slug"] == slug), None)
    unselected = "" if node is not None else t("no node is selected")
    unrun = unselected or _unrun(node)
    is_ended = snapshot["status"] in ENDED_STATUSES
    return [
        Key("enter", "open", t("close") if slug is not None and opened == slug else t("open"), unselected),
        Key("o", "output", t("stop output") if followed else t("output"), "" if followed else unrun),
        Key("w", "why", t("why"), unselected),
        _hold(snapshot),
        Key("n", "step", t("step"), _untold(snapshot, "step") or _unready(snapshot)),
        Key("r", "retry", t("retry"), unselected or _unretriable(snapshot, node)),
        Key("c", "cancel", t("cancel"), _untold(snapshot, "cancel")),
        Key("a", "accept", t("accept"), _unproposed(snapshot)),
        Key("x", "dismiss", t("dismiss"), _unproposed(snapshot)),
        Key("d", "diff", t("diff"), unselected or _unchanged(node)),
        Key("R", "retry all", t("retry all"), _untold(snapshot, "retry") or _unfailed(snapshot)),
        Key("f", "finish", t("finish"), _untold(snapshot, "finish")),
        Key("q", "leave", t("leave") if is_ended else t("detach")),
        Key("?", "help", t("all keys")),
    ]


def _untold(snapshot: Wire, verb: str) -> str:
    """Why the graph doesn't admit the verb now."""
    status, stopping = snapshot["status"], snapshot.get("stopping")
    if stopping and not (verb == "cancel" and stopping["verb"] in ("pause", "budget")):
        return t("{verb} is under way", verb=stopping["verb"])
    if VERB_TABLE[verb][status] == "no":
        return t("{verb} is not for a graph that is {status}", verb=verb, status=STATUS_WORDS[status])
    return ""


def _hold(snapshot: Wire) -> Key:
    """Pause, or resume what is not active."""
    if snapshot["status"] == "active":
        return Key("p", "pause", t("pause"), _untold(snapshot, "pause"))
    refusal = _untold(snapshot, "resume")
    if not refusal and snapshot["status"] == "budget_limited":
        refusal = t("its budget is spent: graphd resume {graph} --top-up 200k", graph=short_id(snapshot["id"]))
    if not refusal and snapshot["status"] == "blocked":
        refusal = t("it is blocked: try again what failed")
    return Key("p", "resume", t("resume"), refusal)


def _unrun(node: Wire | None) -> str:
    if node is None or node["attempts"] or node.get("startedAt"):
        return ""
    return t("{node} has not run yet", node=node["slug"])


def _unchanged(node: Wire | None) -> str:
    if node is not None and node["worker"] == "shell":
        return t("{node} is no agent's, and only what agents change is kept", node=node["slug"])
    return _unrun(node)


def _unready(snapshot: Wire) -> str:
    return "" if snapshot["counts"].get("ready") else t("no node is ready")


def _unretriable(snapshot: Wire, node: Wire | None) -> str:
    refusal = _untold(snapshot, "retry")
    if refusal or node is None or node["state"] in _RETRIABLE:
        return refusal
    return t("{node} is {state}; what failed, or never came to run, can be tried again",
             node=node["slug"], state=node["state"])  # fmt: skip


def _unfailed(snapshot: Wire) -> str:
    counts = snapshot["counts"]
    return "" if counts.get("failed") or counts.get("blocked") else t("nothing failed, and nothing is blocked")


def _unproposed(snapshot: Wire) -> str:
    return "" if snapshot.get("proposals") else t("nothing is proposed")
