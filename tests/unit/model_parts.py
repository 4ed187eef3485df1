"""What the model of the core is made of: which status takes which verb, nodes, edits, conditions (model.md)."""

import json
from dataclasses import dataclass, field
from typing import Any

# model.md, Verbs: which status takes which verb. `top_up` and `step` are not in this issue.
TAKES: dict[str, dict[str, str]] = {
    "active": {
        "extend": "yes", "replan": "yes", "pause": "yes", "retry": "yes", "finish": "yes", "cancel": "yes",
        "clear": "yes",
    },
    "user_paused": {
        "extend": "stays", "replan": "stays", "pause": "stop over drain", "resume": "yes", "retry": "stays",
        "finish": "yes", "cancel": "yes", "clear": "yes",
    },
    "infra_paused": {
        "extend": "stays", "replan": "stays", "resume": "yes", "retry": "stays", "finish": "yes", "cancel": "yes",
        "clear": "yes",
    },
    "blocked": {
        "extend": "then active", "replan": "then active", "pause": "yes", "resume": "if something can start",
        "retry": "then active", "finish": "yes", "cancel": "yes", "clear": "yes",
    },
    "complete": {"extend": "reopens", "retry": "reopens", "clear": "yes"},
    "cancelled": {"clear": "yes"},
}  # fmt: skip
STRENGTH = {"pause": 1, "cancel": 2, "clear": 3}
RETRY_ON = ("exec_failed", "timeout")


class ModelRefusal(Exception):
    """The model expects a refusal with this code."""


def demand(claim: Any, code: str = "invalidTransition") -> None:
    if not claim:
        raise ModelRefusal(code)


@dataclass
class Condition:
    """`slug.part op value`; `part` is `state`, or `n` for a number in the output."""

    slug: str
    part: str
    operator: str
    value: Any

    def text(self) -> str:
        part = "state" if self.part == "state" else "output.n"
        return f"{self.slug}.{part} {self.operator} {json.dumps(self.value)}"


@dataclass(repr=False)
class ModelNode:
    slug: str
    needs: tuple[str, ...] = ()
    required: bool = False
    condition: Condition | None = None
    priority: int = 0
    retry_max: int = 0
    backoff_s: int = 0
    on_lost: str = "resume"
    state: str = "waiting"
    skip: str | None = None
    output: str | None = None
    attempts: int = 0
    numbers: int = 0
    retries: int = 0
    lost_in_row: int = 0
    put_backs: int = 0
    not_before: int | None = None
    live: str | None = None  # state of its unsettled attempt
    stop: str | None = None
    pids: tuple[int, ...] = ()
    removed: bool = False
    then: str | None = None  # what a replan made of it, once its tree is empty
    wanted: bool = False  # required as its definition says, whatever the plan's shape adds

    def __post_init__(self) -> None:
        self.wanted = self.required

    def __repr__(self) -> str:
        said = {k: v for k, v in vars(self).items() if v not in (None, False, (), 0, "waiting", "resume")}
        return f"ModelNode({', '.join(f'{k}={v!r}' for k, v in said.items())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # hypothesis asks for this
        printer.text(repr(self))

    @property
    def settled(self) -> bool:
        return self.state in ("achieved", "skipped", "cancelled") or (self.state == "failed" and not self.required)

    @property
    def dead_end(self) -> bool:
        return self.state == "blocked" or (self.state == "failed" and self.required)


@dataclass
class ModelEdits:
    """Edits by slug; a change gives new needs, and drops the condition."""

    add: list[ModelNode] = field(default_factory=list)
    change: dict[str, tuple[str, ...]] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    restart: list[str] = field(default_factory=list)
    cancel: list[str] = field(default_factory=list)
