"""How public programs are made and run is what their makefiles say, and the page counts what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import program_check
from tools.program_check import CheckedProgram, ProgramResults
from tools.public_programs.lowered_kernels import CheckedFile
from tools.public_programs.recipes import Recipe, read_hecbench_recipe, reduce_arguments

MAKEFILE = """\
program = main
source = main.cu \\
  other.cpp
cuda_source = more.cu
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 --expt-relaxed-constexpr -I../shared -arch=$(ARCH)
ifeq ($(DEBUG),yes)
  CFLAGS += -g -DDEBUG
endif
CFLAGS += -DTILE=16
run: $(program)
\t$(LAUNCHER) ./$(program) 65536 -1.5 200 > out.txt
"""


def program_in(folder: Path, makefile: str, text: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("main.cu", "other.cpp", "more.cu"):
        (folder / name).write_text(text)
    (folder / "Makefile").write_text(makefile)
    return folder


def test_a_makefile_is_read(tmp_path):
    folder = program_in(tmp_path / "a-cuda", MAKEFILE, "")
    assert read_hecbench_recipe(folder) == Recipe(
        ("main.cu", "other.cpp", "more.cu"),
        ("65536", "-1.5", "200"),
        ("-I", "../shared", "-D", "TILE=16", "--expt-relaxed-constexpr"),
    )
    assert read_hecbench_recipe(program_in(tmp_path / "b", "source = $(x)\n", "")) is None


def test_only_programs_that_check_themselves_without_data_or_libraries_are_drawn(tmp_path):
    right = 'printf("%s", ok ? "PASS" : "FAIL");'
    program_in(tmp_path / "src" / "a-cuda", MAKEFILE, right)
    program_in(tmp_path / "src" / "b-cuda", MAKEFILE, "")
    program_in(tmp_path / "src" / "c-cuda", MAKEFILE, "#include <thrust/sort.h>\n" + right)
    program_in(tmp_path / "src" / "d-cuda", MAKEFILE.replace("65536", "../data/in.txt"), right)
    assert [folder.name for folder in program_check.list_hecbench_programs(tmp_path)] == ["a-cuda"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (("65536", "-1.5", "200"), ["1024", "-1.5", "1"]),
        (("1000",), ["1"]),
        (("1000000",), ["976"]),
        ((), []),
        (("-n", "64"), ["-n", "1"]),
    ],
)
def test_arguments_are_made_smaller(given, made):
    assert reduce_arguments(given) == made


def test_pathfinder_is_compared_with_the_least_costs():
    said = "sizes\n1 9 9 \n9 1 9 \n9 9 1 \n1 9 9 \n{}\n"
    judge = next(each.judge for each in program_check.RODINIA if each.folder == "pathfinder")
    assert judge(said.format("11 11 3 ")) == ""
    assert judge(said.format("11 11 4 ")) == "1 paths differ"
    assert judge("nothing") == "it prints no paths"


def test_the_page_counts_what_ran():
    found = ProgramResults(
        [
            CheckedProgram("lud lud.cu", True, "its own check"),
            CheckedProgram("srad", False, "__global__ read: element -64 of J<4>"),
        ],
        [CheckedProgram("adam", True), CheckedProgram("ace", None, "prints no verdict")],
        candidates=100,
        left_out=7,
        kernels={"Rodinia": [CheckedFile("a.cu", ("f", "g<int>"), {"h<float>": "a.cu:3:1: not this"})]},
    )
    text = program_check.format_page(found, "2026-11-22")
    assert "| Rodinia | 1 | 2 | 50% |" in text
    assert "| HeCBench | 1 | 1 | 100% |" in text
    assert "| `lud lud.cu` | correct: its own check |" in text
    assert r"| `srad` | not correct: \_\_global\_\_ read: element -64 of J\<4> |" in text
    assert "from the 100" in text
    assert "Correct: `adam`." in text
    assert "no verdict for these arguments: `ace`." in text
    assert "7 more of the sample did not run within the time limit." in text
    assert "| Rodinia | 1 | 3 | 2 | 66.7% |" in text
    assert "| a.cu | `h<float>` | a.cu:3:1: not this |" in text
    without = program_check.format_page(ProgramResults(), "2026-11-22")
    assert "did not run" not in without
    assert "nvcc is not installed" in without


def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path, monkeypatch):
    """The second time only what is missing runs, and a program that is done is taken as it was."""
    ran = []
    monkeypatch.setattr(program_check, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(program_check, "RODINIA", ())

    def run(folder):
        ran.append(folder.name)
        return CheckedProgram(folder.name, True)

    monkeypatch.setattr(program_check, "run_hecbench", run)
    right = 'printf("%s", ok ? "PASS" : "FAIL");'
    for name in ("a-cuda", "b-cuda"):
        program_in(tmp_path / "hecbench" / "src" / name, MAKEFILE, right)
    words = ["--rodinia", str(tmp_path), "--hecbench", str(tmp_path / "hecbench"), "--files", "0"]
    words += ["--kept", str(tmp_path / "kept")]
    (tmp_path / "page.md").write_text("# Old\n\n## Kernels that nvcc compiles\n\nAll of them.\n")
    program_check.main([*words, "--minutes", "0"])
    assert ran == []
    assert "## Kernels that nvcc compiles\n\nAll of them." in (tmp_path / "page.md").read_text(), "not measured again"
    assert "2 more of the sample did not run" in (tmp_path / "page.md").read_text()
    assert program_check.main([*words, "--sample", "1"]) == 1  # none of Rodinia's is right
    program_check.main(words)
    assert sorted(ran) == ["a-cuda", "b-cuda"]
    assert "| HeCBench | 2 | 2 | 100% |" in (tmp_path / "page.md").read_text()


def test_the_reason_of_a_failure_is_not_the_summary_of_launches(tmp_path, monkeypatch):
    folder = program_in(tmp_path / "a-cuda", MAKEFILE, "")
    report = "lockstep: 1 launch on the simulator, 66 ms of this processor's time. --check looks for other errors.\n"
    reasons = {"": "FAIL at 3", "lockstep: The launch at main.cu:7 fails.\n": "The launch at main.cu:7 fails."}
    for printed, reason in reasons.items():
        monkeypatch.setattr(
            program_check, "run_program", lambda *_, printed=printed: (0, "FAIL at 3\n", printed + report)
        )
        assert program_check.run_hecbench(folder).explanation == reason
