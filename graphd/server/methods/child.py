"""`submitResult`, `reportProgress`, `reportDiscovery`, `askParent`, `readInput`: what an attempt may say, of itself.

Who calls is known by the hello (a token, or a parent chain that leads to a keeper). A child decides nothing: it can't
answer, cancel or widen anything. Source: spec protocol.md, MCP and plugin package; execution.md, Environment.
"""

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphd.base.redaction import PLAIN
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.children.contracts import ContractBroken, first_trouble
from graphd.children.inputs import INPUT_NAME
from graphd.children.telling import VERDICT
from graphd.core.asks import action_hash
from graphd.core.commands import ChildAsk, Propose, Request
from graphd.core.definition import Definition
from graphd.core.edits import Edits
from graphd.core.events import AttemptKey
from graphd.core.model import Ask, Attempt, Graph, State
from graphd.core.proposals import edits_of, open_proposals
from graphd.core.turns import question_of
from graphd.server.errors import nearest, shown
from graphd.server.hello import Caller
from graphd.server.project import Wire
from graphd.server.routes import CHILDREN, Call, Table
from graphd.server.slices import read_slice, slice_of
from graphd_protocol.ids import slug_trouble

if TYPE_CHECKING:
    from graphd_protocol.model import (
        AskParentParams,
        ReadInputParams,
        ReportDiscoveryParams,
        ReportProgressParams,
        SubmitResultParams,
    )

table: Final = Table()
RESULT_LIMIT_BYTES: Final = 8 << 20


def _own(state: State, caller: Caller) -> Attempt:
    """The caller's attempt, which must still live. Raises Refused `staleAttempt`."""
    if caller.attempt is not None:
        graph, node, number, role = caller.attempt
        found = state.graphs[graph].attempts.get((node, role, number)) if graph in state.graphs else None
        if found is not None and found.state in ("starting", "live"):
            return found
    raise Refused("staleAttempt", t("this attempt is over"), t("what it still says is dropped"))


@table.route("workgraph/submitResult", "SubmitResultParams", "Empty", allowed=CHILDREN, is_cancellable=False)
async def submit_result(call: Call, params: "SubmitResultParams") -> Wire:
    """Keep a result, checked against its contract. Raises Refused, with what to mend."""

    def read(state: State) -> tuple[str, AttemptKey, str | None]:
        attempt = _own(state, call.caller)
        return attempt.graph, attempt.key, _contract(state, attempt)

    graph, key, schema = await call.daemon.view(read)
    content = _content(params.output)
    if (size := len(content)) > RESULT_LIMIT_BYTES:
        raise Refused(
            "tooLarge", t("a result has at most {limit} bytes, not {size}", limit=RESULT_LIMIT_BYTES, size=size),
            t("write it to a file, and hand in where it is"),
        )  # fmt: skip
    if schema is not None:
        await asyncio.to_thread(_check, content, schema)
    if not await call.daemon.submit_result(graph, key, content):
        raise Refused(
            "staleAttempt", t("no turn of this attempt is running: its result is settled"),
            t("what it still says is dropped"),
        )  # fmt: skip
    return {}


def _contract(state: State, attempt: Attempt) -> str | None:
    definition = state.graphs[attempt.graph].nodes[attempt.node].definition
    return VERDICT if attempt.role == "verifier" else definition.output_schema


def _content(output: Any) -> bytes:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _check(content: bytes, schema: str) -> None:
    """Raises Refused `childInputRefused` with the first place that does not fit. May take a while."""
    try:
        trouble = first_trouble(schema, json.loads(content))
    except ValueError:
        raise _misfit(t("it is no JSON")) from None
    except ContractBroken as broken:
        raise _misfit(broken.reason) from None
    if trouble is not None:
        raise _misfit(f"{trouble[0]}: {trouble[1]}")


def _misfit(trouble: str) -> Refused:
    return Refused(
        "childInputRefused", t("the result does not fit its JSON Schema: {trouble}", trouble=trouble),
        t("mend it, and hand it in again"),
    )  # fmt: skip


@table.route("workgraph/reportProgress", "ReportProgressParams", "Empty", allowed=CHILDREN)
async def report_progress(call: Call, params: "ReportProgressParams") -> Wire:
    """Show it to people."""
    graph, key = await call.daemon.view(lambda state: _place(_own(state, call.caller)))
    call.daemon.report_progress(graph, key, params.text)
    return {}


def _place(attempt: Attempt) -> tuple[str, AttemptKey]:
    return attempt.graph, attempt.key


