"""Blocks: the higher form of a graph, compiled to nodes. Source: spec workflow.md, Blocks.

A block's own id is its last node, the one whose output others read; the nodes before it are called after it. A review
is three nodes (two readers and an arbiter, which is a gate), debugging is two. Writers that are not ordered among each
other work in parallel and are followed by an aggregator, which all that reads one of them waits for too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from graphd.base.text import t
from graphd.core.clauses import path_troubles
from graphd.core.definition import Definition, Gate, Review
from graphd.core.reach import Reach
from graphd.workflows.block_prompts import AGGREGATOR, ARBITER, ARBITER_CONTRACT, PROMPTS
from graphd.workflows.nodes import Compiler
from graphd.workflows.read import Field, Fields

WRITERS: Final = ("coding", "prototype", "debug")
_WORKERS: Final = {
    "explore": "explore", "plan": "plan", "prototype": "prototype", "debug": "debug", "coding": "build",
    "verify": "verify", "review": "review", "synthesize": "synthesize",
}  # fmt: skip
_REQUIRED: Final = ("plan", "debug", "verify", "review", "synthesize")
_REPORTING: Final = ("review", "synthesize")
_PARTS: Final = {"debug": ("diagnosis",), "review": ("standards", "intent")}
_SLUG_LIMIT: Final = 64


@dataclass(slots=True)
class Block:
    """One block of the file. `needs` may grow by an aggregator; `parts` are slugs of the nodes before its own."""

    field: Field
    slug: str
    kind: str
    needs: tuple[str, ...]
    parts: tuple[str, ...] = ()


def expand(listed: list[Field], compiler: Compiler) -> list[tuple[Field, Definition]]:
    """Nodes of all blocks, each with the field that it comes from. Findings say what is wrong with a block."""
    blocks = [_block(field) for field in listed if "id" in field.value and "kind" in field.value]
    taken = {block.slug for block in blocks}
    for block in blocks:
        block.parts = tuple(_free(f"{block.slug}-{part}", taken) for part in _PARTS.get(block.kind, ()))
    is_sound = _is_sound(blocks)
    gathered = _gather(blocks, taken) if is_sound else {}
    made = [(block.field, node) for block in blocks for node in _nodes(block, compiler)]
    for slug, members in gathered.items():
        last = next(block.field for block in reversed(blocks) if block.slug in members)
        made.append((last, _aggregator(slug, members, compiler)))
    if is_sound:
        for block in blocks:
            if block.kind == "review":
                _place_review(made, block, {b.slug: b.kind for b in blocks}, gathered)
    return made


def _is_sound(blocks: list[Block]) -> bool:
    """Whether ids are different, needs known and there is no cycle; if not, the plan's checks tell it."""
    known = {block.slug for block in blocks}
    if len(known) < len(blocks) or any(need not in known for block in blocks for need in block.needs):
        return False
    return Reach(_outline(blocks)).is_acyclic


def _outline(blocks: list[Block]) -> list[Definition]:
    return [Definition(block.slug, "", "", needs=block.needs) for block in blocks]


def _block(field: Field) -> Block:
    fields: Fields = field.value
    listed = fields["depends_on"].value if "depends_on" in fields else []
    needs = tuple(dict.fromkeys(need.value for need in listed))
    return Block(field, fields["id"].value, fields["kind"].value, needs)


def _free(wanted: str, taken: set[str]) -> str:
    """A slug that nobody has; `-2` and so on where people took it."""
    name, number = wanted[:_SLUG_LIMIT], 1
    while name in taken:
        number += 1
        name = f"{wanted[: _SLUG_LIMIT - 4]}-{number}"
    taken.add(name)
    return name


# ---- writers side by side -------------------------------------------------------------------------------------------


def _gather(blocks: list[Block], taken: set[str]) -> dict[str, tuple[str, ...]]:
    """An aggregator for each group of writers of which some may run together; who reads one of them waits for it."""
    reach = Reach(_outline(blocks))
    found = {}
    for members in _groups([block.slug for block in blocks if block.kind in WRITERS], reach):
        slug = _free("combined", taken)
        found[slug] = members
        for block in blocks:
            reads = any(need in members for need in block.needs)
            if reads and block.slug not in members and not any(reach.waits_for(m, block.slug) for m in members):
                block.needs = (*block.needs, slug)
    return found


