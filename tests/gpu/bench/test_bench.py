"""The benchmark's own arithmetic, its page, and a real run on the simulator, small."""

from __future__ import annotations

import dataclasses
import re
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from gpu import engines
from gpu.bench import gpu_benchmark, programs, simulator_benchmark
from gpu.bench.ladder import compute_amount, measure, prepare_case, prepare_cases_ahead
from gpu.bench.measurement import Measurement, format_table
from gpu.bench.pages.document import write_section
from gpu.bench.peers import GPU, TIMERS, CaseSelection
from gpu.bench.programs import PeerPrograms
from gpu.bench.recording_engine import RecordingEngine
from gpu.cli import main as cli
from gpu.declaration.benchmark import Case, CudaProgram, random_image
from gpu.declaration.pattern import Pattern
from gpu.engines.base import PhaseTimes, kernel_text
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import all_patterns, find_pattern
from tests.gpu.cli.no_desktop import NO_WINDOW

OURS = Measurement("sum", "Naive", True, (2.0, 4.0, 3.0), 6.0, "GB/s", "verified")
PEER = Measurement("sum", "Library", False, (1.5, 1.5), 6.0, "GB/s")
MISSING = Measurement("sum", "Other", False, (), 0.0, "", "not installed here")


def test_a_rate_is_that_of_the_median() -> None:
    assert OURS.median_ms == 3.0
    assert OURS.rate == pytest.approx(2000.0)
    assert MISSING.median_ms is None
    assert MISSING.rate is None


def test_the_table_compares_with_the_best_peer() -> None:
    lines = format_table([OURS, PEER, MISSING]).splitlines()
    assert "| **Naive** | 3.000 | 2 to 4 | 2,000 GB/s | 0.50 x | verified |" in lines[2]
    assert "1.00 x" in lines[3]
    assert lines[4].endswith("| not installed here |")


def test_a_section_replaces_its_own_and_keeps_the_others(tmp_path) -> None:
    page = tmp_path / "docs" / "page.md"
    write_section(page, "GPU", "first device", format_table([OURS]))
    write_section(page, "Simulator", "a processor", format_table([PEER]))
    write_section(page, "GPU", "second device", format_table([OURS]))
    text = page.read_text()
    assert text.startswith("# Benchmarks")
    assert "first device" not in text
    assert text.index("## GPU: second device") < text.index("## Simulator: a processor")
    assert text.count("## ") == 2


def test_every_correct_variant_is_verified_and_timed_again(engine) -> None:
    case = Case("small", make_inputs=random_image(64, 64))
    rows = list(measure(engine, prepare_case(find_pattern("histogram"), case, 1), 2))
    assert [row.name for row in rows] == [
        "Atomics, block partition",
        "Atomics, interleaved",
        "Privatized",
        "Privatized and aggregated",
        "Written out, then merged",
        "Through a texture",
        "Peak",
    ]
    assert all(row.remark == "verified" and len(row.times_ms) == 2 and min(row.times_ms) > 0 for row in rows)
    assert rows[0].amount == pytest.approx((64 * 64 + 4 * 256) / 1e9)


def test_a_variant_that_cannot_take_the_filter_is_left_out() -> None:
    engine = engines.create_engine("simulator")
    for name, there in (("gaussian", True), ("laplacian", False)):
        case = Case("small", {"filter": name, "size": 3}, random_image(9, 9), ("separable", "peak"))
        rows = measure(engine, prepare_case(find_pattern("convolution"), case, 1), 1)
        assert ("Separable" in [row.name for row in rows]) is there


def test_cases_are_prepared_in_order_and_so_many_of_them_before_they_are_measured() -> None:
    pattern, begun = find_pattern("histogram"), []

    def sized(side: int) -> Case:
        def make(generator: np.random.Generator) -> dict[str, Any]:
            begun.append(side)
            return dict(random_image(side, side)(generator))

        return Case(f"{side}", make_inputs=make)

    found = prepare_cases_ahead([(pattern, sized(side)) for side in range(1, 7)], 1, 2)
    first = next(found)
    assert (first.case.work, first.inputs["image"].shape, int(first.expected.reference.sum())) == ("1", (1, 1), 1)
    assert [each.case.work for each in found] == ["2", "3", "4", "5", "6"]
    del begun[:]
    found = prepare_cases_ahead([(pattern, sized(side)) for side in range(1, 7)], 1, 2)
    next(found)
    found.close()
    assert sorted(begun) == [1, 2, 3]


