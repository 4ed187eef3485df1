"""What others ask of a workflow file: validate it, explain it, or load it for a start."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from graphd.base.text import t
from graphd.core.final import with_final
from graphd.core.plan import effective_required, waves
from graphd.workflows.compile import Compiled, compile_source
from graphd.workflows.diagnostics import Diagnostic
from graphd.workflows.long_form import long_config, long_form
from graphd.workflows.schema import BUILT_IN_WORKERS
from graphd.workflows.templates import PromptReader


class WorkflowRefused(Exception):
    """The file can't run. `diagnostics` has every finding, warnings too; at least one is an error."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        self.first = next(d for d in diagnostics if d.severity == "error")
        others = sum(d.severity == "error" for d in diagnostics) - 1
        line, first = self.first.range.start.line + 1, self.first.message
        self.message = t("line {line}: {message}", line=line, message=first)
        if others:
            self.message = t("line {line}: {message} (and {count} more)", line=line, message=first, count=others)
        super().__init__(self.message)

    @property
    def code(self) -> str:
        """The wire code: `inputMissing` or `notSupported` where nothing else is wrong, else `invalidPlan`."""
        codes = {d.code for d in self.diagnostics if d.severity == "error"}
        return codes.pop() if codes in ({"inputMissing"}, {"notSupported"}) else "invalidPlan"


@dataclass(slots=True, frozen=True)
class Explained:
    """The compiled plan for readers: nodes with the long keys of workflow.md, layers by longest path.

    `config` is what the graph has beside its nodes, where it is not at its default. `gn-final` is among the nodes,
    though no file may name it.
    """

    title: str
    objective: str
    config: dict[str, Any]
    nodes: list[dict[str, Any]]
    waves: list[list[str]]
    warnings: list[Diagnostic]


@dataclass(slots=True, frozen=True)
class Summary:
    """A workflow in a list: `inputs` as the file declares them, by name."""

    title: str
    inputs: dict[str, dict[str, Any]]
    is_valid: bool


def validate(
    source: bytes | str,
    *,
    name: str | None = None,
    read_prompt: PromptReader | None = None,
    workers: Collection[str] = BUILT_IN_WORKERS,
) -> list[Diagnostic]:
    """Every finding, in the order of the text; inputs need no values. Executes nothing.

    Without `read_prompt` prompt files are not looked at. `name` is the file's stem, None for text without a file.
    """
    return compile_source(source, name=name, inputs=None, read_prompt=read_prompt, workers=workers).diagnostics


def load(
    source: bytes | str,
    *,
    name: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    read_prompt: PromptReader | None = None,
    workers: Collection[str] = BUILT_IN_WORKERS,
) -> Compiled:
    """The plan to set, with inputs bound and prompts filled in; `WorkflowRefused` with all findings else."""
    reader = read_prompt if read_prompt is not None else _no_prompts
    result = compile_source(source, name=name, inputs=inputs or {}, read_prompt=reader, workers=workers)
    if result.compiled is None:
        raise WorkflowRefused(result.diagnostics)
    return result.compiled


def explain(
    source: bytes | str,
    *,
    name: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    read_prompt: PromptReader | None = None,
    workers: Collection[str] = BUILT_IN_WORKERS,
) -> Explained:
    """What the file means, prompts filled in where inputs are given. `WorkflowRefused` where it means nothing."""
    result = compile_source(source, name=name, inputs=inputs, read_prompt=read_prompt, workers=workers)
    plan = result.compiled
    if plan is None:
        raise WorkflowRefused(result.diagnostics)
    definitions = with_final(plan.definitions) if plan.terms.final_check else plan.definitions
    required = effective_required(definitions, plan.delivery_node)
    nodes = [long_form(definition, is_required=definition.slug in required) for definition in definitions]
    config = long_config(limits=plan.limits, budget=plan.budget, terms=plan.terms, delivery_node=plan.delivery_node)
    return Explained(plan.title, plan.objective, config, nodes, waves(definitions), list(plan.warnings))


def summarise(source: bytes | str, *, name: str | None = None, workers: Collection[str] = BUILT_IN_WORKERS) -> Summary:
    """What a list of workflows shows of a file, valid or not. Prompt files are not looked at."""
    result = compile_source(source, name=name, inputs=None, read_prompt=None, workers=workers)
    inputs = {
        d.name: {
            "type": d.type,
            **({"description": d.description} if d.description else {}),
            **({"default": d.default} if d.default is not None else {}),
            **({"enum": list(d.choices)} if d.choices else {}),
        }
        for d in result.declared
    }
    return Summary(result.title or name or "", inputs, result.compiled is not None)


def _no_prompts(prompt: str) -> bytes | None:
    return None
