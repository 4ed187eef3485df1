"""Why the store says no: refusals of an opening, of a commit, and the end of a daemon that lost its claim."""

import sqlite3
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphd.base.refusal import Refused
from graphd.base.text import t

UnavailableKind: TypeAlias = Literal["full", "readOnly", "busy"]
Health: TypeAlias = Literal["ok", "full", "readOnly"]


class WorkspaceLocked(Refused):
    """Another daemon holds the lock. `owner` is what it wrote of itself: `pid`, `version`, `startedAt`, or {}."""

    def __init__(self, path: Path, owner: dict[str, Any]) -> None:
        if "pid" in owner:
            who = t("graphd {version} with pid {pid}", version=owner.get("version", ""), pid=owner["pid"])
        else:
            who = t("another graphd")
        super().__init__(
            "locked", t("{who} serves this workspace", who=who), t("attach to it, or `graphd stop` it first"),
            path=str(path), owner=owner,
        )  # fmt: skip
        self.owner = owner


class OpeningRefused(Refused):
    """The database is not opened; its files stay as they are (reliability.md §3.8)."""

    def __init__(self, message: str, hint: str, *, path: Path, **facts: Any) -> None:
        super().__init__(
            "storeUnavailable", t("{path}: {message}", path=path, message=message), hint, path=str(path), **facts
        )


class FolderUnsafe(OpeningRefused):
    """The state folder belongs to someone else, or is no folder."""


class FileSystemUnfit(OpeningRefused):
    """The state folder lies on a file system whose locks or shared memory can't be trusted."""


class StoreCorrupt(OpeningRefused):
    """What is in the file is no sound database of ours, or its log can't be read."""

    def __init__(self, detail: str, *, path: Path) -> None:
        hint = t("nothing was changed: keep a copy, then restore a backup or move the file away to begin afresh")
        super().__init__(t("the database is damaged: {detail}", detail=detail), hint, path=path)
        self.code = "malformedLog"


class StoreTooNew(OpeningRefused):
    """A newer graphd migrated this database."""

    def __init__(self, *, path: Path, found: int, known: int) -> None:
        message = t("the database has schema {found}, this graphd knows up to {known}", found=found, known=known)
        super().__init__(message, t("use the newer graphd that wrote it"), path=path, found=found, known=known)


class WorkspaceMoved(OpeningRefused):
    """The database was made for another folder: `was` and `is_now` name both."""

    def __init__(self, *, path: Path, was: str, is_now: str) -> None:
        message = t("this database belongs to {was}, the workspace is {is_now}", was=was, is_now=is_now)
        super().__init__(message, t("another project took its place: say which one the graphs belong to"), path=path)
        self.was = was
        self.is_now = is_now


class CommitRefused(Refused):
    """A transaction was rolled back whole; the connection goes on."""


class StoreUnavailable(CommitRefused):
    """The disk is full, read-only or failing, or a foreign process holds the database. Reads go on."""

    def __init__(self, kind: UnavailableKind, detail: str) -> None:
        hints = {
            "full": t("make space on the disk; it goes on by itself"),
            "readOnly": t("make the state folder writable; it goes on by itself"),
            "busy": t("close the program that holds the database open"),
        }
        super().__init__("storeUnavailable", t("nothing was stored: {detail}", detail=detail), hints[kind], store=kind)
        self.kind: UnavailableKind = kind


class GuardRefused(CommitRefused):
    """A guard of the schema found a row that no rule of the model allows: a defect of ours, never of the user."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            "malformedLog", t("nothing was stored: {detail}", detail=detail), t("please report this"), detail=detail
        )


class StaleDaemon(Exception):
    """A newer epoch owns the database, or the lock file is no longer ours: this daemon must stop at once."""


_FULL = frozenset({sqlite3.SQLITE_FULL})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def refusal_of(error: sqlite3.Error, path: Path) -> Refused | None:
    """The refusal that an SQLite error means, or None where it is a defect of ours.

    A failed write (RLIMIT_FSIZE, a quota) counts as full: to the user it is the same trouble.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    detail = f"{error} ({getattr(error, 'sqlite_errorname', 'SQLITE_ERROR')})"
    primary = code & 0xFF
    if primary in _FULL or code == sqlite3.SQLITE_IOERR_WRITE:
        return StoreUnavailable("full", detail)
    if primary in _BUSY:
        return StoreUnavailable("busy", detail)
    if primary in _UNWRITABLE:
        return StoreUnavailable("readOnly", detail)
    if primary in _DAMAGED:
        return StoreCorrupt(detail, path=path)
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return GuardRefused(detail)
    return None
