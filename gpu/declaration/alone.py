"""What one thread does by itself, as the first rung of a ladder: the work that all others share out."""

from __future__ import annotations

from collections.abc import Callable

from gpu.declaration.pattern import HostProgram, Inputs, Params, Textbook, Variant

MOST_OPERATIONS = 2**20
"""A GPU's thread waits some hundred nanoseconds for memory at each: with more of them nobody would wait for it."""


def on_one_thread(
    run: HostProgram,
    kernel: str,
    *,
    title: str = "On one thread",
    idea: str,
    limit: str,
    work: Callable[[Inputs, Params], int],
    textbook: Callable[[Params, int], int],
    **more: Callable[..., object],
) -> Variant:
    """Return the rung of a kernel that is launched with one thread.

    Parameters
    ----------
    run, title, idea, limit
        As of a Variant.
    kernel : str
        The `__global__` function.
    work : callable
        (inputs, params) -> the operations that it does one after the other.
    textbook : callable
        (params, n) -> the same of n elements, without a run.
    more
        What else a Variant may say.
    """

    def obstacle(inputs: Inputs, params: Params) -> str:
        operations = work(inputs, params)
        if operations <= MOST_OPERATIONS:
            return ""
        return (
            f"One thread alone would do {_apart(operations)} operations, one after the other; here it does at most "
            f"{_apart(MOST_OPERATIONS)}."
        )

    return Variant(
        "one-thread",
        title,
        run=run,
        idea=idea,
        limit=limit,
        kernels=(kernel,),
        textbook=lambda params, n: Textbook.one_by_one(textbook(params, n)),
        obstacle=obstacle,
        threads=lambda params: 1,
        alone=True,
        **more,  # type: ignore[arg-type]
    )


def _apart(number: int) -> str:
    return f"{number:,}".replace(",", "\u2009")
