"""YAML text to a small tree with offsets, as strict as workflow.md asks: no anchors, tags or merge keys.

Events are read one by one, so depth and size are bounded before a tree exists (security.md: 20,000 brackets
cost PyYAML's composer 3.7 s and a RecursionError). Scalars stay texts: the schema says what they mean, not
YAML 1.1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import yaml

from graphd.base.text import t
from graphd.workflows.diagnostics import Findings, Place

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 20
_DEPTH_HINT: Final = t("a workflow needs no more than 8")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# YAML's printable characters, less the three line ends that editors do not show as such.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NO_KEY = re.compile(r"(?:~|null|Null|NULL|true|True|TRUE|false|False|FALSE|[-+]?[0-9][0-9_]*(?:\.[0-9]*)?|)\Z")
_HINTS: Final = (
    ("tab", t("indent with spaces")),
    ("that cannot start any token", t("put a text that starts with this character in quotes")),
    (
        "mapping values are not allowed",
        t("a text with ': ' in it needs quotes, or the line is indented wrongly"),
    ),
    ("could not find expected ':'", t("a key needs ': ' after it")),
    ("did not find expected key", t("check the indentation, and quotes inside quotes")),
    ("did not find expected '-'", t("entries of a list start with '- ' in the same column")),
    ("did not find expected ',' or ']'", t("close the list with ]")),
    ("did not find expected ',' or '}'", t("close the { with }, and put texts with , or : in quotes")),
    ("unexpected end of stream", t("a quote is not closed")),
    ("unknown escape", t("in double quotes \\ starts an escape; use single quotes for a plain \\")),
    ("undefined alias", t("write the value out; put a text that starts with * in quotes")),
)


@dataclass(slots=True)
class YamlScalar:
    """A text. `is_plain`: without quotes and not a block, so it may also mean a number, a boolean or null."""

    start: int
    end: int
    text: str
    is_plain: bool
    is_broken: bool = False


@dataclass(slots=True)
class YamlList:
    """A list. `end` is that of its first line where it is a block."""

    start: int
    end: int
    items: "list[YamlNode]" = field(default_factory=list)


@dataclass(slots=True)
class YamlMap:
    """A map; every key once, as text."""

    start: int
    end: int
    entries: "dict[str, tuple[YamlScalar, YamlNode]]" = field(default_factory=dict)


YamlNode: TypeAlias = YamlScalar | YamlList | YamlMap


def is_printable(text: str) -> bool:
    """Whether a text can stand in a file as it is, line ends and tabs included."""
    return _FORBIDDEN.search(text) is None


def decode(source: bytes | str) -> tuple[str, Findings]:
    """The text of a file without its BOM; where findings say that it is unreadable, it is empty."""
    if isinstance(source, str):
        source = source.encode("utf-8", "surrogatepass")
    if len(source) > MAX_BYTES:
        findings = Findings("")
        message = t("{count} bytes; a workflow has at most {limit}", count=len(source), limit=MAX_BYTES)
        findings.error(
            "file.tooLarge", Place(0, 0), "", message, t("split it, or move long prompts to .agents/prompts/")
        )
        return "", findings
    try:
        text = source.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as trouble:
        good = source[: trouble.start].decode(errors="replace")
        findings = Findings(good)
        at = Place(len(good), len(good))
        findings.error(
            "file.encoding", at, "", t("byte {offset} is not UTF-8", offset=trouble.start), t("save the file as UTF-8")
        )
        return "", findings
    return text, Findings(text)


def compose(text: str, findings: Findings) -> YamlNode | None:
    """The tree, or None where the text is no YAML of ours; findings say why."""
    if match := _FORBIDDEN.search(text):
        at = Place(match.start(), match.end())
        message = t("the character U+{code:04X} can't stand in a workflow", code=ord(match.group()))
        findings.error("yaml.character", at, "", message, t('remove it, or write it as "\\u…" in double quotes'))
        return None
    try:
        return _Builder(findings).build(_events(text))
    except yaml.MarkedYAMLError as trouble:
        _syntax(trouble, findings)
    except (yaml.YAMLError, RecursionError, ValueError) as trouble:
        # ValueError: PyYAML's escapes such as "\Uffffffff" name no character
        findings.error(
            "yaml.syntax",
            Place(0, 0),
            "",
            t("not YAML: {trouble}", trouble=str(trouble)[:300]),
            t("check the file's escapes"),
        )
    except _DepthExceeded as trouble:
        at = Place(trouble.offset, trouble.offset + 1)
        message = t("nested more than {limit} levels deep", limit=MAX_DEPTH)
        findings.error("yaml.depth", at, "", message, _DEPTH_HINT)
    return None


def _events(text: str) -> Iterator[Any]:
    """What `yaml.parse` gives, with one call into the loader an event instead of two."""
    loader: Any = LOADER(text)
    try:
        yield from iter(loader.get_event, None)
    finally:
        loader.dispose()


def _syntax(trouble: yaml.MarkedYAMLError, findings: Findings) -> None:
    mark = trouble.problem_mark or trouble.context_mark
    at: int = mark.index if mark is not None else 0
    problem = trouble.problem or t("not YAML")
    if "end of stream" in problem and trouble.context_mark is not None:
        at = trouble.context_mark.index  # where the open quote is helps more than where the file ends
    hint = next((h for words, h in _HINTS if words in problem), t("check the indentation, quotes and brackets here"))
    if "maximum nesting" in problem:
        findings.error(
            "yaml.depth", Place(at, at + 1), "", t("nested more than {limit} levels deep", limit=MAX_DEPTH), _DEPTH_HINT
        )
        return
    if trouble.context:
        message = t("{problem} {context}", problem=problem, context=trouble.context)
    else:
        message = t("{problem}", problem=problem)
    findings.error("yaml.syntax", Place(at, at + 1), "", message, hint)


class _DepthExceeded(Exception):
    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Builder:
    """Folds events into a tree without recursion."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.open: list[YamlList | YamlMap] = []
        self.keys: list[YamlScalar | None] = []  # for each open container the key that waits for its value
        self.root: YamlNode | None = None

    def build(self, events: Iterator[Any]) -> YamlNode | None:
        documents = 0
        for event in events:
            kind = type(event)  # `Any`: the stubs know neither the C marks nor which event has which field
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent:
                self.begin(event, YamlMap(event.start_mark.index, event.end_mark.index))
            elif kind is yaml.SequenceStartEvent:
                self.begin(event, YamlList(event.start_mark.index, event.end_mark.index))
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.finish(event)
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self.trouble(
                        "yaml.documents",
                        event,
                        t("a second document"),
                        t("one file is one workflow: take --- away"),
                    )
                    break
                self.directives(event)
        return self.root

    def trouble(self, code: str, event: Any, message: str, hint: str) -> None:
        at = Place(event.start_mark.index, max(event.end_mark.index, event.start_mark.index + 1))
        self.findings.error(code, at, "", message, hint)

    def directives(self, event: Any) -> None:
        if event.version or event.tags:
            self.trouble("yaml.directive", event, t("a YAML directive"), t("remove the line that starts with %"))

    def scalar(self, event: Any) -> None:
        is_broken = (event.anchor is not None or event.tag is not None) and self.properties(event)
        self.add(YamlScalar(event.start_mark.index, event.end_mark.index, event.value, not event.style, is_broken))

    def alias(self, event: Any) -> None:
        hint = t("write the value out; put a text that starts with * in quotes")
        self.trouble("yaml.alias", event, t("the alias *{name}", name=event.anchor[:40]), hint)
        self.add(YamlScalar(event.start_mark.index, event.end_mark.index, "", True, is_broken=True))

    def properties(self, event: Any) -> bool:
        if event.anchor is not None:
            hint = t("write the value out where it is used; put a text that starts with & in quotes")
            self.trouble("yaml.anchor", event, t("the anchor &{name}", name=event.anchor[:40]), hint)
        if event.tag is not None:
            hint = t("types follow from the schema: remove it; put a text that starts with ! in quotes")
            self.trouble("yaml.tag", event, t("the tag {tag}", tag=event.tag[:60]), hint)
        return event.anchor is not None or event.tag is not None

    def begin(self, event: Any, node: YamlList | YamlMap) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise _DepthExceeded(node.start)
        self.properties(event)
        if not self.is_key(node):
            self.add(node)
        self.open.append(node)
        self.keys.append(None)

    def is_key(self, node: YamlNode) -> bool:
        """Whether this container stands where a key should; it is then read, told, and dropped."""
        if not self.open or not isinstance(self.open[-1], YamlMap) or self.keys[-1] is not None:
            return False
        hint = t("keys are texts; a value that starts with [ or { needs quotes")
        self.findings.error(
            "yaml.key", Place(node.start, node.start + 1), "", t("a list or map where a key should be"), hint
        )
        self.keys[-1] = YamlScalar(node.start, node.end, f"\0{node.start}", is_plain=True, is_broken=True)
        return True

    def finish(self, event: Any) -> None:
        node = self.open.pop()
        self.keys.pop()
        node.end = max(node.start, event.end_mark.index)

    def add(self, node: YamlNode) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        if isinstance(parent, YamlList):
            parent.items.append(node)
            return
        key = self.keys[-1]
        if key is None:
            self.keys[-1] = self.checked_key(node)
            return
        self.keys[-1] = None
        if key.is_broken:
            return
        if key.text in parent.entries:
            first = self.findings.lines.position(parent.entries[key.text][0].start)
            message = t("the key {key} is already in line {line}", key=key.text[:60], line=first.line + 1)
            self.findings.error("yaml.duplicateKey", key, "", message, t("keep one of the two"))
            return
        parent.entries[key.text] = (key, node)

    def checked_key(self, node: YamlNode) -> YamlScalar:
        assert isinstance(node, YamlScalar)  # noqa: S101  # containers went through is_key
        if node.is_plain and node.text == "<<":
            self.findings.error(
                "yaml.merge", node, "", t("a merge key <<"), t("write the keys out, or use node_defaults")
            )
            node.is_broken = True
        elif node.is_plain and not node.is_broken and _NO_KEY.match(node.text):
            shown = node.text or t("(nothing)")
            self.findings.error(
                "yaml.key",
                node,
                "",
                t("the key {shown} is no text", shown=shown),
                t('put it in quotes: "{text}"', text=node.text),
            )
            node.is_broken = True
        return node
