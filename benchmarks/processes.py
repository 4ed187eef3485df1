"""Contestants are processes: start one in a fresh folder, read the one line that it prints, leave nothing behind."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAYLOADS: Final[dict[str, list[str]]] = {
    "noop": [],
    "true": ["/bin/true"],
    "python": [sys.executable, "-I", "-S", "-c", "pass"],
}
LIMIT_S: Final = 180.0

Result = dict[str, Any]


class ContestantFailed(Exception):
    """A contestant ended without a result; the message ends with what it wrote to stderr."""


def emit(**values: Any) -> None:
    """A contestant's result."""
    print("RESULT " + json.dumps(values), flush=True)


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    """A temporary folder, with all that `environment` and graphd's daemon need in it."""
    folder = Path(tempfile.mkdtemp(prefix="graphd-bench-"))
    for name in ("state", "config", "workspace"):
        (folder / name).mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Ours, with graphd's folders inside `folder`, and marks beside them."""
    return {
        **os.environ,
        "GRAPHD_STATE_DIR": str(folder / "state"),
        "GRAPHD_CONFIG_DIR": str(folder / "config"),
        "BENCH_MARKS": str(folder / "marks"),
        **more,
    }


def module(name: str, *arguments: object) -> list[str]:
    """The command line of a contestant of ours."""
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


def spawn(argv: Sequence[str], folder: Path) -> "subprocess.Popen[str]":
    """Start a contestant in a session of its own."""
    log = (folder / "stderr").open("a")
    with log:
        return subprocess.Popen(
            argv, cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True,
        )  # fmt: skip


def finish(process: "subprocess.Popen[str]", folder: Path) -> Result:
    """Wait for the result. Raises ContestantFailed."""
    try:
        said, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        kill(process)
        raise ContestantFailed(f"{process.args!r}: no result within {LIMIT_S:.0f} s") from None
    for line in said.splitlines():
        if line.startswith("RESULT "):
            result: Result = json.loads(line[7:])
            return result
    tail = (folder / "stderr").read_text(errors="replace")[-2000:]
    raise ContestantFailed(f"{process.args!r} ended with {process.returncode}:\n{tail}")


def run(argv: Sequence[str], folder: Path | None = None) -> Result:
    """Start a contestant, wait for its result; `FOLDER` in the command line is a fresh folder unless one is given."""
    if folder is None:
        with fresh_folder() as made:
            return run(argv, made)
    return finish(spawn([part.replace("FOLDER", str(folder)) for part in argv], folder), folder)


def kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL it, and wait."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def marks(folder: Path) -> list[int]:
    """The nodes that started so far, in order."""
    try:
        return [int(line) for line in (folder / "marks").read_bytes().split(b"\n")[:-1]]
    except FileNotFoundError:
        return []


def wait_for_marks(folder: Path, count: int, process: "subprocess.Popen[str]", *, pause_s: float = 0.0005) -> float:
    """The time (monotonic) at which `count` nodes had started. Raises ContestantFailed where it ends before."""
    path = folder / "marks"
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size >= 2 and path.read_bytes().count(b"\n") >= count:
                return time.monotonic()
        if process.poll() is not None:
            raise ContestantFailed(f"{process.args!r} ended before {count} nodes had started")
        time.sleep(pause_s)
    raise ContestantFailed(f"{process.args!r}: fewer than {count} nodes within {LIMIT_S:.0f} s")
