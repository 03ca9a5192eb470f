"""The patterns: one file each, discovered, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from gpu.errors import InputError
from gpu.pattern import Pattern


@cache
def all_patterns() -> dict[str, Pattern]:
    """Return every declared pattern by name, in the order of their files' `ORDER`."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    declared = sorted((module for module in modules if hasattr(module, "PATTERN")), key=lambda module: module.ORDER)
    return {module.PATTERN.name: module.PATTERN for module in declared}


def find_pattern(name: str) -> Pattern:
    """Return the pattern of that name, or raise InputError that lists the names."""
    patterns = all_patterns()
    if name not in patterns:
        raise InputError(f"There is no pattern {name!r}; there are {', '.join(patterns)}.")
    return patterns[name]
