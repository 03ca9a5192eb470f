"""Public suites of racy programs are run from where they lie, and the page says what was found and missed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tools import race_suites
from tools.race_suites import SuiteProgram, SuiteResult

PROGRAM = """\
#include <cstdio>
__global__ void kernel(int *out) {{ {body} }}
int main(int count, char **words) {{
    int *out;
    cudaMalloc(&out, 4 * sizeof(int));
    cudaMemset(out, 0, 4 * sizeof(int));
    kernel<<<2, 64>>>(out);
    cudaDeviceSynchronize();
    printf("%d arguments\\n", count - 1);
}}
"""
RACY, RIGHT = PROGRAM.format(body="out[0] = threadIdx.x;"), PROGRAM.format(body="atomicAdd(out, 1);")


@pytest.fixture
def suites(tmp_path):
    """Two folders with the layout of the suites."""
    indigo, scor = tmp_path / "indigo", tmp_path / "scor"
    for name, text in (("sum_cond", RIGHT), ("sum_atomicBug", RACY), ("sum_boundsBug_syncBug", RACY)):
        path = indigo / "indigo_sources" / "sum" / f"{name}.cu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (scor / "microbenchmarks" / "src").mkdir(parents=True)
    for name, text in (("race_block", RACY), ("norace_block", RIGHT)):
        (scor / "microbenchmarks" / "src" / f"{name}.cu").write_text(text)
    return indigo, scor


def test_names_say_which_programs_race(suites):
    indigo, scor = suites
    programs = [*race_suites.list_indigo(indigo, "small.egr"), *race_suites.list_scor(scor)]
    assert {each.path.stem: (each.bugs, each.is_racy) for each in programs} == {
        "sum_cond": ((), False),
        "sum_atomicBug": (("atomic",), True),
        "sum_boundsBug_syncBug": (("bounds", "sync"), True),
        "norace_block": ((), False),
        "race_block": (("race",), True),
    }
    assert programs[0].arguments == (str(indigo / "input" / "small.egr"), "128", "256")


def test_only_two_of_the_samples_race(tmp_path):
    samples = race_suites.list_samples(tmp_path)
    assert {each.path.stem for each in samples if each.is_racy} == {"block_error", "warp_error"}
    page = race_suites.format_page(samples, {each.name: SuiteResult(each.bugs, 1.0) for each in samples}, {})
    assert "| Lockstep | 2 of 2 | 0 of 5 |" in page
    assert "| uninitialized | 2 | 2 |" in page


def test_a_run_writes_the_page_and_continues_an_earlier_one(suites, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(race_suites, "PAGE", tmp_path / "page.md")
    words = ["--scor", str(suites[1]), "--kept", str(tmp_path / "kept")]
    assert race_suites.main(words) == 0
    assert "race_block: race" in capsys.readouterr().out
    assert "| Lockstep | 1 of 1 | 0 of 1 |" in (tmp_path / "page.md").read_text("utf-8")
    monkeypatch.setattr(race_suites, "simulate", None)  # every result is known
    assert race_suites.main(words) == 0


def test_a_later_run_replaces_only_the_sections_of_its_suites():
    indigo = f"Indigo {race_suites.GRAPHS[0]}"
    first = SuiteProgram("a", indigo, Path("a.cu"), (), (), ("atomic",))
    second = SuiteProgram("race_b", "ScoR", Path("race_b.cu"), (), (), ("race",))
    results = {each.name: SuiteResult((), 90.0, day="2026-11-27") for each in (first, second)}
    sanitizer = {each.name: SuiteResult((), 1.0) for each in (first, second)}
    earlier = race_suites.format_page([first, second], results, sanitizer, "H200")
    later = {"race_b": SuiteResult(("race",), 60.0, day="2026-11-28")}
    page = race_suites.format_page([second], later, {}, earlier=earlier)
    left, right = page.split("## ScoR")
    assert left == earlier.split("## ScoR")[0]
    assert "Run on 2026-11-27: 1 programs, 2 minutes." in left
    assert "Run on 2026-11-28: 1 programs, 1 minute." in right
    assert "| Lockstep | 1 of 1 | 0 of 0 |\n| compute-sanitizer's racecheck, H200 | 0 of 1 | 0 of 0 |" in right


def test_a_program_that_does_not_compile_has_no_verdict(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("int main() { return missing; }")
    result = race_suites.simulate(SuiteProgram("broken", "ScoR", path, (), (), ()))
    assert result.kinds == ()
    assert result.failure


def test_the_page_lists_wrong_verdicts_by_name():
    def program(name, *bugs, suite="ScoR"):
        return SuiteProgram(name, suite, Path(f"{name}.cu"), (), (), bugs)

    indigo = f"Indigo {race_suites.GRAPHS[0]}"
    programs = [
        program("missed", "race"),
        program("accused"),
        program("silent"),
        program("a", "atomic", suite=indigo),
        program("b", "bounds", suite=indigo),
    ]
    results = {
        "missed": SuiteResult(("uninitialized",), 60.0),
        "accused": SuiteResult(("race",), 60.0),
        "silent": SuiteResult((), 0.0, "it launches no kernel"),
        "a": SuiteResult(("race",), 0.0),
        "b": SuiteResult(("out-of-bounds",), 0.0),
    }
    text = race_suites.format_page(programs, results, {"a": SuiteResult((), 1.0)}, "H200, 2026-11-24")
    assert "| Lockstep | 0 of 1 | 1 of 2 |" in text
    assert "| Lockstep | 1 of 1 | 0 of 1 |" in text
    assert "| compute-sanitizer's racecheck, H200, 2026-11-24 | 0 of 1 | 0 of 0 |" in text
    assert "| HiRace, published | 346 of 346 | |" in text
    assert "| compute-sanitizer, published | 92 of 346 | |" in text
    assert "table I of HiRace's paper" in " ".join(text.split())
    assert "| bounds | 1 | 1 |" in text
    assert "Not reported: `missed`." in text
    assert "Accused: `accused`." in text
    assert "No verdict for `silent`: it launches no kernel." in text
    assert "2 minutes" in text


@pytest.mark.parametrize(
    ("compiles", "output", "expected"),
    [
        (0, "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)", (("race",), "")),
        (0, "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", ((), "")),
        (0, "Target application returned an error", ((), "no summary")),
        (1, "", ((), "nvcc does not compile it")),
    ],
)
def test_what_compute_sanitizer_reports_is_read(tmp_path, monkeypatch, compiles, output, expected):
    for name, script in (("nvcc", f"exit {compiles}"), ("compute-sanitizer", f'echo "{output}"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    result = race_suites.sanitize(SuiteProgram("a", "ScoR", tmp_path / "a.cu", (), (), ()), tmp_path)
    assert (result.kinds, result.failure) == expected


def test_a_program_is_built_once_for_its_graphs(tmp_path, monkeypatch):
    build = 'echo built >> builds; while [ "$1" != -o ]; do shift; done; touch "$2"'
    for name, script in (("nvcc", build), ("compute-sanitizer", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for graph in ("small", "large"):
        race_suites.sanitize(SuiteProgram(f"a {graph}", "Indigo", tmp_path / "a.cu", (), (graph,), ()), tmp_path)
    assert (tmp_path / "builds").read_text() == "built\n"


def test_programs_of_hecbench_get_their_sources_and_inputs(tmp_path):
    folder = tmp_path / "src" / "morphology-cuda"
    programs = {each.title: each for each in race_suites.list_hecbench(tmp_path, tmp_path)}
    assert len(programs) == 9
    assert all(program.is_racy for program in programs.values())
    assert programs["morphology"].sources == [str(folder / "main.cu"), str(folder / "morphology.cu")]
    assert programs["rsmt"].sources == [str(tmp_path / "src" / "rsmt-cuda" / "main.cu")]
    graph = np.fromfile(programs["floydwarshall2"].arguments[0], np.int32)
    nodes, edges = graph[:2]
    assert nodes > 2 * 64
    assert graph[2 + nodes] == edges
    assert graph.size == 2 + nodes + 1 + 2 * edges
    roads = [list(map(int, line.split())) for line in Path(programs["sssp"].arguments[1]).read_text().splitlines()]
    nodes, edges, _ = roads[0]
    assert len(roads) == 1 + nodes + edges
    assert roads[1] == [0, nodes - 1]
    assert roads[nodes][0] + roads[nodes][1] == edges
    nets = Path(programs["rsmt"].arguments[0]).read_text().splitlines()
    pins = sum(int(line.split()[2]) for line in nets[8:] if line.startswith("n"))
    assert len(nets) == 8 + 40 + pins


@pytest.mark.parametrize(("words", "said"), [([], "there are no programs"), (["--sanitize"], "needs --kept")])
def test_what_is_missing_is_said(words, said, capsys):
    with pytest.raises(SystemExit):
        race_suites.main(words)
    assert said in capsys.readouterr().err
