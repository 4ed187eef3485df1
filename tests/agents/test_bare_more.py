"""Further agents over bare ACP: what docs/agents.md says of them still holds."""

from pathlib import Path

import pytest

from tests.agents.bare import SCENARIOS, check

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", ["codex", "gemini", "qwen", "pi", "vibe"])
def test_it_does_what_it_did(name: str, scenario: str, tmp_path: Path) -> None:
    if name == "qwen" and scenario.startswith("killed"):
        pytest.skip("what it forgets is a matter of milliseconds")
    check(name, scenario, tmp_path)
