"""Reasons that the log keeps in English, in the reader's language where wire values show them.

Only for readers of another language: English values are never looked at. A reason that a person may have given is
translated only where it is one of our own words. Source: spec protocol.md (`locale`); ADR 0006.
"""

from typing import Final, get_args

from graphd.base.catalogue import Language, translate_stored, translate_word
from graphd.base.text import t
from graphd.server.project import Wire
from graphd_protocol.states import AttemptOutcome

_OUTCOMES: Final = frozenset(get_args(AttemptOutcome))
_OUR_ASKS: Final = frozenset({"approval", "escalation", "proposal"})
_BY_PEOPLE: Final = frozenset({"stop_requested", "finish_requested", "node_cancelled", "cancelled", "cleared"})


def header(wire: Wire, language: Language) -> Wire:
    """A graph's `pauseReason`, in place."""
    if "pauseReason" in wire:
        say = translate_word if wire["status"] == "user_paused" else translate_stored
        wire["pauseReason"] = say(wire["pauseReason"], language)
    return wire


def node(wire: Wire, language: Language) -> Wire:
    """A node's failure and why it was cancelled, in place."""
    if "failure" in wire:
        wire["failure"]["reason"] = translate_stored(wire["failure"]["reason"], language)
    if "cancelReason" in wire:
        wire["cancelReason"] = translate_word(wire["cancelReason"], language)
    return wire


def history_entry(wire: Wire, language: Language) -> Wire:
    """The detail of one line of history, in place: a reason, or a code, which stays."""
    detail, kind = wire.get("detail"), wire["kind"]
    if detail is not None and not (kind == "attempt_settled" and detail in _OUTCOMES):
        say = translate_word if kind in _BY_PEOPLE else translate_stored
        wire["detail"] = say(detail, language)
    return wire


def attempt(wire: Wire, language: Language) -> Wire:
    """Why an attempt ended as it did, or can't end, in place."""
    if "reason" in wire:
        wire["reason"] = translate_stored(wire["reason"], language)
    return wire


def ask(wire: Wire, language: Language) -> Wire:
    """Title and options of a question of ours, in place; what an agent asks, or a person wrote, stays."""
    kind, action = wire["kind"], wire["action"]
    if language == "en" or not (kind in _OUR_ASKS or action.get("toolKind") == "turn"):
        return wire
    is_written = kind == "proposal" or (kind == "approval" and wire["title"] != t("Start {node}?", node=wire["node"]))
    if not is_written:
        wire["title"] = translate_stored(wire["title"], language)
    for option in wire["options"]:
        option["label"] = translate_stored(option["label"], language)
    return wire


def event(wire: Wire, language: Language) -> Wire:
    """The reason in an event's payload; the payload itself belongs to the log and is copied."""
    reason = wire["payload"].get("reason")
    if isinstance(reason, str) and wire["kind"] != "node_skipped":  # whose reason is a code
        say = translate_word if wire["kind"] in _BY_PEOPLE else translate_stored
        wire["payload"] = {**wire["payload"], "reason": say(reason, language)}
    return wire


def snapshot(wire: Wire, language: Language) -> Wire:
    """All of a whole graph, in place."""
    if language != "en":
        header(wire, language)
        _parts(wire, language)
    return wire


def changed(wire: Wire, language: Language) -> Wire:
    """The same of the params of `workgraph/changed`."""
    if language != "en":
        header(wire["header"], language)
        _parts(wire, language)
    return wire


def _parts(wire: Wire, language: Language) -> None:
    for row in wire["nodes"]:
        node(row, language)
    for row in wire.get("asks", ()):
        ask(row, language)
    for row in wire["history"]:
        history_entry(row, language)
