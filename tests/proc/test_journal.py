"""The journal cut anywhere: the same facts, and exactly the missing lines. And a conversation over many crashes."""

import asyncio
import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphd.children.driver import Fact
from graphd.children.journal import Decoder, Header, Lines, read_err, read_header, read_records
from graphd.children.keeping.files import HEADER, IN, OUT
from graphd.children.link import Link
from graphd.children.run import KeptRun
from graphd.core.talk import Line, render
from tests.kit.kept import STORE, Heard, TalkDriver, TalkFold, make_order, raw_keeper, until

GOLDEN = Path(__file__).parents[1] / "data" / "keeper1"


def answers(driver: TalkDriver, facts: Iterable[Fact]) -> list[Line]:
    """What is said to the asks among these facts."""
    return [
        line for fact in facts if fact.kind == "ask" for line in driver.answer(str(fact.content["count"]), "yes", None)
    ]


def decided(driver: TalkDriver, order_facts: list[Fact]) -> list[dict[str, Any]]:
    """The outbox rows that these facts lead to, in order."""
    return [{"seq": 0}, *(line.message for line in answers(driver, order_facts))]


def fold(folder: Path) -> tuple[list[Fact], int]:
    """All facts of a folder's journal, and how many lines it has for the agent."""
    talk, ins = TalkFold(), read_header(folder).in_count
    for record in read_records(folder):
        talk.feed(record)
        ins += record.kind == IN
    return talk.facts, ins


def test_the_journal_of_version_1_cut_at_every_byte_gives_the_same_facts_and_the_missing_lines(tmp_path: Path) -> None:
    """The golden file is a conversation recorded with the first keeper; every byte of it is a place to die."""
    content = (GOLDEN / "journal").read_bytes()
    driver = TalkDriver(tmp_path / "unused", rounds=3)
    all_facts, all_ins = fold(GOLDEN)
    sent = [json.loads(record.payload) for record in read_records(GOLDEN) if record.kind == IN]
    assert [fact.kind for fact in all_facts].count("ask") == 3
    assert all_ins == len(sent) == 4
    for cut in range(HEADER.size, len(content) + 1):
        (tmp_path / "journal").write_bytes(content[:cut])
        facts, ins = fold(tmp_path)
        assert facts == all_facts[: len(facts)]
        rows = decided(driver, facts)
        assert rows == sent[: len(rows)]
        assert ins <= len(rows) <= ins + 1  # what is missing is rows[ins:], at most the one that was decided last
        for position in {facts[at].position for at in range(len(facts))}:  # a crash after any commit
            muted = [fact for fact in facts if fact.position > position]
            assert [fact for fact in facts if fact.position <= position] + muted == facts


def test_facts_do_not_depend_on_how_the_bytes_come() -> None:
    content = (GOLDEN / "journal").read_bytes()[HEADER.size :]
    whole = Decoder(read_header(GOLDEN)).feed(content)
    for size in (1, 7, 64):
        decoder = Decoder(Header())
        assert [r for at in range(0, len(content), size) for r in decoder.feed(content[at : at + size])] == whole
    assert json.loads((GOLDEN / "facts.json").read_text()) == [
        [fact.offset, fact.index, fact.kind, fact.content] for fact in fold(GOLDEN)[0]
    ]


async def test_a_trim_inside_a_record_begins_again_at_the_cursor(tmp_path: Path) -> None:
    """Two lines in one record, the cursor between them: after the trim the fold begins with the second one."""
    order = make_order(tmp_path, "printf 'one\\ntwo\\nthr'; sleep 0.2; echo ee")
    keeper = await raw_keeper(order)
    await until(lambda: (order.folder / "exit.json").exists())
    records = [record for record in read_records(order.folder) if record.kind == OUT]
    first = Lines().feed(records[0])[0]
    assert first.text == b"one"
    link = await Link.attach(order.folder, store=STORE, epoch=2)
    decoder = Decoder(link.header)
    async for event in link.events(decoder):
        if decoder.position == records[-1].end:
            break
        assert event is not None
    link.post("trim", upTo=first.end)
    await link.last("collect")
    await link.close()
    await keeper.gone()
    header = read_header(order.folder)
    assert header.trimmed_to == first.end
    lines = Lines()
    found = [line for record in read_records(order.folder) for line in lines.feed(record)]
    assert [line.text for line in found] == [b"two", b"three"]
    assert found[0].end == first.end + 4


