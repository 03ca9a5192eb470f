"""Sorts on every engine against Python's and NumPy's stable sorts."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.bench.recording_engine import RecordingEngine
from gpu.engines.base import Engine, PhaseTimes
from gpu.engines.checking_engine import CheckingEngine
from gpu.engines.null import NullEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.patterns.sort.keys import DTYPES, KINDS, make_keys
from gpu.run.frames import Frames
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload
from tests.gpu.fake_libraries import LibraryEngine

Array = np.ndarray[Any, Any]

SORT = find_pattern("sort")
VARIANTS = [variant.name for variant in SORT.variants if not variant.library]
SIZES = (0, 1, 2, 31, 32, 33, 64, 129)
FAST = [name for name in VARIANTS if name not in ("one-thread", "odd-even", "quicksort")]
"""Those that many keys do not take long."""
ENGINE = SimulatorEngine("lockstep")
COMPILED = SimulatorEngine()
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.5, -1.5]


def run(engine: Engine, variant: str, keys: Array, sources: dict[str, str] | None = None, **params: Any) -> Outcome:
    chosen = {"input": "file", "dtype": keys.dtype.name, "block": 32, **params}
    workload = Workload(SORT, SORT.variant(variant), {"values": keys}, chosen, sources or {})
    return run_pattern(engine, workload, lambda progress: None)


def keys_of(dtype: str, n: int) -> Array:
    """Return bits of any kind, many of them more than once."""
    rng = np.random.default_rng(n)
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    bits = rng.integers(0, np.iinfo(word).max, n, word, endpoint=True)
    bits[n // 2 :] = rng.choice(bits[: n // 2 + 1], n - n // 2) if n else bits
    keys = bits.view(dtype)
    return np.where(np.isnan(keys), keys.dtype.type(2), keys) if keys.dtype.kind == "f" else keys


@pytest.mark.parametrize("variant", VARIANTS)
def test_awkward_sizes(variant: str) -> None:
    for n in SIZES:
        keys = keys_of("int32", n)
        outcome = run(ENGINE, variant, keys)
        assert outcome.outputs["result"].tolist() == sorted(keys.tolist())
        assert outcome.report.verified


@pytest.mark.parametrize(
    ("variant", "dtype", "order"),
    [
        # The first tier has all pairs: of variant and type, of variant and order, of type and order.
        pytest.param(variant, dtype, order, marks=[pytest.mark.sweep] * ((i + j + k) % 2))
        for (i, variant), (j, dtype), (k, order) in itertools.product(
            enumerate(VARIANTS), enumerate(DTYPES), enumerate(("ascending", "descending"))
        )
    ],
)
def test_every_type_both_ways(variant: str, dtype: str, order: str) -> None:
    keys = keys_of(dtype, 70)
    outcome = run(ENGINE, variant, keys, order=order)
    assert outcome.outputs["result"].tolist() == sorted(keys.tolist(), reverse=order == "descending")
    assert outcome.outputs["result"].dtype == keys.dtype
    assert outcome.report.verified


@pytest.mark.parametrize(
    ("variant", "order"),
    [
        # Equal floats are verified in the other order, above all in the next test.
        pytest.param(variant, order, marks=[pytest.mark.sweep] * ((i + j) % 2))
        for i, variant in enumerate(VARIANTS)
        for j, order in enumerate(("ascending", "descending"))
    ],
)
def test_places_are_those_of_a_stable_sort(variant: str, order: str) -> None:
    for n in (0, 33, 70):
        keys = np.random.default_rng(n).integers(-4, 4, n, np.int32)
        outcome = run(ENGINE, variant, keys, order=order, result="places")
        falling = -1 if order == "descending" else 1
        assert outcome.outputs["result"].tolist() == sorted(range(n), key=(falling * keys).__getitem__)
        np.testing.assert_array_equal(outcome.outputs["keys"], keys[outcome.outputs["result"]])
        assert outcome.report.verified


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_floats_that_are_not_numbers_come_last_and_zeros_in_order(variant: str, dtype: str) -> None:
    keys = np.random.default_rng(5).permutation(np.array(SPECIAL * 4, dtype))
    rising = [-np.inf, -3.4e38, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, 3.4e38, np.inf]
    # All pairs of type, order and result.
    orders = ("ascending", "descending") if dtype == "float32" else ("descending", "ascending")
    outcome = run(ENGINE, variant, keys, order=orders[0])
    result = outcome.outputs["result"]
    expected = np.repeat(np.array(rising if orders[0] == "ascending" else rising[::-1], dtype), 4)
    assert result[:40].tobytes() == expected.tobytes()
    assert np.isnan(result[40:]).all()
    assert result.size == 48
    assert outcome.report.verified
    places = run(ENGINE, variant, keys, order=orders[1], result="places")
    assert sorted(places.outputs["result"].tolist()) == list(range(48))
    assert places.report.verified


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_a_library_is_given_and_gives_back(dtype: str, order: str) -> None:
    """Of the library only numbers without a sign are asked; the rest is ours."""
    for n in (0, 1, 2, 70):
        keys = keys_of(dtype, n)
        if keys.dtype.kind == "f" and n > 2:
            keys = np.random.default_rng(5).permutation(np.append(keys, np.array(SPECIAL, dtype)))
        outcome = run(LibraryEngine(), "thrust", keys, order=order)
        assert outcome.report.verified
        assert outcome.outputs["result"].dtype == keys.dtype
        numbers = keys[~np.isnan(keys)] if keys.dtype.kind == "f" else keys
        expected = sorted(numbers.tolist(), reverse=order == "descending")
        assert outcome.outputs["result"][: numbers.size].tolist() == expected
        pairs = run(LibraryEngine(), "thrust", keys, order=order, result="places")
        assert pairs.report.verified
        assert pairs.outputs["result"].dtype == np.int32
        np.testing.assert_array_equal(pairs.outputs["keys"], keys[pairs.outputs["result"]])


@pytest.mark.parametrize(
    ("variant", "kind"),
    [
        # A radix sort takes the same steps for all keys: the first tier has half of its inputs.
        pytest.param(variant, kind, marks=[pytest.mark.sweep] * ("radix" in variant and (i + j) % 2))
        for i, variant in enumerate(VARIANTS)
        for j, kind in enumerate(KINDS)
    ],
)
def test_every_input(variant: str, kind: str) -> None:
    outcome = run(ENGINE, variant, make_keys(kind, 65, "float32", 3))
    assert outcome.outputs["result"].tolist() == sorted(make_keys(kind, 65, "float32", 3).tolist())
    assert outcome.report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_engine(engine: Engine, variant: str) -> None:
    n = 150 if SORT.variant(variant).is_single_thread else 700
    keys = keys_of("uint32", n)
    outcome = run(engine, variant, keys, block=64, result="places")
    assert outcome.outputs["result"].tolist() == sorted(range(n), key=keys.tolist().__getitem__)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_block_size(variant: str) -> None:
    keys = keys_of("int32", 70)
    for block in (8, 1024):
        assert run(ENGINE, variant, keys, block=block).report.verified


@pytest.mark.parametrize("variant", ["radix", "onesweep", "peak"])
def test_a_hundred_thousand_keys(variant: str) -> None:
    keys = keys_of("int32", 10**5)
    outcome = run(COMPILED, variant, keys, block=256)
    np.testing.assert_array_equal(outcome.outputs["result"], np.sort(keys))
    assert outcome.report.verified


@pytest.mark.parametrize(
    ("dtype", "n", "has_clusters"),
    [("int32", 4097, True), ("float64", 8193, True), ("int32", 16385, True), ("float64", 8193, False)],
)
def test_a_key_more_than_a_block_or_cluster_sorts_alone(dtype: str, n: int, has_clusters: bool) -> None:
    """A cluster takes over, then tiles, the last of which has hardly a key."""
    keys = keys_of(dtype, n)
    keys[::3] = keys[0]
    engine = SimulatorEngine("compiled")
    engine.device = dataclasses.replace(engine.device, has_clusters=has_clusters)
    outcome = run(engine, "peak", keys, order="descending", result="places", block=256)
    assert outcome.outputs["result"].tolist() == np.argsort(-keys.astype(np.float64), kind="stable").tolist()


@pytest.mark.parametrize(
    ("n", "has_clusters", "kernels"),
    [
        (4096, True, ["sort_in_block"]),
        (4097, True, ["sort_in_cluster"]),
        (16384, True, ["sort_in_cluster"]),
        (8192, False, ["sort_in_block"]),
        (16385, True, ["sort_peak_counts", *["sort_peak_pass"] * 4]),
        (8193, False, ["sort_peak_counts", *["sort_peak_pass"] * 4]),
    ],
)
def test_few_keys_take_one_launch(n: int, has_clusters: bool, kernels: list[str]) -> None:
    engine = NamedLaunches()
    engine.device = dataclasses.replace(
        engine.device, has_clusters=has_clusters, shared_bytes_per_block=48 * 1024, multiprocessors=132
    )
    for _ in SORT.variant("peak").run(engine, {"values": np.zeros(n, np.int32)}, SORT.check({"block": 256})):
        pass
    assert engine.names == kernels


class NamedLaunches(NullEngine):
    """Lists the kernels that are launched."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def launch(self, kernel: Any, *rest: Any, **more: Any) -> None:
        self.names.append(kernel.name)


