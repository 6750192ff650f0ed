"""The sources, found by their files: a module here with a `Source` subclass is a connector."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from rivermouth.config.model import Model
from rivermouth.sources.base import Source


@cache
def connectors() -> dict[str, type[Source]]:
    """Every source by its connector name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return {source.connector: source for source in sorted(Source.__subclasses__(), key=lambda s: s.connector)}


def models() -> dict[str, type[Model]]:
    """The config model of every connector, for `config.load`."""
    return {name: source.config_model for name, source in connectors().items()}
