"""One attempt as the supervisor sees it: started, captured, stopped, adopted, lost; with real keepers and trees."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphd.children.abandoned import collect_settled, end_unknown
from graphd.children.attempt import Recorded, look, make_folder
from graphd.children.driver import Input, Order
from graphd.children.identity import Dead, Unknown, abandoned, is_locked, keepers, read_identity, reap_strangers
from graphd.children.journal import read_log
from graphd.children.keeping.tree import look_at_all
from graphd.children.results import ERR_LIMIT
from graphd.children.run import AttemptFenced, KeptRun
from graphd.children.shell import ShellDriver
from graphd.core.commands import AttemptEnded
from tests.kit.kept import PROGRAMS, STORE, Heard, is_gone, is_over, make_order, raw_keeper, until

TREE = f"exec {sys.executable} {PROGRAMS}/tree.py"


@pytest.fixture(autouse=True)
def nothing_leaks() -> Any:
    """No keeper and no descriptor of this process outlives a test."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    while abandoned:  # keepers of a "daemon" that crashed in this process: all are collected or dead
        reap_strangers(os_children())
    assert not keepers
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def os_children() -> list[int]:
    return [seen.pid for seen in look_at_all() if seen.parent == os.getpid()]


async def run(order: Order, heard: Heard | None = None) -> AttemptEnded:
    kept = KeptRun(order, heard or Heard())
    ended = await kept.start()
    await kept.collect()
    return ended


