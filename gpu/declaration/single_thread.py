"""Single-thread variants, the first of a ladder: one thread does the work that other variants divide among threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu.declaration.pattern import HostProgram, Inputs, Params, Textbook, Variant

MAX_OPERATIONS = 2**20
"""A single GPU thread waits some hundred nanoseconds for memory per operation: more operations would take too long."""


def single_thread_variant(
    run: HostProgram,
    kernel: str,
    *,
    work: Callable[[Inputs, Params], int],
    textbook: Callable[[Params, int], int],
    max_default_size: int,
    **variant_fields: Any,
) -> Variant:
    """Return the variant of a kernel that is launched with one thread.

    Parameters
    ----------
    run : callable
        As in Variant.
    kernel : str
        The `__global__` function.
    work : callable
        (inputs, params) -> number of operations that the thread executes one after the other.
    textbook : callable
        (params, n) -> expected number of operations for n elements.
    max_default_size : int
        As in Variant: with this size, the thread executes at most `MAX_OPERATIONS` operations.
    variant_fields
        Other fields of the Variant; the title is "On one thread" unless it is given.
    """

    def obstacle(inputs: Inputs, params: Params) -> str:
        operations = work(inputs, params)
        if operations <= MAX_OPERATIONS:
            return ""
        return (
            f"One thread would execute {_format_thousands(operations)} operations one after the other; the limit is "
            f"{_format_thousands(MAX_OPERATIONS)}."
        )

    return Variant(
        "one-thread",
        run=run,
        kernels=(kernel,),
        textbook=lambda params, n: Textbook.sequential(textbook(params, n)),
        obstacle=obstacle,
        threads=lambda params: 1,
        is_single_thread=True,
        max_default_size=max_default_size,
        **{"title": "On one thread"} | variant_fields,
    )


def _format_thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")
