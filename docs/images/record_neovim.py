"""Records docs/images/neovim-dark.svg and neovim-light.svg: a real Neovim in a terminal, with a release check at work.

Run it from the repository's root: `.venv/bin/python docs/images/record_neovim.py`. It needs tmux and the extra
`editors`. Everything lies in a temporary folder, and the daemon that it starts is ended again.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kit.agents import AgentWorkspace, asks
from tests.kit.neovim import COLUMNS, Tmux, workflow
from tests.kit.workspaces import Workspace

ROWS = 27
# The colours of Neovim's own two schemes.
THEMES = {
    "dark": TerminalTheme((20, 22, 27), (224, 226, 234), [(0, 0, 0)] * 8, [(0, 0, 0)] * 8),
    "light": TerminalTheme((224, 226, 234), (20, 22, 27), [(0, 0, 0)] * 8, [(0, 0, 0)] * 8),
}
RELEASE = """title: Release check
nodes:
  - { id: lint, run: make lint }
  - { id: unit, run: make test }
  - { id: docs, run: make docs }
  - id: review
    needs: [lint]
    worker: build
    prompt: What changed since the last tag, and what deserves a look?
  - id: report
    needs: [unit, docs, review]
    run: cat "$GRAPHD_INPUT_DIR"/*
"""
MAKEFILE = """lint:
\t@echo no problems in 214 files
test:
\t@echo 188 of 312; sleep 600
docs:
\t@echo cannot find index.md >&2; exit 2
"""


def show(editor: Tmux, room: Workspace) -> None:
    """Up to the moment that the picture shows."""
    editor.command("set laststatus=2 number signcolumn=no noruler noshowcmd")
    editor.command("set statusline=\\ %{v:lua.require'graphd'.statusline()}")
    editor.edit(workflow(room, RELEASE, "release"))
    editor.command("Graphd run")
    editor.command("Graphd tree")
    editor.sees("✗ docs", "review  awaiting permission", "188 of 312")
    editor.command("call search('● review')")
    editor.command("echo ''")
    editor.keys("a")
    editor.sees("review asks")


def picture(ansi: str, background: str) -> str:
    """The cells as an SVG that fetches nothing: the fonts of the reader's machine have to do."""
    paper = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="truecolor")
    for line in ansi.splitlines():
        paper.print(Text.from_ansi(line), no_wrap=True, crop=False, soft_wrap=True)
    drawn = paper.export_svg(title="Neovim", theme=THEMES[background])
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def record(background: str) -> None:
    """Write one picture."""
    with tempfile.TemporaryDirectory(prefix="gn") as folder:
        room = Workspace(Path(folder))
        (room.root / ".agents" / "workflows").mkdir(parents=True)
        (room.root / "Makefile").write_text(MAKEFILE)
        AgentWorkspace(room, [asks("/etc/hosts"), {"say": "done"}])
        editor = Tmux(room, background=background, rows=ROWS)
        try:
            show(editor, room)
            Path(__file__).with_name(f"neovim-{background}.svg").write_text(
                picture(editor.colours(), background), encoding="utf-8"
            )
        finally:
            editor.close()
            room.end()


if __name__ == "__main__":
    for name in THEMES:
        record(name)
