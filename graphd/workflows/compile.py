"""A typed document to a plan that the core takes: definitions, limits, title, objective, delivery node."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from graphd.base.text import t
from graphd.core.definition import Budget, Definition, Terms
from graphd.core.model import Limits
from graphd.core.plan import PlanTrouble, check_plan, collapse
from graphd.workflows import schema
from graphd.workflows.blocks import expand
from graphd.workflows.diagnostics import Diagnostic, Findings, Place, Span
from graphd.workflows.inputs import Declared, as_text, bind, declare
from graphd.workflows.long_form import LIMITS
from graphd.workflows.nodes import Compiler
from graphd.workflows.read import BROKEN, Field, Fields, Reader
from graphd.workflows.reviewing import review_lifecycle
from graphd.workflows.source import YamlNode, compose, decode
from graphd.workflows.templates import PromptReader, Prompts
from graphd.workflows.terms import budget_of, terms_of
from graphd.workflows.warnings import Subject, warn

_TOP: Final = Place(0, 0)


@dataclass(slots=True, frozen=True)
class Compiled:
    """A workflow ready to be set. `definitions` need each once; `required` is as written.

    `sha256` is of the exact bytes that were read, `prompts` names every prompt file with its own: what a run
    consents to (execution.md, Trust 1). `variables` are the inputs as `GRAPHD_VAR_<name>` shows them.
    """

    name: str
    title: str
    objective: str
    definitions: tuple[Definition, ...]
    limits: Limits
    budget: Budget | None
    terms: Terms
    delivery_node: str | None
    declared: tuple[Declared, ...]
    inputs: dict[str, Any]
    variables: dict[str, str]
    sha256: str
    prompts: tuple[tuple[str, str], ...]
    warnings: tuple[Diagnostic, ...]


@dataclass(slots=True, frozen=True)
class Result:
    """What compiling a file came to: a plan, or only diagnostics with at least one error.

    `tree` None: the text is no YAML of ours. `definitions[i]` is what could be made of `nodes[i]`, errors or not.
    """

    compiled: Compiled | None
    diagnostics: list[Diagnostic]
    declared: tuple[Declared, ...] = ()
    title: str = ""
    tree: YamlNode | None = None
    nodes: tuple[Field, ...] = ()
    definitions: tuple[Definition, ...] = ()


def compile_source(
    source: bytes | str,
    *,
    name: str | None,
    inputs: Mapping[str, Any] | None,
    read_prompt: PromptReader | None,
    workers: Collection[str],
) -> Result:
    """Everything from bytes to plan. `inputs` None: not bound, for validation. `name` None: text without a file."""
    text, findings = decode(source)
    if findings.has_errors:
        return Result(None, findings.all())
    tree = compose(text, findings)
    if tree is None:
        if not findings.has_errors:
            findings.error("file.empty", _TOP, "", t("the file is empty"), t("start with nodes: and one node"))
        return Result(None, findings.all())
    root = Reader(findings).read(schema.ROOT, tree, "")
    if root is BROKEN:
        return Result(None, findings.all(), tree=tree)
    result = _Document(root, findings, name).compile(source, inputs, read_prompt, workers)
    return replace(result, tree=tree)


class _Document:
    """One file while it is compiled."""

    def __init__(self, root: Fields, findings: Findings, name: str | None) -> None:
        self.root = root
        self.findings = findings
        self.config: Fields = root["config"].value if "config" in root else {}
        self.file_name = name
        self.name: str = self.config["name"].value if "name" in self.config else name or "workflow"
        self.title: str = root["title"].value if "title" in root else self.name
        self.nodes: list[Field] = []

    def compile(
        self,
        source: bytes | str,
        inputs: Mapping[str, Any] | None,
        read_prompt: PromptReader | None,
        workers: Collection[str],
    ) -> Result:
        findings = self.findings
        declared = declare(self.root.get("inputs"), findings)
        values = None if inputs is None else bind(declared, inputs, self._inputs_span(), findings)
        prompts = Prompts(read_prompt, {})
        definitions = self._definitions(Compiler(findings, declared, values, prompts, self._defaults()))
        limits = self._limits()
        delivery: str | None = self.config["delivery_node"].value if "delivery_node" in self.config else None
        terms = terms_of(self.root, self.config, findings)
        self._check(definitions, limits, delivery, workers)
        if not findings.has_errors:
            review_lifecycle(self.nodes, definitions, findings, is_deep=terms.mode == "deep")
        outcome = Result(
            None, findings.all(), tuple(declared.values()), self.title, nodes=tuple(self.nodes), definitions=definitions
        )
        if findings.has_errors:
            return outcome
        definitions = collapse(definitions)
        warn(Subject(self.config, tuple(self.nodes), definitions, delivery, terms), self.file_name, findings)
        diagnostics = findings.all()
        content = source.encode() if isinstance(source, str) else source
        compiled = Compiled(
            name=self.name,
            title=self.title,
            objective=self._objective(),
            definitions=definitions,
            limits=limits,
            budget=budget_of(self.config),
            terms=terms,
            delivery_node=delivery,
            declared=outcome.declared,
            inputs=dict(values or {}),
            variables={key: as_text(value) for key, value in (values or {}).items()},
            sha256=sha256(content).hexdigest(),
            prompts=tuple(sorted(prompts.hashes.items())),
            warnings=tuple(diagnostics),
        )
        return replace(outcome, compiled=compiled, diagnostics=diagnostics)

    def _objective(self) -> str:
        """What the file says; else the goal that was agreed on, else the title."""
        admission: Fields = self.root["admission"].value if "admission" in self.root else {}
        found = self.config.get("objective") or admission.get("goal")
        return str(found.value) if found is not None else self.title

    def _inputs_span(self) -> Span:
        return self.root["inputs"].name if "inputs" in self.root else _TOP

    def _defaults(self) -> Fields:
        return self.config["node_defaults"].value if "node_defaults" in self.config else {}

    def _definitions(self, compiler: Compiler) -> tuple[Definition, ...]:
        if "blocks" in self.config:
            pairs = expand(self.config["blocks"].value, compiler)
            self.nodes = [field for field, _ in pairs]
            return tuple(definition for _, definition in pairs)
        holder = self.config.get("nodes") or self.root.get("nodes")
        made = []
        for node in holder.value if holder is not None else []:
            definition = compiler.definition(node)
            if definition is not None:
                self.nodes.append(node)
                made.append(definition)
        return tuple(made)

    def _limits(self) -> Limits:
        given = {ours: self.config[key].value for key, ours in LIMITS.items() if key in self.config}
        return Limits(**given)

    def _check(
        self, definitions: tuple[Definition, ...], limits: Limits, delivery: str | None, workers: Collection[str]
    ) -> None:
        if not definitions and self.findings.has_errors:
            return  # why there are none was told
        for trouble in check_plan(definitions, limits=limits, delivery_node=delivery, workers=workers):
            span, path = self._where(trouble)
            self.findings.error(trouble.code, span, path, trouble.message, trouble.hint)

    def _where(self, trouble: PlanTrouble) -> tuple[Span, str]:
        """The place in the file of what is wrong with the plan."""
        if trouble.index < 0:
            field = self.config.get(trouble.part) or self.root.get(trouble.part)
            return (field.span, field.path) if field is not None else (_TOP, trouble.part)
        node = self.nodes[trouble.index]
        fields: Fields = node.value
        if trouble.part == "spec":
            return self._spec_place(trouble, fields)
        key = {"slug": "id", "needs": "depends_on", "worker": "worker_type"}.get(trouble.part, trouble.part)
        field = fields.get(key) or self._defaults().get(key) or fields["id"]
        if trouble.part == "condition" and isinstance(trouble.item, int):
            at = self.findings.place_in(field.node, field.value, trouble.item, trouble.item + 1)
            return at, field.path
        if trouble.item is not None and not isinstance(field.value, str):
            field = _inside(field, trouble.item)
        return field.span, field.path

    def _spec_place(self, trouble: PlanTrouble, fields: Fields) -> tuple[Span, str]:
        field = next(
            (fields[key] for key in ("run", "prompt", "prompt_template", "instruction") if key in fields), fields["id"]
        )
        if isinstance(field.value, dict):
            field = field.value.get("inline") or next(iter(field.value.values()))
        if isinstance(trouble.item, int):
            end = field.value.find("}}", trouble.item) + 2
            return self.findings.place_in(field.node, field.value, trouble.item, end), field.path
        return field.span, field.path


def _inside(field: Field, item: int | str) -> Field:
    """A part of a value: needs and globs by place, the rest by name; the whole where a compiler added the part."""
    inner: Any = field.value
    found: Field = field
    if isinstance(inner, dict):
        found = inner.get(item, field)
    elif isinstance(item, int) and item < len(inner):
        found = inner[item]
    return found
