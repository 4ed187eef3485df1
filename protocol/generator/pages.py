"""Tables for the pages, between `<!-- generated: NAME -->` and `<!-- /generated -->`: methods, errors, states."""

import re
from collections.abc import Callable
from typing import Final

from generator.schema import REF, Json
from graphd.server.hello import LIMITS
from graphd_protocol import states
from graphd_protocol.errors import ERROR_CODES, ERROR_MEANINGS, RETRYABLE
from graphd_protocol.methods import JSON_RPC_CODES, NOTIFICATIONS, REQUESTS, Request, errors_of

_MARKED: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
_VERB_WORDS: Final = {
    "yes": "yes",
    "no": "",
    "stays": "yes, status stays",
    "then_active": "then active",
    "reopens": "reopens",
    "stop_over_drain": "`stop` over `drain`",
    "can_start": "where something can start",
    "top_up": "with a top-up",
}


def filled(page: str, protocol: Json) -> str:
    """The page with its marked parts written anew. Raises KeyError for a name that is none of ours."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]](protocol)}{found[3]}", page)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fields(protocol: Json, name: str) -> str:
    """`{graph?, node, limit? = 50}` of a model."""
    value = protocol["$defs"][name]
    required = value.get("required", [])
    names = [field + ("" if field in required else "?") for field in value.get("properties", {})]
    return "{" + ", ".join(names) + "}"


def _methods(protocol: Json) -> str:
    rows = []
    for request, row in zip(REQUESTS, protocol["requests"], strict=True):
        params = fields(protocol, row["params"]["$ref"].removeprefix(REF)) if "params" in row else ""
        rows.append([f"`{request.method}`", request.summary, f"`{params}`" if params else "", _result(request)])
    return _table(["method", "what it does", "params", "answers"], rows)


def _result(request: Request) -> str:
    named = {"one": request.result, "list": f"{request.result}[]", "oneOrNull": f"{request.result} or null"}
    return f"`{named[request.shape]}`"


def _refusals(protocol: Json) -> str:
    rows = []
    for request in REQUESTS:
        codes = [f"`{code}`" for code in errors_of(request) if code in request.errors]
        callers = "everybody" if len(request.callers) == 3 else ", ".join(request.callers)
        rows.append([f"`{request.method}`", callers, " ".join(codes), str(request.since)])
    return _table(["method", "may be called by", "refused with", "since"], rows)


def _notifications(protocol: Json) -> str:
    rows = []
    for item, row in zip(NOTIFICATIONS, protocol["notifications"], strict=True):
        params = fields(protocol, row["params"]["$ref"].removeprefix(REF))
        sender = "client" if item.direction == "clientToServer" else "daemon"
        rows.append([f"`{item.method}`", sender, item.summary, f"`{params}`"])
    return _table(["method", "sent by", "what it says", "params"], rows)


def _errors(protocol: Json) -> str:
    rows = [
        [f"`{name}`", str(number), ERROR_MEANINGS[name], "yes" if name in RETRYABLE else ""]
        for name, number in ERROR_CODES.items()
    ]
    return _table(["code", "number", "meaning", "retryable"], rows)


def _json_rpc(protocol: Json) -> str:
    rows = [[f"`{name}`", str(number), ERROR_MEANINGS[name]] for name, number in JSON_RPC_CODES.items()]
    return _table(["name", "number", "when"], rows)


def _types(protocol: Json) -> str:
    rows = []
    for name, value in protocol["$defs"].items():
        said = value.get("description", "").split("\n")[0]
        shape = " ".join(f"`{item}`" for item in value["enum"]) if "enum" in value else f"`{fields(protocol, name)}`"
        rows.append([f"`{name}`", shape, said])
    return _table(["type", "fields", "what it is"], rows)


def _verbs(protocol: Json) -> str:
    head = ["verb", *(f"`{status}`" for status in states.GRAPH_STATUSES)]
    rows = [
        [f"`{verb}`", *(_VERB_WORDS[words[status]] for status in states.GRAPH_STATUSES)]
        for verb, words in states.VERB_TABLE.items()
    ]
    return _table(head, rows)


def _node_moves(protocol: Json) -> str:
    rows = []
    for state in states.NODE_STATES:
        to = [f"`{other}`" for other in states.NODE_STATES if (state, other) in states.NODE_MOVES]
        rows.append([f"`{state}`", " ".join(to)])
    return _table(["node", "may become"], rows)


def _attempt_moves(protocol: Json) -> str:
    rows = []
    for state in states.ATTEMPT_STATES:
        to = [f"`{other}`" for other in states.ATTEMPT_STATES if other in states.ATTEMPT_MOVES[state]]
        rows.append([f"`{state}`", " ".join(to)])
    return _table(["attempt", "may become"], rows)


_LIMIT_WORDS: Final = {
    "headerBytes": "bytes of a frame's header",
    "bodyBytes": "bytes of its body",
    "depth": "levels of nesting in it",
    "bodySeconds": "seconds from the first byte of a frame to its last",
    "requests": "requests in flight on a connection",
    "connections": "connections",
}


def _limits(protocol: Json) -> str:
    return _table(["limit", "of", "at most"], [[f"`{n}`", _LIMIT_WORDS[n], str(most)] for n, most in LIMITS.items()])


TABLES: Final[dict[str, Callable[[Json], str]]] = {
    "methods": _methods,
    "refusals": _refusals,
    "notifications": _notifications,
    "errors": _errors,
    "limits": _limits,
    "jsonRpc": _json_rpc,
    "types": _types,
    "verbs": _verbs,
    "nodeMoves": _node_moves,
    "attemptMoves": _attempt_moves,
}
