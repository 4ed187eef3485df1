"""Which documents are workflow files: by folder, by language id, or by the client's own document selector.

An editor that starts us for all YAML must hear nothing about the rest. Source: spec protocol.md, Language features;
workflow.md, first paragraph.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

from graphd.server.hello import file_path
from graphd.server.place import config_folder

LANGUAGE_IDS: Final = frozenset({"graphd", "graphd-workflow", "workgraph"})
SUFFIXES: Final = (".yaml", ".yml")
_SELECTORS_LIMIT: Final = 32
_PATTERN_LIMIT: Final = 500
_STARS_LIMIT: Final = 8  # each star may make the search longer by the length of the path


class Matching:
    """Says of a document whether it is ours. `selector` is `initializationOptions.documentSelector`, where given."""

    def __init__(self, selector: object = None) -> None:
        self._user_folder = config_folder() / "workflows"
        filters = selector[:_SELECTORS_LIMIT] if isinstance(selector, list) else []
        self._filters = [_Filter(item) for item in filters if isinstance(item, dict)]

    def is_workflow(self, uri: str, language_id: str) -> bool:
        """A workflow file, saved or not."""
        if language_id in LANGUAGE_IDS or any(item.fits(uri, language_id) for item in self._filters):
            return True
        path = file_path(uri)
        if path is None or not path.endswith(SUFFIXES):
            return False
        folder = PurePosixPath(path).parent
        is_in_workspace = folder.name == "workflows" and folder.parent.name == ".agents"
        return is_in_workspace or Path(folder) == self._user_folder


class _Filter:
    """One entry of a document selector: whatever it names has to fit, and it has to name something."""

    def __init__(self, item: dict[str, Any]) -> None:
        self._language = item.get("language")
        self._scheme = item.get("scheme")
        pattern = item.get("pattern")
        self._pattern: re.Pattern[str] | None = None
        self._is_usable = self._language not in (None, "yaml")  # all YAML is what we must not answer for
        if isinstance(pattern, str):
            self._is_usable = len(pattern) <= _PATTERN_LIMIT and pattern.count("*") <= _STARS_LIMIT
            self._pattern = glob(pattern) if self._is_usable else None

    def fits(self, uri: str, language_id: str) -> bool:
        """The document is meant."""
        path = file_path(uri) or ""
        return (
            self._is_usable
            and self._language in (None, language_id)
            and self._scheme in (None, uri.partition(":")[0])
            and (self._pattern is None or self._pattern.search(path) is not None)
        )


def glob(pattern: str) -> re.Pattern[str]:
    """An LSP glob (`*`, `**`, `?`, `{a,b}`) as a regular expression; what is relative fits any folder."""
    out, index, is_open = "", 0, 0
    while index < len(pattern):
        char = pattern[index]
        index += 1
        if pattern.startswith("**/", index - 1):
            out += "(?:[^/]+/)*"
            index += 2
        elif pattern.startswith("**", index - 1):
            out += ".*"
            index += 1
        elif char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "{":
            out, is_open = out + "(?:", is_open + 1
        elif char == "}" and is_open:
            out, is_open = out + ")", is_open - 1
        elif char == "," and is_open:
            out += "|"
        else:
            out += re.escape(char)
    return re.compile(("^" if pattern.startswith("/") else "(?:^|/)") + out + ")" * is_open + "$")
