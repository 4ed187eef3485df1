"""What an editor sees of a workflow file, through a real connection: its text, and what runs of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from graphd.core.commands import Pause
from graphd.server.hello import file_path
from tests.kit.lsp import FULL, Editor, converter, edited, editor, span, workflow
from tests.kit.wire import Served, Wire, WireError, nodes, refused_by, serving

FLOW = """title: Ship it
nodes:
  - { id: lint, run: make lint }
  - { id: tests, run: make test }
  - { id: report, needs: [lint, tests], run: cat }
"""
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


# ---- text ---------------------------------------------------------------------------------------------------------


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
        assert await client.of("codeAction", uri, range=_RANGE, context={"diagnostics": []}) is None
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


_RANGE: Wire = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}


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


# ---- searches -----------------------------------------------------------------------------------------------------


async def test_every_answer_is_what_lsp_says() -> None:
    """With all that a client may claim, and with nothing."""
    for capabilities in (FULL, {}):
        async with serving() as served, edited(served, FLOW.replace("tests]", "test]"), capabilities) as (client, uri):
            await run(client, served, uri)
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
                "textDocument/codeAction": {**document, "range": _RANGE, "context": {"diagnostics": []}},
                "textDocument/codeLens": document,
                "textDocument/inlayHint": {**document, "range": _RANGE},
                "textDocument/diagnostic": document,
            }.items():
                result = await client.call(method, params)
                assert result, method
                assert typed(method, result), method


async def run(client: Editor, served: Served, uri: str, text: str = FLOW) -> str:
    """A live graph of the file, as saved."""
    path = Path(uri.removeprefix("file://"))
    before = path.read_text()
    path.write_text(text)
    graph: str = (await client.call("workgraph/set", {"file": str(path)}))["graph"]
    path.write_text(before)
    return graph


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


# ---- what runs ----------------------------------------------------------------------------------------------------


async def hints(client: Editor, uri: str) -> dict[int, str]:
    """Line → hint."""
    rows = await client.of("inlayHint", uri, range=_RANGE)
    return {row["position"]["line"]: row["label"] for row in rows}


async def lenses(client: Editor, uri: str) -> list[tuple[int, str]]:
    """(line, title)."""
    rows = await client.of("codeLens", uri)
    return [(row["range"]["start"]["line"], row["command"]["title"]) for row in rows]


async def test_lenses_and_their_twins_follow_the_graph() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await lenses(client, uri) == [(0, "Run")]
        made = await client.command("graphd.run", uri=uri)
        graph = made["graph"]
        assert await lenses(client, uri) == [(0, "Pause"), (2, "Open output"), (3, "Open output")]
        await client.command("graphd.pause", uri=uri)
        assert (0, "Resume") in await lenses(client, uri)
        await client.command("graphd.resume", graph=graph)
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 1")
        shown = await lenses(client, uri)
        assert (2, "Retry") in shown
        assert (0, "Retry what failed") in shown
        found = await client.of("codeAction", uri, range=_RANGE, context={"diagnostics": []})
        titles = {row["title"] for row in found}
        assert {title for _, title in shown} <= titles, "every lens has a twin"
        assert "Cancel" in titles
        await client.command("graphd.cancel", uri=uri)
        assert served.daemon.state.graphs[graph].stopping is not None


async def test_hints_stand_only_on_nodes_that_say_what_runs() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await hints(client, uri) == {}
        await client.command("graphd.run", uri=uri)
        assert await hints(client, uri) == {2: "running", 3: "running"}
        await client.change(uri, {"text": FLOW.replace("make lint", "make style")})
        assert await hints(client, uri) == {3: "running"}
        served.daemon.clock = Later(served.daemon.clock.now_ms() + 125_000)
        assert await hints(client, uri) == {3: "running 2m"}


class Later:
    """A clock that stands still."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def slept_s(self) -> float:
        return 0.0


