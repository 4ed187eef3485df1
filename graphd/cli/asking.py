"""Asks at the terminal of `run` and `watch`: shown one at a time, answered with a key.

The line shows what is asked and which key says what. `s` changes for how long the answer stands, where it may. An ask
that was answered elsewhere leaves by itself. Reading keys is the caller's.
"""

from collections.abc import Callable
from typing import Any

from graphd.cli.keyboard import Pasted
from graphd.cli.words import harmless

Wire = dict[str, Any]
Answer = Callable[[Wire, str, str], None]
"""(ask, option id, scope)"""


class Asking:
    """Which ask is shown, and what a key means to it. `show` draws a line; `answer` is called once per ask.

    `types`: the caller has a line to type on, for asks without options.
    """

    def __init__(self, *, show: Callable[[str], None], answer: Answer, types: bool = False) -> None:
        self._types = types
        self._show = show
        self._answer = answer
        self._answered: set[str] = set()
        self._scope = 0
        self.ask: Wire | None = None

    def take(self, asks: list[Wire]) -> bool:
        """The asks that are open now; True where one is shown."""
        waiting = [ask for ask in asks if ask["id"] not in self._answered]
        shown = self.ask["id"] if self.ask is not None else None
        self.ask = waiting[0] if waiting else None
        if self.ask is None:
            if shown is not None:
                self._show("")
            return False
        if self.ask["id"] != shown:
            self._scope = 0
            self.draw(len(waiting) - 1)
        return True

    def draw(self, more: int = 0) -> None:
        """Show the ask (again)."""
        if self.ask is not None:
            self._show(line(self.ask, self.ask["scopes"][self._scope], more, types=self._types))

    def wants(self, key: str) -> bool:
        """Whether the key means something to the ask that is shown."""
        if self.ask is None or isinstance(key, Pasted):
            return False
        return key.isdecimal() or (key == "s" and len(self.ask["scopes"]) > 1) or self.wants_text(key)

    def wants_text(self, key: str) -> bool:
        """Whether the key begins an answer that has to be typed."""
        return self._types and key == "t" and self.ask is not None and not self.ask["options"]

    def press(self, key: str) -> None:
        """A key: a digit answers, `s` is the next scope, anything else, and what was pasted, is none of ours."""
        if self.ask is None or isinstance(key, Pasted):
            return
        options = self.ask["options"]
        if key == "s" and len(self.ask["scopes"]) > 1:
            self._scope = (self._scope + 1) % len(self.ask["scopes"])
            self.draw()
        elif key.isdecimal() and 0 < int(key) <= len(options):
            ask, scope = self.ask, self.ask["scopes"][self._scope]
            self._answered.add(ask["id"])
            self.ask = None
            self._show("")
            self._answer(ask, str(options[int(key) - 1]["id"]), scope)

    def typed(self) -> Wire | None:
        """The ask that is shown is answered by what was typed: it is shown no more."""
        ask, self.ask = self.ask, None
        if ask is not None:
            self._answered.add(ask["id"])
            self._show("")
        return ask

    def again(self, ask: Wire) -> None:
        """The answer was not taken: it may be asked once more."""
        self._answered.discard(ask["id"])


def line(ask: Wire, scope: str, more: int = 0, *, types: bool = False) -> str:
    """What is asked, where, and the keys, in one line."""
    action = ask["action"]
    what = action.get("command") or ", ".join(map(str, action.get("paths") or ()))
    detail = f": {what}" if what and str(what) not in ask["title"] else ""
    head = f"{ask.get('node', ask['kind'])} asks: {ask['title']}{detail}"
    if not ask["options"]:
        return harmless(f"{head}   t: type the answer" if types else f'{head}   graphd answer {ask["id"]} --text "…"')
    keys = "   ".join(f"{number}: {option['label']}" for number, option in enumerate(ask["options"], 1))
    stands = ""
    if len(ask["scopes"]) > 1:
        covered = f" ({ask['rule']})" if scope != "once" and ask.get("rule") else ""
        stands = f"   s: for {scope}{covered}"
    return harmless(f"{head}   {keys}{stands}" + (f"   ({more} more)" if more > 0 else ""))
