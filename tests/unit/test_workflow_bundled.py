"""The bundled workflows: each compiles, says nothing that it does not mean, and its scripts do what they say."""

import os
import subprocess
from pathlib import Path

import pytest

from graphd.core.definition import Definition
from graphd.workflows import explain, load, validate
from graphd.workflows.files import bundled_dir
from graphd.workflows.schema import BUILT_IN_WORKERS

NAMES = ("checkup", "debug", "implement-review", "parallel-migrate", "research", "review")
GIVEN: dict[str, dict[str, str]] = {
    "debug": {"symptom": "it breaks"}, "implement-review": {"task": "do it"}, "parallel-migrate": {"change": "x to y"},
    "research": {"question": "why?"},
}  # fmt: skip
JUDGED = {"debug": "mend", "implement-review": "implement", "parallel-migrate": "assemble"}


def content(name: str) -> bytes:
    return (bundled_dir() / f"{name}.yaml").read_bytes()


def nodes(name: str) -> dict[str, Definition]:
    return {d.slug: d for d in load(content(name), name=name, inputs=GIVEN.get(name, {})).definitions}


def test_these_are_bundled() -> None:
    assert tuple(sorted(path.stem for path in bundled_dir().glob("*.yaml"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_is_valid_without_a_remark_and_asks_for_what_it_needs(name: str) -> None:
    assert validate(content(name), name=name) == []
    told = explain(content(name), name=name, inputs=GIVEN.get(name, {}))
    assert told.objective != told.title
    assert any(node["required"] for node in told.nodes)
    for node in told.nodes:
        assert node["worker_type"] in BUILT_IN_WORKERS
        assert "{{inputs." not in node["prompt_template"]["inline"]
        if node["worker_type"] != "shell":
            assert "hange nothing" in node["prompt_template"]["inline"] or node["worker_type"] not in (
                "explore", "plan", "research", "review", "arbiter",
            )  # fmt: skip


@pytest.mark.parametrize(("name", "target"), JUDGED.items())
def test_work_is_sent_back_by_a_gate_that_saw_the_check(name: str, target: str) -> None:
    judge = nodes(name)["judge"]
    assert judge.gate is not None
    assert judge.gate.revise == target
    assert judge.review is not None
    assert {judge.review.implementation, judge.review.verification} <= set(judge.needs)
    assert judge.required


def test_they_are_fit_for_a_deep_run() -> None:
    for name in JUDGED:
        brief = b"mode: deep\nadmission: { goal: x, verdict: READY }\n"
        assert validate(brief + content(name), name=name) == []


def test_items_come_from_lists_that_are_promised() -> None:
    for name, each, need in (("parallel-migrate", "migrate", "discover"), ("research", "look", "split")):
        found = nodes(name)
        source = found[each].for_each
        contract = found[need].output_schema
        assert source is not None
        assert contract is not None
        assert source.source.rpartition(".")[2] in contract


# ---- scripts --------------------------------------------------------------------------------------------------------


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        ["/bin/sh", "-eu", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def git(folder: Path, *words: str) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **names}
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One commit on main, one on a branch, one change that is not committed."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "checkout", "-qb", "work")
    (tmp_path / "b.txt").write_text("two\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "second, the reason")
    (tmp_path / "a.txt").write_text("one\nand a half\n")
    (tmp_path / "c.txt").write_text("three\n")
    return tmp_path


def test_a_review_collects_what_is_committed_on_the_branch_and_what_is_not(project: Path) -> None:
    ran = run(nodes("review")["change"].spec, project)
    assert ran.returncode == 0, ran.stderr
    assert "second, the reason" in ran.stdout
    assert "+and a half" in ran.stdout
    assert "+two" in ran.stdout
    assert "c.txt" in ran.stdout
    assert "first" not in ran.stdout
    assert ran.stdout.startswith("state: ")


def test_a_review_takes_another_base_and_refuses_what_is_none(project: Path) -> None:
    script = nodes("review")["change"].spec
    ran = run(script, project, GRAPHD_VAR_base="HEAD")
    assert "+two" not in ran.stdout
    assert "+and a half" in ran.stdout
    assert run(script, project, GRAPHD_VAR_base="--output=x").returncode == 1
    assert not (project / "x").exists()


def test_a_review_needs_a_work_tree(tmp_path: Path) -> None:
    ran = run(nodes("review")["change"].spec, tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no git work tree" in ran.stderr


@pytest.mark.parametrize(
    ("name", "slug", "variable"),
    [("implement-review", "check", "GRAPHD_VAR_check"), ("debug", "reproduce", "GRAPHD_VAR_command")],
)
def test_a_check_tells_how_the_command_ended_and_what_it_said(
    name: str, slug: str, variable: str, tmp_path: Path
) -> None:
    script = nodes(name)[slug].spec
    failing = run(script, tmp_path, **{variable: "echo 'it is \"broken\"' >&2; exit 3"})
    assert failing.returncode == 0, failing.stderr
    assert "exit code: 3" in failing.stdout
    assert 'it is "broken"' in failing.stdout
    assert "exit code: 0" in run(script, tmp_path, **{variable: "true"}).stdout
    assert "no command was given" in run(script, tmp_path, **{variable: ""}).stdout
    assert "no command was given" in run(script, tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
