"""Ids of the model: FNV-1a node ids and slugs. Standard library alone. Source: spec model.md, Ids."""

import re
from typing import Final

FNV_OFFSET: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193
FINAL_ID: Final = "gn-final"

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
NODE_ID = re.compile(r"gn-(?:[0-9a-f]{8}|final)\Z")
CONDITION_WORDS: Final = frozenset({"and", "or", "not", "in", "true", "false", "null"})


def node_id(slug: str) -> str:
    """The id of a slug: `gn-` and FNV-1a-32 over its UTF-8 bytes as 8 lowercase hex; `gn-final` is itself."""
    if slug == FINAL_ID:
        return FINAL_ID
    value = FNV_OFFSET
    for byte in slug.encode():
        value = ((value ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return f"gn-{value:08x}"


def slug_trouble(slug: str) -> str | None:
    """Why this text is no slug, or None where it is one."""
    if slug == FINAL_ID:
        return "gn-final is reserved for the final check"
    if slug.startswith("gn-"):
        return "a slug never starts with gn-, which marks ids"
    if not SLUG.match(slug):
        return "a slug is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter or digit"
    if slug in CONDITION_WORDS:
        return f"{slug} is a word of the condition language"
    return None
