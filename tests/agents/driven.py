"""Real agents under a keeper, spoken to by the driver `acp`; core and store are played by `tests.kit.acp.Core`."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphd.children.profiles import PROFILES
from graphd.core.commands import AttemptEnded
from graphd.daemon.orders import quirks_of
from tests.agents.bare import require
from tests.kit.acp import Core, Decide, allow, reject, wait
from tests.kit.acp_probe import living
from tests.kit.agent_scenarios import MCP
from tests.kit.kept import Heard, make_order, until
from tests.kit.model_script import script
from tests.kit.model_server import ModelServer
from tests.kit.real_agents import AGENTS

LIMIT_S = 100.0
WRITE = {"write": {"path": "a.txt", "content": "hi"}}


class Driven:
    """One real agent in folders of its own, with its model."""

    def __init__(self, name: str, base: Path, server: ModelServer) -> None:
        require(name)
        self.agent = AGENTS[name]
        self.server = server
        self.base = base
        self.work, self.home = base / "work", base / "home"
        for folder in (self.work, self.home):
            folder.mkdir()
        self.heard = Heard()
        self.number = 0
        self.core: Core
        self.task: asyncio.Task[AttemptEnded]

    def order(self, *steps: dict[str, Any], decide: Decide = allow, **changes: Any) -> Core:
        """The next attempt, its steps told to the model."""
        self.number += 1
        told = [{**step, "escalate": self.agent.escalates} for step in steps]
        folder = self.base / "attempts" / "0197" / f"gn-e40c292c@{self.number}"
        variables = self.agent.environment(self.home, self.server.url)
        given: dict[str, Any] = {
            "profile": self.agent.name, "argv": self.agent.argv(), "environment": variables, "cwd": self.work,
            "workspace": self.work, "folder": folder, "number": self.number, "mode": self.agent.mode,
            "permissions": "edit", "told": f"Do it. {script(*told)}", "grace_s": 2.0,
            "quirks": quirks_of(PROFILES[self.agent.name]),
        }  # fmt: skip
        self.core = Core(make_order(self.base, **given | changes), decide=decide)
        return self.core

    def start(self) -> None:
        """The attempt begins, in the background."""
        self.task = asyncio.create_task(self.core.make(self.heard).start())

    async def ended(self) -> AttemptEnded:
        """How it ended."""
        ended = await asyncio.wait_for(self.task, LIMIT_S)
        await self.core.run.collect()
        return ended

    async def asked(self, step: int, times: int = 1) -> None:
        """Until the model was asked for this step."""
        await self.until(lambda: self.tries(step) >= times, f"step {step}")

    async def until(self, claim: Callable[[], Any], what: str) -> None:
        """Until it holds, or the attempt is over."""
        await until(lambda: claim() or self.task.done(), what, LIMIT_S)
        assert claim(), (what, self.task.result() if self.task.done() else "", self.core.facts[-5:])

    async def die(self) -> None:
        """The daemon is killed: its connection to the keeper ends without a word."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.core.run.let_go()

    async def end(self) -> None:
        """Nothing of it lives on, however the test ended."""
        if not self.task.done():
            await self.die()
        deadline = time.monotonic() + 10
        while (left := living(f"HOME={self.home}")) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.02)
        assert not left, left

    def adopt(self) -> None:
        """The next daemon takes it over."""
        self.task = asyncio.create_task(self.core.make(self.heard).adopt())

    def tries(self, step: int) -> int:
        """How often the model was asked for this step."""
        return sum(row.step == step for row in self.server.scripted)

    def has(self, name: str) -> bool:
        """The agent wrote this file."""
        return (self.work / name).exists()

    def text(self, ended: AttemptEnded) -> str:
        """The result, which there must be."""
        assert ended.outcome == "achieved", (ended, self.core.facts[-8:])
        assert ended.output is not None
        return ended.output.text


async def allowed(at: Driven) -> None:
    """It writes where it is allowed, and its last message is the result."""
    at.order({"think": "hm", **WRITE}, {"shell": "cat a.txt > b.txt"}, {"say": "all done"})
    at.start()
    assert at.text(await at.ended()) == "all done"
    assert (at.work / "b.txt").read_text() == "hi"
    assert len(at.core.of("ask")) == 2
    assert at.core.of("usage")[-1]["toolCalls"] == 2


async def rejected(at: Driven) -> None:
    """What was rejected is not done, and the turn's end is not taken for a result: it is asked once more."""
    at.order(WRITE, {"say": "it was rejected"}, decide=reject)
    at.start()
    ended = await at.ended()
    assert not at.has("a.txt")
    assert (ended.outcome, at.core.of("turn_cancelled")) in (("achieved", []), ("failed", []))


async def cancelled_in_wait(at: Driven) -> None:
    """A stop while the model is silent."""
    at.order({"hold": "never", "say": "late"})
    at.start()
    await at.asked(0)
    at.core.stop()
    ended = await at.ended()
    assert (ended.outcome, at.core.of("candidate")) == ("failed", []), "the core knows that it was a stop"
    assert {"kind": "turn_end", "text": "cancelled"} in at.core.of("item")


