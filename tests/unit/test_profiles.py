"""Profiles and workers: the shipped data, which profile serves a worker, with which terms, and provider weather."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.children.acp.quirks import QUIRKS
from graphd.children.acp.weather import of_text
from graphd.children.command.dialects import DIALECTS
from graphd.children.drivers import OURS
from graphd.children.environment import agent_environment
from graphd.children.profiles import PASS_NAMES, PERMISSIONS, PROFILES, WORKERS, Models, Profile, Weather, Worker
from graphd.children.profiles.choosing import (
    Agents,
    Terms,
    Unserved,
    Wish,
    find_program,
    found,
    least,
    may_not_serve,
    serve,
    terms,
)
from graphd.children.profiles.weather import LONGEST_S, cooldown_s, jitter
from graphd.client.greeting import ASKED_NAMES
from graphd.daemon.agents import Served, caps, served
from graphd.daemon.orders import quirks_of
from graphd.daemon.settings import Settings
from graphd.workflows import BUILT_IN_WORKERS


def install(folder: Path, *names: str) -> str:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def reason_of(answer: Profile | Unserved) -> str:
    assert isinstance(answer, Unserved)
    return answer.reason


def name_of(answer: Profile | Unserved) -> str:
    assert isinstance(answer, Profile), answer
    return answer.name


# ---- the data -----------------------------------------------------------------------------------------------------


def test_workers_are_those_of_the_language_and_their_permissions_those_of_the_table() -> None:
    assert set(WORKERS) == set(BUILT_IN_WORKERS)
    assert WORKERS["review"] == Worker("read", "advanced")
    assert WORKERS["build"] == Worker("edit", "standard")


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_profile_is_whole(profile: Profile) -> None:
    assert profile.driver in OURS
    assert profile.install
    assert profile.restore
    assert profile.mem_mb > 0
    assert profile.login or profile.driver == "shell"
    assert (profile.headless is not None) == (profile.driver == "command")
    if profile.headless is not None:
        assert profile.headless.dialect in DIALECTS
        assert not profile.asks_permission
        assert profile.headless.resume
        assert profile.headless.gone
    assert quirks_of(profile).restore == tuple(how for how in profile.restore if how != "none")


def test_every_agent_with_a_table_of_lies_has_a_profile_and_clients_send_what_profiles_ask_for() -> None:
    assert set(QUIRKS) <= set(PROFILES)
    assert PASS_NAMES == ASKED_NAMES


def test_an_agent_gets_its_own_key_and_a_script_gets_none() -> None:
    environment = {"PATH": "/bin", "ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g", "LANG": "C"}
    claude = agent_environment(environment, PROFILES["claude"], PROFILES)
    assert "ANTHROPIC_API_KEY" in claude
    assert "GEMINI_API_KEY" not in claude
    assert claude["DISABLE_AUTOUPDATER"] == "1"
    assert agent_environment(environment, PROFILES["shell"], PROFILES) == {"PATH": "/bin", "LANG": "C"}
    private = replace(PROFILES["claude"], home="/private", env=(("PATH", "/mine"),))
    assert agent_environment(environment, private, PROFILES)["HOME"] == "/private"
    assert agent_environment(environment, private, PROFILES)["PATH"] == "/mine"


# ---- who serves ---------------------------------------------------------------------------------------------------


def test_the_first_installed_agent_that_may_serves(tmp_path: Path) -> None:
    agents = Agents()
    path = install(tmp_path / "bin", "pi-acp", "claude", "gemini")
    assert name_of(serve(agents, "build", path)) == "gemini"
    assert name_of(serve(agents, "shell", "")) == "shell"
    (tmp_path / "bin" / "gemini").unlink()
    assert "pi does not ask before it acts" in reason_of(serve(agents, "build", path))
    assert name_of(serve(agents, "build", path, permissions="full")) == "pi"
    install(tmp_path / "bin", "opencode")
    assert name_of(serve(agents, "build", path)) == "opencode"


def test_a_worker_names_its_agent_and_a_default_serves_the_rest(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "opencode", "gemini", "pi-acp")
    workers = {**WORKERS, "build": replace(WORKERS["build"], agent="gemini")}
    agents = Agents(workers=workers, default="opencode")
    assert name_of(serve(agents, "build", path)) == "gemini"
    assert name_of(serve(agents, "review", path)) == "opencode"
    assert name_of(serve(agents, "shell", path)) == "shell"
    asked = Agents(default="pi")
    assert "permissions full only, and this asks for read" in reason_of(serve(asked, "plan", path))
    assert name_of(serve(asked, "plan", path, permissions="full")) == "pi"


def test_nobody_there_says_what_to_install_and_which_path_of_whom(tmp_path: Path) -> None:
    answer = serve(Agents(), "build", f"{tmp_path}::/nowhere", whose="the editor")
    said = reason_of(answer)
    assert f"PATH={tmp_path}::/nowhere of the editor" in said
    assert "npm install -g opencode-ai" in said
    assert isinstance(answer, Unserved)
    assert answer.searched == (str(tmp_path), "/nowhere")
    said = reason_of(serve(Agents(default="claude"), "build", str(tmp_path), whose="the editor"))
    assert "claude-agent-acp was not found on PATH=" in said
    assert "of the editor; install it with npm" in said
    assert "agents.deepagents.command" in reason_of(serve(Agents(default="deepagents"), "build", ""))
    assert "is no worker" in reason_of(serve(Agents(), "cook", ""))
    gone = {**PROFILES, "claude": replace(PROFILES["claude"], command=(str(tmp_path / "claude"),))}
    assert f"{tmp_path}/claude is not there" in reason_of(serve(Agents(gone, default="claude"), "build", ""))


def test_an_agent_without_its_home_serves_nobody_and_says_why(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "opencode")
    home = replace(PROFILES["opencode"], home=str(tmp_path / "home"))
    for default in ("opencode", None):
        said = reason_of(serve(Agents({"opencode": home}, default=default), "build", path))
        assert said == f"the home of opencode, {tmp_path}/home, is no folder"
    (tmp_path / "home").mkdir()
    assert name_of(serve(Agents({"opencode": home}), "build", path)) == "opencode"


def test_what_wraps_an_agent_must_be_there_too(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "opencode")
    wrapped = replace(PROFILES["opencode"], command_prefix=("bwrap", "--unshare-all"))
    assert found(wrapped, path) is None
    said = reason_of(serve(Agents({**PROFILES, "opencode": wrapped}, default="opencode"), "build", path))
    assert "program bwrap was not found" in said
    install(tmp_path / "bin", "bwrap")
    assert found(wrapped, path) == tmp_path / "bin" / "opencode"
    elsewhere = replace(PROFILES["opencode"], env=(("PATH", path),))
    assert found(elsewhere, "/nowhere") == tmp_path / "bin" / "opencode"


def test_a_program_is_an_executable_file(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "x")
    assert find_program("x", f"/nowhere{os.pathsep}{path}") == tmp_path / "bin" / "x"
    assert find_program(f"{path}/x", "") == tmp_path / "bin" / "x"
    assert find_program("", path) is None
    (tmp_path / "bin" / "x").chmod(0o644)
    assert find_program("x", path) is None


def test_the_table_for_the_scheduler_is_what_any_path_serves(tmp_path: Path) -> None:
    first, second = install(tmp_path / "1"), install(tmp_path / "2", "gemini")
    assert dict(served(Agents(), [first])) == {"shell": "shell"}
    assert dict(served(Agents(), [first, second])) == dict.fromkeys(WORKERS, "gemini") | {"shell": "shell"}


def test_an_agent_that_does_not_ask_serves_workers_whose_nodes_may_do_anything(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "pi-acp")
    assert dict(served(Agents(), [path], full={"build"})) == {"shell": "shell", "build": "pi"}
    install(tmp_path / "bin", "gemini")
    assert dict(served(Agents(), [path], full={"build"}))["build"] == "gemini"


def test_a_path_that_was_asked_about_is_looked_through_with_those_of_the_graphs(tmp_path: Path) -> None:
    first, second = install(tmp_path / "1"), install(tmp_path / "2", "gemini")
    table = Served(Agents)
    assert table.table == (("shell", "shell"),)
    assert table.look(second)
    assert not table.look(graphs=[first])
    assert dict(table.table)["build"] == "gemini"
    assert dict(table.on(first)) == {"shell": "shell"}
    table.drop("gemini")
    assert dict(table.table) == {"shell": "shell"}


def test_caps_are_what_the_profile_says_and_what_fits_into_the_memory() -> None:
    found = dict(caps(Settings(memory_mb=1000)))
    assert found["gemini"] == 1000 // PROFILES["gemini"].mem_mb
    assert "shell" not in found
    profiles = {**PROFILES, "gemini": replace(PROFILES["gemini"], max_processes=1)}
    assert dict(caps(Settings(memory_mb=100_000, agents=Agents(profiles))))["gemini"] == 1
    settings, table = Settings(concurrency=3), Served(Agents)
    assert table.capacity(settings).concurrency == 3
    assert table.capacity(settings).per_profile == caps(settings)


# ---- on which terms -----------------------------------------------------------------------------------------------


def test_terms_are_the_nodes_wishes_over_the_workers_in_the_agents_words() -> None:
    agents, claude = Agents(), PROFILES["claude"]
    assert terms(agents, claude, "review", Wish()) == Terms("read", "opus", None, "default")
    assert terms(agents, claude, "build", Wish(permissions="full", model="my-model", mode="plan")) == Terms(
        "full", "my-model", None, "plan"
    )
    assert terms(Agents(models=Models(standard="dear")), claude, "build", Wish()).model == "dear"
    assert terms(agents, PROFILES["codex"], "build", Wish(thinking="max")).thinking == "xhigh"
    assert terms(agents, PROFILES["codex"], "build", Wish()).model is None
    assert terms(agents, claude, "build", Wish(thinking="max")).thinking is None
    workers = {**WORKERS, "build": Worker("edit", "small", thinking="low", mode="ask")}
    assert terms(Agents(workers=workers), PROFILES["codex"], "build", Wish()) == Terms("edit", None, "low", "ask")
    assert terms(Agents(workers=workers), claude, "build", Wish()).model == "haiku"


@given(st.sampled_from(list(PROFILES.values())), st.sampled_from([None, *PERMISSIONS]))
def test_only_an_agent_that_asks_serves_less_than_full(profile: Profile, permissions: str | None) -> None:
    refused = may_not_serve(profile, permissions)  # type: ignore[arg-type]  # sampled_from widens the literals
    assert (refused is not None) == (not profile.asks_permission and permissions in ("read", "edit"))


def test_the_least_of_several_permissions_decides() -> None:
    assert least(["full", "read", "edit"]) == "read"
    assert least([]) is None


# ---- weather ------------------------------------------------------------------------------------------------------


@given(st.integers(-2, 200), st.text(max_size=20), st.floats(0, 1e5))
def test_a_cooldown_is_bounded_and_never_shorter_than_asked(in_row: int, seed: str, asked_s: float) -> None:
    rests_s = cooldown_s(Weather(), in_row=in_row, seed=seed, retry_after_s=asked_s)
    assert rests_s >= asked_s
    assert rests_s <= 1.25 * max(asked_s, LONGEST_S)
    assert rests_s == cooldown_s(Weather(), in_row=in_row, seed=seed, retry_after_s=asked_s)
    assert 0 <= jitter(seed) < 1


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_an_answer_that_speaks_of_limits_is_no_weather(profile: Profile) -> None:
    for answer in (
        "The export is unavailable on the free plan, so I left it out.",
        "The table shows the usage limits of each team; the highest is 12.",
        "Retries are now counted, and the rate limit is read from the settings.",
    ):
        assert of_text(answer, profile.weather.patterns) is None, answer


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("codex", "You've hit your usage limit. Upgrade to Pro, or try again in 3 hours."),
        ("codex", "stream error: The usage limit has been reached"),
        ("codex", '{"error":{"type":"usage_limit_reached"}}'),
        ("gemini", '{"error":{"code":503,"status":"UNAVAILABLE"}}'),
        ("gemini", "got status: UNAVAILABLE. The model is not there now."),
        ("claude", "Claude AI usage limit reached|1766000000"),
    ],
)
def test_what_a_provider_says_when_it_is_busy_is_weather(name: str, said: str) -> None:
    found = of_text(said, PROFILES[name].weather.patterns)
    assert found is not None
    assert found.kind == "weather"


def test_a_cooldown_doubles_and_nodes_come_back_apart() -> None:
    plain = [cooldown_s(Weather(cooldown_s=10), in_row=row, seed="x") for row in (1, 2, 3)]
    assert [round(s / plain[0], 6) for s in plain] == [1, 2, 4]
    assert len({cooldown_s(Weather(), in_row=1, seed=f"node-{i}") for i in range(50)}) == 50
