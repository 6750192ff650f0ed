"""What an operator does by hand: offsets set, ranges and dead letters sent again; once, whatever fails."""

from __future__ import annotations

import json
import os

import pytest
from deltalake import DeltaTable

from rivermouth import faults
from rivermouth.delta.history import overlap
from rivermouth.delta.progress import AppIds
from rivermouth.errors import ConfigError, Fenced, ReplayPending, SourceInvalid
from rivermouth.pipeline import replay, reset
from rivermouth.pipeline import replay_letters as letters
from rivermouth.records import Partition
from rivermouth.spark.engine import JvmOnly

ALL = Partition("numbers", 0)
SINK = {"schema": "n BIGINT NOT NULL", "batch_size": 100, "max_batch_size": 100}


def source(count, broken=0.1):
    return {"connector": "generator", "config": {"topics": ["numbers"], "count": count, "broken": broken}}


def never():
    return False


def ignore(position):
    pass


def table(lake, name="t"):
    return DeltaTable(str(lake.folder / name))


def counts(lake):
    return lake.query("SELECT count(n), count(DISTINCT n) FROM {t}")[0]


class TestReset:
    def test_the_next_start_obeys_it(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        lake.run(source(300, 0), {"t": SINK})
        sink = opened(config, engine=JvmOnly())
        moves = reset.moves(sink, {"numbers": {0: 100}})
        assert [str(move) for move in moves] == ["numbers/0: 300 -> 100, reads 200 again"]
        reset.reset(sink, moves)
        lake.run(source(350, 0), {"t": SINK})
        assert counts(lake) == (550, 350)

    def test_a_running_owner_stops_instead_of_undoing_it(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        owner = opened(config)
        owner.claim()
        owner.run_epoch({ALL: 50})
        sink = opened(config, engine=JvmOnly())
        reset.reset(sink, reset.moves(sink, "latest"))
        with pytest.raises(Fenced, match=sink.identity.instance):
            owner.run_epoch({ALL: 100})
        successor = opened(config)
        successor.claim()
        assert successor.position == {ALL: 300}

    def test_a_place_that_is_not_there_is_told_and_nothing_changes(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        sink = opened(config, engine=JvmOnly())
        version = sink.table.version
        with pytest.raises(SourceInvalid, match="numbers/0 has 0 to 300, not 301; there is no numbers/7"):
            reset.moves(sink, {"numbers": {0: 301, 7: 0}})
        assert table(lake).version() == version


class TestReplay:
    def test_a_range_lands_once_more_and_the_owner_is_not_disturbed(self, lake, opened):
        config = lake.config(source(500, 0), {"t": SINK})
        owner = opened(config)
        owner.claim()
        for end in (100, 200, 300):
            owner.run_epoch({ALL: end})
        table(lake).delete("n >= 100 AND n < 250")
        sink = opened(config, part=replay.PART)
        wanted = replay.find_range(sink, {"numbers": {0: 100}}, {"numbers": {0: 250}})
        replay.begin(sink, wanted)
        assert replay.run(sink, wanted, never, ignore)
        owner.run_epoch({ALL: 500})
        assert counts(lake) == (500, 500)

    def test_what_would_be_doubled_is_told_first(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        lake.run(source(300, 0), {"t": SINK})
        table(lake).delete("n >= 100 AND n < 200")
        sink = opened(config, part=replay.PART)
        parts = [AppIds("test", "t"), sink.ids]
        wanted = replay.find_range(sink, {"numbers": {0: 50}}, None)
        found = overlap(sink.table, parts, wanted.start, wanted.end)
        assert (found.epochs, found.rows, found.still_there, found.complete) == (3, 300, 200, True)
        assert "would be doubled" in str(found)

    def test_one_that_was_broken_off_goes_on_where_it_was(self, lake, opened, monkeypatch):
        config = lake.config(source(400, 0.1), {"t": SINK})
        lake.run(source(400, 0.1), {"t": SINK})
        rows, dead = counts(lake)[0], lake.query("SELECT count(*) FROM {t_dead_letters}")[0][0]
        table(lake).delete()
        table(lake, "t_dead_letters").delete()
        first = opened(config, part=replay.PART)
        wanted = replay.find_range(first, "earliest", None)
        replay.begin(first, wanted)
        monkeypatch.setenv(faults.VARIABLE, "before-dead-letters=fail@1")
        faults._counts.clear()
        with pytest.raises(faults.Fault):
            replay.run(first, wanted, never, ignore)
        second = opened(config, part=replay.PART)
        replay.begin(second, wanted)
        assert second.position == {ALL: 100}
        assert replay.run(second, wanted, never, ignore)
        assert counts(lake) == (rows, rows)
        told = lake.query('SELECT count(*), count(DISTINCT "offset"), max(epoch) FROM {t_dead_letters}')
        assert told == [(dead, dead, -1)]

    def test_two_at_once_are_one(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        lake.run(source(300, 0), {"t": SINK})
        table(lake).delete()
        first, second = opened(config, part=replay.PART), opened(config, part=replay.PART)
        wanted = replay.find_range(first, "earliest", None)
        replay.begin(first, wanted)
        second.table.refresh()
        replay.begin(second, wanted)
        with pytest.raises(Fenced):
            replay.run(first, wanted, never, ignore)
        assert replay.run(second, wanted, never, ignore)
        assert counts(lake) == (300, 300)

    def test_the_same_again_and_another_one_in_between_are_asked_for(self, lake, opened):
        config = lake.config(source(300, 0), {"t": SINK})
        lake.run(source(300, 0), {"t": SINK})
        sink = opened(config, part=replay.PART)
        whole = replay.find_range(sink, "earliest", None)
        part = replay.find_range(sink, {"numbers": {0: 10}}, {"numbers": {0: 20}})
        replay.begin(sink, whole)
        with pytest.raises(ReplayPending, match="unfinished"):
            replay.begin(sink, part)
        replay.begin(sink, part, abandon=True)
        assert replay.run(sink, part, never, ignore)
        with pytest.raises(ReplayPending, match="--again"):
            replay.begin(sink, part)
        replay.begin(sink, part, again=True)
        assert sink.position == {ALL: 10}

    def test_it_goes_no_further_than_the_sink(self, lake, opened):
        lake.run(source(100, 0), {"t": SINK})
        sink = opened(lake.config(source(300, 0), {"t": SINK}), part=replay.PART)
        assert replay.find_range(sink, "earliest", "latest").end == {ALL: 100}
        with pytest.raises(SourceInvalid, match="which has read numbers/0 to 100"):
            replay.find_range(sink, "earliest", {"numbers": {0: 200}})

    def test_a_table_that_each_epoch_replaces_is_refused(self, lake, opened):
        config = lake.config(source(300, 0), {"t": {"schema": "n BIGINT", "write_mode": "overwrite"}})
        sink = opened(config, part=replay.PART)
        with pytest.raises(ConfigError, match="overwrite"):
            replay.find_range(sink, "earliest", None)


def again_topic(config):
    return config.sources["source"].config.topics[0]


class TestDeadLetters:
    """Records that are bad by the schema of yesterday: 1 of 4 has no m, which was required."""

    def fill(self, lake, kafka):
        topic = kafka.create_topic()
        kafka.produce(
            topic, [json.dumps({"n": n} if n % 4 == 0 else {"n": n, "m": 1}).encode() for n in range(100)]
        )
        kafka.produce(topic, [b"{broken"])
        described = {
            "connector": "kafka",
            "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
        }
        lake.run(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT NOT NULL"}})
        assert counts(lake) == (75, 75)
        # The schema of today: the table follows, as an operator would let it.
        lake.spark.sql(f"ALTER TABLE delta.`{lake.folder / 't'}` ALTER COLUMN m DROP NOT NULL")
        return lake.config(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT"}})

    MARKED = "SELECT count(replayed), count(*) FROM {t_dead_letters}"

    def test_what_can_now_be_decoded_lands_and_is_marked(self, lake, kafka, opened):
        config = self.fill(lake, kafka)
        result = letters.replay(opened(config, part=letters.PART))
        assert (result.read, result.written, result.rejected) == (26, 25, {"InvalidJson": 1})
        assert counts(lake) == (100, 100)
        assert lake.query(self.MARKED) == [(25, 26)]
        result = letters.replay(opened(config, part=letters.PART))
        assert (result.read, result.written) == (1, 0)
        assert counts(lake) == (100, 100)

    def test_a_record_that_a_replay_has_landed_meanwhile_is_left_alone(self, lake, kafka, opened):
        """The letter is from before: the second reading made an event of its record."""
        config = self.fill(lake, kafka)
        again = opened(config, part=replay.PART)
        wanted = replay.find_range(again, {again_topic(config): {0: 0}}, {again_topic(config): {0: 50}})
        table(lake).delete("n < 50")
        replay.begin(again, wanted)
        assert replay.run(again, wanted, never, ignore)
        result = letters.replay(opened(config, part=letters.PART))
        assert (result.read, result.written) == (13, 12)  # of the second half, and the broken one
        assert counts(lake) == (100, 100)

    def test_a_record_that_was_read_again_after_a_reset_is_left_alone(self, lake, kafka, opened):
        config = self.fill(lake, kafka)
        owner = opened(config)
        reset.reset(owner, reset.moves(owner, "earliest"))
        table(lake).delete()
        owner = opened(config)
        owner.claim()
        owner.run_epoch(owner.look())
        assert counts(lake) == (100, 100)  # with the wider schema they land by themselves
        result = letters.replay(opened(config, part=letters.PART))
        assert (result.read, result.written) == (1, 0)
        assert counts(lake) == (100, 100)

    def test_letters_of_a_topic_from_before_it_was_created_again_are_its_own(self, lake, kafka, opened):
        """The new topic has the same offsets, and other records."""
        config = self.fill(lake, kafka)
        topic = again_topic(config)
        kafka.delete_topic(topic)
        kafka.create_named_topic(topic)
        kafka.produce(topic, [b'{"n": %d, "m": 1}' % n for n in range(1000, 1050)])
        sink = opened(config)
        reset.reset(sink, reset.moves(sink, "earliest"))
        owner = opened(config)
        owner.claim()
        owner.run_epoch(owner.look())
        assert letters.replay(opened(config, part=letters.PART)).written == 25
        assert counts(lake) == (150, 150)

    def test_a_repaired_value_lands(self, lake, kafka, opened):
        config = self.fill(lake, kafka)
        table(lake, "t_dead_letters").update(
            updates={"value": "arrow_cast('{\"n\": 1000}', 'Binary')"}, predicate="reason = 'InvalidJson'"
        )
        letters.replay(opened(config, part=letters.PART), "reason = 'InvalidJson'")
        assert lake.query("SELECT n FROM {t} WHERE n >= 100") == [(1000,)]
        assert lake.query(self.MARKED) == [(1, 26)]

    def test_one_set_aside_twice_lands_once_and_both_are_marked(self, lake, kafka, opened):
        config = self.fill(lake, kafka)
        letters_table = table(lake, "t_dead_letters")
        from deltalake import write_deltalake

        write_deltalake(letters_table, letters_table.to_pyarrow_table(), mode="append")
        letters.replay(opened(config, part=letters.PART))
        assert counts(lake) == (100, 100)
        assert lake.query(self.MARKED) == [(50, 52)]

    def test_a_crash_between_the_events_and_the_marks(self, lake, kafka, opened, monkeypatch):
        config = self.fill(lake, kafka)
        monkeypatch.setenv(faults.VARIABLE, "before-dead-letters=fail@1")
        faults._counts.clear()
        with pytest.raises(faults.Fault):
            letters.replay(opened(config, part=letters.PART))
        assert lake.query(self.MARKED) == [(0, 26)]
        result = letters.replay(opened(config, part=letters.PART))
        assert result.read == 1
        assert counts(lake) == (100, 100)
        assert lake.query(self.MARKED) == [(25, 26)]

    def test_two_at_once_are_one(self, lake, kafka, opened, monkeypatch):
        config = self.fill(lake, kafka)
        first, second = opened(config, part=letters.PART), opened(config, part=letters.PART)
        real = letters.execute

        def overtaken(*arguments, **more):
            monkeypatch.setattr(letters, "execute", real)
            second.table.refresh()
            letters.replay(second)
            return real(*arguments, **more)

        monkeypatch.setattr(letters, "execute", overtaken)
        with pytest.raises(Fenced):
            letters.replay(first)
        assert counts(lake) == (100, 100)
        assert lake.query(self.MARKED) == [(25, 26)]

    def test_the_same_line_of_two_files_of_one_moment_is_two_records(self, lake, opened, tmp_path):
        """As `cp -p` and `tar` leave them: only the name of the file tells them apart."""
        inbox = tmp_path / "inbox"
        inbox.mkdir()
        for name in "ab":
            (inbox / name).write_text('{"n": 7}\n')
            os.utime(inbox / name, (1_700_000_000, 1_700_000_000))
        described = {"connector": "files", "config": {"path": str(inbox)}}
        lake.run(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT NOT NULL"}})
        lake.spark.sql(f"ALTER TABLE delta.`{lake.folder / 't'}` ALTER COLUMN m DROP NOT NULL")
        config = lake.config(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT"}})
        letters.replay(opened(config, part=letters.PART))
        assert counts(lake) == (2, 1)
        assert lake.query(self.MARKED) == [(2, 2)]
