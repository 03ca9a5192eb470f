"""A larger stack for clang, which calls itself for each level of a text, and dies where its stack ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_BYTES = 256 << 20
"""Addresses, of which memory is taken as they are used: clang takes 3 KB for a level."""

# Otherwise libclang works on a thread of its own, whose stack has 8 MB.
os.environ["LIBCLANG_NOTHREADS"] = "1"

_one_size = threading.Lock()


def with_room(work: Callable[[], T]) -> T:
    """Return what `work` does, called on a thread that has a large stack; raise what it raises."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with _one_size:
        before = threading.stack_size(_BYTES)
        try:
            thread.start()
        except RuntimeError:  # which Python says where there is no room for the stack
            raise MemoryError("There is no memory for a thread's stack.") from None
        finally:
            threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
