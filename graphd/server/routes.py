"""The route table: method → params model, result model, handler, and who may call it. Handlers are in `methods/`.

pydantic is imported with the first request that has a model, never before: hello and its answer do without.
Source: spec protocol.md, Methods and Errors; architecture.md, The connection.
"""

import functools
import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from graphd.base.catalogue import Language
from graphd.base.refusal import Refused
from graphd.base.text import Text, t
from graphd.core.model import State
from graphd.server.errors import MethodUnknown, ParamsRefused, nearest, shown
from graphd.server.feeds import Feeds
from graphd.server.hello import Caller, Principal
from graphd.server.needs import Daemon
from graphd.server.project import Wire
from graphd.server.subscriptions import Subscriptions

GROUPS: Final = (
    "graphs", "steer", "hold", "signals", "people", "child", "replan", "reuse", "look", "workflows", "daemon", "agents",
    "subscribe", "interchange", "draw",
)  # fmt: skip
EVERYBODY: Final[frozenset[Principal]] = frozenset({"user", "agent", "attempt"})
CALLERS: Final[frozenset[Principal]] = frozenset({"user", "agent"})
PEOPLE: Final[frozenset[Principal]] = frozenset({"user"})
CHILDREN: Final[frozenset[Principal]] = frozenset({"attempt"})


class Household(Protocol):
    """What handlers need of the server around them."""

    @property
    def daemon(self) -> Daemon:
        """The daemon that is served."""

    @property
    def feeds(self) -> Feeds:
        """What subscribers are sent."""

    def activity_of(self, state: State, graph: str, node: str) -> Wire | None:
        """The activity row of a node, or None where it does nothing."""

    @property
    def stop_reason(self) -> str | None:
        """Why the daemon ends; None while it goes on."""

    def greeted(self) -> None:
        """A hello was answered: what is heavy may be loaded now."""

    def connections(self) -> list[Wire]:
        """One row of health per connection."""

    def is_attended(self) -> bool:
        """A person's client is connected."""

    def request_stop(self, reason: str, *, reconnect: bool = False) -> None:
        """End the daemon, soon and cleanly. `reconnect`: clients are told that another one may be started."""

    async def until(self, is_reached: Callable[[State], bool], timeout_s: float) -> bool:
        """Wait until a committed state has this; False after `timeout_s` s, or when the daemon stops."""


@dataclass(slots=True, frozen=True)
class Call:
    """One request's surroundings."""

    hub: Household
    caller: Caller
    subscriptions: Subscriptions
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called when the connection has ended."""

    @property
    def daemon(self) -> Daemon:
        """The daemon that is served."""
        return self.hub.daemon

    @property
    def language(self) -> Language:
        """What the caller reads."""
        return self.subscriptions.language


@dataclass(slots=True, frozen=True)
class Reply:
    """A result, and what to do once it is queued."""

    result: Any
    then: Callable[[], None] | None = None


Handler = Callable[[Call, Any], Awaitable[Any]]


@dataclass(slots=True, frozen=True)
class Route:
    """One method. `params` and `result` are names in `graphd_protocol.model`; `result` None: the spec's plain shape."""

    handler: Handler
    params: str
    result: str | None
    allowed: frozenset[Principal] = CALLERS
    is_cancellable: bool = True


@dataclass(slots=True)
class Table:
    """Routes of one group, filled by decorators when its module is imported."""

    routes: dict[str, Route] = field(default_factory=dict)

    def route(
        self,
        method: str,
        params: str,
        result: str | None,
        *,
        allowed: frozenset[Principal] = CALLERS,
        is_cancellable: bool = True,
    ) -> Callable[[Handler], Handler]:
        """Serve `method` with the decorated handler."""

        def add(handler: Handler) -> Handler:
            self.routes[method] = Route(handler, params, result, allowed, is_cancellable)
            return handler

        return add


@functools.cache
def all_routes() -> Mapping[str, Route]:
    """Every method that is served, `graphd/hello` apart (it is answered by hand)."""
    routes: dict[str, Route] = {}
    for group in GROUPS:
        routes |= importlib.import_module(f"graphd.server.methods.{group}").table.routes
    return routes


