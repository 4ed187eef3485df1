"""Every line that we send is valid by the protocol's own schema (version 1), as its package has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from graphd.children.acp import lines
from graphd.children.acp.driver import AcpDriver
from graphd.core.talk import Line, render
from tests.kit.acp import acp_order

OLD = {"session/set_model"}  # left the schema when options came; agents with a list of models know it


def sent(tmp_path: Path) -> list[Line]:
    order = acp_order(tmp_path, mcp_argv=("/bin/graphd", "mcp", "--attempt"))
    driver = AcpDriver()
    return [
        *driver.prompt(order), *driver.answer("7", "a", None), *driver.answer('"x"', None, None),
        *driver.turn("s1", "more"), *driver.cancel("s1", ("7",)), *driver.close("s1"), lines.new_session(order),
        lines.restore_session("load", "s1", order), lines.restore_session("resume", "s1", order),
        lines.list_sessions(order, None), lines.list_sessions(order, "2"), lines.set_mode("s1", "ask"),
        lines.set_option("s1", "think", "high"), lines.set_model("s1", "big"),
        lines.reply("1", {"content": "x"}), lines.refusal("1", lines.METHOD_NOT_FOUND, "Method not found"),
    ]  # fmt: skip


MODELS: dict[str, Any] = {
    "initialize": schema.InitializeRequest, "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest, "session/resume": schema.ResumeSessionRequest,
    "session/list": schema.ListSessionsRequest, "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest, "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification, "session/close": schema.CloseSessionRequest,
}  # fmt: skip


def test_every_line_fits_the_schema_and_says_nothing_beside_it(tmp_path: Path) -> None:
    checked = set()
    for seq, line in enumerate(sent(tmp_path)):
        text = render(line, seq)
        assert "\n" not in text
        message = json.loads(text)
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method is None:
            assert ("result" in message) != ("error" in message)
            if "outcome" in message.get("result", {}):
                schema.RequestPermissionResponse.model_validate(message["result"])
            continue
        assert ("id" in message) == line.is_request == (method != "session/cancel")
        if method in OLD:
            continue
        model = MODELS[method].model_validate(message["params"])
        checked.add(method)
        known = {field.alias or name for name, field in type(model).model_fields.items()}
        assert set(message["params"]) <= known, method
    assert checked == set(MODELS)


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
def test_our_tools_are_named_to_every_session(tmp_path: Path, method: str) -> None:
    found = [line.message["params"] for line in sent(tmp_path) if line.message.get("method") == method]
    assert found[0]["mcpServers"][0]["args"] == ["mcp", "--attempt"]
    schema.McpServerStdio.model_validate(found[0]["mcpServers"][0])
