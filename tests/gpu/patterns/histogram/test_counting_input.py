"""Histograms of texts and of numbers, on every engine against Python's and NumPy's counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.engines.base import Argument, Engine, Extent, Kernel
from gpu.engines.null import NullEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload
from tests.tiers import spread

PATTERN = find_pattern("histogram")
CORRECT = [variant.name for variant in PATTERN.variants if not variant.deliberate_error]


def run(engine: Engine, variant: str, inputs: dict[str, Any] | None = None, **params: Any) -> Outcome:
    return run_pattern(engine, Workload(PATTERN, PATTERN.variant(variant), inputs or {}, params), lambda progress: None)


def letters_of(text: str, letters: int) -> list[int]:
    bins = -(-26 // letters)
    found = Counter("abcdefghijklmnopqrstuvwxyz".find(character) for character in text.lower() if character.isascii())
    counts = [sum(found[place] for place in range(k * letters, (k + 1) * letters)) for k in range(bins)]
    return [*counts, len(text) - sum(counts)]


@pytest.mark.parametrize(("variant", "letters"), spread(CORRECT, (1, 4, 5, 26)))
def test_letters(engine: Engine, variant: str, letters: int) -> None:
    every = "".join(map(chr, range(256)))
    for text in ("Programming Massively Parallel Processors", "@AZ[`az{", every * 3, "zzz\n" * 700, "ä€x", "?"):
        outcome = run(engine, variant, of="letters", text=text, letters=letters)
        assert outcome.outputs["counts"].tolist() == [letters_of(text, letters)]
        assert outcome.report.verified
    assert len(PATTERN.value_names(PATTERN.check({"of": "letters", "letters": letters}))) == -(-26 // letters) + 1


@pytest.mark.parametrize("variant", CORRECT)
def test_ranges_with_chosen_edges(engine: Engine, variant: str) -> None:
    rng = np.random.default_rng(2)
    edges = (-2.5, -1, 0, 0.1, 3)
    values = np.concatenate([rng.normal(0, 2, 3001), edges, [np.nan, np.inf, -np.inf, -2.5000002, 3.0000005]])
    values = values.astype(np.float32)
    outcome = run(engine, variant, {"values": values}, of="ranges", edges=edges)
    with np.errstate(invalid="ignore"):
        due = np.histogram(values.astype(np.float64), np.array(edges, np.float32).astype(np.float64))[0]
    assert outcome.outputs["counts"].tolist() == [[*due, values.size - due.sum()]]
    assert outcome.report.verified


@pytest.mark.parametrize("variant", CORRECT)
def test_one_range_and_many(engine: Engine, variant: str) -> None:
    for edges in ((0, 1), tuple(range(-500, 525))):
        outcome = run(engine, variant, of="ranges", edges=edges, numbers="uniform", n=333)
        assert outcome.report.verified
        assert outcome.outputs["counts"].sum() == 333


@pytest.mark.parametrize(("variant", "dtype"), spread(CORRECT, ("uint8", "uint16", "uint32", "float32")))
def test_equal_ranges_of_all_that_a_type_holds(engine: Engine, variant: str, dtype: str) -> None:
    whole = dtype != "float32"
    end = 2.0 ** (8 * np.dtype(dtype).itemsize) if whole else 1.0
    for bins, numbers in ((1, "normal"), (7, "skewed"), (1024, "uniform"), (12288, "constant")):
        params = PATTERN.check({"of": "numbers", "dtype": dtype, "bins": bins, "numbers": numbers, "n": 533})
        inputs = PATTERN.prepare_inputs({}, params, 7)
        outcome = run(engine, variant, inputs, **params)
        values = np.clip(inputs["values"].astype(np.float64), 0, np.nextafter(end, 0))
        if bins != 7:  # where a float's product with the bins is rounded, it may be next to an edge
            assert outcome.outputs["counts"].tolist() == [np.histogram(values, bins, (0, end))[0].tolist()]
        assert outcome.report.verified


@pytest.mark.parametrize("variant", CORRECT)
def test_floats_outside_belong_to_the_ends(engine: Engine, variant: str) -> None:
    values = np.array([-np.inf, -1, -0.0, 0.24999, 0.25, 0.9999999, 1, 7e30, np.inf, np.nan], np.float32)
    outcome = run(engine, variant, {"values": values}, of="numbers", dtype="float32", bins=4, numbers="file")
    assert outcome.outputs["counts"].tolist() == [[5, 1, 0, 4]]
    assert outcome.report.verified


@pytest.mark.parametrize("variant", [name for name in CORRECT if name in ("one-thread", "interleaved", "peak")])
@pytest.mark.parametrize("bins", [12289, 30000, 65536])
def test_more_bins_than_a_block_has_room_for(engine: Engine, variant: str, bins: int) -> None:
    for dtype in ("uint8", "uint16", "uint32", "float32"):
        outcome = run(engine, variant, of="numbers", dtype=dtype, bins=bins, numbers="uniform", n=3001)
        assert outcome.report.verified


@pytest.mark.parametrize(("opt_in", "parts"), [(0, 6), (100_000, 3), (232_448, 2)])
def test_bins_come_in_as_few_parts_as_a_blocks_shared_memory_allows(opt_in: int, parts: int) -> None:
    asked: list[tuple[Extent, int]] = []

    class Asking(NullEngine):
        def launch(
            self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0
        ) -> None:
            asked.append((grid, shared_bytes))

    engine = Asking()
    engine.device = replace(engine.device, shared_bytes_opt_in=opt_in)
    for bins in (256, 12288, 65536):
        run(engine, "peak", of="numbers", dtype="uint16", bins=bins, n=100)
    assert [grid[2] for grid, _ in asked] == [1, 1 if opt_in else 2, parts]
    assert all(grid[2] * shared >= 4 * bins for (grid, shared), bins in zip(asked, (256, 12288, 65536), strict=True))
    assert all(shared <= max(49152, opt_in) for _, shared in asked)
    assert asked[0][1] <= 49152


def test_rungs_that_keep_all_bins_in_a_block_say_how_many_fit(engine: Engine) -> None:
    for variant in ("privatized", "aggregated", "written-out", "texture"):
        with pytest.raises(InputError, match="room for 12288 bins, not 12289"):
            run(engine, variant, of="numbers", bins=12289, n=100)


def test_a_number_that_its_type_does_not_hold_is_refused(engine: Engine) -> None:
    for value in (-1.0, 256.0, 0.5, np.nan):
        with pytest.raises(InputError, match="uint8 holds whole numbers from 0 to 255"):
            run(engine, "peak", {"values": np.array([3.0, value])}, of="numbers", dtype="uint8", numbers="file")


def test_nothing_to_count_is_counted(engine: Engine) -> None:
    for variant in CORRECT:
        if variant != "texture":
            assert run(engine, variant, of="letters", text="").outputs["counts"].sum() == 0
            assert run(engine, variant, of="ranges", n=0).outputs["counts"].sum() == 0
    with pytest.raises(InputError, match="has 1 to"):
        run(engine, "texture", of="letters", text="")


def test_a_texture_has_its_limit() -> None:
    image = np.broadcast_to(np.uint8(0), (2**14, 2**14))
    obstacle = PATTERN.variant("texture").obstacle
    assert "has 268435456" in obstacle({"image": image, "maxval": np.array(255)}, PATTERN.check({}))
    assert not obstacle({"image": image[:100], "maxval": np.array(255)}, PATTERN.check({}))


def test_an_input_of_another_kind_is_refused(engine: Engine) -> None:
    with pytest.raises(InputError, match="of letters needs text"):
        run(engine, "peak", {"values": np.zeros(3, np.float32)}, of="letters")
    with pytest.raises(InputError, match="No file of numbers is open"):
        run(engine, "peak", of="ranges", numbers="file")
    with pytest.raises(InputError, match="needs an image"):
        run(engine, "peak")


def test_names_go_with_the_bins() -> None:
    assert PATTERN.value_names(PATTERN.check({"of": "letters"})) == (
        "a–d", "e–h", "i–l", "m–p", "q–t", "u–x", "y–z", "other",
    )  # fmt: skip
    assert PATTERN.value_names(PATTERN.check({"of": "ranges", "edges": "0 0.5,1"})) == (
        "0 to 0.5",
        "0.5 to 1",
        "outside",
    )
    assert PATTERN.value_names(PATTERN.check({})) == ()
