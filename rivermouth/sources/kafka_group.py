"""Tells Kafka how far a table has come, as the offsets of a consumer group, for those who watch its lag.

Nobody reads them back: the table alone knows. So they may lag behind, and failing to set them stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rivermouth.errors import RivermouthError
from rivermouth.records import Offsets
from rivermouth.sources.kafka_admin import Admin

# To tell a thousand partitions takes long: it is done so seldom that it takes a tenth of the time at most.
_SECONDS, _SHARE = 1.0, 10


class GroupOffsets:
    """The offsets of one consumer group, told now and then and at the end."""

    def __init__(self, admin: Admin, group: str, warn: Callable[[str, str], None]) -> None:
        self._admin = admin
        self._group = group
        self._warn = warn
        self._warned = False
        self._told: Offsets = {}
        self._wanted: Offsets = {}
        self._future: Any = None
        self._next = 0.0

    def tell(self, offsets: Offsets) -> None:
        """Take these offsets, and hand them on if it is time."""
        self._wanted = dict(offsets)
        if time.monotonic() >= self._next:
            self._hand_on()

    def close(self) -> None:
        """Hand on what was not handed on yet, and wait a moment for the answer."""
        self._hand_on()
        self._settle()

    def _hand_on(self) -> None:
        new = {p: o for p, o in self._wanted.items() if self._told.get(p) != o}
        if not new:
            return
        began = time.monotonic()
        self._settle()
        try:
            self._future = self._admin.commit_group(self._group, new)
            self._told.update(new)
        except RivermouthError as error:
            self._complain(error.message)
        ended = time.monotonic()
        self._next = ended + max(_SECONDS, _SHARE * (ended - began))

    def _settle(self) -> None:
        if self._future is not None:
            future, self._future = self._future, None
            if why := self._admin.settle(future):
                self._told.clear()  # to be told again
                self._complain(why)

    def _complain(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(
                "GroupOffsetsNotCommitted",
                f"the offsets of consumer group {self._group!r} could not be set, so lag monitors do not see "
                f"this sink: {why}; the table is not affected",
            )
