"""The driver `acp`: how an agent is started and what is said to it. See `graphd.children.driver.Driver`."""

from graphd.base.text import t
from graphd.children.acp import lines
from graphd.children.acp.fold import AcpFold
from graphd.children.driver import Launch, Order, PromptRefused
from graphd.children.inputs import write_inputs
from graphd.core.talk import Line


class AcpDriver:
    """Speaks the Agent Client Protocol over the agent's stdin and stdout. One process has one session."""

    first_lines = 1
    is_plain = False

    def start(self, order: Order) -> Launch:
        """Write `inputs/`. PromptRefused for an order without a command, or whose folder is no absolute path."""
        if not order.argv:
            raise PromptRefused(t("the profile {profile} names no command", profile=order.profile))
        if not order.cwd.is_absolute():
            raise PromptRefused(t("the folder {folder} is no absolute path", folder=str(order.cwd)))
        write_inputs(order)
        return Launch(order.argv, stdin="pipe")

    def prompt(self, order: Order) -> tuple[Line, ...]:
        """`initialize`; the fold says the rest, as the answers come."""
        writes_files = order.permissions != "read"
        quirks = order.quirks
        return (
            lines.initialize(
                reads_files=quirks.reads_files, writes_files=writes_files, runs_commands=quirks.runs_commands
            ),
        )

    def answer(self, key: str, option: str | None, text: str | None) -> tuple[Line, ...]:
        """The option's id as the agent gave it; None is `cancelled`. A permission takes no text."""
        return (lines.outcome(key, option),)

    def turn(self, session: str, text: str) -> tuple[Line, ...]:
        """One more prompt in the same session."""
        return (lines.prompt(session, text),)

    def cancel(self, session: str | None, open_asks: tuple[str, ...]) -> tuple[Line, ...]:
        """Open asks are answered `cancelled` first: some agents wait for that."""
        answers = tuple(lines.outcome(key, None) for key in open_asks)
        return answers if session is None else (*answers, lines.cancel(session))

    def close(self, session: str | None) -> tuple[Line, ...]:
        """`session/close`, where there is a session."""
        return () if session is None else (lines.close_session(session),)

    def fold(self, order: Order, *, out_bytes: int) -> AcpFold:
        """Goes on from the state in the folder, where the journal was trimmed."""
        return AcpFold(order, out_bytes=out_bytes)
