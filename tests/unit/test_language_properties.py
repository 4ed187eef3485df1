"""Language features on any text at all: nothing raises, every span lies in the text, a rename keeps the graph."""

import random
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphd.workflows import validate
from graphd.workflows.language import (
    Analysis,
    Point,
    RenameRefused,
    Span,
    Symbol,
    analyse,
    complete,
    definition,
    fixes,
    folding,
    highlights,
    hint_places,
    hover,
    lens_places,
    prepare_rename,
    references,
    related,
    rename,
    replaced,
    symbols,
)

DATA = Path(__file__).parents[1] / "data" / "workflows"
RICH = """\
title: 并行 😀
inputs:
  tag: { type: string, description: what }
  depth: { type: int, default: 2 }
config:
  delivery_node: report
  nodes:
    - id: 'list'
      run: ls "$GRAPHD_VAR_tag"
    - { id: tests, needs: [list], run: 'cat "$GRAPHD_INPUT_DIR/list"', retry: { max: 1, on: [timeout] } }
    # a note
    - id: "fix😀"
      needs:
        - list
        - tests
      worker: build
      condition: 'list.state == "achieved" and not tests.output.failed > 0'
      prompt: |
        文 {{list}} with {{ tests }}
        at {{inputs.depth}}
    - id: report
      depends_on: [tests]
      worker_type: synthesize
      input_mapping: { found: tests.output.names }
      prompt_template: { inline: "say {{found}} {{x}}", input: { x: 1 } }
"""
SEEDS = [
    *(p.read_bytes().decode(errors="replace") for p in sorted(DATA.rglob("*.yaml"))),
    RICH,
    RICH.replace("\n", "\r\n"),
    "\ufeff" + RICH,
    RICH.replace("    ", "\t"),
]
PIECES = [
    "", " ", "\n", "\r\n", "\t", "[", "]", "{", "}", "'", '"', ":", ": ", "- ", "#", "|", "|\n", "{{", "}}", ", ", "😀",
    "\ufeff", "\ud800", "needs: [", "id: a", "  - ", "worker: ", "condition: a.", "&x ", "*x", "!t ", "---\n", "中",
    "\u2028", "\0", "\r", "prompt: |\n        x", "? ", "<<: ", "nodes:", "gn-final", "and", "'\n", "{{ inputs.",
]  # fmt: skip


@st.composite
def edited(draw: st.DrawFn) -> list[str]:
    """A text and what it becomes by a few edits, each of one place."""
    text = draw(st.sampled_from(SEEDS))
    texts = [text]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.sampled_from([0, 0, 1, 2, 5, 30]))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + gone :]
        texts.append(text)
    return texts


def lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def flat(found: list[Symbol]) -> Iterator[Symbol]:
    for symbol in found:
        yield symbol
        yield from flat(list(symbol.children))


def assert_inside(analysis: Analysis, spans: list[Span]) -> None:
    lines = lines_of(analysis.text)
    for start, end in spans:
        assert start <= end
        for point in (start, end):
            assert 0 <= point.line < len(lines)
            assert 0 <= point.column <= len(lines[point.line])


def everything_at(analysis: Analysis, at: Point) -> list[Span]:
    spans = [c.edit_span for c in complete(analysis, at)]
    shown = hover(analysis, at)
    spans += [shown.span] if shown is not None else []
    spans += definition(analysis, at) + references(analysis, at) + [h.span for h in highlights(analysis, at)]
    prepared = prepare_rename(analysis, at)
    spans += [prepared[0]] if prepared is not None else []
    spans += [span for fix in fixes(analysis, Span(at, at), ()) for span, _ in fix.edits]
    return spans


def everything(analysis: Analysis) -> list[Span]:
    spans = [analysis.span_of(d) for d in analysis.diagnostics]
    spans += [span for d in analysis.diagnostics for span, _ in related(analysis, d)]
    for node in analysis.nodes:
        spans += [node.id_span, node.span, *(span for _, span in node.needs)]
    for symbol in flat(symbols(analysis)):
        spans += [symbol.span, symbol.name_span]
        assert symbol.span.start <= symbol.name_span.start <= symbol.name_span.end <= symbol.span.end
        assert symbol.name
    spans += [span for span, _ in lens_places(analysis)] + [Span(p, p) for p, _ in hint_places(analysis)]
    lines = len(lines_of(analysis.text))
    assert all(0 <= first < last < lines for first, last, _ in folding(analysis))
    whole = Span(Point(0, 0), Point(lines, 0))
    spans += [span for fix in fixes(analysis, whole, ()) for span, _ in fix.edits]
    return spans


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(edited(), st.randoms(use_true_random=False))
def test_no_edit_makes_anything_raise_or_point_outside(texts: list[str], dice: random.Random) -> None:
    analysis: Analysis | None = None
    for text in texts:
        analysis = analyse(text, name="x", previous=analysis)

        spans = everything(analysis)
        lines = lines_of(text)
        for _ in range(6):
            line = dice.randrange(len(lines))
            spans += everything_at(analysis, Point(line, dice.randint(0, len(lines[line]) + 1)))
        spans += everything_at(analysis, Point(len(lines) + 3, 0))

        assert_inside(analysis, spans)
        assert [d.message for d in analysis.diagnostics] == [d.message for d in validate(text, name="x")]


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([s for s in SEEDS if not any(d.severity == "error" for d in validate(s))]),
    st.sampled_from(["other", "x-1", "12", "0x1", "no", "true", "gn-1", "a b", "", "list", "tests", "名", "1e3"]),
    st.randoms(use_true_random=False),
)
def test_a_rename_gives_the_same_graph_with_the_new_name(text: str, new_name: str, dice: random.Random) -> None:
    analysis = analyse(text, name="x")
    node = dice.choice(analysis.nodes)
    at = dice.choice([node.id_span, *(s for n in analysis.nodes for slug, s in n.needs if slug == node.slug)]).start
    try:
        edits = rename(analysis, at, new_name)
    except RenameRefused:
        return

    after = analyse(replaced(text, edits), name="x")

    def renamed(slug: str) -> str:
        return new_name if slug == node.slug else slug

    assert [d.code for d in after.diagnostics] == [d.code for d in analysis.diagnostics]
    assert [n.slug for n in after.nodes] == [renamed(n.slug) for n in analysis.nodes]
    for old, new in zip(analysis.nodes, after.nodes, strict=True):
        assert [slug for slug, _ in new.needs] == [renamed(slug) for slug, _ in old.needs]
        assert new.definition is not None
        assert new.definition.needs == tuple(slug for slug, _ in new.needs)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(edited())
def test_a_fix_applies_and_what_it_gives_can_be_read(texts: list[str]) -> None:
    analysis = analyse(texts[-1], name="x")
    whole = Span(Point(0, 0), Point(10**6, 0))

    for fix in fixes(analysis, whole, ())[:12]:
        places = sorted((tuple(span.start), tuple(span.end)) for span, _ in fix.edits)
        assert all(one[1] <= two[0] for one, two in zip(places, places[1:], strict=False))
        after = analyse(replaced(texts[-1], list(fix.edits)), name="x")

        assert fix.title
        assert after.text != analysis.text
        if analysis.is_parsed and fix.is_preferred:
            assert after.is_parsed, (fix, texts[-1])
