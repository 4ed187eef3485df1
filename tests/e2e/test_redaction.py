"""A secret that a child prints stays out of the database, snapshots and logs; the raw result is its owner's."""

from tests.kit.workspaces import Workspace

TOKEN = "ghp_" + "A1b2" * 9


def test_a_printed_secret_stays_out_of_everything_but_the_raw_files(workspace: Workspace) -> None:
    (workspace.root / "key").write_text(f"key {TOKEN}\n")
    ran = workspace.graphd("run", "--sh", "cat key; cat key >&2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert TOKEN not in ran.stdout
    assert "[redacted:github-token]" in ran.stdout
    logs = workspace.graphd("logs", "cat", "-g", "@last").stdout
    assert TOKEN not in logs
    assert logs.count("[redacted:github-token]") == 2
    assert workspace.graphd("output", "cat", "-g", "@last").stdout == f"key {TOKEN}\n"
    workspace.graphd("stop")
    stored = b"".join(path.read_bytes() for path in workspace.folder.glob("graph.db*"))
    assert TOKEN.encode() not in stored
    assert b"key [redacted:github-token]" in stored
    assert TOKEN not in (workspace.folder / "daemon.log").read_text()