def test_passes_restore_the_counts_for_the_next_sort() -> None:
    """They are zeroed once: a replay, and any other repetition on the same memory, needs no fill."""
    recorder, keys = RecordingEngine(SimulatorEngine("compiled")), keys_of("int32", 20000)
    uploads: list[Any] = []
    upload = recorder.upload
    recorder.upload = lambda values: uploads.append(upload(values)) or uploads[-1]  # type: ignore[method-assign]
    for _ in SORT.variant("peak").run(recorder, {"values": keys}, SORT.check({"input": "file", "block": 256})):
        pass
    [counts] = [buffer for buffer in uploads if buffer.dtype == np.uint32]
    assert not recorder.download(counts).any()
    recorder.finish()


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_not_in_order_is_not_verified(variant: str) -> None:
    header, file = (KERNELS / "sort_keys.cuh").read_text(), SORT.kernel_file_of(variant)
    text = (KERNELS / file).read_text().replace('#include "sort_keys.cuh"', header)
    right = "return DESCENDING ? ~bits : bits;"
    assert text.count(right) == 1
    spoilt = {file: text.replace(right, "return (DESCENDING ? ~bits : bits) & ~(BITS)1;")}
    keys = np.random.default_rng(1).permutation(np.arange(70, dtype=np.int32))
    assert run(ENGINE, variant, keys).report.verified
    assert run(ENGINE, variant, keys, spoilt).report.verified is False
    assert run(ENGINE, variant, keys, spoilt, result="places").report.verified is False


