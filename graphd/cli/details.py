"""An open node in the live tree: a few lines below its own, from what is known already. Pure."""

from typing import Any, Final

from graphd.base.text import t
from graphd.cli.speech import say
from graphd.cli.words import duration, harmless, size

Wire = dict[str, Any]
_SPEC_LINES: Final = 3
_REASON_LINES: Final = 4
_OUTPUT_LINES: Final = 6


def details_of(snapshot: Wire, slug: str, activity: dict[str, Wire], now_ms: int) -> list[str]:
    """What it does, what it needs, why it failed, and the end of what it said."""
    nodes = {node["slug"]: node for node in snapshot["nodes"]}
    node = nodes.get(slug)
    if node is None:
        return []
    lines = [_head(node, now_ms), *_lines(node["spec"], _SPEC_LINES)]
    if node["needs"]:
        told = ", ".join(f"{need} ({nodes[need]['state']})" if need in nodes else need for need in node["needs"])
        lines.append(say(t("needs {names}", names=told)))
    failure = node.get("failure")
    if failure:
        lines += _lines(f"{failure['class']}: {failure['reason']}", _REASON_LINES)
    output = node.get("output")
    if output:
        lines += _tail(output)
    elif (said := activity.get(slug, {}).get("lastLine")) and node["state"] == "running":
        lines += _lines(said, 1)
    return [harmless(line) for line in lines]


def _head(node: Wire, now_ms: int) -> str:
    started = node.get("startedAt")
    parts = [node["worker"], node["state"], say(t("attempt {number}", number=node["attempts"]))]
    if started:
        parts.append(duration((node.get("endedAt") or now_ms) - started))
    if node["spent"]["tokens"]:
        parts.append(f"{node['spent']['tokens']:,} tokens")
    if node["title"] != node["slug"]:
        parts.append(node["title"])
    return "  ".join(parts)


def _lines(text: str, limit: int) -> list[str]:
    found = [line for line in text.strip().split("\n") if line.strip()]
    return found[:limit] if len(found) <= limit else [*found[: limit - 1], f"{found[limit - 1]} …"]


def _tail(output: Wire) -> list[str]:
    """The last lines of a result. The snapshot holds its beginning only where it is long."""
    found = [line for line in harmless(output["text"]).strip().split("\n") if line.strip()]
    if output.get("isCut"):
        return [*found[: _OUTPUT_LINES - 1], say(t("… {size} in all", size=size(output["total"])))]
    return found[-_OUTPUT_LINES:]
