"""Installs the pinned agent programs: `python -m tests.kit.agent_setup [--or-skip] small main more vibe`.

Each part is a committed package.json with its lock in tests/agents/npm, or a requirements.txt in tests/agents/pip,
installed into .agents-cache/PART (or into $AGENTS_CACHE). Does nothing where that is done for the same lock. Exit 1
says what is missing; with `--or-skip` it is 0, unless CI says that nothing may be skipped.
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

from tests.kit.real_agents import CACHE, ROOT, node_folders

PARTS: Final = ROOT / "tests" / "agents" / "npm"
FROM_PIP: Final = ROOT / "tests" / "agents" / "pip"
PYTHONS: Final = ("python3.13", "python3.12")
LIMIT_S: Final = 600
# Of all packages in the locks only this one can't do without its install script.
SCRIPTS: Final = {"main": ("node_modules/opencode-ai/postinstall.mjs",)}
# `npm install`, not `npm ci`: a registry that lacks packages of other systems makes the latter refuse the lock.
NPM: Final = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved")


class SetupFailed(Exception):
    """What is missing or went wrong, for people."""


def _files(part: str) -> list[Path]:
    """What says which versions a part is made of."""
    if (FROM_PIP / part).is_dir():
        return [FROM_PIP / part / "requirements.txt"]
    return [PARTS / part / "package.json", PARTS / part / "package-lock.json"]


def _digest(part: str) -> str:
    files = _files(part)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _ran(argv: tuple[str, ...], folder: Path) -> None:
    path = os.pathsep.join([*map(str, node_folders()), os.environ.get("PATH", os.defpath)])
    try:
        done = subprocess.run(
            argv, cwd=folder, env={**os.environ, "PATH": path}, timeout=LIMIT_S,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise SetupFailed(f"{' '.join(argv)} took over {LIMIT_S} s in {folder}") from late
    if done.returncode:
        raise SetupFailed(f"{' '.join(argv)} in {folder} said {done.returncode}:\n{done.stderr[-2000:]}")


def install(part: str) -> bool:
    """Install one part; False when it was there."""
    folder, ready = CACHE / part, CACHE / part / ".ready"
    if ready.is_file() and ready.read_text() == _digest(part):
        return False
    ready.unlink(missing_ok=True)
    if (FROM_PIP / part).is_dir():
        _from_pip(part, folder)
    else:
        _from_npm(part, folder)
    ready.write_text(_digest(part))
    return True


def _from_pip(part: str, folder: Path) -> None:
    """A virtual environment of a Python that is new enough: programs are in its `bin`."""
    python = next((found for found in map(_new_enough, PYTHONS) if found), None)
    if python is None:
        raise SetupFailed(f"none of {', '.join(PYTHONS)} runs, and {part} needs one")
    folder.mkdir(parents=True, exist_ok=True)
    _ran((python, "-m", "venv", "--clear", str(folder / "venv")), folder)
    pip = (str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _ran((*pip, "-r", str(FROM_PIP / part / "requirements.txt")), folder)


def _new_enough(name: str) -> str | None:
    """Where it is and runs: a version switcher's stand-in may be there and run nothing."""
    path = shutil.which(name)
    if path is None:
        return None
    done = subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True, timeout=LIMIT_S, check=False)
    return None if done.returncode else path


def _from_npm(part: str, folder: Path) -> None:
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        raise SetupFailed(
            f"{' and '.join(missing)} not found on PATH: real agent programs come from npm"
            " (Debian: apt-get install nodejs npm)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PARTS / part / name, folder / name)
    _ran(NPM, folder)
    for script in SCRIPTS.get(part, ()):
        _ran(("node", Path(script).name), folder / Path(script).parent)


def main(words: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="installs the pinned agent programs")
    parser.add_argument("--or-skip", action="store_true")
    parser.add_argument(
        "parts", nargs="+", choices=sorted(path.name for of in (PARTS, FROM_PIP) for path in of.iterdir())
    )
    asked = parser.parse_args(words)
    for part in asked.parts:
        began = time.monotonic()
        try:
            if install(part):
                print(f"agent programs, part {part}: set up in {time.monotonic() - began:.0f} s", file=sys.stderr)
        except (SetupFailed, OSError) as failed:
            print(f"agent programs, part {part}: {failed}", file=sys.stderr)
            if not asked.or_skip or os.environ.get("CI") == "true":
                return 1
            print("their tests are skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
