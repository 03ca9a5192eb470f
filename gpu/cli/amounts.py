"""Numbers, times and sizes as the command line gives them."""

from __future__ import annotations

import argparse
import math

MOST_DIGITS = 100
_LONGEST = 1_000_000
_LARGEST = 1 << 20


def whole(text: str) -> int:
    """Return a whole number that is not negative."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number" + " that can be" * text.isdigit())
    return int(text)


def seconds(text: str) -> float:
    """Return a time."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: it is in seconds, at most {_LONGEST}")
    return given


def megabytes(text: str) -> int:
    """Return a size in bytes that is given in MB."""
    given = whole(text)
    if not 0 < given <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: it is in MB, from 1 to {_LARGEST}")
    return given << 20
