"""Where a sink's files go: what an epoch's task writes, and the gap rows that the driver writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rivermouth.config.model import DeltaLakeConfig
from rivermouth.delta import dead_letters
from rivermouth.delta.files import FileSpec
from rivermouth.delta.progress import AppIds
from rivermouth.delta.statistics import indexed_columns
from rivermouth.pipeline.decide import Loss
from rivermouth.pipeline.task import FilePlan, Task


@dataclass(frozen=True)
class Outputs:
    """The files of one sink."""

    settings: DeltaLakeConfig
    ids: AppIds
    schema: pa.Schema
    table_uri: str
    dead_letter_uri: str

    def task(self, epoch: int, table_configuration: Mapping[str, str]) -> Task:
        """The work of an epoch, as it travels to the workers."""
        s = self.settings
        columns, indexed = tuple(s.partition_columns), indexed_columns(table_configuration)
        events = FilePlan(self.table_uri, self.schema, columns, s.compression, self._target_size, indexed)
        keep = self._dead_letters() if s.on_bad_record == "dead_letter" else None
        # The dead letters of a replay belong to no epoch of the sink itself: they count downwards.
        owner = -epoch if self.ids.part else epoch
        names = (self.ids.pipeline, self.ids.sink)
        return Task(s.schema_type, s.event_schema, events, keep, *names, owner, dead_letters.today())

    def write_gaps(self, epoch: int, losses: list[Loss]) -> list[FileSpec]:
        """Write the gap rows that tell of losses."""
        told = [(loss.partition, loss.first, str(loss)) for loss in losses]
        writer = self._dead_letters().writer("gaps")
        writer.write(dead_letters.gaps(told, self.ids.pipeline, self.ids.sink, epoch))
        return writer.close()

    def _dead_letters(self) -> FilePlan:
        schema, columns = dead_letters.SCHEMA, dead_letters.PARTITION_COLUMNS
        return FilePlan(self.dead_letter_uri, schema, columns, self.settings.compression, self._target_size)

    @property
    def _target_size(self) -> int:
        return self.settings.target_file_size_mb * 1024 * 1024
