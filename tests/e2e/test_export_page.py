"""`graphd export --html`: one file that is well formed, fetches nothing, and shows what was there, whatever it was."""

import base64
import hashlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.e2e.test_cli import House, house  # noqa: F401 -- the fixture
from tests.kit.agents import AgentWorkspace, asks
from tests.kit.html import Page
from tests.kit.workspaces import Workspace

HOSTILE = """\
title: 'A "title" <script>alert(1)</script> & <!-- 检查'
nodes:
  - id: first
    name: '"><img src=x onerror=alert(1)>'
    run: 'printf "\\033[31mred\\033[0m </script></pre><b>x</b>\\n"'
  - { id: big, needs: [first], run: 'head -c 1000000 /dev/zero | tr "\\0" x | fold -w 99; echo the-very-end' }
  - { id: bytes, needs: [first], run: 'head -c 4000 /dev/urandom' }
  - { id: secret, needs: [first], run: 'echo ghp_; printf "sk-ant-api03-\\033[1m%s\\n" AAAAAAAAAAAAAAAAAAAAAAAAAAAA' }
  - { id: flaky, retry: { max: 1, backoff_s: 0.2 }, run: 'test -e was || { touch was; exit 4; }; echo well' }
  - { id: bad, needs: [first], required: true, run: 'echo "no host <here>" >&2; exit 7' }
  - { id: after, needs: [bad], run: echo never }
"""


