"""Apply to the running graph, from an editor: offered where the plan differs, taken from the saved file."""

from pathlib import Path

import pytest

from tests.kit.lsp import ALL_LINES, FLOW, edited, lenses
from tests.kit.wire import WireError, refused_by, serving

TITLE = "Apply to the running graph"


async def test_an_edited_file_offers_itself_to_the_running_graph() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        assert (0, TITLE) not in await lenses(client, uri)
        better = FLOW.replace("make lint", "make style")
        await client.change(uri, {"text": better})
        assert (0, TITLE) in await lenses(client, uri)
        found = await client.of("codeAction", uri, range=ALL_LINES, context={"diagnostics": []})
        assert TITLE in {row["title"] for row in found}
        with pytest.raises(WireError) as refusal:
            await client.command("graphd.apply", uri=uri)
        assert refused_by(refusal.value) == "unsavedChanges"
        assert served.daemon.state.graphs[graph].plan_version == 1

        Path(uri.removeprefix("file://")).write_text(better)
        await client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
        result = await client.command("graphd.apply", uri=uri)
        assert [row["node"] for row in result["diff"]["changed"]] == ["lint"]
        assert served.daemon.state.graphs[graph].plan_version == 2
        assert (0, TITLE) not in await lenses(client, uri)
        assert "proposal" not in await client.command("graphd.apply", uri=uri), "nothing is left to apply"


async def test_a_graph_that_ended_is_not_offered_the_file() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await client.change(uri, {"text": FLOW.replace("make lint", "make style")})
        await served.daemon.end_all(graph)
        assert (0, TITLE) not in await lenses(client, uri)
