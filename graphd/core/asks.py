"""Asks: opened, answered once by compare-and-set, withdrawn (spec execution.md, People).

Person, policy, deadline and the end of an attempt all answer through `answer` or `withdraw`: whichever is decided first
wins, everyone after it is told who did. What an answer causes is said by kind in `_EFFECTS`.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.commands import Respond, Revoke
from graphd.core.draft import Draft
from graphd.core.events import AnswerAsk
from graphd.core.model import Ask, Node
from graphd.core.verbs import who
from graphd_protocol.ids import node_id
from graphd_protocol.states import AskKind, Role

Options = tuple[dict[str, str], ...]
"""Each with `id`, `kind` (allow_once, allow_always, reject_once, reject_always, or a word of ours) and `label`."""


def action_hash(action: dict[str, Any]) -> str:
    """What binds an answer to the very thing that was shown."""
    return sha256(json.dumps(action, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def open_ask(
    draft: Draft,
    *,
    kind: AskKind,
    title: str,
    action: dict[str, Any],
    options: Options,
    node: Node | None = None,
    attempt: int | None = None,
    role: Role | None = None,
    key: str | None = None,
    deadline_at: int | None = None,
    default: str | None = None,
    scopes: tuple[str, ...] = ("once",),
) -> Ask:
    """Put a question to people. With a deadline, `default` is the answer that it brings."""
    ask_id = _fresh_id(draft)
    draft.emit(
        "ask_opened", node, id=ask_id, kind=kind, title=str(title), action=action, action_hash=action_hash(action),
        options=[_plain(option) for option in options], opened_at=draft.now, node=node.id if node else None,
        attempt=attempt, role=role, key=key, deadline_at=deadline_at, default=default, scopes=list(scopes),
    )  # fmt: skip
    return draft.graph.asks[ask_id]


def _plain(option: dict[str, str]) -> dict[str, str]:
    """As the log has it."""
    return {name: str(word) for name, word in option.items()}


def _fresh_id(draft: Draft) -> str:
    """`ask-` and 8 hex digits: short enough to be typed, and unique over all graphs."""
    place = f"{draft.change.graph}/{draft.change.rev}/{len(draft.change.events)}"
    while True:
        ask_id = f"ask-{node_id(place)[3:]}"
        if not any(ask_id in graph.asks for graph in draft.state.graphs.values()):
            return ask_id
        place += "+"


def answer(
    draft: Draft, ask: Ask, *, by: str, option: str | None, text: str | None = None, scope: str | None = None,
    comment: str | None = None,
) -> None:  # fmt: skip
    """The first valid answer: logged, and carried out in the same change. The caller has checked that it is open."""
    node = draft.graph.nodes[ask.node] if ask.node else None
    _start_clock(draft, ask)
    draft.emit(
        "ask_answered", node, ask=ask.id, by=str(by), option=option, text=text, scope=scope,
        comment=str(comment) if comment else None,
        spent_by=ask.attempt if _is_heard(draft, ask) else None,
    )  # fmt: skip
    _EFFECTS.get(ask.kind, _nothing)(draft, draft.graph.asks[ask.id])


def withdraw(draft: Draft, ask: Ask, reason: str) -> None:
    """It needs no answer any more."""
    node = draft.graph.nodes[ask.node] if ask.node else None
    _start_clock(draft, ask)
    draft.emit("ask_withdrawn", node, ask=ask.id, reason=reason)


def _start_clock(draft: Draft, ask: Ask) -> None:
    if ask.attempt is not None:
        from graphd.core.deadlines import wait_ended

        wait_ended(draft, ask)


def withdraw_of(draft: Draft, node: Node, *, reason: str) -> None:
    """Withdraw every open ask of a node."""
    graph = draft.graph
    for ask_id in list(graph.open_asks):
        ask = graph.asks[ask_id]
        if ask.node == node.id:
            withdraw(draft, ask, reason)


def open_asks(draft: Draft, node: Node, kind: AskKind) -> list[Ask]:
    """The open asks of this kind that a node waits for."""
    graph = draft.graph
    return [ask for ask in map(graph.asks.__getitem__, graph.open_asks) if ask.node == node.id and ask.kind == kind]


# ---- the verb -----------------------------------------------------------------------------------------------------


def respond(draft: Draft, command: Respond) -> None:
    """A person's answer. Refuses what is gone (and says who was first), what was not shown, and no option of it."""
    ask = draft.graph.asks.get(command.ask)
    if ask is None:
        raise Refused("notFound", t("no ask {ask}", ask=command.ask), t("graphd ask lists what waits"), ask=command.ask)
    if ask.state != "open" or not _may_be_heard(draft, ask):
        by = ask.answered_by or t("nobody: it was withdrawn")
        raise Refused(
            "askGone", t("{ask} needs no answer any more; answered by {by}", ask=ask.id, by=by),
            t("graphd ask lists what waits"), ask=ask.id, by=ask.answered_by, graph=draft.graph.id,
        )  # fmt: skip
    if command.action_hash != ask.action_hash:
        raise Refused(
            "conflict", t("{ask} is about another action than the one that was shown", ask=ask.id),
            t("read the ask again, then decide anew"), ask=ask.id, graph=draft.graph.id,
            rev=draft.graph.rev, planVersion=draft.graph.plan_version,
        )  # fmt: skip
    _check_choice(draft, ask, command)
    scope = command.scope if ask.kind == "permission" else None
    answer(
        draft, ask, by=who(draft.actor), option=command.option, text=command.text, scope=scope,
        comment=command.comment,
    )  # fmt: skip


