"""What an editor sees of a workflow file's text, through a real connection: findings, positions, searches, fixes."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.kit.lsp import ALL_LINES, FLOW, FULL, converter, edited, editor, run, span
from tests.kit.wire import Wire, WireError, serving

EMOJI = """title: "🚀🚀"
nodes:
  - { id: lint, name: "🚀 lint 中", run: make lint }
  - { name: "🚀🚀", id: report, needs: [lint], run: cat }
"""
UNITS = {"utf-8": 4, "utf-16": 2, "utf-32": 1}
CHINESE = {"utf-8": 3, "utf-16": 1, "utf-32": 1}


def typed(method: str, result: Any) -> Any:
    """The result as LSP's own type; what is not one fails."""
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}
    return converter().structure(answer, types.METHOD_TO_TYPES[method][1]).result


def speaking(encoding: str) -> Wire:
    return {**FULL, "general": {"positionEncodings": [encoding]}}


async def test_diagnostics_say_what_is_wrong_where_and_what_to_do() -> None:
    async with serving() as served, edited(served, FLOW.replace("lint, tests", "lnt, tests")) as (client, uri):
        rows = await client.diagnostics(uri)
        assert [(row["severity"], row["source"]) for row in rows] == [(1, "graphd")]
        assert span(rows[0]["range"]) == (4, 26, 4, 29)
        assert "lnt" in rows[0]["message"]
        assert "lint" in rows[0]["message"].splitlines()[1], "the hint has the near name"
        await client.change(uri, {"text": FLOW})
        assert await client.diagnostics(uri) == []
        await client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert await client.at("hover", uri, 2, 12) is None


async def test_closing_takes_diagnostics_away() -> None:
    async with serving() as served, edited(served, "nodes: 5\n") as (client, uri):
        assert await client.diagnostics(uri)
        await client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert await client.diagnostics(uri) == []


@pytest.mark.parametrize("length", [1, 2, 5])
async def test_a_cycle_names_every_edge_of_it(length: int) -> None:
    names = [f"n{number}" for number in range(length)]
    rows = [
        f"  - {{ id: {name}, run: x, needs: [{names[(place + 1) % length]}] }}\n" for place, name in enumerate(names)
    ]
    async with serving() as served, edited(served, "nodes:\n" + "".join(rows)) as (client, uri):
        (found,) = [row for row in await client.diagnostics(uri) if "cycle" in row["code"] or "self" in row["code"]]
        if length > 1:
            related = found["relatedInformation"]
            assert len(related) == length
            assert len({span(row["location"]["range"]) for row in related}) == length


async def test_a_client_without_related_information_gets_none() -> None:
    text = "nodes:\n  - { id: a, run: x, needs: [b] }\n  - { id: b, run: x, needs: [a] }\n"
    async with serving() as served, edited(served, text, {}) as (client, uri):
        assert all("relatedInformation" not in row for row in await client.diagnostics(uri))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_positions_beyond_emoji_in_each_encoding(encoding: str) -> None:
    unit, chinese = UNITS[encoding], CHINESE[encoding]
    async with serving() as served, edited(served, EMOJI, speaking(encoding)) as (client, uri):
        (place,) = await client.at("definition", uri, 3, EMOJI.splitlines()[3].index("lint]") + 2 * (unit - 1) + 1)
        at = EMOJI.splitlines()[2].index("lint")
        assert span(place["range"]) == (2, at, 2, at + 4)
        line = EMOJI.splitlines()[3]
        places = await client.at("references", uri, 2, at, context={"includeDeclaration": False})
        start = line.index("lint]") + 2 * (unit - 1)
        assert [span(row["range"]) for row in places] == [(3, start, 3, start + 4)]
        # an edit after the emoji and the Chinese sign lands where it belongs
        before = EMOJI.splitlines()[2].index("run")
        column = before + (unit - 1) + (chinese - 1)
        edit = {"start": {"line": 2, "character": column}, "end": {"line": 2, "character": column + 3}}
        await client.change(uri, {"range": edit, "text": "rum"})
        rows = await client.diagnostics(uri)
        while not rows:
            rows = await client.diagnostics(uri)
        wrong = next(row for row in rows if "rum" in row["message"])
        assert span(wrong["range"])[:2] == (2, column)


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
async def test_every_line_end_and_no_other(ending: str) -> None:
    text = FLOW.replace("Ship it", "'Ship\u2028it \x85'").replace("\n", ending)
    async with serving() as served, edited(served, text) as (client, uri):
        folds = await client.of("foldingRange", uri)
        assert {"startLine": 1, "endLine": 4, "kind": "region"} in folds


async def test_incremental_edits_add_up_to_the_text() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        at = {"line": 4, "character": 26}
        await client.change(
            uri,
            {"range": {"start": at, "end": {"line": 4, "character": 30}}, "text": ""},
            {"range": {"start": at, "end": at}, "text": "li"},
            {"range": {"start": {"line": 4, "character": 28}, "end": {"line": 4, "character": 28}}, "text": "nt"},
            {"range": {"start": {"line": 99, "character": 9}, "end": {"line": 99, "character": 9}}, "text": "# end\n"},
        )
        places = await client.at("references", uri, 2, 10, context={"includeDeclaration": True})
        assert [span(row["range"]) for row in places] == [(2, 10, 2, 14), (4, 26, 4, 30)]


