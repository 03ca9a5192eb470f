"""What attacks have in common: bytes that were changed, and what may come of reading them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.errors import InputError

LONGEST_SENTENCE = 2500
"""Characters: two, with two names of 300 each and what a library says."""


def mutated(random: np.random.Generator, whole: bytes, *, head: int = 400) -> bytes:
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


def answer(read: Callable[[], Any]) -> Any:
    """Return what is read; None where one sentence of one line says why that cannot be."""
    try:
        return read()
    except InputError as error:
        message = error.message
    assert message.endswith((".", "?", "…")), f"not a sentence: {message!r}"
    assert "\n" not in message, f"more than a line: {message!r}"
    assert len(message) < LONGEST_SENTENCE, f"{len(message)} characters"
    return None
