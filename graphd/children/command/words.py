"""The argument lists of headless programs: options, session, prompt. Pure.

The prompt is an argument, so it holds no secret that we know by its shape, and one that is too long for an argument is
a file that the argument names. Source: execution.md, Drivers, Secrets and text.
"""

import uuid
from typing import Final

from graphd.base.redaction import PLAIN
from graphd.children.driver import Order
from graphd.children.profiles.shape import Headless
from graphd.children.telling import told_afresh

ARGUMENT_LIMIT_BYTES: Final = 96 << 10
"""Linux takes 128 KiB for one argument."""
TOLD: Final = "told.md"
_NAMESPACE: Final = uuid.UUID("5c1b2a8e-9a1d-4b0c-8f43-6d6a1b7f0c11")


def own_session(order: Order) -> str:
    """The id of the session where we may choose it: the same whenever this attempt is asked for."""
    return str(uuid.uuid5(_NAMESPACE, order.cookie))


def told_now(order: Order) -> str:
    """The whole prompt: the task, with what is known of a session that could not go on; or that it was interrupted."""
    if order.resume_session:
        return order.interrupted or order.told
    return told_afresh(order.told, order.summary) if order.summary else order.told


def is_too_long(text: str) -> bool:
    """It can't be an argument."""
    return len(text.encode("utf-8", "replace")) > ARGUMENT_LIMIT_BYTES


def prompt_argument(order: Order) -> str:
    """What stands for the prompt in the argument list; never taken for an option."""
    text = told_now(order)
    if is_too_long(text):
        return f"Your task is in the file {order.folder / TOLD}. Read all of it, then do what it says."
    argument = PLAIN.text(text).replace("\0", "\ufffd")
    return f"\n{argument}" if argument.startswith("-") else argument


def argument_list(order: Order, headless: Headless) -> tuple[str, ...]:
    """The whole command line of a turn, the program's own words first."""
    values = {
        "{session}": order.resume_session or own_session(order),
        "{model}": order.model or "",
        "{thinking}": order.thinking or "",
    }
    session = _filled(headless.resume if order.resume_session else headless.fresh, values)
    given = (
        *(headless.model if order.model else ()),
        *(headless.thinking if order.thinking else ()),
        *(headless.full if order.permissions == "full" else ()),
    )
    options, prompt = _filled(given, values), prompt_argument(order)
    match headless.dialect:
        case "claude":
            words = ("-p", "--output-format", "stream-json", "--verbose", *session, *options, prompt)
        case "codex":  # `resume` is a word before the options, the session one behind them
            words = ("exec", *session[:1], "--json", "--skip-git-repo-check", *options, *session[1:], prompt)
        case "opencode":
            words = ("run", "--format", "json", *session, *options, prompt)
        case "gemini":
            words = ("--output-format", "stream-json", *session, *options, "-p", prompt)
        case _:
            words = (*session, *options, prompt)
    return (*order.argv, *words)


def _filled(words: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    return tuple(_fill(word, values) for word in words)


def _fill(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
