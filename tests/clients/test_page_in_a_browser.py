"""The exported page in a real browser, from a file: its own style is taken, in light and dark, and it prints.

Fails, never skips, in CI; on a machine without Chromium it is skipped.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_cli import House, house  # noqa: F401 -- the fixture
from tests.kit.pixels import colour_at

pytestmark = pytest.mark.editors
LIGHT, DARK = (0xFF, 0xFF, 0xFF), (0x15, 0x18, 0x1D)
"""The page's `--paper`: an unstyled page has a white one too, so the dark one proves that the style was taken."""


def browser(folder: Path, *words: str) -> str:
    """Run Chromium to its end; what it said of the page."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI has to have chromium")
        pytest.skip("no chromium here")
    ran = subprocess.run(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
         f"--user-data-dir={folder / 'profile'}", "--window-size=900,1200", *words],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout + "".join(line for line in ran.stderr.splitlines(True) if "CONSOLE" in line)


def test_the_page_is_styled_in_light_and_dark_and_prints(house: House, tmp_path: Path) -> None:  # noqa: F811
    house.ask("run", "--sh", "echo '</style><script>alert(1)</script>'", "--then", "cat $GRAPHD_INPUT_DIR/*")
    house.ask("export", "--html", "run.html")
    page = house.folder / "run.html"
    for name, flags, paper in (
        ("light", ["--blink-settings=preferredColorScheme=1"], LIGHT),
        ("dark", ["--blink-settings=preferredColorScheme=0"], DARK),
    ):
        picture = tmp_path / f"{name}.png"
        said = browser(tmp_path, *flags, f"--screenshot={picture}", page.as_uri())
        assert "CONSOLE" not in said, "the policy refused something of the page's own"
        assert colour_at(picture, 4, 4) == paper
    seen = browser(tmp_path, "--dump-dom", page.as_uri())
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in seen
    assert "<script" not in seen
    assert seen.count('class="box achieved"') == 2
    browser(tmp_path, f"--print-to-pdf={tmp_path / 'run.pdf'}", page.as_uri())
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF-")
