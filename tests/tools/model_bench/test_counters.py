"""The model's counts beside a profiler's: what its list says, which launch is which, and what the tables say."""

from __future__ import annotations

import dataclasses

import pytest

from gpu.base.errors import InputError
from gpu.bench.pages.document import find_sections
from gpu.engines.modeling_engine import ModeledLaunch
from gpu.patterns import find_pattern
from gpu.timing.launch import LaunchEstimate
from gpu.timing.occupancy import Occupancy
from tests import needs
from tools.model_bench import counters, foreign_kernels, measure
from tools.model_bench.__main__ import main
from tools.model_bench.counters import COUNTERS, ProfiledLaunch
from tools.model_bench.measured_times import MeasuredCase, MeasuredLaunch, MeasuredTimes

HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
L2 = [f"lts__t_sectors_op_{kind}.sum" for kind in ("read", "write", "atom", "red")]
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"


def format_listing(*launches: tuple[str, dict[str, str]]) -> str:
    rows = [
        f'"{number}","{kernel}","{name}","","{value}"\n'
        for number, (kernel, metrics) in enumerate(launches)
        for name, value in metrics.items()
    ]
    return "==PROF== Connected\n" + HEAD + "".join(rows)


def make_profile(*kernels: str, seed: int = 7) -> MeasuredTimes:
    launches = tuple(MeasuredLaunch(kernel, (1, 1, 1), (32, 1, 1), 0, 1, 0.0) for kernel in kernels)
    return MeasuredTimes("NVIDIA H200", seed, (MeasuredCase("p", "v", "w", 0.0, (0.0, 0.0), launches),))


def make_profiled_launch(metrics: dict[str, float], **modeled: float) -> ProfiledLaunch:
    zero = dict.fromkeys(("instructions", "l2_sectors", "dram_bytes", "bank_conflicts"), 0.0)
    rest = {"requests": 0.0, "shared_passes": 0.0, "sampled_blocks": 1, "total_blocks": 1}
    estimate = LaunchEstimate(1.0, Occupancy(1, 1, "grid"), 8, **{**zero, **rest, **modeled})
    return ProfiledLaunch("p", "v", "w", metrics, ModeledLaunch("k", (4, 1, 1), (64, 2, 1), 1.0, estimate))


def test_a_profilers_list_is_read_launch_by_launch(tmp_path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(format_listing(("a", {"x.sum": "1,234,567", "y": "n/a"}), ("b", {"x.sum": "2"})), "utf-8")
    assert counters.read_profile(path) == [("a", {"x.sum": 1234567.0}), ("b", {"x.sum": 2.0})]


@pytest.mark.parametrize("text", ["", "==PROF== nothing", "a,b\n1,2\n", HEAD])
def test_another_file_is_no_profilers_list(tmp_path, text) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match="is not Nsight Compute's output"):
        counters.read_profile(path)


def test_launches_that_were_not_asked_for_are_left_out() -> None:
    seen = [("lead", {}), ("a", {"x": 1.0}), ("memset", {}), ("b", {"x": 2.0}), ("a", {"x": 3.0}), ("lead", {})]
    assert counters.pair_launches(make_profile("a", "b", "a"), seen) == {("p", "v", "w"): [seen[1], seen[3], seen[4]]}
    with pytest.raises(InputError, match="has no b of w"):
        counters.pair_launches(make_profile("a", "b", "b"), seen)


def test_a_sum_of_metrics_is_compared_and_nothing_where_one_is_missing() -> None:
    metrics = dict(zip(L2, (50.0, 20.0, 20.0, 10.0), strict=True))
    l2 = COUNTERS[1]
    assert make_profiled_launch(metrics, l2_sectors=110.0).ratio(l2) == pytest.approx(1.1)
    del metrics[L2[3]]
    assert make_profiled_launch(metrics, l2_sectors=110.0).ratio(l2) is None


def test_conflicts_that_are_few_on_both_sides_are_not_compared() -> None:
    conflicts = COUNTERS[3]
    few = {conflicts.metrics[0]: 4.0, WAVEFRONTS: 100.0}
    assert make_profiled_launch(few, bank_conflicts=0.0).ratio(conflicts) is None
    assert make_profiled_launch(few, bank_conflicts=8.0).ratio(conflicts) == 2.0
    assert make_profiled_launch({**few, conflicts.metrics[0]: 40.0}, bank_conflicts=0.0).ratio(conflicts) == 0.0


def test_the_tables_say_how_many_are_close(tmp_path) -> None:
    metric = COUNTERS[0].metrics[0]
    rows = [make_profiled_launch({metric: 100.0}, instructions=amount) for amount in (101.0, 110.0, 150.0, 84.0)]
    text = counters.format_tables(rows)
    assert "| p | 4 | 50%, 13.0% |" in text
    assert text.count("| 4 | 64 x 2 | ") == 4


@needs.nvcc
def test_the_command_writes_the_section(monkeypatch, tmp_path, capsys) -> None:
    own = find_pattern("reduction")
    (variant,) = (each for each in own.variants if each.name == "atomic")
    short = dataclasses.replace(own, variants=(variant,))
    monkeypatch.setattr(measure, "all_patterns", lambda: {"reduction": short})
    monkeypatch.setattr(foreign_kernels, "all_cases", lambda: iter(()))
    case = next(case for _, case, *_ in measure.iterate_variants(7, profiled=True))
    launch = MeasuredLaunch("reduce_atomic", (1056, 1, 1), (256, 1, 1), 0, 1, 0.0)
    cases = (MeasuredCase("reduction", "atomic", case.work, 0.0, (0.0, 0.0), (launch,)),)
    MeasuredTimes("NVIDIA H200", 7, cases).save(tmp_path / "profile.json")
    metrics = {"dram__bytes_read.sum": "4,204,000", "dram__bytes_write.sum": "0"}
    (tmp_path / "ncu.csv").write_text(format_listing(("lead", metrics), ("reduce_atomic", metrics)), "utf-8")
    files = ["--profile", str(tmp_path / "profile.json"), "--counters", str(tmp_path / "ncu.csv")]
    page = tmp_path / "page.md"
    assert main([*files, "--document", str(page)]) == 0
    (section,) = find_sections(page, "Timing model's counters on h200")
    assert section.device == "NVIDIA H200"
    assert "| reduction | 1 |  |  | 100%, 0." in section.markdown()
    assert "| all of ours | 1 |" in page.read_text("utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*files[2:], "--document", str(page)])
    assert "--counters requires --profile" in capsys.readouterr().err
