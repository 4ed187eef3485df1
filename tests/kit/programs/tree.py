"""Forks grandchildren of one awkward kind each, writes their pids to a file, sleeps. Usage: tree.py PIDFILE [leave]."""

import os
import signal
import sys
import time


def record(kind: str) -> None:
    with open(sys.argv[1], "a") as file:
        file.write(f"{kind} {os.getpid()}\n")


def fork(kind: str) -> None:
    if os.fork():
        return
    if kind == "setsid":
        os.setsid()
    elif kind == "double":
        os.setsid()
        if os.fork():
            os._exit(0)
    elif kind == "ignores":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif kind == "bare":
        os.setsid()
        record(kind)
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    record(kind)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(1000)


KINDS = ("plain", "setsid", "double", "ignores", "stopped", "bare")
for kind in KINDS:
    fork(kind)
while True:
    with open(sys.argv[1], "a+") as file:
        file.seek(0)
        if len(file.readlines()) == len(KINDS):
            break
    time.sleep(0.01)
os.rename(sys.argv[1], sys.argv[1] + ".done")
if sys.argv[2:] == ["leave"]:
    print("left")
    sys.exit(0)
time.sleep(1000)
