"""Builds an attempt's order from committed state: what the child is told, its agent, inputs, environment, deadlines.

Reads state and looks for the agent's program; writes nothing.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphd.base.text import t
from graphd.children.acp.quirks import QUIRKS, Quirks
from graphd.children.driver import Before, Input, Order
from graphd.children.environment import agent_environment, own_environment
from graphd.children.profiles import Profile
from graphd.children.profiles.choosing import Agents, Wish, find_program, found, homeless, may_not_serve, terms
from graphd.children.session_lock import lock_of
from graphd.children.telling import (
    VERDICT,
    Contract,
    Earlier,
    Given,
    Reader,
    Task,
    told,
    told_to_check,
)
from graphd.core.deadlines import first_timeout_ms
from graphd.core.model import Attempt, Graph, Node
from graphd.daemon.settings import Settings
from graphd_protocol.ids import node_id

MCP_ARGV = (sys.executable, "-P", "-m", "graphd", "mcp", "--attempt")
"""How an agent starts our MCP server. `-P`: modules of the node's folder, where it stands, must not pass for ours."""


@dataclass(slots=True, frozen=True)
class House:
    """What every order of this daemon has in common."""

    folder: Path
    sessions: Path
    """Where the locks of child sessions lie, for all workspaces of the user."""
    store: str
    epoch: int
    restart_argv: tuple[str, ...]
    load_environment: Callable[[str | None], dict[str, str]]


def attempt_folder(folder: Path, attempt: Attempt) -> Path:
    """Where everything of one attempt lies."""
    return Path(f"{folder}/attempts/{attempt.graph}/{attempt.folder}")  # one parse: joins cost a third of an order


def build_order(house: House, settings: Settings, graph: Graph, attempt: Attempt) -> Order:
    """Everything that one attempt needs, from its frozen definition."""
    order = _plain_order(house, settings, graph, attempt)
    profile = settings.agents.profiles.get(attempt.profile)
    if profile is None:
        refusal = t("there is no agent {name} in the settings any more", name=attempt.profile)
        return replace(order, refusal=refusal, is_agent_gone=True)
    if profile.driver == "shell":
        return replace(order, environment=agent_environment(order.environment, profile, settings.agents.profiles))
    return _for_agent(house, order, settings.agents, profile, graph, attempt)


def _plain_order(house: House, settings: Settings, graph: Graph, attempt: Attempt) -> Order:
    """What an order for any driver has."""
    node = graph.nodes[attempt.node]
    definition = node.definition
    check = definition.verify if attempt.role == "verifier" else None
    timeout_ms = attempt.clock.total_ms if attempt.clock is not None else first_timeout_ms(node)
    return Order(
        graph=graph.id, node=node.id, slug=node.slug, number=attempt.number, role=attempt.role,
        # With the store: an exported graph may live here and where it came from.
        cookie=f"{house.store}/{attempt.cookie}",
        folder=attempt_folder(house.folder, attempt), profile=attempt.profile,
        spec=(check.run or check.criteria) if check else definition.spec,
        inputs=tuple(_inputs(house.folder, graph, node, attempt)),
        environment=house.load_environment(attempt.environment),
        cwd=Path(graph.workspace), workspace=Path(graph.workspace), variables=_variables(graph, node),
        timeout_s=timeout_ms / 1000,
        linger_s=settings.linger_s, restart_argv=house.restart_argv if settings.keepers_restart_daemon else (),
        store=house.store, epoch=house.epoch, findings=node.findings, started_at_ms=attempt.started_at,
        sessions=house.sessions,
        output_schema=None if check else definition.output_schema, artifacts=() if check else definition.artifacts,
    )  # fmt: skip


