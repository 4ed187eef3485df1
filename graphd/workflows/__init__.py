"""Workflow files: strict YAML with positions, the schema, the compiled plan. Never runs anything it reads.

In: bytes and a name. Out: a `Compiled` plan for the core, or diagnostics with line, column, cause and hint.
`files` finds workflows by name; nothing else here touches the disk. Source: spec workflow.md.
"""

from graphd.workflows.compile import Compiled
from graphd.workflows.diagnostics import Diagnostic, render
from graphd.workflows.files import (
    Located,
    WorkflowNotFound,
    WorkflowUnreadable,
    find,
    list_workflows,
    locate_file,
    prompt_reader,
)
from graphd.workflows.schema import BUILT_IN_WORKERS
from graphd.workflows.validate import Explained, Summary, WorkflowRefused, explain, load, summarise, validate

__all__ = [
    "BUILT_IN_WORKERS",
    "Compiled",
    "Diagnostic",
    "Explained",
    "Located",
    "Summary",
    "WorkflowNotFound",
    "WorkflowRefused",
    "WorkflowUnreadable",
    "explain",
    "find",
    "list_workflows",
    "load",
    "locate_file",
    "prompt_reader",
    "render",
    "summarise",
    "validate",
]
