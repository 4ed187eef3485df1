"""Answers raced by two people and a policy while the daemon is killed at random: each ask is answered once, each answer
reaches its agent once.
"""

import asyncio
import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from graphd.client.paths import AttachFailure
from graphd.client.session import ConnectionLost, RemoteRefused, Session
from tests.kit.agents import AgentWorkspace, Turn, asks
from tests.kit.workspaces import Workspace

NODES = 5


def turn(count: int) -> Turn:
    """Asks, every third of which the policy allows by itself; each allowed one has an effect."""
    steps: Turn = []
    for number in range(count):
        step = asks("inside.txt" if number % 3 == 2 else f"/elsewhere/{number}")
        step["ask"]["effect"] = f"effect {number}"
        steps.append(step)
    return steps


class Person:
    """Answers whatever waits, over the daemon's deaths, each ask at most once from here."""

    def __init__(self, workspace: Workspace, number: int) -> None:
        self._root = workspace.root
        self._choose = random.Random(number)
        self.answers: dict[str, str] = {}
        self.beaten = 0

    async def work(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            try:
                async with await Session.open(workspace=Path(self._root), client="racer", interactive=True) as session:
                    while not is_over.is_set():
                        await self._answer(session, await session.call("workgraph/asks"))
            except (AttachFailure, ConnectionLost, OSError):  # killed while it started, perhaps
                continue

    async def _answer(self, session: Session, waiting: list[dict[str, Any]]) -> None:
        for ask in waiting:
            option = self._choose.choice(["proceed_once", "no"])
            params = {
                "ask": ask["id"],
                "actionHash": ask["actionHash"],
                "option": option,
                "requestId": f"{id(self)}{ask['id']}",
            }
            try:
                await session.call("workgraph/respond", params)
                self.answers[ask["id"]] = option
            except RemoteRefused as refusal:
                if refusal.code != "askGone":
                    raise
                self.beaten += 1
        await asyncio.sleep(0.01)


async def killed_at_random(workspace: Workspace, is_over: asyncio.Event, *, most: int) -> int:
    """Kill the daemon again and again; how often. Not for ever: on a slow machine each would die while it starts."""
    choose, count = random.Random(7), 0
    while not is_over.is_set() and count < most:
        await asyncio.sleep(choose.uniform(1.0, 3.0))
        for pid in workspace.daemons():
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count


def go_on(workspace: Workspace) -> None:
    """The fifth start within ten minutes pauses a graph, here with agents still to start; nothing else may."""
    ran = workspace.graphd("status", "@last", "--json")
    if ran.returncode:  # its daemon was killed just then
        return
    for found in json.loads(ran.stdout)["graphs"]:
        if found["status"] not in ("active", "complete"):
            assert found["status"] == "infra_paused", found
            assert "times in ten minutes" in found["pauseReason"], found
            workspace.graphd("resume")


async def race(workspace: Workspace, agent: AgentWorkspace, *, asked: int, within_s: float) -> tuple[list[Person], int]:
    """Two people and a killer, until so many asks were answered."""
    is_over = asyncio.Event()
    people = [Person(workspace, number) for number in range(2)]

    async def watch() -> None:
        async with asyncio.timeout(within_s):
            while len(agent.trace(did="asked")) < asked:
                await asyncio.sleep(1)
                await asyncio.to_thread(go_on, workspace)
        is_over.set()

    async with asyncio.TaskGroup() as tasks:
        for person in people:
            tasks.create_task(person.work(is_over))
        killing = tasks.create_task(killed_at_random(workspace, is_over, most=asked // NODES))
        tasks.create_task(watch())
    return people, killing.result()


def check(agent: AgentWorkspace, count: int) -> None:
    """By the agents' own trace, and by the log."""
    asked = agent.trace(did="asked")
    assert len(asked) == NODES * count
    assert all(line["outcome"]["outcome"] == "selected" for line in asked)
    replies = [(line["pid"], line["id"]) for line in agent.trace(got="reply")]
    assert len(replies) == len(set(replies)) == len(asked), "each request of an agent got one answer"
    assert len(agent.trace(did="start")) == NODES, "no agent was started again"
    allowed = [line for line in asked if line["outcome"]["optionId"] == "proceed_once"]
    assert len(agent.trace(did="effect")) == len(allowed)
    history = agent.history()
    answered = [event["payload"]["ask"] for event in history if event["kind"] == "ask_answered"]
    assert len(answered) == len(set(answered)) == NODES * count
    by = [event["payload"]["by"] for event in history if event["kind"] == "ask_answered"]
    assert len([one for one in by if one.startswith("rule ")]) == NODES * (count // 3)
    options = sorted(event["payload"]["option"] for event in history if event["kind"] == "ask_answered")
    assert options == sorted(line["outcome"]["optionId"] for line in asked)


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_each_ask_is_answered_once_and_each_answer_is_delivered_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for name, value in workspace.environment.items():
        if name.startswith("GRAPHD_"):
            monkeypatch.setenv(name, value)
    agent = AgentWorkspace(workspace, turn(count), [{"say": "done"}])
    text = "nodes:\n" + "".join(f"  - {{ id: n{n}, worker: build, prompt: Do it }}\n" for n in range(NODES))
    code, said = agent.run(text, "--detach")
    assert code == 0, said
    people, kills = asyncio.run(race(workspace, agent, asked=NODES * count, within_s=60 if count < 100 else 500))
    agent.graph()  # with a daemon that lives on
    go_on(workspace)
    agent.until(lambda: agent.graph()["status"] == "complete")
    check(agent, count)
    assert kills
    assert all(person.answers or person.beaten for person in people)
