"""What the scripted model server answers: the script in the prompt, and the agent's own tool for an action.

The user's prompt carries the script, and the server keeps no conversation:

    [[script: [{"write": {"path": "a.txt", "content": "hi"}}, {"say": "done"}] ]]

The last user message with such a mark counts; the groups of tool results after it say which step is due. So an agent
that was killed and went on with its session gets the step that fits what it remembers, and one server serves any
number of agents at once. Past the end the answer is "script over".

A step is one answer of the model:

    say, think             text, and reasoning where the protocol has it
    write {path, content}  the agent's own write tool, else its shell
    read {path}            the same for reading
    shell "command"        the agent's own shell tool
    tool {name, args}      this tool (a name behind an MCP prefix is found too)
    calls [ … ]            several of the four in one answer
    escalate true          where the shell tool can ask to run outside of its sandbox, it does
    gap, repeat            seconds between streamed pieces; `say` so many times
    usage [in, out]        tokens that it claims

and what befalls the answer, for its first `times` tries only, where that is given, or until `release(until)`:

    wait S                 seconds before the first byte
    hold NAME              until `release(NAME)`
    error STATUS           fails with it; `retryAfterS`: with that header
    drop true              the connection breaks in the middle of the stream

A server may know scripts for prompts that carry none, by a phrase in them (`ModelServer(by_phrase=…)`).

A request that offers no tools (titles, summaries) is answered at once with a fixed text; `bare: true` in a step makes
it apply there too.
"""

import json
import os
import re
import shlex
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Step = dict[str, Any]
Properties = dict[str, Any]
Call = tuple[str, dict[str, Any]]

MARK: Final = "[[script:"
WRITE_NAMES: Final = ("write_file", "write", "Write", "create_file", "write_text_file", "edit_file")
READ_NAMES: Final = ("read_file", "read", "Read", "read_text_file")
SHELL_NAMES: Final = (
    "exec_command", "shell_command", "shell", "local_shell", "bash", "Bash", "run_shell_command", "execute",
    "run_command",
)  # fmt: skip
PATH_KEYS: Final = ("file_path", "filePath", "path", "absolute_path", "filename")
TEXT_KEYS: Final = ("content", "contents", "file_text", "text", "new_string")
COMMAND_KEYS: Final = ("command", "cmd", "script", "input")
_CWD: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"<cwd>(?:\\n|\s)*(/[^<\\]+)",
        r"(?:primary |current )?working (?:directory|folder)(?: is)?:? *(?:`|\\\")?(/[^\s`\\\"<>,]+)",
        r"working in the (?:directory|folder):? *(?:`|\\\")?(/[^\s`\\\"<>,]+)",
        r"workspace director(?:y|ies)[^/]{0,60}?(/[^\s`\\\"<>,]+)",
        r"\bcwd:? *(?:`|\\\")?(/[^\s`\\\"<>,]+)",
    )
)


def script(*steps: Step) -> str:
    """The mark that makes the server play these steps, to be put into a prompt."""
    return f"{MARK} {json.dumps(list(steps))} ]]"


def find_script(text: str) -> list[Step] | None:
    """The steps of the last mark in a text, or None. Also where the text was once quoted as JSON."""
    at = text.rfind(MARK)
    if at < 0:
        return None
    rest = text[at + len(MARK) :].lstrip()
    for candidate in (rest, rest.replace('\\"', '"').replace("\\n", "\n")):
        try:
            steps, _ = json.JSONDecoder().raw_decode(candidate)
        except ValueError:
            continue
        if isinstance(steps, list):
            return steps
    return None


def _found(text: str, by_phrase: Mapping[str, list[Step]]) -> list[Step] | None:
    marked = find_script(text)
    return marked if marked is not None else next((made for phrase, made in by_phrase.items() if phrase in text), None)


@dataclass(frozen=True)
class Said:
    """One message of the history that a request shows."""

    who: Literal["user", "tool", "assistant"]
    text: str


