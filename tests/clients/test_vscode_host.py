"""The extension's API, asserted from within the real extension host: activation, providers, rows, documents."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.kit.editor_setup import ROOT
from tests.kit.vscode import Code, Window
from tests.kit.waiting import until
from tests.kit.workspaces import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.editors, pytest.mark.timeout(180)]
Open = Callable[..., Window]


def test_what_the_extension_does_in_its_host(code: Code, project: Workspace, chrome: "BrowserContext") -> None:
    project.root.joinpath(".agents", "workflows").rmdir()
    said: list[str] = []
    ended: list[int] = []
    window = Window(code, chrome, folder=project.root)
    window.page.expose_function("codeAutomationLog", lambda kind, words: said.append(f"{kind}: {words}"))
    window.page.expose_function("codeAutomationExit", lambda number: ended.append(number))
    here = f"vscode-remote://127.0.0.1:{code.port}"
    payload = [
        ["extensionDevelopmentPath", f"{here}{ROOT / 'clients' / 'vscode-min'}"],
        ["extensionTestsPath", f"{here}{ROOT / 'tests' / 'clients' / 'host' / 'index.cjs'}"],
    ]
    window.page.goto(code.url(project.root, payload=json.dumps(payload)))

    def is_over() -> bool:
        window.page.wait_for_timeout(100)  # which lets the page call us
        return bool(ended)

    try:
        until(is_over, limit_s=150, said=lambda: "\n".join(said[-30:]))
        assert ended == [0], "\n".join(said[-40:])
    except AssertionError:
        window.failed("host")
        raise
    finally:
        window.close()
