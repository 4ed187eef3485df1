"""Commands that an agent has run by us, with real keepers: each starts once, ends with its attempt, and is told of."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from graphd.children.journal import read_records
from graphd.children.keeping.files import IN, NOTE, TERMINAL_NOTE
from graphd.core.commands import AttemptEnded
from tests.kit.acp import Core, Decide, acp_order, allow, reject, traced, wait
from tests.kit.kept import Heard, is_gone, until


async def play(
    tmp_path: Path, *steps: dict[str, Any], decide: Decide = allow, **changes: Any
) -> tuple[AttemptEnded, Core]:
    core = Core(acp_order(tmp_path, {"turns": [[*steps, {"say": "done"}]]}, **changes), decide=decide)
    ended = await core.make().start()
    await core.run.collect()
    return ended, core


def terminal(command: str, *then: str, **more: Any) -> dict[str, Any]:
    return {"terminal": {"command": command, "then": list(then), **more}}


def replies(tmp_path: Path, did: str) -> list[dict[str, Any]]:
    return [line["reply"] for line in traced(tmp_path, did=did)]


def notes(core: Core) -> list[dict[str, Any]]:
    records = [r for r in read_records(core.order.folder) if r.kind == NOTE and r.payload.startswith(TERMINAL_NOTE)]
    return [json.loads(record.payload[1:]) for record in records]


async def die(core: Core, task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await core.run.let_go()


async def test_a_command_is_run_waited_for_and_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    ended, core = await play(
        tmp_path,
        terminal("pwd; echo é; echo $X; echo oops >&2; exit 3", "wait_for_exit", "output", "release", "output",
                 cwd=str(tmp_path / "sub"), env=[{"name": "X", "value": "1"}]),
    )  # fmt: skip
    assert ended.outcome == "achieved", ended.reason
    assert replies(tmp_path, "wait_for_exit") == [{"exitCode": 3, "signal": None}]
    read, gone = replies(tmp_path, "output")
    output = f"{tmp_path / 'sub'}\né\n1\noops\n"
    assert read == {"output": output, "truncated": False, "exitStatus": {"exitCode": 3, "signal": None}}
    assert gone["code"] == -32002
    assert [note["event"] for note in notes(core)] == ["started", "exited"]
    (ask,) = core.of("ask")
    assert ask["action"]["command"] == "X=1 pwd; echo é; echo $X; echo oops >&2; exit 3"
    assert ask["action"]["paths"] == [str(tmp_path / "sub")]
    assert not list(core.order.folder.glob("terminal.*"))
    shown = [item["text"] for item in core.of("item") if item["kind"] == "terminal"]
    assert shown == ["$ X=1 pwd; echo é; echo $X; echo oops >&2; exit 3", "exit code 3"]


async def test_words_are_no_shell_line_and_see_the_agents_environment(tmp_path: Path) -> None:
    ended, core = await play(
        tmp_path,
        terminal(
            "printf", "wait_for_exit", "output", args=["%s|", "a b", "$HOME;"], env=[{"name": "CI", "value": "1"}]
        ),
        terminal("echo $GRAPHD_ATTEMPT", "wait_for_exit", "output", **{"as": "two"}),
    )
    assert ended.outcome == "achieved"
    assert [reply["output"] for reply in replies(tmp_path, "output")] == ["a b|$HOME;|", f"{core.order.cookie}\n"]
    assert core.of("ask")[0]["action"]["command"] == "printf '%s|' 'a b' '$HOME;'", "CI changes how it prints alone"


async def test_two_at_once_and_both_wait(tmp_path: Path) -> None:
    go = tmp_path / "go"
    ended, _ = await play(
        tmp_path,
        terminal(f"while ! test -e {go}; do sleep 0.02; done; echo one", **{"as": "one"}),
        terminal(f"touch {go}; echo two", "wait_for_exit", "output", **{"as": "two"}),
        {"on_terminal": {"as": "one", "what": "wait_for_exit"}}, {"on_terminal": {"as": "one", "what": "output"}},
    )  # fmt: skip
    assert ended.outcome == "achieved"
    assert [reply["output"] for reply in replies(tmp_path, "output")] == ["two\n", "one\n"]
    assert [reply["terminalId"] for reply in replies(tmp_path, "terminal")] == ["t1", "t2"]


async def test_kill_ends_all_of_it_and_its_output_stays(tmp_path: Path) -> None:
    """What ignores TERM gets KILL after the grace; what left its session is below it still."""
    ended, core = await play(
        tmp_path,
        terminal("setsid sleep 600 & trap '' TERM; echo ready; while :; do sleep 600 & wait; done"),
        {"wait": 0.5}, *({"on_terminal": {"as": "last", "what": what}} for what in ("output", "kill")),
        {"on_terminal": {"as": "last", "what": "wait_for_exit"}}, {"on_terminal": {"as": "last", "what": "output"}},
    )  # fmt: skip
    assert ended.outcome == "achieved"
    assert replies(tmp_path, "wait_for_exit") == [{"exitCode": None, "signal": "SIGKILL"}]
    before, after = replies(tmp_path, "output")
    assert before == {"output": "ready\n", "truncated": False}
    assert after["output"].startswith("ready\n")
    assert all(is_gone(note["pid"]) for note in notes(core) if note["event"] == "started")


async def test_release_while_it_runs_ends_it_and_frees_its_output(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    ended, core = await play(
        tmp_path,
        terminal(f"echo $$ > {pid_file}; exec sleep 600"), {"until": str(pid_file)}, {"wait": 0.2},
        *({"on_terminal": {"as": "last", "what": what}} for what in ("release", "wait_for_exit", "kill", "output")),
        {"wait": 0.5},
    )  # fmt: skip
    assert ended.outcome == "achieved"
    assert replies(tmp_path, "release") == [{}]
    assert [replies(tmp_path, what)[0]["code"] for what in ("wait_for_exit", "kill", "output")] == [-32002] * 3
    assert notes(core)[-1] == {"id": "t1", "event": "exited", "code": None, "signal": signal.SIGTERM}
    assert not list(core.order.folder.glob("terminal.*"))


@pytest.mark.parametrize(("limit", "command", "expected", "is_truncated"), [
    (5, "printf ééé", "éé", True),
    (6, "printf ééé", "ééé", False),
    (0, "printf x", "", True),
    (100, "head -c 500000 /dev/zero | tr '\\0' x; printf end", "x" * 97 + "end", True),
    (8, r"printf '\377\377\377'", "\ufffd\ufffd", True),
])  # fmt: skip
async def test_output_is_bounded_and_begins_at_a_character(
    tmp_path: Path, limit: int, command: str, expected: str, is_truncated: bool
) -> None:
    _, core = await play(tmp_path, terminal(command, "wait_for_exit", "output", outputByteLimit=limit))
    (reply,) = replies(tmp_path, "output")
    assert (reply["output"], reply["truncated"]) == (expected, is_truncated)
    assert (core.order.folder / "terminal.t1").stat().st_size < 200_000


@pytest.mark.parametrize(("request_", "reason"), [
    ({"command": "pwd", "cwd": "/etc"}, "is not in"),
    ({"command": "pwd", "cwd": "missing"}, "is no folder"),
    ({"command": "pwd", "cwd": "link"}, "is not in"),
    ({"command": "pwd", "cwd": ""}, "cwd: an absolute path"),
    ({"command": ""}, "command: a text"),
    ({"command": "a", "args": [1]}, "args: a list of texts"),
    ({"command": "a", "env": [{"name": "A B", "value": ""}]}, "env: a list of"),
    ({"command": "a", "env": [{"name": "GRAPHD_TOKEN_FILE", "value": ""}]}, "not yours to set"),
    ({"command": "a", "outputByteLimit": -1}, "outputByteLimit: a number"),
    ({"command": "a" * 20_000}, "write it to a file"),
    ({"command": "no-such-program", "args": ["x"]}, "no-such-program: No such file"),
])  # fmt: skip
async def test_what_can_not_be_run_is_refused_with_a_reason(
    tmp_path: Path, request_: dict[str, Any], reason: str
) -> None:
    (tmp_path / "link").symlink_to("/etc")
    ended, core = await play(tmp_path, {"terminal": request_}, {"say": "more"})
    assert (replies(tmp_path, "terminal")[0]["code"], ended.outcome) == (-32602, "achieved")
    assert reason in replies(tmp_path, "terminal")[0]["message"]
    assert not any(note["event"] == "started" for note in notes(core))


async def test_what_a_person_rejects_is_not_run(tmp_path: Path) -> None:
    turns = [[terminal(f"touch {tmp_path}/ran"), {"say": "x"}], [{"say": "without"}]]
    core = Core(acp_order(tmp_path, {"turns": turns}), decide=reject)
    ended = await core.make().start()
    await core.run.collect()
    assert replies(tmp_path, "terminal") == [{"code": -32602, "message": "this command may not be run here"}]
    assert not (tmp_path / "ran").exists()
    assert ended.output is not None
    assert ended.output.text == "without", "a rejected one is asked once for its result"


async def test_what_was_just_granted_is_not_asked_for_again(tmp_path: Path) -> None:
    call = {"toolCallId": "t1", "title": "Run", "kind": "execute", "rawInput": {"command": "echo hi"}}
    ended, core = await play(
        tmp_path, {"ask": {"toolCall": call}}, *[terminal("echo hi", "wait_for_exit", "release")] * 2,
    )  # fmt: skip
    assert ended.outcome == "achieved"
    assert [ask["key"] for ask in core.of("ask")] == ["101", "terminal:105"], "the grant was for one"


async def test_an_agent_that_dies_leaves_none_of_them(tmp_path: Path) -> None:
    steps = [terminal(f"echo $$ > {tmp_path}/{n}; exec sleep 600", **{"as": str(n)}) for n in (1, 2)]
    files = [{"until": f"{tmp_path}/{n}"} for n in (1, 2)]
    ended, core = await play(tmp_path, *steps, *files, {"wait": 0.2}, {"die": "KILL"})
    assert (ended.outcome, ended.signal) == ("failed", signal.SIGKILL)
    pids = [int((tmp_path / str(n)).read_text()) for n in (1, 2)]
    assert all(map(is_gone, pids))
    assert sorted(pids) == sorted(note["pid"] for note in notes(core) if note["event"] == "started")


async def test_a_keeper_that_is_killed_takes_them_with_it(tmp_path: Path) -> None:
    """Proof of death finds them by the record that was made before they ran, whatever their environment."""
    heard = Heard()
    pid_file = tmp_path / "pid"
    clean = f"exec env -i /bin/sh -c 'echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 600'"
    core = Core(acp_order(tmp_path, {"turns": [[terminal(clean), {"until_cancel": True}]], "on_eof": "stay"}))
    task = asyncio.create_task(core.make(heard).start())
    await until(pid_file.exists)
    os.kill(heard.identities[0].keeper_pid, signal.SIGKILL)
    ended = await task
    await core.run.collect()
    assert ended.outcome == "lost"
    assert is_gone(int(pid_file.read_text()))
    assert is_gone(heard.identities[0].pid)


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_daemon_that_dies_leaves_them_and_the_next_one_answers(tmp_path: Path, is_over: bool) -> None:
    """It exits while nobody lives, or under the next daemon; started once, waited for once, its output whole."""
    go, ran = tmp_path / "go", tmp_path / "ran"
    command = f"echo begun; echo x >> {ran}; while ! test -e {go}; do sleep 0.02; done; echo ended; exit 4"
    core = Core(acp_order(tmp_path, {"turns": [[terminal(command, "wait_for_exit", "output"), {"say": "done"}]]}))
    task = asyncio.create_task(core.make().start())
    await until(ran.exists)
    await until(lambda: traced(tmp_path, did="terminal"))
    await asyncio.sleep(0.1)
    await die(core, task)
    if is_over:
        go.touch()
        await until(lambda: any(note["event"] == "exited" for note in notes(core)))
    task = asyncio.create_task(core.make().adopt())
    await asyncio.sleep(0.1)
    go.touch()
    ended = await task
    await core.run.collect()
    assert ended.outcome == "achieved", ended.reason
    assert replies(tmp_path, "wait_for_exit") == [{"exitCode": 4, "signal": None}]
    assert [reply["output"] for reply in replies(tmp_path, "output")] == ["begun\nended\n"]
    assert ran.read_text() == "x\n"


async def test_an_open_question_about_one_is_answered_by_the_next_daemon(tmp_path: Path) -> None:
    turn = [terminal("echo hi", "wait_for_exit", "output"), {"say": "done"}]
    core = Core(acp_order(tmp_path, {"turns": [turn]}), decide=wait)
    task = asyncio.create_task(core.make().start())
    await until(lambda: core.open_asks)
    await die(core, task)
    core.decide = allow
    task = asyncio.create_task(core.make().adopt())
    core.answer(next(iter(core.open_asks)), "allow")
    ended = await task
    await core.run.collect()
    assert ended.outcome == "achieved"
    assert replies(tmp_path, "output")[0]["output"] == "hi\n"
    assert len(core.of("ask")) == 1


async def test_over_many_deaths_each_is_started_once_and_each_request_answered_once(tmp_path: Path) -> None:
    steps = [
        step for n in range(4)
        for step in (
            terminal(f"echo {n} >> {tmp_path}/ran; sleep 0.1; echo {n}", "wait_for_exit", "output", "kill", "release"),
        )
    ]  # fmt: skip
    core = Core(acp_order(tmp_path, {"turns": [[*steps, {"say": "done"}]]}))
    task = asyncio.create_task(core.make().start())
    await until((core.order.folder / "socket").exists)
    deaths = 0
    while not task.done():
        await asyncio.wait([task], timeout=0.05 + 0.03 * (deaths % 4))
        if not task.done():
            await die(core, task)
            deaths += 1
            task = asyncio.create_task(core.make().adopt())
    ended = await task
    await core.run.collect()
    assert (ended.outcome, deaths > 3) == ("achieved", True)
    assert (tmp_path / "ran").read_text().split() == ["0", "1", "2", "3"]
    assert [reply["output"] for reply in replies(tmp_path, "output")] == [f"{n}\n" for n in range(4)]
    got = [line["id"] for line in traced(tmp_path, got="reply")]
    assert got == sorted(set(got)), "no answer came twice"
    sent = [json.loads(record.payload) for record in read_records(core.order.folder) if record.kind == IN]
    assert sent == [json.loads(row) for row in core.rows[: len(sent)]]


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_daemon_killed_on_either_side_of_each_commit(tmp_path: Path, is_after: bool) -> None:
    """One at a time: the terminal is started once, killed once, and each request has its one answer."""
    turn = [
        terminal(f"echo x >> {tmp_path}/N/ran; exec sleep 600", **{"as": "long"}),
        terminal("echo short", "wait_for_exit", "output", "release"),
        *({"on_terminal": {"as": "long", "what": what}} for what in ("kill", "wait_for_exit", "release")),
        {"say": "done"},
    ]  # fmt: skip
    at, is_there = 0, True
    while is_there:
        folder = tmp_path / str(at)
        folder.mkdir()
        script = json.loads(json.dumps({"turns": [turn]}).replace(f"{tmp_path}/N", str(folder)))
        is_there = await _killed_at(Core(acp_order(folder, script)), 2 * at + is_after)
        assert (folder / "ran").read_text() == "x\n"
        assert replies(folder, "wait_for_exit")[0] == {"exitCode": 0, "signal": None}
        assert replies(folder, "wait_for_exit")[1] == {"exitCode": None, "signal": "SIGTERM"}
        assert [reply["output"] for reply in replies(folder, "output")] == ["short\n"]
        got = [line["id"] for line in traced(folder, got="reply")]
        assert got == sorted(set(got)), "no answer came twice"
        at += 1
    assert at > 10


async def _killed_at(core: Core, wanted: int) -> bool:
    """Let the daemon die at the n-th pause (before a commit, behind it, …) once; False where there are not so many."""
    passed, stopped = 0, asyncio.Event()

    async def pause() -> None:
        nonlocal passed
        passed += 1
        if passed == wanted + 1:
            stopped.set()
            await asyncio.Event().wait()

    core.pause = pause
    task = asyncio.create_task(core.make().start())
    dying = asyncio.create_task(stopped.wait())
    await asyncio.wait([task, dying], return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set():
        await die(core, task)
        task = asyncio.create_task(core.make().adopt())
    dying.cancel()
    ended = await task
    await core.run.collect()
    assert ended.outcome == "achieved", ended.reason
    return stopped.is_set()


@pytest.mark.parametrize(
    "point",
    [
        "keeper.terminal.before", "keeper.terminal.after", "keeper.append.before:9", "keeper.append.after:9",
        "keeper.signal.before", "keeper.signal.after", "keeper.shorten.before", "keeper.shorten.after",
    ],
)  # fmt: skip
async def test_a_keeper_killed_on_either_side_of_what_it_does_leaves_nothing(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt is lost, nothing of it is alive; what stood at the gate never ran."""
    name, _, hit = point.partition(":")
    monkeypatch.setenv("GRAPHD_FAILPOINT", f"{name}:{hit or 1}:kill")
    command = f"echo $$ > {tmp_path}/ran; head -c 400000 /dev/zero; exec sleep 600"
    steps = [terminal(command, outputByteLimit=10), {"wait": 0.3}, {"on_terminal": {"as": "last", "what": "kill"}}]
    core = Core(acp_order(tmp_path, {"turns": [[*steps, {"until_cancel": True}]]}))
    ended = await core.make().start()
    await core.run.collect()
    assert ended.outcome == "lost", ended.reason
    ran = tmp_path / "ran"
    assert not ran.exists() or is_gone(int(ran.read_text()))
    if name.startswith("keeper.terminal"):
        assert not ran.exists()
    started = traced(tmp_path, did="start")
    assert len(started) == 1
    assert is_gone(started[0]["pid"])
