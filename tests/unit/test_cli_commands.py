"""The command line against a session that answers from a table: what is sent, what is printed, how it ends."""

import json
import os
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from graphd.cli import following, talk
from graphd.cli.asking import Asking
from graphd.cli.exits import CommandRefused
from graphd.cli.main import COMMANDS, cli, run_command
from graphd.client.paths import make_state_folder

Wire = dict[str, Any]
GRAPH = "0198c1d2-3f4a-7000-8000-000000000001"


class TableSession:
    """Answers each method from a table; a refusal in it is raised. `calls` is what was asked."""

    def __init__(self, folder: Path) -> None:
        self.hello: Wire = {"workspace": str(folder)}
        self.answers: dict[str, Any] = {}
        self.calls: list[tuple[str, Wire]] = []
        self.notices: list[tuple[str, Wire]] = []

    async def call(self, method: str, params: Wire | None = None, *, timeout_s: float | None = None) -> Any:
        self.calls.append((method, params or {}))
        answer = self.answers[method]
        if method == "workgraph/set" and isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ends(self, *, within_s: float) -> bool:
        return False

    async def notifications(self) -> AsyncIterator[tuple[str, Wire]]:
        for notification in self.notices:
            yield notification

    async def close(self) -> None:
        self.calls.append(("close", {}))

    def sent(self, method: str) -> Wire:
        return next(params for name, params in self.calls if name == method)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableSession:
    table = TableSession(tmp_path)
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    async def opened(workspace: Path | None, *, start: bool = True, keeps_place: bool = False) -> TableSession:
        return table

    # All are imported before the first is changed: one that is imported later would keep the changed one for good.
    names = ("talk", "look", "run", "following", "printed", "attaching", "taking_over")
    for module in [import_module(f"graphd.cli.{name}") for name in names]:
        monkeypatch.setattr(module, "open_session", opened)
    return table


def remote(code: str, message: str, hint: str = "", **data: Any) -> Exception:
    from graphd.client.session import RemoteRefused

    return RemoteRefused({"code": -32000, "message": message, "data": {"code": code, "hint": hint, **data}})


# ---- the frame -----------------------------------------------------------------------------------------------------


def test_every_command_of_the_overview_can_be_loaded_and_explains_itself() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)

        assert command is not None
        assert command.name == name
        assert "Examples:" in (command.help or ""), name
        ends = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        for end in ends if name != "workspace" else []:  # those name their folders themselves
            assert "Examples:" in (end.help or ""), end.name
            assert any("--workspace" in p.opts for p in end.params), end.name


def test_every_command_that_reads_has_json_and_names_its_type() -> None:
    context = click.Context(cli)
    reading = ["run", "validate", "explain", "workflows", *(n for n, e in COMMANDS.items() if e.section == "Look")]
    for name in [*reading, "agents", "doctor"]:
        command = cli.get_command(context, name)

        option = next(p for p in command.params if "--json" in p.opts) if command else None
        assert isinstance(option, click.Option), name
        assert "as JSON" in (option.help or "")


def test_an_unknown_command_is_usage_and_the_nearest_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["statsu"]) == 2
    assert "did you mean status" in capsys.readouterr().err


def test_usage_trouble_is_an_object_under_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["status", "--json", "--nonsense"]) == 2

    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "usage"
    assert err == ""