def _for_agent(house: House, order: Order, agents: Agents, profile: Profile, graph: Graph, attempt: Attempt) -> Order:
    """The order for an agent that is told things: its program, its terms, and the whole text."""
    node = graph.nodes[attempt.node]
    definition = node.definition
    is_check = attempt.role == "verifier"
    asked = Wish("read") if is_check else Wish(
        definition.permissions, definition.model, definition.thinking, definition.mode
    )  # fmt: skip
    agreed = terms(agents, profile, attempt.worker, asked)
    environment = agent_environment(order.environment, profile, agents.profiles)
    program = found(profile, environment.get("PATH", ""))
    contract = Contract(VERDICT) if is_check else Contract(definition.output_schema, definition.artifacts)
    if profile.driver == "acp" and quirks_of(profile).takes_mcp:
        order = replace(order, mcp_argv=MCP_ARGV, mcp_env=_mcp_env(order))
    earlier = _resumed(graph, attempt)
    resumed = earlier if profile.restore != ("none",) else None
    before = earlier or _replaced(graph, attempt)
    gone = _gone(profile, program, environment)
    unfit = may_not_serve(profile, agreed.permissions)
    is_named = agents.default is not None or agents.workers[attempt.worker].agent is not None
    return replace(
        order, driver=profile.driver, environment=environment,
        argv=_argv(profile, program, environment) if gone is None else (),
        told=told(_task(order, graph, attempt, contract)), model=agreed.model, mode=agreed.mode,
        thinking=agreed.thinking, permissions=agreed.permissions, output_schema=contract.schema,
        max_tool_calls=None if is_check else definition.max_tool_calls,
        resume_session=resumed.child_session if resumed else None,
        before=_before(house, order, before, contract) if before else None,
        headless=profile.headless, quirks=quirks_of(profile), secrets=_secrets(profile, environment),
        # One that nobody named stands in for one that is gone: the node waits for it to come back.
        refusal=gone or unfit, is_agent_gone=gone is not None or (unfit is not None and not is_named),
    )  # fmt: skip


def session_lock(house: House, agents: Agents, attempt: Attempt) -> Path:
    """The lock of the session of an attempt whose profile is known."""
    environment = house.load_environment(attempt.environment)
    home = agent_environment(environment, agents.profiles[attempt.profile], agents.profiles).get("HOME", "")
    return lock_of(house.sessions, attempt.profile, home, attempt.child_session or "")


def quirks_of(profile: Profile) -> Quirks:
    """What its driver has to know of it: the table of lies, and what the profile says of the same."""
    restore = tuple(how for how in profile.restore if how != "none")
    known = QUIRKS.get(profile.name, Quirks())
    return replace(known, restore=restore, init_s=profile.init_timeout_s, weather=profile.weather.patterns)


def _secrets(profile: Profile, environment: dict[str, str]) -> tuple[str, ...]:
    """The values that the profile alone gave to its child: none of them is for a log or a reader."""
    names = (*profile.pass_env, *(name for name, _ in profile.env))
    return tuple(dict.fromkeys(environment[name] for name in names if environment.get(name)))


def _argv(profile: Profile, program: Path | None, environment: dict[str, str]) -> tuple[str, ...]:
    """The words of the command, its programs as they were found: what starts it may have another PATH."""
    if program is None:
        return ()
    prefix = profile.command_prefix
    wrapper = find_program(prefix[0], environment.get("PATH", "")) if prefix else None
    return (*((str(wrapper), *prefix[1:]) if prefix else ()), str(program), *profile.command[1:])


def _gone(profile: Profile, program: Path | None, environment: dict[str, str]) -> str | None:
    if program is None:
        path = environment.get("PATH", "")
        return t("the program of {agent} is not on PATH={path} any more", agent=profile.name, path=path)
    return homeless(profile)


def _resumed(graph: Graph, attempt: Attempt) -> Attempt | None:
    """The attempt whose session this one goes on with."""
    if attempt.resumes is None:
        return None
    earlier = graph.attempts.get((attempt.node, attempt.role, attempt.resumes))
    return earlier if earlier is not None and earlier.child_session else None


def _replaced(graph: Graph, attempt: Attempt) -> Attempt | None:
    """The attempt whose session the last one was to go on with, and could not."""
    last = graph.attempts.get((attempt.node, attempt.role, attempt.number - 1))
    if last is None or last.outcome != "lost" or last.child_session is not None:
        return None
    return _resumed(graph, last)


def _mcp_env(order: Order) -> tuple[tuple[str, str], ...]:
    return tuple(own_environment(workspace=order.workspace, cookie=order.cookie, folder=order.folder).items())


def _before(house: House, order: Order, earlier: Attempt, contract: Contract) -> Before:
    cause = earlier.reason or str(earlier.outcome)
    return Before(cause, attempt_folder(house.folder, earlier), contract, _reader(order))


def _reader(order: Order) -> Reader:
    return "mcp" if order.mcp_argv else "shell"


