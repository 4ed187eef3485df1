"""An agent's permission request as an ask: what it wants to do, where, and what may be answered.

Option ids are free text and pass unchanged; who answers chooses by `kind`. A request may lack title and kind: they are
those of the tool call that it names. Source: execution.md, People; research agents.md §9.
"""

import os
import re
import shlex
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.acp.wire import bounded, mapping, sequence, words

INPUT_LIMIT: Final = 16 << 10
PATHS_LIMIT: Final = 64
_PATH_NAMES: Final = (
    "path", "file_path", "filePath", "filepath", "abs_path", "absolute_path", "absolutePath", "notebook_path",
    "file", "filename", "target_file", "old_path", "new_path", "source", "destination", "directory", "dir_path",
)  # fmt: skip
_COMMAND_NAMES: Final = ("command", "cmd", "script")
_OWN_TITLE: Final = re.compile(
    r"mcp(?:__|\.|_)graphd(?:__|\.|_)([a-z]\w*)|graphd_([a-z]\w*)|Tool: graphd/(\w+)|(\w+) \(graphd MCP Server\)"
)
_SHELLS: Final = ("sh", "bash", "zsh", "dash")


def tool_facts(call: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a tool call or of an update of one: the fields that it has, bounded."""
    facts: dict[str, Any] = {}
    for name in ("title", "kind", "status"):
        if words(call.get(name)):
            facts[name] = call[name][:1000]
    paths = _paths(call)
    if paths:
        facts["paths"] = paths
    given = call.get("rawInput")
    if given not in (None, "", {}, []):
        facts["input"] = bounded(given, INPUT_LIMIT)
        command = command_of(given)
        if command:
            facts["command"] = command
    own = _own_tool(call, facts.get("title", ""))
    if own:
        facts["own"] = own
    return facts


def ask(key: str, params: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The content of an `ask` fact; `known` is what was told of the tool call before."""
    call = known | tool_facts(mapping(params.get("toolCall")))
    options = [_option(option) for option in sequence(params.get("options")) if _is_option(option)]
    title = call.get("title") or call.get("command") or call.get("kind") or t("the agent asks to use a tool")
    action = {"toolKind": call.get("kind", "other"), "title": title, "paths": call.get("paths", [])}
    action |= {name: call[name] for name in ("command", "input") if name in call}
    if "own" in call:  # it is ours, whatever kind its agent gives it: it changes nothing but what we are told
        action |= {"toolKind": "think", "own": call["own"]}
    return {"key": key, "kind": "permission", "title": title, "action": action, "options": options}


def with_real_paths(content: dict[str, Any], root: Path) -> dict[str, Any]:
    """The same ask with its paths seen from `root` and all their links resolved: what a policy looks at. Blocks."""
    action = content["action"]
    return content | {"action": action | {"paths": [os.path.realpath(root / path) for path in action["paths"]]}}


def _is_option(option: Any) -> bool:
    return isinstance(option, dict) and isinstance(option.get("optionId"), str)


def _option(option: dict[str, Any]) -> dict[str, Any]:
    label = words(option.get("name")) or option["optionId"]
    return {"id": option["optionId"], "kind": str(option.get("kind") or "other"), "label": label[:500]}


def _own_tool(call: dict[str, Any], title: str) -> str | None:
    """The name of the tool of our own MCP server that is called: each agent writes it another way."""
    given = mapping(call.get("rawInput"))
    if given.get("server") == "graphd" and words(given.get("tool")):
        return str(given["tool"])[:100]
    found = _OWN_TITLE.fullmatch(title.strip())
    return next((name for name in found.groups() if name), None) if found else None


def _paths(call: dict[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for place in (*sequence(call.get("locations")), *sequence(call.get("content"))):
        if isinstance(place, dict) and words(place.get("path")):
            found[place["path"]] = None
    given = mapping(call.get("rawInput"))
    for name in _PATH_NAMES:
        if words(given.get(name)):
            found[given[name]] = None
    return [path[:4096] for path in list(found)[:PATHS_LIMIT]]


def command_of(given: Any) -> str | None:
    """The command line that a tool's input names, a script without the shell before it."""
    for name in _COMMAND_NAMES:
        value = mapping(given).get(name)
        if value and isinstance(value, list) and all(isinstance(part, str) for part in value):
            is_script = len(value) == 3 and value[0].rpartition("/")[2] in _SHELLS and value[1] in ("-c", "-lc")
            return (value[2] if is_script else shlex.join(value))[:INPUT_LIMIT]
        if words(value):
            return str(value)[:INPUT_LIMIT]
    return None
