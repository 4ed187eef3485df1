"""Requests for terminals, in the fold: what is asked, what the keeper is told, and what the agent is answered."""

import json
from pathlib import Path
from typing import Any

from graphd.children.acp import lines
from graphd.children.acp.terminals import LIVE_LIMIT
from graphd.children.driver import Fact
from graphd.children.keeping.output import OFFSET
from graphd.children.keeping.terminals import CONTROL
from graphd.core.talk import render
from tests.kit.acp import Tape, acp_order, allow, choose, kinds, wait


def tape(tmp_path: Path, **changes: Any) -> Tape:
    return Tape(acp_order(tmp_path, **changes)).open()


def ask(made: Tape, number: int, what: str, **params: Any) -> list[Fact]:
    return made.agent({"id": number, "method": f"terminal/{what}", "params": {"sessionId": "s1", **params}})


def last(made: Tape) -> dict[str, Any]:
    """The last line of ours without its frame."""
    return {name: value for name, value in made.sent()[-1].items() if name != "jsonrpc"}


def test_what_the_keeper_takes_for_itself_is_what_we_render() -> None:
    for line in (lines.control("start", id="t1"), lines.control("release", id="t1")):
        assert render(line, 4).encode().startswith(CONTROL)
    for line in (lines.reply("4", {}), lines.prompt("s1", "graphd/terminal/start"), lines.cancel("s1")):
        assert not render(line, 4).encode().startswith(CONTROL)


def test_from_the_question_to_the_reply(tmp_path: Path) -> None:
    made = tape(tmp_path)
    assert kinds(ask(made, 7, "create", command="make all", outputByteLimit=9)) == ["ask"]
    allowed, started = made.sent()[-2:]
    assert allowed["method"] == "graphd/terminal/allow"
    assert started == {
        "jsonrpc": "2.0", "method": "graphd/terminal/start",
        "params": {"id": "t1", "argv": ["/bin/sh", "-c", "make all"], "cwd": str(tmp_path), "env": [], "limitBytes": 9},
    }  # fmt: skip
    assert ask(made, 8, "output", terminalId="t1")[0].content["message"]["error"]["code"] == -32002, "not before"
    made.note(id="t1", event="started", pid=1)
    assert last(made) == {"id": 7, "result": {"terminalId": "t1"}}
    assert ask(made, 9, "wait_for_exit", terminalId="t1") == []
    assert ask(made, 10, "wait_for_exit", terminalId="t1") == []
    made.note(id="t1", event="exited", code=0, signal=None)
    exit_status = {"exitCode": 0, "signal": None}
    assert [message["result"] for message in made.sent()[-2:]] == [exit_status] * 2
    (made.order.folder / "terminal.t1").write_bytes(OFFSET.pack(3) + b"made")
    ask(made, 11, "output", terminalId="t1")
    assert last(made)["result"] == {"output": "made", "truncated": True, "exitStatus": exit_status}
    ask(made, 12, "release", terminalId="t1")
    assert [message.get("method") for message in made.sent()[-2:]] == ["graphd/terminal/release", None]
    ask(made, 13, "wait_for_exit", terminalId="t1")
    assert last(made)["error"]["code"] == -32002
    assert made.note(id="t1", event="exited", code=0, signal=None) == [], "of nobody"


def test_a_release_before_the_exit_lets_those_who_wait_know_when_it_is_over(tmp_path: Path) -> None:
    made = tape(tmp_path)
    ask(made, 7, "create", command="sleep 9")
    made.note(id="t1", event="started", pid=1)
    ask(made, 8, "wait_for_exit", terminalId="t1")
    ask(made, 9, "release", terminalId="t1")
    made.note(id="t1", event="exited", code=None, signal=35)
    assert last(made) == {"id": 8, "result": {"exitCode": None, "signal": "SIG35"}}


