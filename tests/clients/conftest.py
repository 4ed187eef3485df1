"""Real editors: Neovims of a test, one VS Code and one browser for a module, with a window for each test."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.kit.neovim import Neovim, what_is_missing
from tests.kit.workspaces import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

    from tests.kit.vscode import Code, Window

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def chrome() -> "Iterator[BrowserContext]":
    """A browser."""
    from tests.kit.vscode import chromium

    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def code() -> "Iterator[Code]":
    """A VS Code server, which serves any folder; its daemons have folders of their own."""
    yield from serving()


def serving(**given: Any) -> "Iterator[Code]":
    """A started server, ended with all that it and its daemons left."""
    from tests.kit.vscode import Code

    base = Path(tempfile.mkdtemp(prefix="gv-", dir="/tmp"))  # short: sockets are in it
    made = Code(Workspace(base), **given)
    try:
        made.start()
        yield made
    finally:
        made.end()
        made.workspace.end()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def project(code: "Code") -> Iterator[Workspace]:
    """A folder of its own, with the server's settings and state folder; its daemon is stopped afterwards."""
    made = Workspace(code.workspace.base)
    made.root = code.workspace.base / f"project{next(_numbers)}"
    (made.root / ".agents" / "workflows").mkdir(parents=True)
    yield made
    made.graphd("stop", "--cancel")


@pytest.fixture
def open_window(
    code: "Code", project: Workspace, chrome: "BrowserContext", request: pytest.FixtureRequest
) -> "Iterator[Callable[..., Window]]":
    """Opens windows on the project; where the test fails, what they showed is kept."""
    from tests.kit.vscode import Window

    made: list[Window] = []

    def opened(file: Path | None = None, *, language: str = "en", **settings: Any) -> Window:
        code.settings(**settings)
        made.append(Window(code, chrome, folder=project.root, language=language).open(file))
        return made[-1]

    yield opened
    for number, one in enumerate(made):
        if request.node.stash.get(FAILED, False):
            one.failed(f"{request.node.name}-{number}")
        one.close()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Remember that the test itself failed, for the fixtures' end."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


def workflow(project: Workspace, name: str, text: str) -> Path:
    """Write a workflow file of the project."""
    path = project.root / ".agents" / "workflows" / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def room() -> Iterator[Workspace]:
    """A workspace with a folder for workflows, at a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="gn") as folder:
        made = Workspace(Path(folder))
        (made.root / ".agents" / "workflows").mkdir(parents=True)
        yield made
        made.end()


@pytest.fixture
def neovim(room: Workspace) -> Iterator[Callable[..., Neovim]]:
    """Starts an editor in the workspace; all are closed at the end."""
    missing = what_is_missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    opened = []

    def start(**options: Any) -> Neovim:
        opened.append(Neovim(room, **options))
        return opened[-1]

    yield start
    for editor in opened:
        editor.close()