def test_what_is_right_is_worked_out_once_for_all_variants() -> None:
    pattern, asked = find_pattern("scan"), []

    def tolerance(inputs: Any, params: Any) -> Any:
        asked.append(params["n"])
        return pattern.tolerance(inputs, params)

    prepared = prepare_case(dataclasses.replace(pattern, tolerance=tolerance), Case("small", {"n": 40}), 1)
    assert len(list(measure(engines.create_engine("simulator"), prepared, 1))) > 3
    assert asked == [40]


def test_a_wrong_result_is_not_timed(monkeypatch) -> None:
    monkeypatch.setattr("gpu.bench.ladder.verification.compare_results", lambda *arguments: (None, False))
    case = Case("small", make_inputs=random_image(8, 8))
    (row, *_) = measure(engines.create_engine("simulator"), prepare_case(find_pattern("histogram"), case, 1), 2)
    assert row.times_ms == ()
    assert "WRONG" in row.remark


def test_a_kernel_that_does_not_compile_is_told_and_the_others_are_timed() -> None:
    engine = engines.create_engine("simulator", "lockstep")
    engine.sources = {"nbody.cu": "#ifdef THREADS_PER_BODY\n#error none\n#endif\n" + kernel_text("nbody.cu", {})}
    case = Case("small", {"bodies": 64, "steps": 0})
    rows = {row.name: row for row in measure(engine, prepare_case(find_pattern("nbody"), case, 1), 1)}
    failed = rows.pop("Several threads per body")
    assert "none" in failed.remark
    assert not failed.times_ms
    assert len(rows) > 3
    assert all(row.remark == "verified" and row.times_ms for row in rows.values())


def test_a_replay_repeats_fills_and_launches_on_buffers_that_were_given_up() -> None:
    recorder = RecordingEngine(engines.create_engine("simulator"))
    module = recorder.build("histogram.cu", {"PIXEL": "unsigned char", "LEVELS": 256})
    pixels = recorder.upload(np.full(1000, 7, np.uint8))
    counts = recorder.allocate((256,), np.uint32)
    recorder.fill(counts, 0)
    kernel = module.kernel("histogram_interleaved")
    recorder.launch(kernel, (2, 1, 1), (64, 1, 1), pixels, counts, np.int32(1000), np.int32(256))
    recorder.free(pixels)
    assert len(recorder.replay(3, warm_up=1)) == 3
    assert recorder.download(counts)[7] == 1000  # each round began with the fill
    recorder.finish()
    assert recorder.replay(1, warm_up=0) == (0.0,)


def test_a_gpu_times_the_launches_of_a_repetition_together() -> None:
    """Its peers do: with a cold cache before each launch, a sort's passes would be timed longer than a program's."""
    told: list[str] = []

    class Sequencing(SimulatorEngine):
        @contextmanager
        def time_as_sequence(self):
            told.append("begin")
            yield
            told.append("end")

        def fill(self, buffer, value):
            super().fill(buffer, value)
            told.append("fill")

        def call(self, routine, *buffers):
            pass

        def launch(self, kernel, *rest, **more):
            super().launch(kernel, *rest, **more)
            told.append(kernel.name)

    recorder = RecordingEngine(Sequencing())
    pixels, counts = recorder.upload(np.full(10, 7, np.uint8)), recorder.allocate((256,), np.uint32)
    kernel = recorder.build("histogram.cu").kernel("histogram_interleaved")
    recorder.fill(counts, 0)
    recorder.launch(kernel, (1, 1, 1), (64, 1, 1), pixels, counts, np.int32(10), np.int32(256))
    del told[:]
    recorder.replay(1, warm_up=1)
    assert told == ["begin", "fill", "histogram_interleaved", "end"] * 2
    recorder.call(lambda library, array: None, counts)
    del told[:]
    recorder.replay(1, warm_up=0)
    assert told == ["fill", "histogram_interleaved"], "a library's call times itself"
    recorder.finish()


def test_what_takes_seconds_is_timed_less_often() -> None:
    class Slow(SimulatorEngine):
        def take_times(self):
            return PhaseTimes(kernel=700.0)

    recorder = RecordingEngine(Slow())
    assert len(recorder.replay(9, warm_up=1)) == 5
    assert len(recorder.replay(2, warm_up=1)) == 2


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(simulator_benchmark, "run", lambda seed, repetitions: iter([OURS, PEER]))
    page = tmp_path / "page.md"
    arguments = ["bench", "simulator", "--document", str(page), "--repetitions", "2", "--seed", "5"]
    assert cli.main(arguments, NO_WINDOW) == 0
    assert "Median of 2, seed 5." in page.read_text()
    assert "Naive" in capsys.readouterr().out


