"""The keeper as a program: handshake, fence, compare-and-append, trim, linger, calling the daemon back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphd.children.attempt import Kept, Nothing, Orphaned, Recorded, look, make_folder
from graphd.children.identity import is_locked, read_identity
from graphd.children.journal import Decoder, read_records
from graphd.children.keeping.files import IN, OUT
from graphd.children.keeping.tree import look_at
from graphd.children.link import AttachRefused, CallRefused, KeeperSilent, Link, LinkLost
from graphd.children.shell import ShellDriver
from graphd.children.spawn import KEEPER, spawn_keeper
from tests.kit.kept import STORE, TalkDriver, is_gone, make_order, raw_keeper, until


@asynccontextmanager
async def reading(link: Link) -> AsyncIterator[list[Any]]:
    """Read a link in the background; what came is in the list."""
    seen: list[Any] = []

    async def read() -> None:
        with suppress(LinkLost):
            async for event in link.events(Decoder(link.header)):
                seen.extend(event if isinstance(event, list) else [event])

    task = asyncio.create_task(read())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await link.close()


async def collect(folder: Path, epoch: int = 9) -> None:
    link = await Link.attach(folder, store=STORE, epoch=epoch)
    async with reading(link) as seen:
        await until(lambda: link.standing["exit"] or any(isinstance(e, dict) and e["event"] == "ended" for e in seen))
        await link.call("collect")


async def test_a_finished_agent_leaves_a_record_and_its_keeper_waits_to_be_collected(tmp_path: Path) -> None:
    order = make_order(tmp_path, "echo one; echo two >&2; exit 3")
    begun = time.perf_counter()
    keeper = await raw_keeper(order)
    print(f"keeper ready after {(time.perf_counter() - begun) * 1000:.0f} ms")
    await until(lambda: (order.folder / "exit.json").exists())
    assert isinstance(look(order.folder), Kept)
    await collect(order.folder)
    assert await keeper.gone() == 0
    found = look(order.folder)
    assert isinstance(found, Recorded)
    assert found.record is not None
    assert found.record["code"] == 3
    assert (found.record["outBytes"], found.record["errBytes"]) == (4, 4)
    assert read_identity(order.folder)["cookie"] == order.cookie  # type: ignore[index]


async def test_an_incomplete_launch_spec_claims_nothing(tmp_path: Path) -> None:
    order = make_order(tmp_path)
    launch = await asyncio.to_thread(make_folder, order, ShellDriver())
    spec = json.dumps(launch).encode()[:-1]
    argv = [sys.executable, "-I", "-S", str(KEEPER)]
    done = await asyncio.to_thread(subprocess.run, argv, cwd=order.folder, input=spec, capture_output=True)
    assert done.stdout == b""
    assert (order.folder / "intent").exists()


async def test_exactly_one_of_late_keeper_and_recovery_wins(tmp_path: Path) -> None:
    """Whoever renames `intent` first decides; a keeper that was too late spawns nothing."""
    outcomes = set()
    for number, delay_s in enumerate((0.0, 0.01, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06)):
        order = make_order(tmp_path, f"echo x >> {tmp_path}/ran{number}", folder=tmp_path / f"{number}")
        launch = await asyncio.to_thread(make_folder, order, ShellDriver())
        keeper = await spawn_keeper(order.folder, launch, {})
        await asyncio.sleep(delay_s)
        found = await asyncio.to_thread(look, order.folder)
        word = await keeper.first_word()
        outcomes.add(word)
        assert word == ("void" if isinstance(found, Nothing) else "ready")
        if word == "ready":
            await until((order.folder / "exit.json").exists)
            await collect(order.folder)
        await keeper.gone()
        assert (tmp_path / f"ran{number}").exists() == (word == "ready")
    assert "void" in outcomes


async def test_a_second_keeper_in_one_folder_ends_without_spawning(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100")
    launch = await asyncio.to_thread(make_folder, order, ShellDriver())
    pair = await asyncio.gather(*(spawn_keeper(order.folder, launch, {}) for _ in range(2)))
    words = await asyncio.gather(*(keeper.first_word() for keeper in pair))
    assert sorted(words) == ["ready", "void"]
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link) as seen:
        await link.call("kill")
        await until(lambda: any(isinstance(e, dict) for e in seen))
        await link.call("collect")
    await asyncio.gather(*(keeper.gone() for keeper in pair))


async def test_the_fence_refuses_other_stores_and_older_epochs_and_closes_older_connections(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100", epoch=3)
    keeper = await raw_keeper(order)
    for store, epoch, code in (("store-2", 9, "otherStore"), (STORE, 2, "staleEpoch")):
        with pytest.raises(AttachRefused) as refused:
            await Link.attach(order.folder, store=store, epoch=epoch)
        assert refused.value.code == code
    with pytest.raises(AttachRefused) as refused:
        await Link.attach(order.folder, store=STORE, epoch=3, start=1 << 40)
    assert refused.value.code == "beyondEnd"
    old = await Link.attach(order.folder, store=STORE, epoch=3)
    beside = await Link.attach(order.folder, store=STORE, epoch=3)
    new = await Link.attach(order.folder, store=STORE, epoch=4)
    for link in (old, beside):
        with pytest.raises(LinkLost):
            await anext(link.events(Decoder(link.header)))
        await link.close()
    with pytest.raises(AttachRefused):
        await Link.attach(order.folder, store=STORE, epoch=3)
    async with reading(new):
        assert (await new.call("status"))["phase"] == "running"
        with pytest.raises(CallRefused, match="notEnded"):
            await new.call("collect")
        await new.call("kill")
    await collect(order.folder)
    await keeper.gone()


async def test_a_process_of_the_tree_may_not_attach(tmp_path: Path) -> None:
    """Also when it went to another session: a subreaper has it below it all the same."""
    peer = (
        "import socket, struct, json; s = socket.socket(socket.AF_UNIX); s.connect('socket');"
        "b = json.dumps({'do': 'attach', 'v': 1, 'store': 'store-1', 'epoch': 99, 'from': 0}).encode();"
        "s.sendall(struct.pack('<BBI', 1, 67, len(b)) + b); print(s.recv(10000)[6:].decode())"
    )
    order = make_order(tmp_path, f'cd "$GRAPHD_INPUT_DIR/.."; (setsid {sys.executable} -c "{peer}" ) & wait')
    keeper = await raw_keeper(order)
    await until(lambda: (order.folder / "exit.json").exists())
    await collect(order.folder)
    await keeper.gone()
    out = b"".join(record.payload for record in read_records(order.folder) if record.kind == OUT)
    assert json.loads(out)["code"] == "descendant"


async def test_compare_and_append_takes_each_line_once(tmp_path: Path) -> None:
    order = make_order(tmp_path)
    keeper = await raw_keeper(order, driver=TalkDriver(tmp_path / "oracle", rounds=2))
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link):
        with pytest.raises(CallRefused, match="gap"):
            await link.call("append", seq=1, line="b")
        assert (await link.call("append", seq=0, line="a"))["taken"]
        assert not (await link.call("append", seq=0, line="a"))["taken"]
        with pytest.raises(CallRefused, match="badLine"):
            await link.call("append", seq=1, line="b\nc")
        await link.call("append", seq=1, line="ä")
        await link.call("append", seq=2, line="c")
        await until(lambda: (order.folder / "exit.json").exists())
        with pytest.raises(CallRefused, match="noStdin"):
            await link.call("append", seq=3, line="d")
    await collect(order.folder)
    await keeper.gone()
    assert (tmp_path / "oracle").read_text() == "a\nä\nc\n"
    sent = [record.payload.decode() for record in read_records(order.folder) if record.kind == IN]
    assert sent == ["a\n", "ä\n", "c\n"]


async def test_at_its_limit_it_stops_reading_and_a_trim_lets_it_go_on_with_nothing_lost(tmp_path: Path) -> None:
    order = make_order(tmp_path, "seq 1 60000; echo err >&2")
    keeper = await raw_keeper(order, journalLimitBytes=100_000)
    await until(lambda: (order.folder / "journal").stat().st_size > 100_000)
    out = b""
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    decoder, exit_record, ends = Decoder(link.header), None, []
    assert link.standing["stalled"] == "limit"
    assert link.standing["exit"] is None
    async for event in link.events(decoder):
        if isinstance(event, list):
            out += b"".join(record.payload for record in event if record.kind == OUT)
            ends += [record.end for record in event]
            link.post("trim", upTo=decoder.position)
        else:
            exit_record = event["exit"] if event["event"] == "ended" else exit_record
        if exit_record and decoder.position == exit_record["journalEnd"]:
            break
    await link.last("collect")
    await link.close()
    await keeper.gone()
    assert out == b"".join(b"%d\n" % n for n in range(1, 60001))
    assert exit_record is not None
    assert exit_record["outBytes"] == len(out)
    assert (order.folder / "journal").stat().st_size < 300_000
    left = list(read_records(order.folder))
    assert not left or left[-1].end == ends[-1]


async def test_a_full_disk_holds_the_bytes_and_says_so(tmp_path: Path) -> None:
    order = make_order(tmp_path, "echo one; sleep 0.3; echo two")
    keeper = await raw_keeper(order, failpoints={"arm": "keeper.append.before:1:raise"})
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link) as seen:
        await until(lambda: any(isinstance(e, dict) and e["event"] == "ended" for e in seen))
    assert link.standing["stalled"] == "disk" or any(isinstance(e, dict) and e.get("why") == "disk" for e in seen)
    assert b"".join(e.payload for e in seen if not isinstance(e, dict)) == b"one\ntwo\n"
    await collect(order.folder)
    await keeper.gone()


async def test_left_alone_it_ends_the_tree_after_the_linger_and_leaves_the_record(tmp_path: Path) -> None:
    order = make_order(tmp_path, f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done", linger_s=0.3)
    keeper = await raw_keeper(order)
    await until((tmp_path / "pid").exists)
    await (await Link.attach(order.folder, store=STORE, epoch=1)).close()
    begun = time.monotonic()
    await keeper.gone()
    assert time.monotonic() - begun >= 0.3
    found = look(order.folder)
    assert isinstance(found, Recorded)
    assert found.record is not None
    assert (found.record["endedBy"], found.record["signal"]) == ("linger", signal.SIGKILL)
    assert is_gone(int((tmp_path / "pid").read_text()))


async def test_it_calls_the_daemon_back_as_its_sibling_unless_told_to_leave_it(tmp_path: Path) -> None:
    """After the last connection ended, by the given command line, again and again until one attaches."""
    program = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getppid()} {os.getsid(0) == os.getpid()}\\n')"
    argv = [sys.executable, "-I", "-S", "-c", program, str(tmp_path / "called")]
    order = make_order(tmp_path, "sleep 100", restart_argv=tuple(argv))
    keeper = await raw_keeper(order, restartDelaysS=[0.4, 0.6, 60])
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link):
        await link.call("leave")
    await asyncio.sleep(0.8)
    assert not (tmp_path / "called").exists()
    await (await Link.attach(order.folder, store=STORE, epoch=1)).close()
    await until(lambda: (tmp_path / "called").exists() and len((tmp_path / "called").read_text().splitlines()) == 2)
    assert (tmp_path / "called").read_text() == f"{os.getpid()} True\n" * 2
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link):
        await link.call("kill")
    await collect(order.folder)
    await keeper.gone()
    for _ in range(2):  # its siblings are our children
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


async def test_without_its_folder_it_ends_its_tree_when_left_alone(tmp_path: Path) -> None:
    order = make_order(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 100")
    keeper = await raw_keeper(order)
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    await asyncio.to_thread(subprocess.run, ["rm", "-rf", str(order.folder)], check=True)
    await link.close()
    await keeper.gone()
    assert is_gone(int((tmp_path / "pid").read_text()))


async def test_killed_at_any_point_of_its_start_it_never_leaves_an_agent_that_nobody_knows(tmp_path: Path) -> None:
    """Before `keeper.json` is in place no line of the agent runs; a fork behind the gate ends with its keeper."""
    points = ("lock.after", "claim.before", "claim.after", "bind.after", "socket.after", "spawn.after",
              "identity.before", "identity.after")  # fmt: skip
    for number, point in enumerate(points):
        order = make_order(tmp_path, f"touch {tmp_path}/ran{number}", folder=tmp_path / f"{number}")
        launch = await asyncio.to_thread(make_folder, order, ShellDriver())
        keeper = await spawn_keeper(order.folder, launch | {"failpoints": {"arm": f"keeper.{point}"}}, {})
        assert await keeper.first_word() == ""
        assert await keeper.gone() == -signal.SIGKILL
        await until(partial(lambda folder: not is_locked(folder), order.folder))
        found = look(order.folder)
        assert isinstance(found, Nothing if number < 2 else Orphaned), point
        await asyncio.sleep(0.05)
        assert not (tmp_path / f"ran{number}").exists(), point


async def test_a_silent_socket_is_silence_and_long_paths_are_reached(tmp_path: Path) -> None:
    with pytest.raises(KeeperSilent):
        await Link.attach(tmp_path, store=STORE, epoch=1)
    order = make_order(tmp_path, folder=tmp_path / ("d" * 100) / ("ü" * 60))
    keeper = await raw_keeper(order)
    await collect(order.folder)
    await keeper.gone()


async def test_sigterm_to_the_keeper_ends_the_tree_and_leaves_the_record(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100", linger_s=0.5)
    keeper = await raw_keeper(order)
    os.kill(keeper.pid, signal.SIGTERM)
    await until(lambda: (order.folder / "exit.json").exists())
    assert json.loads((order.folder / "exit.json").read_text())["endedBy"] == "signal"
    await collect(order.folder)
    await keeper.gone()


async def test_a_stopped_keeper_is_silent_and_not_gone(tmp_path: Path) -> None:
    order = make_order(tmp_path, "sleep 100")
    keeper = await raw_keeper(order)
    os.kill(keeper.pid, signal.SIGSTOP)
    with pytest.raises(KeeperSilent):
        await Link.attach(order.folder, store=STORE, epoch=1, wait_s=0.2)
    assert isinstance(look(order.folder), Kept)
    os.kill(keeper.pid, signal.SIGCONT)
    link = await Link.attach(order.folder, store=STORE, epoch=1)
    async with reading(link):
        await link.call("kill")
    await collect(order.folder)
    await keeper.gone()


def test_it_imports_nothing_but_the_library_and_its_own_parts() -> None:
    probe = (
        f"import sys; sys.path.append({str(KEEPER.parents[2])!r}); import graphd.children.keeping.keeper;"
        "print([m for m in sys.modules if m.partition('.')[0] not in sys.stdlib_module_names and m != '__main__'])"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, check=True)
    loaded = [name for name in eval(done.stdout) if not name.startswith("graphd.children.keep")]
    assert sorted(loaded) == ["graphd", "graphd.base", "graphd.base.plain_json", "graphd.children"]


async def test_the_agent_has_a_session_of_its_own_and_no_inherited_descriptor(tmp_path: Path) -> None:
    order = make_order(tmp_path, "ls -l /proc/self/fd | wc -l; ps -o sid= -p $$; echo $$; umask; exec cat")
    keeper = await raw_keeper(order)
    await until(lambda: (order.folder / "exit.json").exists())
    await collect(order.folder)
    await keeper.gone()
    out = b"".join(record.payload for record in read_records(order.folder)).split()
    assert int(out[0]) <= 5  # the header line, 0, 1, 2 and the folder that ls reads
    assert out[1] == out[2]
    before = os.umask(0)
    os.umask(before)
    assert int(out[3], 8) == before
    assert look_at(keeper.pid) is None
