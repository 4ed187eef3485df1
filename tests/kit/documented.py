"""Blocks of code as the docs print them: tests run those, so that what a reader copies is what was tried."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """All blocks of one language on a page of docs/, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def block(page: str, language: str) -> str:
    """The only one."""
    (found,) = blocks(page, language)
    return found
