"""Find every failpoint, and every effect that needs a pair; `python -m tests.meta.failpoints` prints the page."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "graphd"

# Files whose effects have no points, and why.
EXEMPT = {
    "graphd/base/failpoints.py": "they are the failpoints",
    "graphd/children/keeping/points.py": "they are the failpoints",
    "graphd/client/launch.py": "it runs without our packages on its path; its caller's points stand around all of it",
    "graphd/client/starting.py": "the byte pipe imports the standard library alone; the daemon has its own",
    "graphd/cli/chaos.py": "it is what kills, a test for people; nothing is recovered from it",
}
# Functions whose COMMIT ends a read: nothing is written, so a crash there has nothing to tear.
READS = {("graphd/store/log.py", "_read_log"), ("graphd/store/rebuild.py", "differences")}
POINT_CALLS = {"failpoint", "point"}
SPAWNS = {
    "Popen", "posix_spawn", "posix_spawnp", "fork", "forkpty", "create_subprocess_exec", "create_subprocess_shell",
    "check_call", "check_output", "start_new_process",
}  # fmt: skip
SIGNALS = {"kill", "killpg", "pidfd_send_signal", "send_signal", "terminate"}
REAPS = {"waitpid", "waitid", "wait3", "wait4"}
COMMIT = re.compile(r"\s*COMMIT\b", re.IGNORECASE)


@dataclass(frozen=True)
class Effect:
    """A call that a crash on either side of must not break."""

    kind: str
    path: str
    function: str
    line: int
    last_line: int
    pairs: tuple[str, ...]  # names of points before and after it, within its function


@dataclass(frozen=True)
class Point:
    """One `failpoint("name")`; `name` is None where the argument is no literal."""

    name: str | None
    path: str
    function: str
    line: int


def effect_kind(call: ast.Call) -> str | None:
    """commit, spawn, signal, reap, rename, bind, or None."""
    name = _called(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_os = isinstance(owner, ast.Name) and owner.id == "os"
    if (name == "commit" and owner is not None and not call.args) or (
        name in ("execute", "executescript") and _says_commit(call)
    ):
        return "commit"
    if name in SPAWNS or (name == "run" and isinstance(owner, ast.Name) and owner.id == "subprocess"):
        return "spawn"
    if name == "syscall" and any(isinstance(a, ast.Name) and "CLONE" in a.id for a in call.args):
        return "spawn"
    if name in SIGNALS and owner is not None:
        is_ours = call.args or re.search("popen|process", ast.unparse(owner), re.IGNORECASE)
        return "signal" if is_ours else None  # `keeper.kill()` is a function of ours, looked at where it is
    if name in REAPS:
        return "reap"
    if name in ("rename", "renames", "replace") and owner is not None:
        return "rename" if is_os or (len(call.args) == 1 and not call.keywords) else None
    if name == "bind" and owner is not None and len(call.args) == 1:
        return "bind"
    return None


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _says_commit(call: ast.Call) -> bool:
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return any(COMMIT.match(text) for text in texts)


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package, parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def functions(tree: ast.Module) -> Iterator[tuple[str, list[ast.Call]]]:
    """Each function (and the module itself) with the calls of its own body, those of inner functions left out."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        name, scope = todo.pop()
        calls: list[ast.Call] = []
        inside = list(ast.iter_child_nodes(scope))
        while inside:
            node = inside.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                todo.append((f"{name}.{node.name}".lstrip("."), node))
                continue
            if isinstance(node, ast.Call):
                calls.append(node)
            inside.extend(ast.iter_child_nodes(node))
        yield name, sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def points() -> list[Point]:
    """Every failpoint of the package, in the order of the files."""
    found = []
    for path, tree in sources():
        for function, calls in functions(tree):
            if path in EXEMPT:
                continue
            for call in calls:
                if _called(call) in POINT_CALLS:
                    literal = call.args[0] if len(call.args) == 1 else None
                    name = literal.value if isinstance(literal, ast.Constant) else None
                    found.append(Point(name if isinstance(name, str) else None, path, function, call.lineno))
    return found


def effects() -> list[Effect]:
    """Every effect of the package, with the pairs of points that stand on both sides of it."""
    found = []
    for path, tree in sources():
        if path in EXEMPT:
            continue
        for function, calls in functions(tree):
            lines = {
                call.args[0].value: call.lineno
                for call in calls
                if _called(call) in POINT_CALLS and call.args and isinstance(call.args[0], ast.Constant)
            }
            for call in calls:
                kind = effect_kind(call)
                if kind is None or (path, function) in READS:
                    continue
                last = call.end_lineno or call.lineno
                pairs = tuple(
                    stem
                    for name, line in lines.items()
                    if (stem := str(name).removesuffix(".before")) != name
                    and line < call.lineno
                    and lines.get(f"{stem}.after", 0) > last
                )
                found.append(Effect(kind, path, function, call.lineno, last, pairs))
    return found


def page() -> str:
    """docs/failpoints.md."""
    kinds: dict[str, set[str]] = {}
    for effect in effects():
        for stem in effect.pairs:
            kinds.setdefault(stem, set()).add(effect.kind)
    rows = []
    for point in points():
        stem = (point.name or "").rpartition(".")[0]
        module = point.path.removesuffix(".py").replace("/", ".")
        around = ", ".join(sorted(kinds.get(stem, ()))) or stem.rpartition(".")[2]
        rows.append(f"| `{point.name}` | {around} | `{module}` | `{point.function}` |")
    return "\n".join(
        [
            "# Failpoints",
            "",
            "Written by `make generate`, checked by `tests/meta`. A failpoint is a named place where a test",
            "can kill, freeze or fail the program: one stands on both sides of every commit, spawn, signal, reap,",
            "rename and bind, and around replies and notifications. `GRAPHD_FAILPOINT=name[:hit[:action]]` arms one;",
            "see `graphd/base/failpoints.py`.",
            "",
            "| point | around | module | function |",
            "| --- | --- | --- | --- |",
            *sorted(set(rows)),
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
