"""Large random arrays are the same on any number of cores, and small ones those of the generator itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gpu.declaration import random_values
from gpu.declaration.arrays import make_values
from gpu.declaration.matrices import make_matrix

PARTS = random_values.PART_ELEMENTS


def draw(generator: np.random.Generator, n: int) -> npt.NDArray[np.float32]:
    return generator.random(n, np.float32)


@pytest.mark.parametrize("n", [0, 1, 1000, PARTS])
def test_few_values_are_the_generators(n: int) -> None:
    values = random_values.draw_values(np.random.default_rng(7), n, draw)
    np.testing.assert_array_equal(values, np.random.default_rng(7).random(n, np.float32))


@pytest.mark.parametrize("n", [PARTS + 1, 2 * PARTS, 2 * PARTS + 77])
def test_values_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    made = []
    for cores in (1, 5):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        made.append(random_values.draw_values(np.random.default_rng(7), n, draw))
    np.testing.assert_array_equal(made[0], made[1])
    assert made[0].shape == (n,)
    assert made[0].dtype == np.float32
    again = random_values.draw_values(np.random.default_rng(8), n, draw)
    assert (again != made[0]).mean() > 0.99
    # No part repeats another one.
    assert np.unique(made[0]).size > 0.9 * n


@pytest.mark.parametrize("kind", ["random", "signed"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("operator", ["sum", "product", "min"])
def test_all_parts_of_large_arrays_have_the_same_range(kind: str, dtype: str, operator: str) -> None:
    values = make_values(kind, 2 * PARTS + 3, dtype, 5, operator=operator).astype(np.float64)
    assert (values.min() < 0) == (kind == "signed" or (dtype, operator) == ("int32", "min"))
    parts = [values[:PARTS], values[PARTS : 2 * PARTS]]
    for extreme in (np.min, np.max):
        assert [extreme(part) for part in parts] == pytest.approx([extreme(values)] * 2, abs=0.1 * np.ptp(values))


def test_a_large_matrix_of_digits_has_all_digits_in_each_part() -> None:
    matrix = make_matrix("digits", 3, PARTS, np.random.default_rng(1))
    for row in matrix:
        assert np.unique(row).tolist() == list(range(10))
