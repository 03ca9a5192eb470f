"""A run on a GPU is repeated for its time; its result is the first one's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest

from gpu.engines.base import PhaseTimes, RepeatingEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.run.host_program import run_host_program
from gpu.run.pattern_run import run_pattern
from gpu.run.repetition import MAX_REPETITIONS, MAX_RUN_MS, MIN_REPETITIONS, compute_median_times, repeat_run
from gpu.run.workload import Workload
from tests.gpu.fake_gpu import FakeGpu


def run_variant(engine: FakeGpu, variant: str, **given):
    pattern = find_pattern("reduction")
    return run_pattern(engine, Workload(pattern, pattern.variant(variant), {}, given), lambda progress: None)


def test_the_figure_is_the_median_of_the_repetitions_and_not_the_first_run() -> None:
    times = [MAX_RUN_MS / 2, *(5.0, 4.0, 9.0, 5.5, 4.5, 4.2, 4.1, 8.0, 4.9)]
    engine = FakeGpu(*times)
    report = run_variant(engine, "atomic", n=64, block=32).report
    assert report.verified
    assert report.timing is not None
    assert report.time_ms.kernel == report.timing.median == 4.9
    assert (report.timing.minimum, report.timing.maximum) == (4.0, 9.0)
    assert (report.timing.repetitions, report.timing.launches, report.timing.gaps) == (MAX_REPETITIONS, 1, 0.0)
    assert report.throughput.value == pytest.approx(64 / 4.9e-3 / 1e6)
    assert report.timing.empty_launch == 0.25


def test_several_launches_are_timed_apart_and_their_gaps_said_apart() -> None:
    engine = FakeGpu()
    timing = run_variant(engine, "grid-stride", n=4096, block=32).report.timing
    assert timing is not None
    assert timing.launches == 2
    assert timing.gaps == 0.5
    # The first run and its repetitions one launch at a time; then one whose launches follow each other.
    assert engine.modes == [True] * 2 * (1 + timing.repetitions) + [False] * 2
    assert engine.isolates_launches, "the next run is timed apart again"


def test_a_run_says_from_which_size_variants_can_be_compared() -> None:
    timing = run_variant(FakeGpu(), "atomic", n=64, block=32).report.timing
    assert (timing.size_parameter, timing.size, timing.comparable_from) == ("n", 64, 2**21)
    assert timing.recommended_size == 2**21


def test_values_that_are_given_have_no_size_to_offer() -> None:
    pattern = find_pattern("reduction")
    values = {"values": np.arange(100, dtype=np.int32)}
    params = {"input": "file", "block": 32}
    outcome = run_pattern(FakeGpu(), Workload(pattern, pattern.variant("atomic"), values, params), lambda each: None)
    assert outcome.report.timing.recommended_size == 0


def test_an_image_is_compared_by_its_side() -> None:
    pattern = find_pattern("convolution")
    image = {"image": np.zeros((8, 32), np.uint8), "maxval": np.array(255)}
    outcome = run_pattern(FakeGpu(), Workload(pattern, pattern.variant("naive"), image, {}), lambda progress: None)
    timing = outcome.report.timing
    assert (timing.size_parameter, timing.size, timing.comparable_from) == ("", 16, 1024)


def test_what_is_not_verified_runs_once() -> None:
    engine, pattern = FakeGpu(), find_pattern("reduction")
    given = {"n": 64, "block": 32}
    variant = pattern.variant("atomic")
    outcome = run_pattern(engine, Workload(pattern, variant, {}, given), lambda progress: None, with_reference=False)
    assert (outcome.report.timing, engine.launch_count) == (None, 1)


def test_the_simulator_repeats_nothing() -> None:
    pattern = find_pattern("reduction")
    outcome = run_pattern(
        SimulatorEngine("lockstep"), Workload(pattern, pattern.variant("shuffle"), {}, {"n": 64}), lambda progress: None
    )
    assert outcome.report.timing is None


class FakeTimer:
    """Takes as long for a run as it is told, by a clock of its own."""

    isolates_launches = True

    def __init__(self, seconds: float) -> None:
        self.elapsed_s, self.seconds, self.runs = 0.0, seconds, 0

    def run(self) -> None:
        self.elapsed_s += self.seconds
        self.runs += 1

    def take_times(self) -> PhaseTimes:
        return PhaseTimes(kernel=1e3 * self.seconds, launches=1)


@pytest.mark.parametrize(
    ("seconds", "runs"),
    [(1e-4, MAX_REPETITIONS), (0.016, 4), (0.9, MIN_REPETITIONS)],
    ids=["all", "as many as fit", "fewest"],
)
def test_no_repetition_begins_when_the_time_is_over(seconds: float, runs: int) -> None:
    engine = FakeTimer(seconds)
    warm, following = repeat_run(engine, engine.run, engine.take_times(), clock=lambda: engine.elapsed_s)
    assert (len(warm), engine.runs, following) == (runs, runs, None)


def test_a_run_that_takes_long_is_not_repeated() -> None:
    engine, first = FakeTimer(5.0), PhaseTimes(0, 5000.0, 0, 1)
    assert repeat_run(engine, engine.run, first, clock=lambda: engine.elapsed_s) == ([first], None)
    assert engine.runs == 0


def test_a_repetition_that_fails_leaves_the_engine_as_it_was() -> None:
    engine = FakeGpu()
    runs = count()

    def once() -> None:
        if next(runs) == MAX_REPETITIONS:
            raise ValueError("no")
        engine._pending = PhaseTimes(launches=2)

    with pytest.raises(ValueError, match="no"):
        repeat_run(engine, once, PhaseTimes())
    assert engine.isolates_launches


class KeepingGpu(FakeGpu):
    """Counts the launches before each repetition within the context that keeps the arrays of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.launches_before: list[int] = []
        self.launches_outside = 0
        self.keeps = False

    @contextmanager
    def reuse_transfers(self) -> Iterator[Callable[[], None]]:
        self.keeps = True
        try:
            yield lambda: self.launches_before.append(self.launch_count)
        finally:
            self.keeps = False

    def launch(self, *arguments, **given) -> None:
        super().launch(*arguments, **given)
        self.launches_outside += not self.keeps


