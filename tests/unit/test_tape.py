"""The tape: a rollback gives back attributes and keys; one that keeps nothing writes just the same."""

from dataclasses import dataclass, field

from graphd.core.tape import Tape


@dataclass
class Thing:
    name: str = "old"
    rows: dict[str, int] = field(default_factory=lambda: {"kept": 1, "gone": 2})


def write(tape: Tape, thing: Thing) -> None:
    tape.set(thing, "name", "new")
    tape.put(thing.rows, "kept", 5)
    tape.put(thing.rows, "fresh", 6)
    tape.drop(thing.rows, "gone")
    tape.drop(thing.rows, "never was")


def test_a_rollback_gives_everything_back_down_to_the_mark() -> None:
    tape, thing = Tape(), Thing()
    tape.set(thing, "name", "before")
    mark = tape.mark()
    write(tape, thing)
    tape.rollback(mark)
    assert thing == Thing(name="before")
    tape.rollback()
    assert thing == Thing()


def test_what_is_committed_is_not_taken_back() -> None:
    tape, thing = Tape(), Thing()
    write(tape, thing)
    tape.clear()
    tape.rollback()
    assert (thing.name, thing.rows) == ("new", {"kept": 5, "fresh": 6})


def test_a_tape_for_replay_writes_the_same_and_keeps_nothing() -> None:
    tape, thing, other = Tape.unwound(), Thing(), Thing()
    write(tape, thing)
    write(Tape(), other)
    assert thing == other
    assert tape.mark() == 0
