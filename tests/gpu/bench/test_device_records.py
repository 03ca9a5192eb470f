"""What is measured over sizes, and the files that it is kept in."""

from __future__ import annotations

import gc
import json
import os
from dataclasses import replace
from itertools import count

import pytest

from gpu import engines
from gpu.base.errors import InputError
from gpu.bench import device_records, size_sweep
from gpu.bench.device_records import DeviceRecord, RecordedRun
from gpu.cli import main as cli
from gpu.declaration.benchmark import SizeCurve, powers_of_two
from gpu.declaration.pattern import Pattern
from gpu.declaration.roles import Role
from gpu.patterns import all_patterns, find_pattern
from tests.gpu.cli.no_desktop import NO_WINDOW

RUN = RecordedRun("scan", "naive", 1024, {}, 0.5, 0.4, 0.7, 11, 2.048, "Melement/s", 8192, True)
KEPT = DeviceRecord("NVIDIA H200", "2026-11-22", "570.1", "Median of 11.", (RUN, replace(RUN, size=2048)))


def small_pattern(name: str, *exponents: int, **params: object) -> Pattern:
    """Return a pattern that is measured at other sizes."""
    pattern = find_pattern(name)
    curve = replace(pattern.benchmark.curve, sizes=powers_of_two(*exponents), params=params)
    return replace(pattern, benchmark=replace(pattern.benchmark, curve=curve))


def measured(engine, *patterns: Pattern, **options) -> list[RecordedRun]:
    return list(size_sweep.run(engine, patterns, 1, 2, report=pytest.fail, **options))


@pytest.mark.parametrize("pattern", all_patterns().values(), ids=lambda pattern: pattern.name)
def test_every_pattern_has_three_sizes_that_it_takes(pattern: Pattern) -> None:
    curve = pattern.benchmark.curve
    assert len(curve.sizes) >= size_sweep.MIN_SIZES
    assert list(curve.sizes) == sorted(set(curve.sizes))
    assert all(size & (size - 1) == 0 for size in curve.sizes)
    if not pattern.is_image_pattern:
        params = pattern.check({**curve.params, **pattern.params_for_role(Role.SIZE, curve.sizes[-1])})
        assert pattern.value(params, Role.SIZE) == curve.sizes[-1]


def test_every_correct_variant_is_verified_and_timed_at_each_size(engine) -> None:
    runs = measured(engine, small_pattern("compaction", 5, 7), small_pattern("convolution", 4))
    names = [variant.name for variant in find_pattern("compaction").variants]
    assert [(run.variant, run.size) for run in runs if run.pattern == "compaction"] == [
        (name, size) for size in (32, 128) for name in names
    ]
    assert {run.size for run in runs if run.pattern == "convolution"} == {16}
    for run in runs:
        assert run.verified
        assert run.repetitions == 2
        assert 0 < run.min_ms <= run.median_ms <= run.max_ms
    first = runs[0]
    assert first.unit == "Melement/s"
    assert first.rate == pytest.approx(32 / first.median_ms / 1e3, rel=1e-3)


def test_settings_that_are_no_defaults_are_kept() -> None:
    (run, *_) = measured(engines.create_engine("simulator"), small_pattern("softmax", 5, rows=8))
    assert run.params == {"rows": 8}
    assert run.least_bytes == 2 * 4 * 32 * 8


def test_larger_sizes_are_left_out_where_the_time_does_not_suffice() -> None:
    engine = engines.create_engine("simulator")
    ticks = count(0, 10)  # each look at the clock finds it ten seconds later
    runs = measured(
        engine,
        small_pattern("compaction", 4, 5, 6, 7, 8),
        small_pattern("scan", 4, 5, 6, 7, 8),
        limit_s=100.0,
        clock=lambda: float(next(ticks)),
    )
    of_compaction = {run.size for run in runs if run.pattern == "compaction"}
    assert of_compaction == {16, 32, 64}, "three sizes are a curve, and there was no time for more"
    assert {run.size for run in runs if run.pattern == "scan"} == {16, 32, 64}
    runs = measured(engine, small_pattern("compaction", 4, 5, 6, 7), limit_s=100.0, clock=lambda: 0.0)
    assert {run.size for run in runs} == {16, 32, 64, 128}


def test_what_is_slow_is_not_measured_at_larger_sizes(monkeypatch) -> None:
    monkeypatch.setattr(size_sweep, "SLOW_MS", 0.0)
    assert {run.size for run in measured(engines.create_engine("simulator"), small_pattern("compaction", 4, 5))} == {16}


def test_a_wrong_result_is_not_timed(monkeypatch) -> None:
    monkeypatch.setattr("gpu.bench.ladder.verification.compare_results", lambda *arguments: (None, False))
    (first, *_) = measured(engines.create_engine("simulator"), small_pattern("compaction", 4))
    assert (first.verified, first.median_ms, first.rate) == (False, 0.0, 0.0)


def test_a_file_gives_back_what_was_written(tmp_path) -> None:
    path = tmp_path / "there" / "h200.json"
    device_records.write_record(path, KEPT)
    assert device_records.read_record(path) == KEPT
    assert json.loads(path.read_text())["device"] == "NVIDIA H200"
    assert device_records.read_record(path).label == "recorded on an NVIDIA H200, 2026-11-22"
    assert device_records.record_path("NVIDIA H200").name == "nvidia-h200.json"


def test_the_newest_measurements_come_first(tmp_path) -> None:
    device_records.write_record(tmp_path / "a.json", KEPT)
    device_records.write_record(tmp_path / "b.json", replace(KEPT, device="NVIDIA L4", date="2027-01-01"))
    assert [each.device for each in device_records.read_records(tmp_path)] == ["NVIDIA L4", "NVIDIA H200"]


