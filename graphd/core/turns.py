"""What an agent says in its turn: its session, questions, a result (spec execution.md, How a turn ends, People).

A question is answered by policy where a rule covers it, else it waits for a person. A result is a candidate: `rounds`
says what becomes of it.
"""

from typing import Any

from graphd.base.text import t
from graphd.core import asks, rounds
from graphd.core.commands import AgentAsk, AttemptSaid, ChildAsk
from graphd.core.draft import Draft
from graphd.core.events import AnswerAsk
from graphd.core.model import Ask, Attempt, Graph, Node
from graphd.core.policy import Ruling, glob_of, permit
from graphd.core.verbs import stop_attempt

TITLE_LIMIT = 200


def said(draft: Draft, attempt: Attempt, fact: AttemptSaid) -> None:
    """Apply one step of an attempt's fold, in the order in which it was said; what it used comes last: a result counts
    though it was the one that used up the budget.
    """
    _apply(draft, attempt, fact)
    if fact.used is not None:
        from graphd.core.budget import note_use  # as in `decide`: with the first one

        note_use(draft, attempt, fact.used)


def _apply(draft: Draft, attempt: Attempt, fact: AttemptSaid) -> None:
    node = draft.graph.nodes[attempt.node]
    if fact.session is not None and fact.session != attempt.child_session:
        _emit(draft, "attempt_session", attempt, session=fact.session)
    for key in fact.gone:
        _gone(draft, attempt, key)
    for question in fact.asks:
        _asked(draft, node, attempt, question, fact)
    if attempt.state not in ("starting", "live"):
        return  # its end is wanted: what it still says counts no more
    if fact.candidate is not None:
        rounds.candidate(draft, node, attempt, fact.candidate, broken=fact.broken)
    elif fact.trouble is not None:
        _turn_failed(draft, attempt, fact)
    elif fact.is_cancelled:
        _ask_what_now(draft, node, attempt)


def _emit(draft: Draft, kind: str, attempt: Attempt, /, **payload: Any) -> None:
    draft.emit(kind, draft.graph.nodes[attempt.node], role=attempt.role, number=attempt.number, **payload)


def _gone(draft: Draft, attempt: Attempt, key: str) -> None:
    for ask in _asks_of(draft.graph, attempt):
        if ask.key == key:
            asks.withdraw(draft, ask, t("its agent took it back"))


def _asks_of(graph: Graph, attempt: Attempt) -> list[Ask]:
    """The open asks of an attempt."""
    found = map(graph.asks.__getitem__, graph.open_asks)
    return [ask for ask in found if (ask.node, ask.role, ask.attempt) == attempt.key]


# ---- questions ----------------------------------------------------------------------------------------------------


def _asked(draft: Draft, node: Node, attempt: Attempt, question: AgentAsk, fact: AttemptSaid) -> None:
    known = [
        ask for ask in draft.graph.asks.values()
        if ask.key == question.key and (ask.node, ask.role, ask.attempt) == attempt.key and ask.state != "withdrawn"
    ]  # fmt: skip
    if known:
        return
    unspent = _unspent(draft.graph, attempt, question)
    ruling = _ruling(draft.graph, attempt, question, fact)
    ask = asks.open_ask(
        draft, kind=question.kind, title=question.title, options=question.options, node=node, attempt=attempt.number,
        role=attempt.role, key=question.key, action=question.action,
        scopes=("once", "attempt", "graph") if _rule_of(question) else ("once",),
    )  # fmt: skip
    if attempt.state in ("stopping", "stuck"):
        asks.answer(draft, ask, by=t("its end"), option=None)
    elif unspent is not None:
        draft.emit("ask_spent", node, ask=unspent.id, attempt=attempt.number)
        asks.answer(
            draft, ask, by=unspent.answered_by or "", option=_same_option(unspent, question), text=unspent.text,
            comment=t("the answer to {ask}, which reached nobody", ask=unspent.id),
        )  # fmt: skip
    elif ruling is not None and ruling.verdict != "ask":
        option = choose(question, ruling.verdict)
        if option is not None or ruling.verdict == "deny":
            asks.answer(draft, ask, by=t("rule {rule}", rule=ruling.rule), option=option)


def _ruling(graph: Graph, attempt: Attempt, question: AgentAsk, fact: AttemptSaid) -> Ruling | None:
    if question.kind != "permission":
        return Ruling("deny", "asks.detached") if _is_alone(fact) else None
    ruling = permit(question.action, fact.leave, scopes=scopes_of(graph, attempt))
    if ruling.verdict == "ask" and _is_alone(fact):
        return Ruling("deny", "asks.detached")
    return ruling


def _is_alone(fact: AttemptSaid) -> bool:
    return fact.leave.detached == "deny" and not fact.leave.is_attended


def _rule_of(question: AgentAsk) -> str | None:
    return glob_of(question.action) if question.kind == "permission" else None