@dataclass(frozen=True)
class Due:
    """The step that a request is to be answered with; `index` -1: none of a script's."""

    step: Step
    index: int
    script_id: str


@dataclass(frozen=True)
class Turn:
    """What a request of any protocol comes down to."""

    dialect: str
    model: str
    body: dict[str, Any]
    tools: tuple[tuple[str, Properties], ...] = ()
    history: tuple[Said, ...] = field(default=(), repr=False)

    def due(self, by_phrase: Mapping[str, list[Step]] | None = None) -> Due:
        """The step for this request; `by_phrase` says what is played where a user's text has no mark but this."""
        steps: list[Step] | None = None
        index, last = 0, ""
        for said in self.history:
            if said.who == "user" and (found := _found(said.text, by_phrase or {})) is not None:
                steps, index = found, 0
            elif said.who == "tool" and last != "tool":
                index += 1
            last = said.who
        if steps is None:
            return Due({"say": "ok"}, -1, "")
        script_id = format(zlib.crc32(json.dumps(steps).encode()), "08x")
        step = steps[index] if index < len(steps) else {"say": "script over"}
        if not self.tools and not step.get("bare"):
            return Due({"say": "Scripted title"}, -1, script_id)
        return Due(step, index, script_id)

    def cwd(self) -> str | None:
        """The folder that the agent tells its model about, for tools that want absolute paths."""
        text = json.dumps(self.body)
        found = next((match for pattern in _CWD if (match := pattern.search(text))), None)
        return found[1].strip().rstrip(".") if found else None

    def calls(self, step: Step) -> list[Call]:
        """The tool calls of a step, in the agent's own names."""
        made = (_call(action, self.tools, self.cwd()) for action in step.get("calls") or [step])
        return [call for call in made if call]


def _pick(names: Iterable[str], tools: Iterable[tuple[str, Properties]]) -> tuple[str, Properties] | None:
    offered = dict(tools)
    wanted = list(names)
    for name in wanted:
        if name in offered:
            return name, offered[name]
    for name in wanted:  # behind the prefix of a server
        for other, properties in offered.items():
            if other.endswith(("__" + name, "." + name, "_" + name)):
                return other, properties
    return None


def _key(keys: Iterable[str], properties: Properties, default: str) -> str:
    return next((key for key in keys if key in properties), default)


def _shell(command: str, tools: Iterable[tuple[str, Properties]], *, does_escalate: bool) -> Call | None:
    picked = _pick(SHELL_NAMES, tools)
    if picked is None:
        return None
    name, properties = picked
    key = _key(COMMAND_KEYS, properties, "command")
    is_list = (properties.get(key) or {}).get("type") == "array"
    arguments: dict[str, Any] = {key: ["bash", "-lc", command] if is_list else command}
    if "description" in properties:
        arguments["description"] = "scripted command"
    if does_escalate and "sandbox_permissions" in properties:
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "scripted"}
    return name, arguments


def _call(action: Step, tools: tuple[tuple[str, Properties], ...], cwd: str | None) -> Call | None:
    if "tool" in action:
        asked = action["tool"]
        picked = _pick((asked["name"],), tools)
        return (picked[0] if picked else asked["name"]), asked.get("args", {})
    escalate = bool(action.get("escalate"))
    if "shell" in action:
        return _shell(action["shell"], tools, does_escalate=escalate)
    if "write" not in action and "read" not in action:
        return None
    is_write = "write" in action
    spec = action["write" if is_write else "read"]
    picked = _pick(WRITE_NAMES if is_write else READ_NAMES, tools)
    if picked is None:
        quoted = shlex.quote(spec["path"])
        write = f"printf %s {shlex.quote(spec.get('content', ''))} > {quoted}"
        return _shell(write if is_write else f"cat {quoted}", tools, does_escalate=escalate)
    name, properties = picked
    path = spec["path"] if cwd is None else os.path.join(cwd, spec["path"])
    arguments = {_key(PATH_KEYS, properties, "path"): path}
    if is_write:
        arguments[_key(TEXT_KEYS, properties, "content")] = spec["content"]
    return name, arguments
