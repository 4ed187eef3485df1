"""A failpoint on both sides of every effect, and every failpoint in the docs."""

import ast

import pytest

from tests.meta.failpoints import EXEMPT, READS, ROOT, effect_kind, effects, functions, page, points, sources


def test_every_effect_has_a_failpoint_on_both_sides() -> None:
    bare = [f"{e.path}:{e.line} {e.kind} in {e.function or 'the module'}" for e in effects() if not e.pairs]
    assert not bare, "no pair of failpoints around:\n" + "\n".join(bare)


def test_names_are_literal_paired_and_used_once() -> None:
    found = points()
    assert [p for p in found if p.name is None] == []
    names = [p.name for p in found if p.name is not None]
    odd = [name for name in names if not name.endswith((".before", ".after")) or name.count(".") != 2]
    assert odd == [], "names are module.effect.before or .after"
    stems = {name.rpartition(".")[0] for name in names}
    lonely = [s for s in stems if f"{s}.before" not in names or f"{s}.after" not in names]
    assert sorted(lonely) == []
    places: dict[str, set[str]] = {}
    for point in found:
        places.setdefault((point.name or "").rpartition(".")[0], set()).add(f"{point.path} {point.function}")
    assert {stem: where for stem, where in places.items() if len(where) > 1} == {}, "one stem, one function"


def test_answers_and_notifications_have_points() -> None:
    names = {p.name for p in points()}
    for word in ("reply", "notify"):
        assert any(f".{word}." in (name or "") for name in names), word


def test_the_page_is_fresh() -> None:
    text = (ROOT / "docs" / "failpoints.md").read_text()
    assert text == page(), "write it again: make generate"


def test_what_is_exempt_is_there() -> None:
    assert [path for path in EXEMPT if not (ROOT / path).is_file()] == []
    known = {(path, function) for path, tree in sources() for function, _ in functions(tree)}
    assert known >= READS


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("connection.commit()", "commit"), ('db.execute("COMMIT")', "commit"), ('db.execute("SELECT 1")', None),
        ("subprocess.Popen(x)", "spawn"), ("os.fork()", "spawn"),
        ("subprocess.run(x)", "spawn"), ("runner.run(x)", None),
        ("keeper.kill()", None), ("self.popen.kill()", "signal"), ("commit(x)", None),
        ("libc.syscall(SYS_CLONE3, b, 88)", "spawn"), ("os.kill(1, 9)", "signal"), ("os.killpg(1, 9)", "signal"),
        ("signal.pidfd_send_signal(f, 9)", "signal"), ("os.waitpid(1, 0)", "reap"), ('os.rename("a", "b")', "rename"),
        ('os.replace("a", "b")', "rename"), ("path.rename(other)", "rename"), ("path.replace(other)", "rename"),
        ('text.replace("a", "b")', None), ("replace(value, a=1)", None),
        ('sock.bind("x")', "bind"), ("log.bind(a=1)", None),
    ],
)  # fmt: skip
def test_what_counts_as_an_effect(code: str, kind: str | None) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert effect_kind(call) == kind
