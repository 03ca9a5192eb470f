from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import (
    CompileError,
    EngineLostError,
    EngineUnavailableError,
    InputError,
    LaunchError,
    LockstepError,
    SourcePosition,
)
from gpu.base.paths import KERNELS
from gpu.declaration.pattern import Inputs, Outputs, Params, Progress, Variant, Work
from gpu.engines.base import Engine, PhaseTimes, kernel_text
from gpu.engines.null import NullEngine
from gpu.files import images
from gpu.messages.events import Failure
from gpu.messages.files import LoadArray, LoadImage, SaveArray
from gpu.messages.kernels import CheckSource
from gpu.messages.requests import Acknowledgment
from gpu.messages.runs.pattern_runs import CheckPattern, RunPattern, Throughput
from gpu.messages.runs.recordings import RecordingFile, StepPattern
from gpu.messages.shared_arrays import SharedFolder
from gpu.messages.verdicts import Remedy, decide_verdict
from gpu.patterns import all_patterns, find_pattern
from gpu.recording.recording import Recording
from gpu.run.handlers.execution import execute_request, to_failure
from gpu.run.kernel_check import check_variant
from gpu.run.pattern_run import compute_throughput, run_pattern
from gpu.run.workload import Workload
from tests.gpu.fake_engines import FAKE

IMAGE = np.arange(12, dtype=np.uint8).reshape(3, 4)


def ignore_progress(progress: Progress) -> None:
    pass


@pytest.fixture
def folder():
    made = SharedFolder()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _fake_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(all_patterns(), "fake", FAKE)


def run_as_variant(run: Callable[[Engine, Inputs, Params], Generator[Progress, None, Outputs]]) -> Variant:
    return replace(FAKE.variants[0], run=run)


class TimedEngine(NullEngine):
    """Has spent more time at every call since it was last asked."""

    def __init__(self) -> None:
        super().__init__()
        self.times = [PhaseTimes(9, 9, 9), PhaseTimes(1, 2, 3)]

    def take_times(self) -> PhaseTimes:
        return self.times.pop(0)


def test_a_run_gives_the_result_what_is_presented_and_the_report(folder: SharedFolder):
    request = RunPattern("fake", "only", inputs={"image": folder.put(IMAGE)})
    result = execute_request(TimedEngine(), request, folder, ignore_progress)
    assert set(result.arrays) == {"result", "picture"}
    assert result.arrays["result"] is result.arrays["picture"], "the same array is shared once"
    assert np.array_equal(result.arrays["result"].open(), IMAGE)
    report = result.report
    assert (report.pattern, report.engine, report.executor) == ("fake", "null", "null")
    assert (report.device, report.variant) == ("no device", "only")
    assert report.time_ms == PhaseTimes(1, 2, 3), "what was spent before this run does not count"
    assert report.throughput == Throughput(pytest.approx(12 / 0.002 / 1e6), "Mpixel/s")
    assert report.deviation is not None
    assert report.verified is True


def test_no_reference_is_computed_where_none_is_asked_for(folder: SharedFolder):
    request = RunPattern("fake", "only", inputs={"image": folder.put(IMAGE)}, verify=False)
    report = execute_request(NullEngine(), request, folder, ignore_progress).report
    assert report.deviation is None
    assert report.verified is None


@pytest.mark.parametrize("request_type", [RunPattern, CheckPattern, StepPattern])
def test_a_variant_that_cannot_take_the_parameters_says_why_and_runs_nothing(folder: SharedFolder, request_type):
    image = {"image": folder.put(IMAGE), "maxval": folder.put(np.array(255))}
    request = request_type("convolution", "separable", params={"filter": "laplacian", "size": 3}, inputs=image)
    with pytest.raises(InputError, match="is not separable into a row and a column") as raised:
        execute_request(NullEngine(), request, folder, ignore_progress)
    assert raised.value.advice == "Separable needs more than Convolution does: choose another variant."


