"""Public measurements beside the timing model: rows are matched to launches, and the page counts both halves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpu.base.paths import ROOT
from tests import needs
from tools.public_benchmark import __main__ as command
from tools.public_benchmark import tables
from tools.public_benchmark.build_commands import read_build_commands
from tools.public_benchmark.measurements import MEASUREMENTS
from tools.public_benchmark.mechanisms import find_mechanism, find_resource
from tools.public_benchmark.profile import MeasuredLaunch, format_kernel_name, is_tuned, read_profile
from tools.public_benchmark.runs import ComparedLaunch

HEADER = '"Kernel Name","traffic","spPerf","dpPerf","xtime","Block Size","Grid Size","intops","targetName","exeArgs"\n'
PROGRAM = """
#include <cstdio>
#include <cstdlib>
template <typename T> __global__ void scale(T *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * T(2);
}
int main(int count, char **words) {
    int n = atoi(words[1]);
    float *values;
    cudaMalloc(&values, n * sizeof(float));
    cudaMemset(values, 0, n * sizeof(float));
    for (int i = 0; i < 3; ++i) scale<float><<<n / 256, 256>>>(values, n);
    cudaDeviceSynchronize();
    while (true) {}  // the command ends the program after the last measured launch
}
"""


def row(program: str, kernel: str, grid: int, xtime: float = 4000.0, arguments: str = "65536") -> str:
    return f'"{kernel}",2e11,1.6e10,0.0,{xtime},"(256, 1, 1)","({grid}, 1, 1)",100,"{program}","{arguments}"\n'


def hecbench(folder: Path, name: str) -> None:
    program = folder / "src" / name
    program.mkdir(parents=True)
    (program / "main.cu").write_text(PROGRAM)
    (program / "Makefile").write_text("source = main.cu\nrun: main\n\t./main 65536\n")


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("void scale<float>(T1 *, int)", "scale<float>"),
        ("void ns::scale<float, (int)4>(const T1 *)", "scale<float,4>"),
        ("(anonymous namespace)::step(int (*)(int))", "step"),
        ("_ZL14timedReductionPKfPfPl", "timedReduction"),
        ("scale<float, 4>", "scale<float,4>"),
        ("pair_forward(const double (*)[41][4])", "pair_forward"),
    ],
)
def test_both_spellings_of_a_kernels_name_are_one(printed, name) -> None:
    assert format_kernel_name(printed) == name


def test_the_first_launch_of_each_kernel_and_shape_of_cuda_programs_is_read(tmp_path) -> None:
    rows = [row("a-cuda", "k(int)", 4), row("a-cuda", "k(int)", 4, 9e9), row("a-cuda", "k(int)", 5)]
    (tmp_path / "p.csv").write_text(HEADER + "".join(rows) + row("a-omp", "k(int)", 4))
    first, second = read_profile(tmp_path / "p.csv")
    assert (first.grid, first.block, first.time_us) == ((4, 1, 1), (256, 1, 1), pytest.approx(4.0))
    assert first.dram_bytes == pytest.approx(2e11 * 4e-6)
    assert first.float32_operations == pytest.approx(1.6e10 * 4e-6)
    assert second.grid == (5, 1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "there is no column Kernel Name"), (HEADER, "profiled launches of CUDA programs"),
     (HEADER + row("a-cuda", "k", 4).replace("4000.0", "soon"), "could not convert string to float")],
)  # fmt: skip
def test_a_file_that_is_no_profile_is_refused(tmp_path, capsys, text, said) -> None:
    (tmp_path / "p.csv").write_text(text)
    options = ["--hecbench", str(tmp_path), "--kept", str(tmp_path / "kept"), "--page", str(tmp_path / "page.md")]
    assert command.main([*options, "--profile", str(tmp_path / "p.csv")]) == 2
    assert said in capsys.readouterr().err
    assert command.main([*options, "--profile", str(tmp_path / "missing.csv")]) == 2
    assert "Cannot read" in capsys.readouterr().err


@needs.cplusplus
def test_programs_are_modeled_until_their_last_measured_launch_and_results_are_kept(tmp_path, capsys) -> None:
    hecbench(tmp_path, "scale-cuda")
    rows = row("scale-cuda", "void scale<float>(T1 *, int)", 256) + row("lost-cuda", "k(int)", 4)
    (tmp_path / "p.csv").write_text(HEADER + rows)
    options = ["--hecbench", str(tmp_path), "--profile", str(tmp_path / "p.csv"), "--kept", str(tmp_path / "kept")]
    options += ["--page", str(tmp_path / "page.md")]
    assert command.main(options) == 0
    assert "scale-cuda: 1 of 1 launches modeled" in capsys.readouterr().out
    (result,) = json.loads((tmp_path / "kept" / "scale-cuda.json").read_text())["launches"].values()
    assert result["true_values"]
    assert result["float32_operations"] == 65536
    assert 1.7 < result["time_us"] < 10
    revision = json.loads((tmp_path / "kept" / "scale-cuda.json").read_text())["revision"]
    page = (tmp_path / "page.md").read_text()
    assert f"when they were modeled: 1 with {revision or 'earlier states'}." in page
    assert "there is no such program" in page
    assert "Programs compared: 2 of 2" in page
    assert command.main(options) == 0  # nothing runs again
    assert capsys.readouterr().out == ""


@needs.cplusplus
@pytest.mark.parametrize(("limit", "is_complete"), [(2e10, True), (1e4, False)])
def test_long_launches_and_many_repeated_ones_do_not_run(tmp_path, limit, is_complete) -> None:
    """The memory that a launch reads counts as written even if earlier launches are not repeated."""
    hecbench(tmp_path, "scale-cuda")
    main = tmp_path / "src" / "scale-cuda" / "main.cu"
    later = "scale<float><<<1, 256>>>(values, n);\n    while (true) {}"
    main.write_text(PROGRAM.replace("i < 3", "i < 30").replace("while (true) {}", later))
    request = {"folder": str(main.parent), "files": ["main.cu"], "arguments": ["65536"], "include_dirs": []}
    request |= {"defines": [], "gpu": "rtx-3080", "target": str(tmp_path / "results")}
    (tmp_path / "request.json").write_text(json.dumps({**request, "wanted": ["scale<float> (1, 1, 1) (256, 1, 1)"]}))
    script = f"from tools.public_benchmark import program as p; p._MAX_LANE_INSTRUCTIONS = {limit}; "
    script += f"p._MAX_REPEATED_LANE_INSTRUCTIONS = 1e6; p.main(p.Path({str(tmp_path / 'request.json')!r}))"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=100)
    (result,) = map(json.loads, (tmp_path / "results").read_text().splitlines())
    assert result["true_values"] == is_complete


@needs.cplusplus
def test_programs_are_built_as_for_the_measurement(tmp_path, capsys) -> None:
    """The makefile has variables, the commands beside the measurements have files and macros.

    Clang accepts std::max in device code.
    """
    hecbench(tmp_path, "scale-cuda")
    folder = tmp_path / "src" / "scale-cuda"
    (folder / "Makefile").write_text("source = $(FILES)\n")
    (folder / "main.cu").write_text(
        PROGRAM.replace("T(2)", "std::max(T(1), T(FACTOR))").replace("#include", '#include "k.h"\n#include', 1)
    )
    (folder / "inc").mkdir()
    (folder / "inc" / "k.h").write_text("#include <algorithm>\n")
    command_line = "clang++ -I/old/src/scale-cuda -I/old/src/scale-cuda/inc -DFACTOR=3 -DNDEBUG -x cuda -c main.cu"
    entry = {"output": "CMakeFiles/scale-cuda.dir/main.cu.o", "file": "/old/src/scale-cuda/main.cu"}
    build_file = tmp_path / "compile_commands.json"
    build_file.write_text(json.dumps([{**entry, "command": command_line}]))
    (tmp_path / "p.csv").write_text(HEADER + row("scale-cuda", "void scale<float>(T1 *, int)", 256))
    options = ["--hecbench", str(tmp_path), "--profile", str(tmp_path / "p.csv"), "--kept", str(tmp_path / "kept")]
    options += ["--page", str(tmp_path / "page.md")]
    assert command.main(options) == 0
    assert "scale-cuda: 1 of 1 launches modeled" in capsys.readouterr().out
    assert read_build_commands(build_file)["scale-cuda"].options == ("-I", "inc", "-D", "FACTOR=3")
    build_file.write_text('[{"output": 1}]')
    assert command.main([*options[:-1], str(tmp_path / "page.md")]) == 2
    assert "does not contain build commands" in capsys.readouterr().err


@needs.cplusplus
def test_the_last_line_of_a_program_tells_why_it_launched_nothing(tmp_path) -> None:
    hecbench(tmp_path, "scale-cuda")
    start = "auto start = std::chrono::steady_clock::now();"  # NVIDIA's header of CUB includes <chrono>
    headers = "#include <cub/cub.cuh>\n#include <cstdio>\n"
    program = f'{headers}int main() {{ {start} puts("Cannot open graph.txt"); return 1; }}\n'
    (tmp_path / "src" / "scale-cuda" / "main.cu").write_text(program)
    (tmp_path / "p.csv").write_text(HEADER + row("scale-cuda", "void scale<float>(T1 *, int)", 256))
    options = ["--hecbench", str(tmp_path), "--profile", str(tmp_path / "p.csv"), "--kept", str(tmp_path / "kept")]
    assert command.main([*options, "--page", str(tmp_path / "page.md")]) == 0
    assert "the program ends with 1: Cannot open graph.txt" in (tmp_path / "page.md").read_text()


def compared(program: str, measured_us: float, **result: object) -> ComparedLaunch:
    launch = MeasuredLaunch(program, "", "k(int)", (1, 1, 1), (32, 1, 1), measured_us, 1000.0, 100.0, 0.0, 0.0)
    figures: dict[str, object] = {
        "dram_bytes": 1100.0,
        "float32_operations": 100.0,
        "float64_operations": 0.0,
        "true_values": True,
        "lane_instructions": 1000.0,
        "breakdown": {"memory": 4.0, "issue": 8.0},
    }
    figures["seconds"] = 9.0 if measured_us == 20.0 else 3.0
    return ComparedLaunch(launch, {**figures, "limit": "memory", **result} if "refusal" not in result else result)


def test_the_page_has_both_halves_each_miss_with_its_mechanism_and_each_refusal(monkeypatch) -> None:
    names = [f"p{number}-cuda" for number in range(40)]
    tuned, other = ([name for name in names if is_tuned(name) == half] for half in (True, False))
    programs = {
        tuned[0]: [compared(tuned[0], 10.0, time_us=11.0), compared(tuned[0], 10.0, time_us=40.0)],
        tuned[1]: [compared(tuned[1], 20.0, refusal="/home/me/src/p/a.cu:1: it has | and <T>")],
        other[0]: [compared(other[0], 10.0, time_us=5.0), compared(other[0], 20.0, time_us=20.0, dram_bytes=2000.0)],
    }
    monkeypatch.setattr(tables, "EXPLANATIONS", {"rtx-3080": {f"{tuned[0]} k": "The assembler moves the loop."}})
    page = tables.format_section(programs, 385, MEASUREMENTS["rtx-3080"])
    assert "| looked at | 2 | 3 | 2 | 155% | 155% | 2.10 | 50% | 50% | nan |" in page
    assert "| not looked at | 1 | 2 | 2 | 25% | 25% | 0.71 | 50% | 100% | 1.000 |" in page
    assert f"- {tuned[0]} k: The assembler moves the loop.\n" in page
    assert "Mechanisms of 2 kernels: 1 from their code, 0 by a rule from the measured figures, 1 unknown." in page
    assert "The rules also apply to 2 of the 2 launches without a miss." in " ".join(page.split())
    assert 'Reasons with "probably" are not proven.' in " ".join(page.split())
    assert "takes 3.0 s of computing time at the median and 9.0 s at most" in page
    assert "| not looked at | 100% of 2 |  | 50% of 2 | 100% of 2 |" in page
    assert f"| {tuned[0]} | k (1, 1, 1) (32, 1, 1) | looked at | 10.0 | 40.0 | 4.00 | memory |" in page
    assert f"| {other[0]} | k (1, 1, 1) (32, 1, 1) | not looked at | 10.0 | 5.0 | 0.50 | memory |" in page
    cut = {**programs, other[0]: [compared(other[0], 10.0, time_us=5.0, complete=False)]}
    assert "| 0.50 | memory, not followed to the end |" in tables.format_section(cut, 385, MEASUREMENTS["rtx-3080"])
    assert "| looked at | 1 | p/a.cu:1: it has \\| and \\<T> |" in page


@pytest.mark.parametrize(
    ("time_us", "figures", "reason"),
    [
        (10.0, {"dram_bytes": 7.7e6, "result_us": 5.0}, "takes at least 10.1 us"),
        (1.0, {"float32_operations": 2.6e7, "result_us": 0.5}, "takes at least 1.0 us"),
        (2.9, {"result_us": 1.7}, "Below 3 us"),
        (10.0, {"float32_operations": 1.2e5, "result_us": 5.0}, "1.2e+05 float32 operations were counted, 1e+05"),
        (10.0, {"float64_operations": 3.0, "result_us": 20.0, "result_float64_operations": 4.0}, "3 float64"),
        (10.0, {"integer_operations": 2e6, "result_us": 5.0}, "2.05e+06 instructions of threads at least"),
        (10.0, {"dram_bytes": 5e6, "result_us": 20.0, "result_dram_bytes": 1e7}, "transfers 0.5 times the"),
        (10.0, {"dram_bytes": 2e6, "result_us": 20.0, "result_dram_bytes": 4e6}, ""),
        (10.0, {"float32_operations": 1.2e5, "result_us": 20.0}, ""),
        (10.0, {"dram_bytes": 6e6, "result_us": 5.0, "result_dram_bytes": 5.9e6}, ""),
        (
            10.0,
            {"dram_bytes": 2e6, "result_us": 5.0, "result_dram_bytes": 1e6},
            "2 times the modeled bytes, at 200",
        ),
        (10.0, {"dram_bytes": 2e3, "result_us": 5.0, "result_dram_bytes": 2.5e5}, "as a bus of 25 GB/s"),
        (10.0, {"dram_bytes": 2e3, "result_us": 5.0, "result_dram_bytes": 7e5}, ""),
        (10.0, {"lanes": 6e5, "result_us": 20.0}, "5e+05 instructions of threads at most"),
        (10.0, {"lanes": 6e5, "result_us": 5.0}, ""),
        (10.0, {"complete": False, "result_us": 5.0}, "longer than the model follows them"),
        (10.0, {"complete": False, "result_us": 20.0}, ""),
    ],
)
def test_a_rule_finds_the_mechanism_that_the_measured_figures_show(time_us, figures, reason) -> None:
    """A difference must explain the direction of the error. An RTX 3080 has 25.07 TFLOP/s and 760 GB/s at 1.44 GHz."""
    usual = {"float32_operations": 1e5, "float64_operations": 0.0, "integer_operations": 0.0, "dram_bytes": 4000.0}
    counted = {name: figures.get(name, value) for name, value in usual.items()}
    measured = MeasuredLaunch("p-cuda", "", "k", (1, 1, 1), (32, 1, 1), time_us, **counted)
    modeled = {name: figures.get(f"result_{name}", value) for name, value in usual.items()}
    result = {**modeled, "lane_instructions": figures.get("lanes", 4e5), "time_us": figures["result_us"]}
    result["complete"] = figures.get("complete", True)
    found = find_mechanism(ComparedLaunch(measured, result), MEASUREMENTS["rtx-3080"])
    assert reason in found
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("time_us", "breakdown", "reason"),
    [
        (20.0, {"memory": 1.0, "atomics": 12.0}, "one resource, atomics: alone 12.0 us"),
        (20.0, {"memory": 1.0, "atomics": 9.0}, ""),
        (6.0, {"memory": 6.0, "issue": 1.0}, "transfers the modeled bytes at 400 GB/s"),
        (6.0, {"memory": 6.0, "issue": 5.5}, ""),
        (6.0, {"memory": 1.0, "issue": 1.2, "latency": 4.8}, "no resource needs more than 1.2 us"),
        (6.0, {"memory": 1.0, "issue": 4.0, "latency": 2.0}, ""),
    ],
)
def test_the_figures_of_a_launch_without_a_mechanism_show_the_resource(time_us, breakdown, reason) -> None:
    measured = MeasuredLaunch("p-cuda", "", "k", (1, 1, 1), (32, 1, 1), 10.0, 4e6, 0.0, 0.0, 0.0)
    found = find_resource(ComparedLaunch(measured, {"time_us": time_us, "dram_bytes": 4e6, "breakdown": breakdown}))
    assert reason in found
    assert bool(found) == bool(reason)


def test_ranks_of_ties_are_their_mean() -> None:
    assert tables.compute_rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == pytest.approx(1.0)
    assert tables.compute_rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert tables.compute_rank_correlation([1.0, 1.0, 2.0], [1.0, 1.0, 2.0]) == pytest.approx(1.0)


def test_a_launch_is_compute_bound_from_the_ratio_of_the_peaks() -> None:
    """25.07 TFLOP/s and 760 GB/s of an RTX 3080 at 1.44 GHz; 66.9 TFLOP/s and 4.8 TB/s of an H200."""
    for gpu, below, above, double in (("rtx-3080", 32.0, 34.0, 0.6), ("h200", 13.5, 14.5, 7.1)):
        measurement = MEASUREMENTS[gpu]
        assert not measurement.is_compute_bound(below, 0.0, 1.0)
        assert measurement.is_compute_bound(above, 0.0, 1.0)
        assert measurement.is_compute_bound(0.0, double, 1.0)


def test_a_section_replaces_only_its_own(tmp_path) -> None:
    page = tmp_path / "page.md"
    tables.write_section(page, "NVIDIA H200", "first\n\n### Misses\n")
    tables.write_section(page, "NVIDIA GeForce RTX 3080", "second")
    tables.write_section(page, "NVIDIA H200", "third")
    text = page.read_text()
    assert text.startswith("# Timing model on public programs\n")
    assert text.endswith("\n## NVIDIA H200\n\nthird\n\n## NVIDIA GeForce RTX 3080\n\nsecond\n")
