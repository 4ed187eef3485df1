"""Which workspace, and where its state lies. Standard library alone.

Source: spec protocol.md, Which workspace.

Everybody who needs a folder of ours asks here, so that daemon, keepers and clients cannot disagree.
"""
# ruff: noqa: PTH100, PTH103, PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH123, SIM105
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import os
import stat

from graphd.base.digest import sha256_hex
from graphd.client.plain_socket import AF_UNIX, SOCK_STREAM, Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    AnyPath = str | os.PathLike[str]

DATABASE = "graph.db"
LOCK = "lock"
SOCKET = "socket"
LOG = "daemon.log"
STARTING = "starting"
"""Held (flock) by the one client that starts the daemon just now.

An economy, the daemon's own lock is what counts.
"""


class AttachFailure(Exception):
    """Why no daemon serves us.

    `message` for people, `hint` what to do, `code` as on the wire, `exit_code` of the command.
    """

    code = "unreachable"
    exit_code = 5

    def __init__(self, message: str, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code


class WorkspaceRefused(AttachFailure):
    """The folder cannot be a workspace: missing, or another user's."""

    code = "notFound"
    exit_code = 2


class Workspace:
    """A found workspace.

    `root` is its real path, `source` who named it, `note` what to tell the user (or "").
    """

    __slots__ = ("note", "root", "source")

    def __init__(self, root: str, source: str, note: str = "") -> None:
        self.root = root
        self.source = source
        self.note = note


def find_workspace(
    explicit: AnyPath | None = None, *, first_frame: object = None, cwd: AnyPath | None = None
) -> Workspace:
    """The workspace by the order of protocol.md: explicit, GRAPHD_WORKSPACE, the client's first frame, `cwd`.

    `first_frame` is a decoded message (`initialize`, `graphd/hello`, or anything else, which names nothing).
    Raises `WorkspaceRefused` for a folder that is missing or not the user's own.
    """
    start, source = _starting_point(explicit, first_frame, cwd)
    real = os.path.realpath(start)
    if not os.path.isdir(real):
        raise WorkspaceRefused(f"{start} is no folder", f"It was named by {source}. Name one with --workspace DIR.")
    root, marker = _root_of(real, is_named=source != "the current directory")
    note = ""
    if not marker:
        outer = _live_outer(root)
        if outer:
            root, note = outer, f"{root} lies inside the live workspace {outer}, which is used"
    if os.stat(root).st_uid != os.geteuid():
        raise WorkspaceRefused(
            f"the workspace {root} belongs to another user",
            "Name one of your own with --workspace DIR.",
            "untrusted",
        )
    return Workspace(root, source, note)


def state_root() -> str:
    """`$GRAPHD_STATE_DIR`, else `$XDG_STATE_HOME/graphd`, else `~/.local/state/graphd`; absolute."""
    return _folder("GRAPHD_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def config_folder() -> str:
    """`$GRAPHD_CONFIG_DIR`, else `$XDG_CONFIG_HOME/graphd`, else `~/.config/graphd`; absolute."""
    return _folder("GRAPHD_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def state_folder(workspace: AnyPath) -> str:
    """The state folder of a workspace: 16 hex digits of SHA-256 over its real path, below `state_root()`.

    Makes nothing.
    """
    real = os.fsencode(os.path.realpath(workspace))
    return os.path.join(state_root(), sha256_hex(real)[:16])


def make_state_folder(workspace: AnyPath) -> str:
    """The state folder, made 0700 where it was missing.

    Raises `AttachFailure` when it cannot be made or trusted.
    """
    folder = state_folder(workspace)
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        check_private(folder)
    except OSError as error:
        hint = "Make it writable, or set GRAPHD_STATE_DIR to a folder on a local disk."
        raise AttachFailure(f"the state folder {folder} cannot be used: {error.strerror}", hint) from error
    return folder


def check_private(folder: str) -> None:
    """Refuse a state folder that another user owns or can write to.

    Raises `AttachFailure`, or OSError if it is missing.
    """
    found = os.stat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        hint = f"Run: chmod 700 {folder} (or remove it, if it is not yours to keep)."
        raise AttachFailure(f"the state folder {folder} is not private to this user", hint, "unauthorised")


def connect_beside(folder: str, name: str = SOCKET, *, timeout_s: float | None = None) -> Connection:
    """A connection to the socket `name` in `folder`, by relative name: no path is too long.

    Raises OSError.
    """
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = Connection(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        through = f"/proc/self/fd/{folder_fd}"
        if os.path.isdir(through):
            connection.connect(f"{through}/{name}")
        elif len(os.fsencode(f"{folder}/{name}")) < 100:
            connection.connect(f"{folder}/{name}")
        else:
            _connect_from_inside(connection, folder_fd, name)
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(folder_fd)
    return connection


def _connect_from_inside(connection: Connection, folder_fd: int, name: str) -> None:
    """Without /proc (macOS): step into the folder. The process must have one thread; the byte pipe has."""
    before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchdir(folder_fd)
        connection.connect(name)
    finally:
        os.fchdir(before)
        os.close(before)


def _folder(ours: str, xdg: str, default: str) -> str:
    if os.environ.get(ours):
        return os.path.abspath(os.environ[ours])
    base = os.environ.get(xdg, "")
    if not os.path.isabs(base):  # the XDG specification: a relative one is to be ignored
        base = os.path.join(os.path.expanduser("~"), default)
    return os.path.join(base, "graphd")


def _starting_point(explicit: AnyPath | None, first_frame: object, cwd: AnyPath | None) -> tuple[str, str]:
    if explicit:
        return os.fspath(explicit), "--workspace"
    if os.environ.get("GRAPHD_WORKSPACE"):
        return os.environ["GRAPHD_WORKSPACE"], "GRAPHD_WORKSPACE"
    named = workspace_in_frame(first_frame)
    if named:
        return named, "the client"
    try:
        return os.fspath(cwd) if cwd else os.getcwd(), "the current directory"
    except FileNotFoundError:
        raise WorkspaceRefused("the current directory is gone", "Name one with --workspace DIR.") from None


def workspace_in_frame(message: object) -> str | None:
    """The folder that a client's first message names: `initialize` or `graphd/hello`.

    None for anything else.
    """
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(params, dict):
        return None
    if message.get("method") == "graphd/hello":
        return _text(params.get("workspace"))
    if message.get("method") != "initialize":
        return None
    folders = params.get("workspaceFolders")
    first = folders[0] if isinstance(folders, list) and folders else None
    uri = _text(params.get("rootUri")) or (_text(first.get("uri")) if isinstance(first, dict) else None)
    return (_path_of(uri) if uri else None) or _text(params.get("rootPath"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value and "\0" not in value else None


def _path_of(uri: str) -> str | None:
    """The path of a `file:` URI on this machine; other schemes name no folder here."""
    if not uri.lower().startswith("file://"):
        return None
    from urllib.parse import unquote_to_bytes  # costs 4 ms; only editors pay it

    host, slash, path = uri[7:].partition("/")
    return _text(os.fsdecode(unquote_to_bytes(slash + path))) if host.lower() in ("", "localhost") else None


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        yield parent
        folder = parent


def _root_of(real: str, *, is_named: bool) -> tuple[str, str]:
    """The root and the marker that made it one.

    The home directory's markers count only where it was named itself.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    passed_over = "" if is_named and real == home else home
    for marker in (".agents", ".git"):
        for folder in _upwards(real):
            at = os.path.join(folder, marker)
            if folder != passed_over and (os.path.isdir(at) or (marker == ".git" and os.path.isfile(at))):
                return folder, marker
    return real, ""


def _live_outer(root: str) -> str | None:
    """The nearest ancestor that is a live workspace, if the root has no marker and no database of its own."""
    if os.path.exists(os.path.join(state_folder(root), DATABASE)):
        return None
    for folder in _upwards(os.path.dirname(root)):
        state = state_folder(folder)
        if folder != root and os.path.exists(os.path.join(state, SOCKET)):
            try:
                connect_beside(state, timeout_s=1).close()
            except OSError:
                continue
            return folder
    return None
