"""Both languages are complete: every template is in the catalogue, and nothing for people is written past it."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from graphd.base.chinese import AREAS, CATALOGUE, STORED

ROOT = Path(__file__).resolve().parents[2]
CONVERTED = ("core", "workflows", "store", "children", "daemon", "server")
"""Packages whose messages all go through `t`."""

PLACES: dict[str, tuple[int, ...]] = {
    "Refused": (1, 2), "CallRefused": (1,), "OpeningRefused": (0, 1), "FolderUnsafe": (0, 1), "FileSystemUnfit": (0, 1),
    "StoreCorrupt": (0,), "PlanTrouble": (2, 3), "Diagnostic": (4, 5), "error": (3, 4), "warning": (3, 4),
    "why": (1,), "field": (1,), "bad_field": (1,), "_bad": (1,), "_check": (2, 3), "MalformedChange": (0,),
    "ConditionMalformed": (1, 2), "ConditionUnanswerable": (0,), "ScalarMisread": (1, 2), "InputRefused": (0, 1),
    "PromptRefused": (0,), "Unknown": (0,), "SettingsRefused": (2, 3), "_misfit": (3,), "refuse_transition": (2, 3),
    "_unsayable": (2,), "stuck": (1,), "_lost": (0,), "_end_kept": (1,), "request_stop": (0,), "CaptureShort": (0,),
    "WorkflowUnreadable": (0,), "WorkflowNotFound": (1,), "_pause_infra": (1,),
}  # fmt: skip
"""Which arguments of which calls people read; keywords of these names count everywhere."""
KEYWORDS = {"message", "hint", "detail", "reason"}
ALLOWED = {
    ("graphd/store/refusals.py", "StoreCorrupt"): "SQLite's own words",
}


def sources(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages or ("",):
        for path in sorted((ROOT / "graphd" / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def calls_of_t() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in sources():
        known = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        known |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "t" and "t" in known:
                yield f"{name}:{node.lineno}", node


def fields_of(template: str) -> set[tuple[str, str, str | None]]:
    """Placeholders with their format and conversion."""
    return {(name, spec or "", kind) for _, name, spec, kind in Formatter().parse(template) if name is not None}


def template_of(call: ast.Call) -> str | None:
    first = call.args[0] if len(call.args) == 1 else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def with_values() -> set[str]:
    return {template for _, call in calls_of_t() if call.keywords and (template := template_of(call))}


def test_templates_are_literals_and_get_exactly_their_values() -> None:
    wrong = []
    for where, call in calls_of_t():
        template = template_of(call)
        if template is None:
            wrong.append(f"{where}: not one literal")
        elif call.keywords and not any(keyword.arg is None for keyword in call.keywords):
            given = {keyword.arg for keyword in call.keywords}
            if given != {name for name, _, _ in fields_of(template)}:
                wrong.append(f"{where}: {template!r} gets {given}")
    assert wrong == []


def test_a_template_always_comes_with_values_or_never() -> None:
    bare = {template for _, call in calls_of_t() if not call.keywords and (template := template_of(call))}
    assert bare & with_values() == set(), "without values the braces would stay"


def test_the_catalogue_has_exactly_the_templates_of_the_code() -> None:
    used = {template for _, call in calls_of_t() if (template := template_of(call))}
    assert used - CATALOGUE.keys() == set(), "say these in Chinese (graphd/base/chinese)"
    assert CATALOGUE.keys() - used == set(), "nobody says these any more"


def test_no_template_is_translated_twice() -> None:
    assert [name for name, count in Counter(key for area in AREAS for key in area).items() if count > 1] == []


def test_both_languages_have_the_same_placeholders() -> None:
    wanted = with_values()
    wrong = [en for en, zh in CATALOGUE.items() if en in wanted and fields_of(en) != fields_of(zh)]
    wrong += [en for en, zh in CATALOGUE.items() if not zh.strip()]
    assert wrong == []


def test_commands_and_names_are_left_as_they_are() -> None:
    """What a person types, and what stands in a file, is the same in both languages."""
    kept = ("graphd ", "workgraph/", "GRAPHD_", "--", ".agents/", "slug.output", "required: true", "delivery_node")
    wrong = [
        en for en, zh in CATALOGUE.items() for word in kept if en.count(word) > zh.count(word) and word != "graphd "
    ]
    verbs = ("status", "watch", "why", "retry", "run", "resume", "clear", "agents", "finish", "logs", "doctor", "stop")
    for en, zh in CATALOGUE.items():
        wrong += [en for verb in verbs if f"graphd {verb}" in en and f"graphd {verb}" not in zh]
    assert wrong == []


def test_what_the_log_keeps_can_be_matched_back() -> None:
    """Two placeholders that touch could not be told apart, and one alone would match anything."""
    for template in STORED:
        pieces = [literal for literal, _, _, _ in Formatter().parse(template)]
        assert any(piece.strip() for piece in pieces), template
        assert all(pieces[1:]), template


# ---- nothing for people is written past the catalogue -------------------------------------------------------------


def parts(node: ast.expr) -> list[ast.expr]:
    """The alternatives of an expression."""
    if isinstance(node, ast.IfExp):
        return parts(node.body) + parts(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [part for value in node.values for part in parts(value)]
    if isinstance(node, ast.BinOp):
        return parts(node.left) + parts(node.right)
    return [node]


def assigned(function: ast.AST) -> dict[str, list[ast.expr]]:
    """What each local name is given."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            pairs = [(target, node.value)] if isinstance(node, ast.Assign) else []
            if isinstance(target, ast.Tuple) and isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).append(value)
    return found


def is_bare(node: ast.expr) -> bool:
    """A string that was not made by `t`; the empty one says nothing."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""
    )


def test_messages_for_people_are_made_by_t() -> None:
    wrong = []
    for name, tree in sources(*CONVERTED):
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            local = assigned(function)
            for node in ast.walk(function):
                if not isinstance(node, ast.Call) or called(node) not in PLACES or (name, called(node)) in ALLOWED:
                    continue
                read = [node.args[i] for i in PLACES[called(node)] if i < len(node.args)]
                read += [keyword.value for keyword in node.keywords if keyword.arg in KEYWORDS]
                for argument in [part for given in read for part in parts(given)]:
                    values = local.get(argument.id, []) if isinstance(argument, ast.Name) else [argument]
                    bare = [part for value in values for part in parts(value) if is_bare(part)]
                    wrong += [f"{name}:{part.lineno} {called(node)}: {ast.unparse(part)}" for part in bare]
    assert sorted(set(wrong)) == []