def test_the_page_says_how_long_the_window_takes_to_open(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(simulator_benchmark, "run", lambda seed, repetitions: iter([OURS, PEER]))
    asked = []

    def openings(repetitions: int):
        asked.append(repetitions)
        return [SimpleNamespace(wall_ms=1500.0, cpu_ms=700.0 + number) for number in range(3)]

    def refuse(repetitions: int):
        raise RuntimeError("no Qt")

    for open_window, told in (
        (openings, "701 ms of computing in its process; goal: at most 800"),
        (refuse, "failed: no Qt"),
    ):
        page = tmp_path / "page.md"
        arguments = ["bench", "simulator", "--document", str(page)]
        assert cli.main(arguments, NO_WINDOW._replace(measure_openings=open_window)) == 0
        (row,) = (line for line in page.read_text().splitlines() if "first picture" in line)
        assert told in row
        assert ("1500.000" in row) is (open_window is openings)
    assert asked == [5]


def test_a_wrong_variant_fails_the_command(tmp_path, monkeypatch) -> None:
    wrong = Measurement("sum", "Naive", True, (), 1.0, "GB/s", "WRONG, so not timed")
    monkeypatch.setattr(simulator_benchmark, "run", lambda seed, repetitions: iter([wrong]))
    arguments = ["bench", "simulator", "--document", str(tmp_path / "page.md")]
    assert cli.main(arguments, NO_WINDOW) == 1


def test_no_repetitions_are_refused(capsys) -> None:
    assert cli.main(["bench", "simulator", "--repetitions", "0"], NO_WINDOW) == 2
    assert "--repetitions must be a whole number from 1" in capsys.readouterr().err


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_every_case_is_one_that_its_pattern_takes(pattern: Pattern) -> None:
    benchmark = pattern.benchmark
    for cases in (benchmark.gpu, benchmark.compiled, benchmark.lockstep):
        assert len({case.work for case in cases}) == len(cases)
        for case in cases:
            pattern.check(case.params)
            for variant in case.variants:
                pattern.variant(variant)
            assert {*case.libraries} <= {*TIMERS}
            for program in case.programs:
                assert (Path(gpu_benchmark.__file__).parent / "peer_programs" / program.file).is_file()
    assert benchmark.gpu
    for variant in benchmark.goals:
        pattern.variant(variant)


def test_no_two_patterns_measure_the_same_work() -> None:
    works = [case.work for pattern in all_patterns().values() for case in pattern.benchmark.gpu]
    assert len(set(works)) == len(works)


def test_libraries_that_cannot_run_have_rows_with_the_reason(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    rows = list(gpu_benchmark._measure_libraries(CaseSelection(GPU), {}, 1, 1))
    assert [(row.work, row.name, row.is_variant, row.times_ms) for row in rows] == [
        ("peers", library, False, ()) for library in TIMERS
    ]
    assert all(row.remark and "argument" not in row.remark for row in rows)


def test_a_program_that_cannot_be_compiled_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / "none"))
    monkeypatch.setattr("gpu.bench.programs.find_newest_headers", lambda: None)  # which may be installed here
    case = Case("work", programs=(CudaProgram("CUB", "cub.cu", ("reduce", 8), prints_version=True),))
    (row,) = PeerPrograms((case,), tmp_path).run({"work": (1.0, "GB/s")}, 1, 2)
    assert (row.name, row.times_ms) == ("CUB", ())
    assert row.remark.startswith("failed: ")


@pytest.mark.parametrize("versioned", [True, False])
def test_a_program_tells_its_times(tmp_path, monkeypatch, versioned) -> None:
    compiler = tmp_path / "nvcc"
    version = "1.2.3 " if versioned else ""
    # It "compiles" a program that prints two times, of which the last is the number of repetitions that it was given.
    compiler.write_text(f'#!/bin/sh\nfor last; do :; done\nprintf \'#!/bin/sh\\necho {version}1.5 $5\\n\' > "$last"\n'
                        'chmod +x "$last"\n')  # fmt: skip
    compiler.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(compiler))
    monkeypatch.setattr("gpu.bench.programs.find_newest_headers", lambda: None)  # which may be installed here
    case = Case("work", programs=(CudaProgram("CUB", "cub.cu", ("reduce", 8), prints_version=versioned),))
    (row,) = PeerPrograms((case,), tmp_path).run({"work": (3.0, "GB/s")}, 1, 2)
    assert row == Measurement("work", "CUB 1.2.3" if versioned else "CUB", False, (1.5, 2.0), 3.0, "GB/s")


