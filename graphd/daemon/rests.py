"""How long each agent rests after its provider's troubles: longer with each one of a row."""

from collections.abc import Callable
from typing import Final

from graphd.base.clock import Clock
from graphd.children.driver import Order
from graphd.children.profiles import Weather
from graphd.children.profiles.choosing import Agents
from graphd.children.profiles.weather import cooldown_s
from graphd.core.commands import Busy

CALM_S: Final = 60.0
"""A trouble that comes so long after the last rest begins a new row."""


class Rests:
    """The rows of troubles, by profile."""

    def __init__(self, agents: Callable[[], Agents], clock: Clock) -> None:
        self._agents = agents
        self._clock = clock
        self._rows: dict[str, tuple[int, float]] = {}  # profile → (troubles of this row, when the last rest is over)

    def rest_s(self, order: Order, busy: Busy) -> float:
        """How long the agent of `order` rests now; the jitter is by the attempt, so that a repeat rests as long."""
        profile = self._agents().profiles.get(order.profile)
        weather = profile.weather if profile is not None else Weather()  # the settings may know it no more
        now_s = self._clock.monotonic_s()
        count, over_s = self._rows.get(order.profile, (0, now_s))
        in_row = count + 1 if now_s <= over_s + CALM_S else 1
        rest_s = cooldown_s(weather, in_row=in_row, seed=order.cookie, retry_after_s=busy.retry_after_s)
        self._rows[order.profile] = (in_row, now_s + rest_s)
        return rest_s
