"""What the documents name is there: commands, options, make targets, links, keys, variables, metrics."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import duckdb
import pytest
import typer
from duckdb_extensions import import_extension

from rivermouth import sources
from rivermouth.cli import app
from rivermouth.config import model, starter
from rivermouth.config.load import load
from rivermouth.delta import dead_letters
from rivermouth.delta.progress import AppIds
from rivermouth.observe.events import Progress, SinkStarted
from rivermouth.pipeline.run import run
from rivermouth.records import Partition
from tests.docs.markdown import DOCUMENTS, EXAMPLES, ROOT, blocks, codes, prose, rows

KNOWN_LANGUAGES = {"console", "json", "python", "sql", "text", "toml", "yaml"}
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PARTS = [kind for kind in vars(model).values() if isinstance(kind, type) and issubclass(kind, model.Model)]
KEYS = {
    field.alias or name
    for kind in (*PARTS, *sources.models().values())
    for name, field in kind.model_fields.items()
}


def shown_commands() -> list[str]:
    """Each command of a console block, and each that stands in a sentence."""
    typed = [
        line[2:] for block in blocks("console") for line in block.text.splitlines() if line.startswith("$ ")
    ]
    said = [
        code
        for file in DOCUMENTS
        for code in codes(prose(file))
        if re.match(r"(make|rivermouth) [a-z]", code)
    ]
    examples = [
        match
        for file in EXAMPLES.glob("*.*")
        for match in re.findall(r"# .*?(rivermouth run \S+(?: --\w+)*)", file.read_text(encoding="utf-8"))
    ]
    return list(dict.fromkeys([*typed, *said, *examples]))


@pytest.mark.parametrize("line", shown_commands())
def test_a_command_that_is_shown_exists_with_its_options(line):
    words = shlex.split(line)
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    program, *arguments = words
    if program == "make":
        assert {word for word in arguments if "=" not in word} <= TARGETS
    elif program == "rivermouth":
        group = typer.main.get_command(app)
        assert isinstance(group, click.Group) or hasattr(group, "commands")
        if arguments[0].startswith("-"):
            assert arguments in (["--help"], ["--version"])
            return
        command = group.commands[arguments.pop(0)]  # type: ignore[attr-defined]
        while arguments and hasattr(command, "commands"):
            command = command.commands[arguments.pop(0)]
        if arguments:
            command.make_context(line, arguments)
    else:
        assert program in (".", "curl"), f"{program} is not a command of ours"


def test_the_commands_that_the_documents_live_by_are_among_them():
    assert {"make demo", "make test", "rivermouth doctor"} <= set(shown_commands())


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_blocks_have_a_language_that_is_tested(file):
    opened = re.findall(r"^```(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(opened) % 2 == 0
    assert set(opened[::2]) <= KNOWN_LANGUAGES
    assert set(opened[1::2]) <= {""}


def anchors(file: Path) -> set[str]:
    """The anchors of a document's titles, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(file), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_links_lead_somewhere(file):
    for target in re.findall(r"\]\(([^)]+)\)", prose(file)):
        path, _, anchor = target.partition("#")
        assert "://" not in path, "documents link to what is in the repository"
        found = (file.parent / path).resolve() if path else file
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_document_is_in_the_readme():
    linked = set(re.findall(r"\]\((docs/[^)#]+)\)", prose(ROOT / "README.md")))
    assert linked == {str(file.relative_to(ROOT)) for file in DOCUMENTS[1:]}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_keys_that_are_mentioned_exist(file):
    for row in rows(file, "key"):
        assert set(codes(row[0])) <= KEYS, row[0]
    for code in codes(prose(file)):
        match = re.fullmatch(r"([a-z]+(?:_[a-z]+)+)(?:: [\w-]+)?", code)
        if match and match[1] not in KEYS and ": " in code:
            raise AssertionError(f"{code}: there is no such key")


def test_words_with_underscores_are_names_of_something():
    """A renamed key must not live on in a sentence."""
    ids = AppIds("p", "s")
    others = {*dead_letters.SCHEMA.names, "event_type", "read_committed", "rivermouth", "timestamp_ltz"}
    others |= {ids.rejects_landed.rpartition("/")[2], "dead_letters", "timestamp_ntz"}
    others |= {"dead_letter", "read_uncommitted", "_delta_log", "_rivermouth"}
    for file in DOCUMENTS:
        if file.name == "metrics.md":  # tests/observe has it
            continue
        for code in codes(prose(file)):
            if re.fullmatch(r"[a-z]+(?:_[a-z0-9]+)+", code) and not code.startswith("rivermouth_"):
                assert code in KEYS | others, f"{file.name}: {code}"
            if code.startswith("rivermouth_"):
                assert f"`{code}`" in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), code


def test_variables_are_those_the_package_reads():
    read = {
        name
        for file in (ROOT / "rivermouth").rglob("*.py")
        for name in re.findall(r"RIVERMOUTH_[A-Z_]+", file.read_text(encoding="utf-8"))
    }
    table = {
        code
        for row in rows(ROOT / "docs" / "operations.md", "variable")
        for code in codes(row[0])
        if code.startswith("RIVERMOUTH_")
    }
    assert table == read


def test_app_ids_and_dead_letter_columns_are_told_as_they_are():
    ids = AppIds("<pipeline>", "<sink>")
    prefix = "rivermouth/<pipeline>/<sink>/"
    made = [ids.generation, ids.epoch, ids.rejects, ids.rejects_landed, ids.dead_letters("<table>")]
    made += [ids.table, ids.offset(Partition("T", 0)), ids.topic("T")]
    told = {
        codes(row[0])[0].replace("<topic>", "T").replace("<partition>", "0")
        for row in rows(ROOT / "docs" / "exactly-once.md", "app id `rivermouth/<pipeline>/<sink>/...`")
    }
    assert told == {app_id.removeprefix(prefix) for app_id in made}
    columns = [code for row in rows(ROOT / "docs" / "delta-sink.md", "column") for code in codes(row[0])]
    assert columns == dead_letters.SCHEMA.names


def test_log_lines_look_as_they_are_shown():
    (block,) = [b for b in blocks("text") if b.file.name == "operations.md"]
    started = SinkStarted("orders", generation=3, epoch=41, positions=4)
    progress = Progress(
        "orders",
        phase="running",
        epoch=101,
        rows_per_second=12_500,
        written=750_000,
        lag=1204,
        seconds_since_last_commit=2,
        dead_letters=3,
    )
    shown = [line.split("INFO orders: ")[1] for line in block.text.splitlines()]
    assert shown == [started.line(), progress.line()]


def test_the_ways_to_look_at_a_table_work(workplace, spark):
    (workplace / "rivermouth.yaml").write_text(starter.YAML, encoding="utf-8")
    config = load(workplace / "rivermouth.yaml", sources.models())
    run(config, once=True, only=["orders"], spark=spark)
    started = ROOT / "docs" / "getting-started.md"
    (script,) = [block for block in blocks("python") if block.file == started]
    names: dict[str, object] = {}
    exec(compile(script.text, str(script), "exec"), names)
    (query,) = blocks("sql")
    import_extension("delta")
    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        reasons = dict(connection.execute(query.text).fetchall())
    bad = names["bad"]
    assert sum(reasons.values()) == bad.num_rows > 0  # type: ignore[attr-defined]
    assert names["orders"].num_rows + bad.num_rows == 100_000  # type: ignore[attr-defined]
