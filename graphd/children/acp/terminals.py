"""An agent's terminals: the commands that it asks us to run, as the fold sees them, and the requests about them.

A command is asked for as a permission, which `core.policy` or a person decides, unless one for the very same command
was just granted. What is allowed becomes a line for the keeper, which starts it and notes what became of it; the agent
is answered from the notes. So the same journal gives the same answers, whichever daemon reads it. Source: execution.md,
Drivers, People.
"""

import json
import re
import shlex
import signal
from typing import Any, Final

from graphd.base.text import t
from graphd.children.acp import lines
from graphd.children.acp.permission import INPUT_LIMIT, command_of
from graphd.children.acp.state import Made, State
from graphd.children.acp.wire import bounded, mapping
from graphd.children.keeping.files import TERMINAL_NOTE
from graphd.core.talk import Line

METHODS: Final = frozenset(f"terminal/{what}" for what in ("create", "output", "wait_for_exit", "kill", "release"))
OUTPUT_LIMIT_BYTES: Final = 1 << 20
"""Of one terminal at most, and where the agent says none: a reply has room for it, however it is written in JSON."""
LIVE_LIMIT: Final = 32
PLAIN_VARIABLES: Final = frozenset(
    {"CI", "CLAUDECODE", "CLICOLOR", "COLORTERM", "COLUMNS", "FORCE_COLOR", "GIT_TERMINAL_PROMPT", "LANG", "LC_ALL"}
    | {"LINES", "NO_COLOR", "PYTHONUNBUFFERED", "TERM"}
)
"""They change how a command prints. Any other stands before the command that is judged and shown, as in a shell."""
OPTIONS: Final = (
    {"id": lines.ALLOW, "kind": "allow_once", "label": "Allow"},
    {"id": "reject", "kind": "reject_once", "label": "Reject"},
)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class TerminalRefused(Exception):
    """The request is not served; the message is for the agent."""


def requested(state: State, key: str, method: str, params: dict[str, Any]) -> list[Made]:
    """A request of the agent, of METHODS."""
    if method == "terminal/create":
        try:
            return _created(state, key, params)
        except TerminalRefused as refusal:
            return [_say(lines.refusal(key, lines.INVALID_PARAMS, str(refusal)))]
    terminal_id = str(params.get("terminalId"))
    terminal = state.terminals.get(terminal_id)
    if terminal is None or not terminal["isLive"] or terminal["isReleased"]:
        return [_say(lines.refusal(key, lines.NOT_FOUND, f"there is no terminal {terminal_id[:100]}"))]
    match method:
        case "terminal/output":
            content = {"terminal": terminal_id, "limit": terminal["limit"], "exit": terminal["exit"]}
            return [("serve", {"id": key, "method": method, **content})]
        case "terminal/wait_for_exit" if terminal["exit"] is not None:
            return [_say(lines.reply(key, terminal["exit"]))]
        case "terminal/wait_for_exit":
            terminal["waits"].append(key)
            return []
    what = method.rpartition("/")[2]
    if what == "release":
        terminal["isReleased"] = True
        _forget(state, terminal_id)
    return [_say(lines.control(what, id=terminal_id)), _say(lines.reply(key, {}))]


def allowed(state: State, ask_key: str) -> list[Made]:
    """A person or a rule allowed the command of this ask: the line that says so is in the journal."""
    ask = state.asks.pop(ask_key, {})
    return _start(state, ask["terminal"]) if ask.get("terminal") in state.terminals else []


def refused(state: State, key: str) -> None:
    """The agent was told that the command of this request is not run."""
    for terminal_id in [name for name, held in state.terminals.items() if held["key"] == key and not held["isLive"]]:
        del state.terminals[terminal_id]


def noted(state: State, payload: bytes) -> list[Made]:
    """The keeper says what became of a terminal."""
    note = json.loads(payload[len(TERMINAL_NOTE) :])
    terminal = state.terminals.get(note["id"])
    if terminal is None:
        return []
    match note["event"]:
        case "started":
            terminal["isLive"] = True
            shown = {"kind": "terminal", "text": bounded(f"$ {terminal['command']}", 2000)}
            return [("item", shown), _say(lines.reply(terminal["key"], {"terminalId": note["id"]}))]
        case "failed":
            del state.terminals[note["id"]]
            return [_say(lines.refusal(terminal["key"], lines.INVALID_PARAMS, note["message"]))]
    name = _named(note["signal"])
    terminal["exit"] = {"exitCode": note["code"], "signal": name}
    waits, terminal["waits"] = terminal["waits"], []
    _forget(state, note["id"])
    text = t("ended by {signal}", signal=name) if name else t("exit code {code}", code=note["code"])
    return [("item", {"kind": "terminal", "text": text}), *(_say(lines.reply(key, terminal["exit"])) for key in waits)]


