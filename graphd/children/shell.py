"""The driver `shell`: the prompt is a script for `/bin/sh -eu`, the result is what it prints.

The script is a file, never an argument and never a template. Inputs are files `$GRAPHD_INPUT_DIR/<name>`. The output
is the last line that is not blank, where it is a JSON object or array (a lone word, number or string is text), else
all of stdout. Exit code 0 is success, nothing else is. Source: execution.md, Drivers and How a turn ends.
"""

import re
from pathlib import Path
from typing import Any, Final

from graphd.base.text import t
from graphd.children.driver import Ending, Fact, Launch, Monologue, Order, PromptRefused, Unspoken
from graphd.children.environment import write_private
from graphd.children.inputs import write_inputs
from graphd.children.journal import Record
from graphd.children.keeping.files import OUT
from graphd.children.results import INLINE_LIMIT, exit_reason, inline, is_json
from graphd.children.sink import Sink
from graphd.core.model import Output

LINE_LIMIT: Final = 4 << 20
PLACEHOLDER: Final = re.compile(r"\{\{\s*[A-Za-z_][\w-]*(?:\.[\w-]+)*\s*\}\}")


class ShellDriver(Unspoken):
    """Runs a script; says nothing to it."""

    is_plain = True

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
        write_inputs(order)
        script = order.folder / "script"
        content = order.spec.encode("utf-8", "surrogateescape")
        write_private(order.folder / "script.new", content, becomes=script, is_durable=False)
        return Launch(("/bin/sh", "-eu", str(script)))

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
        return Ending("failed", "exec_failed", exit_reason(self._folder, exit_record), output)

    def _capture(self) -> Output:
        line = self._sink.last_line(LINE_LIMIT)
        path = self._folder / "output"
        if line is not None and is_json(line):
            write_private(self._folder / "output.new", line, becomes=path)
            total, media_type = len(line), "application/json"
        else:
            self._sink.keep_as(path)
            total, media_type = self._sink.end, "text/plain"
        with path.open("rb") as file:
            return inline(file.read(INLINE_LIMIT), total, media_type)
