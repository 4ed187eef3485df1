"""P12: what a daemon with eight subscribers does while nothing happens: CPU, and voluntary context switches."""

import time

from benchmarks.machine import Activity
from benchmarks.report import Row, at_most
from benchmarks.rounds import Effort, progress
from benchmarks.start import Peer, RunningDaemon

SUBSCRIBERS = 8
SETTLING_S = 1.5


def idle(effort: Effort) -> list[Row]:
    """Windows of 5 s (quick: 2 s), graphd and the bare daemon side by side."""
    window_s = 2.0 if effort.is_quick else 5.0
    with RunningDaemon.graphd() as ours, RunningDaemon.bare() as theirs:
        peers = [subscribed(ours) for _ in range(SUBSCRIBERS)] + [theirs.connect() for _ in range(SUBSCRIBERS)]
        time.sleep(SETTLING_S)
        shares: list[list[float]] = [[], []]
        switches: list[list[float]] = [[], []]
        for number in range(effort.rounds):
            progress(f"P12, window {number + 1}/{effort.rounds}")
            before = [Activity.of(running.pid) for running in (ours, theirs)]
            time.sleep(window_s)
            after = [Activity.of(running.pid) for running in (ours, theirs)]
            for side in range(2):
                passed_s = after[side].at - before[side].at
                shares[side].append((after[side].cpu_s - before[side].cpu_s) / passed_s * 100)
                switches[side].append(after[side].voluntary - before[side].voluntary)
        for peer in peers:
            peer.close()
    progress("")
    why = f"something wakes {max(switches[0]) / window_s:.1f} times a second"
    return [
        Row("P12 idle CPU, 8 subscribers", "% of a core", shares[0], other=f"{max(shares[1]):.2g} % (bare daemon)",
            goal=at_most(0.1, is_ratio=False, note=" %"), why=why),
        Row(f"P12 voluntary context switches in {window_s:g} s", "", switches[0],
            other=f"{max(switches[1]):.0f} (bare daemon)", goal=at_most(0, is_ratio=False), why=why),
    ]  # fmt: skip


def subscribed(daemon: RunningDaemon) -> Peer:
    """A client that is told of every graph, activity included."""
    peer = daemon.connect()
    peer.call("workgraph/subscribe", {"activity": True})
    return peer
