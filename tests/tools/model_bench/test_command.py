"""The timing model's benchmark: what is measured is kept, what is compared is said."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy

from gpu.base.errors import InputError
from gpu.bench.pages.document import find_sections
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import all_patterns
from gpu.timing import validation
from gpu.timing.gpus import FOLDER, find_gpu, read_gpu
from tests import needs
from tools.model_bench import command, compare, foreign_kernels, measure
from tools.model_bench.__main__ import main
from tools.model_bench.gpu_description import format_gpu_description
from tools.model_bench.measured_times import (
    MeasuredCase,
    MeasuredLaunch,
    MeasuredTimes,
    TimedLaunch,
    combine_launches,
    load_times,
)

LAUNCH = MeasuredLaunch("k", (4, 1, 1), (64, 1, 1), 0, 1, 0.0, registers=20)


def shorten_benchmark(monkeypatch, pattern: str, cases: int = 1) -> None:
    """Leave one pattern, few cases of it, and no kernels from elsewhere but one that is small."""
    own = all_patterns()[pattern]
    short = dataclasses.replace(own.benchmark, timing_model_cases=own.benchmark.timing_model_cases[:cases])
    monkeypatch.setattr(measure, "all_patterns", lambda: {pattern: dataclasses.replace(own, benchmark=short)})
    small = next(case for case in foreign_kernels.all_cases() if case.kernel == "shortest_paths_round")
    monkeypatch.setattr(foreign_kernels, "all_cases", lambda: iter([small]))


def test_launches_that_are_alike_are_put_together() -> None:
    other = dataclasses.replace(LAUNCH, grid=(8, 1, 1))
    case = combine_launches(
        "p",
        "v",
        "w",
        [TimedLaunch(LAUNCH, (1.0, 3.0, 2.0)), TimedLaunch(other, (1.0,) * 3), TimedLaunch(LAUNCH, (2.0,) * 3)],
    )
    assert [(each.grid[0], each.launches, each.time_us) for each in case.launches] == [(4, 2, 4000.0), (8, 1, 1000.0)]
    assert (case.time_us, case.spread_us) == (5000.0, (4000.0, 6000.0))


def test_pairs_in_another_order_are_listed_where_measured_times_differ() -> None:
    """10 and 10.5 us have no order, and neither has a variant that is not modeled; 20 us are modeled as the least."""
    times = {"a": (10.0, 9.0), "b": (10.5, 8.5), "c": (12.0, 9.5), "d": (20.0, 7.0), "e": (30.0, None)}
    rows = [compare.ComparedCase(compare.OURS, "sort", name, "8 keys", *pair) for name, pair in times.items()]
    rows.append(compare.ComparedCase(compare.OURS, "sort", "a", "16 keys", 1.0, 50.0))
    rows.append(compare.ComparedCase(compare.EXTERNAL, "sort.cu", "d", "8 keys", 1.0, 60.0))
    pairs = {(fast.variant_or_kernel, slow.variant_or_kernel) for fast, slow in compare.find_ordered_pairs(rows)}
    assert pairs == {("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")}
    text = compare.format_tables(rows, "NVIDIA X")
    assert "| sort | 5 | 3 |" in text
    assert "| all | 5 | 3 |" in text
    assert "| a | d | 8 keys | 10.0, 20.0 | 9.0, 7.0 |" in text
    assert "| a | c | 8 keys" not in text


def test_what_was_measured_is_read_as_it_was_written(tmp_path) -> None:
    times = MeasuredTimes("a GPU", 7, (MeasuredCase("p", "v", "w", 2.0, (1.0, 3.0), (LAUNCH,)),))
    times.save(tmp_path / "times.json")
    assert load_times(tmp_path / "times.json") == times


def test_the_times_of_an_earlier_comparison_are_read_again(tmp_path) -> None:
    cases = (validation.ValidatedCase("ours", "p", "v", "w", 2.0, 1.5),)
    validation.write_validation(
        tmp_path / "cases.json", validation.Validation("h200", "a GPU", "2026-01-02", "ir", cases)
    )
    times = load_times(tmp_path / "cases.json")
    assert times.gpu == "a GPU"
    assert times.cases == (MeasuredCase("p", "v", "w", 2.0, (2.0, 2.0)),)
    assert times.remark == "The times were measured on 2026-01-02."
    rows = [compare.ComparedCase(compare.OURS, "p", "v", "w", 2.0, 1.5)]
    later = compare.build_validation(rows, "h200", times)
    assert later.date > "2026-01-02"
    validation.write_validation(tmp_path / "later.json", later)
    assert load_times(tmp_path / "later.json").remark == times.remark


class FakeRecorder:
    """What was measured in several tries, in the place of a recorder."""

    def __init__(self, *tries: tuple[float, ...]) -> None:
        self.tries = list(tries)

    def replay_separately(self, times: int, *, restore_inputs: bool) -> list[tuple[float, ...]]:
        return [tuple(each / 2 for each in self.tries[0]), tuple(each / 2 for each in self.tries.pop(0))]


def test_what_was_disturbed_is_measured_again() -> None:
    steady, late, later = (5.0, 5.2, 9.0), (8.0, 54.0, 60.0), (44.0, 54.5, 60.0)
    for tries, due, left in (
        ([steady, late], steady, 1),
        ([late, steady, late], steady, 1),
        ([later, late, later, steady], late, 1),
    ):
        found = FakeRecorder(*tries)
        assert measure.measure_steady_times(found, 3, restore_inputs=False) == [tuple(each / 2 for each in due)] * 2
        assert len(found.tries) == left
    assert measure.measure_steady_times(FakeRecorder(()), 3, restore_inputs=False) == [(), ()]


def test_the_page_says_what_was_disturbed() -> None:
    cases = [MeasuredCase("p", "v", "w", took, (1.0, 9.0)) for took in (1.1, 1.2, 9.0)]
    assert MeasuredTimes("a GPU", 7, tuple(cases[:1])).remark == ""
    remark = MeasuredTimes("a GPU", 7, tuple(cases)).remark
    assert remark.startswith("2 of the 3 cases were disturbed")
    rows = [compare.ComparedCase(compare.OURS, "reduction", "v", "n", 1.0, 1.1)]
    for text in (compare.format_tables(rows, "NVIDIA X", remark), compare.format_llvm_tables(rows, remark)):
        assert remark in text.replace("\n", " ")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "gpu": "x", "seed": 1, "cases": [{}]}']
)
def test_a_file_of_something_else_is_refused(tmp_path, text) -> None:
    (tmp_path / "times.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match="does not contain measured times"):
        load_times(tmp_path / "times.json")


def test_every_variant_and_kernel_is_measured_launch_by_launch(monkeypatch) -> None:
    shorten_benchmark(monkeypatch, "scan")
    engine = SimulatorEngine("compiled")
    found = list(measure.measure(engine, 1, 2))
    ours = [case.who for case in found if case.of == "scan"]
    assert ours == [variant.name for variant in all_patterns()["scan"].variants]
    three = next(case for case in found if case.who == "three-kernels")
    assert {launch.kernel for launch in three.launches} == {"scan_sections", "scan_add_back"}
    assert all(case.spread_us[0] <= case.time_us <= case.spread_us[1] for case in found)
    assert found[-1].of == "matrices.cu"


def test_a_profiler_sees_each_kernel_a_few_times(monkeypatch) -> None:
    shorten_benchmark(monkeypatch, "sort", 2)
    (sort,) = measure.all_patterns().values()
    variants = tuple(each for each in sort.variants if each.name in ("merge", "bitonic"))
    monkeypatch.setattr(measure, "all_patterns", lambda: {"sort": dataclasses.replace(sort, variants=variants)})
    looked: list[str] = []
    cases = list(
        measure.profile(SimulatorEngine("compiled"), 1, lambda: looked.append("<"), lambda: looked.append(">"))
    )
    assert "".join(looked) == "<>" * sum(len(case.launches) for case in cases)
    assert max(sum(one.kernel == each.kernel for one in case.launches) for case in cases for each in case.launches) == 2


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_compared_as_scipy_does(seed) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.permutation(20) + 1.0, rng.integers(1, 9, 20) + 0.0
    assert compare.spearman(list(one), list(other)) == pytest.approx(scipy.stats.spearmanr(one, other)[0])
    shuffled = rng.permutation(20) + 1.0
    assert compare.kendall(list(10**one), list(shuffled)) == pytest.approx(scipy.stats.kendalltau(one, shuffled)[0])


def test_what_measures_alike_has_no_order() -> None:
    assert compare.kendall([100.0, 101.0, 200.0], [2.0, 1.0, 3.0]) == 1.0


def test_a_ladder_without_an_order_is_left_out_of_the_mean() -> None:
    alike = [
        compare.ComparedCase(compare.OURS, "reduction", str(number), "16", 161.0, 160.0 + number)
        for number in (1, 2, 3)
    ]
    apart = [compare.ComparedCase(compare.OURS, "reduction", str(number), "32", number, number) for number in (1, 2, 4)]
    assert "| reduction |  | 6 | " in (text := compare.format_tables([*alike, *apart], "NVIDIA X"))
    assert " 1.00 | " in text
    assert "nan" not in text


def test_the_table_says_what_is_held_out_and_what_failed() -> None:
    rows = [
        compare.ComparedCase(compare.OURS, "reduction", str(number), "n", number, 1.1 * number) for number in (1, 2, 4)
    ]
    rows.append(compare.ComparedCase(compare.OURS, "sort", "quicksort", "n", 5.0, None, "not followed"))
    rows.append(compare.ComparedCase(compare.EXTERNAL, "memory.cu", "copy", "n", 5.0, 15.0))
    text = compare.format_tables(rows, "NVIDIA X")
    assert "| reduction |  | 3 | 1.000 | 1.00 | 10% | 10% | 100% | 100% |" in text
    assert "| sort | yes | 0 |" in text
    assert "| foreign | yes | 1 |" in text
    assert "not followed" in text
    assert "| mean tau | at least 0.9: 1.000 | reached |  |  |" in text
    assert "| median error | at most 15%: 10.0% | reached | at most 30%: 200.0% | **missed** |" in text
    assert "| within a factor | 90% within 1.5 x: 100.0% | reached | 80% within 2.0 x: 0.0% | **missed** |" in text


@needs.nvcc
def test_the_page_is_written_from_what_was_measured(monkeypatch, tmp_path, capsys) -> None:
    shorten_benchmark(monkeypatch, "transpose")
    kept, page = tmp_path / "times.json", tmp_path / "page.md"
    MeasuredTimes("NVIDIA H200", 1, tuple(measure.measure(SimulatorEngine("compiled"), 1, 2))).save(kept)
    data = tmp_path / "cases.json"
    assert main(["--from", str(kept), "--document", str(page), "--data", str(data)]) == 0
    cases = validation.read_validation(data).cases
    assert {(case.group, case.of) for case in cases} >= {("ours", "transpose"), ("elsewhere", "matrices.cu")}
    (section,) = find_sections(page, "Timing model on h200")
    assert section.device == "NVIDIA H200"
    assert "| transpose scatter |" in section.markdown()
    assert "| all of ours |" in page.read_text("utf-8")
    assert "shortest_paths_round" in capsys.readouterr().out


def test_the_page_says_how_far_the_model_is_off_without_nvcc(monkeypatch, tmp_path) -> None:
    shorten_benchmark(monkeypatch, "transpose")
    kept, page = tmp_path / "times.json", tmp_path / "page.md"
    MeasuredTimes("NVIDIA H200", 1, tuple(measure.measure(SimulatorEngine("compiled"), 1, 2))).save(kept)
    monkeypatch.setattr("gpu.timing.kernels.assemble", lambda *given: pytest.fail("nvcc was asked"))
    files = ["--from", str(kept), "--without-nvcc", "--document", str(page), "--data", str(tmp_path / "cases.json")]
    assert main(files) == 0
    (section,) = find_sections(page, "Timing model without nvcc on h200")
    assert section.device == "NVIDIA H200"
    assert "| foreign | yes | 1 |" in section.markdown()
    assert "| foreign | - / 1 |" in page.read_text("utf-8")


def test_without_nvcc_only_what_is_far_off_is_listed() -> None:
    rows = [
        compare.ComparedCase(compare.OURS, "sort", f"v{ratio}", "n", ratio, ratio**2) for ratio in (0.4, 0.6, 1.9, 2.1)
    ]
    text = compare.format_llvm_tables(
        [*rows, compare.ComparedCase(compare.OURS, "sort", "quicksort", "n", 5.0, None, "why")]
    )
    assert "Off by more than a factor of 2, or not modeled: 3 of 5." in text
    assert [name for name in ("v0.4", "v0.6", "v1.9", "v2.1", "why") if f"{name} |" in text] == ["v0.4", "v2.1", "why"]


def measured_figures(gpu: str) -> dict[str, float]:
    """Return figures that lead to a description that is known, roughly."""
    known = find_gpu(gpu)
    found = dict.fromkeys(("attribute max_shared_memory_per_block", "memory written GB/s"), 1.0)
    return found | {
        "attribute capability": 90.0, "clock GHz": known.clock_ghz, "attribute multiprocessor_count": 132.0,
        "attribute max_threads_per_multiprocessor": 2048.0, "attribute max_blocks_per_multiprocessor": 32.0,
        "attribute max_registers_per_multiprocessor": 65536.0,
        "attribute max_shared_memory_per_multiprocessor": 233472.0,
        "attribute reserved_shared_memory_per_block": 1024.0, "attribute l2_cache_size": 62914560.0,
        "rate ffma lanes per cycle": 125.7, "rate imad lanes per cycle": 63.6, "rate dfma lanes per cycle": 58.9,
        "rate rsqrt lanes per cycle": 16.0, "latency ffma cycles": 4.2, "latency dfma cycles": 8.2,
        "latency rsqrt cycles": 17.0, "latency shared cycles": 29.0, "latency first cache cycles": 39.0,
        "latency last cache 1 MB cycles": 287.0, "latency memory 16 MB cycles": 664.0, "latency shfl cycles": 24.0,
        "latency global atomic cycles": 425.0, "latency shared atomic cycles": 36.0, "barrier of 1 warps cycles": 15.6,
        "last cache read 40 MB GB/s": 8500.0, "memory read GB/s": 4525.0, "memory copied GB/s": 4000.0,
        "last cache read by one multiprocessor GB/s": 153.0, "memory read by one multiprocessor GB/s": 112.0,
        "random sectors of 1024 MB GB/s": 1269.0, "random sectors of the last cache GB/s": 4793.0,
        "global atomics adding a word a warp of 16777216, ns each": 0.0139,
        "global atomics adding one word of 16777216, ns each": 0.73,
        "global atomics adding anywhere of 16777216, ns each": 0.034, "launch of 1 blocks of 32 us": 2.85,
        "launch of 262144 blocks of 256 us": 160.0,
    }  # fmt: skip


def test_what_was_measured_of_a_gpu_is_a_description(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(format_gpu_description("My GPU", measured_figures("h200")), "utf-8")
    mine, known = read_gpu(path), read_gpu(FOLDER / "h200.toml")
    assert (mine.name, mine.validated, mine.capability) == ("My GPU", False, "9.0")
    for name in ("float_lanes", "integer_lanes", "double_lanes", "special_lanes", "schedulers", "shared_sizes"):
        assert getattr(mine, name) == getattr(known, name)
    assert mine.load_store_lanes == known.load_store_lanes


def test_a_gpu_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"does not support GPUs of compute capability 12\.0"):
        format_gpu_description("My GPU", measured_figures("h200") | {"attribute capability": 120.0})
    with pytest.raises(InputError, match="There is no measurement of 'clock GHz'"):
        format_gpu_description(
            "My GPU", {name: value for name, value in measured_figures("h200").items() if name != "clock GHz"}
        )


def test_a_gpu_without_a_description_is_refused(tmp_path, capsys) -> None:
    MeasuredTimes("A", 1, ()).save(tmp_path / "times.json")
    assert main(["--from", str(tmp_path / "times.json"), "--gpu", "a"]) == 2
    assert "a" in capsys.readouterr().err


def test_the_options_lead_to_what_they_say(monkeypatch, tmp_path) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(command, "measure_launches", lambda *given: asked.append(("measure", *given)) or 0)
    monkeypatch.setattr(command, "profile_launches", lambda *given: asked.append(("profile", *given)) or 0)
    monkeypatch.setattr(command, "measure_device", lambda *given: asked.append(("device", *given)) or 0)
    path = str(tmp_path / "x.json")
    for option in ("--measure", "--profile", "--device"):
        assert main([option, path, "--seed", "3", "--repetitions", "5"]) == 0
    assert [each[0] for each in asked] == ["measure", "profile", "device"]
    assert asked[0][2:] == (3, 5)
    assert json.dumps(str(asked[2][1])) == json.dumps(path)
