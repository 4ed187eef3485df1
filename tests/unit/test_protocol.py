"""The method table is what the server does, what the docs say and what the clients' types are made of."""

import ast
import copy
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from generator import compare, pages, schema
from generator.__main__ import ROOT, generated
from graphd.server.connection import NOT_GREETED
from graphd.server.hello import LIMITS
from graphd.server.routes import all_routes
from graphd_protocol import PROTOCOL_MAX, methods, model, states
from graphd_protocol.errors import ERROR_CODES, ERROR_MEANINGS, RETRYABLE

TABLE = {request.method: request for request in methods.REQUESTS}
PROTOCOL = schema.protocol()


def test_every_method_is_in_the_table_and_every_one_of_the_table_is_served() -> None:
    assert sorted(TABLE) == sorted({*all_routes(), "graphd/hello"})
    assert len(TABLE) == len(methods.REQUESTS)


@pytest.mark.parametrize("method", sorted(all_routes()))
def test_the_table_and_the_route_agree(method: str) -> None:
    route, row = all_routes()[method], TABLE[method]
    assert (row.params or "Empty", row.result) == (route.params, route.result)
    assert frozenset(row.callers) == route.allowed
    assert set(row.errors) <= set(ERROR_CODES)


def sent_by_the_server() -> set[str]:
    """Every literal method that the server makes a notification of."""
    found = set()
    for path in (ROOT / "graphd" / "server").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name == "notification" and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


def test_notifications_are_those_that_the_server_sends_and_takes() -> None:
    ours = {n.method for n in methods.NOTIFICATIONS if n.direction == "serverToClient"}
    assert sent_by_the_server() == ours
    assert "$/cancelRequest" in (ROOT / "graphd" / "server" / "connection.py").read_text()


def test_hello_is_answered_with_the_limits_of_its_model() -> None:
    model.WireLimits.model_validate(LIMITS, by_name=False)
    assert methods.JSON_RPC_CODES["notGreeted"] == NOT_GREETED


def test_every_error_has_a_meaning() -> None:
    assert set(ERROR_MEANINGS) == {*ERROR_CODES, *methods.JSON_RPC_CODES}
    assert set(ERROR_CODES) >= RETRYABLE


def test_generated_files_are_fresh() -> None:
    stale = [name for name, text in generated().items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert stale == [], "make generate"


def test_generation_is_deterministic() -> None:
    assert generated() == generated()


def test_the_docs_name_every_method_notification_and_error() -> None:
    for name in ("docs/protocol.md", "protocol/spec.md"):
        page = (ROOT / name).read_text(encoding="utf-8")
        listed = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
        assert {*TABLE, *(n.method for n in methods.NOTIFICATIONS), *ERROR_CODES} <= listed
        methods_named = set(re.findall(r"`((?:workgraph|graphd)/[A-Za-z]+)", page))
        # `workgraph/change` is the interchange form, not a method
        assert methods_named <= {*TABLE, *(n.method for n in methods.NOTIFICATIONS), "workgraph/change"}


def test_the_docs_name_the_number_of_the_wire() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert f"| wire | `protocol: [min, max]` in `graphd/hello` | {PROTOCOL_MAX} |" in page


def test_the_pages_tables_are_all_used() -> None:
    used = {n for page in ("docs/protocol.md", "protocol/spec.md") for n in _marks(ROOT / page)}
    assert used == set(pages.TABLES)


def _marks(path: Path) -> list[str]:
    return re.findall(r"<!-- generated: (\w+) -->", path.read_text(encoding="utf-8"))


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(refs, value.values()))
    return set().union(*map(refs, value)) if isinstance(value, list) else set()


def test_the_schemas_are_schemas_and_refer_to_what_is_there() -> None:
    assert {ref.removeprefix(schema.REF) for ref in refs(PROTOCOL)} == set(PROTOCOL["$defs"])
    for value in PROTOCOL["$defs"].values():
        Draft202012Validator.check_schema(value)
    assert "title" not in {key for value in PROTOCOL["$defs"].values() for key in value}


def test_params_are_closed_and_results_open() -> None:
    assert PROTOCOL["$defs"]["SetParams"]["additionalProperties"] is False
    assert "additionalProperties" not in PROTOCOL["$defs"]["Snapshot"]