ADVERSARIES = {
    "organ pipe": np.minimum(np.arange(200), np.arange(200)[::-1]),
    "the middle is least": np.roll(np.arange(160), 80),
    "two values": np.arange(180) % 2,
    "three are least": np.r_[0, np.arange(5, 90), 1, np.arange(100, 185), 2],
}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        # The first tier has each limit with half of the keys, and all keys.
        pytest.param(name, limit, marks=[pytest.mark.sweep] * ((i + j) % 2))
        for i, name in enumerate(ADVERSARIES)
        for j, limit in enumerate(("depth 2", "no second launch", "none"))
    ],
)
def test_a_quicksort_that_may_launch_no_more_sorts_by_itself(name: str, limit: str) -> None:
    text = (KERNELS / "sort_quick.cu").read_text()
    deepest, created = (
        "#define MAX_DEPTH 10",
        "cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess",
    )
    assert deepest in text
    assert created in text
    changed = {
        "depth 2": text.replace(deepest, "#define MAX_DEPTH 2"),
        "no second launch": text.replace(created, "depth == 1"),
        "none": text,
    }[limit]
    keys = ADVERSARIES[name].astype(np.int32)
    outcome = run(ENGINE, "quicksort", keys, {"sort_quick.cu": changed}, result="places")
    assert outcome.outputs["result"].tolist() == np.argsort(keys, kind="stable").tolist()
    np.testing.assert_array_equal(outcome.outputs["keys"], np.sort(keys))


