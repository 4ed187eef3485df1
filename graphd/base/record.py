"""The newest daemon that a workspace had: `daemon.json` in its state folder. Standard library alone.

Information, never a lock: it only says which program to start. An older client starts the newest one recorded, where
that still exists, so that two versions on one machine do not replace each other for ever. Source: spec protocol.md,
Daemon, socket, lock (Take-over).
"""
# ruff: noqa: PTH100, PTH101, PTH105, PTH113, PTH117, PTH118, PTH120, PTH123
# (no pathlib and no contextlib: the byte pipe imports next to nothing)

from __future__ import annotations

import os

from graphd import __version__
from graphd.base.plain_json import decode, encode
from graphd.base.versions import is_newer

FILE = "daemon.json"
LIMIT_BYTES = 64 * 1024


class DaemonRecord:
    """How to start a daemon: its `version`, command line without the workspace, package folder and PYTHONPATH."""

    __slots__ = ("argv", "package", "python_path", "version")

    def __init__(self, version: str, argv: list[str], package: str, python_path: str | None) -> None:
        self.version = version
        self.argv = argv
        self.package = package
        self.python_path = python_path

    @property
    def is_there(self) -> bool:
        """Its interpreter and its package still exist."""
        return os.access(self.argv[0], os.X_OK) and os.path.isfile(os.path.join(self.package, "__init__.py"))

    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        """`environment` so that its interpreter finds its package, not ours."""
        kept = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        return kept if self.python_path is None else {**kept, "PYTHONPATH": self.python_path}


def own_package() -> str:
    """The folder of this very package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def newer_recorded(folder: str) -> DaemonRecord | None:
    """The recorded daemon, where it is newer than this package, another program, and still there."""
    record = read_record(folder)
    if record is None or record.package == own_package() or not is_newer(record.version, __version__):
        return None
    return record if record.is_there else None


def read_record(folder: str) -> DaemonRecord | None:
    """What stands in the file; None where it is missing or is none of ours."""
    try:
        with open(os.path.join(folder, FILE), "rb") as file:
            value = decode(file.read(LIMIT_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    version, argv, package = value.get("version"), value.get("argv"), value.get("package")
    path = value.get("pythonPath")
    if not (isinstance(version, str) and isinstance(package, str) and isinstance(path, str | None)):
        return None
    if not (isinstance(argv, list) and argv and all(isinstance(word, str) and "\0" not in word for word in argv)):
        return None
    return DaemonRecord(version, argv, package, path) if os.path.isabs(argv[0]) else None


def write_record(folder: str, argv: list[str], protocol: tuple[int, int]) -> bool:
    """Note this daemon, unless a newer one that still exists stands there. False where it was not written."""
    if newer_recorded(folder) is not None or not os.path.isabs(argv[0]):
        return False
    from graphd.base.failpoints import failpoint  # the daemon's alone: readers do without

    value = {
        "version": __version__, "protocol": list(protocol), "argv": argv, "package": own_package(),
        "pythonPath": os.environ.get("PYTHONPATH"),
    }  # fmt: skip
    temporary = os.path.join(folder, f"{FILE}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(encode(value))
        os.chmod(temporary, 0o600)
        failpoint("record.rename.before")
        os.replace(temporary, os.path.join(folder, FILE))
        failpoint("record.rename.after")
    except OSError:
        return False  # a full disk: the daemon serves all the same
    return True
