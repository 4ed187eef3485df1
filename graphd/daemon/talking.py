"""Between what agents say and what the core knows: facts become commands, decisions become lines. Decides nothing.

Lines are made inside the writer, so that they are rows of the transaction that decided them (spec execution.md, Exactly
once over a crash).
"""

from collections.abc import Callable, Iterable
from typing import Any

from graphd.base.redaction import Redactor
from graphd.children.driver import Driver, Fact
from graphd.children.items import redacted
from graphd.children.telling import Contract, told_gaps
from graphd.core.commands import AgentAsk, AttemptSaid, Busy, Request
from graphd.core.events import AnswerAsk, AttemptKey, Effect, PromptAttempt, StopAttempt
from graphd.core.model import Attempt, Graph, Output, Spent, State
from graphd.core.policy import Leave
from graphd.core.talk import Line, Talk
from graphd.store.writer import Speech

GO_ON = "Your turn was cancelled, though nobody here asked for it. Go on where you stopped, and end with your result."


def speech(driver_of: Callable[[str], Driver]) -> Speech:
    """What the writer asks of drivers. `driver_of` gives the driver of a profile."""

    def first_seq(state: State, graph: str, attempt: AttemptKey) -> int:
        known = state.graphs.get(graph)
        found = known.attempts.get(attempt) if known is not None else None
        return driver_of(found.profile).first_lines if found is not None else 0

    def lines(state: State, effect: Effect) -> tuple[Line, ...]:
        if not isinstance(effect, AnswerAsk | PromptAttempt | StopAttempt):
            return ()
        graph = state.graphs.get(effect.graph)
        attempt = graph.attempts.get(effect.attempt) if graph is not None else None
        if graph is None or attempt is None or attempt.key not in graph.live:
            return ()
        driver = driver_of(attempt.profile)
        match effect:
            case AnswerAsk():
                return _answer(driver, graph, attempt, effect.ask)
            case PromptAttempt():
                return driver.turn(attempt.child_session or "", _gaps(graph, attempt))
            case StopAttempt():
                return () if effect.is_repeat else _stop(driver, graph, attempt)

    return Speech(first_seq, lines)


def is_close(attempt: Attempt) -> bool:
    """Its end is wanted because its result is accepted."""
    return attempt.stop_reason == "end_of_turn" and attempt.failing is None


def _answer(driver: Driver, graph: Graph, attempt: Attempt, ask_id: str) -> tuple[Line, ...]:
    ask = graph.asks[ask_id]
    if ask.key is None:  # its turn was cancelled, and a person said: go on
        return driver.turn(attempt.child_session or "", GO_ON)
    return driver.answer(ask.key, ask.option, ask.text)


def _stop(driver: Driver, graph: Graph, attempt: Attempt) -> tuple[Line, ...]:
    if is_close(attempt):
        return driver.close(attempt.child_session)
    open_keys = tuple(
        ask.key
        for ask in map(graph.asks.__getitem__, graph.open_asks)
        if ask.key is not None and (ask.node, ask.role, ask.attempt) == attempt.key
    )
    return driver.cancel(attempt.child_session, open_keys)


def _gaps(graph: Graph, attempt: Attempt) -> str:
    node = graph.nodes[attempt.node]
    definition = node.definition
    contract = Contract(definition.output_schema, definition.artifacts)
    return told_gaps((node.gaps or "").splitlines(), contract, "shell")


# ---- facts --------------------------------------------------------------------------------------------------------


def said(
    graph: str,
    attempt: AttemptKey,
    facts: Iterable[Fact],
    cursor: tuple[int, int],
    *,
    heard: int,
    leave: Leave,
    redactor: Redactor,
    too_much: str | None = None,
    broken: str | None = None,
) -> Request:
    """One step of a fold as one request: what the graph has to know, the cursor, and the driver's own lines."""
    lines: list[Line] = []
    asks: list[AgentAsk] = []
    gone: list[str] = []
    told: dict[str, Any] = {}
    for fact in facts:
        content = fact.content
        match fact.kind:
            case "say":
                lines.append(Line(content["message"], content["isRequest"]))
            case "session":
                told["session"] = content["id"]
            case "ask":
                asks.append(_ask(content, redactor))
            case "ask_gone":
                gone.append(content["key"])
            case "candidate":
                told["candidate"] = Output(**redacted(content["output"], redactor))
            case "turn_failed":
                told["trouble"] = (content["class"], redactor.text(content["reason"]))
                told["is_unacted"] = "weather" in content and not content.get("acted", True)
            case "turn_cancelled":
                told["is_cancelled"] = True
            case _:
                pass  # items are no matter of the graph; usage is taken below
    if too_much is not None:
        told["trouble"], told["is_unacted"] = ("limit", too_much), False
    told["used"] = used(facts)
    told["broken"] = redactor.text(broken) if broken is not None else None
    command = AttemptSaid(graph, attempt, leave, asks=tuple(asks), gone=tuple(gone), **told)
    return Request(command, talk=Talk(graph, attempt, cursor, heard, tuple(lines)))


def busy(facts: Iterable[Fact], redactor: Redactor) -> tuple[Busy, str] | None:
    """The provider's trouble among these facts, and in whose words; None where there is none."""
    for fact in facts:
        weather = fact.content.get("weather") if fact.kind == "turn_failed" else None
        if weather is not None:
            return Busy(weather.get("retryAfterS")), redactor.text(fact.content["reason"])
    return None


def used(facts: Iterable[Fact]) -> Spent | None:
    """The last totals that these facts say; None where they say none."""
    said_so = [fact.content for fact in facts if fact.kind == "usage"]
    return Spent(said_so[-1]["tokens"] or 0, said_so[-1]["costUsd"]) if said_so else None


def _ask(content: dict[str, Any], redactor: Redactor) -> AgentAsk:
    return AgentAsk(
        content["key"], content["kind"], redactor.text(content["title"]), redacted(content["action"], redactor),
        tuple(content["options"]),
    )  # fmt: skip


def words_of(item: dict[str, Any]) -> str:
    """What people see of an item while it happens: the agent's words, and a line for each tool call."""
    kind = item.get("kind")
    if kind in ("text", "thought"):
        return str(item.get("text", ""))
    tool = item.get("tool")
    if kind == "tool" and isinstance(tool, dict):
        title = tool.get("title") or tool.get("kind") or "tool"
        return f"\n[{tool.get('status', 'pending')}] {title}\n"
    return f"\n[{kind}] {item['text']}\n" if item.get("text") else ""
