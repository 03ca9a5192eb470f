"""What attacks have in common: bytes that were changed, and what may come of reading them."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpu.base.errors import InputError

LONGEST_SENTENCE = 2500
"""Characters: two, with two names of 300 each and what a library says."""

ODD_VALUES: tuple[Any, ...] = (
    0, 1, -1, 3, 33, 2**31, 2**63, 10**40, 10**400, 0.0, -0.5, 1.5, 1e-320, 1e308, math.inf, -math.inf, math.nan,
    True, False, "", " ", "n", "a", "x" * 3000, "a\nb", "\x1b[2J", "\u202e", "/dev/zero", "..", "../x.cu", "-1",
    "1 / 0", "9 ** 9 ** 9", [], {}, [[]], [1, 2], ["n"], {"n": 1}, {"value": {}, "source": []}, [None], [{}],
    [1.5] * 40,
)  # fmt: skip
"""What may stand in the place of a value that somebody wrote with care."""


def mutate_bytes(random: np.random.Generator, whole: bytes, *, head: int = 400) -> bytes:
    """Return bytes with a few changed, most of them in the head, cut off, doubled, moved or put in."""
    data = bytearray(whole)
    for _ in range(int(random.integers(1, 5))):
        size = len(data)
        if not size:
            break
        place = int(random.integers(min(size, head) if random.random() < 0.7 else size))
        length = int(random.integers(1, 64))
        match int(random.integers(8)):
            case 0:
                data[place] ^= 1 << int(random.integers(8))
            case 1:
                data[place] = int(random.integers(256))
            case 2:
                data[place : place + 4] = bytes(random.choice([0, 1, 127, 128, 255], 4).astype(np.uint8))
            case 3:
                del data[place:]
            case 4:
                del data[place : place + length]
            case 5:
                data[place:place] = data[place : place + length] * int(random.integers(1, 20))
            case 6:
                data[place:place] = random.bytes(length)
            case _:
                there = int(random.integers(size))
                data[place : place + length] = data[there : there + length]
    return bytes(data)


def read_or_none(read: Callable[[], Any]) -> Any:
    """Return what is read; None where one sentence of one line says why that cannot be."""
    try:
        return read()
    except InputError as error:
        message = error.message
    assert message.endswith((".", "?", "…")), f"not a sentence: {message!r}"
    assert "\n" not in message, f"more than a line: {message!r}"
    assert len(message) < LONGEST_SENTENCE, f"{len(message)} characters"
    return None


def mutate_values(random: np.random.Generator, whole: Any, values: Sequence[Any]) -> Any:
    """Return what JSON or TOML holds with one or two of its values exchanged, left out, doubled or renamed."""
    made = copy.deepcopy(whole)
    for _ in range(int(random.integers(1, 3))):
        places = list(_iterate_values(made))
        if not places:
            return made
        holder, key = places[int(random.integers(len(places)))]
        chance = random.random()
        if chance < 0.15:
            del holder[key]
        elif chance < 0.25 and isinstance(holder, dict):
            holder[("", "name", "x" * 500, "a b", "é", "kernel")[int(random.integers(6))]] = holder.pop(key)
        elif chance < 0.35:
            holder[key] = [copy.deepcopy(holder[key])] * 2
        else:
            holder[key] = copy.deepcopy(values[int(random.integers(len(values)))])
    return made


def _iterate_values(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _iterate_values(value[key])


def format_toml(whole: dict[str, Any]) -> str:
    """Return tables as TOML, those within them on one line; what TOML has no word for is left out."""
    return "".join(f"{_quote(name)} = {_format_value(value)}\n" for name, value in whole.items() if value is not None)


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_quote(name)} = {_format_value(each)}" for name, each in value.items() if each is not None)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_format_value(each) for each in value if each is not None)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quote(value) if isinstance(value, str) else repr(value)


def _quote(text: str) -> str:
    return json.dumps(text)
