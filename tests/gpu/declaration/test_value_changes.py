"""Changes of values: each keeps shape and type, and has the values that its name promises."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.declaration.value_changes import VALUE_CHANGES, make_negative, repeat_values

CHANGES = {each.name: each for each in VALUE_CHANGES}


@pytest.mark.parametrize("shape", [(0,), (1,), (20,), (4, 5)])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
@pytest.mark.parametrize("name", CHANGES)
def test_shape_and_type_stay(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    change, values = CHANGES[name], np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    if values.dtype.kind not in change.kinds or (dtype == "uint8" and "negative" in name):
        return
    changed = change.apply(values)
    assert (changed.shape, changed.dtype) == (shape, values.dtype)
    np.testing.assert_array_equal(values, np.arange(np.prod(shape)).reshape(shape), "the original stays")


def test_values_have_the_signs_and_order_of_their_name() -> None:
    values = np.array([3, 0, -7, 5, 5, -(2**31)], np.int32)
    assert (make_negative(values) < 0).all()
    assert CHANGES["ascending values"].apply(values).tolist() == sorted(values.tolist())
    assert CHANGES["descending values"].apply(values).tolist() == sorted(values.tolist(), reverse=True)
    mixed = CHANGES["values of both signs"].apply(np.full(9, 4, np.int32))
    assert {-4, 4} == set(mixed.tolist())
    assert set(CHANGES["equal values"].apply(values).tolist()) == {3}
    assert CHANGES["only the last value not 0"].apply(values).tolist() == [0, 0, 0, 0, 0, 9]
    assert (CHANGES["large negative values"].apply(np.ones(3, np.float32)) < -1000).all()


def test_extremes_of_a_type_occur() -> None:
    extremes = CHANGES["extremes of the type"].apply(np.zeros(100, np.uint16))
    assert {0, 2**16 - 1} <= set(extremes.tolist())


def test_an_unsigned_type_has_no_negative_values() -> None:
    with pytest.raises(InputError, match="uint8 has no negative values"):
        make_negative(np.ones(3, np.uint8))


def test_boundaries_and_their_neighbors_repeat() -> None:
    assert repeat_values(np.zeros(4, np.float32), [0.5]).tolist() == [0.5, -0.5, 1.5, 0.5]
