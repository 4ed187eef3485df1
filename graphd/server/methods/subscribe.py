"""`subscribe` and `unsubscribe`: the values to start from, and the cursors that go on from them.

Capture and registration are one step on committed state: no change is missed and none comes twice. Source: spec
protocol.md.
"""

from typing import TYPE_CHECKING, Final

import orjson

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.model import State
from graphd.server.project import Wire
from graphd.server.references import find_graph, find_node
from graphd.server.routes import Call, Reply, Table
from graphd.server.subscriptions import NodeKey, Wish

if TYPE_CHECKING:
    from graphd_protocol.model import SubscribeParams, UnsubscribeParams

table: Final = Table()


@table.route("workgraph/subscribe", "SubscribeParams", "SubscribeResult", is_cancellable=False)
async def subscribe(call: Call, params: "SubscribeParams") -> Reply:
    """Start a subscription; its first notification follows the answer."""

    def capture(state: State) -> bytes:
        return call.subscriptions.open(state, _wish(call, state, params))[1]

    answer = await call.daemon.view(capture)
    return Reply(orjson.Fragment(answer), then=call.subscriptions.release)


def _wish(call: Call, state: State, params: "SubscribeParams") -> Wish:
    since = params.since or {}
    outputs: dict[NodeKey, str] = {}
    for item in params.output:
        graph = find_graph(state, item.graph)
        node = find_node(graph, item.node)
        outputs[(graph.id, node.id)] = node.slug
    return Wish(
        graphs=None if params.graphs is None else frozenset(_graph(state, name, since) for name in params.graphs),
        since=since,
        is_same_store=params.store in (None, call.daemon.store_id),
        wants_activity=params.activity,
        outputs=outputs,
    )


def _graph(state: State, name: str, since: dict[str, int]) -> str:
    """The id of a graph; one that the client knew and that is gone is answered with its tombstone."""
    if name in state.tombstones or (name in since and name not in state.graphs):
        return name
    return find_graph(state, name).id


@table.route("workgraph/unsubscribe", "UnsubscribeParams", "UnsubscribeParams", is_cancellable=False)
async def unsubscribe(call: Call, params: "UnsubscribeParams") -> Wire:
    """End a subscription; answers with its name."""
    if not call.subscriptions.close(params.subscription):
        raise Refused(
            "notFound", t("no subscription {name}", name=params.subscription[:80]), t("subscribe answers with its name")
        )
    return {"subscription": params.subscription}
