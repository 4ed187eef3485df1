"""When an editor offers to apply a file to the graph that runs from it: where `apply` would change something."""

import pytest

from tests.kit.lsp import Editor, edited
from tests.kit.wire import serving

FIND = "nodes:\n  - { id: find, run: echo }\n"
EACH = "  - { id: each, needs: [find], run: 'echo x', for_each: { in: find.output, as: x } }\n"


async def is_offered(client: Editor, uri: str) -> bool:
    rows = await client.of("codeLens", uri)
    return "Apply to the running graph" in {row["command"]["title"] for row in rows}


async def test_the_items_of_a_list_are_no_edits() -> None:
    async with serving() as served, edited(served, FIND + EACH) as (client, uri):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        assert await served.daemon.end_one(graph, text="[1, 2]") == "find"
        assert {"each-1", "each-2"} <= {node.slug for node in served.daemon.state.graphs[graph].nodes.values()}
        assert not await is_offered(client, uri)
        await client.change(uri, {"text": FIND + "  - { id: more, run: echo }\n" + EACH})
        assert await is_offered(client, uri)


@pytest.mark.parametrize(("is_settled", "is_edited"), [(True, False), (False, True)])
async def test_a_node_that_is_taken_out_is_an_edit_while_it_may_still_run(is_settled: bool, is_edited: bool) -> None:
    other = "  - { id: other, run: echo }\n"
    async with serving() as served, edited(served, FIND + other) as (client, uri):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        if is_settled:
            assert await served.daemon.end_one(graph) == "find"
        await client.change(uri, {"text": "nodes:\n" + other})
        assert await is_offered(client, uri) is is_edited