def test_the_first_run_too_keeps_its_arrays_for_the_repetitions() -> None:
    engine = KeepingGpu()
    assert isinstance(engine, RepeatingEngine)
    report = run_variant(engine, "grid-stride", n=4096, block=32).report
    assert report.verified
    assert report.timing is not None
    repetitions = report.timing.repetitions + 1
    assert engine.launches_before == [2 * run for run in range(1, repetitions + 1)]
    assert engine.launches_outside == 0


def test_copies_are_those_of_the_first_run_and_kernels_the_median() -> None:
    warm = [PhaseTimes(0, 9, 0, 4), PhaseTimes(0, 8, 0, 4), PhaseTimes(0, 7, 0, 4)]
    assert compute_median_times(PhaseTimes(1, 20, 2, 4), warm) == PhaseTimes(1, 8, 2, 4)


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize("variant", ["grid-stride", "shuffle", "peak"])
def test_on_a_gpu_kernels_spread_and_gaps_are_measured(variant: str) -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        pattern = find_pattern("reduction")
        outcome = run_pattern(
            engine, Workload(pattern, pattern.variant(variant), {}, {"n": 2**21}), lambda progress: None
        )
        timing = outcome.report.timing
        assert outcome.report.verified
        assert timing is not None
        assert 0 < timing.minimum <= timing.median <= timing.maximum
        assert MIN_REPETITIONS <= timing.repetitions <= MAX_REPETITIONS
        assert (timing.gaps > 0) is (timing.launches > 1)
        assert 0 < timing.empty_launch < 0.1, "a launch that does nothing takes microseconds"
        assert timing.median > timing.empty_launch
    finally:
        engine.close()


@pytest.mark.gpu
def test_on_a_gpu_what_nobody_wrote_is_not_what_was_there_before() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for _ in range(3):
            right = engine.upload(np.arange(2**20, dtype=np.uint32))
            engine.free(right)
            fresh = engine.allocate((2**20,), np.uint32)
            assert (engine.download(fresh) == 0xFFFFFFFF).all()
            engine.free(fresh)
    finally:
        engine.close()


@pytest.mark.gpu
@pytest.mark.hardware
def test_on_a_gpu_the_fastest_variant_is_not_bound_by_launches_at_the_default_size() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for name in ("reduction", "scan", "compaction", "softmax"):
            pattern = find_pattern(name)
            pattern = pattern.with_default_size(pattern.variant(pattern.default_variant), engine.device)
            params = pattern.check({})
            inputs = pattern.prepare_inputs({}, params, 0)
            timings = []
            for variant in pattern.variants:
                if variant.library or variant.deliberate_error or variant.obstacle(inputs, params):
                    continue
                outcome = run_pattern(engine, Workload(pattern, variant, {}, {}), lambda progress: None)
                assert outcome.report.timing is not None
                assert outcome.report.timing.recommended_size == 0
                timings.append(outcome.report.timing)
            fastest = min(timings, key=lambda timing: timing.median)
            assert not fastest.bound_by_launches, (name, fastest)
    finally:
        engine.close()


@pytest.mark.gpu
@pytest.mark.parametrize(("pattern_name", "variant"), [("scan", "three-kernels"), ("sort", "radix")])
def test_a_repetition_copies_nothing_large_and_computes_the_same(
    pattern_name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A radix sort overwrites its input, which the next repetition needs again."""
    import pycuda.driver as cuda

    from gpu import engines

    copied, copy = [0], cuda.memcpy_htod

    def count_and_copy(address: object, values: npt.NDArray[np.generic]) -> None:
        copied[-1] += values.nbytes
        copy(address, values)

    monkeypatch.setattr(cuda, "memcpy_htod", count_and_copy)
    engine = engines.create_engine("cuda")
    assert isinstance(engine, RepeatingEngine)
    try:
        pattern = find_pattern(pattern_name)
        params = pattern.check({"n": 2**18 + 3})
        inputs = pattern.prepare_inputs({}, params, 5)
        program = partial(run_host_program, engine, pattern.variant(variant), inputs, params, lambda progress: None)
        with engine.reuse_transfers() as begin_run:
            for _ in range(3):
                copied.append(0)
                begin_run()
                outputs = program()
        assert copied[1] > 2**20
        assert max(copied[2:]) < 2**16, "small arrays are copied each time"
        again = program()
        for name, values in outputs.items():
            assert np.array_equal(values, again[name])
    finally:
        engine.close()
