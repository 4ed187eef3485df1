"""Clients of two languages on one daemon: each reads its own, codes and bytes of equal readers stay the same."""

from typing import Any

from graphd.core.commands import Set
from graphd.core.model import Definition, Source
from graphd.server import stored
from graphd.server.connection import Connection
from graphd_protocol.states import PAUSED_STATUSES
from tests.kit.wire import Client, Folded, Served, WireError, frame, nodes, serving

ZH = "zh_CN.UTF-8"
CYCLE = "nodes:\n- {id: a, run: 'true', needs: [b]}\n- {id: b, run: 'true', needs: [a]}\n"


async def trouble(client: Client, method: str, params: Any = None) -> dict[str, Any]:
    try:
        await client.call(method, params)
    except WireError as error:
        return error.error
    raise AssertionError(f"{method} was not refused")


async def failed_graph(served: Served, client: Client) -> str:
    """A chain whose first node failed."""
    result = await client.call("workgraph/set", {"nodes": nodes("a", ("b", ["a"])), "title": "t"})
    graph = str(result["graph"])
    await served.daemon.end_one(graph, "failed", failure_class="exec_failed", reason="exit code 3: boom")
    return graph


async def test_refusals_and_field_messages_are_said_in_each_client_s_language() -> None:
    async with serving() as served:
        zh, en = await served.client(locale=ZH), await served.client(locale="en_US.UTF-8")
        for method, params, chinese, english in (
            ("workgraph/status", {"graph": "nix"}, "没有图 nix", "no graph nix"),
            ("workgraph/nix", None, "未知的方法 workgraph/nix", "unknown method workgraph/nix"),
        ):
            ours, theirs = await trouble(zh, method, params), await trouble(en, method, params)
            assert (ours["message"], theirs["message"]) == (chinese, english)
            assert ours["code"] == theirs["code"]
            assert ours["data"]["hint"] != theirs["data"]["hint"]
            assert ours["data"].get("code") == theirs["data"].get("code")
        ours = await trouble(zh, "workgraph/list", {"limit": "x", "nix": 1})
        assert {row["path"]: row["message"] for row in ours["data"]["fields"]} == {
            "limit": "应为整数",
            "nix": "未知的字段",
        }
        assert "nix" in [row["got"] for row in ours["data"]["fields"]], "what the client wrote stays as it is"
        await zh.close()
        await en.close()


async def test_diagnostics_of_validate_explain_and_set_are_said_in_chinese() -> None:
    async with serving() as served:
        zh, en = await served.client(locale="zh"), await served.client()
        found = (await zh.call("workgraph/validate", {"text": CYCLE}))["diagnostics"]
        assert [(row["code"], row["message"], row["hint"]) for row in found] == [
            ("plan.cycle", "存在环：a 依赖 b 依赖 a", "请移除其中一个依赖")
        ]
        english = (await en.call("workgraph/validate", {"text": CYCLE}))["diagnostics"]
        assert [row["message"] for row in english] == ["a cycle: a needs b needs a"]
        assert [row["range"] for row in found] == [row["range"] for row in english]
        for method in ("workgraph/explain", "workgraph/set"):
            refused = await trouble(zh, method, {"text": CYCLE})
            assert refused["message"] == "第 2 行：存在环：a 依赖 b 依赖 a"
            assert refused["data"]["diagnostics"] == found
        inline = await trouble(zh, "workgraph/set", {"nodes": nodes(("a", ["nix"])), "title": "t"})
        assert inline["message"] == "a 依赖 nix，而它不是此计划的节点"
        await zh.close()
        await en.close()


async def test_why_says_its_reasons_in_chinese_and_its_commands_as_they_are_typed() -> None:
    async with serving() as served:
        zh, en = await served.client(locale="zh-Hans"), await served.client()
        graph = await failed_graph(served, en)
        ours = await zh.call("workgraph/why", {"graph": graph, "node": "a"})
        theirs = await en.call("workgraph/why", {"graph": graph, "node": "a"})
        assert [row["detail"] for row in ours[:2]] == ["exec_failed：退出码 3：boom", "失败的节点可以重试"]
        assert [row["detail"] for row in theirs[:2]] == [
            "exec_failed: exit code 3: boom",
            "a failed node can be tried again",
        ]
        assert [(row["code"], row["next"]) for row in ours] == [(row["code"], row["next"]) for row in theirs]
        assert (await zh.call("workgraph/why", {"graph": graph, "node": "b"}))[0]["detail"] == "a 失败了，而它是必需的"
        await zh.close()
        await en.close()


