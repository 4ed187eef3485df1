"""Who may do what without a person: the table of execution.md, People, and the order of the rules before it."""

from typing import Any

import pytest

from graphd.core.policy import TOOL_KINDS, Leave, glob_of, is_inside, matches, only_reads, permit, rule_reason

ROOT = "/w"
INSIDE, OUTSIDE = {"paths": ["/w/src/a.py"]}, {"paths": ["/etc/passwd"]}


def word(kind: str | None, permissions: Any, **action: Any) -> str:
    return permit({"toolKind": kind, **action}, Leave(permissions, ROOT)).verdict


@pytest.mark.parametrize(
    ("kind", "read", "edit", "full"),
    [
        ("read", "allow", "allow", "allow"),
        ("search", "allow", "allow", "allow"),
        ("think", "allow", "allow", "allow"),
        ("fetch", "ask", "ask", "allow"),
        ("other", "deny", "ask", "ask"),
        ("switch_mode", "deny", "ask", "ask"),
        (None, "deny", "ask", "ask"),
    ],
)
def test_the_table(kind: str | None, read: str, edit: str, full: str) -> None:
    assert [word(kind, permissions) for permissions in ("read", "edit", "full")] == [read, edit, full]


@pytest.mark.parametrize("kind", ["edit", "move", "delete"])
def test_changes_are_allowed_inside_the_root_alone(kind: str) -> None:
    assert [word(kind, p, **INSIDE) for p in ("read", "edit", "full")] == ["deny", "allow", "allow"]
    assert [word(kind, p, **OUTSIDE) for p in ("read", "edit", "full")] == ["deny", "ask", "ask"]
    assert [word(kind, p, paths=["/w/a", "/w/../etc/b"]) for p in ("edit", "full")] == ["ask", "ask"]
    assert [word(kind, p) for p in ("read", "edit", "full")] == ["deny", "ask", "ask"], "no path is no proof"


def test_writes_bound_what_edit_may_change_and_not_full() -> None:
    leave = Leave("edit", ROOT, writes=("src/**", "*.md"))
    for path, expected in (("/w/src/x/y.py", "allow"), ("/w/a.md", "allow"), ("/w/docs/a.md", "ask"), ("/w/b", "ask")):
        assert permit({"toolKind": "edit", "paths": [path]}, leave).verdict == expected
    assert permit({"toolKind": "edit", "paths": ["/w/b"]}, leave._replace(permissions="full")).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la src",
        "git status",
        "git log -SFOO",
        "sort -u f",
        "tree -a src",
        "file -b f",
        "git grep -n x",
        "git log --oneline -5",
        "cat 'a b'",
        "grep -i x f",
        "sort f",
        "rg foo src",
    ],
)
def test_commands_that_only_read(command: str) -> None:
    assert only_reads(command)
    assert word("execute", "read", command=command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "", "rm -rf x", "ls; rm x", "ls | tee f", "cat a > b", "cat a >> b", "ls && rm x", "ls & rm x", "echo `rm x`",
        "echo $(rm x)", "ls\nrm x", "sort -o f f", "sort -of f", "sort --output=f f", "git push", "git",
        "git -c x=y log",
        "git branch new", "git diff --output=f", "git grep -Oless x", "rg --pre sh x", "tree -o f", "cat 'unclosed",
        "find . -delete", "sed -i s/a/b/ f", "env rm x", "xargs rm", "./ls", "/bin/ls", "A=1 rm x", "file -C -m x",
        "sort -uo f f", "sort -ro/etc/x f", "sort --compress-program=sh f", "tree -ao f", "tree -R -L 1",
        "file -bC -m x", "git grep -nOless x", "git grep --op=sh x",
    ],
)  # fmt: skip
def test_commands_that_do_more_or_could(command: str) -> None:
    assert not only_reads(command)
    assert [word("execute", p, command=command) for p in ("read", "edit", "full")] == ["deny", "ask", "allow"]


def test_globs_go_before_scopes_and_scopes_before_the_table() -> None:
    action = {"toolKind": "edit", "paths": ["/w/src/a.py"]}
    scope = ("edit", "/w/src/**", "deny", "ask-1")
    leave = Leave("edit", ROOT)
    assert permit(action, leave) == ("allow", "edit/edit")
    assert permit(action, leave, scopes=[scope]) == ("deny", "ask-1")
    leave = leave._replace(allow=("edit:src/**",))
    assert permit(action, leave, scopes=[scope]) == ("allow", "allow edit:src/**")
    leave = leave._replace(ask=("*:src/**",))
    assert permit(action, leave) == ("ask", "ask *:src/**")
    leave = leave._replace(deny=("edit",))
    assert permit(action, leave) == ("deny", "deny edit")