async def test_what_failed_is_told_and_refreshed_without_being_asked() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        assert await client.diagnostics(uri) == []
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit 1")
        rows = await client.diagnostics(uri)
        assert [(row["severity"], row["code"]) for row in rows] == [(3, "node.failed")]
        assert span(rows[0]["range"]) == (2, 10, 2, 14)
        assert "exit 1" in rows[0]["message"]
        asked = {method for method, _ in client.asked}
        assert {"workspace/codeLens/refresh", "workspace/inlayHint/refresh"} <= asked
        assert "workspace/diagnostic/refresh" not in asked, "it is pushed to"
        hover = await client.at("hover", uri, 2, 11)
        assert "exit 1" in hover["contents"]["value"]


async def test_a_client_that_pulls_is_not_pushed_to() -> None:
    pulls = {**FULL, "textDocument": {**FULL["textDocument"], "diagnostic": {}}}
    async with serving() as served, edited(served, "nodes: 5\n", pulls) as (client, uri):
        first = await client.of("diagnostic", uri)
        assert first["kind"] == "full"
        assert len(first["items"]) > 0
        again = await client.of("diagnostic", uri, previousResultId=first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        await client.change(uri, {"text": FLOW})
        assert (await client.of("diagnostic", uri, previousResultId=first["resultId"]))["items"] == []
        Path(uri.removeprefix("file://")).write_text(FLOW)
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        while "workspace/diagnostic/refresh" not in {method for method, _ in client.asked}:
            client._keep(await client.read())
        assert "textDocument/publishDiagnostics" not in {name for name, _ in client.notifications}


async def test_refreshes_are_throttled_and_only_for_clients_that_can() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri), edited(served, FLOW, {}) as (plain, _):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        for _ in range(40):
            await served.daemon.run(Pause(graph, "drain", "x"))
            await client.call("workgraph/resume", {"graph": graph})
        await asyncio.sleep(0.6)
        await client.call("graphd/health")
        refreshes = [method for method, _ in client.asked if method.endswith("/refresh")]
        assert 2 <= len(refreshes) <= 12
        await plain.call("graphd/health")
        assert plain.asked == []


async def test_progress_for_each_running_graph_begins_reports_and_ends() -> None:
    async with serving() as served:
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        graph = (await client.call("workgraph/set", {"title": "Some work", "nodes": nodes("a", "b")}))["graph"]
        begin = await client.next("$/progress")
        assert client.asked[-1][0] == "window/workDoneProgress/create"
        token = client.asked[-1][1]["token"]
        assert begin["token"] == token
        assert begin["value"]["kind"] == "begin"
        assert begin["value"]["title"] == "Some work"
        await served.daemon.identify(graph)
        await served.daemon.end_all(graph)
        seen = [(await client.next("$/progress"))]
        while seen[-1]["value"]["kind"] != "end":
            seen.append(await client.next("$/progress"))
        assert {row["token"] for row in seen} == {token}
        assert seen[-1]["value"]["message"] == "complete"
        read = converter()
        for row in [begin, *seen]:
            read.structure(row, types.ProgressParams)
        await client.close()


async def test_no_progress_before_the_editor_took_the_token() -> None:
    async with serving() as served:
        client = await editor(served)
        client.answers_asks = False
        await client.at("hover", "file:///x.yaml", 0, 0)
        await client.call("workgraph/set", {"title": "x", "nodes": nodes("a")})
        await asyncio.sleep(0.1)
        await client.call("graphd/health")
        assert [method for method, _ in client.asked] == ["window/workDoneProgress/create"]
        assert "$/progress" not in {name for name, _ in client.notifications}
        await client.close()


# ---- commands -----------------------------------------------------------------------------------------------------


