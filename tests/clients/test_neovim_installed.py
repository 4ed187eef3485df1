"""The client as it is installed: lazy, helped, checked, spoken in two languages, and set by `vim.g.graphd`."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.neovim import BIN, CLIENT, Neovim, workflow
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
LOADED = """
return vim.tbl_filter(function(name) return vim.startswith(name, 'graphd') end, vim.tbl_keys(package.loaded))
"""
OURS = """
local maps = vim.tbl_filter(function(map)
  return (map.rhs or ''):find('Graphd') and not map.lhs:find('<Plug>', 1, true)
end, vim.api.nvim_get_keymap('n'))
return #maps
"""
SOURCES = sorted((CLIENT / "lua" / "graphd").glob("*.lua"))
HELP = (CLIENT / "doc" / "graphd.txt").read_text()


def test_nothing_is_loaded_before_it_is_used(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    assert editor.lua(LOADED) == []
    assert editor.lua("return vim.fn.exists(':Graphd')") == 2
    assert editor.lua("return vim.fn.maparg('<Plug>(graphd-run)', 'n')") == "<Cmd>Graphd run<CR>"
    assert editor.lua("return require('graphd').statusline()") == ""
    assert editor.lua(LOADED) == ["graphd"]
    assert not room.daemons()


def test_what_is_done_at_every_start_takes_no_time(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    timed = """
      local best = math.huge
      for _ = 1, 10 do
        vim.g.loaded_graphd = nil
        vim.cmd('silent! delcommand Graphd')
        local begun = vim.uv.hrtime()
        dofile(...)
        best = math.min(best, (vim.uv.hrtime() - begun) / 1e6)
      end
      return best
    """
    assert editor.lua(timed, str(CLIENT / "plugin" / "graphd.lua")) < 2.0, "milliseconds"


def test_there_are_no_mappings_outside_our_buffers(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.sees("title: Gated Run")
    assert editor.lua(OURS) == 0


# ---- help and health ----------------------------------------------------------------------------------------------


def test_the_help_has_its_tags_and_names_everything(room: Workspace, neovim: Start, tmp_path: Path) -> None:
    editor = neovim()
    folder = tmp_path / "doc"
    folder.mkdir()
    (folder / "graphd.txt").write_text(HELP)
    editor.command(f"helptags {folder}")
    tags = {line.split("\t")[0] for line in (folder / "tags").read_text().splitlines()}
    verbs = editor.lua("return vim.tbl_keys(require('graphd.command').verbs())")
    assert {f":Graphd-{verb}" for verb in verbs} <= tags
    _, options = editor.lua("local o = require('graphd.config').read() return { 0, vim.tbl_keys(o) }")
    assert {f"graphd-option-{name}" for name in [*options, "program", "locale"]} <= tags
    groups = editor.lua("return vim.tbl_keys(require('graphd.looks').LINKS)")
    assert {f"hl-{name}" for name in groups} <= tags
    plugs = re.findall(r"VERBS = '([^']*)'", (CLIENT / "plugin" / "graphd.lua").read_text())[0].split()
    assert {f"<Plug>(graphd-{verb})" for verb in plugs} <= tags
    assert max(len(line) for line in HELP.splitlines()) <= 79
    linked = set(re.findall(r"\|(:Graphd[^|]*|graphd[^|]*)\|", HELP))
    assert linked <= tags


def health(editor: Neovim) -> str:
    """What the check says."""
    editor.command("checkhealth graphd")
    return "\n".join(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))


def test_the_health_check_says_what_is_there(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    editor.sees("title: Gated Run")
    said = editor.until(lambda: "version 0." in (report := health(editor)) and report)  # which has a second to be said
    daemon = ("socket: ", "the daemon answers: graphd", "protocol 1", f"workspace: {room.root}")
    for text in ("Neovim 0.11", "vim.g.graphd is in order", "(PATH)", *daemon):
        assert text in said, said
    assert "ERROR" not in said


def test_the_health_check_says_what_is_missing_and_what_to_do(room: Workspace, neovim: Start) -> None:
    editor = neovim(program="/nowhere/graphd", sidebar=True)
    said = health(editor)
    assert "program names /nowhere/graphd, which is not there" in said
    assert "pipx install workgraphd" in said
    assert "sidebar is no option; there are: asks, attach, icons" in said


def test_a_slow_program_does_not_hold_the_health_check(room: Workspace, neovim: Start) -> None:
    slow = room.base / "slow"
    slow.write_text("#!/bin/sh\n[ $1 = --version ] && exec sleep 30\nexit 1\n")
    slow.chmod(0o755)
    editor = neovim(program=str(slow))
    said = health(editor)
    assert "did not say its version within a second" in said


# ---- finding the program ------------------------------------------------------------------------------------------


def test_the_program_is_the_option_then_the_workspace_then_path(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    find = "return require('graphd.program').find(...)"
    root = str(room.root)
    assert editor.lua(find, root) == {"path": str(BIN / "graphd"), "source": "PATH"}
    own = room.root / ".venv" / "bin" / "graphd"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert editor.lua(find, root) == {"path": str(own), "source": "workspace"}
    editor.lua("vim.g.graphd = { program = 'sh' }")
    assert editor.lua(find, root)["source"] == "option"
    editor.lua("vim.g.graphd = { program = './tool/graphd' }")
    assert "an absolute path or a name on PATH" in editor.lua(find, root)["problem"]
    editor.lua("vim.g.graphd = nil; vim.env.PATH = '/nowhere'")
    own.unlink()
    assert editor.lua(find, root)["problem"] == "graphd is not installed; to install it: pipx install workgraphd"


# ---- completion, statusline, events, languages --------------------------------------------------------------------


def complete(editor: Neovim, line: str) -> list[str]:
    return list(editor.lua("return vim.fn.getcompletion(..., 'cmdline')", line))


def test_verbs_workflows_and_nodes_are_completed(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.edit(workflow(room))
    assert complete(editor, "Graphd re") == ["rerun", "restart", "resume", "retry"]
    assert complete(editor, "Graphd run f") == ["flow"]
    editor.command("Graphd run")
    editor.sees("running")
    assert complete(editor, "Graphd output ") == ["last", "wait"]
    assert complete(editor, "Graphd show @") == ["@last"]
    editor.command("Graphd nonsense")
    editor.told("nonsense is no verb of :Graphd; see :help graphd-commands")


def test_the_statusline_and_the_events_say_what_goes_on(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua(
        "seen = {}; vim.api.nvim_create_autocmd('User', { pattern = 'GraphdChanged', callback = function(event)"
        " seen[#seen + 1] = event.data end })"
    )
    editor.edit(workflow(room))
    editor.command("set laststatus=2 statusline=%{v:lua.require'graphd'.statusline()}")
    editor.command("Graphd run")
    editor.sees("⬡ 0/2")
    (room.root / "go").touch()
    editor.becomes("(seen[#seen] or {}).status == 'complete'")
    last = editor.lua("return seen[#seen]")
    assert last["counts"] == {"achieved": 2}
    assert last["root"] == str(room.root)
    editor.until(lambda: "⬡" not in editor.screen())
    cost = editor.lua(
        "local begun = vim.uv.hrtime() for _ = 1, 1000 do require('graphd').statusline() end"
        " return (vim.uv.hrtime() - begun) / 1e9"
    )
    assert cost < 0.5, "a thousand statuslines, in seconds"


def test_it_speaks_chinese(room: Workspace, neovim: Start) -> None:
    editor = neovim(locale="zh_CN.UTF-8")
    editor.edit(workflow(room))
    editor.command("Graphd run")
    editor.told("已启动 Gated")
    editor.sees("暂停")  # the daemon's lens
    editor.command("Graphd tree")
    editor.sees("Gated", "依赖 wait")
    editor.keys("g?")
    editor.sees("按键", "展开此行")


def test_options_that_are_none_are_told_and_left_out(room: Workspace, neovim: Start) -> None:
    editor = neovim(asks="shout", tree={"side": "up", "size": 50})
    options = editor.lua("return require('graphd.config').get()")
    assert options["asks"] == "notify"
    assert options["tree"] == {"side": "left", "size": 50}
    editor.told('asks must be notify | prompt | off, not "shout"')
    editor.told('tree.side must be left | right | bottom, not "up"')


def test_options_may_come_from_a_function(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua("vim.g.graphd = function() return { asks = 'off', locale = 'zh' } end")
    assert editor.lua("return require('graphd.config').get().asks") == "off"
    assert editor.lua("return require('graphd.text').t('Keys')") == "按键"
    editor.lua("vim.g.graphd = function() error('no such file') end")
    editor.lua("require('graphd.config').get()")
    editor.told("vim.g.graphd failed: ")


# ---- the sources --------------------------------------------------------------------------------------------------


def catalogue() -> tuple[set[str], set[str]]:
    """(what the sources say, what there is in Chinese)."""
    literal = r"'((?:[^'\\]|\\.)*)'"
    said: set[str] = set()
    known: set[str] = set()
    for path in SOURCES:
        if path.stem == "chinese":
            known |= set(re.findall(rf"^  \[{literal}\] =", path.read_text(), re.MULTILINE))
        else:
            said |= set(re.findall(rf"(?<![\w.:])t\(\s*{literal}", path.read_text()))
    return said, known


def test_every_message_is_there_in_chinese() -> None:
    said, known = catalogue()
    assert len(said) > 50
    assert known == said


def test_the_sources_are_small_and_say_what_they_are() -> None:
    assert [path.name for path in SOURCES if len(path.read_text().splitlines()) > 500] == []
    assert [path.name for path in SOURCES if not path.read_text().startswith("---")] == []