async def cancelled_in_tool(at: Driven) -> None:
    """A stop while a command runs: the command is dead when the attempt is over."""
    at.order({"shell": "echo $$ > pid; sleep 47; echo over > over.txt"}, {"say": "late"})
    at.start()
    await at.until(lambda: at.has("pid") and (at.work / "pid").read_text().strip(), "the command runs")
    pid = int((at.work / "pid").read_text())
    at.core.stop()
    ended = await at.ended()
    assert (ended.outcome, at.core.of("candidate")) == ("failed", []), "the core knows that it was a stop"
    assert {"kind": "turn_end", "text": "cancelled"} in at.core.of("item")
    assert not Path(f"/proc/{pid}").exists()
    assert not at.has("over.txt")


async def agent_killed(at: Driven) -> None:
    """SIGKILL in mid-turn; the next attempt goes on in the same session, and what was done is not done again."""
    steps = (WRITE, {"hold": "later", "times": 1, "write": {"path": "b.txt", "content": "ho"}})
    first = at.order(*steps, {"say": "finished"})
    at.start()
    await at.asked(1)
    os.killpg(at.heard.identities[0].pid, signal.SIGKILL)
    ended = await at.ended()
    assert ended.outcome == "failed", ended
    at.server.release("later")
    at.order(resume_session=first.session, interrupted="You were interrupted. Look at what is done, and go on.")
    at.start()
    assert at.text(await at.ended()) == "finished"
    assert at.core.session == first.session
    assert at.has("b.txt")
    assert (at.tries(0), at.tries(1)) == (1, 2)


async def daemon_killed(at: Driven) -> None:
    """SIGKILL of the daemon in mid-turn; the next one takes the running turn over, and nothing is repeated."""
    at.order(WRITE, {"hold": "later", "say": "on"}, {"say": "never"})
    at.start()
    await at.asked(1)
    await at.die()
    at.server.release("later")
    at.adopt()
    assert at.text(await at.ended()) == "on"
    lengths = [len(row.history) for row in at.server.scripted if row.step == 1]
    assert at.tries(0) == 1
    assert len(set(lengths)) == len(lengths), "nothing was asked twice (but after the turn, for what to suggest next)"
    assert at.has("a.txt")


async def asked_over_death(at: Driven) -> None:
    """A permission that is asked while no daemon lives is answered by the next one."""
    at.order({"hold": "later", **WRITE}, {"say": "all done"}, decide=wait)
    at.start()
    await at.asked(0)
    await at.die()
    at.server.release("later")
    await asyncio.sleep(0.5)  # it asks now, or a moment later: both must do
    at.adopt()
    await at.until(lambda: at.core.open_asks, "an ask")
    await at.die()
    at.adopt()
    key, fact = next(iter(at.core.open_asks.items()))
    assert not at.has("a.txt")
    at.core.decide = allow
    at.core.answer(key, allow(fact))
    assert at.text(await at.ended()) == "all done"
    assert at.has("a.txt")
    assert len(at.core.of("ask")) == 1


async def failed_twice(at: Driven) -> None:
    """500 twice is the agent's own affair."""
    at.order({"error": 500, "times": 2, "say": "through"})
    at.start()
    assert at.text(await at.ended()) == "through"


async def limited(at: Driven) -> None:
    """429 for ever is weather, before it acted."""
    at.order({"error": 429, "retryAfterS": 1})
    at.start()
    ended = await at.ended()
    assert ended.outcome == "failed", ended
    found = at.core.of("turn_failed")
    assert "weather" in found[0], found


async def dropped(at: Driven) -> None:
    """A stream that breaks once."""
    at.order({"drop": True, "times": 1, "say": "a text of several words"})
    at.start()
    assert at.text(await at.ended()).endswith("a text of several words")


async def handed_in(at: Driven) -> None:
    """Our own tool, started by the agent over stdio."""
    taken = at.base / "taken.jsonl"
    call = {"tool": {"name": "submit_result", "args": {"text": "the result"}}}
    at.order(call, {"say": "handed in"}, mcp_argv=(sys.executable, str(MCP), str(taken)))
    at.start()
    at.text(await at.ended())
    assert "the result" in taken.read_text()
    assert at.core.of("candidate")[-1]["submitted"] is True


SCENARIOS = (
    allowed, rejected, cancelled_in_wait, cancelled_in_tool, agent_killed, daemon_killed, asked_over_death,
    failed_twice, limited, dropped, handed_in,
)  # fmt: skip


async def drive(name: str, scenario: Callable[[Driven], Any], base: Path) -> None:
    """One scenario with one agent."""
    with ModelServer() as server:
        at = Driven(name, base, server)
        try:
            await scenario(at)
        finally:
            await at.end()