def _task(order: Order, graph: Graph, attempt: Attempt, contract: Contract) -> Task:
    inputs = tuple(Given(given.name, given.text, given.total_bytes) for given in order.inputs)
    objective = graph.objective if graph.objective != graph.title else ""  # a graph without one has its title
    if attempt.role == "verifier":
        return Task(
            prompt=told_to_check(order.spec), objective=objective, inputs=inputs, contract=contract,
            reader=_reader(order),
        )  # fmt: skip
    return Task(
        prompt=order.spec, objective=objective, earlier=_earlier(graph, attempt), inputs=inputs,
        variables=_item(graph, graph.nodes[attempt.node]), contract=contract,
        reader=_reader(order),
    )  # fmt: skip


def _earlier(graph: Graph, attempt: Attempt) -> tuple[Earlier, ...]:
    """What a gate found that sent the work back, and how the attempt before ended, where that says something."""
    findings = graph.nodes[attempt.node].findings
    left = (Earlier("findings", findings),) if findings else ()
    before = graph.attempts.get((attempt.node, attempt.role, attempt.number - 1))
    if before is None or not before.reason or before.outcome not in ("failed", "lost"):
        return left
    return (
        *left,
        Earlier("failed" if before.outcome == "failed" else "interrupted", before.reason),
    )


def _item(graph: Graph, node: Node) -> dict[str, str]:
    """What a node that a `for_each` made may say of its item."""
    item = node.definition.item
    maker = graph.nodes.get(node_id(item.of)) if item is not None else None
    if item is None or maker is None or maker.definition.for_each is None:
        return {}
    value = json.loads(item.value)
    return {
        maker.definition.for_each.name: value if isinstance(value, str) else item.value, "index": str(item.index),
    }  # fmt: skip


def _variables(graph: Graph, node: Node) -> dict[str, str]:
    """What a script finds as `GRAPHD_VAR_<name>`: inputs of the workflow, its item (a `-` becomes `_`), a gate's
    findings.
    """
    item = {name.replace("-", "_"): value for name, value in _item(graph, node).items()}
    findings = {"findings": node.findings} if node.findings else {}
    return {**findings, **graph.variables, **item} if findings or item else graph.variables


def _inputs(folder: Path, graph: Graph, node: Node, attempt: Attempt) -> list[Input]:
    if attempt.role == "verifier":
        return _checked(folder, graph, node)
    mapping = node.definition.input_mapping or tuple((slug, slug) for slug in node.definition.needs)
    return [_input(folder, graph, name, reference) for name, reference in mapping]


def _checked(folder: Path, graph: Graph, node: Node) -> list[Input]:
    """What a check looks at: the task as it was given, and the result of the last round."""
    task, result = Input("task", node.definition.spec), node.candidate
    if result is None:
        return [task]
    worker = graph.attempts[(node.id, "worker", node.last_number)]
    kept = _last_result(attempt_folder(folder, worker))
    return [task, Input("result", result.text, kept, result.total_bytes)]


def _last_result(folder: Path) -> Path:
    """Where the whole result of the last round lies: an agent that lives on has no `output` yet."""
    rounds = [path for path in folder.glob("result.*") if path.suffix[1:].isdecimal()]
    return max(rounds, key=lambda path: int(path.suffix[1:]), default=folder / "output")


def _input(folder: Path, graph: Graph, name: str, reference: str) -> Input:
    """One mapped input: `slug`, `slug.output` or `slug.output.a.b`; a missing one is a text that names node and
    reason.
    """
    slug, _, rest = reference.partition(".")
    source = graph.nodes[node_id(slug)]
    output = source.output
    if source.state != "achieved" or output is None:
        return Input(name, placeholder(source), None)
    path = rest.partition(".")[2]
    is_list = source.definition.for_each is not None
    if is_list or path:
        from graphd.daemon.listed import joined_text, whole_text  # few nodes read lists, or parts of results

        whole = joined_text(folder, graph, source) if is_list else whole_text(folder, graph, source)
        return Input(name, _dig(whole, path, reference) if path else whole, None)
    achieved = graph.attempts.get((source.id, "worker", source.last_number))
    kept = Path(f"{folder}/attempts/{graph.id}/{achieved.folder}/output") if achieved else None
    return Input(name, output.text, kept, output.total_bytes)


def placeholder(source: Node) -> str:
    """The text that stands for an input that there is not (model.md, Node)."""
    reason = source.skip or source.cancel_reason or (source.failure.reason if source.failure else None) or source.state
    return f"[no output: {source.slug} was {source.state}: {reason}]"


def _dig(text: str, path: str, reference: str) -> str:
    try:
        value: Any = json.loads(text)
        for name in path.split("."):
            value = value[name]
    except (ValueError, KeyError, TypeError, IndexError):
        return f"[no value at {reference}]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
