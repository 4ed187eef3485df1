"""Environments: the allow-listed snapshot of a caller's, its storage in 0600 files, and what a child gets.

Children get the environment of whoever set the graph, never that of whoever started the daemon. It is kept in files
named by their hash, never in the database. Source: execution.md, Environment.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from graphd.base.failpoints import failpoint
from graphd.children.profiles.shape import Profile

NAMES: Final = frozenset(
    ["PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "TZ", "VIRTUAL_ENV", "SSH_AUTH_SOCK"]
    + ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"]
    + ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"]
)
PREFIXES: Final = ("LC_", "XDG_")
OWN_FOLDERS: Final = ("GRAPHD_STATE_DIR", "GRAPHD_CONFIG_DIR")
_NO_VALUE: Final = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
"""What no environment holds; the other surrogates stand for bytes that are no UTF-8."""
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class EnvironmentMissing(Exception):
    """The stored environment of a graph is gone or is not what its hash says."""


def snapshot(environment: Mapping[str, str], pass_names: Iterable[str] = ()) -> dict[str, str]:
    """What of a caller's environment may be kept: the allow-list, and the names that profiles ask for."""
    wanted = NAMES | frozenset(pass_names)
    return {
        name: value
        for name, value in sorted(environment.items())
        if (name in wanted or name.startswith(PREFIXES)) and "\0" not in value
    }


def save(folder: Path, environment: Mapping[str, str]) -> str:
    """Store it durably in `folder` and answer its name: the SHA-256 of its content. The same one is stored once."""
    content = json.dumps(dict(sorted(environment.items())), separators=(",", ":")).encode()
    name = hashlib.sha256(content).hexdigest()
    path = folder / f"{name}.json"
    if path.exists():
        return name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(folder / f".{name}.{secrets.token_hex(4)}", content, becomes=path)
    return name


def load(folder: Path, name: str) -> dict[str, str]:
    """The stored environment `name`. EnvironmentMissing when it is gone or was changed."""
    try:
        content = (folder / f"{name}.json").read_bytes()
    except OSError as trouble:
        raise EnvironmentMissing(name) from trouble
    if hashlib.sha256(content).hexdigest() != name:
        raise EnvironmentMissing(name)
    return {str(key): str(value) for key, value in json.loads(content).items()}


def agent_environment(
    environment: Mapping[str, str], profile: Profile, profiles: Mapping[str, Profile]
) -> dict[str, str]:
    """What of a graph's environment the agent of `profile` gets, and what its profile adds.

    Variables that only other profiles ask for stay away: no agent gets the key of another, and no script any of them.
    """
    others = {name for other in profiles.values() for name in other.pass_env} - set(profile.pass_env)
    kept = {name: value for name, value in environment.items() if name not in others or _is_plain(name)}
    home = {"HOME": os.path.expanduser(profile.home)} if profile.home is not None else {}  # noqa: PTH111 - of a text
    return {**kept, **home, **dict(profile.env)}


def _is_plain(name: str) -> bool:
    return name in NAMES or name.startswith(PREFIXES)


def child_environment(
    environment: Mapping[str, str],
    *,
    workspace: Path,
    cookie: str,
    folder: Path,
    variables: Mapping[str, str],
    own: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All that a child sees: the graph's environment and our names. `own` is the daemon's, for its own two folders."""
    return {
        "PATH": os.defpath,
        **environment,
        **{
            f"GRAPHD_VAR_{name}": _NO_VALUE.sub("\ufffd", value)
            for name, value in variables.items()
            if VARIABLE.match(name)
        },
        **own_environment(workspace=workspace, cookie=cookie, folder=folder, own=own),
    }


def own_environment(
    *, workspace: Path, cookie: str, folder: Path, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Our names alone, for what an agent starts without handing its environment on. The token is named by its file."""
    daemon = os.environ if own is None else own
    return {
        **{name: daemon[name] for name in OWN_FOLDERS if name in daemon},
        "GRAPHD_WORKSPACE": str(workspace),
        "GRAPHD_ATTEMPT": cookie,
        "GRAPHD_TOKEN_FILE": str(folder / "token"),
        "GRAPHD_INPUT_DIR": str(folder / "inputs"),
    }


def keeper_environment() -> dict[str, str]:
    """What a keeper gets, and through it the daemon that it may have to start again: ours, by the same allow-list."""
    return snapshot(os.environ, OWN_FOLDERS)


def write_private(temporary: Path, content: bytes, *, becomes: Path, is_durable: bool = True) -> None:
    """A 0600 file, all or nothing: temp, fsync, rename, fsync of the folder.

    No syncs where it need not outlive a power cut, as what only the processes of an attempt read.
    """
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
    failpoint("environment.rename.before")
    temporary.rename(becomes)
    failpoint("environment.rename.after")
    if is_durable:
        sync_folder(becomes.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
