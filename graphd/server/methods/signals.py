"""`signal`: something happened outside, and what waits for it goes on. Source: spec protocol.md, Methods."""

import hashlib
from typing import TYPE_CHECKING, Final

import orjson

from graphd.base.text import t
from graphd.core.commands import Done, Request, Signal
from graphd.server.errors import ParamsRefused, field
from graphd.server.project import Wire
from graphd.server.routes import Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import SignalParams

table: Final = Table()
PAYLOAD_LIMIT_BYTES: Final = 65_536


@table.route("workgraph/signal", "SignalParams", "SignalResult", is_cancellable=False)
async def signal(call: Call, params: "SignalParams") -> Wire:
    """Wake every node that waits for this name, and keep it for those that will."""
    payload = orjson.dumps(params.payload)
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        message = t("the payload has {count} bytes; at most {limit}", count=len(payload), limit=PAYLOAD_LIMIT_BYTES)
        raise ParamsRefused([field("payload", message, expected=t("at most 64 KiB"), got=str(len(payload)))])
    key = params.idempotency_key
    request = Request(
        Signal(params.name, payload.decode()), call.caller.actor,
        request_id=f"signal:{key}" if key is not None else None,
        fingerprint=hashlib.sha256(params.name.encode() + b"\0" + payload).hexdigest() if key is not None else None,
    )  # fmt: skip
    return _result(await call.daemon.execute(request))


def _result(done: Done) -> Wire:
    wire: Wire = {"woke": [{"graph": graph, "node": node} for graph, node in done.woke]}
    if done.kept:
        wire["kept"] = [{"graph": graph, "node": node} for graph, node in done.kept]
    return wire
