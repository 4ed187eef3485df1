"""Fork twice and become the daemon, so that no tree of processes that a caller's parent ends can reach it.

Run as `python -I -S launch.py ARGV…` with stdio set, and the readiness pipe as descriptor 3; every other
descriptor is closed. Standard library alone. Source: spec protocol.md, Daemon, socket, lock.
"""

import os
import sys

READY_FD = 3


def main(argv: list[str]) -> None:
    """Detach, then replace this process by `argv`.

    Trouble goes to stderr, which is the daemon's log; exit 127.
    """
    try:  # noqa: SIM105 - contextlib is not worth its import here
        os.setsid()
    except PermissionError:  # already a leader: then it has no terminal of anybody else's either
        pass
    if os.fork():
        os._exit(0)
    _close_the_rest()
    os.set_inheritable(READY_FD, True)
    os.chdir("/")  # holds no mount, and nothing in the caller's folder can be taken for a module of ours
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the daemon's own command line, made by `starting.daemon_argv`
    except OSError as error:
        os.write(2, f"graphd: cannot run {argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _close_the_rest() -> None:
    """By name where the system lists them: the limit may be a thousand million, and close_range forbidden."""
    try:
        fds = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - no pathlib here, it costs more than all else
    except OSError:
        os.closerange(READY_FD + 1, min(os.sysconf("SC_OPEN_MAX"), 65536))
        return
    for fd in fds:
        if fd > READY_FD:
            try:  # noqa: SIM105 - as above
                os.close(fd)
            except OSError:  # the one that listed them
                pass


if __name__ == "__main__":
    main(sys.argv[1:])