def _groups(writers: list[str], reach: Reach) -> Iterator[tuple[str, ...]]:
    """Writers that may run together, and those that hang together by such pairs."""
    left = list(writers)
    while left:
        group = [left.pop(0)]
        for member in group:  # grows while we walk it
            near = [other for other in left if reach.can_meet(member, other)]
            group += near
            left = [other for other in left if other not in near]
        if len(group) > 1:
            yield tuple(slug for slug in writers if slug in group)


def _aggregator(slug: str, members: tuple[str, ...], compiler: Compiler) -> Definition:
    made = Definition(slug, AGGREGATOR, "synthesize", title=slug, needs=members)
    return replace(compiler.of_block({}, made), required=True)


# ---- one block ------------------------------------------------------------------------------------------------------


def _nodes(block: Block, compiler: Compiler) -> Iterator[Definition]:
    """The nodes of a block, its own last."""
    fields: Fields = block.field.value
    worker = fields["worker_type"].value if "worker_type" in fields else _WORKERS[block.kind]
    if worker == "shell" and block.parts:
        field = fields["worker_type"]
        message = t("a {kind} block has several nodes, so it can't be one script", kind=block.kind)
        compiler.findings.error("block.shell", field.span, field.path, message, t("write nodes, or name an agent"))
    texts = _specs(block, worker, compiler)
    for part, text in zip(block.parts, texts, strict=False):
        is_required = block.kind == "debug" and _flag(fields, "required", True)
        needed = Definition(part, text, worker, title=part, needs=block.needs, required=is_required)
        yield compiler.of_block(fields, needed)
    own = Definition(
        slug=block.slug, spec=texts[-1], worker="arbiter" if block.kind == "review" else worker, title=block.slug,
        needs=(*block.parts, *block.needs), required=_flag(fields, "required", block.kind in _REQUIRED),
        report_to_parent=_flag(fields, "report_to_parent", block.kind in _REPORTING),
    )  # fmt: skip
    if block.kind == "review":
        own = replace(own, gate=Gate(), output_schema=ARBITER_CONTRACT)
    yield compiler.of_block(fields, own)


def _flag(fields: Fields, name: str, usual: bool) -> bool:
    return bool(fields[name].value) if name in fields else usual


def _specs(block: Block, worker: str, compiler: Compiler) -> list[str]:
    """The texts of the parts, then of the block itself."""
    fields: Fields = block.field.value
    if "instruction" not in fields:
        return ["-"] * (len(block.parts) + 1)  # told by the reader
    instruction = compiler.text(fields["instruction"], worker, set(block.needs))
    if worker == "shell":
        return [instruction] * (len(block.parts) + 1)
    parts = [PROMPTS[f"{block.kind}.{name}"] for name in _PARTS.get(block.kind, ())]
    own = ARBITER if block.kind == "review" else PROMPTS[block.kind]
    return [f"{prompt}\n\n{instruction}" for prompt in (*parts, own)]


# ---- reviews --------------------------------------------------------------------------------------------------------


def _place_review(
    made: list[tuple[Field, Definition]], block: Block, kinds: dict[str, str], gathered: dict[str, tuple[str, ...]]
) -> None:
    """A review knows what it is of, and sends it back where nobody else reads it in the meantime."""
    place = next(at for at, (_, node) in enumerate(made) if node.slug == block.slug)
    field, node = made[place]
    written = [n for n in block.needs if n in gathered] or [n for n in block.needs if kinds.get(n) in WRITERS]
    planned = [need for need in block.needs if kinds.get(need) == "plan"]
    if written:
        checks = [need for need in block.needs if kinds.get(need) == "verify"]
        node = replace(node, review=Review("diff", written[-1], checks[-1] if checks else None))
    elif planned:
        node = replace(node, review=Review("design", planned[-1]))
    made[place] = (field, node)
    target = (written or planned)[-1:]
    if target:
        made[place] = (field, replace(node, gate=Gate(revise=target[0])))
        if any(trouble.code == "reviseLeaks" for trouble in path_troubles([d for _, d in made])):
            made[place] = (field, node)
