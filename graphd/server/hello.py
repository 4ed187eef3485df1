"""`graphd/hello` and who `initialize` says it is, read and answered by hand: the first reply needs no pydantic.

A test holds this to `HelloParams`. Source: spec protocol.md, Daemon, socket, lock; performance.md P11.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.server.errors import ParamsRefused, nearest, shown
from graphd.server.errors import field as bad_field
from graphd.server.frames import BODY_LIMIT_BYTES, BODY_LIMIT_S, DEPTH_LIMIT, HEADER_LIMIT_BYTES
from graphd_protocol import PROTOCOL_MAX, PROTOCOL_MIN

if TYPE_CHECKING:
    from graphd.core.events import Actor
    from graphd.server.lsp.capabilities import Client

Principal = Literal["attempt", "agent", "user"]
AttemptRef = tuple[str, str, int, str]
"""(graph, node id, number, role) of the attempt that a connection belongs to."""

GREETINGS: Final = ("graphd/hello", "initialize")
REQUEST_LIMIT: Final = 64
CONNECTION_LIMIT: Final = 64
LIMITS: Final = {
    "headerBytes": HEADER_LIMIT_BYTES,
    "bodyBytes": BODY_LIMIT_BYTES,
    "depth": DEPTH_LIMIT,
    "bodySeconds": int(BODY_LIMIT_S),
    "requests": REQUEST_LIMIT,
    "connections": CONNECTION_LIMIT,
}
_MARKS: Final = (".agents", ".git")  # a folder with one of these is a workspace of its own
_OWNER_MODES: Final = ("auto", "ask", "off")


class Caller(NamedTuple):
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
    def actor(self) -> "Actor":
        """As the log names it."""
        from graphd.core.events import Actor  # not on the way to the first hello

        if self.attempt is not None:
            graph, node, number, role = self.attempt
            place = node if role == "worker" else f"{node}.{role}"
            return Actor("attempt", client=self.name, attempt=f"{graph}/{place}@{number}")
        return Actor("agent" if self.principal == "agent" else "person", client=self.owner or self.name)


class Host(NamedTuple):
    """What the hello needs to know of the daemon."""

    workspace: str
    store: str
    version: str
    started_at: int
    epoch: int
    by_token: Callable[[str], AttemptRef | None] = lambda token: None


def greet(
    params: Any, host: Host, *, earlier: Caller | None = None, kin: AttemptRef | None = None
) -> tuple[Caller, dict[str, Any]]:
    """The caller, and what to answer. `kin` is the attempt whose keeper the peer's parents lead to.

    A later hello (`earlier` given) changes client, protocol, locale, env and owner only, and only where it names them.
    Raises ParamsRefused, or Refused `protocolMismatch` or `notFound`.
    """
    _check(params)
    protocol = _agree(params["protocol"], params["client"]["version"], host)
    _check_workspace(params.get("workspace"), host)
    attempt = kin if earlier is None else earlier.attempt
    token = params.get("attemptToken")
    if attempt is None and earlier is None and token is not None:
        attempt = host.by_token(token)
        if attempt is None:
            raise Refused(
                "unauthorised", t("no attempt has this token"), t("leave attemptToken out to connect as a user")
            )
    caller = _caller(params, protocol, attempt, earlier)
    return caller, facts_for(caller, host)


def facts_for(caller: Caller, host: Host) -> dict[str, Any]:
    """What a client is told when it is greeted, by `graphd/hello` and by `initialize` alike."""
    return {
        "protocol": caller.protocol,
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


def greet_editor(
    params: Any, host: Host, *, earlier: Caller | None = None, kin: AttemptRef | None = None
) -> tuple[Caller, dict[str, Any]]:
    """The same for LSP's `initialize`; what a hello said before stands, the name apart.

    Where no hello came before, the roots that it names decide: one of them must lie in this workspace. Raises
    ParamsRefused, or Refused `notFound`.
    """
    if not isinstance(params, dict):
        raise ParamsRefused([bad_field("", t("params must be an object"), expected=t("an object"), got=params)])
    known = {name: params.get(name) for name in _INITIALIZE}
    if troubles := _troubles({name: value for name, value in known.items() if value is not None}, _INITIALIZE, ""):
        raise ParamsRefused(troubles)
    roots = _roots(params)
    if earlier is None and roots and not any(_is_in_workspace(root, host) for root in roots):
        raise _other_workspace(host)
    client = params.get("clientInfo") or {}
    caller = earlier or Caller(
        name="editor", version="", principal="attempt" if kin else "user", protocol=PROTOCOL_MAX, attempt=kin
    )
    caller = caller._replace(
        name=client.get("name", caller.name),
        version=client.get("version", caller.version),
        pid=params.get("processId") or caller.pid,
        locale=params.get("locale") or caller.locale,
    )
    return caller, facts_for(caller, host)


class Greeting(NamedTuple):
    """A caller that was greeted, what it was answered, and what it can do where it is an editor."""

    caller: Caller
    result: dict[str, Any]
    editor: "Client | None" = None


def greeting(
    method: str, params: Any, host: Host, *, earlier: Caller | None = None, kin: AttemptRef | None = None
) -> Greeting:
    """Either greeting, by its method: `graphd/hello` or `initialize`. Raises as `greet` and `greet_editor`."""
    if method == "graphd/hello":
        return Greeting(*greet(params, host, earlier=earlier, kin=kin))
    from graphd.server.lsp.capabilities import Client, answer_to_initialize  # an editor's alone

    caller, facts = greet_editor(params, host, earlier=earlier, kin=kin)
    client = Client(params)
    return Greeting(caller, answer_to_initialize(client, facts), client)


def _roots(params: dict[str, Any]) -> list[str]:
    """Every folder that `initialize` names, as paths; what is no file is left out."""
    folders = params.get("workspaceFolders") or []
    uris = [folder.get("uri") for folder in folders if isinstance(folder, dict)] + [params.get("rootUri")]
    paths = [path for uri in uris if isinstance(uri, str) and (path := file_path(uri)) is not None]
    return paths or [root for root in [params.get("rootPath")] if isinstance(root, str)]


def file_path(uri: str) -> str | None:
    """The path of a `file:` URI of this machine, None for anything else."""
    scheme, _, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    if scheme.lower() != "file" or not slash or host not in ("", "localhost"):
        return None
    decoded = os.fsdecode(_unquoted(path.partition("#")[0].partition("?")[0]))
    return None if "\0" in decoded else slash + decoded


def _unquoted(text: str) -> bytes:
    """By hand: urllib's import is not on the way to the first answer."""
    first, *rest = text.encode(errors="surrogateescape").split(b"%")
    raw = bytearray(first)
    for part in rest:
        code = part[:2]
        is_code = len(code) == 2 and all(byte in b"0123456789abcdefABCDEF" for byte in code)
        raw += bytes([int(code, 16)]) + part[2:] if is_code else b"%" + part
    return bytes(raw)


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
    caller = caller._replace(name=client["name"], version=client["version"], pid=client.get("pid"), protocol=protocol)
    if params.get("locale") is not None:
        caller = caller._replace(locale=params["locale"])
    if params.get("env") is not None:
        caller = caller._replace(env=params["env"])
    if owner is not None:
        caller = caller._replace(owner=owner["id"], owner_mode=owner.get("mode"))
    principal: Principal = "attempt" if caller.attempt else "agent" if caller.owner else "user"
    return caller._replace(principal=principal)


