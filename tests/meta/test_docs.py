"""What the docs list is what the code has."""

import ast
import re
import tomllib
from pathlib import Path

import click
import pytest

from graphd.cli.main import COMMANDS, LazyGroup
from graphd.core.evolve import EVOLVERS
from graphd_protocol.errors import ERROR_CODES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def table(path: Path, *, head: str) -> list[list[str]]:
    """The rows of the first table whose first column is called `head`."""
    rows: list[list[str]] = []
    is_in = False
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] == head:
            is_in = True
        elif is_in and not line.startswith("|"):
            break
        elif is_in and not set(cells[0]) <= {"-", ":"}:
            rows.append(cells)
    return rows


def names(path: Path, *, head: str) -> list[str]:
    return [row[0].strip("`") for row in table(path, head=head)]


def emitted() -> dict[str, str]:
    """Every literal kind that the core emits, and where."""
    found = {}
    for path in sorted((ROOT / "graphd" / "core").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = {"emit": 0, "_emit": 1}.get(name)
            if place is not None and len(node.args) > place:
                kind = node.args[place]
                if isinstance(kind, ast.Constant):
                    found[str(kind.value)] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return found


def test_every_event_is_known_documented_and_emitted() -> None:
    listed = names(DOCS / "events.md", head="kind")
    assert sorted(listed) == sorted(EVOLVERS)
    assert {kind: where for kind, where in emitted().items() if kind not in EVOLVERS} == {}
    assert set(EVOLVERS) == set(emitted())


def test_payload_keys_of_emitted_events_are_documented() -> None:
    rows = {row[0].strip("`"): row[2] for row in table(DOCS / "events.md", head="kind")}
    missing = []
    for path in sorted((ROOT / "graphd" / "core").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "emit" and node.args:
                kind = node.args[0]
                if isinstance(kind, ast.Constant) and str(kind.value) in rows:
                    keys = {keyword.arg for keyword in node.keywords if keyword.arg and keyword.arg != "node"}
                    missing += [f"{kind.value!s}.{key}" for key in sorted(keys) if key not in rows[str(kind.value)]]
    assert missing == []


def test_the_package_list_is_the_tree() -> None:
    text = (DOCS / "architecture.md").read_text()
    marked = re.search(r"<!-- packages -->(.*?)<!-- /packages -->", text, re.DOTALL)
    assert marked is not None
    listed = re.findall(r"^\| `(\w+)` \|", marked.group(1), re.MULTILINE)
    tree = {p.parent.name for p in (ROOT / "graphd").glob("*/__init__.py")} | {"graphd_protocol"}
    assert len(listed) == len(set(listed))
    assert set(listed) == tree


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[<>=\[ ]", line)[0] for line in project["dependencies"]}
    rows = table(DOCS / "dependencies.md", head="package")
    assert {row[0].strip("`") for row in rows} == wanted
    assert all(len(row[1]) > 20 for row in rows)
    text = (DOCS / "dependencies.md").read_text()
    tools = {re.split(r"[<>=\[ ]", line)[0] for line in project["optional-dependencies"]["dev"]}
    assert {tool for tool in tools if tool not in text} == set()


def test_the_index_of_decisions_is_complete() -> None:
    files = sorted(p.name for p in (DOCS / "adr").glob("[0-9]*.md"))
    index = (DOCS / "adr" / "README.md").read_text()
    assert re.findall(r"\(([0-9]{4}-[a-z0-9-]+\.md)\)", index) == files
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    for name in files:
        lines = (DOCS / "adr" / name).read_text().splitlines()
        assert len(lines) <= 60, f"{name} is more than a page"
        assert lines[0].startswith("# ")


def test_the_changelog_has_an_unreleased_section() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    body = re.search(r"^## \[?Unreleased\]?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    heads = re.findall(r"^### (\w+)", body.group(1), re.MULTILINE)
    order = ["Security", "Removed", "Deprecated", "Added", "Changed", "Fixed"]
    assert heads == [head for head in order if head in heads]
    assert heads


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def code_of(page: Path) -> list[str]:
    """Lines of code blocks, and inline code."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", rest)


def test_make_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "check", "test-all", "bench", "crash"} <= targets
    named = {m for page in pages() for code in code_of(page) for m in re.findall(r"^(?:\$ )?make ([a-z][a-z-]*)", code)}
    assert named - targets - {"lint"} == set(), "`make lint` is a reader's own, in examples of workflows"
    assert {"demo", "test"} <= named


def test_commands_that_pages_name_exist() -> None:
    lines = [(page, code) for page in pages() for code in code_of(page)]
    known = {*COMMANDS, "stdio"}
    odd = [
        f"{page.relative_to(ROOT)}: {code}"
        for page, code in lines
        for word in re.findall(r"(?:^|\s)graphd ([a-z][a-z-]*)", code)
        if word not in known
    ]
    assert odd == []


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    gone = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert gone == []


@pytest.mark.parametrize("name", [*COMMANDS, "stdio"])
def test_every_option_says_what_it_does(name: str) -> None:
    group = LazyGroup()
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.help
    if name in COMMANDS:
        assert command.get_short_help_str(200).rstrip(".")
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help and not p.hidden]
    assert silent == []


def test_refusals_use_codes_of_the_protocol() -> None:
    unknown = []
    for path in sorted((ROOT / "graphd").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in ("Refused", "RemoteRefused") and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant) and code.value not in ERROR_CODES:
                    unknown.append(f"{path.relative_to(ROOT)}:{node.lineno} {code.value!s}")
    assert unknown == []