async def test_a_conversation_over_many_crashes_says_each_line_once(tmp_path: Path) -> None:
    """Facts and cursor in one commit, rows sent after it; the daemon dies anywhere, also between commit and send."""
    rng = random.Random(7)
    rounds = 12
    committed: list[Fact] = []
    rows: list[str] = [render(Line({"seq": 0}), 0)]
    driver = TalkDriver(tmp_path / "oracle", rounds)
    order = make_order(tmp_path)
    deaths = 0

    def make(epoch: int) -> KeptRun:
        run: KeptRun

        async def commit(facts: tuple[Fact, ...], cursor: tuple[int, int]) -> None:
            await asyncio.sleep(0)  # a death before the commit
            committed.extend(facts)
            assert cursor == facts[-1].position
            rows.extend(render(line, len(rows)) for line in answers(driver, facts))
            await asyncio.sleep(0.001)  # a death between commit and send
            run.tell(list(enumerate(rows)))

        cursor = committed[-1].position if committed else (0, -1)
        changed = make_order(tmp_path, epoch=epoch)
        run = KeptRun(changed, Heard(), driver=driver, on_facts=commit, cursor=cursor)
        run.tell(list(enumerate(rows)))
        return run

    run = make(1)
    task = asyncio.create_task(run.start())
    await until(lambda: (order.folder / "socket").exists())
    while not task.done():
        await asyncio.wait([task], timeout=rng.uniform(0.01, 0.12))
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            deaths += 1
            run = make(deaths + 1)
            task = asyncio.create_task(run.adopt())
    ended = await task
    await run.collect()
    assert ended.outcome == "achieved"
    assert deaths > 3
    heard = [json.loads(line)["seq"] for line in (tmp_path / "oracle").read_text().splitlines()]
    assert heard == list(range(rounds + 1))
    assert [fact.kind for fact in committed] == ["update", "update", "ask"] * rounds + ["result"]
    assert fold(order.folder)[0] == committed


def test_the_stderr_ring_gives_what_is_still_there(tmp_path: Path) -> None:
    ring = bytearray(10)
    text = b"abcdefghijklmnop"
    for at, byte in enumerate(text):
        ring[at % 10] = byte
    (tmp_path / "err").write_bytes(bytes(ring))
    assert read_err(tmp_path, 0, 16, total=16, limit_bytes=10) == text[6:]
    assert read_err(tmp_path, 8, 4, total=16, limit_bytes=10) == text[8:12]
    assert read_err(tmp_path, 0, 3, total=16, limit_bytes=10) == b""
    assert read_err(tmp_path / "none", 0, 3, total=3, limit_bytes=10) == b""


async def record_golden(folder: Path, tmp_path: Path) -> None:
    """How tests/data/keeper1 was made; run by hand when a new version of the format gets its own folder."""
    run: KeptRun
    driver = TalkDriver(tmp_path / "oracle", 3)

    async def answer(facts: tuple[Fact, ...], _cursor: tuple[int, int]) -> None:
        run.tell([(line.message["seq"], render(line, 0)) for line in answers(driver, facts)])

    order = make_order(tmp_path)
    run = KeptRun(order, Heard(), driver=driver, on_facts=answer)
    await run.start()
    await run.collect()
    for name in ("journal", "exit.json", "keeper.json"):
        shutil.copy(order.folder / name, folder / name)
    facts = [[fact.offset, fact.index, fact.kind, fact.content] for fact in fold(folder)[0]]
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
