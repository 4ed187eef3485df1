"""Whole results for those who read them: also what is too long for the database. Reads state and files."""

import contextlib
import json
from pathlib import Path
from typing import Any

from graphd.core.items import items_of, value_of
from graphd.core.model import Graph, Node


def joined_text(folder: Path, graph: Graph, maker: Node) -> str:
    """The whole list of what the items of a `for_each` node came to. Blocks for what is too long."""
    output = maker.output
    if output is None or not output.is_cut:
        return output.text if output is not None else "null"
    values = [_value(folder, graph, item) for item in items_of(graph, maker)]
    return json.dumps(values, ensure_ascii=False)


def whole_text(folder: Path, graph: Graph, node: Node) -> str:
    """All of a node's output; its beginning where its file is gone. Blocks for what is too long."""
    output = node.output
    text = output.text if output is not None else ""
    attempt = graph.attempts.get((node.id, "worker", node.last_number))
    if output is not None and output.is_cut and attempt is not None:
        with contextlib.suppress(OSError):  # retention may have taken it
            text = Path(f"{folder}/attempts/{graph.id}/{attempt.folder}/output").read_text("utf-8", "replace")
    return text


def _value(folder: Path, graph: Graph, item: Node) -> Any:
    if item.state != "achieved" or item.output is None:
        return None
    return value_of(whole_text(folder, graph, item), item.output.media_type)
