"""Builds an attempt's order from committed state: script, inputs, environment, deadlines. Reads state; writes
nothing.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphd.children.driver import Input, Order
from graphd.core.model import Attempt, Graph, Node
from graphd.daemon.settings import Settings
from graphd_protocol.ids import node_id


@dataclass(slots=True, frozen=True)
class House:
    """What every order of this daemon has in common."""

    folder: Path
    store: str
    epoch: int
    restart_argv: tuple[str, ...]
    load_environment: Callable[[str | None], dict[str, str]]


def attempt_folder(folder: Path, attempt: Attempt) -> Path:
    """Where everything of one attempt lies."""
    return Path(f"{folder}/attempts/{attempt.graph}/{attempt.folder}")  # one parse: joins cost a third of an order


def build_order(house: House, settings: Settings, graph: Graph, attempt: Attempt) -> Order:
    """Everything that one attempt needs, from its frozen definition."""
    node = graph.nodes[attempt.node]
    definition = node.definition
    timeout_ms = min(definition.timeout_ms, definition.hard_timeout_ms or definition.timeout_ms)
    return Order(
        graph=graph.id, node=node.id, slug=node.slug, number=attempt.number, role=attempt.role,
        # With the store: an exported graph may live here and where it came from.
        cookie=f"{house.store}/{attempt.cookie}",
        folder=attempt_folder(house.folder, attempt), profile=attempt.profile, spec=definition.spec,
        inputs=tuple(_inputs(house.folder, graph, node)), environment=house.load_environment(attempt.environment),
        cwd=Path(graph.workspace), workspace=Path(graph.workspace), variables=graph.variables,
        timeout_s=timeout_ms / 1000,
        linger_s=settings.linger_s, restart_argv=house.restart_argv if settings.keepers_restart_daemon else (),
        store=house.store, epoch=house.epoch,
    )  # fmt: skip


def _inputs(folder: Path, graph: Graph, node: Node) -> list[Input]:
    mapping = node.definition.input_mapping or tuple((slug, slug) for slug in node.definition.needs)
    return [_input(folder, graph, name, reference) for name, reference in mapping]


def _input(folder: Path, graph: Graph, name: str, reference: str) -> Input:
    """One mapped input: `slug`, `slug.output` or `slug.output.a.b`; a missing one is a text that names node and
    reason.
    """
    slug, _, rest = reference.partition(".")
    source = graph.nodes[node_id(slug)]
    output = source.output
    if source.state != "achieved" or output is None:
        return Input(name, placeholder(source), None)
    path = rest.partition(".")[2]
    if path:
        return Input(name, _dig(output.text, path, reference), None)
    achieved = graph.attempts.get((source.id, "worker", source.last_number))
    kept = Path(f"{folder}/attempts/{graph.id}/{achieved.folder}/output") if achieved else None
    return Input(name, output.text, kept)


def placeholder(source: Node) -> str:
    """The text that stands for an input that there is not (model.md, Node)."""
    reason = source.skip or source.cancel_reason or (source.failure.reason if source.failure else None) or source.state
    return f"[no output: {source.slug} was {source.state}: {reason}]"


def _dig(text: str, path: str, reference: str) -> str:
    try:
        value: Any = json.loads(text)
        for name in path.split("."):
            value = value[name]
    except (ValueError, KeyError, TypeError, IndexError):
        return f"[no value at {reference}]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
