"""codex-zed over bare ACP: what docs/agents.md says of it still holds."""

from pathlib import Path

import pytest

from tests.agents.bare import SCENARIOS, check


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_does_what_it_did(scenario: str, tmp_path: Path) -> None:
    check("codex-zed", scenario, tmp_path)
