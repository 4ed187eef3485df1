"""What the process trees of live attempts cost, read from /proc. Source: spec protocol.md (`processes`)."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Usage:
    """Memory now, CPU so far."""

    rss_bytes: int = 0
    cpu_s: float = 0.0


def usage_of(roots: list[int], *, proc: Path = Path("/proc")) -> dict[int, Usage]:
    """Per root pid the sum over it and everything below it; a process that is gone counts nothing. Blocks."""
    rows = _table(proc)
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in rows.items():
        children.setdefault(parent, []).append(pid)
    found = {}
    for root in roots:
        total = Usage()
        pending = [root]
        while pending:
            pid = pending.pop()
            if pid in rows:
                total.rss_bytes += rows[pid][1].rss_bytes
                total.cpu_s += rows[pid][1].cpu_s
                pending.extend(children.get(pid, ()))
        found[root] = total
    return found


def _table(proc: Path) -> dict[int, tuple[int, Usage]]:
    rows = {}
    for entry in proc.iterdir() if proc.is_dir() else ():
        if not entry.name.isdecimal():
            continue
        try:
            values = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            cpu_s = (int(values[11]) + int(values[12])) / _TICKS
            rows[int(entry.name)] = (int(values[1]), Usage(int(values[21]) * _PAGE_BYTES, cpu_s))
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked
    return rows
