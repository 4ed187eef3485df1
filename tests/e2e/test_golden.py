"""The golden conversations hold against a real daemon, and every message in them is what `protocol.json` says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.kit.golden import Conversation, Replay, answers, conversations
from tests.kit.wire import Client
from tests.kit.workspaces import ROOT, Workspace

PROTOCOL: dict[str, Any] = json.loads((ROOT / "protocol" / "protocol.json").read_text(encoding="utf-8"))
REQUESTS = {row["method"]: row for row in PROTOCOL["requests"]}
NOTIFICATIONS = {row["method"]: row for row in PROTOCOL["notifications"]}
JSON_RPC = {row["value"] for row in PROTOCOL["errorCodes"] if row["value"] <= -32100 or row["value"] == -32002}


def valid(schema: dict[str, Any], value: Any) -> None:
    Draft202012Validator({**schema, "$defs": PROTOCOL["$defs"]}).validate(value)


def check(replay: Replay) -> None:
    """Every params, result, error and notification fits its schema; every error is one of the method's."""
    for method, request, answer in answers(replay.sent, replay.heard):
        if "error" in answer:
            error = answer["error"]
            valid({"$ref": "#/$defs/ErrorFacts"}, error["data"])
            named = {row["value"]: row["name"] for row in PROTOCOL["errorCodes"]}[error["code"]]
            if error["code"] not in JSON_RPC:
                assert error["data"]["code"] == named
                assert named in REQUESTS[method]["errorCodes"], method
            continue
        row = REQUESTS[method]
        if "params" in row:
            valid(row["params"], request.get("params", {}))
        valid(row["result"], answer["result"])
    for message in replay.heard:
        if "method" in message:
            valid(NOTIFICATIONS[message["method"]]["params"], message["params"])


@pytest.fixture
def socket(workspace: Workspace) -> Iterator[Path]:
    started = workspace.graphd("daemon", "--start")
    assert started.returncode == 0, started.stderr
    yield Path(started.stdout.strip())
    workspace.graphd("stop", "--cancel")


@pytest.mark.parametrize("conversation", conversations(), ids=lambda conversation: conversation.name)
async def test_the_daemon_says_what_is_written(conversation: Conversation, workspace: Workspace, socket: Path) -> None:
    for name, text in conversation.files.items():
        path = workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    async def connect() -> Client:
        return await Client.connect(socket, hello=False)

    replay = Replay(connect, {"workspace": str(workspace.root.resolve())})
    await replay.run(conversation)
    check(replay)


def test_the_conversations_show_what_they_should() -> None:
    shown = {conversation.name for conversation in conversations()}
    assert shown >= {"hello", "validate", "run", "retry", "pause-resume", "cancel", "reconnect", "errors", "history"}
    assert all(len(conversation.about) > 20 for conversation in conversations())