async def test_stored_reasons_are_shown_in_chinese_and_kept_in_english() -> None:
    async with serving() as served:
        zh, en = await served.client(locale="zh"), await served.client()
        view = Folded()
        await zh.call("workgraph/subscribe")
        graph = await failed_graph(served, en)
        while view.graphs.get(graph, {}).get("status") != "blocked":
            view.take(await zh.next("workgraph/changed"))
        ours = await zh.call("workgraph/status", {"graph": graph})
        theirs = await en.call("workgraph/status", {"graph": graph})
        assert view.graphs[graph] == ours
        assert ours["pauseReason"] == "必需节点 a 失败：退出码 3：boom" or ours["pauseReason"].startswith(
            "图的每个末端"
        )
        assert ours["nodes"][0]["failure"]["reason"] == "退出码 3：boom"
        assert theirs["nodes"][0]["failure"]["reason"] == "exit code 3: boom"
        assert any("\u4e00" <= c <= "\u9fff" for row in ours["history"] for c in row.get("detail", ""))
        assert [row["kind"] for row in ours["history"]] == [row["kind"] for row in theirs["history"]]
        assert (await zh.call("workgraph/list"))["graphs"][0]["pauseReason"] == ours["pauseReason"]
        attempts = (await zh.call("workgraph/node", {"graph": graph, "node": "a"}))["attempts"]
        assert attempts[0]["reason"] == "退出码 3：boom"
        events = (await zh.call("workgraph/history", {"graph": graph, "limit": 1000}))["events"]
        assert "退出码 3：boom" in [event["payload"].get("reason") for event in events]
        assert all(type(e.payload.get("reason", "")) is str for e in served.daemon.log), "the log is plain English"
        assert not any("退出码" in str(event.payload) for event in served.daemon.log)
        await zh.close()
        await en.close()


async def test_what_a_person_said_is_never_translated() -> None:
    async with serving() as served:
        zh = await served.client(locale="zh")
        graph = str((await zh.call("workgraph/set", {"nodes": nodes("a"), "title": "it failed"}))["graph"])
        await zh.call("workgraph/pause", {"graph": graph, "reason": "exit code 3: mine"})
        status = await zh.call("workgraph/status", {"graph": graph})
        assert status["status"] in PAUSED_STATUSES
        assert (status["pauseReason"], status["title"]) == ("exit code 3: mine", "it failed")
        await zh.call("workgraph/cancel", {"graph": graph, "reason": "it failed"})
        await served.daemon.end_all(graph)
        node = (await zh.call("workgraph/node", {"graph": graph, "node": "a"}))["node"]
        assert node["cancelReason"] == "it failed"
        await zh.close()


async def test_equal_readers_share_their_bytes_and_others_have_their_own() -> None:
    async with serving() as served:
        one, two, zh = await served.client(), await served.client(locale="de"), await served.client(locale="zh")
        command = Set(
            graph="g", title="t", objective="o", source=Source("nodes"), workspace="w", start=False,
            definitions=(Definition("a", "true", "shell"),),
        )  # fmt: skip
        await served.daemon.run(command)
        state, feeds = served.daemon.state, served.server.feeds
        assert sorted(c.subscriptions.language for c in _connections(served)) == ["en", "en", "zh"]
        english = [feeds.frame(state, "g", 0, c.subscriptions.language) for c in _connections(served)]
        assert len({id(frame[1]) for frame in english}) == 2, (
            "two English ones share a frame, the Chinese one has its own"
        )
        assert await one.call("workgraph/status", {"graph": "g"}) == await two.call("workgraph/status", {"graph": "g"})
        assert (await zh.call("workgraph/status", {"graph": "g"}))["pauseReason"] == "已设置，尚未启动"
        for client in (one, two, zh):
            await client.close()


def _connections(served: Served) -> list[Connection]:
    return list(served.server._served)


async def test_a_second_hello_changes_the_language_and_the_user_s_setting_stands_above_it() -> None:
    async with serving() as served:
        client = await served.client(locale="en")
        assert (await trouble(client, "workgraph/status", {"graph": "x"}))["message"] == "no graph x"
        hello = {"client": {"name": "test", "version": "1"}, "protocol": [1, 1]}
        await client.call("graphd/hello", {**hello, "locale": "zh"})
        assert (await trouble(client, "workgraph/status", {"graph": "x"}))["message"] == "没有图 x"
        served.daemon.settings.locale = "en"
        await client.call("graphd/hello", hello)
        assert (await trouble(client, "workgraph/status", {"graph": "x"}))["message"] == "no graph x"
        await client.close()


