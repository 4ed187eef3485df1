"""A real VS Code with our extension: code-server in a workspace, its workbench in Chromium, commanded from Python.

`Code` is one server process with folders of its own; `Window` is one browser window on it, and says what a person does
and sees: run a command, open a file, read the tree. Everything waits for a state, nothing for a time.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tests.kit.editor_setup import ENTRY, PICTURES, ROOT, browser, node
from tests.kit.waiting import until
from tests.kit.workspaces import Workspace

if TYPE_CHECKING:  # of the extra `editors`: tests that need none of it are collected without it
    from playwright.sync_api import BrowserContext, FrameLocator, Locator, Page, ViewportSize

VSIX: Final = ROOT / "clients" / "vscode-min" / "dist" / "graphd.vsix"
START_S: Final = 60
SEEN_MS: Final = 30_000
SIZE: "Final[ViewportSize]" = {"width": 1400, "height": 850}
ASIDE: Final = (700, 790)
"""Where the mouse is over nothing that shows a tip."""
_NO_GALLERY: Final = '{"serviceUrl":"","itemUrl":"","resourceUrlTemplate":""}'
_SETTINGS: Final[dict[str, Any]] = {
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.preferredLightColorTheme": "Default Light Modern",
    "workbench.preferredDarkColorTheme": "Default Dark Modern",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": False,
    "workbench.layoutControl.enabled": False,
    "window.commandCenter": False,
    "chat.commandCenter.enabled": False,
    "extensions.ignoreRecommendations": True,
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "git.enabled": False,
    "editor.minimap.enabled": False,
    "files.autoSave": "off",
    "files.simpleDialog.enable": True,
}


_KEPT: Final = """async (text) => {
  for (const { name } of await indexedDB.databases()) {
    if (!name.startsWith('vscode-web-state-db-')) continue;
    const asked = indexedDB.open(name);
    const db = await new Promise((done) => { asked.onsuccess = () => done(asked.result); });
    const read = db.transaction('ItemTable').objectStore('ItemTable').getAll();
    const values = await new Promise((done) => { read.onsuccess = () => done(read.result); });
    db.close();
    if (values.some((value) => String(value).includes(text))) return true;
  }
  return false;
}"""


class Code:
    """One code-server for one workspace; `settings` are the user's."""

    def __init__(self, workspace: Workspace, *, is_trusting: bool = True, path: str | None = None) -> None:
        self.workspace = workspace
        self.home = workspace.base / "home"
        self.home.mkdir(exist_ok=True)
        self.log = workspace.base / "code.log"
        self.said = workspace.base / "graphd.log"
        self.port = _free_port()
        found = os.pathsep.join([str(self._program()), os.environ.get("PATH", os.defpath)])
        self.environment = {
            **workspace.environment,
            "PATH": path if path is not None else found,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local"),
            "EXTENSIONS_GALLERY": _NO_GALLERY,
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
        }
        # VS Code asks the login shell for the environment, whose own files would put PATH back.
        (self.home / ".bash_profile").write_text(f'export PATH="{self.environment["PATH"]}"\n')
        self._words = [
            node(), str(ENTRY), "--user-data-dir", str(self.home / "data"), "--extensions-dir", str(self.home / "ext"),
        ]  # fmt: skip
        self._trust = ["--disable-workspace-trust"] if is_trusting else []
        self._process: subprocess.Popen[bytes] | None = None

    def _program(self) -> Path:
        """A folder with a graphd that keeps what it says on stderr: this VS Code writes no log files."""
        path = self.home / "bin" / "graphd"
        path.parent.mkdir(exist_ok=True)
        ours = Path(sys.executable).with_name("graphd")
        path.write_text(f'#!/bin/bash\nexec "{ours}" "$@" 2> >(tee -a "{self.said}" >&2)\n')
        path.chmod(0o755)
        return path.parent

    def settings(self, **changed: Any) -> None:
        """Write the user's settings for windows that are opened next; names are given with `__` for the dot."""
        path = self.home / "data" / "User" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_SETTINGS | {name.replace("__", "."): value for name, value in changed.items()}))

    def start(self) -> None:
        """Install the extension and serve. Raises AssertionError with the log where it does not come up."""
        assert VSIX.is_file(), f"{VSIX} is not there: make vsix"
        self.settings()
        subprocess.run(
            [*self._words, "--install-extension", str(VSIX)], env=self.environment, cwd=self.workspace.root,
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        words = [*self._words, *self._trust, "--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}"]
        words += ["--disable-telemetry", "--disable-update-check"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                words, env=self.environment, cwd=self.workspace.root, stdout=log, stderr=log, start_new_session=True
            )
        until(self._answers, limit_s=START_S, said=lambda: self.log.read_text()[-2000:])

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def url(self, folder: Path, **more: str) -> str:
        """Where a window opens a folder."""
        query = "".join(f"&{name}={quote(value)}" for name, value in more.items())
        return f"http://127.0.0.1:{self.port}/?folder={quote(str(folder))}{query}"

    def end(self) -> None:
        """End the server with all its children, which are a session of their own."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGTERM)
                self._process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(10)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def chromium() -> "Iterator[BrowserContext]":
    """A browser without a window; its windows share what was loaded once."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=browser(), args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        try:
            yield made.new_context(viewport=SIZE, reduced_motion="reduce")
        finally:
            made.close()


class Window:
    """One window on a `Code`."""

    def __init__(
        self, code: Code, browser: "BrowserContext", *, folder: Path | None = None, language: str = "en"
    ) -> None:
        self.code = code
        self.folder = folder or code.workspace.root
        self.page: Page = browser.new_page()
        if language != "en":  # what VS Code's own page would set with the strings of a language pack
            self.page.add_init_script(f"globalThis._VSCODE_NLS_LANGUAGE = {json.dumps(language)};")
        self.page.set_default_timeout(SEEN_MS)
        self.console: list[str] = []
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))

    def open(self, file: Path | None = None, **more: str) -> "Window":
        """Load the workbench, with a file."""
        if file is not None:
            more["payload"] = json.dumps([["openFile", f"vscode-remote://127.0.0.1:{self.code.port}{file}"]])
        self.page.goto(self.code.url(self.folder, **more))
        self.page.wait_for_selector(".monaco-workbench .part.statusbar")
        if file is not None:
            self.see(self.tab(file.name))
        return self

    def close(self) -> None:
        """As a person closes a window."""
        self.page.close()

    def reopen(self, holding: str) -> "Window":
        """Close the window and open it again, once the workbench has kept a state that holds this text."""
        until(lambda: self.page.evaluate(_KEPT, holding), said=lambda: f"the workbench keeps nothing of {holding}")
        self.page.goto("about:blank")
        return self.open()

    # ---- what a person does --------------------------------------------------------------------------------------

    def command(self, title: str) -> None:
        """Run a command by its title in the palette, which a workbench that starts may take away again."""
        from playwright.sync_api import TimeoutError as PatienceLost

        line = self.page.locator(".quick-input-list .monaco-list-row.focused").filter(has_text=title)

        def ran() -> bool:
            self.page.keyboard.press("Escape")
            self.page.keyboard.press("F1")
            try:
                self.page.locator(".quick-input-widget input[type=text]").first.fill(">" + title, timeout=3000)
                line.wait_for(timeout=3000)
                self.page.keyboard.press("Enter")
            except PatienceLost:
                return False
            return True

        until(ran, said=lambda: f"the palette does not offer {title} first")

    def show_view(self) -> None:
        """Open our view in the side bar."""
        if not self.page.locator(".pane-header", has_text=re.compile("Graphs|图")).first.is_visible():
            self.page.locator(".activitybar a[aria-label^='graphd']").click()
        self.see(self.page.locator(".pane-body").first)

    def pick(self, text: str) -> None:
        """Choose a line of the quick pick that is open."""
        self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=text).first.click()

    # ---- what a person sees --------------------------------------------------------------------------------------

    def row(self, text: str | re.Pattern[str]) -> "Locator":
        """A row of the tree by its name for screen readers."""
        return self.page.get_by_role("treeitem", name=text)

    def tab(self, text: str) -> "Locator":
        """An editor's tab."""
        return self.page.locator(".tabs-container .tab").filter(has_text=text)

    def lens(self, title: str) -> "Locator":
        """A code lens."""
        return self.page.locator(".codelens-decoration a").filter(has_text=re.compile(f"^{title}$"))

    def message(self, text: str) -> "Locator":
        """A notification."""
        return self.page.locator(".notifications-toasts .notification-list-item").filter(has_text=text)

    def status(self, text: str | re.Pattern[str]) -> "Locator":
        """An item of the status bar."""
        return self.page.locator(".statusbar-item").filter(has_text=text)

    def editor(self) -> "Locator":
        """The text of the active editor."""
        return self.page.locator(".editor-group-container.active .editor-instance .view-lines")

    def panel(self) -> "FrameLocator":
        """The page of the graph panel."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")

    def node(self, name: str) -> "Locator":
        """A node of the picture in the panel."""
        return self.panel().locator(f"g[data-node='{name}']")

    def see(self, what: "Locator", *, timeout_ms: int = SEEN_MS) -> "Locator":
        """Wait until it is there."""
        from playwright.sync_api import expect

        expect(what.first).to_be_visible(timeout=timeout_ms)
        return what.first

    def gone(self, what: "Locator") -> None:
        """Wait until it is not."""
        from playwright.sync_api import expect

        expect(what).to_have_count(0, timeout=SEEN_MS)

    def picture(self, name: str) -> Path:
        """Save what is seen."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        self.page.mouse.move(*ASIDE)
        self.page.screenshot(path=path)
        return path

    def failed(self, name: str) -> None:
        """Keep what helps to understand a failure."""
        self.picture(f"failed-{name}")
        said = self.code.said.read_text() if self.code.said.exists() else ""
        (PICTURES / f"failed-{name}.log").write_text("\n".join([*self.console, "", said]), encoding="utf-8")
