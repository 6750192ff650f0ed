"""The sources, found by their files: a module here with a `Source` subclass is a connector."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeGuard

from rivermouth.config.model import Model
from rivermouth.sources.base import Source


@cache
def connectors() -> dict[str, type[Source]]:
    """Every source by its connector name."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    ]
    found = [kind for module in modules for kind in vars(module).values() if _is_source(kind)]
    return {source.connector: source for source in sorted(found, key=lambda s: s.connector)}


def _is_source(kind: object) -> TypeGuard[type[Source]]:
    return isinstance(kind, type) and issubclass(kind, Source) and hasattr(kind, "connector")


def models() -> dict[str, type[Model]]:
    """The config model of every connector, for `config.load`."""
    return {name: source.config_model for name, source in connectors().items()}
