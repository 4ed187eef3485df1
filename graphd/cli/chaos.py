"""`graphd demo --chaos`: kill daemon, keepers and clients under a live tree, then let the outside witness count.

Everything lies in a temporary folder of its own: no other workspace's daemon is touched, and only processes that the
daemon of this folder names, or that were started here, are killed, each through a pidfd after a look at its command
line.
"""

import asyncio
import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from graphd.cli.closing import is_at_rest
from graphd.cli.exits import FAILED, INFRA, OK, CommandRefused
from graphd.cli.following import Follower, Wishes
from graphd.cli.oracle import Tally, script, tally
from graphd.cli.talk import call, open_session
from graphd.cli.views import View, view_for
from graphd.cli.words import counted

Wire = dict[str, Any]
WIDTH, DEPTH = 6, 4
KILLS = 10
MAX_DAEMON_KILLS = 3  # the fifth start in ten minutes pauses every graph, and the first start counts
LIMIT_S = 150.0
_RESUMES = 8
_CLEARINGS = 10


@dataclass(slots=True)
class Ledger:
    """What was done and what was told: kills by kind, resumes, and every event that a client was told of."""

    kills: dict[str, int] = field(default_factory=lambda: {"daemon": 0, "keeper": 0, "client": 0})
    resumes: int = 0
    told: set[tuple[int, str, str]] = field(default_factory=set)


def nodes_of_chaos(oracle: Path) -> list[Wire]:
    """Four waves of six nodes; every node needs two of the wave before it."""
    quoted = shlex.quote(str(oracle))
    nodes: list[Wire] = []
    for wave in range(DEPTH):
        for place in range(WIDTH):
            slug = f"{'abcd'[wave]}{place + 1}"
            needs = [f"{'abcd'[wave - 1]}{p % WIDTH + 1}" for p in (place, place + 1)] if wave else []
            nodes.append({"slug": slug, "spec": script(quoted, slug), "worker": "shell", "needs": needs})
    return nodes


async def chaos(seed: int | None) -> int:
    """Run it; returns 0 if every promise held."""
    chosen = seed if seed is not None else random.SystemRandom().randrange(1_000_000)
    place = Path(tempfile.mkdtemp(prefix="graphd-chaos-"))
    workspace = place / "workspace"
    (workspace / ".agents").mkdir(parents=True)
    click.echo(f"chaos, seed {chosen}: {WIDTH * DEPTH} nodes, up to {KILLS} kills, everything below {place}", err=True)
    with _own_state(place / "state"):
        try:
            return await _Storm(workspace, place / "oracle", random.Random(chosen)).run()  # noqa: S311 - repeatable
        finally:
            await _stop_daemon(workspace)
            await _clear_away(place)


