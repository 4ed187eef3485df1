"""codex-zed under a keeper, through the driver."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.driven import SCENARIOS, Driven, drive

pytestmark = pytest.mark.slow  # `make test` has it through graphd


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_it_is_driven(scenario: Callable[[Driven], Any], tmp_path: Path) -> None:
    await drive("codex-zed", scenario, tmp_path)
