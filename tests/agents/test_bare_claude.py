"""claude over bare ACP: what docs/agents.md says of it still holds."""

from pathlib import Path

import pytest

from tests.agents.bare import SCENARIOS, check

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_does_what_it_did(scenario: str, tmp_path: Path) -> None:
    check("claude", scenario, tmp_path)
