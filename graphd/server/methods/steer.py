"""The verbs on a graph that exists: pause, resume, step, retry, cancel, clear, finish, release, extendTimeout.

Each answers after its commit. Source: spec model.md, Verbs.
"""

from typing import TYPE_CHECKING, Final

from graphd.base.text import t
from graphd.core.commands import Cancel, Clear, ExtendTimeout, Finish, Pause, Release, Resume, RetryNodes, Step
from graphd.server.budgets import top_up_of
from graphd.server.commits import find, mutate
from graphd.server.environments import kept_environment
from graphd.server.errors import ParamsRefused, field
from graphd.server.project import Wire
from graphd.server.routes import PEOPLE, Call, Table

if TYPE_CHECKING:
    from graphd_protocol.model import (
        CancelParams,
        ClearParams,
        ExtendTimeoutParams,
        FinishParams,
        PauseParams,
        ReleaseParams,
        ResumeParams,
        RetryParams,
        StepParams,
    )

table: Final = Table()


@table.route("workgraph/pause", "PauseParams", "MutationResult", is_cancellable=False)
async def pause(call: Call, params: "PauseParams") -> Wire:
    """Start nothing more; with mode `stop`, end what runs and put it back to ready."""
    command = Pause(await find(call, params), params.mode, params.reason)
    return await mutate(call, "pause", params, command)


@table.route("workgraph/resume", "ResumeParams", "MutationResult", is_cancellable=False)
async def resume(call: Call, params: "ResumeParams") -> Wire:
    """Go on, with the caller's environment where it sent one."""
    graph = await find(call, params)
    environment = await kept_environment(call, params)
    return await mutate(call, "resume", params, Resume(graph, environment, top_up_of(params.top_up)))


@table.route("workgraph/step", "StepParams", "MutationResult", is_cancellable=False)
async def step(call: Call, params: "StepParams") -> Wire:
    """Start one node, and pause when it is settled."""
    return await mutate(call, "step", params, Step(await find(call, params), params.node))


@table.route("workgraph/extendTimeout", "ExtendTimeoutParams", "MutationResult", is_cancellable=False)
async def extend_timeout(call: Call, params: "ExtendTimeoutParams") -> Wire:
    """Move the deadline of a running node on."""
    command = ExtendTimeout(await find(call, params), params.node, params.by_ms)
    return await mutate(call, "extendTimeout", params, command)


@table.route("workgraph/retry", "RetryParams", "MutationResult", is_cancellable=False)
async def retry(call: Call, params: "RetryParams") -> Wire:
    """Try one node again with what hung on it, or all that failed or is blocked."""
    if params.all == (params.node is not None):
        trouble = field(
            "node", t("name a node, or say all: true"), expected=t("node or all"), got=params.node or t("neither")
        )
        raise ParamsRefused([trouble])
    graph = await find(call, params)
    command = RetryNodes(graph, params.node, await kept_environment(call, params))
    return await mutate(call, "retry", params, command)


@table.route("workgraph/cancel", "CancelParams", "MutationResult", is_cancellable=False)
async def cancel(call: Call, params: "CancelParams") -> Wire:
    """Stop all and settle the rest; `cancelled` when the last tree is proven empty."""
    return await mutate(call, "cancel", params, Cancel(await find(call, params), params.reason))


@table.route("workgraph/clear", "ClearParams", "MutationResult", is_cancellable=False)
async def clear(call: Call, params: "ClearParams") -> Wire:
    """As cancel, then a tombstone. A request that comes again finds the tombstone, and has been carried out."""
    wanted = params.graph or ""
    if params.request_id is not None:
        rev = await call.daemon.view(lambda state: state.tombstones.get(wanted))
        if rev is not None:
            return {"graph": wanted, "rev": rev}
    return await mutate(call, "clear", params, Clear(await find(call, params)))


@table.route("workgraph/finish", "FinishParams", "MutationResult", is_cancellable=False)
async def finish(call: Call, params: "FinishParams") -> Wire:
    """Settle what has not started as skipped, let what runs finish."""
    return await mutate(call, "finish", params, Finish(await find(call, params), params.reason))


@table.route("workgraph/release", "ReleaseParams", "MutationResult", allowed=PEOPLE, is_cancellable=False)
async def release(call: Call, params: "ReleaseParams") -> Wire:
    """A person declares a stuck tree dead, naming exactly its pids."""
    command = Release(await find(call, params), params.node, tuple(params.pids))
    return await mutate(call, "release", params, command)
