"""Find or start one daemon, whatever lies in the state folder and whoever tries at the same time."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from graphd.client import starting
from graphd.client.attach import Attached, AttachRefused, DaemonStartFailure, DaemonUnreachable, attach
from graphd.client.frames import FrameReader, frame
from graphd.client.greeting import Greeting
from graphd.client.paths import AttachFailure, find_workspace
from tests.kit.fake_daemons import REPOSITORY, FakeDaemons, daemons

__all__ = ["daemons"]
CLIENT = str(REPOSITORY / "tests/kit/attach_client.py")


def reach(daemons: FakeDaemons, *, may_start: bool = True, patience_s: float = 5.0) -> Attached:
    root = find_workspace(daemons.workspace).root
    return attach(root, Greeting("test"), may_start=may_start, patience_s=patience_s)


def pid_of(daemons: FakeDaemons, **options: bool) -> int:
    attached = reach(daemons, **options)
    attached.connection.close()
    return int(attached.hello["daemon"]["pid"])


def ask(attached: Attached, method: str) -> dict[str, object]:
    frames = FrameReader()
    attached.connection.sendall(frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()))
    while (body := frames.take()) is None:
        frames.push(attached.connection.recv(65536))
    result = json.loads(body)["result"]
    assert isinstance(result, dict)
    return result


def race(daemons: FakeDaemons, count: int, **environment: str) -> list[dict[str, object]]:
    clients = [
        subprocess.Popen(
            [sys.executable, "-S", "-E", CLIENT, str(daemons.workspace)],
            stdout=subprocess.PIPE,
            env=os.environ | environment,
        )
        for _ in range(count)
    ]
    return [json.loads(client.communicate(timeout=30)[0]) for client in clients]


def test_the_first_client_starts_it_and_the_next_finds_it(daemons: FakeDaemons) -> None:
    first = pid_of(daemons)

    assert pid_of(daemons) == first
    assert pid_of(daemons, may_start=False) == first
    assert daemons.starts() == [first]


@pytest.mark.parametrize("alone", ["", "1"], ids=["leaving the start to one", "each starting one"])
def test_20_simultaneous_starts_make_one_daemon_that_serves_all(daemons: FakeDaemons, alone: str) -> None:
    daemons.use("--boot-s", "0.02", "--jitter-s", "0.05")
    for _ in range(5):
        before = len(daemons.starts())

        found = race(daemons, 20, JITTER_S="0.15", ALONE=alone)

        assert len({client.get("pid") for client in found}) == 1, found
        assert len(daemons.starts()) == before + 1
        assert daemons.live() == [found[0]["pid"]]
        daemons.kill()  # SIGKILL: the socket and the lock file stay for the next round


def test_a_socket_that_a_dead_daemon_left_is_replaced_by_the_next_daemon(daemons: FakeDaemons) -> None:
    first = pid_of(daemons)
    daemons.kill()
    left = os.stat(daemons.folder / "socket").st_ino

    with pytest.raises(DaemonUnreachable, match="no daemon"):
        reach(daemons, may_start=False)
    assert os.stat(daemons.folder / "socket").st_ino == left
    assert pid_of(daemons) != first


def test_a_foreign_pid_in_the_lock_file_means_nothing(daemons: FakeDaemons) -> None:
    reach(daemons).connection.close()
    daemons.kill()
    (daemons.folder / "lock").write_text(f"{os.getpid()}\n")

    assert pid_of(daemons) in daemons.live()


def test_a_socket_removed_under_a_live_daemon_comes_back_and_no_second_daemon_does(daemons: FakeDaemons) -> None:
    first = pid_of(daemons)
    (daemons.folder / "socket").unlink()

    assert pid_of(daemons) == first
    assert daemons.starts() == [first]


def test_a_state_folder_removed_during_the_search_is_made_again(daemons: FakeDaemons) -> None:
    first = pid_of(daemons)
    daemons.kill()
    shutil.rmtree(daemons.folder)

    assert pid_of(daemons) != first


@pytest.mark.parametrize("name", ["deep", "仓库 ü", "link"])
def test_any_path_will_do(daemons: FakeDaemons, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = daemons.root / name
    if name == "deep":
        place = daemons.root.joinpath(*["d" * 50] * 5)
        assert len(str(place)) > 222
        monkeypatch.setenv("GRAPHD_STATE_DIR", str(place / "state"))
    if name == "link":
        place.symlink_to(daemons.workspace)
    place.mkdir(parents=True, exist_ok=True)
    daemons.workspace = place

    attached = reach(daemons)
    attached.connection.close()

    assert attached.hello["workspace"] == os.path.realpath(place)
    assert attached.hello["heard"]["workspace"] == os.path.realpath(place)


def test_a_workspace_whose_name_is_no_text_is_served(daemons: FakeDaemons) -> None:
    daemons.workspace = Path(os.fsdecode(bytes(daemons.root) + b"/\xff\xfe"))
    daemons.workspace.mkdir()

    attached = reach(daemons)
    attached.connection.close()

    assert "workspace" not in attached.hello["heard"]


def test_the_daemon_is_on_its_own(daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(daemons.root)
    monkeypatch.setenv("GRAPHD_STATE_DIR", "state")
    leaked_read, leaked_write = os.pipe()
    os.set_inheritable(leaked_write, True)
    attached = reach(daemons)
    with attached.connection:
        facts = ask(attached, "test/facts")
    os.close(leaked_write)

    assert facts["sid"] != os.getsid(0)
    assert facts["sid"] != facts["pid"]  # no session leader, so it can never get a terminal
    assert facts["ppid"] != os.getpid()
    assert os.read(leaked_read, 1) == b""  # nobody else holds the other end
    os.close(leaked_read)
    fds = facts["fds"]
    assert isinstance(fds, list)
    assert not [fd for fd in fds if fd.startswith("pipe:")]
    log = str(daemons.folder / "daemon.log")
    assert facts["stdio"] == ["/dev/null", log, log]
    assert os.stat(log).st_mode & 0o777 == 0o600
    environment = facts["environment"]
    assert isinstance(environment, dict)
    assert environment["GRAPHD_STATE_DIR"] == str(daemons.root / "state")


def test_a_start_that_dies_shows_the_end_of_its_log_at_once(daemons: FakeDaemons) -> None:
    daemons.use("--die", "first trouble\nImportError: of the old run")
    with pytest.raises(DaemonStartFailure):
        reach(daemons)
    daemons.use("--die", "ImportError: no module named reality")
    begun = time.monotonic()

    with pytest.raises(DaemonStartFailure, match="no module named reality") as caught:
        reach(daemons)

    assert time.monotonic() - begun < 2
    assert "old run" not in caught.value.message
    assert "daemon.log" in caught.value.hint


def test_a_refusal_at_the_start_has_its_message_and_hint(daemons: FakeDaemons) -> None:
    daemons.use("--fail", "the state folder is on NFS")
    with pytest.raises(DaemonStartFailure) as caught:
        reach(daemons)

    assert (caught.value.message, caught.value.hint) == ("the state folder is on NFS", "Do it otherwise.")


def test_a_command_that_cannot_run_is_named(daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_DAEMON_ARGV", '["/nowhere/python"]')
    with pytest.raises(DaemonStartFailure, match="cannot run /nowhere/python"):
        reach(daemons)


def test_a_connection_that_ends_before_hello_is_answered_is_tried_again(daemons: FakeDaemons) -> None:
    daemons.use("--drop-first", "3")

    assert [pid_of(daemons)] == daemons.starts()


def test_a_slow_start_is_waited_for_and_a_slower_one_reported(daemons: FakeDaemons) -> None:
    daemons.use("--boot-s", "0.5")
    with pytest.raises(AttachFailure, match="not ready yet"):
        reach(daemons, patience_s=0.3)

    assert [pid_of(daemons)] == daemons.starts()


def test_a_daemon_that_does_not_answer_is_named_by_its_pid(daemons: FakeDaemons) -> None:
    daemons.use("--mute")
    with pytest.raises(DaemonUnreachable) as caught:
        reach(daemons, patience_s=1.0)

    (pid,) = daemons.starts()
    assert f"pid {pid}" in caught.value.message


def test_a_held_lock_without_a_listener_ends_in_the_reason(daemons: FakeDaemons) -> None:
    attached = reach(daemons)
    attached.connection.close()
    (pid,) = daemons.starts()
    os.kill(pid, signal.SIGSTOP)
    (daemons.folder / "socket").unlink()
    (daemons.folder / "lock").write_text("pid 77 version 0.0.1\n")
    try:
        with pytest.raises(DaemonUnreachable, match="holds the lock") as caught:
            reach(daemons, patience_s=1.5)
    finally:
        os.kill(pid, signal.SIGCONT)

    assert "pid 77" in caught.value.hint
    assert daemons.starts() == [pid]


def test_a_refused_hello_has_the_daemons_words(daemons: FakeDaemons) -> None:
    daemons.use("--refuse", "protocolMismatch")
    with pytest.raises(AttachRefused) as caught:
        reach(daemons)

    assert (caught.value.code, caught.value.message) == ("protocolMismatch", "not with you")
    assert caught.value.hint == "Use another version."


def test_a_protocol_that_we_do_not_speak_is_refused_with_both_versions(daemons: FakeDaemons) -> None:
    daemons.use("--protocol", "7")
    with pytest.raises(AttachRefused, match=r"daemon is graphd .* protocol 7 to 7, this is graphd .* 1 to 1") as caught:
        reach(daemons)
    assert caught.value.hint.startswith("Run: pipx upgrade workgraphd")


def test_an_older_daemon_that_stays_serves_where_the_protocols_meet(daemons: FakeDaemons) -> None:
    daemons.use("--version", "0.0.1", "--handover", "no")
    attached = reach(daemons)
    attached.connection.close()

    assert attached.hello["daemon"]["version"] == "0.0.1"
    assert len(daemons.starts()) == 1


@pytest.mark.parametrize("handover", ["yes", "unknown"])
def test_an_older_daemon_is_asked_to_go_once(daemons: FakeDaemons, handover: str) -> None:
    """The one that is started here claims to be as old: it serves, and is not asked again by this client."""
    daemons.use("--version", "0.0.1", "--handover", handover)
    attached = reach(daemons, may_start=False) if daemons.starts() else reach(daemons)
    attached.connection.close()
    assert len(daemons.starts()) == 2

    served = reach(daemons, may_start=False)
    served.connection.close()
    assert len(daemons.starts()) == 2, "who may start none takes over from none"


def test_a_newer_daemon_is_left_alone(daemons: FakeDaemons) -> None:
    daemons.use("--version", "99.0")
    for _ in range(2):
        attached = reach(daemons)
        attached.connection.close()
        assert attached.hello["daemon"]["version"] == "99.0"
    assert len(daemons.starts()) == 1


def test_a_listener_of_another_kind_is_refused(daemons: FakeDaemons) -> None:
    daemons.folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(daemons.folder / "socket"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(AttachRefused, match="does not speak our protocol"):
            reach(daemons)
        thread.join()


def test_inside_an_attempt_none_is_started_but_a_coming_one_is_waited_for(
    daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHD_ATTEMPT", "a@1")
    with pytest.raises(DaemonUnreachable):
        reach(daemons, patience_s=0.3)
    assert daemons.starts() == []

    root = os.path.realpath(daemons.workspace)
    daemons.folder.mkdir(parents=True, mode=0o700)
    keeper = threading.Timer(0.3, starting.start_daemon, [root, str(daemons.folder), starting.Patience(5)])
    keeper.start()
    assert [pid_of(daemons)] == daemons.starts()
    keeper.join()


def test_a_client_that_stops_while_it_starts_the_daemon_holds_nobody_up_for_long(
    daemons: FakeDaemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphd.client.attach.STARTER_PATIENCE_S", 0.5)
    daemons.folder.mkdir(parents=True, mode=0o700)
    with open(daemons.folder / "starting", "w") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        begun = time.monotonic()

        assert [pid_of(daemons)] == daemons.starts()
        assert 0.4 < time.monotonic() - begun < 3


def test_a_root_inside_a_live_workspace_is_the_outer_one_unless_it_has_its_own(daemons: FakeDaemons) -> None:
    outer, inner = daemons.workspace, daemons.workspace / "inner"
    inner.mkdir()
    assert find_workspace(inner).root == str(inner)
    reach(daemons).connection.close()

    found = find_workspace(inner)

    assert found.root == str(outer)
    assert str(inner) in found.note
    (inner / ".agents").mkdir()
    assert find_workspace(inner).root == str(inner)
    daemons.kill()
    (inner / ".agents").rmdir()
    assert find_workspace(inner).root == str(inner)
