"""What an editor shows of an ask, in words."""

from dataclasses import replace

from graphd.base.catalogue import translate
from graphd.server.lsp.asks import LiveAsk, said

ASK = LiveAsk(
    id="ask-1", action_hash="h", node="lint", title="Run a command", detail="make",
    options=(("y", "Yes"),), scopes=("once",), covers=None,
)  # fmt: skip


def test_an_ask_says_who_asks_what_and_how_it_is_answered() -> None:
    assert said(ASK).startswith("lint asks: Run a command: make\nanswer with a code action here")
    assert said(replace(ASK, options=(), detail="")).startswith("lint asks: Run a command\nanswer it with: graphd")
    assert translate(said(ASK), "zh").startswith("lint 询问：Run a command: make\n在此")


def test_what_no_node_asks_is_no_nodes_question() -> None:
    assert said(replace(ASK, node=None, title="w was changed", detail="")).startswith("w was changed\nanswer with")
