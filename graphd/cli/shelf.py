"""Nodes from `--sh` and `--then`: each command a node named after its first word. Pure."""

import re
from typing import Any, Final

Wire = dict[str, Any]
_TAKEN: Final = frozenset({"and", "or", "not", "in", "true", "false", "null", "state", "verdict", "output"})
_TITLE_CHARS: Final = 72


def nodes_of(steps: list[tuple[str, str]]) -> list[Wire]:
    """Nodes for `workgraph/set`. A step is ("sh" or "then", command), in the order of the command line.

    A `--then` needs every command before it that nothing needs yet, so several of them make a chain.
    """
    nodes: list[Wire] = []
    loose: list[str] = []
    for kind, script in steps:
        slug = _unique(slug_of(script), {n["slug"] for n in nodes})
        node: Wire = {"slug": slug, "spec": script, "worker": "shell"}
        if kind == "then":
            node["needs"] = loose
            loose = []
        nodes.append(node)
        loose = [*loose, slug]
    return nodes


def title_of(steps: list[tuple[str, str]]) -> str:
    """The commands themselves, as far as they fit: `make lint, make test → ./deploy`."""
    text = ""
    for kind, script in steps:
        first = " ".join(script.split())
        text += first if not text else (" → " if kind == "then" else ", ") + first
    return text if len(text) <= _TITLE_CHARS else text[: _TITLE_CHARS - 1] + "…"


def slug_of(script: str) -> str:
    """The first word that is no assignment, without its folder, as a slug."""
    words = [w for w in script.split() if not re.fullmatch(r"\w+=\S*", w)] or ["step"]
    bare = re.sub(r"[^A-Za-z0-9_-]+", "-", words[0].rstrip(";").rsplit("/", 1)[-1]).strip("-_")[:48] or "step"
    return f"sh-{bare}" if bare.lower() in _TAKEN or bare.startswith("gn-") else bare


def _unique(slug: str, taken: set[str]) -> str:
    if slug not in taken:
        return slug
    number = 2
    while f"{slug}-{number}" in taken:
        number += 1
    return f"{slug}-{number}"
