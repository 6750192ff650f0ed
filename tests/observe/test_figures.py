from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.observe.figures import age, brief, duration, plural, reasons, short, size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.04, "0.0"),
        (2.5, "2.5"),
        (9.96, "10"),
        (999, "999"),
        (999.6, "1.00k"),
        (1000, "1.00k"),
        (9_996, "10.0k"),
        (12_345, "12.3k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (2_345_678, "2.35M"),
        (7e12, "7.00T"),
    ],
)
def test_short(number: float, text: str) -> None:
    assert short(number) == text


@given(st.floats(min_value=0, max_value=1e17))
def test_short_is_short_and_close(number: float) -> None:
    text = short(number)
    assert len(text) <= 5
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}.get(text[-1], 1)
    assert float(text.rstrip("kMGTP")) * scale == pytest.approx(number, rel=0.006, abs=0.5)


@given(st.floats(min_value=0, max_value=86400 * 900))
def test_duration_is_short(seconds: float) -> None:
    assert len(duration(seconds)) <= 7
    assert len(age(seconds)) <= 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.34, "340ms"),
        (0.9996, "1.0s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (185, "3m05s"),
        (7800, "2h10m"),
        (86400 * 4 + 3 * 3600, "4d03h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_age_is_whole_seconds() -> None:
    assert [age(0.9), age(59.9), age(60)] == ["0s", "59s", "1m00s"]


def test_counts_and_sizes() -> None:
    assert [brief(99_999), brief(100_000)] == ["99999", "100k"]
    assert [size(999), size(1_234_567)] == ["999 B", "1.23 MB"]
    assert [plural(1, "file"), plural(2000, "file")] == ["1 file", "2,000 files"]
    assert reasons({"A": 1, "B": 2, "C": 0}) == " (B 2, A 1)"
    assert reasons({"A": 0}) == ""