async def crash(kept: KeptRun, task: "asyncio.Task[AttemptEnded]") -> None:
    """What a SIGKILL of the daemon looks like to a keeper: the connection ends without a word."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await kept.let_go()


def text_of(ended: AttemptEnded) -> str:
    assert ended.output is not None
    return ended.output.text


async def test_stdout_is_the_output_and_a_last_json_line_wins(tmp_path: Path) -> None:
    heard = Heard()
    ended = await run(make_order(tmp_path, "echo one; echo two >&2; echo three"), heard)
    assert (ended.outcome, ended.exit_code, text_of(ended)) == ("achieved", 0, "one\nthree\n")
    assert ended.output is not None
    assert (ended.output.media_type, ended.output.is_cut, ended.output.total_bytes) == ("text/plain", False, 10)
    assert heard.identities[0].pid > 0
    assert sorted(b"".join(heard.chunks).split()) == [b"one", b"three", b"two"]
    folder = make_order(tmp_path).folder
    assert (folder / "output").read_bytes() == b"one\nthree\n"
    assert {b"".join(p for s, p in read_log(folder, err_limit_bytes=ERR_LIMIT) if s == "err")} == {b"two\n"}
    spec = "echo noise; echo '{\"verdict\": \"ACCEPT\"}'; echo; echo '  '"
    ended = await run(make_order(tmp_path, spec, folder=tmp_path / "2"))
    assert ended.output is not None
    assert (text_of(ended), ended.output.media_type) == ('{"verdict": "ACCEPT"}', "application/json")
    for number, line in enumerate(("true", "42", '"word"', "{broken", "[NaN]")):
        ended = await run(make_order(tmp_path, f"echo '{line}'", folder=tmp_path / f"t{number}"))
        assert ended.output is not None
        assert ended.output.media_type == "text/plain", line


async def test_needs_are_files_inputs_are_variables_and_the_environment_is_the_orders(tmp_path: Path) -> None:
    whole = tmp_path / "upstream-output"
    whole.write_text("the whole of it")
    inputs = (Input("discover", "the who", whole), Input("other", "ünïcode"), Input("gone", "text", tmp_path / "no"))
    spec = """
        cat "$GRAPHD_INPUT_DIR/discover" "$GRAPHD_INPUT_DIR/other" "$GRAPHD_INPUT_DIR/gone"; echo
        echo changed > "$GRAPHD_INPUT_DIR/discover"
        echo "$GRAPHD_VAR_name|$GRAPHD_WORKSPACE|$GRAPHD_ATTEMPT|${SECRET-unset}|$(wc -c < "$GRAPHD_TOKEN_FILE")|$PWD"
    """
    os.environ["SECRET"] = "x"
    try:
        order = make_order(tmp_path, spec, inputs=inputs, variables={"name": "a b; $(x)"})
        ended = await run(order)
    finally:
        del os.environ["SECRET"]
    first, second = text_of(ended).splitlines()
    assert first == "the whole of itünïcodetext"
    assert second == f"a b; $(x)|{tmp_path}|{order.cookie}|unset|64|{tmp_path}"
    assert whole.read_text() == "the whole of it"
    assert (order.folder / "token").stat().st_mode & 0o777 == 0o600


async def test_values_that_no_environment_holds_are_mended(tmp_path: Path) -> None:
    """An item of a list is JSON of a child: it may have NUL in it, or the half of a character."""
    ended = await run(make_order(tmp_path, 'echo "$GRAPHD_VAR_n"', variables={"n": "a\0b\ud83dc\udcff"}))
    assert (ended.outcome, text_of(ended)) == ("achieved", "a\ufffdb\ufffdc\ufffd\n"), ended.reason


async def test_failures_say_exit_code_or_signal_and_the_end_of_stderr(tmp_path: Path) -> None:
    ended = await run(make_order(tmp_path, "printf 'a\\033[31mred\\007\\n' >&2; exit 7"))
    assert (ended.outcome, ended.failure_class, ended.exit_code) == ("failed", "exec_failed", 7)
    assert ended.reason == "exit code 7: ared"
    ended = await run(make_order(tmp_path, "kill -9 $$", folder=tmp_path / "2"))
    assert (ended.outcome, ended.signal, ended.reason) == ("failed", signal.SIGKILL, "ended by SIGKILL")
    ended = await run(make_order(tmp_path, "kill -40 $$", folder=tmp_path / "2a"))
    assert (ended.outcome, ended.signal, ended.reason) == ("failed", 40, "ended by SIG40"), "one without a name"
    ended = await run(make_order(tmp_path, "echo $undefined", folder=tmp_path / "3"))
    assert ended.outcome == "failed"
    ended = await run(make_order(tmp_path, cwd=tmp_path / "nowhere", folder=tmp_path / "4"))
    assert ended.outcome == "failed"
    assert "No such file" in (ended.reason or "")
    ended = await run(make_order(tmp_path, "yes error | head -c 3000000 >&2; exit 1", folder=tmp_path / "5"))
    assert len(ended.reason or "") < 2200
    assert (tmp_path / "5" / "err").stat().st_size == ERR_LIMIT


async def test_what_can_not_be_started_fails_and_starts_nothing(tmp_path: Path) -> None:
    ended = await run(make_order(tmp_path, "echo {{ discover.output }}"))
    assert ended.outcome == "failed"
    assert "no template" in (ended.reason or "")
    ended = await run(make_order(tmp_path, inputs=(Input("../x", ""),), folder=tmp_path / "2"))
    assert ended.outcome == "failed"
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").touch()
    ended = await run(make_order(tmp_path, folder=tmp_path / "file" / "3"))
    assert ended.outcome == "failed"
    kept = KeptRun(make_order(tmp_path, f"touch {tmp_path}/ran", folder=tmp_path / "4"), Heard())
    kept.request_stop()
    assert (await kept.start()).outcome == "put_back"
    assert not (tmp_path / "ran").exists()


async def test_a_stop_before_the_keeper_says_anything_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHD_FAILPOINT", "keeper.lock.before:1:stop")
    order = make_order(tmp_path, f"touch {tmp_path}/ran")
    kept = KeptRun(order, Heard())
    task = asyncio.create_task(kept.start())
    await until(lambda: keepers)
    await asyncio.sleep(0.2)
    kept.request_stop()
    assert (await task).outcome == "put_back"
    await kept.collect()
    assert not (tmp_path / "ran").exists()


async def test_a_stop_ends_every_shape_of_tree_before_it_says_so(tmp_path: Path) -> None:
    """setsid, double fork, TERM ignored, stopped, without cookie: all pidfds are over when the settlement returns."""
    kept = KeptRun(make_order(tmp_path, f"{TREE} {tmp_path}/pids"), Heard())
    task = asyncio.create_task(kept.start())
    await until((tmp_path / "pids.done").exists)
    pids = [int(line.split()[1]) for line in (tmp_path / "pids.done").read_text().splitlines()]
    pidfds = [os.pidfd_open(pid) for pid in pids]
    assert len(pidfds) == 6
    assert not any(is_over(fd) for fd in pidfds)
    kept.request_stop()
    ended = await task
    assert all(is_over(fd) for fd in pidfds)
    for fd in pidfds:
        os.close(fd)
    assert ended.outcome == "failed"
    assert ended.signal == signal.SIGINT
    await kept.collect()


async def test_what_an_agent_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    ended = await run(make_order(tmp_path, f"{TREE} {tmp_path}/pids leave"))
    assert (ended.outcome, text_of(ended)) == ("achieved", "left\n")
    pids = [int(line.split()[1]) for line in (tmp_path / "pids.done").read_text().splitlines()]
    assert all(is_gone(pid) for pid in pids)


async def test_closed_stdout_is_no_end_and_held_stdout_does_not_delay_one(tmp_path: Path) -> None:
    begun = time.monotonic()
    ended = await run(make_order(tmp_path, "echo first; exec >&- 2>&-; sleep 0.5"))
    assert time.monotonic() - begun > 0.5
    assert (ended.outcome, text_of(ended)) == ("achieved", "first\n")
    begun = time.monotonic()
    ended = await run(make_order(tmp_path, "sleep 60 & echo first", folder=tmp_path / "2"))
    assert time.monotonic() - begun < 4
    assert (ended.outcome, text_of(ended)) == ("achieved", "first\n")


async def test_a_flood_is_bounded_everywhere_and_its_tail_is_kept(tmp_path: Path) -> None:
    spec = "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo the end"
    order = make_order(tmp_path, spec, output_limit_bytes=1 << 20)
    kept = KeptRun(order, Heard())
    task = asyncio.create_task(kept.start())
    peak_kb, journal_bytes = 0, 0
    identity = await until(lambda: read_identity(order.folder))
    while not task.done():
        status = Path(f"/proc/{identity['keeperPid']}/status").read_text()
        peak_kb = max(peak_kb, int(status.split("VmHWM:")[1].split()[0]))
        journal_bytes = max(journal_bytes, (order.folder / "journal").stat().st_size)
        await asyncio.sleep(0.01)
    ended = await task
    await kept.collect()
    assert ended.output is not None
    assert (ended.output.total_bytes, ended.output.is_cut, len(ended.output.text)) == (50_000_009, True, 65536)
    kept_bytes = (order.folder / "output").read_bytes()
    assert len(kept_bytes) == 1 << 20
    assert kept_bytes.endswith(b"x\nthe end\n")
    print(f"keeper peak {peak_kb} kB, journal {journal_bytes} bytes")
    assert peak_kb < 40_000
    assert journal_bytes < 66 << 20


async def test_long_lines_bad_utf8_and_nuls_are_taken_as_they_come(tmp_path: Path) -> None:
    spec = "printf 'a\\377b\\000c\\n'; head -c 3000000 /dev/zero | tr '\\0' 'y'"
    ended = await run(make_order(tmp_path, spec))
    assert text_of(ended).startswith("a\ufffdb\ufffdc\nyyy")
    assert ended.output is not None
    assert ended.output.total_bytes == 3_000_006
    assert (make_order(tmp_path).folder / "output").read_bytes().startswith(b"a\xffb\0c\ny")


async def test_the_deadline_is_told_once_and_counts_from_the_keepers_start(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, "sleep 100", timeout_s=0.6), Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    await until(lambda: heard.identities)
    begun = time.monotonic()
    await crash(kept, task)
    assert heard.deadlines == 0
    await asyncio.sleep(0.3)
    kept = KeptRun(replace(order, epoch=2), heard)
    heard.on_deadline = kept.request_stop
    ended = await kept.adopt()
    assert time.monotonic() - begun < 2.0
    assert heard.deadlines == 1
    assert ended.signal == signal.SIGINT
    await kept.collect()


async def test_a_crash_of_the_daemon_changes_nothing_for_the_agent(tmp_path: Path) -> None:
    """The same process goes on under daemon after daemon, the output is whole, and it was started once."""
    spec = f"echo started >> {tmp_path}/oracle; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"
    order, heard = make_order(tmp_path, spec), Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    for epoch in (2, 3, 4):
        await asyncio.sleep(0.2)
        await crash(kept, task)
        kept = KeptRun(replace(order, epoch=epoch), heard)
        task = asyncio.create_task(kept.adopt())
    ended = await task
    await kept.collect()
    assert (ended.outcome, text_of(ended)) == ("achieved", "".join(f"{n}\n" for n in range(1, 9)))
    assert (tmp_path / "oracle").read_text() == "started\n"
    assert len({identity.pid for identity in heard.identities}) == 1
    await until(lambda: not is_locked(order.folder))


async def test_a_flood_over_a_crash_is_captured_whole(tmp_path: Path) -> None:
    order = make_order(tmp_path, "seq 1 3000000", output_limit_bytes=64 << 20)
    kept = KeptRun(order, Heard())
    task = asyncio.create_task(kept.start())
    for epoch in (2, 3):
        await until(lambda: list(order.folder.glob("stdout.*")))
        await asyncio.sleep(0.15)
        await crash(kept, task)
        kept = KeptRun(replace(order, epoch=epoch), Heard())
        task = asyncio.create_task(kept.adopt())
    ended = await task
    await kept.collect()
    assert (ended.outcome, ended.reason) == ("achieved", None)
    assert (order.folder / "output").read_bytes() == b"".join(b"%d\n" % n for n in range(1, 3_000_001))


async def test_a_newer_daemon_fences_the_older_one(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, "sleep 100"), Heard()
    older = KeptRun(order, heard)
    task = asyncio.create_task(older.start())
    await until(lambda: heard.identities)
    newer = KeptRun(replace(order, epoch=2), heard)
    adopting = asyncio.create_task(newer.adopt())
    with pytest.raises(AttemptFenced):
        await task
    newer.request_stop()
    await adopting
    await newer.collect()


async def test_an_end_that_nobody_saw_is_settled_from_its_record(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, "sleep 0.3; echo done", linger_s=0.8), Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    await until(lambda: heard.identities)
    await crash(kept, task)
    await until(lambda: isinstance(look(order.folder), Recorded))
    kept = KeptRun(replace(order, epoch=2), heard)
    ended = await kept.adopt()
    await kept.collect()
    assert (ended.outcome, text_of(ended)) == ("achieved", "done\n")
    again = await KeptRun(replace(order, epoch=3), heard).adopt()
    assert (again.outcome, text_of(again)) == ("achieved", "done\n")
    (order.folder / "exit.json").write_bytes(b"")
    assert (await KeptRun(order, heard).adopt()).outcome == "lost"
    shutil.rmtree(order.folder)
    assert (await KeptRun(order, heard).adopt()).outcome == "put_back"


async def test_a_journal_that_is_shorter_than_what_is_known_makes_it_lost(tmp_path: Path) -> None:
    order = make_order(tmp_path, "echo 123456789")
    await run(order)
    journal = order.folder / "journal"
    journal.write_bytes(journal.read_bytes()[:-1])
    assert (await KeptRun(order, Heard()).adopt()).outcome == "lost"


async def test_an_ended_linger_is_lost_and_no_verdict(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, "sleep 100", linger_s=0.1), Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    await until(lambda: heard.identities)
    await crash(kept, task)
    await until(lambda: isinstance(look(order.folder), Recorded))
    ended = await KeptRun(order, heard).adopt()
    assert (ended.outcome, ended.signal) == ("lost", signal.SIGTERM)


async def test_nothing_started_is_put_back(tmp_path: Path) -> None:
    order = make_order(tmp_path)
    assert (await KeptRun(order, Heard()).adopt()).outcome == "put_back"
    await asyncio.to_thread(make_folder, order, ShellDriver())
    assert (await KeptRun(order, Heard()).adopt()).outcome == "put_back"
    assert (order.folder / "void").exists()
    assert (await KeptRun(order, Heard()).adopt()).outcome == "put_back"


async def test_a_killed_keeper_is_lost_only_when_its_tree_is_dead(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, f"{TREE} {tmp_path}/pids", grace_s=0.5), Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    await until((tmp_path / "pids.done").exists)
    pids = [int(line.split()[1]) for line in (tmp_path / "pids.done").read_text().splitlines()]
    cookied = [os.pidfd_open(pid) for pid in pids[:5]]
    bare = os.pidfd_open(pids[5])  # env -i in a session of its own: found by the recorded tree, or not at all
    os.kill(heard.identities[0].keeper_pid, signal.SIGKILL)
    ended = await task
    await kept.collect()
    assert (ended.outcome, ended.reason) == ("lost", "its keeper died")
    assert all(is_over(fd) for fd in cookied)
    if not is_over(bare):
        signal.pidfd_send_signal(bare, signal.SIGKILL)
    for fd in (*cookied, bare):
        os.close(fd)


async def test_death_that_can_not_be_proven_is_stuck_until_it_can(tmp_path: Path) -> None:
    order, heard = make_order(tmp_path, "sleep 100"), Heard()
    keeper = await raw_keeper(order)
    os.kill(keeper.pid, signal.SIGKILL)
    await keeper.gone()
    path = order.folder / "keeper.json"
    identity = json.loads(path.read_text())
    path.write_text(json.dumps(identity | {"pidNamespace": "pid:[1]"}))
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.adopt())
    await until(lambda: heard.reasons)
    assert "another PID namespace" in heard.reasons[0]
    await kept.recheck()
    await until(lambda: len(heard.reasons) == 2)
    assert not task.done()
    path.write_text(json.dumps(identity))
    await kept.recheck()
    assert (await task).outcome == "lost"
    assert is_gone(identity["agentPid"])


async def test_a_silent_keeper_is_asked_again_and_a_stop_says_that_it_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphd.children.link.ANSWER_S", 0.1)
    monkeypatch.setattr("graphd.children.run.SETTLE_S", 0.1)
    order, heard = make_order(tmp_path, "sleep 100", grace_s=0.1), Heard()
    keeper = await raw_keeper(order)
    os.kill(keeper.pid, signal.SIGSTOP)
    kept = KeptRun(replace(order, epoch=2), heard)
    task = asyncio.create_task(kept.adopt())
    await asyncio.sleep(0.3)
    assert not task.done()
    assert not heard.reasons
    kept.request_stop()
    await until(lambda: heard.reasons, limit_s=20)
    assert heard.stuck_pids[0][0] == keeper.pid
    os.kill(keeper.pid, signal.SIGCONT)
    assert (await task).outcome == "failed"
    await kept.collect()
    await keeper.gone()


async def test_after_a_clean_detach_the_keeper_stays_and_is_adopted(tmp_path: Path) -> None:
    called = tmp_path / "called"
    order = make_order(tmp_path, "sleep 1.6; echo done", restart_argv=("/usr/bin/touch", str(called)))
    heard = Heard()
    kept = KeptRun(order, heard)
    task = asyncio.create_task(kept.start())
    await until(lambda: heard.identities)
    await kept.detach()
    await crash(kept, task)
    await asyncio.sleep(1.2)
    assert not called.exists()
    kept = KeptRun(replace(order, epoch=2), heard)
    assert (await kept.adopt()).outcome == "achieved"
    await kept.collect()


async def test_folders_without_a_run_are_collected_or_ended(tmp_path: Path) -> None:
    order = make_order(tmp_path, "exit 0")
    keeper = await raw_keeper(order)
    await until(lambda: (order.folder / "exit.json").exists())
    assert await collect_settled(order.folder, store=STORE, epoch=2)
    await keeper.gone()
    order = make_order(tmp_path, "trap '' TERM; sleep 100", folder=tmp_path / "2")
    keeper = await raw_keeper(order)
    proof = await end_unknown(order.folder, store="store-2", epoch=1, grace_s=0.3)
    assert isinstance(proof, Unknown)
    assert await end_unknown(order.folder, store=STORE, epoch=2, grace_s=0.3) == Dead()
    await keeper.gone()
    order = make_order(tmp_path, "sleep 100", folder=tmp_path / "3")
    keeper = await raw_keeper(order)
    os.kill(keeper.pid, signal.SIGKILL)
    await keeper.gone()
    assert await end_unknown(order.folder, store=STORE, epoch=2, grace_s=0.3) == Dead()
