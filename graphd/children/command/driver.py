"""The driver `command`: one turn of a headless program, stdin from /dev/null, its session named for the next one.

It can't ask, so it is started with permissions `full` or not at all. Success is exit code 0 and the program's success
event and an answer: each of them alone was seen with nothing done. Source: execution.md, Drivers and How a turn ends.
"""

from typing import Final

from graphd.base.text import t
from graphd.children.command.fold import CommandFold, PlainFold
from graphd.children.command.words import TOLD, argument_list, is_too_long, told_now
from graphd.children.driver import Fold, Launch, Order, PromptRefused, Unspoken
from graphd.children.environment import write_private
from graphd.children.inputs import write_inputs
from graphd.children.profiles.shape import Headless

PLAIN: Final = Headless("plain")


class CommandDriver(Unspoken):
    """Runs a program that ends by itself; says nothing to it."""

    is_plain = False

    def start(self, order: Order) -> Launch:
        """Write the inputs, and the task where it is too long for an argument."""
        if order.permissions not in (None, "full"):
            raise PromptRefused(
                t(
                    "{agent} does not ask before it acts, so it may serve permissions full only, and this asks for"
                    " {permissions}",
                    agent=order.profile,
                    permissions=order.permissions,
                )  # fmt: skip
            )
        if not order.argv:
            raise PromptRefused(t("{agent} has no command", agent=order.profile))
        write_inputs(order)
        if is_too_long(text := told_now(order)):
            content = text.encode("utf-8", "replace")
            write_private(order.folder / f"{TOLD}.new", content, becomes=order.folder / TOLD, is_durable=False)
        return Launch(argument_list(order, order.headless or PLAIN))

    def fold(self, order: Order, *, out_bytes: int) -> Fold:
        """Goes on where the folder's captured turn ends."""
        if order.headless is None or order.headless.dialect == "plain":
            return PlainFold(order, out_bytes=out_bytes)
        return CommandFold(order, order.headless, out_bytes=out_bytes)
