"""Expressions in lesson files: what they compute, and that they reach nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.lessons.expressions import evaluate, evaluate_integer

X = np.array([3, 1, 7, 0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil(n / 64)", 2),
        ("n // 3 + 2 ** 3", 30 + 8 - 5),
        ("cumsum(x)", [3, 4, 11, 11]),
        ("cummax(x)", [3, 3, 7, 7]),
        ("unique(join(x, x))", [0, 1, 3, 7]),
        ("exclusive(x)", [0, 3, 4, 11]),
        ("x[::-1][1:3]", [7, 1]),
        ("where(x > 2, x, -x)", [3, -1, 7, 0]),
        ("flat(sums(rows(x, 3)))", [11, 0]),
        ("bincount(x, 8)", [1, 1, 0, 1, 0, 0, 0, 1]),
        ("correlate(x, [1, 10, 100])", [100 + 30, 3 + 10 + 700, 1 + 70, 7]),
        ("join(x[x > 1], zeros(2))", [3, 7, 0, 0]),
        ("n if n > 3 else 3", 75),
    ],
)
def test_what_it_is_worth(text: str, value: object) -> None:
    np.testing.assert_array_equal(evaluate(text, {"n": 75, "x": X}), value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x.__class__",
        "(lambda: 1)()",
        "[y for y in x]",
        "'a' * 3",
        "open",
        "zeros(10 ** 9)",
        "arange(1e12)",
        "m + 1",
        "n +",
        "reshape(x, 3)",
        "1 +" * 300 + "1",
        "reshape(y, 65536, 1) * y",
        "where(reshape(y, 65536, 1) > y, 1, 2)",
        "reshape(y, 65536, 1) @ reshape(y, 1, 65536)",
        "join(" + "y, " * 70 + "y)",
        "[" + "y, " * 70 + "y]",
        "bincount([1e12], 1)",
        "correlate(y, zeros(100))",
        "'\\d'",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        evaluate(text, {"n": 75, "x": X, "y": np.zeros(1 << 16)})


def test_a_size_is_whole() -> None:
    assert evaluate_integer("n / 3", {"n": 75}) == 25
    with pytest.raises(InputError, match="must be an integer"):
        evaluate_integer("n / 2", {"n": 75})
