"""The language in which the command line speaks to this terminal: that of its locale, as the daemon is told it."""

import os
from functools import cache

from graphd.base.catalogue import Language, negotiated, translate


@cache
def language() -> Language:
    """The language of `LC_ALL`, `LC_MESSAGES` or `LANG`; English for any that the catalogue does not have."""
    from graphd.client.greeting import locale_of

    return negotiated(locale_of(os.environ))


def say(text: str) -> str:
    """A text made by `t` in this language."""
    return translate(text, language())