def test_an_open_question_goes_with_the_turn_and_can_be_taken_back(tmp_path: Path) -> None:
    made = tape(tmp_path)
    made.core.decide = wait
    ask(made, 7, "create", command="make")
    assert made.fold.unheard == ("terminal:7",)
    facts = made.agent({"method": "$/cancel_request", "params": {"requestId": 7}})
    assert kinds(facts) == ["ask_gone", "say"]
    assert (last(made)["id"], last(made)["error"]["code"]) == (7, -32800)
    ask(made, 8, "create", command="make")
    made.text("over")
    made.stop()
    assert {"id": 8, "error": {"code": -32602, "message": "this command may not be run here"}} in [
        {name: value for name, value in message.items() if name != "jsonrpc"} for message in made.sent()
    ]
    assert not made.fold.unheard


def test_a_cancel_answers_it_first(tmp_path: Path) -> None:
    made = tape(tmp_path)
    first, second = made.core.driver.cancel("s1", ("terminal:7",))
    assert first.message["error"]["message"] == "this command may not be run here"
    assert second.message["method"] == "session/cancel"


def test_so_many_at_once_and_no_more(tmp_path: Path) -> None:
    made = tape(tmp_path)
    for number in range(LIVE_LIMIT):
        ask(made, 100 + number, "create", command="sleep 9")
        made.note(id=f"t{number + 1}", event="started", pid=1)
    ask(made, 200, "create", command="sleep 9")
    assert "release one first" in last(made)["error"]["message"]
    ask(made, 201, "release", terminalId="t1")
    ask(made, 202, "create", command="sleep 9")
    assert last(made)["params"]["id"] == f"t{LIVE_LIMIT + 1}"


def test_a_grant_is_for_this_very_command_and_variables_are_part_of_it(tmp_path: Path) -> None:
    made = tape(tmp_path)
    made.ask(7, kind="execute", rawInput={"command": ["bash", "-lc", "make all"]})
    asked = len(made.core.of("ask"))
    ask(made, 8, "create", command="make all", env=[{"name": "PATH", "value": "/evil"}])
    ask(made, 9, "create", command="make all; rm x")
    assert [fact["action"]["command"] for fact in made.core.of("ask")[asked:]] == [
        "PATH=/evil make all", "make all; rm x",
    ]  # fmt: skip
    asked = len(made.core.of("ask"))
    ask(made, 10, "create", command="bash", args=["-c", "make all"])
    assert len(made.core.of("ask")) == asked
    assert last(made)["params"]["argv"] == ["bash", "-c", "make all"]


def test_a_program_that_is_called_like_a_shell_is_judged_whole(tmp_path: Path) -> None:
    made = tape(tmp_path)
    for number, command in enumerate(("./sh", f"{tmp_path}/bash", "/bin/sh", "sh")):
        ask(made, number, "create", command=command, args=["-c", "ls"])
    judged = [fact["action"]["command"] for fact in made.core.of("ask")]
    assert judged == ["./sh -c ls", f"{tmp_path}/bash -c ls", "ls", "ls"]


def test_a_grant_is_over_with_its_turn(tmp_path: Path) -> None:
    made = Tape(acp_order(tmp_path), rounds=("more",)).open()
    made.ask(7, kind="execute", rawInput={"command": "make"})
    made.text("first")
    made.stop()
    asked = len(made.core.of("ask"))
    ask(made, 8, "create", command="make")
    assert len(made.core.of("ask")) == asked + 1


def test_a_permission_that_was_rejected_or_is_for_a_file_grants_no_command(tmp_path: Path) -> None:
    made = tape(tmp_path)
    made.core.decide = lambda fact: choose(fact.content["options"], "reject_once")
    made.ask(7, kind="execute", rawInput={"command": "make"})
    made.core.decide = allow
    made.ask(8, kind="edit", rawInput={"command": "make"})
    asked = len(made.core.of("ask"))
    ask(made, 9, "create", command="make")
    assert len(made.core.of("ask")) == asked + 1


def test_a_folder_that_is_gone_when_it_is_allowed_is_refused_then(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    made = tape(tmp_path)
    made.core.decide = wait
    ask(made, 7, "create", command="make", cwd="sub")
    (tmp_path / "sub").rmdir()
    (tmp_path / "sub").symlink_to("/etc")
    made.core.add(*made.core.driver.answer("terminal:7", "allow", None))
    made.flush()
    assert "is not in" in last(made)["error"]["message"]
    assert "t1" not in json.dumps(made.sent())