@table.route(
    "workgraph/reportDiscovery", "ReportDiscoveryParams", "ReportDiscoveryResult", allowed=CHILDREN,
    is_cancellable=False,
)  # fmt: skip
async def report_discovery(call: Call, params: "ReportDiscoveryParams") -> Wire:
    """Propose it as a node of the attempt's worker; told again, it is the same proposal. Raises Refused."""
    title = PLAIN.text(params.title)

    def read(state: State) -> tuple[str, str, Definition, str | None]:
        attempt = _own(state, call.caller)
        graph = state.graphs[attempt.graph]
        node = graph.nodes[attempt.node]
        author = f"{node.slug}@{attempt.number}"
        made = Definition(
            slug=_free_slug(graph, title), title=title, spec=PLAIN.text(params.spec), worker=node.definition.worker,
            needs=tuple(params.needs),
        )  # fmt: skip
        return graph.id, author, made, _proposal(graph, author, title)

    graph_id, author, made, proposal = await call.daemon.view(read)
    if proposal is None:
        command = Propose(graph_id, Edits(add=(made,)), author, title)
        await call.daemon.execute(Request(command, call.caller.actor))
        proposal = await call.daemon.view(lambda state: _proposal(state.graphs[graph_id], author, title))
    return {"proposal": proposal}


def _proposal(graph: Graph, author: str, title: str) -> str | None:
    found = (ask for ask in graph.asks.values() if ask.kind == "proposal" and ask.action.get("author") == author)
    return next((ask.id for ask in found if ask.title == title), None)


def _free_slug(graph: Graph, title: str) -> str:
    """A slug of the title that no node of the graph ever had, and that nobody proposes."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    slug = words if words and slug_trouble(words) is None else f"found-{words}".strip("-")
    taken = {node.slug for node in graph.nodes.values()}
    taken |= {node.slug for ask in open_proposals(graph) for node in edits_of(ask).add}
    numbered = (f"{slug}-{number}" for number in itertools.count(2))
    return slug if slug not in taken else next(name for name in numbered if name not in taken)


@table.route("workgraph/askParent", "AskParentParams", "AskParentResult", allowed=CHILDREN)
async def ask_parent(call: Call, params: "AskParentParams") -> Wire:
    """Open an ask for people, and wait for its answer for a while; asked again, the same one is waited for."""
    graph, key = await call.daemon.view(lambda state: _place(_own(state, call.caller)))
    question = PLAIN.text(params.question)
    is_alone = call.daemon.settings.detached_asks == "deny" and not call.hub.is_attended()
    await call.daemon.execute(Request(ChildAsk(graph, key, question, is_alone), call.caller.actor))
    wanted = action_hash(question_of(question))

    def find(state: State) -> Ask | None:
        found = state.graphs[graph].asks.values() if graph in state.graphs else ()
        return next((a for a in found if a.action_hash == wanted and (a.node, a.role, a.attempt) == key), None)

    def is_over(state: State) -> bool:
        ask = find(state)
        return ask is None or ask.state != "open"

    wait_s = call.daemon.settings.ask_parent_s if params.wait_ms is None else params.wait_ms / 1000
    await call.hub.until(is_over, wait_s)
    ask = await call.daemon.view(find)
    if ask is None:
        raise Refused("staleAttempt", t("this attempt is over"), t("what it still says is dropped"))
    if ask.state == "open" and call.hub.stop_reason is not None:  # the next daemon is asked for the rest of the wait
        raise Refused("storeUnavailable", t("the daemon is stopping"), t("connect again"))
    made = {"ask": ask.id, "state": ask.state, "answer": ask.text, "answeredBy": ask.answered_by}
    return {name: value for name, value in made.items() if value is not None}


@table.route("workgraph/readInput", "ReadInputParams", "ReadInputResult", allowed=CHILDREN)
async def read_input(call: Call, params: "ReadInputParams") -> Wire:
    """A slice of an input file of the attempt."""
    attempt = await call.daemon.view(lambda state: _own(state, call.caller))
    folder = call.daemon.folder / "attempts" / attempt.graph / attempt.folder / "inputs"
    is_name = INPUT_NAME.match(params.name) is not None
    found = await asyncio.to_thread(read_slice, folder / params.name, params.offset, params.limit) if is_name else None
    if found is None:
        names = await asyncio.to_thread(_names, folder)
        near = nearest(params.name, names)
        hint = t("one of: {options}", options=", ".join(names)) if names else t("this attempt has no inputs")
        raise Refused("notFound", t("no input {name}", name=shown(params.name)), hint, suggestions=near)
    return slice_of(found[0], offset=params.offset, limit=params.limit, total=found[1])


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