def test_a_wrong_result_does_not_verify():
    def wrong(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        yield Progress(0.5)
        return {"result": inputs["image"] + np.uint8(1)}

    report = run_pattern(
        NullEngine(), Workload(FAKE, run_as_variant(wrong), {"image": IMAGE}, {}), ignore_progress
    ).report
    assert report.verified is False
    assert report.deviation is not None
    assert report.deviation.max_abs == 1.0


def test_what_does_not_go_together_is_refused_before_anything_runs():
    def refuse(inputs: Inputs, params: Params) -> None:
        raise InputError("Too much of a good thing.")

    def never(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        raise AssertionError("it ran")
        yield

    with pytest.raises(InputError, match="Too much"):
        run_pattern(
            NullEngine(),
            Workload(replace(FAKE, accept=refuse), run_as_variant(never), {"image": IMAGE}, {}),
            ignore_progress,
        )
    with pytest.raises(InputError, match="--deed is one of"):
        run_pattern(
            NullEngine(), Workload(FAKE, run_as_variant(never), {"image": IMAGE}, {"deed": "nap"}), ignore_progress
        )
    with pytest.raises(InputError, match="no parameter 'dead'"):
        run_pattern(
            NullEngine(), Workload(FAKE, run_as_variant(never), {"image": IMAGE}, {"dead": "copy"}), ignore_progress
        )


def test_progress_within_a_launch_fills_what_the_host_program_left_and_never_goes_back():
    def launches(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        yield Progress(0.2, "uploaded")
        engine.on_progress(0.5)
        yield Progress(0.5, "half")
        engine.on_progress(0.0)
        yield Progress(None, "waiting")
        return {"result": inputs["image"]}

    told: list[Progress] = []
    run_pattern(
        NullEngine(), Workload(FAKE, run_as_variant(launches), {"image": IMAGE}, {}), told.append, with_reference=False
    )
    assert [progress.message for progress in told] == ["uploaded", "uploaded", "half", "half", "waiting"]
    assert [progress.fraction for progress in told] == [0.2, *[pytest.approx(0.6)] * 3, None]


def test_edited_sources_and_the_progress_hook_last_for_one_run():
    engine = NullEngine()
    hook = engine.on_progress
    seen: list[dict[str, str]] = []

    def fails(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        seen.append(dict(engine.sources))
        yield Progress(0.1)
        raise LaunchError("no")

    with pytest.raises(LaunchError):
        run_pattern(
            engine,
            Workload(FAKE, run_as_variant(fails), {"image": IMAGE}, {}, sources={"fake.cu": "text"}),
            ignore_progress,
        )
    assert seen == [{"fake.cu": "text"}]
    assert engine.sources == {}
    assert engine.on_progress is hook


def test_a_host_program_that_is_interrupted_gives_back_what_it_holds():
    freed: list[str] = []

    def holds(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        try:
            yield Progress(0.1)
        finally:
            freed.append("buffer")
        return {"result": inputs["image"]}

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pattern(NullEngine(), Workload(FAKE, run_as_variant(holds), {"image": IMAGE}, {}), interrupt)
    assert freed == ["buffer"]


def test_throughput_is_in_millions_a_second_and_0_where_no_time_was_measured():
    assert compute_throughput(Work(3_000_000, "pixel"), PhaseTimes(kernel=2.0)) == Throughput(1500.0, "Mpixel/s")
    assert compute_throughput(Work(3_000_000, "pixel"), PhaseTimes()) == Throughput(0.0, "Mpixel/s")


def test_an_image_is_loaded_with_its_values_its_white_and_its_picture(folder: SharedFolder, tmp_path: Path):
    path = tmp_path / "deep.pgm"
    images.write_image(path, np.array([[0, 500], [1000, 250]], np.uint16), 1000)
    result = execute_request(NullEngine(), LoadImage(str(path)), folder, ignore_progress)
    assert result.arrays["image"].open().tolist() == [[0, 500], [1000, 250]]
    assert result.arrays["maxval"].open() == 1000
    assert result.arrays["picture"].open().dtype == np.uint8
    assert result.arrays["picture"].open().tolist() == [[0, 128], [255, 64]]


def test_numbers_are_loaded_as_one_array(folder: SharedFolder, tmp_path: Path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n0.5\n")
    result = execute_request(NullEngine(), LoadArray(str(path)), folder, ignore_progress)
    assert list(result.arrays) == ["values"]
    assert result.arrays["values"].open().tolist() == [3.0, 0.5]
    path.write_text("")
    assert execute_request(NullEngine(), LoadArray(str(path)), folder, ignore_progress).arrays[
        "values"
    ].open().shape == (0,)


def test_a_pattern_makes_the_input_that_it_is_not_given(folder: SharedFolder, monkeypatch: pytest.MonkeyPatch):
    making = replace(FAKE, make_input=lambda params, seed: {"image": IMAGE + np.uint8(seed)})
    monkeypatch.setitem(all_patterns(), "fake", making)
    made = execute_request(NullEngine(), RunPattern("fake", "only", seed=5), folder, ignore_progress)
    assert np.array_equal(made.arrays["result"].open(), IMAGE + np.uint8(5))
    request = RunPattern("fake", "only", inputs={"image": folder.put(IMAGE)}, seed=5)
    assert np.array_equal(
        execute_request(NullEngine(), request, folder, ignore_progress).arrays["result"].open(), IMAGE
    )


def test_a_pattern_that_makes_no_input_says_that_it_needs_one(folder: SharedFolder):
    with pytest.raises(InputError, match="Fake needs an image; none is open"):
        execute_request(NullEngine(), RunPattern("fake", "only"), folder, ignore_progress)


@pytest.mark.parametrize("ending", ["png", "npy", "csv", "pgm"])
def test_an_array_is_saved(folder: SharedFolder, tmp_path: Path, ending: str):
    path = tmp_path / f"out.{ending}"
    request = SaveArray(str(path), folder.put(IMAGE))
    assert execute_request(NullEngine(), request, folder, ignore_progress) == Acknowledgment()
    match ending:
        case "npy":
            found = np.load(path)
        case "csv":
            found = np.loadtxt(path, delimiter=",")
        case _:
            found = images.read_image(path).pixels
    assert np.array_equal(found, IMAGE)


def test_where_results_do_not_fit_none_is_left(folder: SharedFolder, monkeypatch: pytest.MonkeyPatch):
    put, count = folder.put, iter(range(9))

    def full_at_the_second(values: np.ndarray):
        if next(count) == 1:
            raise InputError("There is no room.")
        return put(values)

    def two(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
        return {"picture": outputs["result"].copy()}

    request = RunPattern("fake", "only", inputs={"image": put(IMAGE)})
    monkeypatch.setitem(all_patterns(), "fake", replace(FAKE, present=two))
    monkeypatch.setattr(folder, "put", full_at_the_second)
    with pytest.raises(InputError):
        execute_request(NullEngine(), request, folder, ignore_progress)
    assert [path.name for path in Path(folder.path).iterdir()] == ["host-0"]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (InputError("bad", advice="mend it"), Failure("input", "bad", "mend it")),
        (LockstepError("odd"), Failure("input", "odd")),
        (EngineUnavailableError("gone", advice="get one"), Failure("engine", "gone", "get one")),
        (
            CompileError("';' is missing", position=SourcePosition("a.cu", 3, 7), detail="log"),
            Failure("compile", "';' is missing", "", "log", SourcePosition("a.cu", 3, 7)),
        ),
        (
            LaunchError("out of bounds", position=SourcePosition("a.cu", 3)),
            Failure("launch", "out of bounds", "", "", SourcePosition("a.cu", 3)),
        ),
        (EngineLostError("illegal address", advice="check"), Failure("launch", "illegal address", "check")),
    ],
)
def test_errors_become_plain_data(error: LockstepError, failure: Failure):
    assert to_failure(error) == failure


def test_what_nobody_thought_of_carries_its_traceback():
    try:
        raise ZeroDivisionError("at last")
    except ZeroDivisionError as error:
        failure = to_failure(error)
        assert failure.detail == traceback.format_exc()
    assert failure.kind == "bug"
    assert failure.message == "Internal error in Lockstep: ZeroDivisionError: at last"
    assert failure.advice


def test_too_little_memory_is_told_in_a_sentence():
    failure = to_failure(MemoryError("Unable to allocate 3. TiB for an array with shape (1, 2)"))
    assert failure.message == "There is not enough memory for this."
    assert "smaller input" in failure.advice


def test_a_text_is_checked_as_if_it_were_the_file(folder) -> None:
    request = CheckSource("histogram.cu", "__global__ void f(int *a) {\n    a[0] = tix;\n}\n")
    result = execute_request(NullEngine(), request, folder, ignore_progress)
    assert [(each.line, each.message) for each in result] == [(2, "use of undeclared identifier 'tix'")]
    text = "#ifdef N\n#error N\n#endif\n"
    assert execute_request(NullEngine(), CheckSource("mine.cu", text), folder, ignore_progress) == ()
    assert execute_request(NullEngine(), CheckSource("mine.cu", text, {"N": 1}), folder, ignore_progress)


def test_stepping_gives_a_recording_whose_file_is_one_of_the_results(folder: SharedFolder):
    image = np.array([[1, 1, 3]], np.uint8)
    inputs = {"image": folder.put(image), "maxval": folder.put(np.array(255, np.uint8))}
    request = StepPattern("histogram", "interleaved", {"bins": 4}, inputs)
    result = execute_request(NullEngine(), request, folder, ignore_progress)
    assert result.path == result.arrays["recording"].path
    recording = Recording.load(result.path)
    assert recording.failure == ""
    (launch,) = recording.launches
    assert launch.trace.array("bins", launch.count).tolist() == [3, 0, 0, 0]
    assert "__global__" in recording.text("histogram.cu")
    folder.discard(result.arrays["recording"])
    assert recording.launches[0].trace.kernel


def step_histogram(folder: SharedFolder, change: str) -> RecordingFile:
    """Step a histogram of which the line before the counting is changed."""
    inputs = {"image": folder.put(IMAGE), "maxval": folder.put(np.array(255, np.uint8))}
    text = kernel_text("histogram.cu", {}).replace("    int start =", f"    {change}\n    int start =")
    request = StepPattern("histogram", "block-partition", {}, inputs, sources={"histogram.cu": text})
    return execute_request(NullEngine(), request, folder, ignore_progress)


def test_stepping_shows_a_mistake_up_to_where_it_happens(folder: SharedFolder):
    recording = Recording.load(step_histogram(folder, "bins[n * 10000] = 0;").path)
    assert "Invalid __global__ write" in recording.failure
    last = recording.launches[-1].trace.events[-1].position
    assert "bins[n * 10000]" in recording.text(last.file).splitlines()[last.line - 1]


def test_stepping_what_does_not_compile_gives_no_recording(folder: SharedFolder):
    with pytest.raises(CompileError, match="nowhere"):
        step_histogram(folder, "nowhere = 0;")


def test_stepping_checks_what_it_is_given(folder: SharedFolder):
    with pytest.raises(InputError, match="no parameter 'levels'"):
        execute_request(NullEngine(), StepPattern("histogram", "interleaved", {"levels": 3}), folder, ignore_progress)


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (("", ""), None),
        (("if (x >= width || y >= height) return;", ""), "out-of-bounds"),
        (("++dy", "dy += 0"), "unfinished"),
    ],
)
def test_a_pattern_is_checked_before_an_edited_kernel_runs_on_a_gpu(folder, edit, kind, monkeypatch) -> None:
    monkeypatch.setattr("gpu.engines.checking_engine.MAXIMUM_ROUNDS", 500)
    text = (KERNELS / "convolution.cu").read_text()
    assert edit[0] in text
    image = np.arange(300 * 200, dtype=np.uint8).reshape(200, 300)
    inputs = {"image": folder.put(image), "maxval": folder.put(np.array(255, np.uint8))}
    edited = text.replace(edit[0], edit[1]) if edit[0] else text
    request = CheckPattern("convolution", "naive", {"size": 3}, inputs, sources={"convolution.cu": edited})
    check = execute_request(NullEngine(), request, folder, ignore_progress)
    found = check.diagnostics
    if kind is None:
        assert check.clean
        assert found == ()
        return
    assert check.ended
    assert check.mistakes[0].kind == kind
    assert check.remedy is None
    lines = edited.split("\n")
    assert {each.severity for each in found} == {"error"}
    if kind == "out-of-bounds":
        assert "Invalid __global__" in found[0].message
        assert "[" in lines[found[0].line - 1]
    else:
        assert "for (int d" in lines[found[0].line - 1]


def test_a_check_finds_a_race_and_reads_of_what_nobody_wrote_in_a_small_part_of_the_input() -> None:
    text = (KERNELS / "reduction.cu").read_text()
    pattern = find_pattern("reduction")
    variant = pattern.variant("shared")
    assert check_variant(Workload(pattern, variant, {}, {"n": 2**28}), ignore_progress)[0] == []
    racy = check_variant(
        Workload(pattern, variant, {}, {"n": 2**28}, sources={"reduction.cu": text.replace("__syncthreads();", "")}),
        ignore_progress,
    )[0]
    assert {finding.kind for finding in racy} >= {"race"}


def barrier_lines(text: str, kernel: str) -> list[int]:
    """Return the lines of a kernel's barriers, from 1."""
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines, 1) if kernel in line)
    last = next(number for number, line in enumerate(lines[first:], first + 1) if line == "}")
    return [number for number in range(first, last) if "__syncthreads();" in lines[number - 1]]


@pytest.mark.parametrize(
    ("name", "variant", "kernel", "params"),
    [("reduction", "interleaved", "reduce_interleaved(", {}), ("scan", "kogge-stone", "scan_kogge_stone(", {}),
     ("matmul", "tiled", "matmul_tiled(", {"n": 21, "tile": "8"})],
)  # fmt: skip
def test_every_barrier_that_is_taken_out_is_missed_and_one_put_back_mends_it(name, variant, kernel, params) -> None:
    pattern = find_pattern(name)
    file = pattern.kernel_file_of(variant)
    text = (KERNELS / file).read_text()
    taken = barrier_lines(text, kernel)
    assert taken
    for line in taken:
        lines = text.split("\n")
        lines[line - 1] = lines[line - 1].replace("__syncthreads();", "")
        sources = {file: "\n".join(lines)}
        chosen = pattern.variant(variant)
        findings, check = check_variant(Workload(pattern, chosen, {}, params, sources=sources), ignore_progress)
        assert {each.kind for each in findings} == {"race"}, line
        assert check.differing, "another order tells"
        assert decide_verdict(True, edited=True, check=check).kind == "flawed"
        assert check.remedy is not None
        mended = "\n".join([*lines[: check.remedy.line - 1], check.remedy.text, *lines[check.remedy.line - 1 :]])
        again = check_variant(Workload(pattern, chosen, {}, params, sources={file: mended}), ignore_progress)[1]
        assert again.clean, line


@pytest.mark.parametrize(
    ("name", "variant", "taken"),
    [
        ("sort", "odd-even", "        __syncthreads();\n"),  # on 4999 keys it took too long, and was said not to end
        ("sort", "bitonic", "            __syncthreads();\n"),  # what races stands in a function that the loop calls
        ("reduction", "unrolled", "        __syncwarp();\n"),
        ("reduction", "last-block", "        __threadfence();\n"),
        ("reduction", "peak", "        __threadfence();\n"),  # on little its race is not seen
    ],
)
def test_what_was_taken_out_of_a_ladder_is_offered_where_it_stood(name: str, variant: str, taken: str) -> None:
    pattern = find_pattern(name)
    file = pattern.kernel_file_of(variant)
    text = (KERNELS / file).read_text()
    start = text.index("void finish(") if "fence" in taken else text.index(pattern.variant(variant).kernels[0] + "(")
    at = text.index(taken, start)
    sources = {file: text[:at] + taken.replace("__", "// __") + text[at + len(taken) :]}
    check = check_variant(Workload(pattern, pattern.variant(variant), {}, {}, sources=sources), ignore_progress)[1]
    assert {each.kind for each in check.mistakes} == {"race"}
    line = text[:at].count("\n") + 1
    assert check.remedy == Remedy(f"Insert {taken.strip()} before line {line}", line, taken.rstrip("\n"))


def test_a_race_between_blocks_is_looked_for_where_there_are_several() -> None:
    """One block of the last rung counts 16 KB, of which a small part of an image has less."""
    pattern = find_pattern("histogram")
    variant, maxval = pattern.variant("peak"), np.array(255, np.uint8)
    large, small = (np.random.default_rng(5).integers(0, 256, shape, np.uint8) for shape in ((240, 320), (96, 128)))
    text = (KERNELS / "histogram.cu").read_text()
    for taken in ("__syncthreads();", "__threadfence();"):
        at = text.index(taken, text.index("void move_sums("))
        sources = {"histogram.cu": text[:at] + text[at + len(taken) :]}
        found, check = check_variant(
            Workload(pattern, variant, {"image": large, "maxval": maxval}, {}, sources=sources), ignore_progress
        )
        assert {each.kind for each in found} == {"race"}, taken
        assert check.remedy is not None
        assert check.remedy.text.strip() == taken
        alone = check_variant(
            Workload(pattern, variant, {"image": small, "maxval": maxval}, {}, sources=sources), ignore_progress
        )[1]
        assert alone.clean, "all of it is one block's"


@pytest.mark.parametrize(
    ("variant", "dtype", "taken", "kinds", "is_offered"),
    [
        ("peak", "float32", "__pipeline_wait_prior(STAGES - 2);", {"race", "uninitialized"}, False),
        # A stage of halves is filled again in a tile's third step, while products may still read it.
        pytest.param(
            "warpgroups",
            "float16",
            'asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");',
            {"race"},
            True,
            marks=pytest.mark.sweep,
        ),
    ],
)
def test_a_wait_that_is_missing_in_a_later_step_is_found(
    variant: str, dtype: str, taken: str, kinds: set[str], is_offered: bool
) -> None:
    pattern = find_pattern("matmul")
    file = pattern.kernel_file_of(variant)
    before, _, after = (KERNELS / file).read_text().rpartition(taken)
    sources = {file: before + after}
    found, check = check_variant(
        Workload(pattern, pattern.variant(variant), {}, {"dtype": dtype}, sources=sources), ignore_progress
    )
    assert {each.kind for each in found} == kinds
    assert (check.remedy is not None and check.remedy.text.strip() == taken) is is_offered


@pytest.mark.parametrize(
    ("variant", "size"), [("tiled", "n = 67"), pytest.param("warpgroups", "n = 33", marks=pytest.mark.sweep)]
)
def test_what_takes_long_is_not_called_endless(variant: str, size: str) -> None:
    """Warpgroups' tiles took longer before the checkers' eyes than an endless kernel may."""
    pattern = find_pattern("matmul")
    file = pattern.kernel_file_of(variant)
    sources = {file: (KERNELS / file).read_text() + "\n"}
    check = check_variant(Workload(pattern, pattern.variant(variant), {}, {}, sources=sources), ignore_progress)[1]
    assert check.clean
    assert check.input == size


@pytest.mark.parametrize("gone", ["// __syncthreads();", ""])
@pytest.mark.parametrize(("block", "kind"), [("256", "unchecked"), ("512", "flawed")])
def test_what_does_not_run_at_a_size_of_blocks_is_not_verified_there(block: str, kind: str, gone: str) -> None:
    pattern = find_pattern("reduction")
    lines = (KERNELS / "reduction.cu").read_text().split("\n")
    place = next(place for place, line in enumerate(lines) if "if (t < 256)" in line) + 1
    assert lines[place].strip() == "__syncthreads();"
    sources = {"reduction.cu": "\n".join([*lines[:place], *([gone] if gone else []), *lines[place + 1 :]])}
    params = {"block": block}
    check = check_variant(Workload(pattern, pattern.variant("unrolled"), {}, params, sources=sources), ignore_progress)[
        1
    ]
    assert decide_verdict(True, edited=True, check=check).kind == kind
    assert check.unreached == ((place + 1,) if kind == "unchecked" else ())
    other = check_variant(Workload(pattern, pattern.variant("shared"), {}, params, sources=sources), ignore_progress)[1]
    assert decide_verdict(True, edited=True, check=other).kind == "verified", "it has another kernel"


def test_what_was_put_where_nothing_runs_is_not_verified() -> None:
    pattern = find_pattern("reduction")
    text = (KERNELS / "reduction.cu").read_text()
    edited = text.replace("        if (t < 512) s[t]", "        s[t] += 7;\n        if (t < 512) s[t]", 1)
    sources = {"reduction.cu": edited}
    check = check_variant(Workload(pattern, pattern.variant("unrolled"), {}, {}, sources=sources), ignore_progress)[1]
    assert check.unreached == (edited[: edited.index("s[t] += 7")].count("\n") + 1,)


def test_a_kernel_that_is_no_variant_s_is_not_verified_by_a_run_without_it() -> None:
    pattern = find_pattern("nbody")
    text = (KERNELS / "nbody.cu").read_text()
    at = text.index("__syncthreads();", text.index("nbody_potential("))
    sources = {"nbody.cu": f"{text[:at]}// {text[at:]}"}
    check = check_variant(
        Workload(pattern, pattern.variant("tiled"), {}, {"bodies": 64}, sources=sources), ignore_progress
    )[1]
    assert check.unreached == (text[:at].count("\n") + 1,)


@pytest.mark.parametrize("name", ["matmul", "softmax", "nbody"])
def test_an_input_that_was_made_before_is_cut_so_that_it_still_fits_together(name) -> None:
    pattern = find_pattern(name)
    variant = pattern.variants[1]
    file = pattern.kernel_file_of(variant.name)
    inputs = pattern.prepare_inputs({}, pattern.check({}), 0)
    sources = {file: (KERNELS / file).read_text() + "\n"}
    check = check_variant(Workload(pattern, variant, inputs, {}, sources=sources), ignore_progress)[1]
    assert check.clean


def test_a_race_between_blocks_has_no_barrier_that_mends_it() -> None:
    pattern = find_pattern("histogram")
    text = (KERNELS / "histogram.cu").read_text()
    racy = re.sub(r"atomicAdd\(&(bins\[.*\]), 1u\);", r"\1 += 1;", text)
    assert racy != text
    inputs = {"image": np.arange(40 * 30, dtype=np.uint8).reshape(30, 40), "maxval": np.array(255, np.uint8)}
    variant = pattern.variant("interleaved")
    findings, check = check_variant(
        Workload(pattern, variant, inputs, {}, sources={"histogram.cu": racy}), ignore_progress
    )
    assert {each.kind for each in findings} == {"race"}
    assert check.remedy is None


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        ("int *piece = new int(1); delete piece; *piece = 2;", "use-after-free"),
        ("if (threadIdx.x < 3) __syncwarp();", "warp-mask"),
        ("int *gone; { int inner; gone = &inner; } *gone = 1;", "use-after-scope"),
    ],
)
def test_a_check_finds_what_was_planted(planted: str, kind: str) -> None:
    text, pattern = (KERNELS / "reduction.cu").read_text(), find_pattern("reduction")
    edited = text.replace("__syncthreads();", f"{{ __syncthreads(); {planted} }}")
    sources = {"reduction.cu": edited}
    found = check_variant(
        Workload(pattern, pattern.variant("shared"), {}, {"n": 512}, sources=sources), ignore_progress
    )[0]
    assert kind in {finding.kind for finding in found}
    assert all(edited.split("\n")[place.line - 1].strip() for finding in found for place in finding.positions)


def test_a_text_that_does_not_compile_fails_the_check(folder) -> None:
    request = CheckPattern("reduction", "shared", {}, {}, sources={"reduction.cu": "int x = ;"})
    with pytest.raises(CompileError):
        execute_request(NullEngine(), request, folder, ignore_progress)
