"""Lines for agents: numbered once, rendered with their number, taken back with a refused change, gone with the end."""

import json

from graphd.core.model import Talking
from graphd.core.talk import Line, Posted, post, render
from tests.unit.core_drive import Drive, define, ended, live_key, plan

G = "g"


def running() -> Drive:
    drive = Drive()
    drive.run(plan(G, define("a")))
    return drive


def test_a_request_has_its_number_as_id_and_a_notice_has_none() -> None:
    line = Line({"method": "x", "params": {"ü": 1}}, is_request=True)
    assert render(line, 7) == '{"jsonrpc":"2.0","id":7,"method":"x","params":{"\\u00fc":1}}'
    assert json.loads(render(Line({"id": 3, "result": None}), 9)) == {"jsonrpc": "2.0", "id": 3, "result": None}


def test_numbers_run_on_behind_the_first_lines_and_the_cursor_never_goes_back() -> None:
    drive = running()
    key = live_key(drive.state.graphs[G], "a")
    line = Line({"method": "x"})
    posted = post(drive.state, drive.tape, G, key, lines=[line, line], first=1, cursor=(9, 0))
    assert isinstance(posted, Posted)
    assert [seq for seq, _ in posted.rows] == [1, 2]
    more = post(drive.state, drive.tape, G, key, lines=[line], first=1)
    again = post(drive.state, drive.tape, G, key, lines=[], first=1, cursor=(4, 2), heard=3)
    assert more is not None
    assert again is not None
    assert ([seq for seq, _ in more.rows], again.rows, again.heard) == ([3], (), 3)
    assert drive.state.talks[(G, key)] == Talking((9, 0), 4)
    drive.tape.rollback()
    assert drive.state.talks == {}


def test_nobody_is_told_of_an_attempt_that_is_settled_or_unknown() -> None:
    drive = running()
    key = live_key(drive.state.graphs[G], "a")
    post(drive.state, drive.tape, G, key, lines=[Line({})], first=0)
    drive.run(ended(drive.state.graphs[G], "a"))
    assert drive.state.talks == {}
    assert post(drive.state, drive.tape, G, key, lines=[Line({})], first=0) is None
    assert post(drive.state, drive.tape, "h", key, lines=[Line({})], first=0) is None
