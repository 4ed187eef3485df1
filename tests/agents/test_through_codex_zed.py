"""codex-zed through graphd: a daemon, its keepers, the command line."""

from collections.abc import Callable

import pytest

from tests.agents.through import BRIEF, Through, cooled_down, pass_through
from tests.kit.workspaces import Workspace


@pytest.mark.parametrize("scenario", BRIEF)
def test_a_node_is_done_by_it(scenario: Callable[[Through], None], workspace: Workspace) -> None:
    pass_through("codex-zed", scenario, workspace)


@pytest.mark.slow
def test_a_cool_down_is_shared(workspace: Workspace) -> None:
    pass_through("codex-zed", cooled_down, workspace)
