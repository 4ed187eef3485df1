"""Provider weather: a rest of one profile, shared by all its nodes and graphs (spec execution.md, Provider weather).

The rest is an event of the graph whose attempt reported it, so it survives the daemon; `State.cooling` is the longest
over all graphs. A graph that is cleared takes the rests that it reported along at the next start.
"""

from typing import Final

from graphd.core.commands import ProfileCooling
from graphd.core.deadlines import waited
from graphd.core.draft import Draft
from graphd.core.model import Attempt, Cooling, State

CALM_MS: Final = 60_000
"""A trouble that comes so long after the last rest is a new one."""

DOWN_LIMIT_MS: Final = 3_600_000
"""A provider that rested again and again for so long holds up the graphs that have nothing else to do."""


def cool_down(draft: Draft, fact: ProfileCooling, attempt: Attempt | None) -> None:
    """Start nothing of this profile before the rest is over. An attempt that goes on by itself is not working then."""
    known = draft.state.cooling.get(fact.profile)
    if known is None or known.until < fact.until:
        since = known.since if known is not None and draft.now <= known.until + CALM_MS else draft.now
        draft.emit(
            "provider_cooling", profile=fact.profile, until=fact.until, since=since, reason=fact.reason,
        )  # fmt: skip
    if attempt is not None and attempt.state == "live" and fact.until > draft.now:
        waited(draft, attempt, "provider", fact.until - draft.now)


def rest_of(state: State, profile: str, now: int) -> Cooling | None:
    """The rest of the profile that is not over, if any."""
    rest = state.cooling.get(profile)
    return rest if rest is not None and rest.until > now else None


def is_down(state: State, profile: str, now: int) -> bool:
    """It rests, and has done so past the limit."""
    rest = rest_of(state, profile, now)
    return rest is not None and now - rest.since >= DOWN_LIMIT_MS
