"""`graphd/hello`, read and answered by hand: the first reply needs no pydantic. A test holds this to `HelloParams`.

Source: spec protocol.md, Daemon, socket, lock; performance.md P11.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from graphd.core.events import Actor, Refused
from graphd.server.errors import ParamsRefused, nearest
from graphd.server.errors import field as bad_field
from graphd.server.frames import BODY_LIMIT_BYTES, BODY_LIMIT_S, DEPTH_LIMIT, HEADER_LIMIT_BYTES
from graphd_protocol import PROTOCOL_MAX, PROTOCOL_MIN

Principal = Literal["attempt", "agent", "user"]
AttemptRef = tuple[str, str, int]
"""(graph, node id, number) of the attempt that a connection belongs to."""

REQUEST_LIMIT: Final = 64
CONNECTION_LIMIT: Final = 32
LIMITS: Final = {
    "headerBytes": HEADER_LIMIT_BYTES,
    "bodyBytes": BODY_LIMIT_BYTES,
    "depth": DEPTH_LIMIT,
    "bodySeconds": int(BODY_LIMIT_S),
    "requests": REQUEST_LIMIT,
    "connections": CONNECTION_LIMIT,
}
_OWNER_MODES: Final = ("auto", "ask", "off")


@dataclass(slots=True, frozen=True)
class Caller:
    """Who a connection is, as its hello says and as the kernel shows."""

    name: str
    version: str
    principal: Principal
    protocol: int
    pid: int | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    is_interactive: bool = False
    locale: str | None = None
    owner: str | None = None
    owner_mode: str | None = None
    attempt: AttemptRef | None = None

    @property
    def actor(self) -> Actor:
        """As the log names it."""
        if self.attempt is not None:
            graph, node, number = self.attempt
            return Actor("attempt", client=self.name, attempt=f"{graph}/{node}@{number}")
        return Actor("agent" if self.principal == "agent" else "person", client=self.owner or self.name)


@dataclass(slots=True, frozen=True)
class Host:
    """What the hello needs to know of the daemon."""

    workspace: str
    store: str
    version: str
    started_at: int
    epoch: int
    by_token: Callable[[str], AttemptRef | None] = field(default=lambda token: None)


def greet(
    params: Any, host: Host, *, earlier: Caller | None = None, kin: AttemptRef | None = None
) -> tuple[Caller, dict[str, Any]]:
    """The caller, and what to answer. `kin` is the attempt whose keeper the peer's parents lead to.

    A later hello (`earlier` given) changes client, protocol, locale, env and owner only, and only where it names them.
    Raises ParamsRefused, or Refused `protocolMismatch` or `notFound`.
    """
    _check(params)
    protocol = _agree(params["protocol"])
    _check_workspace(params.get("workspace"), host)
    attempt = kin if earlier is None else earlier.attempt
    token = params.get("attemptToken")
    if attempt is None and earlier is None and token is not None:
        attempt = host.by_token(token)
        if attempt is None:
            raise Refused("unauthorised", "no attempt has this token", "leave attemptToken out to connect as a user")
    caller = _caller(params, protocol, attempt, earlier)
    return caller, {
        "protocol": protocol,
        "daemon": {
            "version": host.version,
            "pid": os.getpid(),
            "startedAt": host.started_at,
            "epoch": host.epoch,
        },
        "store": host.store,
        "workspace": host.workspace,
        "principal": caller.principal,
        "limits": LIMITS,
    }


def _caller(params: dict[str, Any], protocol: int, attempt: AttemptRef | None, earlier: Caller | None) -> Caller:
    client, owner = params["client"], params.get("owner")
    caller = earlier or Caller(
        name="",
        version="",
        principal="user",
        protocol=protocol,
        cwd=params.get("cwd"),
        is_interactive=bool(params.get("interactive")),
        attempt=attempt,
    )
    caller = replace(caller, name=client["name"], version=client["version"], pid=client.get("pid"), protocol=protocol)
    if params.get("locale") is not None:
        caller = replace(caller, locale=params["locale"])
    if params.get("env") is not None:
        caller = replace(caller, env=params["env"])
    if owner is not None:
        caller = replace(caller, owner=owner["id"], owner_mode=owner.get("mode"))
    principal: Principal = "attempt" if caller.attempt else "agent" if caller.owner else "user"
    return replace(caller, principal=principal)


def _agree(wanted: list[int]) -> int:
    low, high = wanted
    best = min(high, PROTOCOL_MAX)
    if best < max(low, PROTOCOL_MIN):
        raise Refused(
            "protocolMismatch",
            f"this daemon speaks protocol {PROTOCOL_MIN} to {PROTOCOL_MAX}, the client {low} to {high}",
            "update the older of the two; graphd stop ends this daemon, and the next client starts its own",
            protocol=[PROTOCOL_MIN, PROTOCOL_MAX],
        )
    return best


def _check_workspace(named: str | None, host: Host) -> None:
    if named is not None and named != host.workspace and os.path.realpath(named) != host.workspace:
        raise Refused("notFound", "this daemon serves another workspace", f"it serves {host.workspace}")


Claim = tuple[str, bool, Callable[[Any], bool]]
"""(what is expected, must it be there, is this value it)."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_int(value: Any) -> bool:
    return type(value) is int


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_int, value)) and value[0] <= value[1]


def _is_env(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


_CLIENT: Final[dict[str, Claim]] = {
    "name": ("a string", True, _is_text),
    "version": ("a string", True, _is_text),
    "pid": ("an integer", False, _is_int),
}
_OWNER: Final[dict[str, Claim]] = {
    "id": ("a string that is not empty", True, lambda value: _is_text(value) and bool(value.strip())),
    "mode": ("auto, ask or off", False, lambda value: value in _OWNER_MODES),
}
_HELLO: Final[dict[str, Claim]] = {
    "client": ("an object with name and version", True, lambda value: isinstance(value, dict)),
    "protocol": ("two integers, the lower first", True, _is_range),
    "workspace": ("a path", False, lambda value: _is_text(value) and "\0" not in value),
    "cwd": ("a path", False, _is_text),
    "env": ("a map of strings", False, _is_env),
    "interactive": ("true or false", False, lambda value: isinstance(value, bool)),
    "locale": ("a string", False, _is_text),
    "owner": ("an object with id", False, lambda value: isinstance(value, dict)),
    "attemptToken": ("a string", False, _is_text),
}


def _check(params: Any) -> None:
    if not isinstance(params, dict):
        raise ParamsRefused([bad_field("", "params must be an object", expected="an object", got=params)])
    troubles = _troubles(params, _HELLO, "")
    if not troubles:
        troubles = _troubles(params["client"], _CLIENT, "client.")
        if params.get("owner") is not None:
            troubles += _troubles(params["owner"], _OWNER, "owner.")
    if troubles:
        raise ParamsRefused(troubles)


def _troubles(value: dict[str, Any], claims: dict[str, Claim], prefix: str) -> list[dict[str, Any]]:
    troubles = []
    for name in value.keys() - claims.keys():
        near = nearest(name, claims)
        trouble = bad_field(prefix + name, "unknown field", expected=near[0] if near else "no such field", got=name)
        troubles.append({**trouble, "suggestions": near})
    for name, (expected, is_needed, is_right) in claims.items():
        item = value.get(name)
        if item is None and not is_needed:
            continue
        if name not in value:
            troubles.append(bad_field(prefix + name, "missing", expected=expected, got="nothing"))
        elif not is_right(item):
            troubles.append(bad_field(prefix + name, f"must be {expected}", expected=expected, got=item))
    return troubles
