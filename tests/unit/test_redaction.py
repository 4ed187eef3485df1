"""Secrets leave text: known shapes, exact values, over chunk borders, the same way every time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphd.base.redaction import PLAIN, Redactor

SECRETS = {
    "anthropic-key": "sk-ant-" + "a1B2" * 10,
    "openai-key": "sk-proj-" + "x9Y8" * 8,
    "github-token": "ghp_" + "A1b2" * 9,
    "gitlab-token": "glpat-" + "Zz09" * 5,
    "aws-key": "AKIA" + "ABCD1234" * 2,
    "google-key": "AIza" + "abcde" * 7,
    "slack-token": "xoxb-" + "1234-abcd-" * 3,
    "npm-token": "npm_" + "aB3d" * 9,
    "pypi-token": "pypi-" + "AgEI" * 20,
    "stripe-key": "sk_live_" + "abcd1234" * 3,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl" + "ab" * 10,
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_known_shape_is_taken_out(kind: str) -> None:
    shown = PLAIN.text(f"token={SECRETS[kind]} and more")
    assert SECRETS[kind] not in shown
    assert f"[redacted:{kind}]" in shown
    assert shown.startswith("token=")


def test_a_password_in_an_address_is_taken_out_and_the_host_stays() -> None:
    assert PLAIN.text("git clone https://me:s3cret@example.org/x.git") == (
        "git clone https://[redacted:url-password]@example.org/x.git"
    )


def test_exact_values_are_taken_out_longest_first() -> None:
    redactor = Redactor(["hunter22", "hunter22-and-more", "abc"])
    assert redactor.text("hunter22-and-more hunter22 abc") == "[redacted:variable] [redacted:variable] abc"


@pytest.mark.parametrize("text", ["", "plain words", "task-123 sk-etch", "https://example.org/a:b@c", "ASIA", "eyJ"])
def test_ordinary_text_stays(text: str) -> None:
    assert PLAIN.text(text) == text


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_over_any_chunk_border_is_found(kind: str) -> None:
    whole = f"before {SECRETS[kind]} after\n"
    for cut in range(1, len(whole)):
        stream = PLAIN.stream()
        shown = stream.feed(whole[:cut]) + stream.feed(whole[cut:]) + stream.end()
        assert shown == PLAIN.text(whole)


@given(st.lists(st.text(max_size=40), max_size=20))
def test_a_stream_loses_and_invents_nothing(chunks: list[str]) -> None:
    stream = PLAIN.stream()
    shown = "".join(stream.feed(chunk) for chunk in chunks) + stream.end()
    assert shown == PLAIN.text("".join(chunks))


def test_what_a_stream_holds_back_is_bounded() -> None:
    stream = PLAIN.stream()
    shown = sum(len(stream.feed("x" * 1000)) for _ in range(100))
    assert shown > 90_000
