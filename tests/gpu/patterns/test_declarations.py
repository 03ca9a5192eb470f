"""What holds for every pattern, whichever it is."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.declaration.pattern import Choice, Integer, Matrix, Pattern, Real, Variant
from gpu.declaration.presentation import ArrayPresentation, BodiesPresentation, MatrixPresentation
from gpu.engines.null import NullEngine
from gpu.patterns import all_patterns, find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.simulated_module import SimulatedModule

_KERNEL = r"__global__ void\s+(?:__(?:launch_bounds|cluster_dims)__\([^)]+\)\s+|CLUSTER\s+)*(\w+)"
PATTERNS = list(all_patterns().values())


def test_every_pattern_has_a_place_of_its_own() -> None:
    assert [pattern.order for pattern in PATTERNS] == list(range(1, len(PATTERNS) + 1))


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_kernel_belongs_to_a_variant(pattern: Pattern) -> None:
    for file in pattern.kernel_files:
        in_file = re.findall(_KERNEL, (KERNELS / file).read_text())
        launched = [variant.kernels for variant in pattern.variants if pattern.kernel_file_of(variant.name) == file]
        helpers = pattern.helpers.get(file, ())
        assert sorted(in_file) == sorted({kernel for kernels in launched for kernel in kernels} | {*helpers})
    first = [variant.kernels[0] for variant in pattern.variants if not variant.library]
    assert len(set(first)) == len(first)


@pytest.mark.parametrize(
    ("pattern", "file"), [pytest.param(pattern, file, id=file) for pattern in PATTERNS for file in pattern.kernel_files]
)
def test_the_table_at_the_head_of_a_file_is_the_ladder(pattern: Pattern, file: str) -> None:
    """Each rung of the file has its row, in the order of the variants; other rows are what rungs launch beside."""
    head = (KERNELS / file).read_text().split("\n#")[0]
    rows = re.findall(
        r"^// (\w+)(?: and$| and +\S|  +\S)", head.split("\n// variant ")[1].split("\n", 1)[1], re.MULTILINE
    )
    variants = [variant for variant in pattern.variants if pattern.kernel_file_of(variant.name) == file]
    rungs = [variant.kernels[0] for variant in variants]
    assert [row for row in rows if row in rungs] == rungs
    launched = {kernel for variant in variants for kernel in variant.kernels}
    assert launched <= {*rows} <= launched | {*pattern.helpers.get(file, ())}
    assert len({*rows}) == len(rows)


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_what_a_pattern_does_is_said_in_a_line(pattern: Pattern) -> None:
    assert 10 < len(pattern.summary) <= 45
    assert pattern.summary.endswith(".")


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_limits_are_lifted_by_rungs_until_the_hardware_is_the_limit(pattern: Pattern) -> None:
    assert pattern.first_rung.name == next(each.name for each in pattern.variants if each.name != "one-thread")
    sound = [each for each in pattern.variants if not each.library and not each.deliberate_error]
    assert pattern.find_successor(sound[-1]) is None
    for variant in sound[:-1]:
        lifts = pattern.find_successor(variant)
        assert lifts is not None, variant.name
        assert sound.index(lifts) > sound.index(variant), "by a rung above"
    for variant in pattern.variants:
        if variant.library:
            assert pattern.find_successor(variant) is None
        if variant.deliberate_error:
            assert pattern.find_successor(variant) in sound


def test_a_library_has_no_kernels_and_no_file() -> None:
    for pattern in PATTERNS:
        for variant in pattern.variants:
            if variant.library:
                assert not variant.kernels
                assert not pattern.kernel_file_of(variant.name)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_defaults_are_values_that_the_parameters_accept(pattern: Pattern) -> None:
    params = pattern.check({})
    assert set(params) == {parameter.name for parameter in pattern.parameters}
    assert pattern.variant(pattern.default_variant).deliberate_error == ""


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_what_is_stepped_is_small(pattern: Pattern) -> None:
    params = pattern.check(pattern.step_params)
    if isinstance(pattern.presentation, MatrixPresentation):
        assert pattern.make_input is not None
        rows, columns = pattern.make_input(params, 0)["values"].shape
        assert rows * columns == 64
        values = np.arange(500).reshape(20, 25)
        np.testing.assert_array_equal(pattern.step_input({"values": values})["values"], values[:rows, :columns])
    elif isinstance(pattern.presentation, ArrayPresentation):
        assert pattern.make_input is not None
        assert pattern.make_input(params, 0)["values"].shape == (16,)
        values = np.arange(1000)
        assert pattern.step_input({"values": values})["values"].tolist() == list(range(32))
    elif isinstance(pattern.presentation, BodiesPresentation):
        assert pattern.make_input is not None
        assert pattern.make_input(params, 0)["bodies"].shape == (16, 7)
        for n in (1, 15, 16, 17, 4000):
            cut = pattern.step_input({"bodies": np.arange(7 * n).reshape(n, 7)})["bodies"]
            assert cut.shape == (min(n, 16), 7)
    else:
        image = np.arange(100 * 200).reshape(100, 200)
        cut = pattern.step_input({"image": image, "maxval": np.array(255)})
        rows, columns = cut["image"].shape
        assert rows * columns <= 192
        top, left = divmod(int(cut["image"][0, 0]), 200)
        np.testing.assert_array_equal(cut["image"], image[top : top + rows, left : left + columns])
        assert cut["maxval"] == 255
        tiny = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
        kept = pattern.step_input({"image": tiny})["image"]
        # One channel may stand for all.
        assert np.array_equal(kept, tiny) or any(np.array_equal(kept, tiny[..., channel]) for channel in range(3))


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_examples_are_settings_that_the_pattern_takes(pattern: Pattern) -> None:
    seen = []
    for preset in pattern.presets:
        params = pattern.check(preset.params)
        assert (params, preset.variant) not in seen, "an example is known by its settings and its variant"
        seen.append((params, preset.variant))
        assert preset.title
        assert preset.text.endswith(".")
        if preset.variant:
            pattern.variant(preset.variant)
        if not pattern.is_image_pattern:
            pattern.accept(pattern.prepare_inputs({}, params, 0), params)
    assert len({preset.title for preset in pattern.presets}) == len(pattern.presets)


def test_every_kernel_file_belongs_to_a_pattern() -> None:
    files = {file for pattern in PATTERNS for file in (*pattern.kernel_files, *pattern.helpers)}
    assert {file.name for file in KERNELS.glob("*.cu")} == files


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_helpers_are_kernels_of_their_files(pattern: Pattern) -> None:
    for file, helpers in pattern.helpers.items():
        assert {*helpers} <= {*re.findall(_KERNEL, (KERNELS / file).read_text())}


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no pattern 'nothing'; there are convolution, histogram"):
        find_pattern("nothing")
    with pytest.raises(InputError, match="no variant 'nothing'; there are naive"):
        find_pattern("convolution").variant("nothing")
    with pytest.raises(InputError, match="no parameter 'nothing'; there are filter"):
        find_pattern("convolution").check({"nothing": 1})


@pytest.mark.parametrize("value", [2, 4, 33, 1, "five", 5.5, None, float("nan"), float("inf"), "1e400"])
def test_a_size_that_is_not_odd_or_out_of_range_is_refused(value: object) -> None:
    parameter = Integer(name="size", label="Size", default=3, minimum=3, maximum=31, step=2)
    with pytest.raises(InputError, match="--size is a whole number from 3 to 31 in steps of 2, not"):
        parameter.check(value)


@pytest.mark.parametrize("value", [3, "31", 5.0, "7"])
def test_a_size_may_come_as_text(value: object) -> None:
    parameter = Integer(name="size", label="Size", default=3, minimum=3, maximum=31, step=2)
    assert parameter.check(value) == int(float(str(value)))


def test_a_choice_names_its_options() -> None:
    choice = Choice(name="border", label="Border", options=("clamp", "zero"), default="clamp")
    assert choice.check("zero") == "zero"
    with pytest.raises(InputError, match="--border is one of clamp, zero, not 'wrap'"):
        choice.check("wrap")


MATRIX = Matrix(name="coefficients", label="Coefficients", default=((1.0,),), maximum=5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 2], [3, 4]], "odd number of rows up to 5, not 2 x 2"),
        ([[1, 2, 3]], "not 1 x 3"),
        ([1, 2, 3], "not 3"),
        (7, "not a single number"),
        ([[0] * 7] * 7, "not 7 x 7"),
        ([[1, 2, 3], [4, float("nan"), 6], [7, 8, 9]], "not a finite float32"),
        ([[1e39]], "not a finite float32"),
        ([["a"]], "holds real numbers"),
        ([[1j]], "holds real numbers"),
    ],
)
def test_a_matrix_that_is_no_filter_is_refused(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        MATRIX.check(value)


def test_a_matrix_is_read_from_csv_and_npy(tmp_path) -> None:
    values = np.arange(9.0).reshape(3, 3)
    np.save(tmp_path / "filter.npy", values)
    np.savetxt(tmp_path / "filter.csv", values, delimiter=",")
    for name in ("filter.npy", "filter.csv"):
        read = MATRIX.check(str(tmp_path / name))
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, values)


def test_a_matrix_file_that_cannot_be_read_says_why(tmp_path) -> None:
    with pytest.raises(InputError, match="here is no file"):
        MATRIX.check(tmp_path / "missing.csv")
    (tmp_path / "words.csv").write_text("one,two\n")
    with pytest.raises(InputError, match=r"words\.csv, line 1: 'one' is not a number"):
        MATRIX.check(tmp_path / "words.csv")
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match=r"short\.npy is not a complete \.npy file"):
        MATRIX.check(tmp_path / "short.npy")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match=r"empty\.csv is empty"):
        MATRIX.check(tmp_path / "empty.csv")


REAL = Real(name="threshold", label="Threshold", default=0.5, minimum=-10, maximum=10)


@pytest.mark.parametrize("value", [-10, "10", "1e-3", 0.25, "-0"])
def test_a_number_may_come_as_text(value: object) -> None:
    assert REAL.check(value) == float(str(value))


@pytest.mark.parametrize("value", [10.5, "-11", "nan", "inf", "", "half", None, "1,5"])
def test_what_is_no_number_or_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="--threshold is a number from -10 to 10, not"):
        REAL.check(value)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_kernel_of_a_file_fits_in_the_largest_block(pattern: Pattern) -> None:
    """nvcc compiles a whole file: it refuses one where any kernel asks for more shared memory than a block has."""
    builds = {}

    class Watched(NullEngine):
        def build(self, file, defines=None):
            builds[file, *sorted((defines or {}).items())] = None
            return super().build(file, defines)

    image = {"image": np.ones((40, 70), np.uint8), "maxval": np.array(255)} if pattern.is_image_pattern else {}
    largest = {each.name: each.options[-1] for each in pattern.parameters if each.name in ("block", "tile")}
    for variant in pattern.variants:
        inputs = pattern.prepare_inputs(image, pattern.check(largest), 0)
        if not variant.library and not variant.obstacle(inputs, pattern.check(largest)):
            run_pattern(
                Watched(), Workload(pattern, variant, inputs, largest), lambda progress: None, with_reference=False
            )
    assert builds
    for file, *defines in builds:
        module = SimulatedModule((KERNELS / file).read_text(), KERNELS / file, dict(defines))
        for name in module.kernels:
            module.kernel(name).check_launch((8, 1, 1), (1, 1, 1), 0)  # as many blocks as a cluster has at most


STEPPED = [
    pytest.param(pattern, variant, id=f"{pattern.name} {variant.name}")
    for pattern in PATTERNS
    if any(parameter.name == "block" for parameter in pattern.parameters)
    for variant in pattern.variants
    if not variant.library
]


@pytest.mark.parametrize(("pattern", "variant"), STEPPED)
def test_a_variant_says_how_many_threads_its_blocks_have(pattern: Pattern, variant: Variant) -> None:
    of_letters = {"of": "letters"} if pattern.is_image_pattern else {}
    params = pattern.check({**pattern.step_params, **of_letters, "block": "16"})
    found = set()

    class Watched(NullEngine):
        def launch(self, kernel, grid, block, *arguments, shared_bytes=0):
            if kernel.name != "histogram_merge":  # it has blocks of its own
                found.add(math.prod(block))

    for _ in variant.run(Watched(), pattern.prepare_inputs({}, params, 0), params):
        pass
    assert found == {16 if variant.threads is None else variant.threads(params)}
