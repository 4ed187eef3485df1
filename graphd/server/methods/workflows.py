"""`workflows`, `validate`, `explain`: what can be run, and what a file means. Nothing in a file is executed.

Source: spec protocol.md, Methods; workflow.md; execution.md, Trust 4.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphd.base.text import t
from graphd.server.errors import ParamsRefused, field
from graphd.server.plans import diagnostic, located_workflow, refused
from graphd.server.project import Wire
from graphd.server.routes import Call, Table

if TYPE_CHECKING:
    from graphd.workflows import Located
    from graphd_protocol.model import Empty, WorkflowParams

table: Final = Table()


@table.route("workgraph/workflows", "Empty", "WorkflowEntry")
async def workflows(call: Call, params: "Empty") -> list[Wire]:
    """Every workflow that can be run by name, by name."""
    return await asyncio.to_thread(_entries, call.daemon.workspace)


def _entries(workspace: Path) -> list[Wire]:
    from graphd.workflows import BUILT_IN_WORKERS, list_workflows, prompt_reader
    from graphd.workflows.compile import compile_source

    entries = []
    for located in list_workflows(workspace):
        reader = prompt_reader(workspace)
        result = compile_source(
            located.content, name=located.name, inputs=None, read_prompt=reader, workers=BUILT_IN_WORKERS
        )
        entries.append(
            {
                "name": located.name,
                "title": result.title or located.name,
                "path": str(located.path),
                "source": located.source,
                "shadows": [str(path) for path in located.shadows],
                "inputs": {item.name: _declared(item) for item in result.declared},
                "isValid": result.compiled is not None,
            }
        )
    return entries


def _declared(item: Any) -> Wire:
    wire: Wire = {"type": item.type, "description": item.description}
    if item.default is not None:
        wire["default"] = item.default
    if item.choices:
        wire["enum"] = list(item.choices)
    return wire


def _source(call: Call, params: "WorkflowParams") -> "tuple[Located | None, bytes | str]":
    located = located_workflow(call, None, params.file)
    return located, located.content if located is not None else params.text or ""


def _check_one(params: "WorkflowParams") -> None:
    if (params.file is None) == (params.text is None):
        raise ParamsRefused(
            [field("", t("give file or text"), expected=t("one of file and text"), got=t("both or none"))]
        )


@table.route("workgraph/validate", "WorkflowParams", "ValidateResult")
async def validate(call: Call, params: "WorkflowParams") -> Wire:
    """Every finding in a workflow file, in the order of its text."""
    _check_one(params)

    def work() -> Wire:
        from graphd.workflows import prompt_reader
        from graphd.workflows import validate as find_troubles

        located, content = _source(call, params)
        name = located.name if located is not None else None
        found = find_troubles(content, name=name, read_prompt=prompt_reader(call.daemon.workspace))
        return {"diagnostics": [diagnostic(item) for item in found]}

    return await asyncio.to_thread(work)


@table.route("workgraph/explain", "WorkflowParams", "ExplainResult")
async def explain(call: Call, params: "WorkflowParams") -> Wire:
    """The compiled nodes in the long form, and what can run together."""
    _check_one(params)

    def work() -> Wire:
        from graphd.workflows import WorkflowRefused, prompt_reader
        from graphd.workflows import explain as compile_and_explain

        located, content = _source(call, params)
        name = located.name if located is not None else None
        try:
            reader = prompt_reader(call.daemon.workspace)
            explained = compile_and_explain(content, name=name, inputs=params.inputs or None, read_prompt=reader)
        except WorkflowRefused as refusal:
            raise refused(refusal.code, refusal.message, refusal.diagnostics) from None
        return {
            "title": explained.title,
            "objective": explained.objective,
            "nodes": explained.nodes,
            "waves": explained.waves,
            "warnings": [diagnostic(item) for item in explained.warnings],
            **({"config": explained.config} if explained.config else {}),
        }

    return await asyncio.to_thread(work)
