"""Recorded conversations are whole: every one begins as the protocol does, and reads back as it was said."""

import json
import re

import pytest

from graphd.children.journal import Lines
from graphd.children.keeping.files import IN, OUT
from tests.kit.conversations import journal, messages, recorded


@pytest.mark.parametrize(("agent", "scenario"), recorded())
def test_it_begins_with_initialize_and_names_no_machine(agent: str, scenario: str) -> None:
    said = messages(agent, scenario)
    assert said[0][1]["method"] == "initialize"
    text = json.dumps(said)
    assert "/tmp/" not in text
    assert re.findall(r"127\.0\.0\.1:(?!1\b)\d+", text) == []


@pytest.mark.parametrize(("agent", "scenario"), recorded())
def test_the_journal_says_what_was_said(agent: str, scenario: str) -> None:
    records, lines = journal(agent, scenario), Lines()
    theirs = [json.loads(line.text) for record in records if record.kind == OUT for line in lines.feed(record)]
    assert theirs == [message for is_ours, message in messages(agent, scenario) if not is_ours]
    ours = [json.loads(record.payload) for record in records if record.kind == IN]
    assert ours == [message for is_ours, message in messages(agent, scenario) if is_ours]
    assert [record.in_seq for record in records if record.kind == IN] == list(range(len(ours)))