def test_results_say_what_is_always_there() -> None:
    defs = PROTOCOL["$defs"]
    assert {"asks", "history", "nodes"} <= set(defs["Snapshot"]["required"])
    assert "proposals" not in defs["Snapshot"]["required"]
    assert "tokens" in defs["Spent"]["required"]
    assert "max" in defs["Retry"]["required"]
    assert "max" not in defs["RetryInput"].get("required", [])


def test_states_are_named_types() -> None:
    assert PROTOCOL["$defs"]["NodeState"]["enum"] == list(get_args(states.NodeState))
    assert PROTOCOL["$defs"]["Node"]["properties"]["state"] == {"$ref": "#/$defs/NodeState"}


# ---- compatibility ------------------------------------------------------------------------------------------------


def test_the_released_protocol_still_holds() -> None:
    released = ROOT / "protocol" / "released" / f"{PROTOCOL_MAX}.json"
    assert released.exists(), "python -m generator release"
    found = compare.breaks(json.loads(released.read_text(encoding="utf-8")), PROTOCOL)
    assert found == [], "raise PROTOCOL_MAX for a change that breaks clients"


def changed(*steps: Any, to: Any) -> dict[str, Any]:
    """The protocol with the value at a path replaced (or, with `...`, taken away)."""
    made = copy.deepcopy(PROTOCOL)
    place: Any = made
    for step in steps[:-1]:
        place = place[step]
    if to is ...:
        del place[steps[-1]]
    else:
        place[steps[-1]] = to
    return made


DEFS = ("$defs",)
BREAKING = {
    "a method is gone": changed("requests", to=PROTOCOL["requests"][1:]),
    "a notification is gone": changed("notifications", to=PROTOCOL["notifications"][:1]),
    "an error is gone": changed("errorCodes", to=PROTOCOL["errorCodes"][1:]),
    "an error has another number": changed("errorCodes", 0, "value", to=-1),
    "a param is gone": changed(*DEFS, "ListParams", "properties", "owner", to=...),
    "a param is required now": changed(*DEFS, "GraphParams", "required", to=["graph"]),
    "a param deep inside is required now": changed(*DEFS, "RetryInput", "required", to=["max"]),
    "a param takes less": changed(*DEFS, "ListParams", "properties", "limit", "maximum", to=10),
    "a param lost a value": changed(*DEFS, "StopParams", "properties", "mode", "enum", to=["leave"]),
    "a param changed its type": changed(*DEFS, "NodeRef", "properties", "node", "type", to="integer"),
    "a param takes null no longer": changed(*DEFS, "GraphParams", "properties", "graph", to={"type": "string"}),
    "a method takes no params now": changed("requests", 3, "params", to=...),
    "a result field is gone": changed(*DEFS, "Node", "properties", "slug", to=...),
    "a result field may be missing": changed(*DEFS, "Spent", "required", to=["tokens", "wallMs"]),
    "a result field may be null": changed(
        *DEFS, "Node", "properties", "title", to={"anyOf": [{"type": "string"}, {"type": "null"}]}
    ),
    "a result is one, not a list": changed("requests", 3, "result", to={"$ref": "#/$defs/Check"}),
}
HARMLESS = {
    "nothing": PROTOCOL,
    "a new method": changed(
        "requests", to=[*PROTOCOL["requests"], {**PROTOCOL["requests"][0], "method": "workgraph/new"}]
    ),
    "a new optional param": changed(*DEFS, "NodeRef", "properties", "more", to={"type": "string"}),
    "a new result field": changed(*DEFS, "Node", "properties", "more", to={"type": "string"}),
    "a new value in a result": changed(*DEFS, "ObservedItem", "properties", "kind", "enum", to=["text", "more"]),
    "a param takes more": changed(*DEFS, "ListParams", "properties", "limit", "maximum", to=5000),
    "other words": changed(*DEFS, "Node", "description", to="other words"),
}


def test_the_fourth_request_is_the_doctor() -> None:
    assert PROTOCOL["requests"][3]["method"] == "graphd/doctor"


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks_a_client_is_seen(name: str) -> None:
    assert compare.breaks(PROTOCOL, BREAKING[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_what_harms_no_client_is_let_through(name: str) -> None:
    assert compare.breaks(PROTOCOL, HARMLESS[name]) == []