@pytest.mark.parametrize("result", ["keys", "places"])
def test_the_order_of_equal_keys_counts_for_places_alone(result: str) -> None:
    text = (KERNELS / "sort.cu").read_text()
    right = "left ? before(met, key) : !before(key, met)"
    assert text.count(right) == 1
    unstable = {"sort.cu": text.replace(right, "left ? !before(key, met) : before(met, key)")}
    keys = np.random.default_rng(2).integers(0, 3, 100, np.int32)
    assert run(ENGINE, "merge", keys, unstable, result=result).report.verified is (result == "keys")


def test_the_window_draws_what_is_finite() -> None:
    keys = np.array([np.nan, 2, -np.inf, 1, np.inf], np.float32)
    outcome = run(ENGINE, "merge", keys)
    params = SORT.check({"dtype": "float32"})
    shown = SORT.present({"values": keys}, params, outcome.outputs)
    assert shown["output"][0].tolist() == [1, 1, 2, 2, 2]
    assert shown["input"][1].tolist() == [2, 2, 1, 1, 2]


def test_the_window_draws_what_is_too_large_for_a_plot() -> None:
    """The differences of these are no numbers; with so many keys it counts them by ranges."""
    keys = np.resize(np.array([-1.7e308, 1.7e308, 0.0, np.inf]), 5000)
    params = SORT.check({"dtype": "float64"})
    shown = SORT.present({"values": keys}, params, {"keys": np.sort(keys)})
    assert np.isfinite(shown["level edges"]).all()
    assert shown["levels"].sum() == 5000


def test_keys_that_do_not_fit_are_refused() -> None:
    for value, dtype in ((-1, "uint32"), (2**31, "int32"), (np.nan, "int32"), (np.inf, "uint32"), (1e39, "float32")):
        with pytest.raises(InputError, match="Element 1 of the input"):
            SORT.accept({"values": np.array([0, value])}, {"dtype": dtype})
    SORT.accept({"values": np.array([np.nan, np.inf])}, {"dtype": "float32"})


@pytest.mark.parametrize("dtype", DTYPES)
def test_made_keys_are_what_they_are_called(dtype: str) -> None:
    made = {kind: make_keys(kind, 5000, dtype, 1) for kind in KINDS}
    assert all(keys.dtype == dtype and keys.shape == (5000,) for keys in made.values())
    rises = {kind: int((keys[1:] >= keys[:-1]).sum()) for kind, keys in made.items()}
    assert rises["sorted"] == 4999
    assert 4600 < rises["nearly"] < 4999
    assert (made["reversed"][1:] <= made["reversed"][:-1]).all()
    assert np.unique(made["few"]).size in range(2, 9)
    assert np.unique(made["equal"]).size == 1
    assert np.unique(made["random"]).size > 4900
    assert (made["zipf"] == 1).sum() > 1000
    np.testing.assert_array_equal(make_keys("random", 50, dtype, 4), make_keys("random", 50, dtype, 4))


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    numbers=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3), max_size=80),
    variant=st.sampled_from(VARIANTS),
    order=st.sampled_from(["ascending", "descending"]),
)
def test_any_keys(numbers: list[int], variant: str, order: str) -> None:
    keys = np.array(numbers, np.int32)
    result = run(ENGINE, variant, keys, order=order, result="places").outputs["result"]
    falling = -1 if order == "descending" else 1
    assert result.tolist() == sorted(range(len(numbers)), key=lambda place: falling * numbers[place])


@pytest.fixture(scope="module")
def gpu() -> Iterator[Engine]:
    """One for all tests here: what nvcc has made is kept in it."""
    from gpu import engines

    engine = engines.create_engine("cuda")
    yield engine
    engine.close()


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_large_arrays(gpu: Engine, variant: str, dtype: str) -> None:
    sizes = (10**5, 2**20 + 1) if variant in FAST else (150, 700) if variant == "one-thread" else (10**4, 10**5)
    for n in sizes:
        keys = keys_of(dtype, n)
        for result in ("keys", "places"):
            for order in ("ascending", "descending"):
                assert run(gpu, variant, keys, result=result, order=order, block=256).report.verified
    for kind in KINDS:
        keys = make_keys(kind, min(20001, sizes[1]), dtype, 1)
        assert run(gpu, variant, keys, block=256, result="places").report.verified


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
@pytest.mark.parametrize("result", ["keys", "places"])
@pytest.mark.parametrize("variant", FAST)
def test_ten_million_keys(gpu: Engine, variant: str, result: str) -> None:
    keys = keys_of("uint32", 10**7)
    assert run(gpu, variant, keys, result=result, block=256).report.verified


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_quicksort_on_the_gpu_takes_what_is_against_it(gpu: Engine, name: str) -> None:
    """Launches that nest as deep as they may, or are refused, end in a sort by the block itself."""
    keys = np.tile(ADVERSARIES[name], 100).astype(np.int32)
    for n in (ADVERSARIES[name].size, keys.size):
        assert run(gpu, "quicksort", keys[:n], result="places", block=64).report.verified


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize("result", ["keys", "places"])
def test_a_quicksort_ends_however_many_parts_wait(gpu: Engine, result: str) -> None:
    """With more launches than a device keeps waiting, one run in some dozen did not end."""
    for n in (*[2**20] * 30, 10**7):
        assert run(gpu, "quicksort", keys_of("uint32", n), result=result, block=64).report.verified


