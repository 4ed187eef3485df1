"""The whole schema of a workflow file as data: root, graph, node, and what is inside them. Source: spec workflow.md.

`Key.later` marks what the schema knows and checks, but no part of this version carries out: it is refused as
`notSupported` unless its value stands in `Key.harmless`, because it then asks for nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphd.base.text import t

BUILT_IN_WORKERS: Final = (
    "explore", "plan", "research", "architect", "review", "verify", "arbiter", "build", "debug", "prototype",
    "synthesize", "shell",
)  # fmt: skip
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_-]*"


@dataclass(slots=True, frozen=True)
class Text:
    """A string; `choices` empty: any. `pattern` is for the whole string, `meaning` says it in words."""

    choices: tuple[str, ...] = ()
    pattern: str = ""
    meaning: str = t("a text")


@dataclass(slots=True, frozen=True)
class Bool:
    """true or false."""

    meaning: str = t("true or false")


@dataclass(slots=True, frozen=True)
class Int:
    """A whole number in a range, both ends included; None: open."""

    low: int | None = None
    high: int | None = None
    meaning: str = t("a whole number")


@dataclass(slots=True, frozen=True)
class Number:
    """A number in a range, both ends included."""

    low: float | None = None
    high: float | None = None
    meaning: str = t("a number")


@dataclass(slots=True, frozen=True)
class Scalar:
    """A string, number or boolean, as it is written."""

    meaning: str = t("a text, a number, true or false")


@dataclass(slots=True, frozen=True)
class ListOf:
    """A list of one kind."""

    item: "Kind"
    meaning: str = t("a list")


@dataclass(slots=True, frozen=True)
class MapOf:
    """Free names with values of one kind."""

    value: "Kind"
    pattern: str = NAME
    meaning: str = t("a map")


@dataclass(slots=True, frozen=True)
class Table:
    """A map with known keys. `exactly_one` groups: one of each has to be there."""

    name: str
    keys: tuple["Key", ...]
    exactly_one: tuple[tuple[str, ...], ...] = ()
    meaning: str = t("a map")

    def key(self, written: str) -> "Key | None":
        """The key of this spelling."""
        return _INDEX[self.name].get(written)

    @property
    def required(self) -> "tuple[Key, ...]":
        """Keys that have to be there."""
        return _REQUIRED[self.name]

    @property
    def spellings(self) -> Iterable[str]:
        """Every way to write every key."""
        return _INDEX[self.name]


@dataclass(slots=True, frozen=True)
class Either:
    """One of several kinds, told apart by whether the value is a scalar, a list or a map."""

    kinds: tuple["Kind", ...]
    meaning: str


@dataclass(slots=True, frozen=True)
class Schema:
    """A JSON Schema (2020-12): a map, checked as one."""

    meaning: str = t("a JSON Schema")


Kind: TypeAlias = Text | Bool | Int | Number | Scalar | ListOf | MapOf | Table | Either | Schema


@dataclass(slots=True, frozen=True)
class Key:
    """One key of a table. `short` are other spellings, `default` is for readers, `later` what has to come first."""

    name: str
    kind: Kind
    default: Any = None
    short: tuple[str, ...] = ()
    is_required: bool = False
    later: str = ""
    harmless: tuple[Any, ...] = ()
    doc: str = ""


SLUG = Text(meaning=t("a slug"))
TEXTS = ListOf(Text(), t("a list of texts"))
GLOBS = ListOf(Text(), t("a list of globs"))
TIMEOUT = Int(1000, 2**53, t("milliseconds, at least 1000"))
FAILURES = (
    "exec_failed",
    "timeout",
    "verdict_fail",
    "merge_failed",
    "limit",
    "refused",
    "agent_missing",
    "lost",
)
TREES = t("work trees of their own are not made yet")
ISOLATION = Text(("none", "graph", "node"))

WORKER_CONFIG = Table(
    "worker_config",
    (
        Key("timeout_ms", TIMEOUT, 600_000, doc=t("the clock starts when the slot is taken")),
        Key("hard_timeout_ms", TIMEOUT, doc=t("ends the attempt without asking")),
        Key("max_tool_calls", Int(1, 1_000_000)),
        Key("model", Text(), doc=t("advanced, standard or a name")),
        Key("thinking", Text(("low", "medium", "high", "max"))),
        Key("mode", Text()),
        Key("permissions", Text(("read", "edit", "full"))),
    ),
)
RETRY = Table(
    "retry",
    (
        Key("max", Int(0, 100), 0, doc=t("automatic retries")),
        Key("backoff_s", Number(0, 86_400), 5, doc=t("seconds before the first, doubling")),
        Key("on", ListOf(Text(FAILURES)), ("exec_failed", "timeout"), doc=t("failure classes")),
    ),
)
NODE_DEFAULTS = Table(
    "node_defaults",
    (
        Key("required", Bool(), False),
        Key("report_to_parent", Bool(), False),
        Key("worker_type", Text(), short=("worker",)),
        Key("worker_config", WORKER_CONFIG),
        Key("retry", RETRY),
        Key("isolation", ISOLATION, "none", later=TREES, harmless=("none",)),
    ),
)
PROMPT_ID = Text(pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*", meaning=t("a file's name in .agents/prompts/ without .md"))
PROMPT_INPUT = MapOf(Scalar(), meaning=t("a map of names to values"))
PROMPT_TEMPLATE = Table(
    "prompt_template",
    (Key("inline", Text()), Key("id", PROMPT_ID), Key("input", PROMPT_INPUT, doc=t("values for {{name}}"))),
    exactly_one=(("inline", "id"),),
)
PROMPT_FILE = Table("prompt", (Key("file", PROMPT_ID, is_required=True),))
GATE = Table("gate", (Key("revise", SLUG), Key("max_revisions", Int(0, 100), 2)))
APPROVAL = Table("approval", (Key("prompt", Text()), Key("default", Text(("allow", "deny")))))
VERIFY = Table(
    "verify",
    (Key("run", Text()), Key("worker_type", Text(), short=("worker",)), Key("criteria", Text())),
    exactly_one=(("run", "worker_type"),),
)
WAIT = Table(
    "wait",
    (
        Key("until", Text(meaning=t("a time or a duration"))),
        Key("signal", Text()),
        Key("timeout_s", Number(0.001, 31_622_400)),
    ),
    exactly_one=(("until", "signal"),),
)
REVIEW = Table(
    "review",
    (
        Key("phase", Text(("design", "diff")), is_required=True),
        Key("implementation_node_id", SLUG),
        Key("verification_node_id", SLUG),
    ),
)
FOR_EACH = Table(
    "for_each",
    (
        Key("in", Text(meaning="slug.output.list"), is_required=True),
        Key("as", Text(pattern=NAME, meaning=t("a name")), is_required=True),
        Key("max", Int(1, 10_000), 50),
    ),
)
NODE = Table(
    "node",
    (
        Key("id", SLUG, is_required=True, doc=t("the node's slug")),
        Key("name", Text(), doc=t("label; default the id")),
        Key("worker_type", Text(), short=("worker",), doc=t("who does it")),
        Key("depends_on", ListOf(SLUG, t("a list of slugs")), (), short=("needs",), doc=t("reads the output of")),
        Key("required", Bool(), False, doc=t("its failure blocks the graph")),
        Key(
            "approval",
            Either((Bool(), APPROVAL), t("true or {prompt, default}")),
        ),
        Key("on_lost", Text(("resume", "pause", "fail")), "resume"),
        Key("unattended_extensions", Int(0, 1000), 2),
        Key("artifacts", GLOBS),
        Key("wait", WAIT),
        Key("prompt_template", PROMPT_TEMPLATE),
        Key("prompt", Either((Text(), PROMPT_FILE), t("a text or {file: name}")), doc=t("short for prompt_template")),
        Key("run", Text(meaning=t("a script")), doc=t("short for a shell worker with this script")),
        Key(
            "input_mapping",
            MapOf(Text(meaning=t("slug, slug.output or slug.output.a.b")), meaning=t("a map of names to sources")),
        ),
        Key("condition", Text(meaning=t("a condition")), doc=t("decides whether the node runs")),
        Key("gate", GATE),
        Key("output_schema", Schema()),
        Key("verify", VERIFY),
        Key("worker_config", WORKER_CONFIG),
        Key("retry", RETRY),
        Key("report_to_parent", Bool(), False),
        Key("review", REVIEW),
        Key("isolation", ISOLATION, "none", later=TREES, harmless=("none",)),
        Key("priority", Int(-100, 100), 0),
        Key("writes", GLOBS),
        Key("for_each", FOR_EACH),
    ),
)
BLOCK = Table(
    "block",
    (
        Key("id", SLUG, is_required=True),
        Key(
            "kind",
            Text(("explore", "plan", "prototype", "debug", "coding", "verify", "review", "synthesize")),
            is_required=True,
        ),
        Key("instruction", Text(), is_required=True),
        Key("depends_on", ListOf(SLUG, t("a list of slugs")), (), short=("needs",)),
        Key("worker_type", Text(), short=("worker",)),
        Key("required", Bool()),
        Key("report_to_parent", Bool()),
    ),
)
NODES = ListOf(NODE, t("a list of nodes"))
BUDGET = Table(
    "budget",
    (Key("tokens", Int(1, 2**53)), Key("cost_usd", Number(0, 1e9)), Key("wall_seconds", Number(0.001, 1e9))),
)
CONFIG = Table(
    "config",
    (
        Key("name", Text(pattern=NAME, meaning=t("a name of A-Z a-z 0-9 _ -")), doc=t("default the file's stem")),
        Key("objective", Text(), doc=t("the end that the whole graph serves")),
        Key("nodes", NODES),
        Key("blocks", ListOf(BLOCK, t("a list of blocks"))),
        Key("node_defaults", NODE_DEFAULTS),
        Key("max_concurrency", Int(1, 64), 5),
        Key("max_total_nodes", Int(1, 10_000), 100),
        Key("max_rounds", Int(1, 8), 3),
        Key("max_replans", Int(0, 10), 3),
        Key("max_node_attempts", Int(1, 100), 5),
        Key("max_timeout_extensions", Int(0, 1000), 20),
        Key("budget", BUDGET),
        Key(
            "on_required_failure",
            Text(("drain", "stop")),
            "drain",
        ),
        Key("isolation", ISOLATION, "none", later=TREES, harmless=("none",)),
        Key(
            "on_shared_tree",
            Text(("notice", "serialise")),
            "notice",
            later=t("start one graph after the other"),
            harmless=("notice",),
        ),
        Key("delivery_node", SLUG, doc=t("whose output is the graph's result")),
        Key("final_check", Bool(), False),
    ),
    exactly_one=(("nodes", "blocks"),),
)
INPUT_TYPES = ("string", "int", "number", "bool", "enum", "path")
INPUT = Table(
    "input",
    (
        Key("type", Text(INPUT_TYPES), "string"),
        Key("description", Text()),
        Key("default", Scalar()),
        Key("enum", ListOf(Text(), t("a list of texts"))),
    ),
)
SCOPE = Table("scope", (Key("in", TEXTS), Key("out", TEXTS)))
ADMISSION = Table(
    "admission",
    (
        Key("goal", Text(), is_required=True),
        Key("scope", SCOPE),
        *(
            Key(name, TEXTS)
            for name in (
                "constraints",
                "assumptions",
                "acceptance_criteria",
                "evidence_required",
                "risks",
                "open_questions",
                "blocking_questions",
            )
        ),
        Key("verdict", Text(("READY", "WAIVED", "NOT_READY")), is_required=True),
        Key("waiver_reason", Text()),
        Key("acknowledged_risks", TEXTS),
    ),
)
INPUTS = MapOf(INPUT, r"[A-Za-z_][A-Za-z0-9_]{0,63}", t("a map of names to inputs"))
ROOT = Table(
    "root",
    (
        Key("title", Text(), doc=t("shown to people; default the name")),
        Key("version", Int(1, 1, t("1, the format of the file")), 1),
        Key("inputs", INPUTS),
        Key(
            "mode",
            Text(("standard", "deep")),
            "standard",
        ),
        Key("admission", ADMISSION),
        Key("config", CONFIG),
        Key("nodes", NODES, doc=t("where config has nothing else")),
    ),
    exactly_one=(("config", "nodes"),),
)

TABLES: Final = (
    ROOT, CONFIG, NODE, BLOCK, NODE_DEFAULTS, WORKER_CONFIG, RETRY, PROMPT_TEMPLATE, PROMPT_FILE, GATE, APPROVAL,
    VERIFY, WAIT, REVIEW, FOR_EACH, BUDGET, INPUT, ADMISSION, SCOPE,
)  # fmt: skip
_INDEX: Final[dict[str, dict[str, Key]]] = {
    table.name: {spelling: key for key in table.keys for spelling in (key.name, *key.short)} for table in TABLES
}
_REQUIRED: Final[dict[str, tuple[Key, ...]]] = {
    table.name: tuple(key for key in table.keys if key.is_required) for table in TABLES
}


def home_of(written: str) -> list[str]:
    """Names of the tables that have this key: where a misplaced one belongs."""
    return [name for name, keys in _INDEX.items() if written in keys]
