"""Files of edits: nodes in the keys of workflow files come to the wire's, whole."""

from typing import Any

import pytest

from graphd.cli.edits import as_node, edits_of, reasoned
from graphd.cli.exits import CommandRefused
from graphd.cli.main import cli
from graphd_protocol.model import NodeParams, ReplanParams

Json = dict[str, Any]
IN_A_FILE: Json = {
    "id": "a", "name": "A", "prompt": "Do it", "worker_type": "build", "depends_on": ["b"],
    "input_mapping": {"the_list": "b.output.some_key"}, "output_schema": {"type": "object", "x-my_own": 1},
    "gate": {"revise": "b", "max_revisions": 1}, "verify": {"worker_type": "verify", "criteria": "it works"},
    "for_each": {"in": "b.output.rows", "as": "one_row", "max": 5}, "retry": {"max": 2, "backoff_s": 1},
    "review": {"phase": "diff", "implementation_node_id": "b"}, "report_to_parent": True,
    "worker_config": {"timeout_ms": 60_000, "max_tool_calls": 9, "permissions": "read"},
}  # fmt: skip
ON_THE_WIRE: Json = {
    "slug": "a", "title": "A", "spec": "Do it", "worker": "build", "needs": ["b"],
    "inputMapping": {"the_list": "b.output.some_key"}, "outputSchema": {"type": "object", "x-my_own": 1},
    "gate": {"revise": "b", "maxRevisions": 1}, "verify": {"worker": "verify", "criteria": "it works"},
    "forEach": {"in": "b.output.rows", "as": "one_row", "max": 5}, "retry": {"max": 2, "backoffS": 1},
    "review": {"phase": "diff", "implementationNodeId": "b"}, "reportToParent": True,
    "timeoutMs": 60_000, "maxToolCalls": 9, "permissions": "read",
}  # fmt: skip


def test_a_node_may_be_spelled_as_in_a_workflow_file_or_as_on_the_wire() -> None:
    assert as_node(IN_A_FILE) == ON_THE_WIRE == as_node(ON_THE_WIRE)
    NodeParams.model_validate(ON_THE_WIRE, strict=True, by_alias=True, by_name=False)


def test_a_node_that_waits_has_neither_spec_nor_worker() -> None:
    node = as_node({"id": "w", "wait": {"signal": "go", "timeout_s": 5}})
    assert node == {"slug": "w", "wait": {"signal": "go", "timeoutS": 5}}


def test_edits_name_their_nodes_in_the_same_words() -> None:
    edits = edits_of(
        {"add": [IN_A_FILE], "change": [{"id": "c", "worker_config": {"timeout_ms": 5000}}], "remove": {"d": "gone"}},
        "f",
    )
    assert edits == {
        "add": [ON_THE_WIRE], "change": [{"slug": "c", "timeoutMs": 5000}], "remove": [{"node": "d", "reason": "gone"}]
    }  # fmt: skip
    ReplanParams.model_validate(edits, strict=True, by_alias=True, by_name=False)


def test_what_is_left_out_is_left_out_for_a_reason() -> None:
    assert reasoned("--remove", ["a=done by hand", "b= x = y "]) == [
        {"node": "a", "reason": "done by hand"}, {"node": "b", "reason": "x = y"},
    ]  # fmt: skip


@pytest.mark.parametrize("argv", [["run", "x", "--prune"], ["replan", "--remove"]])
@pytest.mark.parametrize("item", ["docs", "docs= ", "=why"])
def test_without_one_the_option_itself_is_named(argv: list[str], item: str) -> None:
    with pytest.raises(CommandRefused) as refusal:
        cli.main([*argv, item], standalone_mode=False)
    assert refusal.value.message.startswith(f"{argv[-1]} {item}: ")
    assert refusal.value.hint.startswith(argv[-1])
