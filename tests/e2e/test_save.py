"""`graphd save`: a graph's plan becomes a workflow file that runs as the same plan."""

from tests.e2e.test_cli import House, house  # noqa: F401 -- the fixture

PLAN = "nodes:\n  - { id: a, run: echo a }\n  - { id: b, needs: [a], run: echo b }\n"


def test_a_saved_plan_runs_again_and_is_never_put_over_another_file(house: House) -> None:  # noqa: F811 -- the fixture
    house.workflow("w", PLAN)
    house.ask("run", "w")
    house.ask("extend", "-", "--graph", "@last", text='[{"id": "c", "run": "echo c", "needs": ["b"]}]')
    house.ask("watch", "@last")
    text = house.ask("save", "@last", "kept", "--dry-run")
    assert "id: c" in text
    file = house.folder / ".agents" / "workflows" / "kept.yaml"
    assert not file.exists()
    house.ask("save", "@last", "kept")
    assert file.read_text() == text
    house.ask("validate", "kept")
    assert house.ask("run", "kept") == "c\n"
    house.ask("save", "@last", "w", code=1)
    assert (file.parent / "w.yaml").read_text() == PLAN
    house.ask("save", "@last", "w", "--force")
    assert "id: c" in (file.parent / "w.yaml").read_text()
    house.ask("save", "@last", "../x", code=2)
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []
