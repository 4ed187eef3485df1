"""The bundled check-up, its scripts run by hand: any folder, whatever lies in it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from graphd.core.plan import waves
from graphd.workflows import Compiled, load

ROOT = Path(__file__).parents[2]
SHELLS = [s for s in ("/bin/sh", "bash --posix", "busybox sh") if shutil.which(s.split()[0])]


def checkup() -> Compiled:
    return load((ROOT / "examples/checkup.yaml").read_bytes(), name="checkup")


def run(folder: Path, scratch: Path, shell: str = "/bin/sh") -> str:
    """Every script in plan order, fed as the shell driver does; the report."""
    outputs: dict[str, bytes] = {}
    plan = checkup()
    for definition in plan.definitions:
        inputs = scratch / definition.slug
        inputs.mkdir(parents=True)
        for need in definition.needs:
            (inputs / need).write_bytes(outputs[need])
        environment = {"PATH": os.environ["PATH"], "GRAPHD_INPUT_DIR": str(inputs)}
        environment |= {f"GRAPHD_VAR_{name}": value for name, value in plan.variables.items()}
        done = subprocess.run(
            [*shell.split(), "-eu", "-c", definition.spec], cwd=folder, env=environment, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (definition.slug, done.stderr)
        assert done.stderr, "every step says what it does"
        outputs[definition.slug] = done.stdout
    report = outputs["report"].decode()  # whole characters only
    assert len(report.splitlines()) <= 60
    return report


def fill(folder: Path) -> None:
    (folder / "目录").mkdir(parents=True)
    (folder / "a b").mkdir()
    twice = "".join(f"line number {i} here\n" for i in range(9))
    contents = {
        "目录/坏 文件.py": "x = (", "a b/-n.json": "{}", "-x.sh": "if\n", "ok.sh": "#!/bin/bash\nx=1\n",
        "new\nline": "a",

        "a=b": "# TODO fix\n", "2024": "", "null": "", '"q"': "", "it's": "", ".env": "AKIAABCDEFGHIJKLMNOP",
        "c1": twice, "c2": twice,
        "很长的名字" * 9: "FIXME: " + "很长的名字" * 20 + "\n", "merge": "<<<<<<< ours\n", "blank": "x  \n",
    }  # fmt: skip
    for name, content in contents.items():
        (folder / name).write_text(content)
    (folder / "broken").symlink_to("nowhere")
    (folder / os.fsdecode(b"b\xffad")).write_bytes(b"\xff\xfe")
    (folder / "big").write_bytes(bytes(2_000_000))
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize("shell", SHELLS)
def test_it_finds_what_is_wrong_in_a_strange_folder(tmp_path: Path, shell: str) -> None:
    folder = tmp_path / "奇怪 folder"
    fill(folder)

    report = run(folder, tmp_path / "scratch", shell)

    for line in (
        "not under git", "2  TODO, FIXME, XXX", "1  merge conflict marks", "1  lines that end in blanks",
        "2  with errors",
        "./目录/坏 文件.py", "1  files over 1 MB", "1  links that lead nowhere", "1  files that are copies of others",
        "1  names that look private", "1  files with what looks like a key",
    ):  # fmt: skip
        assert line in report


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_folder_is_fine(tmp_path: Path, shell: str) -> None:
    (tmp_path / "empty").mkdir()

    assert "0  files" in run(tmp_path / "empty", tmp_path / "scratch", shell)


def test_it_changes_nothing_in_a_repository(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    fill(folder)
    git = ["git", "-c", "user.name=曹", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "初次 提交"]):
        subprocess.run([*git, *command], cwd=folder, check=True, capture_output=True)
    (folder / "new.txt").write_text("x\n")
    before = {p: p.lstat().st_mtime_ns for p in folder.rglob("*")}

    report = run(folder, tmp_path / "scratch")

    assert "1 commits, branch main, 1 paths not committed" in report
    assert "初次 提交" in report
    assert {p: p.lstat().st_mtime_ns for p in folder.rglob("*")} == before


def test_it_runs_on_this_repository(tmp_path: Path) -> None:
    assert f"CHECK-UP of {ROOT.name}" in run(ROOT, tmp_path / "scratch")


def test_at_least_four_checks_run_together() -> None:
    first, checks, last = waves(checkup().definitions)

    assert (first, last) == (["discover"], ["report"])
    assert len(checks) >= 4
