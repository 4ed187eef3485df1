"""docs/agents.md: the tables between its marks, written from the results files. `python -m tests.kit.agent_page`.

`tests/agents/bare.json` holds what the last runs over bare ACP saw (`python -m tests.kit.agent_scenarios --results`),
with the version and the day of each agent; `tests/agents/through.json` what the last full run through graphd came to.
"""

import json
from pathlib import Path
from typing import Any, Final

from tests.kit import through_results
from tests.kit.agent_cells import CELLS, cell
from tests.kit.real_agents import AGENTS, ROOT

PAGE: Final = ROOT / "docs" / "agents.md"
RESULTS: Final = ROOT / "tests" / "agents" / "bare.json"


def results(path: Path = RESULTS) -> dict[str, Any]:
    """Agent → {package, version, day, scenarios: {scenario: what was seen}}."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


def bare() -> str:
    """Agents × scenarios over bare ACP."""
    found = {name: rows for name, rows in results().items() if name in AGENTS}
    head = ["scenario", *(f"{name} {rows['version']}" for name, rows in found.items())]
    rows = [[title, *(cell(name, r["scenarios"].get(name)) for r in found.values())] for name, title in CELLS.items()]
    return _table(head, rows)


def runs() -> str:
    """Which package and version was driven when, and how long it takes to start."""
    rows = []
    for name, row in results().items():
        starts = [seen for seen in row["scenarios"].values() if seen.get("session_s")]
        first = min((seen["initialize_s"] for seen in starts), default=0.0)
        whole = min((seen["session_s"] for seen in starts), default=0.0)
        rows.append([name, f"`{row['package']}`", row["version"], row["day"], f"{first:.1f}", f"{whole:.1f}"])
    return _table(["agent", "package", "version", "day", "initialize, s", "and session/new, s"], rows)


def through() -> str:
    """Agents × scenarios through graphd, with the days of the runs. Not run is said, never taken for passed."""
    found = through_results.results()
    scenarios = {name: found.get(name, {}).get("scenarios", {}) for name in results() if name in AGENTS}
    head = ["scenario", *(f"{name} {AGENTS[name].version}" for name in scenarios)]
    rows = [
        [title, *(through_results.cell(name, key, seen.get(key)) for name, seen in scenarios.items())]
        for key, title in through_results.TITLES.items()
    ]
    days = [sorted({seen["day"] for seen in row.values()}) for row in scenarios.values()]
    rows.append(["run on", *(" to ".join(dict.fromkeys((d[0], d[-1]))) if d else "–" for d in days)])
    return _table(head, rows)


PARTS: Final = {"bare": bare, "runs": runs, "through": through}


def page(text: str) -> str:
    """The page with its tables written anew; AssertionError where a mark is missing."""
    for name, made in PARTS.items():
        begin, end = f"<!-- {name}: generated -->\n", f"<!-- {name}: end -->"
        assert text.count(begin) == text.count(end) == 1, f"docs/agents.md lacks the marks of {name}"
        before, _, rest = text.partition(begin)
        text = before + begin + made() + "\n" + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
