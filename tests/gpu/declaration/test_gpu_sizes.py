"""How much there is to do by default on a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.bench import device_records
from gpu.declaration.gpu_sizes import cube_edge_rule, elements_rule, square_side_rule
from gpu.declaration.pattern import Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import Device
from gpu.patterns import all_patterns, find_pattern
from gpu.run.host_program import validate_inputs

H200 = Device("cuda", "NVIDIA H200", "gpu", 1024, 49152, 132)
LAPTOP = replace(H200, name="a laptop's", multiprocessors=20)
SIMULATED = Device("simulator", "a processor", "compiled", 1024, 49152, 16)


def test_a_size_is_the_power_of_two_that_is_nearest() -> None:
    assert [elements_rule(100)(count) for count in (1, 10, 14, 15)] == [128, 1024, 1024, 2048]
    assert [square_side_rule(64)(count) for count in (1, 4, 6, 9)] == [8, 16, 16, 32]
    assert [cube_edge_rule(64)(count) for count in (1, 8, 20, 27)] == [4, 8, 8, 16]
    assert elements_rule(1)(1) == 1


@pytest.mark.parametrize(
    ("name", "parameter", "on_h200", "on_laptop"),
    [
        ("reduction", "n", 2**25, 2**22),
        ("scan", "n", 2**24, 2**21),
        ("compaction", "n", 2**24, 2**21),
        ("sort", "n", 2**22, 2**19),
        ("matmul", "n", 2048, 1024),
        ("softmax", "rows", 2**14, 2**11),
        ("transpose", "n", 2**12, 2**11),
        ("stencil", "n", 2**8, 2**7),
        ("spmv", "n", 2**18, 2**15),
        ("nbody", "bodies", 2**15, 2**12),
        ("histogram", "n", 2**26, 2**23),
    ],
)
def test_defaults_grow_with_the_gpu(name: str, parameter: str, on_h200: int, on_laptop: int) -> None:
    pattern = find_pattern(name)
    variant = pattern.variant(pattern.default_variant)
    before = pattern.check({})
    for device, grown in ((H200, on_h200), (LAPTOP, on_laptop)):
        params = pattern.with_default_size(variant, device).check({})
        assert params.pop(parameter) == grown
        assert params == {key: value for key, value in before.items() if key != parameter}
    assert pattern.with_default_size(variant, SIMULATED).check({}) == before, "the simulator keeps its own"
    assert pattern.with_default_size(variant, H200).check({parameter: 64})[parameter] == 64, "what is given counts"


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_every_pattern_knows_from_which_size_it_can_be_compared(pattern: Pattern) -> None:
    assert pattern.device_sized_parameter is not None or pattern.side_on_gpu is not None
    assert not pattern.is_image_pattern or pattern.side_on_gpu is not None
    assert len([each for each in pattern.parameters if getattr(each, "on_gpu", None)]) <= 1
    variant = pattern.variant(pattern.default_variant)
    for device in (H200, replace(H200, multiprocessors=1), replace(H200, multiprocessors=1000)):
        grown = pattern.with_default_size(variant, device)
        grown.check({})
        assert grown.with_default_size(variant, SIMULATED) == grown


@pytest.mark.parametrize("device", [SIMULATED, LAPTOP, H200], ids=lambda device: device.name)
@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_each_variant_runs_with_its_defaults(pattern: Pattern, device: Device) -> None:
    image = {"image": np.zeros((512, 512), np.uint8), "maxval": np.array(255)} if pattern.is_image_pattern else {}
    for variant in pattern.variants:
        if device is not SIMULATED and not (variant.max_default_size or variant.is_single_thread):
            continue  # accepts any size; generating a large input for it would take seconds
        params = pattern.with_default_size(variant, device).check({})
        validate_inputs(pattern, variant, pattern.prepare_inputs(image, params, 0), params)


def test_images_grow_too() -> None:
    assert find_pattern("convolution").side_on_gpu(132) == 4096
    assert find_pattern("histogram").side_on_gpu(132) == 16384


def test_what_is_typed_is_of_no_size_that_grows() -> None:
    pattern = find_pattern("reduction")
    typed = pattern.check({"input": "typed", "values": "1 2 3"})
    assert pattern.comparison_sizes(pattern.prepare_inputs({}, typed, 0), typed, H200) == ("", 0, 0)
    made = pattern.check({"n": 9})
    assert pattern.comparison_sizes(pattern.prepare_inputs({}, made, 0), made, H200) == ("n", 9, 2**25)
    assert pattern.comparison_sizes(pattern.prepare_inputs({}, made, 0), made, SIMULATED)[2] == 0
    assert pattern.device_sized_parameter is pattern.parameter(Role.SIZE)


CLEARLY = 1.25
"""Times whose order counts differ by so much."""


def find_reordered_variants(pattern: Pattern, size: int) -> list[tuple[str, str]]:
    """Return pairs of variants that an H200 put into another order than at the largest size that was measured.

    The order is that of the largest measured size up to `size`.
    """
    runs = [
        run
        for each in device_records.read_records()
        if each.device == H200.name
        for run in each.verified_runs(pattern.name)
    ]
    if not runs:
        pytest.skip(f"no H200 has been recorded with {pattern.name}")
    largest = max(run.size for run in runs)
    there = {run.variant: run.median_ms for run in runs if run.size == largest}
    nearest = max(run.size for run in runs if run.size <= size)
    here = {run.variant: run.median_ms for run in runs if run.size == nearest}
    assert len(here) > 2
    common = here.keys() & there.keys()
    return [(a, b) for a in common for b in common if CLEARLY * there[a] < there[b] and here[a] > here[b]]


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_at_the_default_size_an_h200_puts_variants_into_the_order_of_large_ones(pattern: Pattern) -> None:
    if pattern.side_on_gpu is not None:
        assert find_reordered_variants(pattern, pattern.side_on_gpu(H200.multiprocessors)) == []
    elif pattern.device_sized_parameter is pattern.size:
        assert find_reordered_variants(pattern, pattern.min_comparable_size(H200)) == []


def test_at_the_simulators_default_it_does_not() -> None:
    # Which is why defaults grow: squares in registers lost against simple tiles.
    assert ("registers-2d", "tiled") in find_reordered_variants(find_pattern("matmul"), 512)