def test_a_rule_covers_all_of_an_action_or_nothing() -> None:
    leave = Leave("edit", ROOT, allow=("edit:/etc/**", "execute:make *"))
    assert permit({"toolKind": "edit", "paths": ["/etc/a", "/usr/b"]}, leave).verdict == "ask"
    assert permit({"toolKind": "edit", "paths": ["/etc/a"]}, leave).verdict == "allow"
    assert permit({"toolKind": "edit"}, leave._replace(allow=("edit:**",))).verdict == "ask"
    assert permit({"toolKind": "execute", "command": "make all"}, leave).verdict == "allow"
    assert permit({"toolKind": "execute", "command": "make"}, leave).verdict == "allow"
    assert permit({"toolKind": "execute", "command": "make all; rm x"}, leave).verdict == "ask"
    assert permit({"toolKind": "execute", "command": "makefoo"}, leave).verdict == "ask"
    assert permit({"toolKind": "fetch"}, leave._replace(allow=("fetch",))).verdict == "allow"
    other_kind = [("move", "/w/**", "deny", "ask-1")]
    assert permit({"toolKind": "edit", "paths": ["/w/a"]}, leave, scopes=other_kind).verdict == "allow"


def test_what_denies_or_asks_is_about_any_part_of_an_action() -> None:
    for word, leave in (("deny", Leave("full", ROOT, deny=RULES)), ("ask", Leave("full", ROOT, ask=RULES))):
        for action in (
            {"toolKind": "edit", "paths": ["/w/a", "/w/secret/key"]},
            {"toolKind": "move", "paths": ["/etc/x", "/w/a"]},
            {"toolKind": "execute", "command": "rm x"},
            {"toolKind": "execute", "command": "rm"},
            {"toolKind": "execute", "command": "true; rm -rf x"},
            {"toolKind": "execute", "command": "(cd a && rm x) | tee f"},
            {"toolKind": "execute", "command": "echo $(rm x)"},
            {"toolKind": "fetch"},
        ):
            assert permit(action, leave).verdict == word, action
        for action in (
            {"toolKind": "edit", "paths": ["/w/a"]},
            {"toolKind": "edit"},
            {"toolKind": "execute", "command": "farm x"},
            {"toolKind": "execute"},
        ):
            assert permit(action, leave).rule.startswith("full/"), action


RULES = ("*:secret/**", "move:/etc/**", "execute:rm *", "fetch")


@pytest.mark.parametrize("rule", [*TOOL_KINDS, "*", "*:a", "edit:~/x", "execute:a ../b *", "read:/a b/**", "other:x"])
def test_what_is_a_rule(rule: str) -> None:
    assert rule_reason(rule) is None


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("", "no tool kind"), ("edti:a", "'edti' is no tool kind"), ("/etc/**", "no tool kind"),
        ("edit:", "behind the colon"), ("edit: ", "behind the colon"), ("fetch:https://x", "write fetch alone"),
        ("edit:../x", "no .. in it"), ("edit:a\nb", "a line of"), ("edit:" + "x" * 500, "500 characters"),
    ],
)  # fmt: skip
def test_what_is_no_rule_says_why(rule: str, why: str) -> None:
    assert why in str(rule_reason(rule))


def test_what_denies_or_asks_is_not_got_past_by_something_else_beside_it() -> None:
    leave = Leave("full", ROOT, deny=("edit:secrets/**", "execute:rm *"), ask=("execute:git push*",))
    assert permit({"toolKind": "edit", "paths": ["/w/a", "/w/secrets/b"]}, leave).verdict == "deny"
    for command in ("rm *", "rm -rf $HOME", "ls; rm x", "ls && rm x", "echo $(rm x)", "rm"):
        assert permit({"toolKind": "execute", "command": command}, leave).verdict == "deny", command
    assert permit({"toolKind": "execute", "command": "make && git push"}, leave).verdict == "ask"
    assert permit({"toolKind": "execute", "command": "make; echo form x"}, leave).verdict == "allow"
    denied = [("edit", "/w/secrets/**", "deny", "ask-1")]
    scoped = permit({"toolKind": "edit", "paths": ["/w/secrets/a", "/w/b"]}, Leave("edit", ROOT), scopes=denied)
    assert scoped == ("deny", "ask-1")


def test_what_a_standing_answer_would_cover() -> None:
    assert glob_of({"toolKind": "edit", "paths": ["/w/src/a.py"]}) == "/w/src/**"
    assert glob_of({"toolKind": "execute", "command": "make all"}) == "make *"
    assert glob_of({"toolKind": "execute", "command": "$(x) all"}) is None
    assert glob_of({"toolKind": "execute"}) is None
    assert glob_of({"toolKind": "edit", "paths": ["/a", "/b"]}) is None
    assert glob_of({"toolKind": "fetch"}) is None


def test_globs_and_folders() -> None:
    assert matches("/w/a/b/c.py", "/w/**/c.py")
    assert matches("/w/c.py", "/w/**/c.py")
    assert matches("/w/a.py", "/w/?.py")
    assert not matches("/w/a/b.py", "/w/*.py")
    assert matches("/w/x/y", "/w/**")
    assert not matches("/wx", "/w/**")
    assert is_inside("/w", "/w")
    assert is_inside("/w/a", "/w")
    assert not is_inside("/wa", "/w")
    assert is_inside("/a", "/")