def _may_be_heard(draft: Draft, ask: Ask) -> bool:
    """An agent whose end is wanted was told `cancelled` already."""
    if ask.key is None:
        return True
    attempt = draft.graph.attempts.get((ask.node or "", ask.role or "worker", ask.attempt or 0))
    return attempt is None or attempt.state in ("starting", "live")


def _check_choice(draft: Draft, ask: Ask, command: Respond) -> None:
    known = [option["id"] for option in ask.options]
    if command.option is not None and command.option not in known:
        raise Refused(
            "notFound", t("{ask} has no option {option}", ask=ask.id, option=command.option),
            t("one of: {options}", options=", ".join(known)), ask=ask.id, graph=draft.graph.id,
        )  # fmt: skip
    if command.option is None and (known or command.text is None):
        raise Refused(
            "notFound", t("{ask} needs one of its options", ask=ask.id),
            t("one of: {options}", options=", ".join(known) or t("a text")), ask=ask.id, graph=draft.graph.id,
        )  # fmt: skip
    if command.scope not in ask.scopes:
        raise Refused(
            "notFound", t("{ask} can't be answered for the scope {scope}", ask=ask.id, scope=command.scope),
            t("one of: {options}", options=", ".join(ask.scopes)), ask=ask.id, graph=draft.graph.id,
        )  # fmt: skip


def revoke(draft: Draft, command: Revoke) -> None:
    """A standing answer stands no more. Refuses what is none."""
    ask = draft.graph.asks.get(command.ask)
    if ask is None or ask.scope in (None, "once") or ask.is_revoked:
        raise Refused(
            "notFound", t("{ask} is no standing answer", ask=command.ask),
            t("graphd ask --scopes lists them"), ask=command.ask, graph=draft.graph.id,
        )  # fmt: skip
    draft.emit("scope_revoked", draft.graph.nodes[ask.node] if ask.node else None, ask=ask.id)


# ---- what an answer causes ------------------------------------------------------------------------------------------


def _tell_agent(draft: Draft, ask: Ask) -> None:
    if _is_heard(draft, ask):
        draft.then(AnswerAsk(draft.graph.id, (ask.node or "", ask.role or "worker", ask.attempt or 0), ask.id))


def _is_heard(draft: Draft, ask: Ask) -> bool:
    """The attempt that asked lives: its agent waits for the line."""
    return ask.key is not None and (ask.node, ask.role, ask.attempt) in draft.graph.live


def _question(draft: Draft, ask: Ask) -> None:
    from graphd.core.turns import turn_answered  # it asks by these functions

    if not turn_answered(draft, ask):
        _tell_agent(draft, ask)


def _move_deadline(draft: Draft, ask: Ask) -> None:
    from graphd.core.deadlines import answer_escalation

    answer_escalation(draft, ask)


def _settle_proposal(draft: Draft, ask: Ask) -> None:
    from graphd.core.proposals import settle  # with the first one, as in `decide`

    settle(draft, ask)


def _nothing(draft: Draft, ask: Ask) -> None:
    """The answer itself is all."""


def _approval(draft: Draft, ask: Ask) -> None:
    from graphd.core.early import settle_approval  # few plans ask

    settle_approval(draft, ask)


_EFFECTS: dict[str, Callable[[Draft, Ask], None]] = {
    "permission": _tell_agent,
    "question": _question,
    "approval": _approval,
    "escalation": _move_deadline,
    "proposal": _settle_proposal,
}
