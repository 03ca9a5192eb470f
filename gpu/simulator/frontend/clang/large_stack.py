"""Run clang on a thread with a large stack, since its recursive parser crashes on deeply nested code otherwise."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_BYTES = 256 << 20
"""Stack size in bytes; memory is committed only when used. Clang needs about 3 KB per nesting level."""

# Otherwise libclang parses on its own thread with a stack of 8 MB.
os.environ["LIBCLANG_NOTHREADS"] = "1"

_stack_size_lock = threading.Lock()


def run_with_large_stack(work: Callable[[], T]) -> T:
    """Call `work` on a thread with a large stack; return its result or raise its exception."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with _stack_size_lock:
        previous_size = threading.stack_size(_BYTES)
        try:
            thread.start()
        except RuntimeError:  # Python cannot allocate the stack
            raise MemoryError("Not enough memory for a thread's stack.") from None
        finally:
            threading.stack_size(previous_size)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
