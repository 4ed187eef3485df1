"""The method table: every request and notification, its models, its errors, who may call it, and since when.

Standard library alone: models are named, as in `graphd_protocol.model`. Tests hold the table to the routes that the
server has and to the docs; `protocol.json`, the docs' tables and the clients' types are made of it. Source: spec
protocol.md, Methods.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from graphd_protocol.errors import (
    ERROR_CODES,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
)

Direction: TypeAlias = Literal["clientToServer", "serverToClient"]
Shape: TypeAlias = Literal["one", "list", "oneOrNull"]
Principal: TypeAlias = Literal["user", "agent", "attempt"]

EVERYBODY: Final[tuple[Principal, ...]] = ("user", "agent", "attempt")
CALLERS: Final[tuple[Principal, ...]] = ("user", "agent")
PEOPLE: Final[tuple[Principal, ...]] = ("user",)
CHILDREN: Final[tuple[Principal, ...]] = ("attempt",)

NOT_GREETED: Final = -32002
JSON_RPC_CODES: Final[dict[str, int]] = {
    "parseError": PARSE_ERROR,
    "invalidRequest": INVALID_REQUEST,
    "methodNotFound": METHOD_NOT_FOUND,
    "invalidParams": INVALID_PARAMS,
    "internalError": INTERNAL_ERROR,
    "notGreeted": NOT_GREETED,
    "requestCancelled": REQUEST_CANCELLED,
}
ALWAYS: Final = ("unauthorised", "overloaded", "storeUnavailable")
"""Errors of ours that any request may end in."""


@dataclass(slots=True, frozen=True)
class Request:
    """A request. `params` None: none are taken; `result` names a model, `shape` says how many of it are answered."""

    method: str
    params: str | None
    result: str
    summary: str
    shape: Shape = "one"
    errors: tuple[str, ...] = ()
    callers: tuple[Principal, ...] = CALLERS
    since: int = 1
    direction: Direction = "clientToServer"


@dataclass(slots=True, frozen=True)
class Notification:
    """A message without an answer."""

    method: str
    params: str
    summary: str
    since: int = 1
    direction: Direction = "serverToClient"


_GRAPH: Final = ("notFound", "ambiguous")
_MUTATION: Final = (*_GRAPH, "conflict", "invalidTransition", "requestIdReused")
_FILE: Final = ("notFound",)
_PLAN: Final = ("invalidPlan", "agentMissing")

REQUESTS: Final[tuple[Request, ...]] = (
    Request(
        "graphd/hello",
        "HelloParams",
        "HelloResult",
        "Who connects, and what both sides speak. The first request of every connection.",
        errors=("protocolMismatch", "notFound"),
        callers=EVERYBODY,
    ),
    Request("graphd/health", None, "Health", "How the daemon does, and what it holds for each connection."),
    Request("graphd/capacity", None, "Capacity", "Whether more would start now, and why not."),
    Request("graphd/doctor", "DoctorParams", "Check", "What can be checked from inside, and how to mend it.", "list"),
    Request(
        "graphd/stop",
        "StopParams",
        "Empty",
        "End the daemon: `leave` keeps the children with their keepers, `cancel` ends all graphs first.",
        callers=PEOPLE,
    ),
    Request(
        "graphd/handover",
        "HandoverParams",
        "Empty",
        "Give the workspace to a newer version: stop, keep the children, and let clients come back.",
        errors=("conflict",),
    ),
    Request(
        "workgraph/set",
        "SetParams",
        "MutationResult",
        "Check a plan, freeze it, start it: exactly one of `workflow`, `file`, `text` and `nodes`.",
        errors=(
            "notFound",
            "ambiguous",
            "alreadyExists",
            "invalidObjective",
            "invalidBudget",
            "invalidPlan",
            "agentMissing",
            "inputMissing",
            "notSupported",
            "invalidTransition",
            "requestIdReused",
        ),
    ),
    Request(
        "workgraph/pause",
        "PauseParams",
        "MutationResult",
        "Start nothing more; with mode `stop`, end what runs and put it back to ready.",
        errors=_MUTATION,
    ),
    Request(
        "workgraph/resume",
        "ResumeParams",
        "MutationResult",
        "Go on; with `topUp` under a budget that allows so much more.",
        errors=(*_MUTATION, "invalidBudget"),
    ),
    Request(
        "workgraph/step",
        "StepParams",
        "MutationResult",
        "Start one node, and pause when it is settled.",
        errors=_MUTATION,
    ),
    Request(
        "workgraph/extendTimeout",
        "ExtendTimeoutParams",
        "MutationResult",
        "Move the deadline of a running node on.",
        errors=(*_MUTATION, "capacity"),
    ),
    Request(
        "workgraph/retry",
        "RetryParams",
        "MutationResult",
        "Try one node again with what hung on it, or all that failed or is blocked.",
        errors=(*_MUTATION, "capacity", "upstreamNotAchieved", "agentMissing"),
    ),
    Request(
        "workgraph/cancel",
        "CancelParams",
        "MutationResult",
        "Stop all and settle the rest; `cancelled` once the last process tree is proven empty.",
        errors=_MUTATION,
    ),
    Request("workgraph/clear", "ClearParams", "MutationResult", "As cancel, then a tombstone.", errors=_MUTATION),
    Request(
        "workgraph/extend",
        "ExtendParams",
        "MutationResult",
        "Add nodes, as a new plan version; a complete graph opens again.",
        errors=(*_MUTATION, *_PLAN),
    ),
    Request(
        "workgraph/replan",
        "ReplanParams",
        "MutationResult",
        "Add, change, remove, restart and cancel nodes, as one plan version.",
        errors=(*_MUTATION, *_PLAN, "capacity"),
    ),
    Request(
        "workgraph/apply",
        "ApplyParams",
        "MutationResult",
        "What changed in a workflow file since its graph was started, as a proposal; none where nothing did.",
        errors=(*_MUTATION, *_PLAN, "capacity", "inputMissing"),
    ),
    Request(
        "workgraph/accept",
        "AcceptParams",
        "MutationResult",
        "Carry a proposal out as one replan, checked anew.",
        errors=(*_MUTATION, *_PLAN, "capacity", "askGone"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/dismiss",
        "DismissParams",
        "MutationResult",
        "A proposal is not wanted.",
        errors=(*_MUTATION, "askGone"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/rerun",
        "RerunParams",
        "MutationResult",
        "The plan of a graph, as it is now, as a new graph.",
        errors=(*_GRAPH, "conflict", "requestIdReused", "alreadyExists", *_PLAN),
    ),
    Request(
        "workgraph/save",
        "SaveParams",
        "SaveResult",
        "Write the plan of a graph as a workflow file; never over another one unless `force` says so.",
        errors=(*_GRAPH, "alreadyExists"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/finish",
        "FinishParams",
        "MutationResult",
        "Skip what has not started, let what runs end.",
        errors=_MUTATION,
    ),
    Request(
        "workgraph/release",
        "ReleaseParams",
        "MutationResult",
        "A person declares a stuck process tree dead, naming exactly its pids.",
        errors=(*_MUTATION, "stuck"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/hold",
        "NodeRef",
        "HoldResult",
        "Pause a node, and open its agent's session: it is held until this connection ends, then it goes on there.",
        errors=(*_GRAPH, "invalidTransition", "conflict", "notSupported"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/asks",
        "AsksParams",
        "Ask",
        "What waits for a person, oldest first; or what stands.",
        "list",
        errors=_GRAPH,
    ),
    Request(
        "workgraph/respond",
        "RespondParams",
        "MutationResult",
        "Answer an ask; the first valid answer counts.",
        errors=("notFound", "ambiguous", "askGone", "conflict", "requestIdReused"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/revoke",
        "RevokeParams",
        "MutationResult",
        "A standing answer covers nothing more.",
        errors=("notFound", "ambiguous", "requestIdReused"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/signal",
        "SignalParams",
        "SignalResult",
        "Something happened outside: wake what waits for it, keep it for what will.",
        errors=("requestIdReused",),
    ),
    Request(
        "workgraph/submitResult",
        "SubmitResultParams",
        "Empty",
        "Hand in the result of the running turn: it counts over what the attempt says. Durable before the answer.",
        errors=("staleAttempt", "childInputRefused", "notSupported", "tooLarge"),
        callers=CHILDREN,
    ),
    Request(
        "workgraph/reportProgress",
        "ReportProgressParams",
        "Empty",
        "Say how far the attempt is.",
        errors=("staleAttempt",),
        callers=CHILDREN,
    ),
    Request(
        "workgraph/reportDiscovery",
        "ReportDiscoveryParams",
        "ReportDiscoveryResult",
        "Propose a node for work that the attempt found; a person accepts or dismisses it.",
        errors=("staleAttempt", "invalidPlan", "invalidTransition", "capacity", "notFound"),
        callers=CHILDREN,
    ),
    Request(
        "workgraph/askParent",
        "AskParentParams",
        "AskParentResult",
        "Ask people something, and wait for the answer.",
        errors=("staleAttempt",),
        callers=CHILDREN,
    ),
    Request(
        "workgraph/readInput",
        "ReadInputParams",
        "ReadInputResult",
        "Bytes of an input of the attempt.",
        errors=("notFound", "staleAttempt"),
        callers=CHILDREN,
    ),
    Request(
        "workgraph/list", "ListParams", "ListResult", "Headers of graphs, newest first.", errors=("cursorInvalid",)
    ),
    Request(
        "workgraph/status",
        "GraphParams",
        "Snapshot",
        "The whole graph; null for one that was cleared, or where there is none and none was named.",
        "oneOrNull",
        errors=_GRAPH,
    ),
    Request(
        "workgraph/node",
        "NodeRef",
        "NodeResult",
        "A node with its attempts, oldest first, and the deliveries about it.",
        errors=_GRAPH,
        callers=EVERYBODY,
    ),
    Request(
        "workgraph/subscribe",
        "SubscribeParams",
        "SubscribeResult",
        "The values to start from; `workgraph/changed` goes on from them.",
        errors=_GRAPH,
    ),
    Request(
        "workgraph/unsubscribe", "UnsubscribeParams", "UnsubscribeParams", "End a subscription.", errors=("notFound",)
    ),
    Request(
        "workgraph/history",
        "HistoryParams",
        "HistoryResult",
        "Events of whole revs after a rev, oldest first.",
        errors=_GRAPH,
    ),
    Request(
        "workgraph/why",
        "NodeRef",
        "Why",
        "Why a node is where it is, and what to type next.",
        "list",
        errors=_GRAPH,
        callers=EVERYBODY,
    ),
    Request("workgraph/output", "OutputParams", "OutputResult", "Bytes of a result.", errors=_GRAPH, callers=EVERYBODY),
    Request(
        "workgraph/observe",
        "ObserveParams",
        "ObserveResult",
        "What an attempt printed after a cursor.",
        errors=(*_GRAPH, "cursorInvalid"),
        callers=EVERYBODY,
    ),
    Request(
        "workgraph/diff",
        "DiffParams",
        "DiffResult",
        "What an agent's attempt changed in the git work tree, until now while it runs; who worked there meanwhile.",
        errors=(*_GRAPH, "notSupported", "tooLarge"),
    ),
    Request("workgraph/processes", None, "ProcessEntry", "The process trees that we keep, and what they cost.", "list"),
    Request("workgraph/workflows", None, "WorkflowEntry", "Every workflow that can be run by name.", "list"),
    Request(
        "workgraph/validate",
        "WorkflowParams",
        "ValidateResult",
        "Every finding in a workflow file, in the order of its text.",
        errors=_FILE,
    ),
    Request(
        "workgraph/explain",
        "WorkflowParams",
        "ExplainResult",
        "The compiled nodes in the long form, and what can run together.",
        errors=(*_FILE, "invalidPlan", "inputMissing"),
    ),
    Request(
        "workgraph/export",
        "ExportParams",
        "ExportResult",
        "The whole graph as `workgraph/change` lines.",
        errors=(*_GRAPH, "notSupported"),
    ),
    Request(
        "workgraph/import",
        "ImportParams",
        "MutationResult",
        "Make the graph that such lines come to; an active one becomes user_paused.",
        errors=("malformedLog", "alreadyExists", "invalidPlan", "invalidObjective", "requestIdReused", "notFound"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/purge",
        "PurgeParams",
        "PurgeResult",
        "Remove ended graphs with their files, or only the files.",
        errors=(*_GRAPH, "invalidTransition"),
        callers=PEOPLE,
    ),
    Request(
        "workgraph/deliveries",
        "DeliveriesParams",
        "DeliveriesResult",
        "What an owner has not acknowledged, oldest first.",
        errors=("cursorInvalid",),
    ),
    Request(
        "workgraph/acknowledge",
        "AcknowledgeParams",
        "AcknowledgeResult",
        "These deliveries are not sent again.",
        errors=("notFound",),
    ),
    Request(
        "workgraph/agents",
        "AgentsParams",
        "AgentEntry",
        "Profiles, whether their programs are installed, and which workers they serve.",
        "list",
    ),
    Request(
        "workgraph/tree",
        "TreeParams",
        "TreeRow",
        "Rows of a tree view: graphs, the nodes of one, the attempts of a node.",
        "list",
        errors=_GRAPH,
    ),
    Request("workgraph/picture", "PictureParams", "Picture", "A layered drawing and its twin in words.", errors=_GRAPH),
)

NOTIFICATIONS: Final[tuple[Notification, ...]] = (
    Notification(
        "$/cancelRequest",
        "CancelRequestParams",
        "Drop a read that is not answered yet; a mutation is answered with its result.",
        direction="clientToServer",
    ),
    Notification("workgraph/changed", "Changed", "All that changed in a graph between two revs, after its commit."),
    Notification("workgraph/activity", "Activity", "What running nodes do right now. Volatile: latest wins."),
    Notification("workgraph/asks", "AsksNotice", "Questions that came, and those that need no answer any more."),
    Notification("workgraph/output", "OutputChunk", "What an attempt prints, where a subscription asked for it."),
    Notification("graphd/stopping", "StoppingNotice", "The last frame before the daemon ends the connection."),
)


def errors_of(request: Request) -> tuple[str, ...]:
    """Every code of ours that a request may be answered with, in the order of their numbers."""
    wanted = {*request.errors, *ALWAYS}
    return tuple(code for code in ERROR_CODES if code in wanted)