async def test_a_run_uses_the_saved_file() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        await client.change(uri, {"text": FLOW + "# more\n"})
        with pytest.raises(WireError) as refusal:
            await client.command("graphd.run", uri=uri)
        assert refused_by(refusal.value) == "unsavedChanges"
        assert refusal.value.number == -32076
        assert served.daemon.state.graphs == {}
        Path(uri.removeprefix("file://")).write_bytes(("\ufeff" + FLOW + "# more\n").replace("\n", "\r\n").encode())
        await client.tell("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert await client.command("graphd.run", uri=uri)


async def test_text_that_was_never_saved_does_not_run() -> None:
    async with serving() as served:
        client = await editor(served)
        for uri in ("untitled:Untitled-1", (served.daemon.workspace / ".agents/workflows/new.yaml").as_uri()):
            await client.open(uri, FLOW, language="graphd-workflow")
            with pytest.raises(WireError) as refusal:
                await client.command("graphd.run", uri=uri)
            assert refused_by(refusal.value) == "unsavedChanges"
        await client.close()


async def test_what_commands_answer_when_they_cannot() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri):
        for name, argument, code in (
            ("graphd.pause", {"uri": uri}, "notFound"),
            ("graphd.pause", {}, "notFound"),
            ("graphd.openOutput", {"uri": uri, "node": "lint"}, "notFound"),
            ("graphd.run", {"uri": "file:///nowhere/x.yaml"}, "notFound"),
            ("graphd.run", {"graph": "019-nope"}, "notFound"),
        ):
            with pytest.raises(WireError) as refusal:
                await client.command(name, **argument)
            assert refused_by(refusal.value) == code
        await client.command("graphd.run", uri=uri)
        with pytest.raises(WireError) as refusal:
            await client.command("graphd.resume", uri=uri)
        assert refused_by(refusal.value) == "invalidTransition"


async def test_an_output_is_opened_where_the_editor_can_and_answered_as_text() -> None:
    async with serving() as served, edited(served, FLOW) as (client, uri), edited(served, FLOW, {}) as (plain, _):
        graph = (await client.command("graphd.run", uri=uri))["graph"]
        await served.daemon.identify(graph)
        await served.daemon.end_one(graph, text="all is well")
        shown = await client.command("graphd.openOutput", uri=uri, node="lint")
        assert shown["text"] == "all is well"
        copy = Path(file_path(shown["uri"]) or "")
        assert copy.read_text() == "all is well"
        while "window/showDocument" not in {method for method, _ in client.asked}:
            client._keep(await client.read())
        assert ("window/showDocument", {"uri": shown["uri"], "takeFocus": True}) in client.asked
        assert (await plain.command("graphd.openOutput", graph=graph, node="lint"))["text"] == "all is well"
        await plain.call("graphd/health")
        assert plain.asked == []


# ---- files --------------------------------------------------------------------------------------------------------


async def test_a_prompt_that_appears_on_the_disk_is_noticed() -> None:
    text = "nodes:\n  - { id: a, worker: build, prompt: { file: how } }\n"
    async with serving() as served, edited(served, text) as (client, uri):
        before = await client.diagnostics(uri)
        assert before
        prompts = served.daemon.workspace / ".agents" / "prompts"
        prompts.mkdir()
        (prompts / "how.md").write_text("do it")
        async with asyncio.timeout(10):
            while await client.diagnostics(uri) == before:
                pass


async def test_files_that_the_editor_watches_count_too() -> None:
    text = "nodes:\n  - { id: a, worker: build, prompt: { file: how } }\n"
    async with serving() as served:
        prompts = served.daemon.workspace / ".agents" / "prompts"
        async with edited(served, text) as (client, uri):
            before = await client.diagnostics(uri)
            served.server._workflow_files.close()
            prompts.mkdir()
            (prompts / "how.md").write_text("do it")
            change = {"uri": (prompts / "how.md").as_uri(), "type": 1}
            await client.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
            assert await client.diagnostics(uri) != before


async def test_nothing_is_watched_without_an_editor() -> None:
    async with serving() as served:
        files = served.server._workflow_files
        client = await editor(served)
        await client.at("hover", "file:///x.yaml", 0, 0)
        assert files._watch is not None
        await client.close()
        async with asyncio.timeout(5):
            while served.server._served:
                await asyncio.sleep(0.005)
        assert files._watch is None
        assert workflow(served.daemon.workspace, "x", FLOW).exists()
