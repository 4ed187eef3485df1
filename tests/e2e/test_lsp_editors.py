"""Three editors as they describe themselves, over `graphd connect`, with a real daemon and real processes.

The capabilities are those that the editors send; the test client checks every answer against them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.kit.workspaces import Workspace

PROFILES = ("visual_studio_code@v1.65.2", "neovim@v0.11.0", "emacs@v29.1")
WAIT_S = 30.0
GATED = """title: Gated
nodes:
  - { id: wait, run: 'while [ ! -e go ]; do sleep 0.05; done; echo through' }
  - { id: last, needs: [wait], run: 'cat "$GRAPHD_INPUT_DIR"/*' }
"""
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROFILES)
async def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[LanguageClient, Workspace]]:
    """One initialized editor of each kind, with a workspace and a daemon of its own."""
    workspace = Workspace(tmp_path_factory.mktemp("lsp"))
    (workspace.root / ".agents" / "workflows").mkdir(parents=True)
    (workspace.root / ".git").mkdir()
    config = ClientServerConfig([sys.executable, "-m", "graphd", "connect"], server_env=workspace.environment)
    client = await config.start()
    assert isinstance(client, LanguageClient)

    for method in ("workspace/codeLens/refresh", "workspace/inlayHint/refresh"):
        client.feature(method)(lambda params: None)
    try:
        await client.initialize_session(
            types.InitializeParams(
                capabilities=client_capabilities(str(request.param)),
                root_uri=workspace.root.as_uri(),
                workspace_folders=[types.WorkspaceFolder(uri=workspace.root.as_uri(), name="x")],
                client_info=types.ClientInfo(name=str(request.param)),
            )
        )
        yield client, workspace
        await client.shutdown_session()
        assert workspace.daemons(), "an editor's exit ends no daemon"
        await cast(Any, client).stop()
    finally:
        workspace.end()


def write(workspace: Workspace, name: str, text: str) -> str:
    path = workspace.root / ".agents" / "workflows" / f"{name}.yaml"
    path.write_text(text)
    return path.as_uri()


def opened(client: LanguageClient, uri: str, text: str) -> types.TextDocumentIdentifier:
    item = types.TextDocumentItem(uri=uri, language_id="yaml", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    return types.TextDocumentIdentifier(uri=uri)


async def until(is_so: Callable[[], Any]) -> Any:
    async with asyncio.timeout(WAIT_S):
        while not (found := is_so()):
            await asyncio.sleep(0.02)
        return found


async def diagnostics(client: LanguageClient, uri: str) -> list[types.Diagnostic]:
    """Pulled where the editor pulls, else as they come."""
    document = client.capabilities.text_document if client.capabilities is not None else None
    if document is not None and document.diagnostic is not None:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
        report = await client.text_document_diagnostic_async(params)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        return list(report.items)
    await until(lambda: uri in client.diagnostics)
    return list(client.diagnostics[uri])


async def test_the_language_features(session: tuple[LanguageClient, Workspace]) -> None:
    client, workspace = session
    text = GATED.replace("[wait]", "[wat]")
    uri = write(workspace, "broken", text)
    document = opened(client, uri, text)
    (wrong,) = await diagnostics(client, uri)
    assert wrong.code == "need.unknown"
    at = types.Position(3, text.splitlines()[3].index("wat") + 1)
    items = await client.text_document_completion_async(types.CompletionParams(document, at))
    assert isinstance(items, types.CompletionList)
    assert "wait" in [item.label for item in items.items]
    hover = await client.text_document_hover_async(types.HoverParams(document, types.Position(2, 12)))
    assert hover is not None
    outline = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert outline
    assert await client.text_document_folding_range_async(types.FoldingRangeParams(document))
    context = types.CodeActionContext(diagnostics=[wrong])
    actions = await client.text_document_code_action_async(types.CodeActionParams(document, wrong.range, context))
    assert {"Run"} <= {action.title for action in actions or ()}
    assert len(actions or ()) > 1, "a mend is offered"


async def test_a_run_from_its_lens_to_the_end_with_live_hints(session: tuple[LanguageClient, Workspace]) -> None:
    client, workspace = session
    uri = write(workspace, "gated", GATED)
    document = opened(client, uri, GATED)
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(document))
    run = next(lens.command for lens in lenses or () if lens.command is not None)
    assert run.title == "Run"
    made = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command=run.command, arguments=run.arguments)
    )
    assert made
    assert await hint(client, document, 2, "running") == "running"
    (workspace.root / "go").touch()
    assert (await hint(client, document, 3, "achieved")).startswith("achieved")
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(document))
    offered = [lens.command for lens in lenses or () if lens.command is not None]
    output = next(command for command in reversed(offered) if command.command == "graphd.openOutput")
    shown: Any = await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command=output.command, arguments=output.arguments)
    )
    text = shown["text"] if isinstance(shown, dict) else shown.text
    assert text.strip() == "through"


async def hint(client: LanguageClient, document: types.TextDocumentIdentifier, line: int, word: str) -> str:
    """The inlay hint of a line, once it begins with a word."""
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    async with asyncio.timeout(WAIT_S):
        while True:
            rows = await client.text_document_inlay_hint_async(types.InlayHintParams(document, everything))
            labels = {row.position.line: str(row.label) for row in rows or ()}
            if labels.get(line, "").startswith(word):
                return labels[line]
            await asyncio.sleep(0.05)


async def test_progress_of_the_run(session: tuple[LanguageClient, Workspace]) -> None:
    client, workspace = session
    window = client.capabilities.window if client.capabilities is not None else None
    (workspace.root / "go2").touch()
    uri = write(workspace, "shown", GATED.replace("Gated", "Shown").replace("-e go ]", "-e go2 ]"))
    arguments = [{"uri": uri}]
    await client.workspace_execute_command_async(types.ExecuteCommandParams(command="graphd.run", arguments=arguments))
    if window is None or not window.work_done_progress:
        assert client.progress_reports == {}
        return

    def ended() -> Any:
        runs: Any = client.progress_reports.values()  # it keeps what is in the params
        return next((run for run in runs if run and run[0].title == "Shown" and run[-1].kind == "end"), None)

    values = await until(ended)
    assert values[0].kind == "begin"
    assert values[-1].message == "complete"


async def test_our_own_methods_on_the_same_connection(session: tuple[LanguageClient, Workspace]) -> None:
    client, _ = session
    protocol: Any = client.protocol
    health = await protocol.send_request_async("graphd/health", {})
    assert health.store == "ok"
    assert [row.client for row in health.connections][0] in PROFILES
    listed = await protocol.send_request_async("workgraph/list", {"limit": 5})
    assert listed is not None


async def test_rename_over_the_file(session: tuple[LanguageClient, Workspace]) -> None:
    client, workspace = session
    text = GATED.replace("Gated", "🚀🚀 Gated").replace("id: wait", "name: 🚀, id: wait")
    uri = write(workspace, "renamed", text)
    document = opened(client, uri, text)
    rows = text.splitlines()
    at = types.Position(3, rows[3].index("[wait]") + 2)
    edit = await client.text_document_rename_async(types.RenameParams(document, at, "hold"))
    assert edit is not None
    if edit.document_changes is not None:
        (change,) = edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        edits = [item for item in change.edits if isinstance(item, types.TextEdit)]
    else:
        assert edit.changes is not None
        edits = list(edit.changes[uri])
    assert sorted(item.range.start.line for item in edits) == [2, 3]
    Path(uri.removeprefix("file://")).unlink()
