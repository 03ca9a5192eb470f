"""A new pattern is a kernel file and a declaration: commands and benchmarks take it as it is."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu import engines
from gpu.bench import gpu_benchmark, simulator_benchmark
from gpu.cli import main as cli
from gpu.patterns import all_patterns, find_pattern
from gpu.run.kernel_check import check_variant
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.new_pattern import declare_pattern

RUN = ["run", "doubling", "--engine", "simulator"]


@pytest.fixture(autouse=True)
def _declare_pattern(tmp_path: Path) -> Iterator[None]:
    with declare_pattern(tmp_path):
        yield


def test_it_is_found_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert next(iter(all_patterns())) == "doubling"
    assert cli.main(["list"], NO_WINDOW) == 0
    assert "--amount" in capsys.readouterr().out


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
def test_it_runs_and_is_verified(executor: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ["--executor", executor, "--amount", "100", "--threads", "32", "--input", "any"]
    target = tmp_path / "doubles.csv"
    assert cli.main([*RUN, *given, "--json", "--output", str(target)], NO_WINDOW) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True
    assert np.loadtxt(target).shape == (100,)


def test_it_takes_numbers_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("1\n2\n3\n")
    assert cli.main([*RUN, "--input", str(tmp_path / "few.csv")], NO_WINDOW) == 0
    said = capsys.readouterr().out
    assert "few.csv, 3 x float32" in said
    assert cli.main([*RUN, "--input", str(tmp_path / "few.csv"), "--amount", "3"], NO_WINDOW) == 2
    assert "--amount has no effect" in capsys.readouterr().err


def test_it_is_recorded_and_checked() -> None:
    pattern = find_pattern("doubling")
    (variant,) = pattern.variants
    recording = record_pattern(Workload(pattern, variant, {}, pattern.step_params), lambda progress: None)
    assert [launch.trace.kernel for launch in recording.launches] == ["doubled"]
    assert check_variant(Workload(pattern, variant, {}, {"amount": 100_000}), lambda progress: None)[0] == []


def test_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, peer = itertools.islice(simulator_benchmark.run(1, 2), 2)
    assert (ours.work, ours.name, ours.remark) == ("doubling, 2^12 float32", "Plain", "verified")
    assert (peer.name, peer.is_variant) == ("NumPy add", False)
    assert peer.amount == ours.amount == 8 * 2**12 / 1e9
    create = engines.create_engine
    monkeypatch.setattr(engines, "create_engine", lambda name: create("simulator"))
    # While it measures the first case, it prepares those of other patterns, which fill a GPU.
    monkeypatch.setattr(gpu_benchmark, "all_patterns", lambda: {"doubling": find_pattern("doubling")})
    first = next(gpu_benchmark.run(1, 2))
    assert (first.work, first.name, first.remark) == ("doubling, 2^10 float32", "Plain", "verified")
