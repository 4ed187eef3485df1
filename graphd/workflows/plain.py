"""YAML as plain values, for what is no workflow file: edits that a person types. Tags make nothing but plain values."""

from typing import Any

import yaml

from graphd.workflows.source import LOADER


def read_plain(text: str) -> Any:
    """Maps, lists and scalars. Raises ValueError with the place, on one line."""
    try:
        return yaml.load(text, Loader=LOADER)  # noqa: S506 -- a safe loader
    except (yaml.YAMLError, RecursionError) as trouble:
        raise ValueError(" ".join(str(trouble).split())) from None
