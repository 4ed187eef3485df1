"""The driver `shell`: the prompt is a script for `/bin/sh -eu`, the result is what it prints.

The script is a file, never an argument and never a template. Inputs are files `$GRAPHD_INPUT_DIR/<name>`. The output
is the last line that is not blank, where it is a JSON object or array (a lone word, number or string is text), else
all of stdout. Exit code 0 is success, nothing else is. Source: execution.md, Drivers and How a turn ends.
"""

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.driver import Ending, Fact, Input, Launch, Line, Monologue, Order, PromptRefused
from graphd.children.environment import write_private
from graphd.children.journal import Record, read_err
from graphd.children.keeping.files import OUT
from graphd.children.sink import Sink
from graphd.core.model import Output

ERR_LIMIT: Final = 1 << 20
INLINE_LIMIT: Final = 64 << 10
LINE_LIMIT: Final = 4 << 20
REASON_LIMIT: Final = 2 << 10
PLACEHOLDER: Final = re.compile(r"\{\{\s*[A-Za-z_][\w-]*(?:\.[\w-]+)*\s*\}\}")
INPUT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ShellDriver:
    """Runs a script; says nothing to it."""

    def start(self, order: Order) -> Launch:
        """Write `script` and `inputs/`."""
        found = PLACEHOLDER.search(order.spec)
        if found:
            reason = t(
                "a shell script is no template: {found} would be run as it stands; read the file "
                "$GRAPHD_INPUT_DIR/<name> or the variable GRAPHD_VAR_<name>",
                found=found[0],
            )
            raise PromptRefused(reason)
        folder = order.folder / "inputs"
        folder.mkdir(mode=0o700, exist_ok=True)
        for given in order.inputs:
            _write_input(folder, given)
        script = order.folder / "script"
        content = order.spec.encode("utf-8", "surrogateescape")
        write_private(order.folder / "script.new", content, becomes=script, is_durable=False)
        return Launch(("/bin/sh", "-eu", str(script)))

    def prompt(self, order: Order) -> tuple[Line, ...]:
        """Nothing: the script is a file."""
        return ()

    def answer(self, key: str, option: str | None, text: str | None) -> tuple[Line, ...]:
        """Nothing: a shell asks nothing."""
        return ()

    def turn(self, session: str, text: str) -> tuple[Line, ...]:
        """Nothing: a script has one turn."""
        return ()

    def cancel(self, session: str | None, open_asks: tuple[str, ...]) -> tuple[Line, ...]:
        """Nothing: it gets the signals."""
        return ()

    def close(self, session: str | None) -> tuple[Line, ...]:
        """Nothing: it ends by itself."""
        return ()

    def fold(self, order: Order, *, out_bytes: int) -> "ShellFold":
        """Goes on where the folder's captured stdout ends."""
        return ShellFold(order.folder, out_bytes=out_bytes, limit_bytes=order.output_limit_bytes)


class ShellFold(Monologue):
    """Captures stdout to a bounded file. It makes no facts: a script's one result is its end."""

    def __init__(self, folder: Path, *, out_bytes: int, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._sink = Sink(folder, limit_bytes=limit_bytes)
        self._sink.demand(out_bytes)
        self._position = 0

    def feed(self, record: Record) -> list[Fact]:
        """Take the bytes of stdout that are not captured yet."""
        if record.kind == OUT:
            self._sink.take(record.out_offset, record.payload)
        self._position = record.end
        return []

    def release(self) -> int:
        """All that was fed is in the file."""
        self._sink.sync()
        return self._position

    def end(self, exit_record: dict[str, Any]) -> Ending:
        """Write `output`; success is exit code 0 alone."""
        output = self._capture()
        if exit_record["code"] == 0:
            return Ending("achieved", output=output)
        return Ending("failed", "exec_failed", self._reason(exit_record), output)

    def _capture(self) -> Output:
        line = self._sink.last_line(LINE_LIMIT)
        path = self._folder / "output"
        if line is not None and _is_json(line):
            write_private(self._folder / "output.new", line, becomes=path)
            total, media_type = len(line), "application/json"
        else:
            self._sink.keep_as(path)
            total, media_type = self._sink.end, "text/plain"
        with path.open("rb") as file:
            text = file.read(INLINE_LIMIT)
        return Output(_text(text), total, media_type, is_cut=total > len(text))

    def _reason(self, exit_record: dict[str, Any]) -> str:
        if exit_record.get("execError"):
            return t("could not be started: {trouble}", trouble=exit_record["execError"])
        total = exit_record["errBytes"]
        start = max(0, total - REASON_LIMIT)
        tail = read_err(self._folder, start, total - start, total=total, limit_bytes=ERR_LIMIT)
        said = printable(tail.decode("utf-8", "replace")).strip()
        if exit_record["signal"] is not None:
            name = signal.Signals(exit_record["signal"]).name
            return (
                t("ended by {signal}: {said}", signal=name, said=said) if said else t("ended by {signal}", signal=name)
            )
        code = exit_record["code"]
        return t("exit code {code}: {said}", code=code, said=said) if said else t("exit code {code}", code=code)


def printable(text: str) -> str:
    """Without control characters and escape sequences, newline and tab apart."""
    return CONTROL.sub("", text)


def _text(content: bytes) -> str:
    """For the database and for people: a character cut at the bound is dropped, what is no UTF-8 or NUL is replaced."""
    whole = content
    for _ in range(3):  # a character has 4 bytes at most
        try:
            return whole.decode().replace("\0", "\ufffd")
        except UnicodeDecodeError as trouble:
            if trouble.end < len(content) or len(content) < INLINE_LIMIT:
                break
            whole = whole[:-1]
    return content.decode("utf-8", "replace").replace("\0", "\ufffd")


def _is_json(line: bytes) -> bool:
    if line[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _write_input(folder: Path, given: Input) -> None:
    """A copy, never a link: the script may write to it, and the upstream's result is not its to change."""
    if not INPUT_NAME.match(given.name):
        raise PromptRefused(t("{given!r} can't be the name of an input file", given=given.name))
    path = folder / given.name
    if given.path is not None:
        try:
            shutil.copyfile(given.path, path)
        except FileNotFoundError:
            pass
        else:
            return
    path.write_text(given.text, encoding="utf-8", errors="surrogateescape")
