"""Prompts: `{{name}}` checked and, where its value is known before the start, filled in. Never for shell scripts."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from graphd.base.text import t
from graphd.core.plan import PLACEHOLDER, suggestion
from graphd.workflows.diagnostics import Findings
from graphd.workflows.read import Field

PromptReader: TypeAlias = Callable[[str], bytes | None]
"""The bytes of `.agents/prompts/<id>.md`, the same at every call; None where there is no such file."""


@dataclass(slots=True)
class Prompts:
    """Prompt files of one workflow, each read once. `hashes` names what a start froze."""

    reader: PromptReader | None
    hashes: dict[str, str]

    def text(self, field: Field, findings: Findings) -> str | None:
        """The prompt file that this field names, or None: told, or no reader was given (then nothing is checked)."""
        if self.reader is None:
            return None
        name: str = field.value
        content = self.reader(name)
        if content is None:
            hint = (
                t("make .agents/prompts/{name}.md", name=name)
                if not name.endswith(".md")
                else t("write {name}", name=name[:-3])
            )
            findings.error(
                "prompt.missing", field.span, field.path, t("there is no prompt file {name}.md", name=name), hint
            )
            return None
        self.hashes[name] = sha256(content).hexdigest()
        try:
            return content.decode()
        except UnicodeDecodeError as trouble:
            message = t("{name}.md: byte {offset} is not UTF-8", name=name, offset=trouble.start)
            findings.error("prompt.encoding", field.span, field.path, message, t("save it as UTF-8"))
            return None


def check(text: str, field: Field, bound: Collection[str], findings: Findings) -> None:
    """Tell every `{{name}}` of a prompt that nothing binds."""
    told: set[str] = set()
    for match in PLACEHOLDER.finditer(text):
        name = match.group(1)
        if name in bound or name in told:
            continue
        told.add(name)
        at = findings.place_in(field.node, text, match.start(), match.end())
        known = t("bound here: {names}", names=", ".join(sorted(bound)) or t("nothing"))
        close = suggestion(name, bound)
        hint = t("{hint} ({known})", hint=close, known=known) if close else known
        findings.error("template.unbound", at, field.path, t("nothing binds {{{{{name}}}}}", name=name), hint)


def fill(text: str, field: Field, values: Mapping[str, str], findings: Findings) -> str:
    """The prompt with every known value in place; names of needs stay for the start of the attempt.

    A value that looks like a template itself is refused: it would be filled in later, as if the file had said so.
    """
    for match in PLACEHOLDER.finditer(text):
        value = values.get(match.group(1))
        if value is not None and PLACEHOLDER.search(value):
            message = t("the value of {name} has a {{{{name}}}} in it", name=match.group(1))
            at = findings.place_in(field.node, text, match.start(), match.end())
            findings.error("input.template", at, field.path, message, t("give a value without {{ and }}"))
    return PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)
