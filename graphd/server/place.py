"""Where the state of a workspace lies.

The same rule as `graphd.client.paths`, which a server may not import; a test compares them.

Source: spec protocol.md, Daemon, socket, lock.
"""

import os
from pathlib import Path

from graphd.base.digest import sha256_hex


def state_folder(workspace: Path) -> Path:
    """`<state>/<16 hex digits of SHA-256 over the real path>`."""
    name = sha256_hex(os.fsencode(workspace.resolve()))[:16]
    return _folder("GRAPHD_STATE_DIR", "XDG_STATE_HOME", ".local/state") / name


def config_folder() -> Path:
    """Where the user's settings lie."""
    return _folder("GRAPHD_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def _folder(ours: str, xdg: str, default: str) -> Path:
    named = os.environ.get(ours)
    if named:
        return Path(named).absolute()
    base = Path(os.environ.get(xdg, ""))
    return (base if base.is_absolute() else Path.home() / default) / "graphd"
