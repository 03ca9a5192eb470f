"""Measurements by Nsight Compute, here a script that prints its table, are read as public ones are."""

from __future__ import annotations

import json
import os

import pytest

from tests.tools.public_benchmark.test_command import HEADER, row
from tools.public_benchmark import measure
from tools.public_benchmark.profile import read_profile

THREAD = "smsp__sass_thread_inst_executed_op"
METRICS = {
    "gpu__time_duration.sum": "2,000", "dram__bytes.sum": "4000", f"{THREAD}_integer_pred_on.sum": "n/a",
    f"{THREAD}_fadd_pred_on.sum": "10", f"{THREAD}_ffma_pred_on.sum": "20", f"{THREAD}_dmul_pred_on.sum": "3",
}  # fmt: skip


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder with a program whose compiler and profiler are scripts."""
    tools = tmp_path / "bin"
    tools.mkdir()
    table = ["==PROF== Connected", '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Value"']
    table += [f'"0","k(int)","(64, 1, 1)","(3, 2, 1)","{name}","{value}"' for name, value in METRICS.items()]
    (tmp_path / "table").write_text("\n".join(table) + "\n")
    (tools / "ncu").write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/profiled"\ncat "{tmp_path}/table"\n')
    (tools / "nvcc").write_text('#!/bin/sh\ncase "$*" in *broken*) echo "broken.cu: error: no" >&2; exit 1;; esac\n')
    for name in ("ncu", "nvcc"):
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    entries = []
    for name, file in (("good-cuda", "main.cu"), ("bad-cuda", "broken.cu")):
        (tmp_path / "src" / name).mkdir(parents=True)
        path = f"/old/src/{name}/{file}"
        entries.append({"output": f"CMakeFiles/{name}.dir/{file}.o", "file": path, "command": f"clang++ -c {path}"})
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    launches = (
        ("good-cuda", "k(int)", 4),
        ("good-cuda", "k(int)", 8),
        ("good-cuda", "other()", 4),
        ("bad-cuda", "k(int)", 4),
    )
    (tmp_path / "p.csv").write_text(HEADER + "".join(row(*launch) for launch in launches))
    return tmp_path


def test_a_profiled_launch_is_read_like_a_public_one(machine, capsys) -> None:
    options = ["--hecbench", str(machine), "--profile", str(machine / "p.csv"), "--target", str(machine / "own.csv")]
    assert measure.main(options) == 0
    printed = capsys.readouterr().out
    assert "good-cuda: 1 launches" in printed
    assert "bad-cuda: broken.cu: error: no" in printed
    (launch,) = read_profile(machine / "own.csv")
    assert (launch.program, launch.arguments, launch.grid, launch.block) == (
        "good-cuda",
        "65536",
        (3, 2, 1),
        (64, 1, 1),
    )
    assert launch.time_us == pytest.approx(2.0)
    assert launch.dram_bytes == pytest.approx(4000)
    assert (launch.float32_operations, launch.float64_operations) == (pytest.approx(50), pytest.approx(3))
    command = (machine / "profiled").read_text().split()
    assert command[-1] == "65536"
    assert command[command.index("--launch-count") + 1] == "2", "two kernels, of which one was measured at two sizes"


def test_no_program_starts_after_the_limit(machine, capsys) -> None:
    options = ["--hecbench", str(machine), "--profile", str(machine / "p.csv"), "--target", str(machine / "own.csv")]
    assert measure.main([*options, "--minutes", "0"]) == 0
    assert capsys.readouterr().out == ""
    (machine / "compile_commands.json").unlink()
    assert measure.main(options) == 2
    assert "Cannot read" in capsys.readouterr().err
