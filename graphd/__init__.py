"""graphd: a daemon that owns a durable dependency graph of agent work for a workspace."""

__version__ = "0.1.0"
