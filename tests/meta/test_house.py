"""The house rules that a machine can hold: imports, sizes, docstrings, names, paths (spec architecture.md)."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE_LIMIT_LINES = 500
FUNCTION_LIMIT_LINES = 60
FORBIDDEN_WORDS = {"manager", "managers", "helper", "helpers", "util", "utils", "misc", "info", "data"}
FORBIDDEN_PREFIX = re.compile(r"_?(Abstract|Base[A-Z]|I[A-Z][a-z])")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".jsonl", ".sh", ".txt", ".cfg", ""}
Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    for top in ("graphd", "protocol"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path, ast.parse(path.read_text())


def tracked() -> list[Path]:
    """Files that are, or are about to be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix in TEXT]


def test_import_contracts_hold() -> None:
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_modules_stay_small() -> None:
    """The tests too: one file is one subject."""
    code = [path for path in tracked() if path.suffix == ".py"]
    sizes = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in code}
    assert {"graphd/__main__.py", "tests/meta/test_house.py"} <= {*sizes}
    assert {name: size for name, size in sizes.items() if size > MODULE_LIMIT_LINES} == {}


def test_functions_stay_small() -> None:
    big = [
        f"{name}:{node.lineno} {node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for name, _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LIMIT_LINES
    ]
    assert big == []


def _public(tree: ast.Module) -> Iterator[tuple[str, Def]]:
    todo: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
    while todo:
        prefix, scope = todo.pop()
        for node in scope.body:
            if isinstance(node, Def) and not node.name.startswith("_"):
                yield f"{prefix}{node.name}", node
                if isinstance(node, ast.ClassDef):
                    todo.append((f"{prefix}{node.name}.", node))


def test_everything_public_has_a_docstring() -> None:
    bare = [name for name, path, tree in modules() if not ast.get_docstring(tree) and path.read_text().strip()]
    bare += [
        f"{name}: {title}"
        for name, _, tree in modules()
        for title, node in _public(tree)
        if not ast.get_docstring(node)
    ]
    assert bare == []


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_names_say_what_things_are() -> None:
    bad = [name for name, path, _ in modules() if _words(path.stem) & FORBIDDEN_WORDS]
    for name, _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, Def) and (_words(node.name) & FORBIDDEN_WORDS):
                bad.append(f"{name}:{node.lineno} {node.name}")
            if isinstance(node, ast.ClassDef) and FORBIDDEN_PREFIX.match(node.name) and node.name != "BaseModel":
                bad.append(f"{name}:{node.lineno} {node.name}")
    assert bad == []


def test_errors_are_not_called_error() -> None:
    bad = [
        f"{name}:{node.lineno} {node.name}"
        for name, _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Exception"))
    ]
    assert bad == [], "an error is a noun that ends in the trouble"


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:90]}"
        for path in tracked()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_a_machine() -> None:
    assert _lines_with(re.compile(r"/(?:work|root)/|/home/[a-z]+/")) == []


def test_nothing_is_left_for_later_in_a_comment() -> None:
    found = _lines_with(re.compile(r"(?:#|<!--|//)\s*(?:TO" + "DO|FIX" + r"ME|XX" + r"X)\b"))
    assert [line for line in found if not line.startswith("tests/unit/test_workflow")] == [], (
        "those tests are about them"
    )


def test_every_lint_exception_in_the_package_carries_its_reason() -> None:
    """On its own line after the code, or in the comment above."""
    bare = re.compile(r"#\s*noqa(?::\s*[A-Z0-9, ]+)?\s*$|#\s*type: ignore\[[^\]]*\]\s*$")
    found = []
    for name, path, _ in modules():
        lines = ["", *path.read_text().splitlines()]
        found += [
            f"{name}:{number}: {line.strip()}"
            for number, line in enumerate(lines)
            if bare.search(line) and not lines[number - 1].lstrip().startswith("#")
        ]
    assert found == []
