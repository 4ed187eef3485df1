"""Core state as plain JSON values and back: what the log, its bases and the tables store.

Rows carry every durable field by its name in `graphd.core.model`. A field whose default is None or an empty tuple is
left out while it is that (three of a definition, older than this rule, apart); every other field is written even at
its default, so a later change of a default never changes what was stored. Derived fields (`derive.rebuild`) are neither
written nor read. A row that does not fit raises KeyError, TypeError or ValueError: the store makes a refusal of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias

from graphd.core.definition import (
    Approval,
    Budget,
    Definition,
    ForEach,
    Gate,
    Item,
    Pruned,
    Retry,
    Review,
    Terms,
    Verify,
    Wait,
)
from graphd.core.events import Actor
from graphd.core.model import (
    Ask,
    Attempt,
    Clock,
    Cooling,
    Delivery,
    Failure,
    Graph,
    HistoryEntry,
    Identity,
    Limits,
    Node,
    Output,
    Source,
    Spent,
    Stopping,
)

Row: TypeAlias = dict[str, Any]

DERIVED_OF_NODE = frozenset({"items", "dependants", "unsettled", "rank"})
DERIVED_OF_GRAPH = frozenset({"counts", "live", "ready", "queue", "open_asks", "early", "slotless", "removed"})
PARTS_OF_GRAPH = frozenset({"nodes", "attempts", "asks", "deliveries", "history"})


def _dumper(kind: type, *, without: Iterable[str] = ()) -> Callable[[Any], Row]:
    """A function from a dataclass value to its row. `attrgetter` reads all fields in one call."""
    names = tuple(f.name for f in fields(kind) if f.name not in frozenset(without))
    omitted = frozenset(f.name for f in fields(kind) if f.default is None or f.default == ())
    read = attrgetter(*names)

    def dump(value: Any) -> Row:
        return {
            n: v for n, v in zip(names, read(value), strict=True) if (v is not None and v != ()) or n not in omitted
        }

    return dump


_retry = _dumper(Retry)
_definition = _dumper(Definition)
_output = _dumper(Output)
_failure = _dumper(Failure)
_spent = _dumper(Spent)
_node = _dumper(Node, without=DERIVED_OF_NODE)
_identity = _dumper(Identity)
_attempt = _dumper(Attempt)
_ask = _dumper(Ask)
_clock = _dumper(Clock)
_cooling = _dumper(Cooling)
_delivery = _dumper(Delivery)
_stopping = _dumper(Stopping)
_limits = _dumper(Limits)
_budget = _dumper(Budget)
_terms = _dumper(Terms)
_pruned = _dumper(Pruned)
_source = _dumper(Source)
_entry = _dumper(HistoryEntry)
_header = _dumper(Graph, without=DERIVED_OF_GRAPH | PARTS_OF_GRAPH)
_actor = _dumper(Actor)


_LISTS: Final = ("artifacts", "writes")
_PARTS: Final[dict[str, tuple[Callable[[Any], Row], Callable[..., Any]]]] = {
    name: (_dumper(kind), kind)
    for name, kind in (
        ("gate", Gate), ("verify", Verify), ("approval", Approval), ("wait", Wait), ("for_each", ForEach),
        ("item", Item), ("review", Review),
    )
}  # fmt: skip


# ---- plan and nodes ----------------------------------------------------------------------------------------


@lru_cache(maxsize=16_384)
def dump_definition(definition: Definition) -> Row:
    """What a plan says of one node."""
    row = _definition(definition)
    row["needs"] = list(definition.needs)
    row["input_mapping"] = [list(pair) for pair in definition.input_mapping]
    row["discovered_from"] = list(definition.discovered_from)
    row["retry"] = _retry(definition.retry)
    row["retry"]["on"] = list(definition.retry.on)
    for name in _LISTS:
        if name in row:
            row[name] = list(row[name])
    for name, (dump, _) in _PARTS.items():
        if name in row:
            row[name] = dump(row[name])
    return row


def load_definition(row: Row) -> Definition:
    """The inverse of `dump_definition`."""
    row = dict(row)
    retry = dict(row.pop("retry"))
    for name in _LISTS:
        if name in row:
            row[name] = tuple(row[name])
    for name, (_, load) in _PARTS.items():
        if name in row:
            row[name] = load(**row[name])
    return Definition(
        retry=Retry(on=tuple(retry.pop("on")), **retry),
        needs=tuple(row.pop("needs")),
        input_mapping=tuple((name, source) for name, source in row.pop("input_mapping")),
        discovered_from=tuple(row.pop("discovered_from")),
        **row,
    )


def dump_node(node: Node) -> Row:
    """One node with its definition and its result."""
    row = _node(node)
    row["definition"] = dump_definition(node.definition)
    row["needs"] = list(node.needs)
    row["spent"] = _spent(node.spent)
    if node.output is not None:
        row["output"] = _output(node.output)
    if node.failure is not None:
        row["failure"] = _failure(node.failure)
    if node.candidate is not None:
        row["candidate"] = _output(node.candidate)
    if node.evidence:
        row["evidence"] = [dict(found) for found in node.evidence]
    return row


def load_node(row: Row) -> Node:
    """The inverse of `dump_node`, its derived fields unset."""
    row = dict(row)
    output, failure, candidate = row.pop("output", None), row.pop("failure", None), row.pop("candidate", None)
    return Node(
        definition=load_definition(row.pop("definition")),
        needs=tuple(row.pop("needs")),
        spent=Spent(**row.pop("spent")),
        output=Output(**output) if output is not None else None,
        failure=Failure(**failure) if failure is not None else None,
        candidate=Output(**candidate) if candidate is not None else None,
        evidence=tuple(row.pop("evidence", ())),
        **row,
    )


# ---- attempts, asks, deliveries ----------------------------------------------------------------------------


def dump_attempt(attempt: Attempt) -> Row:
    """One durable child-run record."""
    row = _attempt(attempt)
    row["stuck_pids"] = list(attempt.stuck_pids)
    row["spent"] = _spent(attempt.spent)
    if attempt.identity is not None:
        row["identity"] = _identity(attempt.identity)
    if attempt.failing is not None:
        row["failing"] = _failure(attempt.failing)
    if attempt.clock is not None:
        row["clock"] = _clock(attempt.clock)
    if attempt.limit is not None:
        row["limit"] = _budget(attempt.limit)
    return row


def load_attempt(row: Row) -> Attempt:
    """The inverse of `dump_attempt`."""
    row = dict(row)
    identity, environment, failing = row.pop("identity", None), row.pop("environment", None), row.pop("failing", None)
    clock = row.pop("clock", None)
    return Attempt(
        clock=Clock(**clock) if clock is not None else None,
        limit=load_budget(row.pop("limit", None)),
        environment=environment,
        failing=Failure(**failing) if failing is not None else None,
        stuck_pids=tuple(row.pop("stuck_pids")),
        spent=Spent(**row.pop("spent")),
        identity=Identity(**identity) if identity is not None else None,
        **row,
    )


def dump_ask(ask: Ask) -> Row:
    """One question."""
    row = _ask(ask)
    row["options"] = [dict(option) for option in ask.options]
    row["scopes"] = list(ask.scopes)
    return row


def load_ask(row: Row) -> Ask:
    """The inverse of `dump_ask`."""
    row = dict(row)
    return Ask(options=tuple(row.pop("options")), scopes=tuple(row.pop("scopes")), **row)


def dump_delivery(delivery: Delivery) -> Row:
    """One result that waits for its owner."""
    return _delivery(delivery)


def load_delivery(row: Row) -> Delivery:
    """The inverse of `dump_delivery`."""
    return Delivery(**row)


# ---- graphs ------------------------------------------------------------------------------------------------


def dump_budget(budget: Budget | None) -> Row | None:
    """What the graph may use; None where nothing bounds it."""
    return _budget(budget) if budget is not None else None


def load_budget(row: Row | None) -> Budget | None:
    """The inverse of `dump_budget`."""
    return Budget(**row) if row is not None else None


def dump_terms(terms: Terms) -> Row:
    """What the graph was set under."""
    row = _terms(terms)
    if "pruned" in row:
        row["pruned"] = [_pruned(entry) for entry in terms.pruned]
    return row


def load_terms(row: Row | None) -> Terms:
    """The inverse of `dump_terms`; None, from logs that knew no terms, is the usual ones."""
    row = dict(row or {})
    return Terms(pruned=tuple(Pruned(**entry) for entry in row.pop("pruned", ())), **row)


def dump_header(graph: Graph) -> Row:
    """A graph without nodes, attempts, asks, deliveries and history."""
    row = _header(graph)
    row["source"] = _source(graph.source)
    row["limits"] = _limits(graph.limits)
    row["spent"] = _spent(graph.spent)
    row["terms"] = dump_terms(graph.terms)
    if graph.budget is not None:
        row["budget"] = _budget(graph.budget)
    row["spent_by_role"] = {role: _spent(spent) for role, spent in graph.spent_by_role.items()}
    row["cooling"] = {profile: _cooling(rest) for profile, rest in graph.cooling.items()}
    if graph.stopping is not None:
        row["stopping"] = _stopping(graph.stopping)
    return row


def dump_graph(graph: Graph) -> Row:
    """All durable fields of a graph: a base of the log. Nodes keep their order."""
    return {**dump_header(graph), **{name: list(rows) for name, rows in dump_parts(graph)}}


def dump_parts(graph: Graph) -> Iterable[tuple[str, Iterable[Row]]]:
    """The lists of a base beside its header, row by row: 10,000 nodes need not be dictionaries all at once."""
    yield "nodes", map(dump_node, graph.nodes.values())
    yield "attempts", map(dump_attempt, graph.attempts.values())
    yield "asks", map(dump_ask, graph.asks.values())
    yield "deliveries", map(dump_delivery, graph.deliveries.values())
    yield "history", map(_entry, graph.history)


def load_graph(row: Row) -> Graph:
    """The inverse of `dump_graph`. Derived fields are unset: call `derive.rebuild` before anything else."""
    row = dict(row)
    stopping = row.pop("stopping", None)
    holding = tuple(row.pop("holding", ()))
    nodes = [load_node(node) for node in row.pop("nodes")]
    attempts = [load_attempt(attempt) for attempt in row.pop("attempts")]
    asks = [load_ask(ask) for ask in row.pop("asks")]
    deliveries = [load_delivery(delivery) for delivery in row.pop("deliveries")]
    return Graph(
        source=Source(**row.pop("source")),
        limits=Limits(**row.pop("limits")),
        budget=load_budget(row.pop("budget", None)),
        terms=load_terms(row.pop("terms", None)),
        spent=Spent(**row.pop("spent")),
        spent_by_role={role: Spent(**spent) for role, spent in row.pop("spent_by_role", {}).items()},
        cooling={profile: Cooling(**rest) for profile, rest in row.pop("cooling", {}).items()},
        stopping=Stopping(**stopping) if stopping is not None else None,
        holding=holding,
        nodes={node.id: node for node in nodes},
        attempts={attempt.key: attempt for attempt in attempts},
        asks={ask.id: ask for ask in asks},
        deliveries={delivery.id: delivery for delivery in deliveries},
        history=[HistoryEntry(**entry) for entry in row.pop("history")],
        **row,
    )


# ---- events ------------------------------------------------------------------------------------------------


def dump_actor(actor: Actor) -> Row:
    """Who caused an event."""
    return _actor(actor)


def load_actor(row: Row) -> Actor:
    """The inverse of `dump_actor`."""
    return Actor(**row)
