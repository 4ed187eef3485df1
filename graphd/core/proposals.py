"""Proposals: edits with author and reason that wait for acceptance (model.md, Planner, rounds, verifier, goal).

A proposal is its ask: the ask's id names it, its action holds the edits, and an answer settles it. It goes stale when
the plan moves under it: a node that it edits was defined anew or removed since. Anything else is checked when it is
accepted, as any replan is.
"""

from dataclasses import asdict
from typing import Any, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.asks import Options, answer, open_ask, withdraw
from graphd.core.commands import Accept, Dismiss, Propose
from graphd.core.compare import caught_up
from graphd.core.draft import Draft
from graphd.core.edits import Edits, dump_edits, load_edits
from graphd.core.model import Ask, Graph, Source
from graphd.core.replan import carry_out as carry_out_edits
from graphd.core.revision import revise
from graphd.core.verbs import admit, find_node, take_environment, who

OPTIONS: Final[Options] = (
    {"id": "accept", "kind": "allow_once", "label": t("Accept")},
    {"id": "dismiss", "kind": "reject_once", "label": t("Dismiss")},
)


def carry_out(draft: Draft, command: Propose | Accept | Dismiss) -> None:
    """One of the verbs of proposals."""
    if isinstance(command, Propose):
        propose(draft, command)
    elif isinstance(command, Accept):
        _accept(draft, command)
    else:
        ask = find_proposal(draft.graph, command.proposal)
        answer(draft, ask, by=who(draft.actor), option="dismiss", comment=command.reason)


def propose(draft: Draft, command: Propose) -> Ask | None:
    """Open a proposal, checked as if it were accepted now; an automatic one is carried out at once (None).

    Raises Refused, `capacity` for an automatic one over the graph's `replans`.
    """
    graph = draft.graph
    admit(graph, "extend" if command.edits.is_extension else "replan")
    if command.is_automatic:
        _carry_out_automatic(draft, command)
        return None
    revise(graph, command.edits)
    action: dict[str, Any] = {
        "edits": dump_edits(command.edits), "author": command.author, "reason": command.reason,
        "planVersion": graph.plan_version,
    }  # fmt: skip
    if command.source is not None:
        action["source"] = asdict(command.source)
    ask = open_ask(draft, kind="proposal", title=command.reason, action=action, options=OPTIONS)
    draft.emit(
        "proposal_made", proposal=ask.id, author=command.author, reason=command.reason, is_automatic=False,
    )  # fmt: skip
    return ask


def _carry_out_automatic(draft: Draft, command: Propose) -> None:
    graph = draft.graph
    if graph.replans >= graph.limits.replans:
        limit = graph.limits.replans
        raise Refused(
            "capacity", t("{graph} had {limit} automatic replans", graph=graph.title, limit=limit),
            t("a person may still replan it"), graph=graph.id,
        )  # fmt: skip
    draft.emit(
        "proposal_made", proposal=None, author=command.author, reason=command.reason, is_automatic=True,
    )  # fmt: skip
    carry_out_edits(
        draft, command.edits, verb="replan", reason=command.reason, source=command.source, is_automatic=True
    )
    draft.emit("proposal_settled", proposal=None, outcome="accepted", by=command.author, reason=None)


def _accept(draft: Draft, command: Accept) -> None:
    """The same as answering its ask, for one who knows which agents are there."""
    ask = find_proposal(draft.graph, command.proposal)
    if command.missing or command.reports:
        revise(draft.graph, _edits_now(draft.graph, ask), missing=command.missing, reports=command.reports)
    take_environment(draft, command.environment)
    answer(draft, ask, by=who(draft.actor), option="accept")


def find_proposal(graph: Graph, name: str) -> Ask:
    """The open proposal of this id. Refuses an unknown one (`notFound`) and one that is settled (`askGone`)."""
    ask = graph.asks.get(name)
    if ask is None or ask.kind != "proposal":
        raise Refused(
            "notFound", t("{graph} has no proposal {proposal}", graph=graph.title, proposal=name),
            t("graphd status lists what is proposed"), graph=graph.id,
        )  # fmt: skip
    if ask.state != "open":
        by = ask.answered_by or t("nobody: it was withdrawn")
        raise Refused(
            "askGone", t("proposal {proposal} is settled already, by {by}", proposal=name, by=by),
            t("graphd history says how"), graph=graph.id, ask=ask.id, by=ask.answered_by,
        )  # fmt: skip
    return ask


def open_proposals(graph: Graph) -> list[Ask]:
    """Those that wait, oldest first."""
    return [graph.asks[ask_id] for ask_id in graph.open_asks if graph.asks[ask_id].kind == "proposal"]


def edits_of(ask: Ask) -> Edits:
    """What a proposal would change."""
    return load_edits(ask.action["edits"])


def settle(draft: Draft, ask: Ask) -> None:
    """What an answer causes: `accept` is one replan, checked anew. Raises Refused, `conflict` where it is stale."""
    is_accepted = ask.option == "accept"
    if is_accepted:
        row = ask.action.get("source")
        carry_out_edits(
            draft, _edits_now(draft.graph, ask), verb="replan", reason=str(ask.action["reason"]),
            source=Source(**row) if row is not None else None,
        )  # fmt: skip
    draft.emit(
        "proposal_settled", proposal=ask.id, outcome="accepted" if is_accepted else "dismissed", by=ask.answered_by,
        reason=ask.comment,
    )  # fmt: skip


def _edits_now(graph: Graph, ask: Ask) -> Edits:
    """What it edits as the graph stands; those of a file go with what began or ended since. Refused where stale."""
    edits = edits_of(ask)
    _check_fresh(graph, ask, edits)
    return caught_up(graph, edits) if "source" in ask.action else edits


def _check_fresh(graph: Graph, ask: Ask, edits: Edits) -> None:
    made_at = ask.action["planVersion"]
    names = [patch.slug for patch in edits.change] + [name for name, _ in edits.remove]
    for name in [*names, *edits.restart, *edits.cancel]:
        node = find_node(graph, name)
        if (node.removed_in or node.defined_in or 0) > made_at:
            raise Refused(
                "conflict", t("proposal {proposal} is stale: {node} changed since", proposal=ask.id, node=node.slug),
                t("graphd dismiss {proposal}; then propose it anew", proposal=ask.id),
                graph=graph.id, rev=graph.rev, planVersion=graph.plan_version, node=node.slug,
            )  # fmt: skip


def withdraw_stranded(draft: Draft) -> None:
    """The graph ended: what could not be accepted any more is withdrawn; nodes may still be added to a complete one."""
    is_complete = draft.graph.status == "complete"
    for ask in open_proposals(draft.graph):
        if not (is_complete and edits_of(ask).is_extension):
            withdraw(draft, ask, t("the graph ended"))
            draft.emit("proposal_settled", proposal=ask.id, outcome="withdrawn", by=None, reason=None)
