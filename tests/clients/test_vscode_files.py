"""The extension's files: both languages complete, the manifest's promises kept, nothing of a machine in the lock."""

import json
import re
from pathlib import Path
from typing import Any

from tests.kit.workspaces import ROOT

HOME = ROOT / "clients" / "vscode-min"
SAID = re.compile(r"""l10n\.t\('((?:[^'\\]|\\.)*)'""")


def load(name: str) -> Any:
    return json.loads((HOME / name).read_text(encoding="utf-8"))


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((HOME / "src").rglob("*.ts")))


def test_every_text_of_the_manifest_is_there_in_both_languages_and_used() -> None:
    manifest = (HOME / "package.json").read_text(encoding="utf-8")
    named = set(re.findall(r'"%([\w.]+)%"', manifest))
    english, chinese = load("package.nls.json"), load("package.nls.zh-cn.json")
    assert named == set(english) == set(chinese)
    same = {name for name in named if english[name] == chinese[name]}
    assert same <= {"displayName", "view.container"}
    links = re.compile(r"\(command:[^)]*\)")
    assert [name for name in named if links.findall(english[name]) != links.findall(chinese[name])] == []


def test_every_text_of_the_code_is_there_in_chinese_with_the_same_places() -> None:
    said = set(SAID.findall(sources()))
    chinese = load("l10n/bundle.l10n.zh-cn.json")
    assert len(said) > 60
    assert said == set(chinese)
    places = re.compile(r"\{\d\}")
    odd = [text for text in said if sorted(places.findall(text)) != sorted(places.findall(chinese[text]))]
    assert odd == []


def test_every_command_of_the_manifest_has_a_handler_and_a_category() -> None:
    commands = load("package.json")["contributes"]["commands"]
    handlers = re.search(r"const handlers.*?\{(.*?)\n  \};", sources(), re.DOTALL)
    assert handlers is not None
    registered = {f"graphd.{name}" for name in re.findall(r"^    (\w+): \(", handlers.group(1), re.MULTILINE)}
    assert {row["command"] for row in commands} == registered
    assert all(row["category"] == "graphd" for row in commands)


def test_a_workspace_can_neither_name_the_program_nor_have_it_run_untrusted() -> None:
    manifest = load("package.json")
    assert manifest["contributes"]["configuration"]["properties"]["graphd.path"]["scope"] == "machine"
    assert manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] == ["graphd.path"]
    assert "*" not in manifest["activationEvents"]
    assert len(manifest["contributes"]["walkthroughs"][0]["steps"]) <= 4


def test_versions_agree_and_locks_name_no_registry() -> None:
    from graphd import __version__

    assert load("package.json")["version"] == __version__
    locks = [HOME / "package-lock.json", ROOT / "tests" / "clients" / "npm" / "package-lock.json"]
    assert [path for path in locks if '"resolved"' in path.read_text(encoding="utf-8")] == []


def test_modules_stay_small() -> None:
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in Path(HOME / "src").rglob("*.ts")}
    assert {name: size for name, size in sizes.items() if size > 330} == {}
