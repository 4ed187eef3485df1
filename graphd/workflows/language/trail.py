"""The way through a tree to an offset: which keys and entries lie around it."""

from dataclasses import dataclass

from graphd.workflows.source import YamlList, YamlMap, YamlNode, YamlScalar


@dataclass(slots=True, frozen=True)
class Step:
    """One step: into the value of a key (`name` and `key`), or into an entry of a list (`name` None)."""

    held: YamlMap | YamlList
    name: str | None
    key: YamlScalar | None
    value: YamlNode


def trail(tree: YamlNode | None, offset: int) -> list[Step]:
    """Steps from the root to the innermost key or entry that starts at or before an offset."""
    steps: list[Step] = []
    while tree is not None and not isinstance(tree, YamlScalar):
        step = _into(tree, offset)
        if step is None:
            break
        steps.append(step)
        if step.key is not None and offset <= step.key.end:
            break
        tree = step.value if step.value.start <= offset else None
    return steps


def _into(held: YamlMap | YamlList, offset: int) -> Step | None:
    found: Step | None = None
    if isinstance(held, YamlList):
        for item in held.items:
            if item.start > offset:
                break
            found = Step(held, None, None, item)
        return found
    for name, (key, value) in held.entries.items():
        if key.start > offset:
            break
        found = Step(held, name, key, value)
    return found