def _created(state: State, key: str, params: dict[str, Any]) -> list[Made]:
    if sum(not held["isReleased"] for held in state.terminals.values()) >= LIVE_LIMIT:
        raise TerminalRefused(f"{LIVE_LIMIT} terminals are open: release one first")
    argv, command = _command(params)
    variables = _variables(params)
    shown = " ".join(
        [f"{name}={shlex.quote(value)}" for name, value in variables if name not in PLAIN_VARIABLES] + [command]
    )
    if len(shown) >= INPUT_LIMIT:  # a longer one was cut where it was asked for: no grant is for its beginning
        raise TerminalRefused(f"a command of {INPUT_LIMIT} characters or more: write it to a file, and run that")
    state.terminal_count += 1
    terminal_id = f"t{state.terminal_count}"
    state.terminals[terminal_id] = {
        "key": key, "argv": argv, "cwd": _folder(params), "env": variables, "limit": _limit(params), "command": shown,
        "exit": None, "waits": [], "isLive": False, "isReleased": False,
    }  # fmt: skip
    if shown in state.granted:
        state.granted.remove(shown)
        return _start(state, terminal_id)
    ask_key = lines.TERMINAL_ASK + key
    state.asks[ask_key] = {"options": {o["id"]: o["kind"] for o in OPTIONS}, "terminal": terminal_id}
    action = {"toolKind": "execute", "title": shown, "command": shown, "paths": [_folder(params) or "."]}
    content = {"key": ask_key, "kind": "permission", "title": shown, "action": action, "options": list(OPTIONS)}
    return [("ask", content)]


def _start(state: State, terminal_id: str) -> list[Made]:
    terminal = state.terminals[terminal_id]
    state.has_acted = True
    wanted = {name: terminal[name] for name in ("argv", "cwd", "env", "limit")}
    return [("serve", {"id": terminal["key"], "method": "terminal/start", "terminal": terminal_id, **wanted})]


def _forget(state: State, terminal_id: str) -> None:
    terminal = state.terminals[terminal_id]
    if terminal["isReleased"] and terminal["exit"] is not None:
        del state.terminals[terminal_id]


def _named(number: int | None) -> str | None:
    try:
        return None if number is None else signal.Signals(number).name
    except ValueError:  # a real-time one
        return f"SIG{number}"


def _command(params: dict[str, Any]) -> tuple[list[str], str]:
    """(the words to run, the text that is judged and shown). Without `args`, `command` is a line for the shell."""
    command, args = params.get("command"), params.get("args")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise TerminalRefused("command: a text is wanted")
    if not args:
        return ["/bin/sh", "-c", command], command
    if not isinstance(args, list) or not all(isinstance(arg, str) and "\0" not in arg for arg in args):
        raise TerminalRefused("args: a list of texts is wanted")
    argv = [command, *args]
    folder = command.rpartition("/")[0]
    is_known = folder in ("/bin", "/usr/bin") or "/" not in command  # a program of the folder's may be called sh too
    return argv, (command_of({"command": argv}) if is_known else None) or shlex.join(argv)


def _variables(params: dict[str, Any]) -> list[list[str]]:
    found = params.get("env") or []
    rows = [mapping(row) for row in found] if isinstance(found, list) else [{}]
    for row in rows:
        name, value = row.get("name"), row.get("value")
        is_text = isinstance(name, str) and isinstance(value, str) and "\0" not in value
        if not is_text or not _VARIABLE.match(str(name)):
            raise TerminalRefused("env: a list of {name, value} is wanted")
        if str(name).startswith("GRAPHD_"):
            raise TerminalRefused(f"env: {name} is not yours to set")
    return [[row["name"], row["value"]] for row in rows]


def _folder(params: dict[str, Any]) -> str | None:
    folder = params.get("cwd")
    if folder is not None and (not isinstance(folder, str) or not folder or "\0" in folder or len(folder) > 4096):
        raise TerminalRefused("cwd: an absolute path is wanted")
    return folder


def _limit(params: dict[str, Any]) -> int:
    limit = params.get("outputByteLimit")
    if limit is None:
        return OUTPUT_LIMIT_BYTES
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise TerminalRefused("outputByteLimit: a number from 0 on is wanted")
    return min(limit, OUTPUT_LIMIT_BYTES)


def _say(line: Line) -> Made:
    return ("say", {"message": line.message, "isRequest": line.is_request})
