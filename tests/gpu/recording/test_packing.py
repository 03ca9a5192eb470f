"""How a recording keeps vectors and sets of lanes: what was put in comes out, and takes the room that it is told to."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from gpu.base.lane_mask import LaneMask
from gpu.recording.packing import (
    GrowingArray,
    IntegerVectors,
    MaskTable,
    Numbering,
    Table,
    ValueVectors,
    compute_ranks,
    select_active,
)
from gpu.recording.tables import EVENT, EventRow

RANDOM = np.random.default_rng(8)

RUNS: dict[str, tuple[Any, int, int]] = {
    "one number": (np.int32(7), 5, 0),
    "a plain number": (7, 5, 0),
    "an array without dimensions": (np.array(7), 5, 0),
    "a single one": (np.array([9], np.int32), 1, 0),
    "a step of one": (np.arange(3, 40, dtype=np.int32), 37, 0),
    "a step down": (np.arange(50, 1, -7, dtype=np.int32), 7, 0),
    "down by one": (np.arange(9, 3, -1, dtype=np.int32), 6, 0),
    "down by 62": (np.arange(300, 3, -62, dtype=np.int32), 5, 0),
    "far down": (np.array([2**30 + 3, 3], np.int32), 2, 0),
    "all the same": (np.full(6, -4, np.int32), 6, 0),
    "two": (np.array([5, 2], np.int32), 2, 0),
    "a kink in the middle": (np.array([0, 1, 3, 3], np.int32), 4, 4),
    "another end": (np.array([0, 1, 2, 4], np.int32), 4, 4),
    "no order": (RANDOM.integers(-99, 99, 20).astype(np.int32), 20, 20),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_integers_take_no_room_and_others_their_own(name: str) -> None:
    values, count, room = RUNS[name]
    kept = IntegerVectors()
    kept.add(np.array([4, 4, 5], np.int32))
    number = kept.add(values)
    packed = kept.pack()
    assert packed.pool.size == 3 + room
    right = np.broadcast_to(values, count)
    assert packed.vector(number, count).tolist() == right.tolist()
    assert packed.vector(number, count - 1).tolist() == right[:-1].tolist()
    assert packed.vector(number, count).dtype == packed.vector_items(number, np.arange(count)).dtype == np.int64
    places = np.array([count - 1, 0])
    assert packed.vector_items(number, places).tolist() == right[places].tolist()


def test_one_number_of_each_of_many_vectors() -> None:
    kept, given = IntegerVectors(), [np.broadcast_to(values, count) for values, count, _ in RUNS.values()]
    numbers = np.array([kept.add(values) for values, *_ in RUNS.values()])
    packed = kept.pack()
    for _ in range(20):
        which = RANDOM.integers(0, len(given), 30)
        places = np.array([RANDOM.integers(given[each].size) for each in which])
        right = [int(given[each][place]) for each, place in zip(which, places, strict=True)]
        assert packed.gather_items(numbers[which], places).tolist() == right


VALUES: dict[str, tuple[Any, int, int]] = {
    "one for all": (np.float32(1.5), 4, 4),
    "a single one": (np.array([2.5]), 1, 8),
    "all the same": (np.full(9, 6, np.int16), 9, 2),
    "all NaN": (np.full(3, np.nan, np.float32), 3, 4),
    "the two zeros": (np.array([0.0, -0.0, 0.0], np.float32), 3, 12),
    "another end": (np.array([1, 1, 2], np.int64), 3, 24),
    "another in the middle": (np.array([1, 2, 1], np.uint8), 3, 3),
    "truths": (np.array([True, False]), 2, 2),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_out_bit_for_bit(name: str) -> None:
    values, count, room = VALUES[name]
    kept = ValueVectors()
    kept.add(np.arange(5, dtype=np.uint8))
    number = kept.add(values)
    packed = kept.pack()
    assert packed.pool.size == 5 + room
    assert packed.vector(number, count).dtype == np.asarray(values).dtype
    assert packed.vector(number, count).tobytes() == np.broadcast_to(values, count).tobytes()
    assert packed.vector(number, count - 1).tobytes() == np.broadcast_to(values, count)[:-1].tobytes()


def test_the_bytes_of_one_value_of_each_of_many_vectors() -> None:
    kept, given = ValueVectors(), [np.broadcast_to(values, count) for values, count, _ in VALUES.values()]
    numbers = np.array([kept.add(values) for values, *_ in VALUES.values()])
    packed = kept.pack()
    for width in (8, 11):
        which = RANDOM.integers(0, len(given), 60)
        places = np.array([RANDOM.integers(given[each].size) for each in which])
        raw = packed.gather_bytes(numbers[which], places, width)
        assert raw.shape == (60, width)
        for row, each, place in zip(raw, which, places, strict=True):
            assert row.tobytes() == given[each][place].tobytes().ljust(width, b"\0")


def test_no_values_have_no_bytes() -> None:
    none = np.zeros(0, np.int64)
    assert ValueVectors().pack().gather_bytes(none, none, 4).shape == (0, 4)
    assert ValueVectors().pack().sizes.tolist() == [1]


def make_mask(lanes: Any, of: int) -> LaneMask:
    bits = np.zeros(of, bool)
    bits[lanes] = True
    return LaneMask(bits)


@pytest.mark.parametrize(
    ("lanes", "of"),
    [
        ([3], 64),
        ([3], 33),
        ([3], 31),
        ([0, 50], 65),
        ([0, 50], 64),
        (list(range(8)), 248),
        (list(range(230, 248)), 248),
        (list(range(50)), 64),
        (list(range(37)), 37),
        ([1, 2, 300], 1 << 12),
    ],
)
def test_sets_of_lanes_take_the_shorter_of_bits_and_four_bytes_a_lane(lanes: list[int], of: int) -> None:
    kept = MaskTable()
    kept.add(make_mask([5, 6], 1000))
    number = kept.add(make_mask(lanes, of))
    packed = kept.pack()
    assert packed.pool.size == 8 + min(-(-of // 8), 4 * len(lanes))
    for _ in range(2):
        assert packed.lanes(number).tolist() == lanes
        assert packed.lanes(0).tolist() == [5, 6]


def test_a_set_of_lanes_that_comes_again_is_kept_once() -> None:
    kept, many = MaskTable(), [make_mask([lane], 400) for lane in range(400)]
    assert [kept.add(each) for each in many[:200] for _ in range(2)] == [n for n in range(200) for _ in range(2)]
    assert [kept.add(each) for each in many[:200]] == list(range(200))
    kept.clear_cache()
    assert kept.add(many[7]) == 200
    # However many come, each is found again under the numbers that it has been given.
    numbers = [kept.add(each) for each in many]
    packed = kept.pack()
    for _ in range(2):
        assert [packed.lanes(number).tolist() for number in numbers] == [[lane] for lane in range(400)]


def test_few_sets_of_lanes_are_unpacked_once_and_many_take_no_room() -> None:
    kept = MaskTable()
    numbers = [kept.add(make_mask([lane], 3000)) for lane in range(3000)]
    packed = kept.pack()
    first = packed.lanes(numbers[0])
    for number in numbers[:100]:
        packed.lanes(number)
    assert packed.lanes(numbers[0]) is first
    for number in numbers:
        packed.lanes(number)
    assert packed.lanes(numbers[0]) is not first
    assert packed.lanes(numbers[0]).tolist() == [0]


def test_the_lanes_of_many_sets_side_by_side() -> None:
    kept, sets = MaskTable(), [[4, 9, 33], [0], list(range(40))]
    numbers = np.array([kept.add(make_mask(lanes, 40)) for lanes in sets])
    which = [2, 0, 0, 1, 2]
    owner, rank, lanes = kept.pack().expand(numbers[which])
    right = [(n, at, lane) for n, each in enumerate(which) for at, lane in enumerate(sets[each])]
    assert list(zip(owner.tolist(), rank.tolist(), lanes.tolist(), strict=True)) == right
    assert [each.size for each in kept.pack().expand(np.zeros(0, np.int64))] == [0, 0, 0]


def test_ranks_count_from_zero_for_each() -> None:
    rank, owner = compute_ranks(np.array([3, 0, 1, 2]))
    assert rank.tolist() == [0, 1, 2, 0, 0, 1]
    assert owner.tolist() == [0, 0, 0, 2, 3, 3]


def test_what_grows_keeps_all_that_was_added() -> None:
    kept, right = GrowingArray(np.int16), list[int]()
    for count in [0, 1, 2, 3, 50, 0, 1, 7, 400, 1]:
        values = RANDOM.integers(-99, 99, count).astype(np.int16)
        assert kept.add(values) == len(right)
        right += values.tolist()
        assert kept.array().tolist() == right
        assert kept.size == len(right)


def test_a_table_has_rows_whose_numbers_may_change() -> None:
    table = Table(EVENT)
    rows = np.arange(3 * len(EventRow._fields)).reshape(3, -1)
    for row in rows.tolist():
        table.add(*row)
    for place, column in enumerate(EventRow._fields):
        assert [table.get(row, column) for row in range(3)] == rows[:, place].tolist()
        table.set(1, column, 100 + place)
        table.increase(2, column, 50)
        table.increase(2, column, 50)
    rows[1] = 100 + np.arange(rows.shape[1])
    rows[2] += 100
    assert len(table) == 3
    assert table.array().tolist() == [tuple(row) for row in rows.tolist()]


def test_things_are_numbered_as_they_first_come() -> None:
    numbering = Numbering[str]()
    assert [numbering.number_of(thing) for thing in ("b", "a", "b", "c", "a")] == [0, 1, 0, 2, 1]
    assert numbering.objects == ("b", "a", "c")


def test_the_part_of_a_value_that_some_lanes_have() -> None:
    values = np.arange(10, 18)
    assert select_active(values, make_mask([1, 5], 8)).tolist() == [11, 15]
    assert select_active(values, make_mask(range(8), 8)).tolist() == values.tolist()
    assert select_active(np.int32(3), make_mask([1, 5], 8)) == 3


def test_recordings_are_compared_as_themselves() -> None:
    integers, values, masks = IntegerVectors(), ValueVectors(), MaskTable()
    for vector in (np.array([1, 5, 2], np.int32), np.array([3, 1, 2], np.int32)):
        integers.add(vector)
        values.add(vector)
        masks.add(make_mask(vector, 8))
    for packed, again in (
        (integers.pack(), integers.pack()),
        (values.pack(), values.pack()),
        (masks.pack(), masks.pack()),
    ):
        assert len({packed, again, packed}) == 2


def test_a_packed_vector_cannot_be_changed() -> None:
    for packed in (IntegerVectors().pack(), ValueVectors().pack(), MaskTable().pack()):
        with pytest.raises(FrozenInstanceError):
            packed.pool = np.zeros(3)  # type: ignore[misc]
