"""Further agents through graphd: a daemon, its keepers, the command line."""

from collections.abc import Callable

import pytest

from tests.agents.through import Through, pass_through, playable
from tests.kit.workspaces import Workspace

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("name", "scenario"), playable("codex", "gemini", "qwen", "pi", "vibe"))
def test_a_node_is_done_by_it(name: str, scenario: Callable[[Through], None], workspace: Workspace) -> None:
    pass_through(name, scenario, workspace)
