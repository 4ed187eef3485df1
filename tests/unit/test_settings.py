"""Settings: the user's file, the workspace's that may only lower, and errors that name file, line and cause."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphd.daemon.agent_settings import AGENT_FIELDS, WORKER_FIELDS
from graphd.daemon.live_settings import LiveSettings
from graphd.daemon.settings import KEYS, Settings, SettingsRefused, load_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "user.json", tmp_path / "workspace.json"


def test_missing_files_say_nothing(files: tuple[Path, Path]) -> None:
    assert load_settings(*files) == Settings()


def test_every_key_is_read_into_its_field(files: tuple[Path, Path]) -> None:
    for key in KEYS:
        values: dict[type, Any] = {int: 7, float: 7, bool: False, str: "claude", list: ["edit:a/**"]}
        value = key.choices[-1] if key.choices else values[key.kind]
        nested: Any = value
        for name in reversed(key.path.split(".")):
            nested = {name: nested}
        files[0].write_text(json.dumps(nested))
        assert getattr(load_settings(*files), key.field) == (tuple(value) if key.kind is list else value)


def test_a_workspace_lowers_and_never_raises(files: tuple[Path, Path]) -> None:
    files[0].write_text('{"concurrency": 4}')
    files[1].write_text('{"concurrency": 2, "asks": {"detached": "deny"}}')
    assert load_settings(*files).concurrency == 2
    assert load_settings(*files).detached_asks == "deny"
    files[1].write_text('{"concurrency": 9}')
    assert load_settings(*files).concurrency == 4
    files[0].write_text('{"retention": {"days": 0}}')
    files[1].write_text('{"retention": {"days": 30}, "memoryMb": 9999999}')
    assert load_settings(*files).retention_days == 0, "0 is as low as it gets"
    assert load_settings(*files).memory_mb == 0, "0 is three quarters of the machine's"
    files[1].write_text('{"memoryMb": 1}')
    assert load_settings(*files).memory_mb == 1


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("[" * 100_000, 1, "not JSON", "mend"),
        ('{"concurrency": ' + "1" * 5000 + "}", 1, "not JSON", "mend"),
        ('{\n "concurency": 3}', 2, "unknown key concurency", "concurrency"),
        ('{"retention":\n {"day": 3}}', 2, "unknown key retention.day", "retention.days"),
        ('{"concurrency": "3"}', 1, "must be of type int", '"3"'),
        ('{"concurrency": 2.5}', 1, "must be of type int", "2.5"),
        ('{"concurrency": true}', 1, "must be of type int", "true"),
        ('{"concurrency": 0}', 1, "between 1 and 256", "0"),
        ('{"log": {"level": "loud"}}', 1, "one of debug", "loud"),
        ('{\n\n"agents": 3}', 3, "agents must be an object", "{"),
        ('{"agents": {"claude":\n {"memMB": 3}}}', 2, "unknown key agents.claude.memMB", "memMb"),
        ('{"agents": {"clade":\n {"memMb": 3}}}', 1, "there is no agent clade", "claude"),
        ('{"agents": {"mine": {"driver": "acp"}}}', 1, "there is no agent mine", "driver and command"),
        ('{"agents": {"claude": [1]}}', 1, "agents.claude must be an object", "{"),
        ('{"agents": {"claude": {"memMb": 0}}}', 1, "a whole number from 1", "0"),
        ('{"agents": {"claude": {"command": []}}}', 1, "a list of texts, the program first", "[]"),
        ('{"agents": {"claude": {"passEnv": ["A B"]}}}', 1, "a list of names of variables", "A B"),
        ('{"agents": {"claude": {"env": {"KEY": 3}}}}', 1, "an object of variables", "got dict"),
        ('{"agents": {"claude": {"reports": "all"}}}', 1, "one of tokens, cost", "all"),
        ('{"agents": {"claude": {"restore": ["fork"]}}}', 1, "some of resume, load", "fork"),
        ('{"agents": {"claude": {"models": {"big": "x"}}}}', 1, "texts for some of advanced", "big"),
        ('{"agents": {"claude": {"asksPermission": "yes"}}}', 1, "true or false", "yes"),
        ('{"agents": {"claude": {"initTimeoutS": 0}}}', 1, "seconds from 1", "0"),
        ('{"agents": {"claude": {"setMode": ""}}}', 1, "a text that is not empty", '""'),
        ('{"agents": {"shell": {"memMb": 1}}}', 1, "shell can't be changed", "another"),
        ('{"agents": {"a b": {"driver": "acp", "command": ["x"]}}}', 1, "can't be the name", "letters"),
        ('{"workers":\n {"bild": {}}}', 2, "there is no worker bild", "build"),
        ('{"workers": {"build": {"agents": "x"}}}', 1, "unknown key workers.build.agents", "agent"),
        ('{"workers": {"build": {"agent": "cloude"}}}', 1, "there is no agent cloude", "claude"),
        ('{"workers": {"build": {"agent": "shell"}}}', 1, "there is no agent shell", "opencode"),
        ('{"defaultAgent": "cloude"}', 1, "there is no agent cloude", "claude"),
        ('{"dag": {"model": {"advancd": "x"}}}', 1, "unknown key dag.model.advancd", "dag.model.advanced"),
        ('{"permissions": {"alow": []}}', 1, "unknown key permissions.alow", "permissions.allow"),
        ('{"permissions": 3}', 1, "unknown key permissions", "permissions."),
        ('{"permissions": {"allow": "edit"}}', 1, "a list of at most 256 rules", "execute:make *"),
        ('{"permissions": {"allow": [3]}}', 1, "a list of at most 256 rules", "execute:make *"),
        ('{"permissions": {\n"deny": ["edit:a", "rm *"]}}', 2, "'rm *': 'rm *' is no tool kind", "execute:make *"),
        ("[]", 1, "must be an object", "{"),
        ('{"concurrency": }', 1, "not JSON", "syntax"),
    ],
)
def test_bad_settings_are_refused_by_line(
    files: tuple[Path, Path], text: str, line: int, message: str, hint: str
) -> None:
    files[0].write_text(text)
    with pytest.raises(SettingsRefused) as refused:
        load_settings(*files)
    assert (refused.value.line, refused.value.path) == (line, files[0])
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_workspace_may_not_set_what_is_the_users(files: tuple[Path, Path]) -> None:
    files[1].write_text('{"lingerSeconds": 1}')
    with pytest.raises(SettingsRefused, match="may not set lingerSeconds"):
        load_settings(*files)


def test_rules_are_the_users_and_a_workspace_may_only_deny_more(files: tuple[Path, Path]) -> None:
    files[0].write_text('{"permissions": {"deny": ["read:~/.ssh/**"], "allow": ["execute:make *", "execute:make *"]}}')
    files[1].write_text('{"permissions": {"deny": ["execute:make *", "edit:docs/**"]}}')
    found = load_settings(*files)
    assert found.denied == (f"read:{Path.home().resolve()}/.ssh/**", "execute:make *", "edit:docs/**")
    assert (found.asked, found.allowed) == ((), ("execute:make *",))


@pytest.mark.parametrize("key", ["allow", "ask"])
def test_a_workspace_may_neither_allow_nor_have_asked(files: tuple[Path, Path], key: str) -> None:
    files[1].write_text(json.dumps({"permissions": {key: ["edit:/etc/**"]}}))
    with pytest.raises(SettingsRefused, match=rf"a workspace may not set permissions\.{key}"):
        load_settings(*files)


def test_a_bad_file_of_the_workspace_keeps_nothing_of_the_users_out_of_force(files: tuple[Path, Path]) -> None:
    user, workspace = files
    user.write_text('{"permissions": {"deny": ["fetch"]}}')
    workspace.write_text('{"permissions": {"allow": ["fetch"]}}')
    live = LiveSettings(user, workspace)
    assert live.now.denied == ("fetch",)
    assert live.trouble is not None
    workspace.write_text('{"concurrency": 2}')
    assert live.reload()
    assert live.now.concurrency == 2
    assert live.trouble is None
    workspace.write_text("{")
    user.write_text('{"permissions": {"deny": ["other"]}, "defaultAgent": "claude"}')
    assert live.reload()
    assert (live.now.denied, live.now.concurrency) == (("other",), 2), "the workspace's last good word still limits"
    assert live.trouble is not None
    user.write_text("{")
    assert not live.reload()
    assert live.now.denied == ("other",)


def test_agents_are_changed_key_by_key_and_new_ones_stand_behind(files: tuple[Path, Path]) -> None:
    agents = {
        "claude": {"memMb": 900, "models": {"small": "tiny"}, "env": {"A": "1"}, "commandPrefix": ["nice"]},
        "mine": {"driver": "acp", "command": ["my-agent", "--acp"], "passEnv": ["MY_KEY"]},
        "batch": {"driver": "command", "command": ["/opt/claude"]},
        "plain": {"driver": "command", "command": ["ask"]},
    }
    files[0].write_text(json.dumps({"agents": agents}))
    found = load_settings(*files).agents.profiles
    claude = found["claude"]
    assert (claude.mem_mb, claude.models.small, claude.models.advanced) == (900, "tiny", "opus")
    assert dict(claude.env) == {"DISABLE_AUTOUPDATER": "1", "A": "1"}
    assert claude.program == "nice"
    assert list(found)[-3:] == ["mine", "batch", "plain"]
    assert (found["mine"].pass_env, found["mine"].asks_permission) == (("MY_KEY",), True)
    assert found["batch"].headless == found["claude-headless"].headless
    assert not found["batch"].asks_permission
    assert found["plain"].headless is not None
    assert found["plain"].headless.dialect == "plain"


def test_a_workspace_chooses_among_agents_and_lowers_permissions(files: tuple[Path, Path]) -> None:
    files[0].write_text('{"defaultAgent": "claude", "workers": {"debug": {"permissions": "full"}}}')
    ours = {
        "defaultAgent": "codex",
        "dag": {"model": {"advanced": "big"}},
        "workers": {"build": {"agent": "gemini", "permissions": "full"}, "debug": {"permissions": "read"}},
    }
    files[1].write_text(json.dumps(ours))
    agents = load_settings(*files).agents
    assert (agents.default, agents.models.advanced) == ("codex", "big")
    assert (agents.workers["build"].agent, agents.workers["build"].permissions) == ("gemini", "edit")
    assert agents.workers["debug"].permissions == "read"


@pytest.mark.parametrize("key", ['"agents": {"claude": {"memMb": 1}}', '"workers": {"build": {"model": "dear"}}'])
def test_programs_and_models_of_workers_are_not_the_workspaces_to_say(files: tuple[Path, Path], key: str) -> None:
    files[1].write_text(f"{{{key}}}")
    with pytest.raises(SettingsRefused, match="a workspace may not set"):
        load_settings(*files)


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [key.path for key in KEYS if f"| `{key.path}` |" not in page] == []
    assert [name for name in AGENT_FIELDS if f"| `agents.<name>.{name}` |" not in page] == []
    assert [name for name in WORKER_FIELDS if f"| `workers.<name>.{name}` |" not in page] == []
