"""Tells the time spent in parts of the product, from outside: the product has no clock for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

Times = dict[str, float]


class Stopwatch:
    """Adds up seconds by the path of the calls that were watched: `run_epoch/commit/checkpoint`."""

    def __init__(self) -> None:
        self._spent: Times = {}
        self._path = ""

    @contextmanager
    def on(self, *places: tuple[Any, str]) -> Iterator[None]:
        """Watch these functions, each an attribute of an object or module, while the block runs."""
        with ExitStack() as stack:
            for owner, name in places:
                stack.enter_context(replaced(owner, name, self._watched(name, getattr(owner, name))))
            yield

    def take(self) -> Times:
        """The seconds so far; it begins anew."""
        spent, self._spent = self._spent, {}
        return spent

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            outer, self._path = self._path, f"{self._path}/{name}" if self._path else name
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self._spent[self._path] = self._spent.get(self._path, 0.0) + time.perf_counter() - began
                self._path = outer

        return watched


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Put another value in the place of an attribute while the block runs."""
    own, before = name in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
