"""How NVIDIA's samples are chosen and judged, and that their section of the page replaces only itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import needs
from tools import program_check
from tools.public_programs import check_cost, cuda_samples
from tools.public_programs.cuda_samples import SampleResult


def write_sample(folder: Path, section: str, name: str, text: str, file: str = "main.cu") -> None:
    path = folder / "Samples" / section / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_samples_with_other_requirements_are_skipped(tmp_path):
    texts = {
        "dynamic": ('#include "cuda_drvapi_dynlink.h"\n', "the driver's library at run time"),
        "blas": ("#include <cublas_v2.h>\n", "a library"),
        "module": ('int main() { cuModuleLoad(&module, "kernel.fatbin"); }\n', "machine code or PTX that nvcc writes"),
        "plain": ("int main() {}\n", ""),
        "window": ("#include <helper_gl.h>\n", "a graphics library"),
    }
    for name, (text, _) in texts.items():
        write_sample(tmp_path, "6_Performance", name, text, "main.cpp")
    write_sample(tmp_path, "8_Platform_Specific", "other", "")
    write_sample(tmp_path, "0_Introduction", "nested", "int main() {}\n", "src/main.cpp")
    write_sample(tmp_path, "0_Introduction", "elsewhere", "", "README.md")
    found = {path.name: cuda_samples.find_requirement(path) for path in cuda_samples.list_samples(tmp_path)}
    expected = {name: need for name, (_, need) in texts.items()}
    assert found == {"elsewhere": "sources in another folder", "nested": "", **expected}


@needs.cplusplus
def test_headers_that_a_build_copies_for_nvrtc_are_beside_the_program(tmp_path):
    write_sample(tmp_path, "0_Introduction", "copies", "int main() {}\n", "main.cpp")
    sample = tmp_path / "Samples" / "0_Introduction" / "copies"
    copying = "copy ${CUDA_INCLUDE_DIR}/cooperative_groups.h ${CMAKE_CURRENT_BINARY_DIR}"
    (sample / "CMakeLists.txt").write_text(f"{copying}\n{copying}\ncopy ${{CUDA_INCLUDE_DIR}}/cccl/nv there\n")
    assert cuda_samples.list_copied_headers(sample) == ["cooperative_groups.h"]
    (sample / "main.cpp").write_text(
        '#include <cstdio>\nint main() { puts(fopen("cooperative_groups.h", "r") ? "PASSED" : "FAILED"); }\n'
    )
    assert cuda_samples.run_sample(sample).outcome == "passes"


@pytest.mark.parametrize(
    ("code", "output", "errors", "outcome", "findings", "reason"),
    [
        (0, "Test PASSED\n", "lockstep: 1 launch on the simulator; no findings.", "passes", 0, ""),
        (1, "Test passed\n", "lockstep: 1 launch on the simulator; 3 findings.", "passes", 3, ""),
        (0, "done\n", "", "ends", 0, ""),
        (0, "Device assert failed as expected\n", "", "ends", 0, ""),
        (0, "Result = FAIL\n", "", "fails", 0, "Result = FAIL"),
        (1, "", "lockstep: a.cu:3:1: error: no such type\n", "fails", 0, "a.cu:3:1: error: no such type"),
        (2, "Test passed\n", "lockstep: a.cu:9:3: invalid escape\n", "fails", 0, "a.cu:9:3: invalid escape"),
        (2, "Two GPUs are needed; waiving.\n", "", "waives", 0, ""),
        (134, "", "", "fails", 0, "it ends with 134"),
    ],
)
def test_a_sample_is_judged_by_its_code_and_output(code, output, errors, outcome, findings, reason):
    result = cuda_samples.judge_output("a", code, output, errors, True, 1.5)
    assert result == SampleResult("a", outcome, findings, 1.5, reason)


@pytest.mark.parametrize(("reason", "text"), [("over 60 s", "over 60 s. Its"), ("error: x...", "error: x... Its")])
def test_a_remark_follows_the_reason_as_a_sentence(reason, text):
    result = SampleResult("BlackScholes", "fails", None, 60.0, reason)
    assert f"| `BlackScholes` | fails: {text} size is for GPUs" in cuda_samples.format_section([result], 1, "today", 60)


@pytest.mark.parametrize(
    ("day", "text"),
    [
        ("2026-01-02", "Date of this run: 2026-01-02."),
        ("2026-01-03", "Dates of the runs: 2026-01-02 to 2026-01-03."),
    ],
)
def test_the_section_says_when_its_samples_ran(day, text):
    results = [SampleResult("a", "ends", day="2026-01-02"), SampleResult("b", "ends")]
    assert text in " ".join(cuda_samples.format_section(results, 2, day, 60).split())


def test_the_section_replaces_only_itself(tmp_path, monkeypatch, capsys):
    page = tmp_path / "programs.md"
    page.write_text("# Title\n\ntext\n\n## Kernels\n\nrows\n")
    monkeypatch.setattr(program_check, "PAGE", page)
    assert program_check.main(["--cuda-samples", str(tmp_path)]) == 1
    assert "has no CUDA samples; clone" in capsys.readouterr().err
    write_sample(tmp_path, "0_Introduction", "first", "")
    write_sample(tmp_path, "0_Introduction", "second", "#include <cublas_v2.h>\n")
    monkeypatch.setattr(
        cuda_samples,
        "_run",
        lambda sample, option, limit_s: SampleResult(sample.name, "passes", 2, 1.25) if option == "--check" else None,
    )
    for _ in range(2):
        assert program_check.main(["--cuda-samples", str(tmp_path), "--limit", "10"]) == 0
    text = page.read_text()
    assert text.startswith("# Title\n\ntext\n\n## Kernels\n\nrows\n\n## NVIDIA's CUDA samples\n\n")
    assert text.count("## NVIDIA") == 1
    assert "| `first` | passes | 2 | 1.2 |" in text
    assert "- a library: `second`" in text
    assert program_check.main(["--cuda-samples", str(tmp_path), "--minutes", "0"]) == 0
    assert "2 more were not run within the time limit" in page.read_text()


def test_the_cost_of_checks_is_measured_and_replaces_its_section_only(tmp_path, monkeypatch):
    page = tmp_path / "programs.md"
    page.write_text("# Title\n\n## Cost of checks\n\nold\n\n## Other\n\nrows\n")
    monkeypatch.setattr(check_cost, "PAGE", page)
    monkeypatch.setattr(check_cost, "PROGRAMS", ("add",))
    monkeypatch.setattr(check_cost, "SAMPLES", ("first",))
    folder = tmp_path / "src" / "add-cuda"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("source = main.cu\nrun: main\n\t./main 7\n")
    (folder / "main.cu").write_text("int main() { return 0; }\n")
    write_sample(tmp_path, "0_Introduction", "first", "int main() { return 2; }\n")  # not measured: it fails
    assert check_cost.main([str(tmp_path), str(tmp_path), "--kept", str(tmp_path / "kept")]) == 0
    text = page.read_text()
    assert "1 more programs were not measured" in " ".join(text.split())
    assert text.startswith("# Title\n\n## Other\n\nrows\n\n## Cost of checks\n\n")
    name, *times = json.loads((tmp_path / "kept" / "check_cost.json").read_text())["add"]
    _, _, unchecked, checked = times
    assert min(times) > 0
    cells = " | ".join(f"{value:.1f}" for value in (*times, checked / unchecked))
    assert f"| `{name}` | {cells} |" in text
    (folder / "main.cu").write_text("int main() { return 3; }\n")
    assert check_cost.main([str(tmp_path), str(tmp_path)]) == 1


def test_a_sample_that_is_slow_with_the_checkers_runs_fast(tmp_path, monkeypatch):
    write_sample(tmp_path, "0_Introduction", "slow", "")
    (sample,) = cuda_samples.list_samples(tmp_path)
    fast = SampleResult("slow", "ends", None, 3.0)
    monkeypatch.setattr(cuda_samples, "_run", lambda sample, option, limit_s: fast if option == "--fast" else None)
    assert cuda_samples.run_sample(sample, 10) == fast
    monkeypatch.setattr(cuda_samples, "_run", lambda sample, option, limit_s: None)
    assert cuda_samples.run_sample(sample, 10).reason == "exceeds the limit of 10 s"


def test_sources_that_a_program_compiles_itself_are_not_files_of_the_program(tmp_path):
    write_sample(tmp_path, "0_Introduction", "clock_nvrtc", "#include <nvrtc.h>\nint main() {}\n", "clock.cpp")
    write_sample(tmp_path, "0_Introduction", "clock_nvrtc", "", "clock_kernel.cu")
    (sample,) = cuda_samples.list_samples(tmp_path)
    assert cuda_samples.list_sources(sample) == ["clock.cpp"]


@needs.nvcc
def test_what_a_sample_loads_is_compiled(tmp_path, monkeypatch):
    write_sample(tmp_path, "0_Introduction", "drv", 'const char *file = "k64.fatbin";\n', "drv.cpp")
    write_sample(tmp_path, "0_Introduction", "drv", 'extern "C" __global__ void k(int *a) { *a = 1; }\n', "k.cu")
    (sample,) = cuda_samples.list_samples(tmp_path)
    assert cuda_samples.list_sources(sample) == ["drv.cpp"]
    built = []

    def run(folder: Path, option: str, limit_s: float) -> SampleResult:
        built.append(((folder / "drv.cpp").read_text(), (folder / "k64.fatbin").read_bytes()[:4]))
        return SampleResult(folder.name, "passes", 0)

    monkeypatch.setattr(cuda_samples, "_run", run)
    assert cuda_samples.run_sample(sample).outcome == "passes"
    assert built == [('const char *file = "k64.fatbin";\n', b"\x50\xed\x55\xba")]
    assert not (sample / "k64.fatbin").exists()


def test_the_limit_is_processor_time(tmp_path):
    write_sample(tmp_path, "0_Introduction", "endless", "int main() { for (volatile int i = 0;; ++i) {} }\n")
    (sample,) = cuda_samples.list_samples(tmp_path)
    assert cuda_samples.run_sample(sample, 1).reason == "exceeds the limit of 1 s"
