"""Discovery of the patterns: each is a module here, or a folder with a `pattern.py` that declares it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from gpu.base.errors import InputError
from gpu.declaration.pattern import Pattern


@cache
def all_patterns() -> dict[str, Pattern]:
    """Return all patterns by name, in their order."""
    modules = [
        f"{__name__}.{entry.name}{'.pattern' if entry.ispkg else ''}" for entry in pkgutil.iter_modules(__path__)
    ]
    declared: list[Pattern] = [importlib.import_module(name).PATTERN for name in modules]
    return {pattern.name: pattern for pattern in sorted(declared, key=lambda pattern: pattern.order)}


def pattern_with_lesson(lesson: str) -> Pattern:
    """Return the pattern that declares a lesson."""
    return next(pattern for pattern in all_patterns().values() if lesson in pattern.lessons)


def find_pattern(name: str) -> Pattern:
    """Return the pattern of that name; raise InputError with all names if there is none."""
    patterns = all_patterns()
    if name not in patterns:
        raise InputError(f"There is no pattern {name!r}; there are {', '.join(patterns)}.")
    return patterns[name]
