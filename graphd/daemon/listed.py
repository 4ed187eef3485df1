"""The list of a `for_each` node for those who read it. Reads state and files."""

import contextlib
import json
from pathlib import Path
from typing import Any

from graphd.core.items import items_of, value_of
from graphd.core.model import Graph, Node


def joined_text(folder: Path, graph: Graph, maker: Node) -> str:
    """The whole list of what the items came to: also what is too long for the database. Blocks for what is."""
    output = maker.output
    if output is None or not output.is_cut:
        return output.text if output is not None else "null"
    values = [_whole(folder, graph, item) for item in items_of(graph, maker)]
    return json.dumps(values, ensure_ascii=False)


def _whole(folder: Path, graph: Graph, item: Node) -> Any:
    output = item.output
    if item.state != "achieved" or output is None:
        return None
    text = output.text
    attempt = graph.attempts.get((item.id, "worker", item.last_number))
    if output.is_cut and attempt is not None:
        with contextlib.suppress(OSError):  # retention may have taken it
            text = Path(f"{folder}/attempts/{graph.id}/{attempt.folder}/output").read_text("utf-8", "replace")
    return value_of(text, output.media_type)