def test_what_is_left_early_compiles_no_more_and_what_was_run_is_left_in_peace(tmp_path, monkeypatch) -> None:
    compiler = tmp_path / "nvcc"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\nprintf "#!/bin/sh\\necho 1\\n" > "$last"\nchmod +x "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(compiler))
    case = Case("work", programs=(CudaProgram("who", "gravity.cu", ()),))
    with PeerPrograms((case,), tmp_path) as programs:
        assert [row.times_ms for row in programs.run({}, 1, 2)] == [(1.0,)]
    pid = tmp_path / "pid"
    compiler.write_text(f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 600\n")
    with PeerPrograms((case,), tmp_path):
        while not pid.exists():
            time.sleep(0.01)
    assert not psutil.pid_exists(int(pid.read_text()))


def test_a_program_is_compiled_with_its_own_options(tmp_path, monkeypatch) -> None:
    compiler = tmp_path / "nvcc"
    # It "compiles" a program that prints how many options it was compiled with.
    compiler.write_text('#!/bin/sh\nfor last; do :; done\nprintf "#!/bin/sh\\necho $#\\n" > "$last"\n'
                        'chmod +x "$last"\n')  # fmt: skip
    compiler.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(compiler))
    plain, fast = (CudaProgram("who", "gravity.cu", (1, 8), options=given) for given in ((), ("-ftz=true",)))
    rows = [*PeerPrograms((Case("work", programs=(plain, fast)),), tmp_path).run({}, 1, 2)]
    assert rows[1].times_ms[0] == rows[0].times_ms[0] + 1


def test_a_program_with_a_version_is_measured_with_the_newest_headers_too(tmp_path, monkeypatch) -> None:
    compiler = tmp_path / "nvcc"
    # It "compiles" a program that prints the folder of headers as its version.
    compiler.write_text('#!/bin/sh\nfor last; do case "$last" in -I*) at="$last";; esac; done\n'
                        'printf "#!/bin/sh\\necho ${at:-0} 1\\n" > "$last"\nchmod +x "$last"\n')  # fmt: skip
    compiler.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(compiler))
    headers = tmp_path / "site" / "nvidia" / "cu99" / "include" / "cccl"
    (headers / "cub").mkdir(parents=True)
    (headers / "cub" / "version.cuh").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    case = Case(
        "work", programs=(CudaProgram("CUB", "cub.cu", (), prints_version=True), CudaProgram("who", "gravity.cu", ()))
    )
    rows = [*PeerPrograms((case,), tmp_path).run({}, 1, 2)]
    assert [row.name for row in rows] == ["CUB 0", f"CUB -I{headers.resolve()}", "who"]


def test_peer_programs_include_files_that_exist() -> None:
    """Without nvcc on the machine that measures, a missing file shows only as a peer that failed."""
    sources = [*Path(programs.__file__).with_name("peer_programs").iterdir()]
    included = [
        (source, source.parent / name)
        for source in sources
        for name in re.findall(r'^#include "([^"]+)"', source.read_text("utf-8"), re.MULTILINE)
    ]
    assert {source.name for source, _ in included} == {source.name for source in sources}
    assert [str(path) for _, path in included if not path.is_file()] == []


def test_bodies_are_counted_by_20_operations_an_interaction() -> None:
    pattern = find_pattern("nbody")
    params = pattern.check({"preset": "plummer", "bodies": 100})
    assert compute_amount(pattern, pattern.prepare_inputs({}, params, 1), params) == (20 * 100**2 / 1e9, "GFLOP/s")


def test_what_is_overwritten_is_uploaded_anew_for_each_repetition() -> None:
    seen = []

    class Watched(SimulatorEngine):
        def launch(self, kernel, grid, block, *arguments, shared_bytes=0):
            seen.append(self.download(arguments[0]).tolist())
            super().launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

    recorder = RecordingEngine(Watched("lockstep"))
    values = np.array([3, 1, 2], np.int32)
    sort = find_pattern("sort")
    for _ in sort.variant("bitonic").run(recorder, {"values": values}, sort.check({"input": "file", "block": 8})):
        pass
    recorder.replay(2, 1, restore_inputs=True)
    assert seen == [[3, 1, 2]] * 4
    recorder.replay(1, 1)
    assert seen[4:] == [[1, 2, 3]] * 2
    recorder.finish()


def test_a_librarys_calls_are_repeated_too() -> None:
    called = []

    class Calling(SimulatorEngine):
        def call(self, routine, *buffers):
            called.append(self.download(buffers[0]).tolist())

    recorder = RecordingEngine(Calling())
    values = recorder.upload(np.array([3, 1], np.int32))
    recorder.call(lambda library, array: None, values)
    recorder.replay(2, 1, restore_inputs=True)
    assert called == [[3, 1]] * 4
    recorder.finish()
