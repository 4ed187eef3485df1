"""What the operating system says of processes: CPU, memory, wake-ups, bytes; and what machine this is."""

import os
import platform
import re
import resource
import shutil
import sqlite3
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_marks: list[int] = []


def mark(node: int) -> None:
    """Note on `$BENCH_MARKS` that a node started: one O_APPEND write, the same for every contestant."""
    if not _marks:
        path = os.environ.get("BENCH_MARKS")
        _marks.append(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if path else -1)
    if _marks[0] >= 0:
        os.write(_marks[0], b"%d\n" % node)


def cpu_s() -> float:
    """CPU seconds of this process and its reaped children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def peak_mb() -> float:
    """This process's own peak RSS (not `ru_maxrss`, which a process inherits over exec)."""
    return status_mb(os.getpid(), "VmHWM")


def status_mb(pid: int, field: str) -> float:
    """`VmRSS` or `VmHWM` of a process."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else float("nan")


@dataclass(slots=True, frozen=True)
class Activity:
    """What all threads of a process did so far."""

    at: float
    cpu_s: float
    voluntary: int

    @classmethod
    def of(cls, pid: int) -> "Activity":
        """Read it: CPU in nanosecond resolution from schedstat, voluntary context switches from status."""
        cpu_ns = voluntary = 0
        for thread in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns += int((thread / "schedstat").read_text().split()[0])
            found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)
            voluntary += int(found[1]) if found else 0
        return cls(time.monotonic(), cpu_ns / 1e9, voluntary)


def bytes_below(folder: Path) -> int:
    """Sizes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def description() -> dict[str, str]:
    """The machine class and the versions that a table is good for."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": str(len(os.sched_getaffinity(0))),
        "cpu": _cpu_name(),
        "kernel": platform.release(),
        "filesystem": _filesystem(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "make": _version("make"),
        "ninja": _version("ninja"),
        "strace": _version("strace"),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu_name() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _filesystem() -> str:
    temporary = os.environ.get("TMPDIR", "/tmp")
    found = subprocess.run(["df", "--output=fstype", temporary], capture_output=True, text=True, check=False)
    return (found.stdout.split() or ["unknown"])[-1]


def _version(tool: str) -> str:
    if shutil.which(tool) is None:
        return "missing"
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d[\w.]*", said)
    return found[0] if found else "unknown"
