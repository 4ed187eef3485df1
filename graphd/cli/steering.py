"""What keys do in the live tree: choose a node, open it, steer the graph. Asks and the keyboard are the caller's.

A command that can't be taken back asks first; one that needs words has a line to type them on. Nothing here waits: a
command goes to `Deeds`, and what comes of it is shown by whoever follows the graph.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from graphd.base.text import t
from graphd.cli.keyboard import Pasted
from graphd.cli.keymap import Key, keys_of
from graphd.cli.speech import say
from graphd.cli.tree import arranged
from graphd_protocol.states import ENDED_STATUSES

Wire = dict[str, Any]
_MOVES: Final = {
    "up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10, "home": -(10**6), "end": 10**6,
}  # fmt: skip
_SAME: Final = {"right": "enter", "h": "?"}
_LONGEST_CHARS: Final = 2000


class Deeds(Protocol):
    """What a command comes to; each returns at once."""

    def send(self, verb: str, **params: Any) -> None:
        """A verb of the graph."""

    def tell(self, what: str, node: str) -> None:
        """Say `why` or `diff` of a node above the tree."""

    def follow_output(self, node: str | None) -> None:
        """Say what a node prints above the tree, from now on; None ends it."""

    def ask(self, text: str) -> None:
        """A question below the tree; the empty text takes it away."""

    def leave(self) -> None:
        """Follow no longer."""


@dataclass(slots=True)
class Face:
    """What of the steering is drawn."""

    selected: str | None = None
    opened: str | None = None
    followed: str | None = None
    keys: list[Key] = field(default_factory=list)
    has_help: bool = False
    hint: str = ""
    """What the last key came to; it goes with the next one."""
    hint_style: str = ""


@dataclass(slots=True)
class _Line:
    """A question that the next keys answer: `y`, or a line of text."""

    prompt: str
    done: Callable[[str], None]
    is_text: bool
    text: str = ""

    def shown(self) -> str:
        return f"{self.prompt} {self.text}▏" if self.is_text else self.prompt


class Steering:
    """One person's keys over one graph. `face` is for the screen, `snapshot` the last value taken."""

    def __init__(self, deeds: Deeds, face: Face) -> None:
        self.face = face
        self.has_steered = False
        self._deeds = deeds
        self.snapshot: Wire | None = None
        self._line: _Line | None = None
        self._is_covered = False

    @property
    def is_asking(self) -> bool:
        """The next keys are an answer to a question of ours."""
        return self._line is not None

    def take(self, snapshot: Wire) -> None:
        """A newer value. It comes often, of thousands of nodes too: they are arranged only where that is needed."""
        self.snapshot = snapshot
        known = {node["slug"] for node in snapshot["nodes"] if "removedIn" not in node}
        if self.face.selected not in known:
            order = self._arranged()
            telling = [node for state in ("running", "failed") for node in order if node["state"] == state]
            self.face.selected = next((str(node["slug"]) for node in [*telling, *order]), None)
        if self.face.opened not in known:
            self.face.opened = None
        self._look()

    def _arranged(self) -> list[Wire]:
        nodes = (self.snapshot or {"nodes": []})["nodes"]
        return [node for node, _ in arranged([node for node in nodes if "removedIn" not in node])]

    def _look(self) -> None:
        """The keys as they are now; while something else is asked they mean nothing, and are not shown."""
        face = self.face
        if self.snapshot is None or self._is_covered or self._line is not None:
            face.keys = []
        else:
            face.keys = keys_of(self.snapshot, face.selected, opened=face.opened, followed=face.followed)

    def press(self, key: str) -> None:
        """A key that nobody before us wanted."""
        self.face.hint = ""
        if self._line is not None:
            self._answer(self._line, key)
        elif isinstance(key, Pasted):
            self._hint(t("what is pasted is no command; type it"))
        elif self.face.has_help:
            self.face.has_help = False
        elif key in _MOVES:
            self._move(_MOVES[key])
        elif key in ("escape", "left"):
            self.face.opened = None
        else:
            self._command(_SAME.get(key, key))
        self._look()

    def cover(self, *, is_covered: bool) -> None:
        """Somebody else asks: what is asked or typed here is dropped."""
        self._line = None
        self._is_covered = is_covered
        self.face.has_help = False
        self._look()

    def let_go(self) -> None:
        """Nobody watches any more: what is sent is still waited for, what is followed is not."""
        self._deeds.follow_output(None)

    def ended(self, node: str) -> None:
        """What was followed has come to its end."""
        if self.face.followed == node:
            self.face.followed = None
            self._look()

    def ask_for_text(self, prompt: str, done: Callable[[str], None]) -> None:
        """Have a line typed; `done` gets it, unless it is left by Escape."""
        self._ask(_Line(prompt, done, is_text=True))
        self._look()

    # ---- one key --------------------------------------------------------------------------------------------------

    def _move(self, by: int) -> None:
        order = [node["slug"] for node in self._arranged()]
        if order:
            at = order.index(self.face.selected) if self.face.selected in order else 0
            self.face.selected = order[min(max(at + by, 0), len(order) - 1)]

    def _command(self, pressed: str) -> None:
        found = next((key for key in self.face.keys if key.key == pressed), None)
        if found is None:
            return
        if found.refusal:
            self._hint(t("{key}: {reason}", key=found.key, reason=found.refusal))
            return
        node = self.face.selected or ""
        match found.command:
            case "open":
                self.face.opened = None if self.face.opened == node else node
            case "output":
                self.face.followed = None if self.face.followed else node
                self._deeds.follow_output(self.face.followed)
            case "why" | "diff":
                self._deeds.tell(found.command, node)
            case "help":
                self.face.has_help = True
            case "leave":
                self._deeds.leave()
            case command:
                self._steer(command, node)

    def _steer(self, command: str, node: str) -> None:
        match command:
            case "cancel":
                self._confirm(t("cancel stops all of it for good; sure?"), lambda _: self._send("cancel"))
            case "finish":
                prompt = say(t("it is enough because (Enter sends, Esc drops it):"))
                self.ask_for_text(prompt, lambda reason: self._send("finish", reason=reason))
            case "retry":
                self._send("retry", node=node)
            case "retry all":
                self._send("retry", all=True)
            case "step":
                self._send("step", **({"node": node} if self._state(node) == "ready" else {}))
            case "accept" | "dismiss":
                self._settle(command)
            case _:
                self._send(command)

    def _settle(self, command: str) -> None:
        proposals = (self.snapshot or {}).get("proposals") or []
        proposal = proposals[0]
        changed = len([*proposal.get("add", ()), *proposal.get("change", ()), *proposal.get("remove", ())])
        question = t("accept what {author} proposes ({reason}; {count} nodes)?", author=proposal["author"],
                     reason=proposal["reason"], count=changed)  # fmt: skip
        if command == "accept":
            self._confirm(question, lambda _: self._send("accept", proposal=proposal["id"]))
        else:
            self._send("dismiss", proposal=proposal["id"])

    def _state(self, slug: str) -> str:
        nodes = (self.snapshot or {"nodes": []})["nodes"]
        return next((str(node["state"]) for node in nodes if node["slug"] == slug), "")

    def _hint(self, text: str) -> None:
        self.face.hint, self.face.hint_style = say(text), "yellow"

    def _send(self, verb: str, **params: Any) -> None:
        self.face.hint, self.face.hint_style = say(t("{verb} asked for", verb=verb)), "bright_black"
        self.has_steered = self.has_steered or verb != "cancel"
        self._deeds.send(verb, **params)

    # ---- questions of ours ----------------------------------------------------------------------------------------

    def _confirm(self, question: str, done: Callable[[str], None]) -> None:
        if self.snapshot is not None and self.snapshot["status"] not in ENDED_STATUSES:
            keys = say(t("y: yes   any other key: no"))
            self._ask(_Line(f"{say(question)}   {keys}", done, is_text=False))

    def _ask(self, line: _Line) -> None:
        self._line = line
        self._deeds.ask(line.shown())

    def _answer(self, line: _Line, key: str) -> None:
        if not line.is_text:
            self._end_line()
            if key == "y":
                line.done("")
            return
        if key in ("enter", "escape"):
            self._end_line()
            if key == "enter" and line.text.strip():
                line.done(line.text.strip())
            return
        if key == "backspace":
            line.text = line.text[:-1]
        elif len(key) == 1 or isinstance(key, Pasted):
            line.text = (line.text + " ".join(key.split() or [key]))[:_LONGEST_CHARS]
        self._deeds.ask(line.shown())

    def _end_line(self) -> None:
        self._line = None
        self._deeds.ask("")
