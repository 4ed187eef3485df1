"""Rename a node, an input or a variable everywhere in its file, where the graph stays the same but for the name.

The edited text is analysed again before the edits are given out, so that a rename never breaks a file that was whole.
"""

import re
from collections import Counter
from typing import TypeAlias

from graphd.base.text import t
from graphd.core.plan import PLACEHOLDER
from graphd.workflows.language.analysis import Analysis, analyse
from graphd.workflows.language.names import Mention, Subject, prompts_of
from graphd.workflows.language.navigation import subject_at
from graphd.workflows.language.places import Span, replaced
from graphd.workflows.language.writing import scalar_for
from graphd.workflows.writing import quoted
from graphd_protocol.ids import slug_trouble

Edits: TypeAlias = list[tuple[Span, str]]
_INPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")


class RenameRefused(ValueError):
    """The name can't be changed so; the text is as it was. `hint` says what to do instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def prepare_rename(analysis: Analysis, at: tuple[int, int]) -> tuple[Span, str] | None:
    """What a rename at a point would replace there, and its name; None where nothing has a name."""
    mention = subject_at(analysis, at)
    if mention is None or not analysis.is_parsed:
        return None
    return analysis.page.span(mention.start, mention.end), mention.subject[1]


def rename(analysis: Analysis, at: tuple[int, int], new_name: str) -> Edits:
    """Every edit of the rename, in the order of the text; `RenameRefused` else."""
    mention = subject_at(analysis, at)
    if mention is None:
        raise RenameRefused(t("nothing here has a name"), t("put the cursor on an id, or where one is used"))
    if not analysis.is_parsed:
        raise RenameRefused(t("the file is no YAML at the moment"), t("mend the syntax first"))
    kind, old, _ = mention.subject
    if new_name == old:
        return []
    places = analysis.mentions.of(mention.subject)
    _check_name(kind, new_name)
    _check_free(analysis, mention.subject, new_name, places)
    if kind == "node":
        _check_prompt_files(analysis, old, new_name)
    body = analysis.page.body
    edits = [(analysis.page.span(m.start, m.end), _new_text(body, m, new_name)) for m in places]
    _check_outcome(analysis, mention.subject, new_name, edits)
    return edits


def _new_text(body: str, mention: Mention, new_name: str) -> str:
    if not mention.is_whole or body[mention.start - 1 : mention.start] in ("'", '"'):
        return new_name
    if body[mention.start : mention.start + 1] == '"':
        return quoted(new_name)
    return scalar_for(new_name)


def _check_name(kind: str, new_name: str) -> None:
    if kind == "node":
        if reason := slug_trouble(new_name):
            raise RenameRefused(t("{name} can't be an id", name=repr(new_name[:80])), reason)
        return
    if not (_INPUT if kind == "input" else _VARIABLE).match(new_name):
        hint = t("a letter or _ first, then letters, digits and _")
        raise RenameRefused(t("{name} can't be a name here", name=repr(new_name[:80])), hint)


def _check_free(analysis: Analysis, subject: Subject, new_name: str, places: list[Mention]) -> None:
    kind, old, owner = subject
    defined = sum(m.role == "definition" for m in places)
    if defined == 0 or (kind != "variable" and defined > 1):
        if defined:
            raise RenameRefused(t("{name} is defined more than once", name=old), t("give each its own name first"))
        raise RenameRefused(t("{name} is defined nowhere in this file", name=old), t("define it first"))
    if any(m.role == "definition" for m in analysis.mentions.of((kind, new_name, owner))):
        raise RenameRefused(t("{name} is already there", name=new_name), t("choose another name"))
    if kind == "node":
        hidden = next((m for m in places if m.role in ("prompt", "script") and _binds(analysis, m, new_name)), None)
        if hidden is not None:
            message = t("{name} already means something else in a prompt that uses {old}", name=new_name, old=old)
            raise RenameRefused(message, t("choose another name"))


def _binds(analysis: Analysis, mention: Mention, name: str) -> bool:
    subject: Subject = ("variable", name, mention.owner)
    return bool(analysis.mentions.of(subject))


def _check_prompt_files(analysis: Analysis, old: str, new_name: str) -> None:
    """A prompt in a file of its own that uses the name would be left behind."""
    for node in analysis.outcomes:
        definition = analysis.nodes[node.index].definition
        is_file = not any(True for _ in prompts_of(node))
        if definition is None or not is_file or definition.input_mapping or old not in definition.needs:
            continue
        if any(match.group(1) == old for match in PLACEHOLDER.finditer(definition.spec)):
            message = t("the prompt file of {node} uses {{{{{name}}}}}", node=node.slug, name=old)
            hint = t("map it first: input_mapping: {{ {name}: {name} }} on {node}", name=old, node=node.slug)
            raise RenameRefused(message, hint)


def _check_outcome(analysis: Analysis, subject: Subject, new_name: str, edits: Edits) -> None:
    """Read the edited text: the same graph, and no trouble that was not there."""
    after = analyse(
        replaced(analysis.text, edits), name=analysis.name, read_prompt=analysis.read_prompt, workers=analysis.workers
    )
    kind, old, owner = subject

    def told(analysis: Analysis) -> list[tuple[Subject, str, int]]:
        return [(m.subject, m.role, m.owner) for m in analysis.mentions.all]

    expected = [((kind, new_name, owner) if s == subject else s, *more) for s, *more in told(analysis)]
    new_trouble = Counter(d.code for d in after.diagnostics) - Counter(d.code for d in analysis.diagnostics)
    if new_trouble or expected != told(after) or not after.is_parsed or len(after.nodes) != len(analysis.nodes):
        message = t("renaming {old} to {name} would change more than the name", old=old, name=new_name)
        hint = t("choose another name, or first write plainly where it is used in escaped or folded text")
        raise RenameRefused(message, hint)
