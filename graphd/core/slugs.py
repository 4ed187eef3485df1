"""Why a text is no slug, in words that can be translated. The rule itself is in `graphd_protocol.ids`."""

from graphd.base.text import Text, t
from graphd_protocol.ids import CONDITION_WORDS, FINAL_ID, SLUG, slug_trouble


def slug_reason(slug: str) -> Text | None:
    """Why this text is no slug, or None where it is one: `slug_trouble`, translatable."""
    if slug_trouble(slug) is None:
        return None
    if slug == FINAL_ID:
        return t("gn-final is reserved for the final check")
    if slug in CONDITION_WORDS:
        return t("{slug} is a word of the condition language", slug=slug)
    if SLUG.match(slug):
        return t("a slug never starts with gn-, which marks ids")
    return t("a slug is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter or digit")
