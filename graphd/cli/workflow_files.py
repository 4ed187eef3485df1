"""`validate`, `explain`, `workflows`, `init`: workflow files, without running anything."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphd.cli.exits import OK, USAGE, CommandEnded, CommandRefused
from graphd.cli.options import colour, command, completes_source, json_option, print_json, table
from graphd.cli.talk import ask_daemon, call, talk
from graphd.cli.words import counted, harmless

if TYPE_CHECKING:
    from graphd.client.session import Session

Wire = dict[str, Any]
SAMPLE = """\
# A first workflow. Run it with:  graphd run hello
title: Hello

nodes:
  # Nodes without needs run together. `run` is a script for /bin/sh -eu.
  - id: files
    run: ls | wc -l

  - id: today
    run: date

  # `needs` says whose output a node reads: one file for each in $GRAPHD_INPUT_DIR.
  - id: report
    needs: [files, today]
    run: |
      echo "Hello. It is $(cat "$GRAPHD_INPUT_DIR/today"),"
      echo "and this folder holds $(cat "$GRAPHD_INPUT_DIR/files") files."
"""


async def _named(session: "Session", source: str) -> tuple[Wire, str]:
    """Params that name a workflow to the daemon, and what to call it: `-`, a file, or a name."""
    if source == "-":
        return {"text": sys.stdin.read()}, "<stdin>"
    path = _file_named(source)
    if path is not None:
        return {"file": path}, source
    if "/" not in source:
        for entry in await call(session, "workgraph/workflows"):
            if entry["name"] == source:
                return {"file": entry["path"]}, entry["path"]
    hint = "graphd workflows lists what can be run by name"
    raise CommandRefused("usage", f"{source}: no such file or workflow", hint)


def _file_named(source: str) -> str | None:
    path = Path(source)
    return str(path.resolve()) if path.is_file() else None


@command("validate")
@click.argument("source", metavar="FILE|WORKFLOW|-", shell_complete=completes_source)
@json_option("ValidateResult")
def validate_command(source: str, as_json: bool, workspace: Path | None) -> None:
    """Check a workflow file. Nothing in it is run. Exit code 2 where there are errors.

    Examples:
      graphd validate .agents/workflows/deploy.yaml
      graphd validate - < deploy.yaml
    """

    async def work(session: "Session") -> tuple[Wire, str]:
        params, name = await _named(session, source)
        return await call(session, "workgraph/validate", params), name

    answer, name = talk(workspace, work)
    errors = sum(d["severity"] == "error" for d in answer["diagnostics"])
    if as_json:
        print_json(answer)
    else:
        print_diagnostics(name, answer["diagnostics"])
        if not answer["diagnostics"]:
            click.echo(f"{name}: no problems")
    raise CommandEnded(USAGE if errors else OK)


def print_diagnostics(name: str, diagnostics: list[Wire], *, err: bool = False) -> None:
    """`file:line:column: severity code: message`, the hint on the next line (spec product.md)."""
    for found in diagnostics:
        severity = found.get("severity", "error")  # nodes given inline have neither severity nor place
        word = click.style(severity, fg="red" if severity == "error" else "yellow")
        place = f"{name}: {found.get('slug', '')}"
        if "range" in found:
            start = found["range"]["start"]
            place = f"{name}:{start['line'] + 1}:{start['character'] + 1}"
        text = harmless(found["message"]).replace("\n", " ")
        click.echo(f"{place}: {word} {found['code']}: {text}", err=err, color=colour())
        if found["hint"]:
            click.echo("  " + harmless(found["hint"]).replace("\n", " "), err=err)


@command("explain")
@click.argument("source", metavar="FILE|WORKFLOW|-", shell_complete=completes_source)
@click.option("--input", "inputs", multiple=True, metavar="K=V", help="A value for an input of the workflow.")
@json_option("ExplainResult")
def explain_command(*, source: str, inputs: tuple[str, ...], as_json: bool, workspace: Path | None) -> None:
    """Show what a workflow compiles to: its nodes in the long form, and which of them can run together.

    Examples:
      graphd explain checkup
      graphd explain deploy.yaml --input stage=test
    """
    from graphd.cli.run import pair

    async def work(session: "Session") -> Wire:
        params, _ = await _named(session, source)
        given = dict(pair(item) for item in inputs)
        try:
            answer: Wire = await call(session, "workgraph/explain", {**params, "inputs": given} if given else params)
        except CommandRefused as refusal:
            if not as_json:
                print_diagnostics(source, refusal.facts.get("diagnostics") or [], err=True)
            raise
        return answer

    answer = talk(workspace, work)
    if as_json:
        print_json(answer)
        return
    click.echo(f"# {harmless(answer['title'])}: {counted(len(answer['nodes']), 'node')}")
    for number, wave in enumerate(answer["waves"], 1):
        click.echo(f"# wave {number}: {', '.join(wave)}")
    config = answer.get("config") or {}
    if config:
        click.echo("config:")
    for key, value in config.items():
        click.echo(f"  {key}: {json.dumps(value, ensure_ascii=False)}")
    click.echo("nodes:")
    for node in answer["nodes"]:
        click.echo(_long_form(node))
    print_diagnostics(source, answer["warnings"], err=True)


def _long_form(node: Wire) -> str:
    """A node as YAML: every value is JSON, which YAML can read, except texts of several lines."""
    lines = []
    for key, value in node.items():
        if isinstance(value, str) and "\n" in value:
            block = "\n".join(f"      {line}".rstrip() for line in harmless(value).rstrip("\n").split("\n"))
            lines.append(f"{key}: |\n{block}")
        else:
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return "  - " + "\n    ".join(lines)


@command("workflows")
@json_option("[WorkflowEntry]")
def workflows_command(as_json: bool, workspace: Path | None) -> None:
    """List the workflows that can be run by name, and what shadows what.

    Examples:
      graphd workflows
    """
    entries = ask_daemon(workspace, "workgraph/workflows")
    if as_json:
        print_json(entries)
        return
    rows = []
    for entry in entries:
        title = entry["title"] if entry["isValid"] else f"(has errors: graphd validate {entry['name']})"
        asked = " ".join(_asked(name, declared) for name, declared in entry["inputs"].items())
        shadow = f"shadows {', '.join(entry['shadows'])}" if entry["shadows"] else ""
        rows.append([entry["name"], entry["source"], "  ".join(part for part in (title, asked, shadow) if part)])
    table(rows, ["NAME", "FROM", "TITLE"])


def _asked(name: str, declared: Wire) -> str:
    """How an input is given; in brackets where it need not be."""
    default = declared.get("default")
    return f"--input {name}=…" if default is None else f"[--input {name}={default}]"


@command("init")
def init_command(workspace: Path | None) -> None:
    """Write a sample workflow, .agents/workflows/hello.yaml, and say how editors attach. Overwrites nothing.

    Examples:
      graphd init
    """
    from graphd.client.paths import AttachFailure, find_workspace

    try:
        root = Path(find_workspace(workspace).root)
    except AttachFailure as failure:
        raise CommandRefused(failure.code, failure.message, failure.hint, exit_code=failure.exit_code) from None
    sample = root / ".agents" / "workflows" / "hello.yaml"
    sample.parent.mkdir(parents=True, exist_ok=True)
    try:
        with sample.open("x", encoding="utf-8") as out:
            out.write(SAMPLE)
        click.echo(f"wrote {sample}")
    except FileExistsError:
        click.echo(f"{sample} is there already and was left as it is")
    click.echo("  graphd run hello\n")
    click.echo("An editor or a script attaches by starting this program and speaking to its stdin and stdout:")
    click.echo("  graphd connect")
