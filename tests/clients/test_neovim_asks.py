"""What agents ask, in a real Neovim: told, answered by a choice, gone when it is answered anywhere."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.agents import AgentWorkspace, asks
from tests.kit.neovim import Neovim, workflow
from tests.kit.workspaces import Workspace

pytestmark = pytest.mark.editors
Start = Callable[..., Neovim]
ONE = "title: Asking\nnodes:\n  - { id: a, worker: build, prompt: Do it }\n"
FLOATS = """
return #vim.tbl_filter(function(window)
  return vim.api.nvim_win_get_config(window).relative ~= ''
end, vim.api.nvim_list_wins())
"""
STUB = """
vim.ui.select = function(items, options, done)
  asked = { prompt = options.prompt, titles = vim.tbl_map(options.format_item, items), kind = options.kind }
  answer = function(number) done(items[number], number) end
  shown = vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), true, { split = 'below' })
end
"""


def asking(room: Workspace, editor: Neovim, *turn: Any) -> AgentWorkspace:
    """A graph that was started here, and whose agent asks."""
    agent = AgentWorkspace(room, list(turn) or [asks(), {"say": "done"}])
    editor.edit(workflow(room, ONE))
    editor.command("Graphd run")
    editor.told("started")
    return agent


def press(editor: Neovim, key: str) -> None:
    """A question that came unasked takes no key in its first moment; only the clock says when that is over."""
    time.sleep(0.8)
    editor.keys(key)
    editor.told("answered")


def test_a_permission_is_told_and_given_by_a_key(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    agent = asking(room, editor)
    editor.told("a asks: Change /elsewhere/x; to answer: :Graphd asks")
    editor.becomes("require('graphd').statusline() == '⬡ 0/1 ?1'")
    editor.command("Graphd tree")
    editor.sees("1 waits for an answer: a", "● a  awaiting permission")
    editor.keys("a")
    editor.sees("a asks: Change /elsewhere/x", "2  Yes")
    editor.keys("2")
    editor.told("answered")
    editor.sees("✓ Asking  complete")
    (reply,) = agent.trace(got="reply")
    assert reply["reply"]["outcome"]["optionId"] == "proceed_once"


def test_a_question_leaves_when_it_is_answered_elsewhere(room: Workspace, neovim: Start) -> None:
    editor = neovim(asks="prompt")
    agent = asking(room, editor)
    editor.sees("a asks: Change /elsewhere/x", "1  ")
    (ask,) = agent.asks()
    answered = room.graphd("answer", ask["id"], ask["options"][0]["id"])
    assert answered.returncode == 0, answered.stderr
    editor.told("already answered by graphd")
    assert "Always" not in editor.screen()


def test_somebody_elses_picker_is_used_and_closed_too(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua(STUB)
    agent = asking(room, editor)
    editor.told("to answer")
    editor.command("Graphd asks")
    editor.becomes("asked ~= nil")
    offered = editor.lua("return asked")
    assert offered["kind"] == "graphd"
    assert offered["prompt"] == "a asks: Change /elsewhere/x"
    assert any("for the whole graph" in title for title in offered["titles"])
    (ask,) = agent.asks()
    room.graphd("answer", ask["id"], ask["options"][0]["id"])
    editor.becomes("not vim.api.nvim_win_is_valid(shown)")
    editor.lua("answer(1)")
    editor.command("Graphd asks")
    editor.told("nothing waits for an answer")


def test_two_editors_one_answers_the_other_sees_it_gone(room: Workspace, neovim: Start) -> None:
    first = neovim(asks="prompt")
    second = neovim(asks="prompt")
    second.command("Graphd tree")
    asking(room, first)
    first.sees("a asks: Change /elsewhere/x")
    second.sees("a asks: Change /elsewhere/x", "1  ")
    press(second, "1")
    first.told("already answered by graphd.nvim")
    first.until(lambda: first.lua(FLOATS) == 0)
    assert second.lua(FLOATS) == 0
    second.sees("✓ Asking  complete")


def test_who_types_when_a_question_comes_has_not_answered_it(room: Workspace, neovim: Start) -> None:
    editor = neovim(asks="prompt")
    editor.lua("vim.uv.now = function() return 1 end")  # no time passes
    agent = asking(room, editor)
    editor.sees("a asks: Change /elsewhere/x")
    assert "No" in editor.lua("return vim.api.nvim_get_current_line()"), "the cursor stands on what allows nothing"
    editor.keys("1<CR>2")
    editor.sees("a asks: Change /elsewhere/x")
    assert len(agent.asks()) == 1
    editor.lua("vim.uv.now = function() return 10000 end")
    editor.keys("<CR>")
    editor.told("answered")
    (reply,) = agent.until(lambda: agent.trace(got="reply"))
    assert reply["reply"]["outcome"]["optionId"] == "no"


def test_an_answer_may_stand_for_the_graph(room: Workspace, neovim: Start) -> None:
    editor = neovim(asks="prompt")
    agent = asking(room, editor, asks(), asks(), {"say": "done"})
    editor.sees("Yes, for the whole graph (edit /elsewhere/**)")
    row = next(line for line in editor.screen().splitlines() if "Yes, for the whole graph" in line)
    press(editor, re.findall(r"(\d)  Yes", row)[0])
    agent.until(lambda: agent.graph()["status"] == "complete")
    assert agent.asks() == []


def test_a_question_without_options_is_answered_in_words(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua("vim.ui.input = function(options, done) prompt = options.prompt; done('blue') end")
    editor.lua(
        """
        local asks = require('graphd.asks')
        local session = require('graphd.workspace').current()
        session.change = function(_, method, params) sent = { method, params } end
        asks.put(session, { id = 'q1', kind = 'question', title = 'Which colour?', actionHash = 'h', action = {},
          options = {}, scopes = { 'once' }, openedAt = 1, state = 'open', node = 'a' })
        """
    )
    assert editor.lua("return prompt") == "a asks: Which colour?\nAnswer: "
    assert editor.lua("return sent") == ["workgraph/respond", {"ask": "q1", "actionHash": "h", "text": "blue"}]


def test_a_long_question_is_shown_to_its_end(room: Workspace, neovim: Start) -> None:
    editor = neovim()
    editor.lua(
        "require('graphd.choice').open({ 'Yes', 'No' }, { prompt = ... }, function(item) chosen = item end)",
        f"a asks: Run: {'echo harmless; ' * 20}rm -rf everything",
    )
    editor.sees("A question", "rm -rf everything", "2  No")
    editor.keys("2")
    editor.becomes("chosen == 'No'")
