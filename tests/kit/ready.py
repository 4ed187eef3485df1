"""A process of the test's own that says on a pipe, in one line of JSON, when it is ready."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any


class ReadyProcess:
    """Started and waited for; `argv` gets `--ready-fd`, `line` is what it said."""

    def __init__(self, argv: list[str], environment: Mapping[str, str] | None = None) -> None:
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen(
            [*argv, "--ready-fd", str(write_end)], env=environment, pass_fds=[write_end], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            self.line: dict[str, Any] = json.loads(pipe.read() or b"{}")

    def ended(self) -> int:
        """Its exit code; it has to end by itself."""
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode
