"""Every row of the research on bad input and bad neighbours (sidecar.md §2 and §10) and the tests that show it.

The rows are those of the research, shortened; a row without a test, or a test that is gone, fails here.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

HERE = "e2e/test_isolation.py"
CASES = f"{HERE}::test_bad_input_gets_its_answer_and_harms_nobody"
ONE_ANSWER = f"{HERE}::test_every_request_gets_one_answer_and_no_answer_tells_of_the_installation"
STREAMS = "e2e/test_isolation_streams.py::test_mutated_streams_get_what_they_are_owed_and_harm_nobody"
REQUESTS = "e2e/test_server_requests.py"
FRAMES = "unit/test_frames.py"
SUBSCRIPTIONS = "e2e/test_subscriptions.py"
ATTACH = "e2e/test_attach.py"
CONNECT = "e2e/test_connect.py"
PROMISES = "proc/test_promises.py"
TAKEOVER = "e2e/test_takeover.py"
LEAKS = "e2e/test_leaks.py"
MANY = "e2e/test_many_clients.py"

CUSTOM_METHODS: dict[str, tuple[str, ...]] = {
    "request with object params": (f"{REQUESTS}::test_bad_params_are_named_field_by_field",),
    "keys class, a-b, _p": (f"{HERE}::test_names_of_fields_arrive_as_they_were_sent",),
    "key type_name": (f"{HERE}::test_names_of_fields_arrive_as_they_were_sent",),
    "request without params": (f"{CASES}[no params]", f"{REQUESTS}::test_every_request_gets_exactly_one_answer"),
    "nested object with a jsonrpc key": (
        f"{CASES}[a nested jsonrpc key]", f"{FRAMES}::test_nested_jsonrpc_keys_are_plain_values",
    ),
    "known LSP request, wrong params": (f"{HERE}::test_wrong_params_of_the_language_servers_own_methods_are_answered",),
    "invalid JSON": (f"{CASES}[invalid JSON]",),
    "not an object": (f"{CASES}[not an object]",),
    "batch array": (f"{CASES}[a batch]",),
    "no jsonrpc": (f"{CASES}[no jsonrpc]",),
    "unknown request": (f"{CASES}[an unknown request]",),
    "unknown notification": (f"{CASES}[an unknown notification]",),
    "code, message and data arrive": (f"{REQUESTS}::test_an_internal_error_tells_no_path_and_no_traceback",),
    "other exception: no traceback, no path": (
        f"{REQUESTS}::test_an_internal_error_tells_no_path_and_no_traceback", ONE_ANSWER,
    ),
    "lower-case header": (f"{CASES}[lower-case header]",),
    "no space after the colon": (f"{CASES}[no space after the colon]",),
    "header line over 64 KB": (f"{CASES}[70 KB of header]",),
    "Content-Length 0": (f"{CASES}[length 0]",),
    "Content-Length 4000000000": (f"{CASES}[a length over the cap]",),
    "100 k nested arrays": (f"{CASES}[100,000 nested arrays]", f"{FRAMES}::test_depth_is_bounded_before_parsing"),
    "same id twice in flight": (f"{HERE}::test_an_id_in_use_is_refused_and_the_first_keeps_its_answer",),
    "client dies mid-message": (f"{HERE}::test_a_client_that_dies_in_a_frame_or_before_its_answer_is_forgotten",),
    "client dies with a request in flight": (
        f"{HERE}::test_a_client_that_dies_in_a_frame_or_before_its_answer_is_forgotten",
        f"{HERE}::test_a_client_that_goes_during_its_commit_loses_the_answer_and_nothing_else",
    ),
    "exit notification": (f"{HERE}::test_exit_ends_the_connection_that_sent_it_alone",),
    "cancelRequest on a coroutine": (
        f"{REQUESTS}::test_requests_in_flight_are_bounded_and_reads_can_be_cancelled",
    ),
    "cancel of executeCommand": (f"{HERE}::test_a_cancelled_command_gets_one_answer",),
    "cancel of what already runs to its end": (
        f"{REQUESTS}::test_a_mutation_is_answered_with_its_result_though_cancelled",
    ),
    "slow request then a fast one": (f"{HERE}::test_an_id_in_use_is_refused_and_the_first_keeps_its_answer",),
    "blocking handler": (f"{HERE}::test_no_handler_can_block_the_others",),
}  # fmt: skip

FRAMING: dict[str, tuple[str, ...]] = {
    "split at every byte": (
        f"{FRAMES}::test_frames_are_cut_at_every_byte", f"{HERE}::test_frames_may_come_byte_by_byte",
    ),
    "two frames in one read": (f"{CASES}[two frames in one read]",),
    "lower-case header": (f"{CASES}[lower-case header]",),
    "extra headers in any order": (
        f"{FRAMES}::test_headers_in_any_case_and_order_are_taken", f"{CASES}[a header of nobody's]",
    ),
    "Content-Type first": (f"{CASES}[Content-Type first]",),
    "no params": (f"{CASES}[no params]",),
    "params null": (f"{CASES}[params null]",),
    "params an array": (f"{CASES}[params an array]",),
    "nested jsonrpc key": (f"{CASES}[a nested jsonrpc key]",),
    "invalid UTF-8": (f"{CASES}[invalid UTF-8]",),
    "batch": (f"{CASES}[a batch]",),
    "length 0": (f"{CASES}[length 0]",),
    "length negative": (f"{CASES}[a negative length]",),
    "length not a number": (f"{CASES}[no number for a length]",),
    "length over the cap": (f"{CASES}[a length over the cap]",),
    "length shorter than the body": (f"{CASES}[a length shorter than the body]",),
    "length longer than the body": (
        f"{HERE}::test_a_body_that_is_shorter_than_its_length_is_the_clients_own_trouble",
        f"{REQUESTS}::test_a_frame_that_never_ends_ends_its_connection",
    ),
    "70 KB header": (f"{CASES}[70 KB of header]",),
    "100 k nesting": (f"{CASES}[100,000 nested arrays]",),
    "id a string": (f"{CASES}[a text id]",),
    "id an integer": (f"{CASES}[no params]",),
    "id a float": (f"{CASES}[a float id]",),
    "id null": (f"{CASES}[a null id]",),
    "id a boolean": (f"{CASES}[a boolean id]",),
    "duplicate id": (f"{HERE}::test_an_id_in_use_is_refused_and_the_first_keeps_its_answer",),
    "10,000 mutated streams": (STREAMS,),
}  # fmt: skip

ISOLATION: dict[str, tuple[str, ...]] = {
    "two clients, same ids": (f"{HERE}::test_clients_with_the_same_ids_get_their_own_answers",),
    "exit from one": (f"{HERE}::test_exit_ends_the_connection_that_sent_it_alone",),
    "shutdown from one": (f"{HERE}::test_exit_ends_the_connection_that_sent_it_alone",),
    "crash mid-frame": (f"{HERE}::test_a_client_that_dies_in_a_frame_or_before_its_answer_is_forgotten",),
    "50 clients × 20 interleaved": (
        f"{MANY}::test_50_clients_with_20_interleaved_requests_each_get_their_own_answers",
    ),
    "connection collected after disconnect": (
        f"{SUBSCRIPTIONS}::test_connections_are_collected_when_their_clients_left",
        f"{LEAKS}::test_no_task_and_no_connection_outlives_its_client",
    ),
    "no task leaks": (f"{LEAKS}::test_no_task_and_no_connection_outlives_its_client",),
    "no leaks of descriptors and memory": (
        f"{LEAKS}::test_1000_connections_leave_nothing_behind", f"{LEAKS}::test_editors_leave_nothing_behind",
    ),
    "A leaves, B is killed, C is deaf, D pipelines, E notices nothing": (
        f"{MANY}::test_a_client_notices_nothing_of_what_the_others_do",
    ),
}  # fmt: skip

BACKPRESSURE: dict[str, tuple[str, ...]] = {
    "stalled client with 30 k notifications": (
        f"{HERE}::test_30000_notifications_to_a_stalled_client_hold_one_message",
        f"{SUBSCRIPTIONS}::test_fast_slow_and_deaf_subscribers_end_with_the_same_value",
    ),
    "stalled client that pipelines 100 snapshots": (
        f"{HERE}::test_a_stalled_client_that_pipelines_100_snapshots_is_slowed_and_gets_them_all",
    ),
    "what was missed comes once and the next snapshot is consistent": (
        f"{SUBSCRIPTIONS}::test_fast_slow_and_deaf_subscribers_end_with_the_same_value",
    ),
}

CANCELLATION: dict[str, tuple[str, ...]] = {
    "running read": (f"{REQUESTS}::test_requests_in_flight_are_bounded_and_reads_can_be_cancelled",),
    "running set: committed or not, never half": (
        f"{HERE}::test_a_cancelled_set_is_committed_whole_or_not_at_all",
        f"{REQUESTS}::test_a_mutation_is_answered_with_its_result_though_cancelled",
    ),
    "executeCommand": (f"{HERE}::test_a_cancelled_command_gets_one_answer",),
    "client gone during commit": (
        f"{HERE}::test_a_client_that_goes_during_its_commit_loses_the_answer_and_nothing_else",
    ),
    "cancel for an unknown id": (f"{CASES}[a cancel of nothing]",),
}

ERRORS: dict[str, tuple[str, ...]] = {
    "no path or traceback in any answer": (ONE_ANSWER, STREAMS),
    "every request gets exactly one answer": (ONE_ANSWER, STREAMS),
}

ATTACHING: dict[str, tuple[str, ...]] = {
    "16 racing attaches with jitter": (
        f"{ATTACH}::test_20_simultaneous_starts_make_one_daemon_that_serves_all",
        f"{PROMISES}::test_twenty_simultaneous_first_starts_make_one_daemon",
    ),
    "SIGKILL then attach": (f"{ATTACH}::test_a_socket_that_a_dead_daemon_left_is_replaced_by_the_next_daemon",),
    "idle-exit edge": (f"{HERE}::test_at_the_idle_end_every_client_gets_a_daemon",),
    "daemon that dies at start": (f"{ATTACH}::test_a_start_that_dies_shows_the_end_of_its_log_at_once",),
    "unwritable state folder": (
        "unit/test_paths.py::test_a_state_folder_that_cannot_be_made_is_a_named_failure",
        "e2e/test_server_process.py::test_a_start_that_fails_says_why",
    ),
    "path of 150 bytes": (f"{ATTACH}::test_any_path_will_do",),
    "socket owned by another user": (
        f"{HERE}::test_another_users_daemon_is_refused",
        f"{HERE}::test_a_client_of_another_user_is_closed_before_a_word",
    ),
    "lock held but no socket": (f"{ATTACH}::test_a_held_lock_without_a_listener_ends_in_the_reason",),
    "version mismatch both ways": (
        f"{ATTACH}::test_a_protocol_that_we_do_not_speak_is_refused_with_both_versions",
        f"{TAKEOVER}::test_protocols_that_do_not_meet_are_refused_with_both_versions_and_a_command",
        f"{TAKEOVER}::test_an_older_client_starts_the_newest_daemon_recorded",
    ),
    "version mismatch idle and busy": (f"{TAKEOVER}::test_a_newer_client_takes_over_and_what_runs_goes_on",),
    "connect into head -c1 ends": (f"{CONNECT}::test_a_reader_that_goes_away_ends_it_quietly",),
    "a child alive after the daemon's SIGKILL does not hold the lock": (
        f"{PROMISES}::test_a_killed_daemon_comes_back_by_itself_and_the_run_ends_as_if_nothing_was",
        "sim/test_store_opening.py::test_the_lock_is_not_inherited",
    ),
    "different PATH per client": (
        f"{PROMISES}::test_a_client_with_a_poor_path_starts_the_daemon_and_a_rich_one_the_graph",
    ),
    "symlinked workspace": (f"{ATTACH}::test_any_path_will_do", "unit/test_paths.py::test_links_are_one_workspace"),
    "workspace moved while running": (f"{HERE}::test_a_workspace_that_is_moved_keeps_its_clients_and_its_old_place",),
}  # fmt: skip

GROUPS = [CUSTOM_METHODS, FRAMING, ISOLATION, BACKPRESSURE, CANCELLATION, ERRORS, ATTACHING]
ROWS = {(number, row): shown for number, group in enumerate(GROUPS) for row, shown in group.items()}


@cache
def names(path: str) -> set[str]:
    """The tests of a file."""
    tree = ast.parse((TESTS / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@cache
def cases() -> set[str]:
    """The names of the cases of bad input."""
    tree = ast.parse((TESTS / HERE).read_text())
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "CASES":
            assert isinstance(node.value, ast.Dict)
            return {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError("no cases")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_every_row_has_tests_that_are_there(row: tuple[int, str]) -> None:
    assert ROWS[row]
    for shown in ROWS[row]:
        path, _, name = shown.partition("::")
        name, _, case = name.partition("[")
        assert name in names(path), shown
        assert not case or case.removesuffix("]") in cases(), shown


def test_every_test_of_bad_input_is_of_a_row() -> None:
    named = {shown.partition("::")[2].partition("[")[0] for tests in ROWS.values() for shown in tests}
    assert {name for name in names(HERE) if name.startswith("test_")} - named == set()


def test_no_row_of_the_research_is_missing() -> None:
    """29 rows of §2 (its combined rows taken apart), and §10 from framing to attaching."""
    assert [len(group) for group in GROUPS] == [29, 26, 9, 3, 5, 2, 15]
