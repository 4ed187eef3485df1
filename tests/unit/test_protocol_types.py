"""The clients' types: every model is there with every field, and the TypeScript compiles."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from generator import lua, schema, typescript
from generator.__main__ import ROOT

PROTOCOL = schema.protocol()
TYPESCRIPT = typescript.text(PROTOCOL)
LUA = lua.text(PROTOCOL)


def test_typescript_has_every_type_and_method() -> None:
    declared = re.findall(r"^export (?:interface|type) (\w+)", TYPESCRIPT, re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert set(PROTOCOL["$defs"]) < set(declared)
    for row in [*PROTOCOL["requests"], *PROTOCOL["notifications"]]:
        assert f'"{row["method"]}": ' in TYPESCRIPT


def test_typescript_reads_as_it_would_be_written() -> None:
    assert 'export type NodeState = "waiting" | "ready" | "running"' in TYPESCRIPT
    assert "  state: NodeState;\n" in TYPESCRIPT
    assert "  phase?: Phase | null;\n" in TYPESCRIPT
    assert "  protocol: [number, number];\n" in TYPESCRIPT
    assert "  counts: Record<string, number>;\n" in TYPESCRIPT
    assert '  "workgraph/why": { params: NodeRef; result: Why[] };\n' in TYPESCRIPT
    assert '  "workgraph/status": { params: GraphParams; result: Snapshot | null };\n' in TYPESCRIPT


def test_lua_has_every_type_and_method() -> None:
    declared = re.findall(r"^---@(?:class|alias) graphd\.(\w+)", LUA, re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert set(PROTOCOL["$defs"]) < set(declared)
    for row in PROTOCOL["requests"]:
        assert f'---@field ["{row["method"]}"] fun(' in LUA


def test_lua_is_annotations_alone() -> None:
    assert all(line.startswith("--") for line in LUA.splitlines() if line)
    assert "---@field state graphd.NodeState\n" in LUA
    assert "---@field phase? graphd.Phase|nil\n" in LUA
    named = set(re.findall(r"graphd\.(\w+)", LUA)) - {"lua", "json"}
    assert named <= {*PROTOCOL["$defs"], "Requests", "Notifications", "ErrorName"}


@pytest.mark.slow
def test_typescript_compiles(tmp_path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("there is no npx")
    use = tmp_path / "use.ts"
    use.write_text(
        f'import type {{ Requests, Snapshot }} from "{ROOT}/protocol/types/graphd";\n'
        "export function counted(snapshot: Requests['workgraph/status']['result']): number {\n"
        "  return snapshot === null ? 0 : Object.values(snapshot.counts).reduce((a, b) => a + b, 0);\n"
        "}\n"
        "export const last = (s: Snapshot): string | undefined => s.nodes.at(-1)?.output?.text;\n"
    )
    words = ["--yes", "-p", "typescript@5", "tsc", "--noEmit", "--strict", "--lib", "es2022", "--target", "es2022"]
    ran = subprocess.run([npx, *words, str(use)], capture_output=True, text=True, timeout=110, cwd=tmp_path)
    if "npm error" in ran.stderr or "npm ERR" in ran.stderr:
        pytest.skip("typescript can't be fetched")
    assert ran.returncode == 0, ran.stdout + ran.stderr
