"""Argument types for whole numbers, times and sizes on the command line."""

from __future__ import annotations

import argparse
import math

MOST_DIGITS = 100
_LONGEST = 1_000_000
_LARGEST = 1 << 20


def whole(text: str) -> int:
    """Parse a non-negative whole number."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number" + " in range" * text.isdigit())
    return int(text)


def seconds(text: str) -> float:
    """Parse a time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds above 0, at most {_LONGEST}")
    return value


def megabytes(text: str) -> int:
    """Parse a size in MB; return bytes."""
    value = whole(text)
    if not 0 < value <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in MB from 1 to {_LARGEST}")
    return value << 20
