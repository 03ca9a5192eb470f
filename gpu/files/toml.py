"""TOML that somebody wrote, and what is said of its values."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from gpu.files.opening import name_of

_AT = re.compile(r"\(at line (\d+), column \d+\)$")


class TomlError(Exception):
    """A text that is no TOML.

    Parameters
    ----------
    reason : str
        Without the place, and without a full stop.
    line : int
        From 1.
    """

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def parse(text: str) -> dict[str, Any]:
    """Return what a text in TOML holds; TomlError where it is none, or nothing that can be held."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("it is nested too deep", 1) from None
    except ValueError as error:  # beside its own errors those of numbers with thousands of digits
        found = _AT.search(str(error))
        raise TomlError(name_of(_AT.sub("", str(error)).strip()), int(found[1]) if found else 1) from None


def shown(value: object) -> str:
    """Return a value as a sentence can hold it, however long it is."""
    try:
        return name_of(repr(value))
    except (ValueError, RecursionError):  # a number of thousands of digits
        return "a value that is too long"
