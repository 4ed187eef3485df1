"""The table of lies: where an agent does other than it says. Capabilities are read, never assumed; this is the rest.

Measured, see research agents.md §3 and §9. A profile may carry its own `Quirks`; this module imports nothing of ours.
"""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(slots=True, frozen=True)
class Quirks:
    """What one agent can't be believed in, and how long it takes to start. Durations in s."""

    restore: tuple[str, ...] = ("resume", "load")
    """The ways back into a session that work, best first; used only where the agent offers them too."""
    is_restore_doubtful: bool = False
    """It answers a restore of a session that it does not have with success: looked for in its list."""
    reject_cancels: bool = False
    """Our reject ends its turn as `cancelled`, though nobody cancelled."""
    are_totals_of_session: bool = False
    """The usage in a prompt's response counts from the session's start, not the turn's."""
    failure_mark: tuple[str, ...] = ()
    """Keys into an update's `_meta`, and the value there: the turn failed, though it ends as `end_turn`."""
    reads_files: bool = True
    """It bears it that we offer to read files for it."""
    runs_commands: bool = True
    """It bears it that we offer to run commands for it."""
    own_texts: tuple[str, ...] = ()
    """Regular expressions of what the program itself says as if it were the model: kept out of results."""
    weather: tuple[str, ...] = ()
    """More regular expressions of its rate-limit and overload messages."""
    takes_mcp: bool = True
    """It starts the MCP servers that a session names, as the protocol wants."""
    ends_with_stdin: bool = True
    """It ends when its stdin does; one that does not is terminated at once, without a grace."""
    init_s: float = 60.0
    open_s: float = 60.0
    restore_s: float = 90.0


_CODEX: Final = Quirks(
    reject_cancels=True,
    weather=(r"experiencing high demand",),
    failure_mark=("codex", "threadStatus", "type", "systemError"),
    own_texts=(r"(?:Warning: )?Model metadata for .{0,200} not found.{0,500}",),
)
QUIRKS: Final[dict[str, Quirks]] = {
    "opencode": Quirks(),
    "claude": Quirks(weather=(r"usage limit reached",), own_texts=(r"No response requested\.",)),
    "codex": _CODEX,
    "codex-zed": replace(_CODEX, ends_with_stdin=False),
    "gemini": Quirks(
        restore=("load",),
        reads_files=False,  # a file that is not there yet can't be made: it does not understand our error
        weather=(r"RESOURCE_EXHAUSTED",),
        own_texts=(r"\[The previous response was interrupted.*",),
    ),
    "qwen": Quirks(),
    "pi": Quirks(
        restore=("load",),
        takes_mcp=False,
        own_texts=(
            r"pi v\d+\.\d+\.\d+.{0,500}", r"Retrying \(attempt \d+/\d+, waiting \d+s\)\.\.\.",
            r"Retry finished, resuming\.",
        ),
    ),
    "vibe": Quirks(restore=("load",)),
    "fast-agent": Quirks(restore=("load",)),
    "hermes": Quirks(restore=("load",), is_restore_doubtful=True, takes_mcp=False),
    "deepagents": Quirks(restore=("load",), takes_mcp=False),
}  # fmt: skip
"""By the name of the profile; an agent that is not here has told no lie yet."""