def _agree(wanted: list[int], version: str, host: Host) -> int:
    low, high = wanted
    best = min(high, PROTOCOL_MAX)
    if best < max(low, PROTOCOL_MIN):
        is_older = high < PROTOCOL_MIN
        raise Refused(
            "protocolMismatch",
            t(
                "this daemon is graphd {ours} and speaks protocol {lowest} to {highest}, the client is {theirs} and "
                "speaks {low} to {high}",
                ours=host.version,
                lowest=PROTOCOL_MIN,
                highest=PROTOCOL_MAX,
                theirs=shown(version),
                low=low,
                high=high,
            ),
            t("update the client: pipx upgrade workgraphd")
            if is_older
            else t("update the daemon: pipx upgrade workgraphd, then graphd daemon --start"),
            protocol=[PROTOCOL_MIN, PROTOCOL_MAX],
            version=host.version,
        )
    return best


def _check_workspace(named: str | None, host: Host) -> None:
    if named is not None and not _is_in_workspace(named, host):
        raise _other_workspace(host)


def _other_workspace(host: Host) -> Refused:
    return Refused(
        "notFound",
        t("this daemon serves another workspace"),
        t("it serves {workspace}", workspace=host.workspace),
    )


def _is_in_workspace(named: str, host: Host) -> bool:
    """It is the workspace, or a folder in it that is no workspace of its own."""
    if named == host.workspace:
        return True
    path, root = Path(os.path.realpath(named)), Path(host.workspace)
    while path.is_relative_to(root) and path != root:
        if any((path / mark).exists() for mark in _MARKS):
            return False
        path = path.parent
    return path == root


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
    "name": (t("a string"), True, _is_text),
    "version": (t("a string"), True, _is_text),
    "pid": (t("an integer"), False, _is_int),
}
_OWNER: Final[dict[str, Claim]] = {
    "id": (t("a string that is not empty"), True, lambda value: _is_text(value) and bool(value.strip())),
    "mode": (t("auto, ask or off"), False, lambda value: value in _OWNER_MODES),
}
_HELLO: Final[dict[str, Claim]] = {
    "client": (t("an object with name and version"), True, lambda value: isinstance(value, dict)),
    "protocol": (t("two integers, the lower first"), True, _is_range),
    "workspace": (t("a path"), False, lambda value: _is_text(value) and "\0" not in value),
    "cwd": (t("a path"), False, _is_text),
    "env": (t("a map of strings"), False, _is_env),
    "interactive": (t("true or false"), False, lambda value: isinstance(value, bool)),
    "locale": (t("a string"), False, _is_text),
    "owner": (t("an object with id"), False, lambda value: isinstance(value, dict)),
    "attemptToken": (t("a string"), False, _is_text),
}
_INITIALIZE: Final[dict[str, Claim]] = {
    "capabilities": (t("an object"), False, lambda value: isinstance(value, dict)),
    "clientInfo": (
        t("an object with name"),
        False,
        lambda value: isinstance(value, dict) and _is_text(value.get("name")) and _is_text(value.get("version", "")),
    ),
    "processId": (t("an integer"), False, _is_int),
    "locale": (t("a string"), False, _is_text),
    "rootUri": ("a URI", False, _is_text),
    "rootPath": (t("a path"), False, _is_text),
    "workspaceFolders": (t("a list"), False, lambda value: isinstance(value, list)),
}


def _check(params: Any) -> None:
    if not isinstance(params, dict):
        raise ParamsRefused([bad_field("", t("params must be an object"), expected=t("an object"), got=params)])
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
        trouble = bad_field(
            prefix + name, t("unknown field"), expected=near[0] if near else t("no such field"), got=name
        )
        troubles.append({**trouble, "suggestions": near})
    for name, (expected, is_needed, is_right) in claims.items():
        item = value.get(name)
        if item is None and not is_needed:
            continue
        if name not in value:
            troubles.append(bad_field(prefix + name, t("missing"), expected=expected, got=t("nothing")))
        elif not is_right(item):
            troubles.append(
                bad_field(prefix + name, t("must be {expected}", expected=expected), expected=expected, got=item)
            )
    return troubles
