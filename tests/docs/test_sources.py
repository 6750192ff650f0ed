"""docs/sources.md: the source it shows is put where it says, found, checked, and run."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone

import pytest

from rivermouth import sources
from rivermouth.config.load import InvalidConfigFile
from rivermouth.sources.folder import _UNFINISHED
from tests.docs.markdown import ROOT, blocks, codes, prose

SOURCES = ROOT / "docs" / "sources.md"


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """The documented source as a file of the package, for the time of a test."""
    (block,) = [block for block in blocks("python") if block.file == SOURCES]
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "clock.py").write_text(block.text, encoding="utf-8")
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    sources.connectors.cache_clear()
    yield
    sys.modules.pop("rivermouth.sources.clock", None)
    vars(sources).pop("clock", None)
    sources.connectors.cache_clear()


def test_the_source_it_shows_lands_every_record_once(clock, lake):
    since = datetime.now(timezone.utc) - timedelta(seconds=500)
    source = {"connector": "clock", "config": {"since": since.isoformat()}}
    ticks = {"t": {"schema": "tick BIGINT NOT NULL"}}
    lake.run(source, ticks)
    lake.run(source, ticks)
    count, distinct, first, last = lake.query(
        "SELECT count(*), count(DISTINCT tick), min(tick), max(tick) FROM {t}"
    )[0]
    assert count == distinct == last - first + 1 >= 500
    assert first == 0


def test_its_config_is_checked_like_any_other(clock, lake):
    with pytest.raises(InvalidConfigFile, match=r"MissingKey.*since"):
        lake.run({"connector": "clock", "config": {}}, {"t": {}})


def test_the_package_has_no_clock_of_its_own():
    assert set(sources.connectors()) == {"files", "generator", "kafka"}


def test_every_source_has_its_part():
    titles = {line[3:] for line in prose(SOURCES).splitlines() if line.startswith("## ")}
    assert set(sources.connectors()) <= titles


def test_the_endings_of_unfinished_files_are_all_named():
    assert set(_UNFINISHED) <= set(codes(prose(SOURCES)))
