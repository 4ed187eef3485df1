"""Keys of a terminal as names, one by one, without Enter. Ctrl-C stays a signal.

What is pasted comes as one `Pasted`, so that no text can be taken for commands (terminals bracket it on our wish).
"""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Final

_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_BRACKET_ON, _BRACKET_OFF = "\x1b[?2004h", "\x1b[?2004l"
_NAMES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1bOA": "up", "\x1bOB": "down",
    "\x1bOC": "right", "\x1bOD": "left", "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
    "\x1b[5~": "page up", "\x1b[6~": "page down", "\r": "enter", "\n": "enter", "\x7f": "backspace",
    "\b": "backspace", "\x1b": "escape", "\t": "tab",
}  # fmt: skip


class Pasted(str):
    """Text that was pasted."""

    __slots__ = ()


class Decoder:
    """Bytes of a terminal become keys: a character, or a name (`up`, `enter`, …). Unknown sequences are no key."""

    def __init__(self) -> None:
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, read: bytes) -> list[str]:
        """The keys that are whole; a sequence comes in one piece, but for a paste, which may be long."""
        text = self._held + self._characters.decode(read)
        self._held = ""
        keys: list[str] = []
        while text:
            if text.startswith(_PASTE):
                content, found, rest = text[len(_PASTE) :].partition(_PASTED)
                if not found:
                    self._held = text
                    break
                keys.append(Pasted(content))
                text = rest
                continue
            length = _length(text)
            name = _NAMES.get(text[:length], text[:length])
            if len(name) == 1 and not name.isprintable():
                name = ""
            if name and not name.startswith("\x1b"):
                keys.append(name)
            text = text[length:]
        return keys


def _length(text: str) -> int:
    """How much of the text is its first key: a character, or an escape sequence to its final byte."""
    if text[0] != "\x1b" or len(text) == 1:
        return 1
    if text[1] == "O":
        return min(3, len(text))
    if text[1] != "[":
        return 1 if text[1] == "\x1b" else 2  # with Alt: none of ours
    for at in range(2, len(text)):
        if "@" <= text[at] <= "~":
            return at + 1
    return len(text)


def is_in_front() -> bool:
    """Whether the terminal's keys are ours: a job in the background that takes them is stopped by the kernel."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal that controls no job
        return True


@contextlib.contextmanager
def single_keys(
    pressed: Callable[[str], None],
    *,
    stops: Callable[[], None] | None = None,
    goes_on: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Give each key to `pressed`, on the loop; afterwards the terminal is as it was.

    Where the process is stopped (Ctrl-Z), the shell has its terminal meanwhile: `stops` comes before, `goes_on` after.
    """
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()
    decoder = Decoder()

    def take() -> None:
        for key in decoder.feed(os.read(descriptor, 4096)):
            pressed(key)

    def begin() -> None:
        tty.setcbreak(descriptor, termios.TCSANOW)
        _tell(_BRACKET_ON)

    def end() -> None:
        _tell(_BRACKET_OFF)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def stop() -> None:
        end()
        if stops is not None:
            stops()
        signal.raise_signal(signal.SIGSTOP)
        begin()
        if goes_on is not None:
            goes_on()

    begin()
    loop.add_reader(descriptor, take)
    loop.add_signal_handler(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)
        loop.remove_reader(descriptor)
        end()


def _tell(sequence: str) -> None:
    """To the terminal that shows us, where it can understand."""
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        sys.stdout.write(sequence)
        sys.stdout.flush()
