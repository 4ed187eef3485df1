"""Whether an agent may do a thing without a person: the table of execution.md, People, as a pure function.

Order: deny globs, ask globs, allow globs, scopes that people granted, the table. Paths are real paths (the driver has
resolved links); what lies outside the node's root is never covered by a rule for what is inside.
"""

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from graphd.base.text import Text, t
from graphd_protocol.states import Permissions

Word = Literal["allow", "ask", "deny"]
Scope = tuple[str, str, str, str]
"""(tool kind, glob, allow or deny, ask id)"""

CHANGES: Final = frozenset({"edit", "move", "delete"})
HARMLESS: Final = frozenset({"read", "search", "think"})
TOOL_KINDS: Final = ("read", "search", "think", "fetch", "edit", "move", "delete", "execute", "switch_mode", "other")
WHOLE_KINDS: Final = frozenset({"think", "fetch", "switch_mode"})
"""Their requests name no path and no command: a rule is about all of them, or none."""
RULE_LIMIT: Final = 500
READERS: Final = frozenset(
    {"basename", "cat", "cmp", "cut", "df", "diff", "dirname", "du", "echo", "file", "grep", "head", "jq", "ls", "nl"}
    | {"md5sum", "pwd", "readlink", "realpath", "rg", "sha256sum", "sort", "stat", "tail", "tr", "tree", "true", "wc"}
    | {"which"}
)
READING_GIT: Final = frozenset({"blame", "describe", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status"})
WRITING_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "sort": ("--o", "--co"),
    "rg": ("--pre", "--hostname-bin"),
    "file": ("--c",),
    "git": ("-O", "--op", "--out", "--ext", "--textconv"),
}
"""Beginnings of options that write or start something: programs take a long one by any beginning that is its alone."""
_WRITING_LETTERS: Final = {"sort": "o", "tree": "oR", "file": "C", "git grep": "O"}
"""The same for options of one letter, which stand among others behind one dash."""
_SHELL_MEANS: Final = re.compile(r"[;&|<>`$\n\r(){}*?!~#\\]")
_BETWEEN: Final = re.compile(r"[;&|`$\n\r(){}!]+")
"""What stands between two commands of one line."""


class Leave(NamedTuple):
    """What an attempt may do, and who could be asked: frozen with its order.

    `deny`, `ask` and `allow` are a person's own rules, `toolKind:glob`; `writes` bounds edits inside `root`.
    """

    permissions: Permissions = "edit"
    root: str = "/"
    writes: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    detached: Literal["wait", "deny"] = "wait"
    is_attended: bool = True


class Ruling(NamedTuple):
    """The word, and the name of the rule that said it, for the log."""

    verdict: Word
    rule: str


def permit(action: dict[str, Any], leave: Leave, *, scopes: Sequence[Scope] = ()) -> Ruling:
    """What becomes of a permission that an agent asks for. `action`: toolKind, paths, command."""
    kind = str(action.get("toolKind") or "other")
    for word, globs in (("deny", leave.deny), ("ask", leave.ask), ("allow", leave.allow)):
        for glob in globs:
            if _is_about(glob, kind, action, leave, whole=word == "allow"):
                return Ruling(_word(word), f"{word} {glob}")
    for scope_kind, glob, word, ask in scopes:
        if scope_kind == kind and _is_about(f"{kind}:{glob}", kind, action, leave, whole=word == "allow"):
            return Ruling(_word(word), ask)
    return Ruling(_by_table(kind, action, leave), f"{leave.permissions}/{kind}")


def _word(word: str) -> Word:
    return "allow" if word == "allow" else "deny" if word == "deny" else "ask"


def _by_table(kind: str, action: dict[str, Any], leave: Leave) -> Word:
    permissions = leave.permissions
    if kind in HARMLESS:
        return "allow"
    if kind == "fetch":
        return "allow" if permissions == "full" else "ask"
    if kind in CHANGES:
        return _change(action, leave)
    if kind == "execute":
        if permissions == "full":
            return "allow"
        if permissions == "edit":
            return "ask"
        return "allow" if only_reads(str(action.get("command") or "")) else "deny"
    return "deny" if permissions == "read" else "ask"


def _change(action: dict[str, Any], leave: Leave) -> Word:
    if leave.permissions == "read":
        return "deny"
    paths = _paths(action)
    if not paths or not all(is_inside(path, leave.root) for path in paths):
        return "ask"
    if leave.permissions == "edit" and leave.writes:
        inner = [posixpath.relpath(path, leave.root) for path in paths]
        return "allow" if all(any(matches(path, glob) for glob in leave.writes) for path in inner) else "ask"
    return "allow"


def only_reads(command: str) -> bool:
    """One command of the read-only list, without anything that a shell would make more of."""
    if _SHELL_MEANS.search(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words or any(map(_writes(words), words[1:])):
        return False
    if words[0] == "git":
        return len(words) > 1 and words[1] in READING_GIT
    return words[0] in READERS


def _writes(words: list[str]) -> Callable[[str], bool]:
    """Whether an option of this command makes it write, or start another program."""
    long = WRITING_OPTIONS.get(words[0], ())
    letters = _WRITING_LETTERS.get(" ".join(words[: 2 if words[0] == "git" else 1]), "")
    return lambda word: (
        word.startswith(long)
        or (word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters))
    )


# ---- globs --------------------------------------------------------------------------------------------------------


def glob_of(action: dict[str, Any]) -> str | None:
    """What a standing answer to this action would cover: the folder of its one path, or a command's first word."""
    kind, paths = action.get("toolKind"), _paths(action)
    if kind == "execute":
        words = str(action.get("command") or "").split()
        return f"{words[0]} *" if words and not _SHELL_MEANS.search(words[0]) else None
    if len(paths) != 1:
        return None
    return posixpath.join(posixpath.dirname(paths[0]), "**")


def rule_reason(rule: str) -> Text | None:
    """Why a text is no rule of the form `toolKind` or `toolKind:glob`; None where it is one."""
    kind, colon, glob = rule.partition(":")
    if len(rule) > RULE_LIMIT or not rule.isprintable():
        return t("a rule is a line of 1 to {limit} characters", limit=RULE_LIMIT)
    if kind not in ("*", *TOOL_KINDS):
        return t("{kind!r} is no tool kind; there are *, {kinds}", kind=kind, kinds=", ".join(TOOL_KINDS))
    if colon and not glob.strip():
        return t("nothing stands behind the colon; {kind} alone is about all of that kind", kind=kind)
    if glob and kind in WHOLE_KINDS:
        return t("{kind} names neither path nor command: write {kind} alone", kind=kind)
    if kind != "execute" and ".." in glob.split("/"):
        return t("a path in a rule has no .. in it: it would fit nothing")
    return None


def _is_about(rule: str, kind: str, action: dict[str, Any], leave: Leave, *, whole: bool) -> bool:
    """Whether `toolKind:glob` (or `*:glob`) is about the `whole` of this action, or about anything in it.

    What allows has to be about all of it; what denies or asks is not got past by something else beside it.
    """
    rule_kind, _, glob = rule.partition(":")
    if rule_kind not in ("*", kind):
        return False
    if not glob:
        return True
    if kind == "execute":
        return _runs(str(action.get("command") or ""), glob, whole=whole)
    paths = _paths(action)
    absolute = glob if glob.startswith("/") else posixpath.join(leave.root, glob)
    found = [matches(path, absolute) for path in paths]
    return bool(paths) and (all(found) if whole else any(found))


def _runs(command: str, glob: str, *, whole: bool) -> bool:
    """Whether a command is one that the glob names, or (not the `whole`) has such a one among others."""
    if whole and _SHELL_MEANS.search(command):
        return False
    commands = [command] if whole else [command, *(part.strip() for part in _BETWEEN.split(command))]
    return any(fnmatch.fnmatchcase(one, glob) or f"{one} *" == glob for one in commands)


def _paths(action: dict[str, Any]) -> list[str]:
    found: Iterable[Any] = action.get("paths") or ()
    return [posixpath.normpath(str(path)) for path in found]


def is_inside(path: str, root: str) -> bool:
    """Whether an absolute path lies in a folder."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def matches(path: str, glob: str) -> bool:
    """Whether a path matches a glob in which `**` crosses folders and `*` does not."""
    return re.fullmatch(_pattern(glob), path) is not None


def _pattern(glob: str) -> str:
    out, rest = "", glob
    while rest:
        if rest.startswith("**/"):
            out, rest = out + "(?:[^/]+/)*", rest[3:]
        elif rest.startswith("**"):
            out, rest = out + ".*", rest[2:]
        elif rest[0] == "*":
            out, rest = out + "[^/]*", rest[1:]
        elif rest[0] == "?":
            out, rest = out + "[^/]", rest[1:]
        else:
            out, rest = out + re.escape(rest[0]), rest[1:]
    return out
