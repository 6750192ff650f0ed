"""Variables in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.config.env import references, substitute

ENVIRON = {"A": "1", "EMPTY": "", "TRICKY": "${A} $$"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-$$5}", "$5"),
        ("${A:-d}", "1"),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("^orders$", "^orders$"),
        ("$A", "$A"),
        ("a|b$|c", "a|b$|c"),
        ("${TRICKY}", "${A} $$"),  # a value is not read again
    ],
)
def test_substitution(text: str, expected: str) -> None:
    done = substitute(text, ENVIRON)
    assert done.text == expected
    assert not done.missing and not done.malformed


def test_used_and_missing_variables_are_named() -> None:
    done = substitute("${A} ${B} ${C:-x} ${D}", ENVIRON)
    assert (done.used, done.missing) == (("A",), ("B", "D"))
    assert references("${A} ${C:-x} $$ ${A}") == ["${A}", "${C}"]


@pytest.mark.parametrize("text", ["${", "${A", "${}", "${1}", "${a b}", "${A:-${B}}", "${A-b}"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    assert substitute(text, ENVIRON).malformed


@given(st.text())
def test_any_text_can_be_written_with_doubled_dollars(text: str) -> None:
    assert substitute(text.replace("$", "$$"), {}).text == text