async def test_a_hello_that_is_refused_is_refused_in_its_own_language_and_so_is_the_goodbye() -> None:
    async with serving() as served:
        client = await served.client(hello=False)
        params = {"client": {"name": "test", "version": "1"}, "protocol": [98, 99], "locale": "zh"}
        refused = await trouble(client, "graphd/hello", params)
        assert any("\u4e00" <= character <= "\u9fff" for character in refused["message"])
        await client.call("graphd/hello", {**params, "protocol": [1, 1]})
        await client.call("graphd/stop", {"mode": "leave"})
        assert (await client.next("graphd/stopping"))["reason"] == "由客户端停止"
        await client.close()


async def test_an_editor_s_diagnostics_lenses_and_refusals_are_in_the_language_of_its_initialize() -> None:
    async with serving() as served:
        editor = await served.client(hello=False)
        root = f"file://{served.daemon.workspace}"
        document = {"uri": f"{root}/.agents/workflows/x.yaml"}
        capabilities: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
        params = {"processId": None, "locale": "zh-cn", "rootUri": root, "capabilities": capabilities}
        await editor.call("initialize", params)
        opened = {**document, "languageId": "yaml", "version": 1, "text": CYCLE}
        message = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": opened}}
        await editor.send(frame(message))
        report = await editor.call("textDocument/diagnostic", {"textDocument": document})
        assert [row["message"].splitlines()[0] for row in report["items"]] == ["存在环：a 依赖 b 依赖 a"]
        lenses = await editor.call("textDocument/codeLens", {"textDocument": document})
        assert [lens["command"]["title"] for lens in lenses] == ["运行"]
        command = {"command": "graphd.pause", "arguments": [document]}
        assert (await trouble(editor, "workspace/executeCommand", command))["message"] == "没有由此文件启动的运行"
        await editor.close()


async def test_our_own_questions_are_shown_in_chinese_and_what_others_ask_stays() -> None:
    async with serving() as served:
        zh, en = await served.client(locale=ZH), await served.client()
        await zh.call("workgraph/subscribe", {})
        plan = [
            {"slug": "a", "spec": "true", "approval": {"prompt": ""}},
            {"slug": "b", "spec": "true", "approval": {"prompt": "Start the engines?"}},
        ]
        graph = str((await en.call("workgraph/set", {"nodes": plan, "title": "t"}))["graph"])
        ours = await zh.call("workgraph/asks", {"graph": graph})
        assert [ask["title"] for ask in ours] == ["启动 a？", "Start the engines?"]
        assert [option["label"] for option in ours[0]["options"]] == ["批准", "拒绝"]
        assert [option["id"] for option in ours[0]["options"]] == ["allow", "deny"]
        theirs = await en.call("workgraph/asks", {"graph": graph})
        assert [ask["title"] for ask in theirs] == ["Start a?", "Start the engines?"]
        assert [option["label"] for option in theirs[0]["options"]] == ["Approve", "Refuse"]
        assert (await zh.call("workgraph/status", {"graph": graph}))["asks"] == ours
        assert sorted(ask["title"] for ask in (await zh.next("workgraph/asks"))["opened"]) == [
            "Start the engines?", "启动 a？",
        ]  # fmt: skip
        await zh.close()
        await en.close()


def test_agents_and_people_are_never_translated_in_a_question() -> None:
    options = [{"id": "x", "kind": "allow_once", "label": "Accept"}]
    for kind, action, title, label in (
        ("permission", {}, "Start a?", "Accept"),
        ("question", {"toolKind": "question"}, "Start a?", "Accept"),
        ("proposal", {}, "Start a?", "接受"),
        ("question", {"toolKind": "turn"}, "a：其代理自行取消了本轮", "接受"),
        ("escalation", {}, "a 已工作 5 秒；延长时间，还是停止？", "接受"),
    ):
        said = {"turn": "a: its agent cancelled the turn by itself"}.get(action.get("toolKind", ""), "Start a?")
        said = "a has worked for 5 s; extend its time, or stop it?" if kind == "escalation" else said
        wire = {"kind": kind, "node": "a", "action": action, "title": said, "options": [dict(row) for row in options]}
        shown = stored.ask(wire, "zh")
        assert (shown["title"], shown["options"][0]["label"]) == (title, label)
