"""Blocks of code as the docs print them: tests run those, so that what a reader copies is what was tried."""

import re

from tests.kit.workspaces import ROOT


def blocks(page: str, language: str) -> list[str]:
    """All code blocks of one language on a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def block(page: str, language: str) -> str:
    """The first one."""
    return blocks(page, language)[0]
