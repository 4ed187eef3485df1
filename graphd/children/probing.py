"""Asks an installed agent what it is: its version, and what it says of itself to `initialize`. One bounded run each.

Only on demand: an agent takes seconds of CPU to start. Source: spec protocol.md, Methods (`agents`).
"""

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphd.base.failpoints import failpoint
from graphd.base.text import said, t
from graphd.children.identity import keepers, spawning
from graphd.children.profiles.shape import Profile

VERSION_S: Final = 15.0
OUTPUT_LIMIT_BYTES: Final = 1 << 20
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-+.][0-9A-Za-z.-]+)?")
_ASK: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False},
    },
}


@dataclass(slots=True, frozen=True)
class Probed:
    """What an agent said; `problem` for people where it said nothing that can be used."""

    version: str | None = None
    capabilities: dict[str, Any] | None = None
    problem: str | None = None


@dataclass(slots=True)
class _Heard:
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    answer: dict[str, Any] | None = None


def probe(profile: Profile, argv: tuple[str, ...], environment: Mapping[str, str]) -> Probed:
    """Start it once and end it again, with all that it started. Blocks for at most the profile's init timeout."""
    is_talking = profile.driver == "acp"
    words = argv if is_talking else (*argv, profile.version_flag)
    limit_s = profile.init_timeout_s if is_talking else VERSION_S
    try:
        heard = _run(words, environment, line=json.dumps(_ASK) if is_talking else None, limit_s=limit_s)
    except OSError as trouble:
        return Probed(problem=t("could not be started: {trouble}", trouble=said(trouble)))
    return _answered(heard) if is_talking else _versioned(heard)


def _answered(heard: _Heard) -> Probed:
    result = heard.answer.get("result") if heard.answer else None
    if not isinstance(result, dict):
        told = bytes(heard.err[-300:]).decode("utf-8", "replace").strip()
        return Probed(problem=t("it did not answer initialize: {said}", said=told or t("it said nothing")))
    about, able = result.get("agentInfo"), result.get("agentCapabilities")
    version = about.get("version") if isinstance(about, dict) else None
    spoken = result.get("protocolVersion")
    problem = None if spoken == 1 else t("it speaks version {version} of the protocol, we speak 1", version=spoken)
    capabilities = able if isinstance(able, dict) else {}
    return Probed(version if isinstance(version, str) else None, capabilities, problem)


def _versioned(heard: _Heard) -> Probed:
    found = _VERSION.search(bytes(heard.out).decode("utf-8", "replace"))
    return Probed(found[0]) if found else Probed(problem=t("it does not say its version"))


def _run(argv: tuple[str, ...], environment: Mapping[str, str], *, line: str | None, limit_s: float) -> _Heard:
    process = _spawned(argv, environment, is_talking=line is not None)
    heard = _Heard()
    try:
        if line is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
        _listen(process, heard, until_s=time.monotonic() + limit_s)
    finally:
        _end(process)
    return heard


def _spawned(argv: tuple[str, ...], environment: Mapping[str, str], *, is_talking: bool) -> "subprocess.Popen[bytes]":
    """Among the keepers while it runs: every other child of a daemon is a stranger, and is ended."""
    with spawning:
        failpoint("probing.spawn.before")
        process = subprocess.Popen(  # noqa: S603 - the program of a profile, which only the user's own settings name
            argv,
            env={"PATH": os.defpath, **environment},
            cwd="/",
            stdin=subprocess.PIPE if is_talking else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        failpoint("probing.spawn.after")
        keepers.add(process.pid)
    return process


def _listen(process: "subprocess.Popen[bytes]", heard: _Heard, *, until_s: float) -> None:
    """Read both streams until the answer is there, both have ended, or it is too late."""
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, heard.out), (process.stderr, heard.err)):
            assert stream is not None  # noqa: S101 - made as pipes
            selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                part = os.read(key.fd, 65_536)
                if not part or len(key.data) > OUTPUT_LIMIT_BYTES:
                    selector.unregister(key.fileobj)
                heard_so_far: bytearray = key.data
                heard_so_far += part
            if (answer := _answer_in(bytes(heard.out))) is not None:
                heard.answer = answer
                return


def _answer_in(out: bytes) -> dict[str, Any] | None:
    for line in out.splitlines():
        if b'"id"' in line:
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict) and message.get("id") == 0 and "method" not in message:
                    return message
    return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Whatever it started goes with it."""
    failpoint("probing.signal.before")
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    failpoint("probing.signal.after")
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    keepers.discard(process.pid)