@contextlib.contextmanager
def _own_state(folder: Path) -> Iterator[None]:
    """All state of this demonstration in `folder`, for us and for all that we start."""
    before = {name: os.environ.get(name) for name in ("GRAPHD_STATE_DIR", "GRAPHD_WORKSPACE")}
    os.environ["GRAPHD_STATE_DIR"] = str(folder)
    os.environ.pop("GRAPHD_WORKSPACE", None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def _stop_daemon(workspace: Path) -> None:
    with contextlib.suppress(CommandRefused):
        session = await open_session(workspace)
        with contextlib.suppress(CommandRefused):
            await call(session, "graphd/stop", {"mode": "cancel"})
            async for _ in session.notifications():
                pass
        await session.close()


async def _clear_away(place: Path) -> None:
    """Remove the folder, again while a daemon that a killed client had just begun to start still writes into it."""
    for _ in range(_CLEARINGS):
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        await asyncio.sleep(0.3)
        if not place.exists():  # noqa: ASYNC240 - one look
            return


class _Storm:
    """One demonstration."""

    def __init__(self, workspace: Path, oracle: Path, choose: random.Random) -> None:
        self._workspace = workspace
        self._oracle = oracle
        self._choose = choose
        self._ledger = Ledger()
        self._view = view_for(as_json=False)
        self._client: subprocess.Popen[bytes] | None = None

    async def run(self) -> int:
        """Set the graph, follow it, kill, count."""
        session = await open_session(self._workspace)
        params: Wire = {"nodes": nodes_of_chaos(self._oracle), "title": "chaos", "limits": _limits()}
        graph = (await call(session, "workgraph/set", params))["graph"]
        await session.close()
        begun = time.monotonic()
        killing = asyncio.create_task(self._kill_at_random(graph))
        try:
            snapshot = await self._follow(graph, begun)
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            self._end_client()
        return await self._verdict(graph, snapshot)

    async def _follow(self, graph: str, begun: float) -> Wire | None:
        """The tree, again after every pause that the kills cause: resumed by us, as a person would."""
        snapshot: Wire | None = None
        while (left := LIMIT_S - (time.monotonic() - begun)) > 0:
            follower = _Witness(self._workspace, graph, Wishes(timeout_s=left), view=self._view, ledger=self._ledger)
            await follower.run()
            snapshot = follower.snapshot
            is_held_up = snapshot is not None and snapshot["status"] in ("infra_paused", "user_paused", "blocked")
            if not is_held_up or self._ledger.resumes >= _RESUMES or follower.was_left:
                return snapshot
            self._ledger.resumes += 1
            await self._go_on(graph)
        return snapshot

    async def _go_on(self, graph: str) -> None:
        session = await open_session(self._workspace)
        try:
            with contextlib.suppress(CommandRefused):  # it may have gone on by itself meanwhile
                await call(session, "workgraph/resume", {"graph": graph})
        finally:
            await session.close()

    # ---- killing --------------------------------------------------------------------------------------------------

    async def _kill_at_random(self, graph: str) -> None:
        while sum(self._ledger.kills.values()) < KILLS:
            self._start_client(graph)
            await asyncio.sleep(self._choose.uniform(0.6, 1.8))
            kinds = ["keeper", "client"]
            if self._ledger.kills["daemon"] < MAX_DAEMON_KILLS:
                kinds += ["daemon", "daemon"]
            kind = self._choose.choice(kinds)
            with contextlib.suppress(CommandRefused, OSError):
                if await self._kill(kind):
                    self._ledger.kills[kind] += 1
                    self._view.note(f"killed: {kind}", "red")

    async def _kill(self, kind: str) -> bool:
        if kind == "client":
            return self._end_client()
        session = await open_session(self._workspace)
        try:
            if kind == "daemon":
                return _kill_ours((await call(session, "graphd/health"))["pid"])
            trees = await call(session, "workgraph/processes")
        finally:
            await session.close()
        keepers = sorted(tree["keeperPid"] for tree in trees if tree.get("keeperPid") and tree["state"] == "live")
        return bool(keepers) and _kill_ours(self._choose.choice(keepers))

    def _start_client(self, graph: str) -> None:
        if self._client is None or self._client.poll() is not None:
            command = [sys.executable, "-m", "graphd", "watch", graph, "--json", "--workspace", str(self._workspace)]
            silent = subprocess.DEVNULL
            self._client = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)  # noqa: S603 - ourselves

    def _end_client(self) -> bool:
        if self._client is None or self._client.poll() is not None:
            return False
        self._client.kill()
        self._client.wait()
        return True

    # ---- counting -------------------------------------------------------------------------------------------------

    async def _verdict(self, graph: str, snapshot: Wire | None) -> int:
        if snapshot is None:
            click.echo("the graph was never seen: no verdict", err=True)
            return INFRA
        session = await open_session(self._workspace)
        try:
            events = await _all_events(session, graph)
        finally:
            await session.close()
        logged = {(e["rev"], e["kind"], e.get("node") or "") for e in events}
        first = min((e["rev"] for e in events), default=0)
        lost = [told for told in self._ledger.told if told[0] >= first and told not in logged]
        slugs = [node["slug"] for node in snapshot["nodes"]]
        lines = self._oracle.read_text(encoding="utf-8").splitlines() if self._oracle.exists() else []
        counts = tally(lines, slugs)
        is_complete = snapshot["status"] == "complete" and snapshot.get("outcome") == "ok"
        click.echo(_report(counts, self._ledger, lost=len(lost), status=snapshot["status"]))
        is_kept = is_complete and not lost and not counts.double_live and not counts.never_ended
        return OK if is_kept else FAILED


class _Witness(Follower):
    """A follower that writes down every event that it is told of."""

    def __init__(self, workspace: Path, graph: str, wishes: Wishes, *, view: View, ledger: Ledger) -> None:
        super().__init__(workspace, graph, wishes, view=view)
        self._ledger = ledger
        self.was_left = False

    def _take(self, update: Any) -> None:
        super()._take(update)
        if update.kind == "changed":
            for entry in update.params.get("history") or []:
                self._ledger.told.add((entry["rev"], entry["kind"], entry.get("node") or ""))

    def _leave(self) -> None:
        self.was_left = True
        super()._leave()

    async def _last_words(self, code: int) -> None:
        if self.snapshot is not None and not is_at_rest(self.snapshot):
            await super()._last_words(code)


def _limits() -> Wire:
    return {"concurrency": WIDTH, "attemptsPerNode": 20}


def _kill_ours(pid: int) -> bool:
    """SIGKILL to a process of ours; False where it is gone, or the number belongs to another by now."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"graphd" not in command and b"keeper" not in command:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


async def _all_events(session: Any, graph: str) -> list[Wire]:
    events: list[Wire] = []
    position: int | None = 0
    while position is not None:
        answer = await call(session, "workgraph/history", {"graph": graph, "after": position, "limit": 1000})
        events.extend(answer["events"])
        position = answer.get("next")
    return events


def _report(counts: Tally, ledger: Ledger, *, lost: int, status: str) -> str:
    """The count, line by line."""
    kills = ", ".join(counted(number, kind) for kind, number in ledger.kills.items())
    again = f"{len(counts.started_again)} ({', '.join(counts.started_again)})"
    rows = [
        ("killed", kills),
        ("resumed", f"{ledger.resumes} (the daemon pauses a graph after many restarts or losses in a row)"),
        ("nodes", f"{counts.nodes}, graph {status}"),
        ("started once", str(counts.started_once)),
        ("started again", f"{again}: their keeper was killed" if counts.started_again else "0"),
        ("never ended", str(len(counts.never_ended))),
        ("events told to us and lost", str(lost)),
        ("two attempts alive at once", str(len(counts.double_live))),
    ]
    return "\n".join(f"  {name:<28}{value}" for name, value in rows if not (name == "resumed" and not ledger.resumes))
