"""Argument types for whole numbers, times and sizes on the command line."""

from __future__ import annotations

import argparse
import math

MAX_DIGITS = 100
_MAX_SECONDS = 1_000_000
_MAX_MEGABYTES = 1 << 20


def parse_whole_number(text: str) -> int:
    """Parse a non-negative whole number."""
    if not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number" + " in range" * text.isdigit())
    return int(text)


def parse_count(text: str) -> int:
    """Parse a whole number of at least 1."""
    value = parse_whole_number(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def parse_seconds(text: str) -> float:
    """Parse a time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds above 0, at most {_MAX_SECONDS}")
    return value


def parse_megabytes(text: str) -> int:
    """Parse a size in MB; return bytes."""
    value = parse_whole_number(text)
    if not 0 < value <= _MAX_MEGABYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in MB from 1 to {_MAX_MEGABYTES}")
    return value << 20