@pytest.mark.parametrize("variant", VARIANTS)
def test_pictures_are_taken_between_launches(variant: str) -> None:
    keys = keys_of("uint32", n := 150 if SORT.variant(variant).is_single_thread else 700)
    params = {"input": "file", "dtype": "uint32", "block": 32}
    outcome = run_pattern(
        ENGINE, Workload(SORT, SORT.variant(variant), {"values": keys}, params), lambda progress: None, frames=Frames()
    )
    frames = outcome.presented_arrays["frames"]
    captions = bytes(outcome.presented_arrays["captions"]).decode().split("\n")
    assert len(frames) == len(captions)
    assert frames.shape[1] == min(n, 512)
    assert set(frames[0].tolist()) <= set(keys.tolist())
    assert captions[0] == "in input order"
    if variant == "quicksort":  # which is one launch
        assert len(frames) == 1
    else:
        assert (np.diff(frames[-1].astype(np.int64)) >= 0).all()
        assert (np.diff(frames[0].astype(np.int64)) < 0).any()
    np.testing.assert_array_equal(outcome.outputs["result"], np.sort(keys))


def test_times_of_pictures_are_not_those_of_the_run() -> None:
    engine = NullTimes()
    frames = Frames()
    program = SORT.variant("merge").run(engine, {"values": keys_of("int32", 3000)}, SORT.check({"block": 64}))
    for progress in program:
        frames.take(engine, progress)
    _, times = frames.finish(engine)
    assert engine.sampled > 2
    assert times.kernel == engine.launched


class NullTimes(NullEngine):
    """Counts a millisecond for each launch, and those of pictures apart."""

    def __init__(self) -> None:
        super().__init__()
        self.launched = self.sampled = self._now = 0

    def launch(self, kernel: Any, *rest: Any, **more: Any) -> None:
        super().launch(kernel, *rest, **more)
        self._now += 1
        if kernel.name == "sort_sample":
            self.sampled += 1
        else:
            self.launched += 1

    def take_times(self) -> PhaseTimes:
        elapsed, self._now = self._now, 0
        return PhaseTimes(kernel=elapsed)


@pytest.mark.parametrize("preset", SORT.presets, ids=lambda preset: preset.title)
def test_an_examples_keys_fill_their_axis(preset) -> None:
    """Where few of them are large, a plot of all is empty."""
    params = SORT.check(preset.params)
    keys = SORT.prepare_inputs({}, params, 0)["values"].astype(np.float64)
    assert np.median(keys) > np.min(keys) + 0.1 * np.ptp(keys)


@pytest.mark.parametrize(
    ("dtype", "result", "has_clusters"),
    [("uint32", "places", False), ("uint64", "keys", False), ("uint32", "places", True)],
)
def test_more_keys_than_a_block_has_are_sorted_without_a_race(dtype: str, result: str, has_clusters: bool) -> None:
    """The small check of a run has few keys, which one block sorts: tiles and clusters are watched here alone."""
    keys = make_keys("random", 4097, dtype, 3)  # a cluster's, or of three tiles: the last one has a single key
    engine = CheckingEngine()
    engine.device = dataclasses.replace(engine.device, has_clusters=has_clusters, shared_bytes_per_block=20_000)
    assert run(engine, "peak", keys, result=result, block=256).report.verified
    assert engine.findings == []
