"""The follower behind `run` and `watch`: exit codes, lines and objects, leaving, a daemon that comes back."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from graphd.cli.exits import CommandRefused
from graphd.cli.following import Wishes, follow_to_the_end
from graphd.cli.plain import PlainLines
from graphd.client.follow import Update
from graphd.client.session import ConnectionLost

Wire = dict[str, Any]
GRAPH = "0198c1d2-3f4a-7000-8000-000000000001"
Play = Callable[..., None]


def value(status: str, *, rev: int = 1, outcome: str | None = None, state: str = "running", **more: Any) -> Wire:
    one = {"slug": "one", "state": state, "needs": [], "attempts": 1, "required": True, "startedAt": 1}
    return {
        "id": GRAPH, "title": "t", "status": status, "rev": rev, "outcome": outcome, "nodes": [one], "asks": [],
        "counts": {state: 1}, "limits": {"attemptsPerNode": 5}, "createdAt": 0, "updatedAt": 5000, **more,
    }  # fmt: skip


def changed(snapshot: Wire) -> Update:
    return Update("changed", GRAPH, snapshot, {"graph": GRAPH, "rev": snapshot["rev"], "operation": "x"})


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Lets the daemon say these updates; an exception is raised, `None` waits for ever."""

    def prepare(*updates: Update | Exception | None) -> None:
        async def said(*_: Any, **__: Any) -> AsyncIterator[Update]:
            for update in updates:
                if update is None:
                    await asyncio.Event().wait()
                elif isinstance(update, Exception):
                    raise update
                else:
                    yield update

        monkeypatch.setattr("graphd.client.follow.follow", said)

    return prepare


async def followed(wishes: Wishes | None = None) -> int:
    return await follow_to_the_end(Path("/"), GRAPH, wishes or Wishes(), view=PlainLines())


@pytest.mark.parametrize(
    ("status", "outcome", "state", "code"),
    [
        ("complete", "ok", "achieved", 0), ("complete", "withFailures", "failed", 1), ("blocked", None, "failed", 1),
        ("cancelled", None, "cancelled", 3), ("infra_paused", None, "ready", 5), ("user_paused", None, "ready", 7),
    ],
)  # fmt: skip
async def test_it_ends_when_the_graph_is_at_rest(
    play: Play, status: str, outcome: str | None, state: str, code: int
) -> None:
    play(changed(value("active")), changed(value(status, rev=2, outcome=outcome, state=state)), None)

    assert await followed() == code


async def test_failures_are_content_where_they_are_allowed(play: Play) -> None:
    play(changed(value("complete", outcome="withFailures", state="failed")))

    assert await followed(Wishes(allow_failures=True)) == 0


async def test_a_pause_drains_before_it_ends(play: Play) -> None:
    play(changed(value("user_paused")), changed(value("complete", rev=2, outcome="ok", state="achieved")))

    assert await followed() == 0


async def test_a_cleared_graph_is_as_a_cancelled_one(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(changed(value("active")), Update("cleared", GRAPH, None, {"graph": GRAPH, "cleared": {}}))

    assert await followed() == 3
    assert "the graph was cleared" in capsys.readouterr().err


async def test_a_daemon_that_comes_back_is_a_line_and_not_an_end(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    running = value("active")
    play(
        changed(running),
        Update("lost", GRAPH, running, {}),
        Update("restarted", GRAPH, running, {}, adopted=2),
        changed(value("complete", rev=3, outcome="ok", state="achieved")),
    )

    assert await followed() == 0

    out, err = capsys.readouterr()
    assert "daemon restarted, 2 children adopted" in err
    assert out == ""


async def test_a_timeout_leaves_the_graph_alone(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(changed(value("active")), None)

    assert await followed(Wishes(timeout_s=0.05)) == 124
    assert f"graphd watch {GRAPH[:13]}" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_without_a_terminal_detaches(
    play: Play, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    play(changed(value("active")), None)
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)

    assert await followed() == 130
    assert "detached; the graph goes on" in capsys.readouterr().err


async def test_a_question_that_nobody_here_can_answer_ends_it(play: Play) -> None:
    play(changed(value("active", asks=[{"id": "a", "kind": "permission"}])), None)

    assert await followed() == 6


async def test_a_stopped_daemon_is_a_refusal_with_a_way_on(play: Play) -> None:
    play(changed(value("active")), ConnectionLost("the daemon was stopped: by a client"))

    with pytest.raises(CommandRefused, match="the daemon was stopped") as caught:
        await followed()
    assert caught.value.hint == f"graphd watch {GRAPH[:13]}"


async def test_json_is_one_object_a_line_and_the_snapshot_last(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    done = value("complete", rev=2, outcome="ok", state="achieved")
    play(changed(value("active")), Update("restarted", GRAPH, None, {}, adopted=1), changed(done))

    assert await follow_to_the_end(Path("/"), GRAPH, Wishes(as_json=True)) == 0

    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["type"] for line in lines] == ["changed", "restarted", "changed", "snapshot"]
    assert lines[1] == {"type": "restarted", "graph": GRAPH, "adopted": 1}
    assert lines[-1]["snapshot"] == done
    assert err == ""
