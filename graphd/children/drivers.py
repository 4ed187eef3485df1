"""Drivers by name: ours, and those of third parties under the entry point group `graphd.drivers`.

Nothing is imported before a profile asks for it. Source: execution.md, Drivers.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from graphd.base.text import t
from graphd.children.driver import Driver

GROUP: Final = "graphd.drivers"
OURS: Final = {
    "shell": ("graphd.children.shell", "ShellDriver"),
    "acp": ("graphd.children.acp.driver", "AcpDriver"),
    "command": ("graphd.children.command.driver", "CommandDriver"),
}


class DriverMissing(Exception):
    """No driver of this name can be had; the message is for people."""


@cache
def driver_of(name: str) -> Driver:
    """The one instance of a driver. Ours can't be replaced. DriverMissing, also for one that can't be loaded."""
    if name in OURS:
        module, made = OURS[name]
        driver: Driver = getattr(import_module(module), made)()
        return driver
    for point in entry_points(group=GROUP, name=name):
        try:
            theirs: Driver = point.load()()
        except Exception as trouble:  # whatever a third party's import raises: it must not end the daemon
            shown = f"{type(trouble).__name__}: {trouble}"
            raise DriverMissing(
                t("the driver {name} can't be loaded: {trouble}", name=name, trouble=shown)
            ) from trouble
        return theirs
    raise DriverMissing(t("there is no driver {name}", name=name))


def names() -> tuple[str, ...]:
    """All that there are here, ours first."""
    return (*OURS, *sorted({point.name for point in entry_points(group=GROUP)} - set(OURS)))