def test_what_was_measured_again_is_read_again(tmp_path) -> None:
    device_records.write_record(tmp_path / "a.json", KEPT)
    assert device_records.read_records(tmp_path)[0].date == KEPT.date
    device_records.write_record(tmp_path / "a.json", replace(KEPT, date="2027-01-01"))
    os.utime(tmp_path / "a.json", (1, 1))  # however soon after the first
    assert device_records.read_records(tmp_path)[0].date == "2027-01-01"


def test_only_what_was_verified_is_shown() -> None:
    assert replace(KEPT, runs=(RUN, replace(RUN, verified=False))).verified_runs("scan") == (RUN,)
    assert KEPT.verified_runs("sort") == ()


@pytest.mark.usefixtures("only_new_garbage")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"runs": None}, "'NoneType'"),
        ({"device": 5}, "a text is missing"),
        ({"runs": [{}]}, "missing"),
        ({"runs": [{**vars(RUN), "median_ms": 0}]}, "a time of naive is not a positive number"),
        ({"runs": [{**vars(RUN), "rate": "fast"}]}, "a time of naive is not a positive number"),
        ({"runs": [{**vars(RUN), "size": 1000}]}, "1000 is not a power of two"),
        ({"other": 1}, "other"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(tmp_path, change, why) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({**vars(KEPT), "runs": [vars(RUN)], **change}))
    with pytest.raises(InputError, match=r"odd\.json does not contain recorded measurements: ") as refused:
        device_records.read_record(path)
    assert why in refused.value.message
    gc.collect()  # what goes while the deep text is read would have no stack left to go in
    for text in ("{", "[" * 100_000, json.dumps({**vars(KEPT), "runs": [{**vars(RUN), "rate": 10**400}]})):
        path.write_text(text)
        with pytest.raises(InputError, match="does not contain recorded"):
            device_records.read_record(path)


def test_what_the_project_has_recorded_is_of_its_own_patterns_and_variants() -> None:
    for each in device_records.read_records():
        for run in each.runs:
            pattern = find_pattern(run.pattern)
            pattern.variant(run.variant)
            pattern.check(run.params)
            assert run.min_ms <= run.median_ms <= run.max_ms


@pytest.fixture
def simulate_gpu(monkeypatch):
    """`bench gpu` with the simulator in the GPU's place, and one small pattern."""
    create = engines.create_engine
    monkeypatch.setattr(engines, "create_engine", lambda name: create("simulator"))
    pattern = small_pattern("compaction", 4, 5)
    monkeypatch.setattr("gpu.patterns.all_patterns", lambda: {"compaction": pattern})
    monkeypatch.setattr("gpu.base.devices.probe.driver_version", lambda: "570.1")


def test_the_command_writes_the_data(simulate_gpu, tmp_path, capsys) -> None:
    page, data = tmp_path / "page.md", tmp_path / "gpu.json"
    given = ["bench", "gpu", "--sweep", "--data", str(data), "--document", str(page), "--repetitions", "2"]
    assert cli.main(given, NO_WINDOW) == 0
    made = device_records.read_record(data)
    assert (made.driver, {run.size for run in made.runs}) == ("570.1", {16, 32})
    assert "Median of 2" in made.method
    assert not page.exists(), "a sweep leaves the page alone"
    assert "look-back" in capsys.readouterr().out


def test_the_page_comes_with_its_data(simulate_gpu, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gpu.bench.gpu_benchmark.run", lambda seed, repetitions: iter(()))
    page, data = tmp_path / "page.md", tmp_path / "gpu.json"
    assert cli.main(["bench", "gpu", "--data", str(data), "--document", str(page), "--seed", "7"], NO_WINDOW) == 0
    assert "## GPU" in page.read_text()
    assert "seed 7" in device_records.read_record(data).method


def test_a_wrong_variant_fails_the_command_and_is_not_kept(simulate_gpu, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("gpu.bench.ladder.verification.compare_results", lambda *arguments: (None, False))
    data = tmp_path / "gpu.json"
    assert (
        cli.main(["bench", "gpu", "--sweep", "--data", str(data), "--document", str(tmp_path / "page.md")], NO_WINDOW)
        == 1
    )
    assert device_records.read_record(data).runs == ()
    assert "WRONG" in capsys.readouterr().out


def test_a_sweep_is_of_a_gpu(capsys) -> None:
    assert cli.main(["bench", "simulator", "--sweep"], NO_WINDOW) == 2
    assert "--sweep and --data require `bench gpu`" in capsys.readouterr().err


def test_a_kernel_that_does_not_run_is_told(monkeypatch) -> None:
    told: list[str] = []
    engine = engines.create_engine("simulator")
    engine.sources = {"compact.cu": "#error none"}
    assert list(size_sweep.run(engine, [small_pattern("compaction", 4)], 1, 2, report=told.append)) == []
    assert len(told) == 3
    assert told[0].startswith("compaction three-kernels 16: ")


def test_a_pattern_without_sizes_is_passed_over() -> None:
    pattern = find_pattern("compaction")
    nothing = replace(pattern, benchmark=replace(pattern.benchmark, curve=SizeCurve()))
    assert measured(engines.create_engine("simulator"), nothing) == []


def test_compiling_takes_nobodys_time() -> None:
    # The smallest size, for which kernels are compiled, takes a thousand seconds.
    moments = iter([0.0, 0.0, 0.0])
    runs = measured(
        engines.create_engine("simulator"),
        small_pattern("compaction", 4, 5, 6, 7),
        limit_s=100.0,
        clock=lambda: next(moments, 1000.0),
    )
    assert {run.size for run in runs} == {16, 32, 64, 128}