def page_of(text: str) -> Page:
    page = Page(text)
    assert page.troubles == []
    assert page.unsafe() == []
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    return page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A blocked graph of nodes that say what they should not; nobody changes it."""
    place = House(tmp_path_factory.mktemp("hostile"))
    place.workflow("w", HOSTILE)
    place.ask("run", "w", code=1)
    yield place
    place.ask("stop", "--cancel")


def test_whatever_nodes_say_stays_text(hostile: House) -> None:
    text = hostile.ask("export", "w", "--html")
    page = page_of(text)
    assert 'A "title" <script>alert(1)</script> & <!-- 检查' in page.text
    assert '"><img src=x onerror=alert(1)>' in page.text
    assert "red </script></pre><b>x</b>" in page.text
    assert "\x1b" not in text
    # 1 MB is cut, and says so with the way to all of it
    assert "cut: the first 64.0 KiB of 986.4 KiB" in page.text
    assert re.search(r"graphd output big --graph \w{8}-\w{4}", page.text)
    assert "the-very-end" not in page.text.replace("echo the-very-end", "")
    assert "binary, 3.9 KiB: not shown; graphd output bytes" in page.text
    assert len(text) < 300_000
    # the colour within it does not hide it
    assert "AAAAAAAAAAAAAAAAAAAAAAAAAAAA" not in page.text.replace('%s\\n" AAAAAAAAAAAAAAAAAAAAAAAAAAAA', "")
    assert "[redacted:anthropic-key]" in page.text


def test_it_says_how_everything_stands_and_why(hostile: House) -> None:
    page = page_of(hostile.ask("export", "@last", "--html", "-"))
    assert "This graph had not ended when the page was written" in page.text
    assert "required node bad failed" in page.text
    assert "exec_failed: exit code 7: no host <here>" in page.text
    assert "graphd retry" in page.text
    assert {"first@1", "flaky@1", "flaky@2", "bad@1"} <= set(page.texts)
    assert "after@1" not in page.text
    # every node can be reached from its box, and from the table
    for slug in ("first", "big", "bytes", "secret", "flaky", "bad", "after"):
        assert f"node-{slug}" in page.ids
        assert page.links.count(f"#node-{slug}") >= 2
    boxes = [a for a in page.all("a") if a.get("class", "").startswith("box ")]
    assert {box["aria-label"] for box in boxes} >= {"bad: failed", "after: blocked"}
    # one bar each, queued or not: flaky's second one waited
    told = [a["aria-label"] for a in page.all("a") if a.get("class") == "bar"]
    assert len([one for one in told if one.startswith(("flaky@", "bad@", "first@"))]) == 4
    assert any(re.match(r"flaky@2: queued 0\.[2-9]s|flaky@2: queued [1-9]", one) for one in told)


def test_it_can_be_read_aloud_and_by_landmarks(hostile: House) -> None:
    text = hostile.ask("export", "w", "--html")
    page = page_of(text)
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert len(page.all(landmark)) == 1, landmark
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("table")) == len(page.all("caption")) > 5
    heads = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(below <= above + 1 for above, below in zip(heads, heads[1:], strict=False)), "no level is left out"
    for attributes in page.all("svg"):
        assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
    # the policy names the one sheet that there is
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    sheet = text[text.index("<style>") + 7 : text.index("</style>")]
    assert "'sha256-" + base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode() + "'" in policy
    assert "default-src 'none'" in policy
    assert "url(" not in sheet
    assert "@import" not in sheet


def test_a_file_is_written_whole_and_never_over_another_unless_that_is_said(hostile: House) -> None:
    file = hostile.folder / "run.html"
    said = hostile.ask("export", "w", "--html", "run.html")
    assert said.startswith("wrote run.html, ")
    before = file.read_bytes()
    page_of(before.decode())
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0o044, "as the umask says"
    file.write_text("mine")
    hostile.ask("export", "w", "--html", "run.html", code=1)
    assert "run.html is there already\n  --force" in hostile.err
    assert file.read_text() == "mine"
    hostile.ask("export", "w", "--html", "run.html", "--force")
    assert file.read_text().startswith("<!doctype html>")
    assert [path.name for path in hostile.folder.iterdir() if path.name.startswith(".run")] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--html", "w"), "is w the graph, or the file?"),
        (("w", "--html", "no/where/run.html"), "there is no folder no/where"),
        (("w", "--html", "--version", "1"), "a page has no interchange version"),
        (("w", "--force"), "--force goes with --html FILE"),
    ],
)
def test_what_cannot_be_meant_is_refused(hostile: House, words: tuple[str, ...], said: str) -> None:
    hostile.ask("export", *words, code=2)
    assert said in hostile.err
    assert len(hostile.err.splitlines()) == 2, "what is wrong, and what to type"


def test_a_graph_that_runs_is_shown_as_it_stands(house: House) -> None:  # noqa: F811 -- the fixture
    house.detached("--sh", "echo one; sleep 60", "--then", "echo two")
    house.until("running")
    page = page_of(house.ask("export", "--html"))
    assert "This graph was still running when the page was written" in page.text
    told = [a["aria-label"] for a in page.all("a") if a.get("class") == "bar"]
    assert len(told) == 1
    assert told[0].endswith((", live", ", starting"))


def test_it_is_written_in_chinese_for_a_chinese_reader(hostile: House) -> None:
    with mock.patch.dict(hostile.env, LC_ALL="zh_CN.UTF-8"):
        page = page_of(hostile.ask("export", "w", "--html"))
    assert page.all("html")[0]["lang"] == "zh-Hans"
    assert {"时间线", "为何没有达成", "要做的事"} <= set(page.texts)
    assert "必需节点 bad 失败" in page.text
    assert "What is" not in page.text


def test_asks_and_their_answers_are_shown(workspace: Workspace) -> None:
    agent = AgentWorkspace(workspace, [asks("/elsewhere/<x>"), asks("/other/y"), {"say": "done"}])
    agent.run("nodes:\n  - { id: a, worker: build, prompt: Do it }\n")
    (ask,) = agent.asks()
    assert workspace.graphd("answer", ask["id"], "reject", "--comment", "not <there>").returncode == 0
    agent.until(lambda: [one for one in agent.asks() if one["id"] != ask["id"]])
    ran = workspace.graphd("export", "@last", "--html")
    assert ran.returncode == 0, ran.stderr
    page = page_of(ran.stdout)
    asked = page.text[page.text.index("All that people were asked") :]
    assert "Change /elsewhere/<x>" in asked
    assert "not <there>" in asked
    assert "; by graphd-cli" in asked
    assert "not answered yet" in asked


def test_it_is_the_wire_s_alone() -> None:
    """The page's modules import nothing of the daemon's side."""
    for module in (Path(__file__).parents[2] / "graphd" / "cli" / "page").glob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) (graphd\.\w+)", module.read_text(), re.MULTILINE)
        assert set(imported) <= {"graphd.cli", "graphd.base", "graphd.client"}, module.name
