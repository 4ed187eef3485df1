"""What an attempt may say on the wire: its result, its progress, its questions; of itself alone, while it lives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graphd.core.commands import AttemptEnded
from graphd_protocol import model as wire
from tests.kit.wire import Client, Served, WireError, hello_params, nodes, refused_by, serving


@asynccontextmanager
async def child(served: Served, **node: Any) -> AsyncIterator[tuple[Client, Client, str, Path]]:
    """A person, the child of a running attempt, its graph, its folder."""
    user = await served.client(interactive=True)
    (plain,) = nodes("a")
    result = await user.call("workgraph/set", {"nodes": [{**plain, **node}], "title": "x"})
    graph = str(result["graph"])
    await served.daemon.identify(graph)
    attempt = next(iter(served.daemon.state.graphs[graph].attempts.values()))
    folder = served.daemon.folder / "attempts" / graph / attempt.folder
    (folder / "inputs").mkdir(parents=True)
    (folder / "token").write_text("s3cret")
    made = await served.client(hello=False)
    await made.call("graphd/hello", hello_params(attemptToken="s3cret"))
    yield user, made, graph, folder
    await user.close()
    await made.close()


async def refusal(client: Client, method: str, **params: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        await client.call(f"workgraph/{method}", params)
    return caught.value


async def over(served: Served, graph: str) -> None:
    key = next(iter(served.daemon.state.graphs[graph].live))
    await served.daemon.run(AttemptEnded(graph, key, "failed", "exec_failed", "gone"))


async def test_a_result_is_handed_in_by_its_attempt_as_text_or_json() -> None:
    async with serving() as served, child(served) as (_, made, graph, _folder):
        for output in ("done", {"a": [1, "é"]}, '{"b": 2}'):
            assert await made.call("workgraph/submitResult", {"output": output}) == {}
        key = next(iter(served.daemon.state.graphs[graph].live))
        contents = [b"done", '{"a":[1,"é"]}'.encode(), b'{"b": 2}']
        assert served.daemon.submitted == [(graph, key, content) for content in contents]


async def test_a_result_that_does_not_fit_its_schema_is_sent_back_with_what_to_mend() -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    async with serving() as served, child(served, outputSchema=schema) as (_, made, _graph, _folder):
        for output, said in (("words", "no JSON"), ({}, '"n" is a required'), ({"n": "x"}, "$.n")):
            trouble = await refusal(made, "submitResult", output=output)
            assert refused_by(trouble) == "childInputRefused"
            assert said in str(trouble)
        assert served.daemon.submitted == []
        await made.call("workgraph/submitResult", {"output": '{"n": 1}'})
        assert len(served.daemon.submitted) == 1


async def test_late_and_foreign_results_are_refused() -> None:
    async with serving() as served, child(served) as (user, made, graph, _folder):
        assert refused_by(await refusal(user, "submitResult", output="mine")) == "unauthorised"
        served.daemon.takes_results = False
        assert refused_by(await refusal(made, "submitResult", output="late")) == "staleAttempt"
        await over(served, graph)
        served.daemon.takes_results = True
        for method, params in (
            ("submitResult", {"output": "x"}), ("reportProgress", {"text": "x"}), ("askParent", {"question": "x"}),
            ("readInput", {"name": "x"}),
        ):  # fmt: skip
            assert refused_by(await refusal(made, method, **params)) == "staleAttempt"
        assert len(served.daemon.submitted) == 1


async def test_a_child_answers_cancels_and_widens_nothing() -> None:
    async with serving() as served, child(served) as (_, made, graph, _folder):
        for method, params in (("cancel", {"graph": graph}), ("respond", {"ask": "x", "actionHash": "y"})):
            assert refused_by(await refusal(made, method, **params)) == "unauthorised"


async def test_a_question_waits_for_people_and_its_words_again_wait_for_the_same_answer() -> None:
    async with serving() as served, child(served) as (user, made, graph, _folder):
        first = await made.call("workgraph/askParent", {"question": "Which\nhost?", "waitMs": 0})
        wire.AskParentResult.model_validate(first, by_name=False)
        assert first["state"] == "open"
        (ask,) = await user.call("workgraph/asks", {})
        assert (ask["id"], ask["kind"], ask["title"], ask["options"]) == (first["ask"], "question", "Which host?", [])
        waiting = asyncio.ensure_future(made.call("workgraph/askParent", {"question": "Which\nhost?"}))
        await user.call("workgraph/respond", {"ask": ask["id"], "actionHash": ask["actionHash"], "text": "staging"})
        answered = await waiting
        assert (answered["state"], answered["answer"], answered["answeredBy"]) == ("answered", "staging", "test")
        assert await made.call("workgraph/askParent", {"question": "Which\nhost?"}) == answered
        other = await made.call("workgraph/askParent", {"question": "Which port?", "waitMs": 0})
        assert other["ask"] != ask["id"]
        await over(served, graph)
        assert await user.call("workgraph/asks", {}) == []


async def test_with_nobody_there_a_question_is_answered_by_the_rule() -> None:
    async with serving() as served, child(served) as (user, made, _graph, _folder):
        served.daemon.settings.detached_asks = "deny"
        assert (await made.call("workgraph/askParent", {"question": "1?", "waitMs": 0}))["state"] == "open"
        await user.close()
        while served.daemon.is_attended():
            await asyncio.sleep(0)
        answered = await made.call("workgraph/askParent", {"question": "2?"})
        assert (answered["state"], answered["answeredBy"]) == ("answered", "rule asks.detached")
        assert "answer" not in answered


async def test_progress_is_shown_and_inputs_are_read_in_parts() -> None:
    async with serving() as served, child(served) as (_, made, graph, folder):
        await made.call("workgraph/reportProgress", {"text": "half way"})
        assert [(row[0], row[2]) for row in served.daemon.progress] == [(graph, "half way")]
        (folder / "inputs" / "in").write_text("é" * 10)
        part = await made.call("workgraph/readInput", {"name": "in", "limit": 5})
        assert part == {"text": "éé", "offset": 0, "next": 4, "total": 20}
        rest = await made.call("workgraph/readInput", {"name": "in", "offset": 4, "limit": 100})
        assert rest["text"] == "é" * 8
        for name in ("im", "../token", "inputs/in", ""):
            assert refused_by(await refusal(made, "readInput", name=name)) == "notFound"


async def test_a_discovery_is_a_proposal_that_a_person_accepts_and_told_again_it_is_the_same() -> None:
    async with serving() as served, child(served) as (user, made, graph, _folder):
        found = {"title": "A: mend the parser", "spec": "Mend it", "needs": ["a"]}
        first = await made.call("workgraph/reportDiscovery", found)
        assert await made.call("workgraph/reportDiscovery", found) == first
        (ask,) = await user.call("workgraph/asks", {})
        assert (ask["id"], ask["kind"], ask["title"]) == (first["proposal"], "proposal", found["title"])
        assert refused_by(await refusal(made, "accept", proposal=ask["id"])) == "unauthorised"
        await user.call("workgraph/accept", {"graph": graph, "proposal": ask["id"]})
        node = (await user.call("workgraph/node", {"graph": graph, "node": "a-mend-the-parser"}))["node"]
        assert (node["state"], node["needs"]) == ("waiting", ["a"])
        assert await made.call("workgraph/reportDiscovery", found) == first
        again = await made.call("workgraph/reportDiscovery", {**found, "title": "a mend - the parser!"})
        assert again != first
        alike = await made.call("workgraph/reportDiscovery", {**found, "title": "A mend (the parser)"})
        for proposal in (again, alike):
            await user.call("workgraph/accept", {"graph": graph, **proposal})
        trouble = await refusal(made, "reportDiscovery", title="x", spec="y", needs=["nobody"])
        assert refused_by(trouble) == "invalidPlan"
