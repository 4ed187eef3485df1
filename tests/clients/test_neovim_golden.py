"""The golden conversations, said by the Lua session inside a real Neovim to a peer that plays the daemon's part."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kit.golden import Conversation, conversations, filled
from tests.kit.neovim import Neovim
from tests.kit.scripted import Peer
from tests.kit.workspaces import ROOT, Workspace

pytestmark = pytest.mark.editors
REPLAY = ROOT / "tests" / "data" / "neovim" / "replay.lua"
Wire = dict[str, Any]


@pytest.fixture
def peer(room: Workspace) -> Iterator[Peer]:
    made = Peer(room.base / "peer")
    yield made
    made.close()


class Play:
    """One conversation under way: the editor's side is asked to say a line, the peer holds it to that."""

    def __init__(self, editor: Neovim, peer: Peer, address: str) -> None:
        self._editor, self._peer, self._address = editor, peer, address
        self._answers, self._notices = 0, 0
        self.revs: dict[str, int] = {}

    def start(self) -> None:
        self._editor.lua("replay.start(...)", self._address)
        self._peer.accept()

    def reconnect(self) -> None:
        """The peer goes; the session comes back by itself."""
        self._peer.hang_up()
        self._peer.accept()
        self._editor.becomes("replay.session.state == 'starting'")

    def say(self, line: Wire) -> None:
        message = filled(line["message"], self._peer.values)
        given = [message["params"]] if "params" in message else []
        self._editor.lua("replay.call(...)", message["method"], *given)
        self._peer.hear(line)

    def hear(self, line: Wire) -> None:
        said = self._peer.say(line)
        if "method" in said:
            self._notices += 1
            self._editor.becomes("#replay.heard == ...", self._notices)
            assert self._editor.lua("return replay.heard[#replay.heard].params") == said["params"]
            if said["method"] == "workgraph/changed":
                self._note(said["params"])
            return
        self._answers += 1
        self._editor.becomes("#replay.results == ...", self._answers)
        answer = self._editor.lua("return replay.results[#replay.results]") or {}  # an empty table is no map
        assert {name: value for name, value in answer.items() if value is not None} == {
            name: said[name] for name in ("result", "error") if said.get(name) is not None
        }
        result = said.get("result")
        for value in result.get("graphs", []) if isinstance(result, dict) and "subscription" in result else []:
            self._note(value)

    def _note(self, changed: Wire) -> None:
        if "cleared" in changed:
            self.revs.pop(changed["graph"], None)
        elif changed.get("full") or changed["graph"] in self.revs:
            self.revs[changed["graph"]] = changed["rev"]


@pytest.mark.parametrize("conversation", conversations(), ids=lambda conversation: conversation.name)
def test_the_session_says_and_understands_it(
    conversation: Conversation, room: Workspace, neovim: Callable[..., Neovim], peer: Peer
) -> None:
    editor = neovim()
    editor.lua("replay = dofile(...)", str(REPLAY))
    play = Play(editor, peer, str(room.base / "peer"))
    play.start()
    for line in conversation.lines:
        if line.get("reconnect"):
            play.reconnect()
        elif line["from"] == "client":
            play.say(line)
        else:
            play.hear(line)
    assert editor.lua("return replay.revs()") == play.revs
