"""What each real agent does over bare ACP: `python -m tests.kit.agent_scenarios [--record] [NAME …] [-s SCENARIO …]`.

A scenario drives one agent process (or two) against the scripted model server and tells what it saw; it judges
nothing. `--record` writes the conversations into tests/data/acp for the fold's tests, paths and sessions made the same
each time.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.kit.acp_probe import Message, NoAnswer, Probe
from tests.kit.agent_page import RESULTS, results
from tests.kit.model_script import script
from tests.kit.model_server import ModelServer
from tests.kit.real_agents import AGENTS, ROOT, RealAgent

Seen = dict[str, Any]
MCP: Final = Path(__file__).with_name("programs") / "mcp_result.py"
TURN_LIMIT_S: Final = 75.0
DEATH_LIMIT_S: Final = 3.0
SETTLE_S: Final = 1.0  # codex sees to a command that has just begun otherwise than to one that runs


@dataclass
class Stage:
    """One agent in folders of its own. All its processes share them, as all attempts of one profile do."""

    agent: RealAgent
    base: Path
    server: ModelServer
    probes: list[Probe] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work, self.home = self.base / "work", self.base / "home"
        for folder in (self.work, self.home):
            folder.mkdir()

    def start(self) -> Probe:
        """A new process of the agent, nothing said yet."""
        environment = self.agent.environment(self.home, self.server.url)
        probe = Probe(self.agent.argv(), environment, self.work, self.base / "stderr.txt")
        probe.reads_files = self.agent.reads_through_us
        self.probes.append(probe)
        return probe

    def begun(self, **how: Any) -> Probe:
        """The same in a session."""
        probe = self.start()
        probe.begin(mode=self.agent.mode, **how)
        return probe

    def has(self, name: str) -> bool:
        """The file is in the work folder."""
        return (self.work / name).exists()

    def tries(self, step: int) -> int:
        """How often the model was asked for this step."""
        return sum(row.step == step for row in self.server.scripted)


def ending(probe: Probe, number: int, limit_s: float = TURN_LIMIT_S) -> Seen:
    """How a turn ended: stop reason, error or silence, and after how long."""
    began = time.monotonic()
    try:
        message = probe.response(number, limit_s)
    except NoAnswer as none:
        state = "ended" if probe.process.poll() is not None else "silent"
        return {"stop": state, "why": str(none)[:300]}
    took = round(time.monotonic() - began, 1)
    if "error" in message:
        return {"stop": "error", "error": message["error"], "took_s": took}
    result = message.get("result") or {}
    return {"stop": result.get("stopReason"), "usage": result.get("usage"), "took_s": took}


def _asked(probe: Probe) -> list[Message]:
    return [m for m in probe.theirs if m.get("method") == "session/request_permission"]


def _kinds(probe: Probe) -> list[list[str]]:
    return [[option["kind"] for option in m["params"]["options"]] for m in _asked(probe)]


def allow(stage: Stage) -> Seen:
    """Writes a file and runs a command, each allowed once."""
    probe = stage.begun()
    steps = script(
        {"think": "a file first", "write": {"path": "a.txt", "content": "hi"}, "escalate": stage.agent.escalates},
        {"shell": "echo two > b.txt; cat b.txt", "escalate": stage.agent.escalates},
        {"say": "all done"},
    )
    number = probe.prompt(f"Do it. {steps}")
    end = ending(probe, number)
    served = [m["method"] for m in probe.theirs if "id" in m and "method" in m]
    return {**end, "a": stage.has("a.txt"), "b": stage.has("b.txt"), "options": _kinds(probe), "served": served,
            "text": probe.text(), "eof_s": probe.hang_up(5)}  # fmt: skip


def reject(stage: Stage) -> Seen:
    """The write is rejected once."""
    probe = stage.begun()
    probe.permit = ("reject_once", "reject_always")
    write = {"write": {"path": "a.txt", "content": "hi"}, "escalate": stage.agent.escalates}
    number = probe.prompt(f"Do it. {script(write, {'say': 'it was rejected'})}")
    end = ending(probe, number)
    return {**end, "a": stage.has("a.txt"), "asked": len(_asked(probe)), "goes_on": stage.tries(1) > 0,
            "tool": [u.get("status") for u in probe.updates("tool_call_update")], "text": probe.text()}  # fmt: skip


def _after(stage: Stage, probe: Probe) -> Seen:
    """A next turn in the same session still works."""
    number = probe.prompt(f"Next. {script({'say': 'still here'})}")
    return {"next": {**ending(probe, number, 40), "has_said_it": "still here" in probe.text()}}


def cancel_wait(stage: Stage) -> Seen:
    """Cancelled while the model is silent."""
    probe = stage.begun()
    number = probe.prompt(f"Do it. {script({'hold': 'never', 'say': 'late'})}")
    stage.server.wait_for_step(0)
    probe.cancel()
    end = ending(probe, number, 30)
    return {**end, **_after(stage, probe)}


def cancel_tool(stage: Stage) -> Seen:
    """Cancelled while a command runs."""
    probe = stage.begun()
    command = "echo begun > begun.txt; sleep 47; echo over > over.txt"
    number = probe.prompt(f"Do it. {script({'shell': command}, {'say': 'late'})}")
    deadline = time.monotonic() + 60
    while not stage.has("begun.txt") and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(SETTLE_S)
    probe.cancel()
    end = ending(probe, number, 30)
    deadline = time.monotonic() + DEATH_LIMIT_S
    while (alive := any("sleep 47" in line for line in probe.tree().values())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return {**end, "begun": stage.has("begun.txt"), "tool_lives": alive, **_after(stage, probe)}


def cancel_ask(stage: Stage) -> Seen:
    """Cancelled while it waits for a permission, which is answered `cancelled`, as the protocol wants it."""
    probe = stage.begun()
    probe.permit = ()
    write = {"write": {"path": "a.txt", "content": "hi"}, "escalate": stage.agent.escalates}
    number = probe.prompt(f"Do it. {script(write, {'say': 'late'})}")
    request = probe.permission()
    probe.cancel()
    probe.answer(request)
    end = ending(probe, number, 30)
    probe.permit = ("allow_once",)
    return {**end, "a": stage.has("a.txt"), **_after(stage, probe)}


def _killed(stage: Stage, how: str) -> Seen:
    probe = stage.begun()
    steps = script(
        {"write": {"path": "a.txt", "content": "hi"}},
        {"hold": "later", "times": 1, "write": {"path": "b.txt", "content": "ho"}},
        {"say": "finished"},
    )
    probe.prompt(f"Do it. {steps}")
    stage.server.wait_for_step(1)
    offered = probe.initialized.get("agentCapabilities", {})
    can = {"load": bool(offered.get("loadSession")), "resume": "resume" in (offered.get("sessionCapabilities") or {})}
    probe.kill()
    stage.server.release("later")
    if not can[how]:
        return {"stop": "not offered"}
    again = stage.start()
    try:
        result = again.begin(restore=probe.session, how=how)
    except NoAnswer as refused:
        return {"stop": "refused", "why": str(refused)[:400]}
    replayed = [u["sessionUpdate"] for u in again.updates()]
    mode = (result.get("modes") or {}).get("currentModeId")
    if stage.agent.mode:
        again.call("session/set_mode", {"sessionId": again.session, "modeId": stage.agent.mode})
    number = again.prompt("You were interrupted. Look at what is done, and go on.")
    end = ending(again, number)
    last = stage.server.scripted[-1].user_texts if stage.server.scripted else []
    return {**end, "a": stage.has("a.txt"), "b": stage.has("b.txt"), "tries": [stage.tries(i) for i in range(3)],
            "replayed": replayed, "mode": mode, "users": [text[-60:] for text in last],
            "text": again.text()}  # fmt: skip


def killed_resume(stage: Stage) -> Seen:
    """SIGKILL in mid-turn, then session/resume in a new process, then "go on"."""
    return _killed(stage, "resume")


def killed_load(stage: Stage) -> Seen:
    """The same with session/load."""
    return _killed(stage, "load")


def unknown_session(stage: Stage) -> Seen:
    """Restores a session that never was."""
    seen: Seen = {}
    for how in ("resume", "load"):
        probe = stage.start()
        try:
            probe.begin(restore="01234567-89ab-7def-8123-456789abcdef", how=how)
            seen[how] = "accepted"
        except NoAnswer as refused:
            seen[how] = str(refused)[:300]
        probe.kill()
    return seen


def _weather(stage: Stage, step: Seen, limit_s: float = TURN_LIMIT_S) -> Seen:
    probe = stage.begun()
    number = probe.prompt(f"Do it. {script({'say': 'a text of several words', **step})}")
    end = ending(probe, number, limit_s)
    times = [row.at_s for row in stage.server.scripted if row.step == 0]
    gaps = [round(after - before, 1) for before, after in zip(times, times[1:], strict=False)]
    other = sorted({u["sessionUpdate"] for u in probe.updates()})
    return {**end, "tries": len(times), "gaps_s": gaps, "text": probe.text()[-400:], "updates": other}


def error_500(stage: Stage) -> Seen:
    """500 twice, then the answer."""
    return _weather(stage, {"error": 500, "times": 2})


def error_429(stage: Stage) -> Seen:
    """429 with Retry-After 2 once, then the answer."""
    return _weather(stage, {"error": 429, "retryAfterS": 2, "times": 1})


def limit_429(stage: Stage) -> Seen:
    """429 with Retry-After 1 for ever."""
    return _weather(stage, {"error": 429, "retryAfterS": 1}, 60)


def limit_500(stage: Stage) -> Seen:
    """500 for ever."""
    return _weather(stage, {"error": 500}, 60)


def refused_401(stage: Stage) -> Seen:
    """401 for ever."""
    return _weather(stage, {"error": 401}, 60)


def refused_400(stage: Stage) -> Seen:
    """400 for ever."""
    return _weather(stage, {"error": 400}, 60)


def dropped(stage: Stage) -> Seen:
    """The stream breaks once in the middle, then the answer."""
    return _weather(stage, {"drop": True, "times": 1})


def mcp_result(stage: Stage) -> Seen:
    """Calls a tool of a stdio MCP server that was given with the session."""
    probe = stage.start()
    taken = stage.base / "taken.jsonl"
    probe.servers = [{"name": "graphd", "command": sys.executable, "args": [str(MCP), str(taken)], "env": []}]
    probe.begin(mode=stage.agent.mode)
    call = {"tool": {"name": "submit_result", "args": {"text": "the result"}}}
    number = probe.prompt(f"Do it. {script(call, {'say': 'handed in'})}")
    end = ending(probe, number)
    offered = [row.tools for row in stage.server.scripted][:1]
    names = [name for name in (offered[0] if offered else ()) if "submit_result" in name]
    return {**end, "taken": taken.exists(), "tool_names": names, "asked": len(_asked(probe)), "options": _kinds(probe),
            "titles": [m["params"]["toolCall"].get("title") for m in _asked(probe)]}  # fmt: skip


SCENARIOS: Final[dict[str, Callable[[Stage], Seen]]] = {
    made.__name__: made
    for made in (
        allow, reject, cancel_wait, cancel_tool, cancel_ask, killed_resume, killed_load, unknown_session, error_500,
        error_429, limit_429, limit_500, refused_401, refused_400, dropped, mcp_result,
    )
}  # fmt: skip


# ------------------------------------------------------------------ recording
def _shorter(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 1500 else value[:300] + "…"
    if isinstance(value, list):
        return [_shorter(item) for item in value]
    if isinstance(value, dict):
        cut = {"availableCommands": 1, "options": 4, "availableModels": 2}
        return {k: _shorter(v[: cut[k]] if k in cut and isinstance(v, list) else v) for k, v in value.items()}
    return value


def recorded(stage: Stage) -> list[str]:
    """The conversations as JSON lines {"process", "whose", "message"}, without anything of this machine."""
    named = [(str(stage.work), "/work-tree"), (str(stage.home), "/agent-home"), (str(stage.base), "/stage")]
    named += [(before.lstrip("/"), after.lstrip("/")) for before, after in list(named)]
    address = stage.server.url.removeprefix("http://")
    named += [(str(ROOT), "/checkout"), (sys.executable, "python3"), (address, "127.0.0.1:1")]
    sessions = list(dict.fromkeys(probe.session for probe in stage.probes if probe.session))
    named += [(session, f"session-{index}") for index, session in enumerate(sessions, 1)]
    lines = []
    for index, probe in enumerate(stage.probes, 1):
        for line in probe.lines:
            text = json.dumps(_shorter(line.message), ensure_ascii=False)
            for before, after in named:
                text = text.replace(before, after)
            text = re.sub(r'"(pid|processId|process_id)": "?\d+"?', r'"\1": 1', text)
            lines.append(f'{{"process": {index}, "whose": "{line.whose}", "message": {text}}}')
    return lines


def play(agent: RealAgent, scenario: str, folder: Path) -> tuple[Seen, list[str]]:
    """Run one scenario; what was seen, and the conversations."""
    with ModelServer() as server:
        stage = Stage(agent, folder, server)
        began = time.monotonic()
        try:
            seen = SCENARIOS[scenario](stage)
        except NoAnswer as none:
            seen = {"stop": "no answer", "why": str(none)[:1500]}
        except AssertionError as missed:
            seen = {
                "stop": "missed",
                "why": str(missed)[:600],
                "last": [m for p in stage.probes for m in p.theirs][-3:],
            }
        finally:
            for probe in stage.probes:
                probe.kill()
        if stage.probes:
            starts = [line.at_s for line in stage.probes[0].lines if line.whose == "theirs" and "id" in line.message]
            seen["initialize_s"], seen["session_s"] = [round(at, 2) for at in (*starts[:2], 0, 0)[:2]]
        seen["whole_s"] = round(time.monotonic() - began, 1)
        if server.strays:
            seen["strays"] = server.strays
        return seen, recorded(stage)


def note(name: str, scenario: str, seen: Seen) -> None:
    """Put what was seen into the results file."""
    agent, found = AGENTS[name], results()
    row = found.get(name)
    if row is None or row["version"] != agent.version:
        row = {"scenarios": {}}
    row = {"package": agent.package, "version": agent.version, "day": time.strftime("%Y-%m-%d"),
        "scenarios": {**row["scenarios"], scenario: seen}}  # fmt: skip
    ordered = {key: {**found, name: row}[key] for key in AGENTS if key in {**found, name: row}}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="real agents over bare ACP")
    parser.add_argument("names", nargs="*", choices=[[], *AGENTS])
    parser.add_argument("-s", "--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--record", action="store_true", help="write the conversations into tests/data/acp")
    parser.add_argument("--results", action="store_true", help="write what was seen into tests/agents/bare.json")
    asked = parser.parse_args()
    for name in asked.names or AGENTS:
        for scenario in asked.scenario or SCENARIOS:
            with tempfile.TemporaryDirectory(prefix="agent-") as folder:
                seen, lines = play(AGENTS[name], scenario, Path(folder))
            print(json.dumps({"agent": name, "scenario": scenario, **seen}), flush=True)
            if asked.results:
                note(name, scenario, seen)
            if asked.record:
                target = ROOT / "tests" / "data" / "acp" / name / f"{scenario}.jsonl"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
