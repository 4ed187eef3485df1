"""Takes secrets out of text before it enters the database, a notification, a log or a reader's hands.

Known key shapes, and exact values that a caller names (the variables that a profile gave to a child). Deterministic:
the same text gives the same text, each secret becomes `[redacted:kind]`. Journals hold raw bytes and are excepted by
name (execution.md, Secrets and text).
"""

import re
from collections.abc import Iterable
from typing import Final

LONGEST_CHARS: Final = 4096
"""A secret longer than this, a private key apart, is not looked for: it bounds what a stream holds back."""

_SHAPES: Final[tuple[tuple[str, str], ...]] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]{0,3900}?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    ),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,200}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,200}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,100}"),
    ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,300}"),
    ("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,250}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,1000}"),
    ("url-password", r"(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)"),
)  # fmt: skip
_SHAPE: Final = re.compile("|".join(f"(?P<s{i}>{shape})" for i, (_, shape) in enumerate(_SHAPES)))
_KINDS: Final = {f"s{i}": kind for i, (kind, _) in enumerate(_SHAPES)}
_BEGINNINGS: Final = (
    "sk-", "sk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-", "AKIA", "ASIA", "AIza", "xox",
    "npm_", "pypi-", "rk_", "eyJ", "://", "-----BEGIN",
)  # fmt: skip
_HINT: Final = re.compile("|".join(map(re.escape, _BEGINNINGS)))
_PREFIXES: Final = tuple({word[:n] for word in _BEGINNINGS for n in range(1, len(word))})
_SHORTEST_VALUE_CHARS: Final = 6
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
_WORD_END: Final = re.compile(r"\s")


class Redactor:
    """Redacts known shapes and the given exact values; values of fewer than six characters are left, they are words."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        named = sorted({v for v in values if len(v) >= _SHORTEST_VALUE_CHARS}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, named))) if named else None
        self._longest = max(map(len, named), default=0)

    def text(self, text: str) -> str:
        """The same text without secrets."""
        if self._values is not None:
            text = self._values.sub("[redacted:variable]", text)
        if _HINT.search(text) is None:
            return text
        return _SHAPE.sub(lambda found: f"[redacted:{_KINDS[found.lastgroup or '']}]", text)

    def may_begin(self, word: str) -> bool:
        """Whether one of the exact values may begin at the end of `word`."""
        return self._longest > 0 and len(word) < self._longest + LONGEST_CHARS

    def stream(self) -> "RedactedStream":
        """For text that comes in chunks: a secret over a border is found too."""
        return RedactedStream(self)


class RedactedStream:
    """Holds back the beginning of what may become a secret, at most LONGEST_CHARS, until it is seen whole."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """What may be shown now."""
        text = self._held + text
        cut = self._cut(text)
        self._held = text[cut:]
        return self._redactor.text(text[:cut])

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return self._redactor.text(rest)

    def _cut(self, text: str) -> int:
        """Where no secret can be under way: before a last word that may become one, and not within a private key."""
        tail = text[-LONGEST_CHARS:]
        last = max((found.end() for found in _WORD_END.finditer(tail)), default=0)
        word = tail[last:]
        is_suspect = len(word) < LONGEST_CHARS and (word.endswith(_PREFIXES) or _HINT.search(word) is not None)
        cut = len(text) - (len(word) if is_suspect or self._redactor.may_begin(word) else 0)
        begun = text.rfind("-----BEGIN ")
        if begun < 0 or len(text) - begun >= LONGEST_CHARS:
            return cut
        ended = _KEY_END.search(text, begun)
        return max(cut, ended.end()) if ended else begun


PLAIN: Final = Redactor()
"""Known shapes alone."""