def scopes_of(graph: Graph, attempt: Attempt) -> list[tuple[str, str, str, str]]:
    """Standing answers of people as (tool kind, glob, allow or deny, ask id): of the graph, and of this attempt."""
    found = []
    for ask in graph.asks.values():
        is_here = ask.scope == "graph" or (ask.scope == "attempt" and (ask.node, ask.role, ask.attempt) == attempt.key)
        glob = glob_of(ask.action) if is_here and not ask.is_revoked else None
        kinds = [option["kind"] for option in ask.options if option["id"] == ask.option]
        if glob is not None and kinds:
            verdict = "allow" if kinds[0].startswith("allow") else "deny"
            found.append((str(ask.action.get("toolKind")), glob, verdict, ask.id))
    return found


def _unspent(graph: Graph, attempt: Attempt, question: AgentAsk) -> Ask | None:
    """An answer to the same action that an earlier attempt of this node never heard, and that can be given here."""
    wanted = asks.action_hash(question.action)
    for ask in graph.asks.values():
        is_same = (ask.node, ask.role, ask.action_hash) == (attempt.node, attempt.role, wanted)
        is_free = ask.state == "answered" and ask.key is not None and ask.spent_by is None
        if is_same and is_free and _same_option(ask, question) is not None:
            return ask
    return None


def _same_option(unspent: Ask, question: AgentAsk) -> str | None:
    """The option of the same kind: ids are the agent's, and may differ from process to process."""
    kind = next((option["kind"] for option in unspent.options if option["id"] == unspent.option), None)
    return next((option["id"] for option in question.options if option["kind"] == kind), None)


def choose(question: AgentAsk, verdict: str) -> str | None:
    """The option that says this once; never the agent's own "always" (execution.md, People)."""
    wanted = "allow_once" if verdict == "allow" else "reject_once"
    return next((option["id"] for option in question.options if option["kind"] == wanted), None)


def question_of(text: str) -> dict[str, Any]:
    """The action of a child's own question. The same words of the same attempt are the same ask."""
    return {"toolKind": "question", "question": text}


def child_asked(draft: Draft, attempt: Attempt, fact: ChildAsk) -> None:
    """A child's question, once: one that lost the answer on its way asks again. One that is to end asks nothing."""
    action = question_of(fact.question)
    wanted = asks.action_hash(action)
    is_known = any(
        ask.action_hash == wanted and (ask.node, ask.role, ask.attempt) == attempt.key and ask.state != "withdrawn"
        for ask in draft.graph.asks.values()
    )
    if is_known or attempt.state not in ("starting", "live"):
        return
    title = " ".join(fact.question.split())[:TITLE_LIMIT]
    ask = asks.open_ask(
        draft, kind="question", title=title, action=action, options=(), node=draft.graph.nodes[attempt.node],
        attempt=attempt.number, role=attempt.role,
    )  # fmt: skip
    if fact.is_alone:
        asks.answer(draft, ask, by=t("rule {rule}", rule="asks.detached"), option=None)


# ---- a turn's end without a result --------------------------------------------------------------------------------


def _turn_failed(draft: Draft, attempt: Attempt, fact: AttemptSaid) -> None:
    """The process may live on: its end is wanted, and `attempt_failing` keeps why for the settlement."""
    assert fact.trouble is not None  # noqa: S101  looked at by `said`
    failure_class, reason = fact.trouble
    if fact.is_unacted:
        stop_attempt(draft, attempt.key, "weather")
        return
    _emit(draft, "attempt_failing", attempt, **{"class": failure_class}, reason=reason)
    stop_attempt(draft, attempt.key, "end_of_turn")


def _ask_what_now(draft: Draft, node: Node, attempt: Attempt) -> None:
    """Cancelled, and not by us: the node stays running until a person says what now."""
    asks.open_ask(
        draft, kind="question", title=t("{node}: its agent cancelled the turn by itself", node=node.slug),
        action={"toolKind": "turn", "attempt": f"{node.slug}@{attempt.number}"},
        options=(
            {"id": "continue", "kind": "allow_once", "label": t("Continue")},
            {"id": "retry", "kind": "allow_once", "label": t("Try again")},
            {"id": "fail", "kind": "reject_once", "label": t("Let it fail")},
        ),
        node=node, attempt=attempt.number, role=attempt.role,
    )  # fmt: skip


def turn_answered(draft: Draft, ask: Ask) -> bool:
    """Carry out the answer to `_ask_what_now`; False where the ask is another."""
    if ask.action.get("toolKind") != "turn":
        return False
    attempt = draft.graph.attempts.get((ask.node or "", ask.role or "worker", ask.attempt or 0))
    if attempt is None or attempt.state not in ("starting", "live"):
        return True
    if ask.option == "continue":
        draft.then(AnswerAsk(draft.graph.id, attempt.key, ask.id))
        return True
    failure = "exec_failed" if ask.option == "fail" else "lost"
    _emit(draft, "attempt_failing", attempt, **{"class": failure}, reason=t("its agent cancelled the turn by itself"))
    stop_attempt(draft, attempt.key, "end_of_turn")
    return True