async def test_other_yaml_is_none_of_our_business(tmp_path: Path) -> None:
    async with serving() as served:
        client = await editor(served)
        uri = (tmp_path / "compose.yaml").as_uri()
        await client.open(uri, "services: [\n")
        assert await client.at("hover", uri, 0, 0) is None
        assert await client.of("codeLens", uri) is None
        assert await client.of("codeAction", uri, range=ALL_LINES, context={"diagnostics": []}) is None
        mine = (tmp_path / "mine.yaml").as_uri()
        await client.open(mine, "nodes: 5\n", language="graphd-workflow")
        assert await client.diagnostics(mine)
        await client.close()


async def test_a_document_selector_makes_other_files_ours(tmp_path: Path) -> None:
    selector = [{"pattern": "**/flows/*.{yaml,yml}"}, {"language": "yaml"}, {"scheme": "file"}]
    async with serving() as served:
        client = await editor(served, initializationOptions={"documentSelector": selector})
        ours, theirs = (tmp_path / "flows" / "a.yml").as_uri(), (tmp_path / "other" / "a.yml").as_uri()
        await client.open(theirs, "nodes: 5\n")
        await client.open(ours, "nodes: 5\n")
        assert await client.diagnostics(ours)
        assert client.notifications == type(client.notifications)()
        await client.close()


async def test_two_editors_with_the_same_file_and_different_text() -> None:
    async with serving() as served, edited(served, FLOW) as (one, uri), edited(served, FLOW) as (two, same):
        assert uri == same
        assert await one.diagnostics(uri) == []
        assert await two.diagnostics(uri) == []
        await one.change(uri, {"text": FLOW.replace("tests", "checks")})
        await two.change(uri, {"text": "nodes: 5\n"})
        assert await two.diagnostics(uri) != []
        assert [row["label"] for row in (await one.at("completion", uri, 4, 30))["items"]] != []
        (place,) = await one.at("definition", uri, 4, 35)
        assert span(place["range"]) == (3, 10, 3, 16)
        assert await two.at("definition", uri, 4, 35) == []
        one_rows = [params for name, params in one.notifications if name == "textDocument/publishDiagnostics"]
        assert all(params["diagnostics"] == [] for params in one_rows)


async def test_every_answer_is_what_lsp_says() -> None:
    """With all that a client may claim, and with nothing."""
    for capabilities in (FULL, {}):
        async with serving() as served, edited(served, FLOW.replace("tests]", "test]"), capabilities) as (client, uri):
            await run(client, uri)
            await served.daemon.identify(next(iter(served.daemon.state.graphs)))
            document = {"textDocument": {"uri": uri}}
            at = {**document, "position": {"line": 4, "character": 28}}
            for method, params in {
                "textDocument/hover": at,
                "textDocument/completion": at,
                "textDocument/definition": at,
                "textDocument/references": {**at, "context": {"includeDeclaration": True}},
                "textDocument/documentHighlight": at,
                "textDocument/prepareRename": at,
                "textDocument/rename": {**at, "newName": "style"},
                "textDocument/documentSymbol": document,
                "textDocument/foldingRange": document,
                "textDocument/codeAction": {**document, "range": ALL_LINES, "context": {"diagnostics": []}},
                "textDocument/codeLens": document,
                "textDocument/inlayHint": {**document, "range": ALL_LINES},
                "textDocument/diagnostic": document,
            }.items():
                result = await client.call(method, params)
                assert result, method
                assert typed(method, result), method


async def test_a_half_typed_line_is_completed() -> None:
    typing = FLOW + "  - { id: last, needs: [re\n"
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await client.diagnostics(uri) == []
        await client.change(uri, {"text": typing})
        items = (await client.at("completion", uri, 5, 28))["items"]
        assert "report" in [item["label"] for item in items]
        assert await client.diagnostics(uri), "and it is said that this is no YAML"


async def test_a_rename_across_the_file_and_one_that_is_refused() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert span((await client.at("prepareRename", uri, 4, 28))["range"]) == (4, 26, 4, 30)
        edit = await client.at("rename", uri, 4, 28, newName="style")
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": uri, "version": 1}
        assert [(span(row["range"]), row["newText"]) for row in change["edits"]] == [
            ((2, 10, 2, 14), "style"),
            ((4, 26, 4, 30), "style"),
        ]
        with pytest.raises(WireError) as refusal:
            await client.at("rename", uri, 4, 28, newName="tests")
        assert "tests" in str(refusal.value)
        assert await client.at("prepareRename", uri, 0, 3) is None


async def test_a_quick_fix_mends_what_its_diagnostic_says() -> None:
    async with serving() as served, edited(served, FLOW.replace("lint, tests", "lnt, tests")) as (client, uri):
        (wrong,) = await client.diagnostics(uri)
        found = await client.of("codeAction", uri, range=wrong["range"], context={"diagnostics": [wrong]})
        fix = next(row for row in found if row["kind"] == "quickfix")
        assert fix["diagnostics"][0]["code"] == wrong["code"]
        (edit,) = fix["edit"]["documentChanges"][0]["edits"]
        assert (span(edit["range"]), edit["newText"]) == (span(wrong["range"]), "lint")
        only = await client.of(
            "codeAction", uri, range=wrong["range"], context={"diagnostics": [wrong], "only": ["quickfix"]}
        )
        assert {row["kind"] for row in only} == {"quickfix"}
