"""Texts remember how they were made; the catalogue says them in Chinese, and gives stored reasons their sense back."""

import copy
import json
import pickle

import orjson
import pytest

from graphd.base.catalogue import localised, negotiated, translate, translate_stored, translate_word
from graphd.base.text import Text, either, said, t
from graphd.core.slugs import slug_reason
from graphd_protocol.ids import slug_trouble


def test_a_text_is_its_english_sentence_everywhere() -> None:
    text = t("node {node}: {why}", node="a", why=t("it failed"))
    assert text == "node a: it failed"
    assert {text: 1} == {"node a: it failed": 1}
    assert orjson.dumps([text]) == json.dumps([text], separators=(",", ":")).encode() == b'["node a: it failed"]'
    assert t("write {…} as it stands") == "write {…} as it stands"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_a_copy_is_still_translatable(again: object) -> None:
    text = again(t("did you mean {name}?", name="x"))  # type: ignore[operator]  # three callables of three types
    assert isinstance(text, Text)
    assert translate(text, "zh") == "你是指 x 吗？"


def test_what_an_exception_says_keeps_its_template() -> None:
    assert isinstance(said(ValueError(t("it failed"))), Text)
    assert said(OSError(2, "gone")) == "[Errno 2] gone"
    assert said(ValueError()) == ""


def test_words_are_joined_by_a_translated_or() -> None:
    assert either(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a or b or c"
    assert translate(either(["a", "b", "c"]), "zh") == "a 或 b 或 c"


@pytest.mark.parametrize(
    ("wishes", "language"),
    [
        (("zh",), "zh"), (("zh_CN.UTF-8",), "zh"), (("zh-Hans",), "zh"), (("ZH_tw@x",), "zh"), (("zh-cn",), "zh"),
        (("zha",), "en"), (("en_US.UTF-8",), "en"), (("C",), "en"), (("de",), "en"), ((), "en"), ((None, ""), "en"),
        (("", None, "zh"), "zh"), (("en", "zh"), "en"), ((" ", "zh_CN"), "zh"),
    ],
)  # fmt: skip
def test_the_first_locale_that_is_named_decides(wishes: tuple[str | None, ...], language: str) -> None:
    assert negotiated(*wishes) == language


def test_texts_inside_texts_are_translated_and_values_are_not() -> None:
    text = t("can't {verb} {graph}: {why}", verb="resume", graph="it is done", why=t("it is {status}", status="active"))
    assert translate(text, "en") is text
    assert translate(text, "zh") == "不能对 it is done 执行 resume：它处于 active"
    assert translate("it is done", "zh") == "it is done", "a plain string is somebody's"
    assert translate(t("a template that nobody has"), "zh") == "a template that nobody has"  # catalogue: not ours


def test_a_json_value_is_translated_whole_and_left_alone_in_english() -> None:
    value = {"a": [t("it is done"), {"b": t("it failed")}], "c": 1, "d": ("it is done",)}
    assert localised(value, "en") is value
    assert localised(value, "zh") == {"a": ["它已完成", {"b": "失败"}], "c": 1, "d": ["it is done"]}


@pytest.mark.parametrize(
    ("stored", "chinese"),
    [
        ("it ran out of time", "已超时"),
        ("exit code 3", "退出码 3"),
        ("exit code 3: boom: and more\nlines", "退出码 3：boom: and more\nlines"),
        ("required node a failed: exit code 1: it failed", "必需节点 a 失败：退出码 1：it failed"),
        ("attempt a@2 was lost: its keeper died", "尝试 a@2 丢失：其 keeper 已死亡"),
        ("its keeper died, and its keeper holds its lock", "其 keeper 已死亡，而且其 keeper 仍持有锁"),
        (
            "condition: a.output.n > 3: the left side is a text, not a number",
            "条件：a.output.n > 3：左边是文本，而不是数字",
        ),
        # not ours: nothing is put into anybody's mouth
        ("it rains, and it pours", None),
        ("fix: the parser", None),
        ("exit code", None),
        ("", None),
    ],
)
def test_stored_english_is_matched_back_to_its_template(stored: str, chinese: str | None) -> None:
    assert translate_stored(stored, "zh") == (stored if chinese is None else chinese)
    assert translate_stored(stored, "en") == stored


def test_a_reason_that_a_person_may_have_given_is_translated_only_where_it_is_our_word() -> None:
    assert translate_word("paused", "zh") == "已暂停"
    assert translate_word("exit code 3", "zh") == "exit code 3"
    assert translate_word("paused", "en") == "paused"


def test_a_reason_inside_a_text_may_come_from_the_log() -> None:
    text = t("the graph is {status}: {reason}", status="blocked", reason="required node a failed: exit code 1")
    assert translate(text, "zh") == "图处于 blocked：必需节点 a 失败：退出码 1"


def test_hostile_text_is_looked_at_in_linear_time() -> None:
    text = "required node " * 20_000 + " failed: " + ", and " * 20_000
    assert translate_stored(text, "zh").startswith("必需节点 ")


@pytest.mark.parametrize("slug", ["gn-final", "gn-x", "", "-a", "a b", "x" * 65, "and", "null"])
def test_why_a_text_is_no_slug_says_the_same_in_both_places(slug: str) -> None:
    assert slug_reason(slug) == slug_trouble(slug) is not None


def test_a_slug_has_no_trouble() -> None:
    assert slug_reason("a-1") is None