@pytest.mark.parametrize("option", ["--goal=x", "--agent"])
def test_what_this_version_lacks_is_refused_by_name(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", option, "x"]) == 2
    assert "not in this version" in capsys.readouterr().err


CODES = [
    ("notFound", 1), ("conflict", 1), ("invalidTransition", 1), ("invalidPlan", 2), ("inputMissing", 2),
    ("untrusted", 2), ("ambiguous", 2), ("notSupported", 2), ("invalidParams", 2), ("agentMissing", 5), ("stuck", 5),
    ("storeUnavailable", 5), ("malformedLog", 5), ("locked", 5),
]  # fmt: skip


@pytest.mark.parametrize(("code", "number"), CODES)
def test_refusals_have_the_codes_of_the_specification(
    session: TableSession, code: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    session.answers["workgraph/pause"] = remote(code, "no\x1b[31m", "do this")

    assert run_command(["pause", "x"]) == number

    out, err = capsys.readouterr()
    assert (out, err) == ("", "graphd: no\n  do this\n")


def test_a_refusal_under_json_is_an_object_on_stdout(session: TableSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.answers["workgraph/pause"] = remote("conflict", "no", "again", rev=4)

    assert run_command(["pause", "x", "--json"]) == 1

    wanted = {"error": {"code": "conflict", "message": "no", "hint": "again", "data": {"rev": 4}}}
    assert json.loads(capsys.readouterr().out) == wanted


# ---- naming a graph ------------------------------------------------------------------------------------------------


def header(number: int, status: str = "active") -> Wire:
    return {"id": GRAPH[:-1] + str(number), "title": f"t{number}", "status": status, "createdAt": 0}


def test_the_only_live_graph_needs_no_name(session: TableSession) -> None:
    session.answers |= {
        "workgraph/list": {"graphs": [header(1)]},
        "workgraph/pause": {"graph": GRAPH, "rev": 3, "stopping": ["a"]},
    }

    assert run_command(["pause", "--stop"]) == 0
    assert session.sent("workgraph/pause")["graph"] == GRAPH
    assert session.sent("workgraph/pause")["mode"] == "stop"
    assert session.sent("workgraph/pause")["requestId"]


def test_of_several_one_has_to_be_named(session: TableSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.answers["workgraph/list"] = {"graphs": [header(1), header(2)]}

    assert run_command(["cancel"]) == 2

    err = capsys.readouterr().err
    assert "2 graphs are live" in err
    assert "t1" in err
    assert "t2" in err


def test_where_there_is_none_it_says_how_to_begin(session: TableSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.answers["workgraph/list"] = {"graphs": []}

    assert run_command(["watch"]) == 1
    assert "graphd run checkup" in capsys.readouterr().err


def test_a_person_at_a_terminal_chooses(session: TableSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session.answers |= {
        "workgraph/list": {"graphs": [header(1), header(2)]},
        "workgraph/clear": {"graph": "g", "rev": 1},
    }
    monkeypatch.setattr(talk, "is_at_terminal", lambda: True)
    monkeypatch.setattr(click, "prompt", lambda *_, **__: 2)

    assert run_command(["clear"]) == 0
    assert session.sent("workgraph/clear")["graph"] == header(2)["id"]


# ---- verbs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "method", "params"),
    [
        (["retry", "tests", "-g", "x"], "retry", {"graph": "x", "node": "tests"}),
        (["retry", "--all", "x"], "retry", {"graph": "x", "all": True}),
        (["release", "tests", "--pids", "1,2 3", "-g", "x"], "release", {"node": "tests", "pids": [1, 2, 3]}),
        (["finish", "x", "--reason", "enough"], "finish", {"graph": "x", "reason": "enough"}),
        (["cancel", "x", "--wait"], "cancel", {"graph": "x", "settle": True}),
        (["resume", "x", "--dry-run"], "resume", {"graph": "x", "dryRun": True}),
    ],
)
def test_verbs_send_what_was_typed(session: TableSession, words: list[str], method: str, params: Wire) -> None:
    session.answers[f"workgraph/{method}"] = {"graph": GRAPH, "rev": 2}

    assert run_command(words) == 0
    assert params.items() <= session.sent(f"workgraph/{method}").items()


@pytest.mark.parametrize("words", [["retry"], ["release", "a"], ["release", "a", "--pids", "x"], ["finish", "x"]])
def test_verbs_without_what_they_need_are_usage(session: TableSession, words: list[str]) -> None:
    assert run_command(words) == 2
    assert session.calls == []


# ---- run -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    graphs: list[str] = []

    async def follow(workspace: Path | None, graph: str, wishes: Any, *, view: Any = None) -> int:
        graphs.append(graph)
        return 7

    monkeypatch.setattr(following, "follow_to_the_end", follow)
    return graphs


def test_commands_become_nodes_in_the_order_in_which_they_were_typed(
    session: TableSession, followed: list[str]
) -> None:
    session.answers["workgraph/set"] = {"graph": GRAPH, "rev": 1}

    assert run_command(["run", "--sh", "make a", "--then", "ls", "--sh", "date", "--then=wc"]) == 7

    sent = session.sent("workgraph/set")
    assert [(n["slug"], n.get("needs")) for n in sent["nodes"]] == [
        ("make", None), ("ls", ["make"]), ("date", None), ("wc", ["ls", "date"]),
    ]  # fmt: skip
    assert sent["title"] == "make a → ls, date → wc"
    assert followed == [GRAPH]


def test_detach_prints_graph_and_rev_and_follows_nothing(
    session: TableSession, followed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session.answers["workgraph/set"] = {"graph": GRAPH, "rev": 4}

    assert run_command(["run", "--sh", "true", "--detach", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"graph": GRAPH, "rev": 4}
    assert followed == []


def test_a_file_is_named_by_its_real_path_and_its_bytes_are_remembered(
    session: TableSession, followed: list[str], tmp_path: Path
) -> None:
    make_state_folder(tmp_path)
    session.answers["workgraph/set"] = {"graph": GRAPH, "rev": 1}
    (tmp_path / "w.yaml").write_text("nodes: []\n")

    assert run_command(["run", "w.yaml", "--input", "a=b=c"]) == 7
    assert session.sent("workgraph/set")["file"] == os.path.realpath("w.yaml")
    assert session.sent("workgraph/set")["inputs"] == {"a": "b=c"}
    assert [p.read_text() for p in (tmp_path / "state").glob("*/ran/*")] == ["nodes: []\n"]


@pytest.fixture
def changed_file(
    session: TableSession, followed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TableSession:
    """A file that was run and then edited, in front of a person."""
    session.answers["workgraph/set"] = {"graph": GRAPH, "rev": 1}
    file = tmp_path / "w.yaml"
    make_state_folder(tmp_path)
    file.write_text("run: old\n")
    assert run_command(["run", str(file)]) == 7
    file.write_text("run: new\n")
    session.calls.clear()
    monkeypatch.setattr("graphd.cli.run.is_at_terminal", lambda: True)
    return session


def test_a_changed_file_is_shown_and_asked_about_once(
    changed_file: TableSession, followed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [False, True]
    monkeypatch.setattr(click, "confirm", lambda *_, **__: answers.pop(0))

    assert run_command(["run", "w.yaml"]) == 2
    assert "workgraph/set" not in [name for name, _ in changed_file.calls]
    err = capsys.readouterr().err
    assert "-run: old" in err
    assert "+run: new" in err

    assert run_command(["run", "w.yaml"]) == 7
    assert run_command(["run", "w.yaml"]) == 7
    assert answers == []


def test_yes_starts_a_changed_file_at_once(
    changed_file: TableSession, followed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("asked"))

    assert run_command(["run", "w.yaml", "--yes"]) == 7


@pytest.mark.parametrize(
    "words", [["run"], ["run", "x", "--sh", "y"], ["run", "no.yaml"], ["run", "x", "--input", "y"]]
)
def test_run_without_something_to_run_is_usage(session: TableSession, words: list[str]) -> None:
    session.answers["workgraph/workflows"] = []

    assert run_command(words) == 2


def test_an_unknown_workflow_names_the_nearest(session: TableSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.answers["workgraph/workflows"] = [{"name": "checkup", "source": "bundled", "path": "/p"}]

    assert run_command(["run", "chekup"]) == 2
    assert "did you mean checkup" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["soon", "0s", "-1m"])
def test_a_timeout_has_to_be_a_duration(session: TableSession, given: str) -> None:
    assert run_command(["run", "--sh", "x", "--timeout", given]) == 2
    assert session.calls == []


# ---- reading -------------------------------------------------------------------------------------------------------


def test_diagnostics_are_lines_that_editors_can_jump_to(
    session: TableSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.yaml").write_text("nodes: 3\n")
    found = {"severity": "error", "code": "type", "path": "nodes", "message": "not a list", "hint": "write a list",
             "range": {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": 8}}}  # fmt: skip
    session.answers["workgraph/validate"] = {"diagnostics": [found]}

    assert run_command(["validate", "w.yaml"]) == 2
    assert capsys.readouterr().out == "w.yaml:1:8: error type: not a list\n  write a list\n"


def test_a_clean_file_has_no_problems(
    session: TableSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.yaml").write_text("")
    session.answers["workgraph/validate"] = {"diagnostics": []}

    assert run_command(["validate", "w.yaml"]) == 0
    assert capsys.readouterr().out == "w.yaml: no problems\n"


def test_a_file_that_is_not_there_is_usage(session: TableSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.answers["workgraph/workflows"] = []

    assert run_command(["validate", "missing.yaml"]) == 2
    assert "missing.yaml: no such file or workflow" in capsys.readouterr().err


def test_an_output_is_read_to_its_end_and_printed_as_it_is(
    session: TableSession, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = "é" * 5 + "\x1b[0m"
    pieces = {0: whole[:3], 6: whole[3:]}

    async def call(method: str, params: Wire | None = None, **_: Any) -> Any:
        offset = (params or {})["offset"]
        return {"text": pieces[offset], "offset": offset, "total": len(whole.encode()), "mediaType": "text/plain"}

    session.call = call  # type: ignore[method-assign]

    assert run_command(["output", "lint@2", "-g", "x"]) == 0
    assert capsys.readouterr().out == whole


def test_status_starts_no_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))

    assert run_command(["status", "--json", "-w", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"daemon": None, "graphs": []}
    assert run_command(["status", "-w", str(tmp_path)]) == 0
    assert "graphd daemon --start" in capsys.readouterr().out
    assert not (tmp_path / "state").exists()


def test_stop_without_a_daemon_is_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_STATE_DIR", str(tmp_path / "state"))

    assert run_command(["stop", "-w", str(tmp_path)]) == 0


def test_init_writes_a_sample_and_never_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".agents").mkdir()
    sample = tmp_path / ".agents" / "workflows" / "hello.yaml"

    assert run_command(["init", "-w", str(tmp_path)]) == 0
    assert "graphd run hello" in capsys.readouterr().out
    sample.write_text("mine")
    assert run_command(["init", "-w", str(tmp_path)]) == 0
    assert sample.read_text() == "mine"


def test_an_attempt_is_a_node_and_a_number() -> None:
    assert talk.split_attempt("a@2") == ("a", 2)
    assert talk.split_attempt("a") == ("a", None)
    for odd in ("a@x", "a@", "a@²", "a@" + "9" * 5000):
        with pytest.raises(CommandRefused):
            talk.split_attempt(odd)


def test_a_key_that_only_looks_like_a_digit_answers_nothing() -> None:
    answered: list[str] = []
    asking = Asking(show=lambda line: None, answer=lambda ask, option, scope: answered.append(option))
    asking.take([{"id": "ask-1", "title": "t", "kind": "question", "action": {}, "scopes": ["once"],
                  "options": [{"id": "yes", "label": "Yes"}]}])  # fmt: skip
    assert not asking.wants("²")
    asking.press("²")
    assert answered == []
    asking.press("1")
    assert answered == ["yes"]
