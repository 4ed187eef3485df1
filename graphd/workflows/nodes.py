"""Nodes of a file to definitions of the core: spellings joined, defaults taken, prompts rendered."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from graphd.base.text import t
from graphd.core.model import Definition, Retry
from graphd.workflows import templates
from graphd.workflows.clauses import clauses
from graphd.workflows.diagnostics import Findings
from graphd.workflows.inputs import Declared, as_text
from graphd.workflows.read import Field, Fields

_PROMPTS: Final = ("prompt_template", "prompt", "run")
_UNREADABLE: Final = "-"  # stands for a spec that was told already, so that the plan is checked all the same
_AGENT_KEYS: Final = ("max_tool_calls", "model", "thinking", "mode", "permissions")


@dataclass(slots=True)
class Compiler:
    """What all nodes of a file share. `values` None: inputs are not bound yet (validation)."""

    findings: Findings
    declared: Mapping[str, Declared]
    values: Mapping[str, Any] | None
    prompts: templates.Prompts
    defaults: Fields = field(default_factory=dict)

    def definition(self, node: Field) -> Definition | None:
        """The node as the core wants it; None where it has no id. Findings say what is wrong with it."""
        fields: Fields = node.value
        if "id" not in fields:
            return None
        slug: str = fields["id"].value
        needs = tuple(need.value for need in fields["depends_on"].value) if "depends_on" in fields else ()
        mapping: Fields = fields["input_mapping"].value if "input_mapping" in fields else {}
        worker = self._worker(node)
        isolation = fields.get("isolation") or self.defaults.get("isolation")
        return Definition(
            slug=slug,
            spec=self._spec(node, worker, needs),
            worker=worker if worker is not None else "shell",
            title=fields["name"].value if "name" in fields else slug,
            needs=needs,
            condition=fields["condition"].value if "condition" in fields else None,
            required=self._plain("required", fields, False),
            timeout_ms=self._inner("worker_config", "timeout_ms", fields, 600_000),
            hard_timeout_ms=self._inner("worker_config", "hard_timeout_ms", fields, None),
            retry=self._retry(fields),
            on_lost=fields["on_lost"].value if "on_lost" in fields else "resume",
            priority=fields["priority"].value if "priority" in fields else 0,
            input_mapping=tuple((name, source.value) for name, source in mapping.items()),
            report_to_parent=self._plain("report_to_parent", fields, False),
            isolation=isolation.value if isolation is not None else None,
            **{key: self._inner("worker_config", key, fields, None) for key in _AGENT_KEYS},
            **clauses(fields),
        )

    def of_block(self, fields: Fields, made: Definition) -> Definition:
        """A node of a block, with what the graph's defaults say where the block is silent."""
        isolation = self.defaults.get("isolation")
        is_silent = "required" not in fields and "required" in self.defaults
        return replace(
            made,
            required=bool(self.defaults["required"].value) if is_silent else made.required,
            timeout_ms=self._inner("worker_config", "timeout_ms", {}, 600_000),
            hard_timeout_ms=self._inner("worker_config", "hard_timeout_ms", {}, None),
            retry=self._retry({}),
            isolation=isolation.value if isolation is not None else None,
            **{key: self._inner("worker_config", key, {}, None) for key in _AGENT_KEYS},
        )

    def text(self, written: Field, worker: str, bound: set[str]) -> str:
        """A prompt that stands in the file, checked and filled in as far as values are known."""
        return self._prompt(written, worker, bound)

    def _plain(self, key: str, fields: Fields, default: Any) -> Any:
        found = fields.get(key) or self.defaults.get(key)
        return found.value if found is not None else default

    def _inner(self, table: str, key: str, fields: Fields, default: Any) -> Any:
        """A key inside a table: the node's, else the default's, key by key."""
        for source in (fields, self.defaults):
            if table in source and key in source[table].value:
                return source[table].value[key].value
        return default

    def _retry(self, fields: Fields) -> Retry:
        on = self._inner("retry", "on", fields, None)
        usual = Retry()
        return Retry(
            max=self._inner("retry", "max", fields, usual.max),
            backoff_s=self._inner("retry", "backoff_s", fields, usual.backoff_s),
            on=tuple(dict.fromkeys(f.value for f in on)) if on is not None else usual.on,
        )

    def _worker(self, node: Field) -> str | None:
        fields: Fields = node.value
        own = fields.get("worker_type")
        if "run" in fields:
            if own is not None and own.value != "shell":
                message = t("run is a script for the shell, not for {worker}", worker=own.value)
                self.findings.error(
                    "key.twice", own.span, own.path, message, t("write prompt for an agent, or no worker")
                )
            return "shell"
        if own is None and "wait" in fields:
            return ""
        found = own or self.defaults.get("worker_type")
        if found is not None:
            return str(found.value)
        if own is None and not _is_written(node, "worker_type", "worker", "run"):
            message = t("{node} has no worker", node=fields["id"].value)
            hint = t("add run: SCRIPT, or worker_type and prompt_template")
            self.findings.error("key.missing", fields["id"].span, node.path, message, hint)
        return None

    def _spec(self, node: Field, worker: str | None, needs: tuple[str, ...]) -> str:
        fields: Fields = node.value
        present = [fields[key] for key in _PROMPTS if key in fields]
        if len(present) > 1:
            message = t(
                "{second} beside {first}: one spelling of a key per node",
                second=present[1].written,
                first=present[0].written,
            )
            self.findings.error(
                "key.twice", present[1].name, present[1].path, message, t("keep {first}", first=present[0].written)
            )
        if not present and "wait" in fields:
            return ""
        if not present:
            if worker is not None and not _is_written(node, *_PROMPTS):
                message = t("{node} has a worker, but no prompt", node=fields["id"].value)
                self.findings.error("key.missing", fields["id"].span, node.path, message, t("add prompt: TEXT"))
            return _UNREADABLE
        return self._prompt(present[0], worker, _bound(fields, needs))

    def _prompt(self, written: Field, worker: str | None, bound: set[str]) -> str:
        parts: Fields = written.value if isinstance(written.value, dict) else {"inline": written}
        own: Fields = parts["input"].value if "input" in parts else {}
        if worker == "shell" and "input" in parts:
            message = t("a shell script is no template, so input has no effect")
            hint = t("assign shell variables in the script, or declare inputs of the workflow")
            self.findings.error("template.inShell", parts["input"].name, parts["input"].path, message, hint)
        text_field = parts.get("inline") or parts.get("id") or parts.get("file")
        if text_field is None:
            return _UNREADABLE
        if "inline" in parts:
            text: str | None = text_field.value
        else:
            text = self.prompts.text(text_field, self.findings)
        if text is None or worker is None:
            return _UNREADABLE
        if worker == "shell":
            return text
        names = bound | set(own) | {f"inputs.{name}" for name in self.declared}
        templates.check(text, text_field, names, self.findings)
        if self.values is None:
            return text
        known = {f"inputs.{name}": as_text(value) for name, value in self.values.items()}
        known |= {name: as_text(value.value) for name, value in own.items()}
        return templates.fill(text, text_field, known, self.findings)


def _bound(fields: Fields, needs: tuple[str, ...]) -> set[str]:
    """Names that the start of an attempt will bind: mapped inputs, else each direct need."""
    names = set(fields["input_mapping"].value) if "input_mapping" in fields else set(needs)
    if "for_each" in fields and "as" in fields["for_each"].value:
        names |= {"index", fields["for_each"].value["as"].value}
    return names


def _is_written(node: Field, *keys: str) -> bool:
    """Whether a key stands in the file, though it may have been told as unfit."""
    entries = getattr(node.node, "entries", {})
    return any(key in entries for key in keys)