def is_cancellable(method: str) -> bool:
    """A cancelled request of this method may be dropped: a read."""
    route = all_routes().get(method)
    return route is None or route.is_cancellable


async def dispatch(call: Call, method: str, params: Any) -> Reply:
    """Check who asks and what, and run the handler. Raises CallRefused or Refused."""
    route = all_routes().get(method)
    if route is None:
        raise MethodUnknown(method, [*all_routes(), "graphd/hello"])
    if call.caller.principal not in route.allowed:
        if route.allowed == CHILDREN:
            raise Refused("unauthorised", t("only an attempt may call {method}", method=method), t("its child does"))
        who = {"attempt": t("an attempt"), "agent": t("an agent")}.get(call.caller.principal, t("this client"))
        raise Refused(
            "unauthorised",
            t("{who} may not call {method}", who=who, method=method),
            t("a person can, with graphd in a terminal"),
        )
    result = await route.handler(call, validated(route.params, params))
    return result if isinstance(result, Reply) else Reply(result)


def validated(model_name: str, params: Any) -> Any:
    """The params as their wire model; strict, aliases only. Raises ParamsRefused naming every field."""
    from pydantic import ValidationError

    from graphd_protocol import model as wire

    model = getattr(wire, model_name)
    given = {} if params is None else params
    try:
        return model.model_validate(given, strict=True, by_alias=True, by_name=False)
    except ValidationError as refusal:
        errors = refusal.errors(include_url=False, include_context=True)
        raise ParamsRefused([_field(error, model) for error in errors]) from None


def _field(error: Any, model: Any) -> dict[str, Any]:
    path = ".".join(str(part) for part in error["loc"])
    row: dict[str, Any] = {
        "path": path,
        "message": _message(error),
        "expected": _expected(error),
        "got": shown(error["input"]) if error["type"] != "missing" else t("nothing"),
    }
    if error["type"] == "extra_forbidden":
        names = [item.alias or name for name, item in model.model_fields.items()]
        near = nearest(str(error["loc"][-1]), names) if len(error["loc"]) == 1 else []
        row |= {"message": t("unknown field"), "got": str(error["loc"][-1])[:80], "suggestions": near}
        row["expected"] = near[0] if near else t("no such field")
    return row


def _expected(error: Any) -> str:
    context = error.get("ctx") or {}
    if "expected" in context:
        return str(context["expected"])
    limits = [f"{name} {value}" for name, value in context.items() if name in ("ge", "le", "gt", "lt", "max_length")]
    return " and ".join(limits) if limits else str(error["type"]).removesuffix("_type")


_MESSAGES: Final[dict[str, Callable[..., Text]]] = {
    "missing": lambda: t("Field required"),
    "string_type": lambda: t("Input should be a valid string"),
    "int_type": lambda: t("Input should be a valid integer"),
    "float_type": lambda: t("Input should be a valid number"),
    "bool_type": lambda: t("Input should be a valid boolean"),
    "list_type": lambda: t("Input should be a valid list"),
    "tuple_type": lambda: t("Input should be a valid tuple"),
    "dict_type": lambda: t("Input should be a valid dictionary"),
    "model_type": lambda class_name: t("Input should be a valid dictionary or instance of {name}", name=class_name),
    "literal_error": lambda expected: t("Input should be {expected}", expected=expected),
    "greater_than": lambda gt: t("Input should be greater than {limit}", limit=gt),
    "greater_than_equal": lambda ge: t("Input should be greater than or equal to {limit}", limit=ge),
    "less_than": lambda lt: t("Input should be less than {limit}", limit=lt),
    "less_than_equal": lambda le: t("Input should be less than or equal to {limit}", limit=le),
    "string_pattern_mismatch": lambda pattern: t("String should match pattern '{pattern}'", pattern=pattern),
}


def _message(error: Any) -> str:
    """What pydantic says, in its own English words; translatable where its type is one that our models can meet."""
    make = _MESSAGES.get(error["type"])
    message = str(error["msg"])
    ours = make(**error.get("ctx", {})) if make is not None else None
    return ours if ours is not None and ours == message else message
