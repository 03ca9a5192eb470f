"""TOML parser with error positions, and formatting of TOML values for messages."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from gpu.files.file_access import format_path

_POSITION = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)$")


class TomlError(Exception):
    """Syntax error in a TOML text.

    Parameters
    ----------
    reason : str
        Without position and final period.
    line : int
        Line number, from 1.
    """

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def parse(text: str) -> dict[str, Any]:
    """Parse a TOML text; raise TomlError if it is invalid or nested too deep."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("it is nested too deep", 1) from None
    except ValueError as error:  # includes errors about numbers with thousands of digits
        match = _POSITION.search(str(error))
        line = 1 if match is None else int(match[1] or text.rstrip("\n").count("\n") + 1)
        raise TomlError(format_path(_POSITION.sub("", str(error)).strip()), line) from None


def format_value(value: object) -> str:
    """Format a value for a message, shortened if necessary."""
    try:
        return format_path(repr(value))
    except (ValueError, RecursionError):  # for example, a number with thousands of digits
        return "a value that is too long"
