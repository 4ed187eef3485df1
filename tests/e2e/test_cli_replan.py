"""The living plan at a terminal: real programs, a real daemon, real processes."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.test_cli import House, house  # noqa: F401 -- the fixture

Json = dict[str, Any]
FIRST = """\
nodes:
  - {{ id: slow, run: 'echo $$ >> {log}/slow; sleep 60 & wait; echo first' }}
  - {{ id: done, run: 'echo $$ >> {log}/done; echo done' }}
  - {{ id: end, needs: [slow, done], run: 'echo $$ >> {log}/end; cat "$GRAPHD_INPUT_DIR"/*' }}
"""


def counted(log: Path, node: str) -> int:
    path = log / node
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_an_edited_file_is_shown_accepted_and_only_what_was_touched_runs_again(house: House, tmp_path: Path) -> None:  # noqa: F811 -- the fixture
    log = tmp_path / "log"
    log.mkdir()
    house.workflow("w", FIRST.format(log=log))
    graph = house.detached("w")
    house.until("achieved")
    file = ".agents/workflows/w.yaml"
    assert "the plan is what the file says" in house.ask("apply", file)
    edited = FIRST.format(log=log).replace("sleep 60 & wait; echo first", "echo second")
    house.workflow("w", edited + f"  - {{ id: extra, needs: [end], run: 'echo x >> {log}/extra' }}\n")

    shown = house.ask("apply", file, "--dry-run").splitlines()
    assert [line.split()[:2] for line in shown[:3]] == [["+", "extra"], ["~", "slow"], ["!", "slow"]]
    assert shown[-1].endswith("nothing was changed")
    proposed = house.ask("apply", file, code=6)
    proposal = proposed.splitlines()[-1].split()[-1]
    assert f"graphd accept {proposal}" in house.ask("status", "@last")
    house.workflow("other", "nodes:\n  - { id: other, run: sleep 60 }\n")
    house.detached("other")  # the line that was shown names the proposal alone
    assert house.json("accept", proposal)["stopping"] == ["slow"]
    house.ask("watch", graph)

    assert house.ask("output", "end", "--graph", graph) == "done\nsecond\n"
    assert {node: counted(log, node) for node in ("slow", "done", "end", "extra")} == {
        "slow": 2, "done": 1, "end": 1, "extra": 1,
    }  # fmt: skip
    assert "the plan is what the file says" in house.ask("apply", file)
    kinds = [json.loads(line)["kind"] for line in house.ask("history", graph, "--json").splitlines()]
    assert kinds.count("graph_replanned") == 1
    assert kinds.index("node_recalled") < kinds.index("graph_extended" if "graph_extended" in kinds else "completed")


def test_yes_applies_at_once_and_a_terminal_is_not_needed(house: House) -> None:  # noqa: F811 -- the fixture
    house.workflow("w", "nodes:\n  - { id: a, run: sleep 60 }\n")
    house.detached("w")
    house.until("running")
    house.workflow("w", "nodes:\n  - { id: a, run: echo quick }\n")
    result = house.json("apply", ".agents/workflows/w.yaml", "--yes", "--wait")
    assert [row["node"] for row in result["diff"]["changed"]] == ["a"]
    house.ask("watch", "@last")
    assert house.ask("output", "a", "--graph", "@last") == "quick\n"


def test_extend_replan_and_rerun_from_files_options_and_stdin(house: House) -> None:  # noqa: F811 -- the fixture
    house.workflow("w", "nodes:\n  - { id: a, run: sleep 60 }\n  - { id: b, needs: [a], run: echo b }\n")
    first = house.detached("w")
    house.until("running")
    house.ask("extend", "-", text='[{"id": "c", "run": "echo c", "depends_on": ["b"]}]')
    (house.folder / "edits.yaml").write_text(
        "change:\n  - { id: a, run: echo a }\nremove: { b: not needed }\nadd:\n  - { id: n, needs: [a], run: echo n }\n"
    )
    refusal = house.json("replan", "edits.yaml", "--restart", "a", code=2)
    assert {row["code"] for row in refusal["error"]["data"]["diagnostics"]} == {"need.gone"}
    house.ask("replan", "edits.yaml", "--restart", "a", "--remove", "c=it needs b", "--dry-run")
    house.ask("replan", "edits.yaml", "--restart", "a", "--remove", "c=it needs b", "--reason", "better")
    house.ask("watch", "@last")
    assert house.ask("output", "n", "--graph", first) == "n\n"
    assert "b" not in [line.split()[1] for line in house.ask("status", first).splitlines()[1:] if len(line.split()) > 1]

    second = house.json("rerun", first)["graph"]
    house.ask("watch", second)
    assert house.ask("output", "n", "--graph", second) == "n\n"
    house.ask("rerun", second, "--failed", code=1)


def test_words_that_are_no_edits_are_two(house: House) -> None:  # noqa: F811 -- the fixture
    house.ask("replan", code=2)
    house.ask("replan", "--remove", "a", code=2)
    house.ask("replan", "-", text="[1]", code=2)
    house.ask("extend", "-", text="a: [", code=2)
    house.ask("extend", "-", text="a: 1", code=2)
    house.ask("extend", "no-such-file", code=2)
    house.ask("apply", "no-such-file", code=2)
