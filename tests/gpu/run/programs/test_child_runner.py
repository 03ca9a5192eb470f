"""Programs run for the window: what is told of them, and the sentence for each way in which they cannot run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.engines.null import NullEngine
from gpu.hosts.driver.faults import DriverLaunchError
from gpu.hosts.driver.journal import (
    Journal,
    JournalPacker,
    LaunchEntry,
    append_received_entries,
    current_journal,
    set_current_journal,
)
from gpu.hosts.driver.launches import LoadedModule
from gpu.hosts.driver.memory import address_of, new_memory
from gpu.hosts.program import host_compiler
from gpu.hosts.pycuda import driver
from gpu.messages.kernels import CheckSource
from gpu.messages.programs import ProgramEnd, ProgramProgress, RunProgram, WholeProgram, has_main
from gpu.messages.shared_arrays import SharedFolder
from gpu.run.handlers.execution import execute_request
from gpu.run.programs import child_runner
from gpu.run.programs.child_runner import run_program
from gpu.run.programs.launch_messages import match_script_lines
from gpu.run.programs.launch_modeler import LaunchModeler
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing import compiler
from gpu.timing.gpus import find_gpu
from tests import needs
from tests.gpu.timing.modeled_kernels import model_kernel


def test_lines_of_a_kernel_are_found_in_the_script_that_it_was_made_in():
    kernel = [
        "__global__ void one(int *x) {",
        "    x[0] = TYPE;",
        "}",
        "",
        "__global__ void two(int *x) {",
        "    x[1] = 0;",
    ]
    script = ["import pycuda", "text = '''", *kernel, "''' + more", "go(text.replace('TYPE', '7'))"]
    compiled = ['extern "C" {', *(line.replace("TYPE", "7") for line in kernel), "}", ""]
    found = match_script_lines("\n".join(compiled), "\n".join(script))
    assert found == {2: 3, 4: 5, 6: 7, 7: 8}, "what was put in, and empty lines, are nowhere"


def test_news_of_a_journal_are_taken_down_as_far_as_they_came():
    journal, told = Journal(), Journal()
    news = JournalPacker(journal)
    journal.texts.append("one")
    journal.entries.append(LaunchEntry("one", 0, "a.py:1", (1, 1, 1), (32, 1, 1), 0, 1.0))
    first = news.pack_new_entries()
    journal.entries.append(LaunchEntry("two", 0, "a.py:2", (1, 1, 1), (32, 1, 1), 0, 1.0))
    second = news.pack_new_entries(refused=True)
    assert append_received_entries(told, first + second[:-1]) == (len(first), False)
    assert [each.kernel for each in told.entries] == ["one"]
    assert append_received_entries(told, second) == (len(second), True)
    assert told.entries == journal.entries
    assert told.texts == ["one"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (0, "Finished."),
        (3, "Finished with exit code 3."),
        (-11, "It crashed: SIGSEGV."),
        (-9, "It was killed from outside (SIGKILL), most likely because memory ran out."),
        (-99, "It crashed: signal 99."),
    ],
)
def test_an_end_is_a_sentence(code, sentence):
    assert ProgramEnd(code, 0, 0.0).sentence == sentence


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("int main() {", True),
        ("int x;\n  int main ( int argc, char **argv )\n{", True),
        ("auto main() -> int {", True),
        ("// int main() {", False),
        ("int domain(int x);", False),
        ("__global__ void main_kernel() {}", False),
    ],
)
def test_a_file_with_main_is_a_program(text, whole):
    assert has_main(text) is whole


def make_request(tmp_path, name, text):
    return RunProgram(WholeProgram(str(tmp_path / name), text), str(tmp_path))


def test_without_pycudas_files_a_script_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "python_layer", lambda: tmp_path)
    monkeypatch.setattr(driver.python_files, "fetch", lambda python, target: "no connection")
    told: list[ProgramProgress] = []
    with pytest.raises(EngineUnavailableError, match="cannot be fetched: no connection") as raised:
        run_program(make_request(tmp_path, "a.py", ""), told.append)
    assert "network" in raised.value.advice
    assert [each.output for each in told] == ["lockstep: Fetching the Python files of PyCUDA 2026.1 with pip, once.\n"]


CUPY_TEXT = """\
import cupy as cp

double = cp.RawKernel('extern "C" __global__ void twice(int *x) { x[threadIdx.x] *= 2; }', "twice")
x = cp.arange(8, dtype=cp.int32)
double((1,), (8,), (x,))
print(x.sum())
"""


def test_a_script_of_cupy_runs_without_pycudas_files(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "python_layer", lambda: tmp_path / "missing")
    progress: list[ProgramProgress] = []
    end = run_program(make_request(tmp_path, "a.py", CUPY_TEXT), progress.append)
    assert (end.code, end.launches) == (0, 1)
    output = "".join(each.output for each in progress)
    assert output == "56\nlockstep: NumPy and SciPy computed, without kernels and checks: sum.\n"
    (launch,) = (launch for each in progress for launch in each.launches)
    assert launch.kernel == "twice"


def test_without_a_compiler_a_program_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(host_compiler.shutil, "which", lambda name: None)
    host_compiler.find_compiler.cache_clear()
    with pytest.raises(EngineUnavailableError, match="needs a C\\+\\+ compiler") as raised:
        run_program(make_request(tmp_path, "a.cu", "int main() {}"), lambda progress: None)
    assert "Install g++" in raised.value.advice


def test_headers_of_the_project_are_found_for_the_edited_text(tmp_path):
    """The file itself need not be saved."""
    try:
        host_compiler.find_compiler()
    except EngineUnavailableError:
        needs.skip(needs.COMPILER)
    run, project = tmp_path / "run", tmp_path / "project"
    run.mkdir()
    (project / "Common").mkdir(parents=True)
    (project / "samples").mkdir()
    (project / "Common" / "helper.h").write_text("#define CODE 37\n")
    told: list[ProgramProgress] = []
    text = "#include <helper.h>\nint main() { return CODE; }\n"
    program = WholeProgram(str(project / "samples" / "a.cu"), text)
    assert run_program(RunProgram(program, str(run)), told.append).code == 37
    assert "".join(each.output for each in told) == "lockstep: Also searched for include files: ../Common.\n"


def test_a_flood_is_told_as_far_as_anybody_reads_it(tmp_path, monkeypatch):
    if driver.explain_unavailable():
        needs.skip(needs.PYCUDA)
    monkeypatch.setattr(child_runner, "MAX_PENDING_CHARACTERS", 1 << 16)
    told: list[ProgramProgress] = []
    text = "for n in range(200_000): print(n)\n"
    end = run_program(make_request(tmp_path, "flood.py", text), told.append)
    assert end.code == 0
    assert all(len(each.output) <= child_runner.MAX_REPORT_CHARACTERS + 100 for each in told)
    said = "".join(each.output for each in told)
    assert "characters omitted here" in said
    assert said.endswith("199999\n")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [("x = 1\nprint(x\n", 2, "never closed"), ("if 1:\nx\n", 2, "indented block"), ("x = '\0'\n", 1, "null")],
)
def test_what_python_cannot_read_is_told_at_its_line(text, line, words):
    folder = SharedFolder()
    try:
        result = execute_request(NullEngine(), CheckSource("/some/script.py", text), folder, lambda progress: None)
    finally:
        folder.close()
    (found,) = result
    assert found.line == line
    assert words in found.message
    assert 1 <= found.column < found.end


ADD = """__constant__ float factor;
__global__ void add(float *c, const float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + factor;
}
"""
USES = f"""import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule('''{ADD}''')
cuda.memcpy_htod(module.get_global("factor")[0], np.float32(2))
c, a = (cuda.to_device(np.ones(1 << 16, np.float32)) for _ in "ca")
for threads in (256, 256, 512):
    module.get_function("add")(c, a, np.int32(1 << 16), grid=((1 << 16) // threads, 1), block=(threads, 1, 1))
"""


def test_launches_are_modeled_as_a_kernel_alone_is(tmp_path):
    if driver.explain_unavailable():
        needs.skip(needs.PYCUDA)
    told: list[ProgramProgress] = []
    run_program(replace(make_request(tmp_path, "add.py", USES), gpu="h200"), told.append)
    first, again, other = (each.modeled_us for news in told for each in news.launches)
    arguments = ("zeros:65536", "zeros:65536", "65536")
    alone = model_kernel(tmp_path / "add.cu", ADD, "add", 256, 256, arguments, "h200").time_us
    assert first == pytest.approx(alone, rel=0.1)
    assert again == first
    assert other != first


def test_what_the_model_does_not_follow_has_no_time_and_runs_all_the_same():
    modeler = LaunchModeler(find_gpu("h200"))
    module = SimulatedModule(ADD, Path("add.cu"), {})
    assert modeler(module, "nothing", (1, 1, 1), (32, 1, 1), 0, ()) is None
    assert modeler(module, "add", (1, 1, 1), (32, 1, 1), 0, ()) is None


def model_last_launch(text: str, shape: tuple[int, int], *launches: tuple[str, bytes], gpu: str = "h200") -> float:
    """Return the modeled microseconds of the last of some launches."""
    journal, outer = Journal(model_launch=LaunchModeler(find_gpu(gpu))), current_journal()
    set_current_journal(journal)
    try:
        module = LoadedModule(SimulatedModule(text, Path("modeled.cu"), {}), text)
        for kernel, arguments in launches:
            module.launch(kernel, (shape[0], 1, 1), (shape[1], 1, 1), arguments)
    finally:
        set_current_journal(outer)
    time_us = journal.entries[-1].modeled_us
    assert time_us is not None
    return time_us


REPEATS = """
struct Work { const int *counts; float *results; };
__device__ void repeat(const int *counts, float *results) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < counts[i]; ++k) sum = sum * 0.5f + 1.0f;
    results[i] = sum;
}
__global__ void with_pointers(const int *counts, float *results) { repeat(counts, results); }
__global__ void with_structure(Work work) { repeat(work.counts, work.results); }
__global__ void with_stored_pointers(const Work *work) { repeat(work->counts, work->results); }
"""


def test_pointers_in_structures_are_modeled_like_arguments():
    threads = 64 * 256
    counts, results, work = new_memory(4 * threads), new_memory(4 * threads), new_memory(16)
    counts.data.view(np.int32)[:] = 20000
    pointers = np.array([address_of(counts), address_of(results)], np.int64)
    work.data.view(np.int64)[:] = pointers
    for memory in (counts, results, work):
        memory.mark_written()
    arguments = pointers.tobytes()
    expected = model_last_launch(REPEATS, (64, 256), ("with_pointers", arguments))
    assert expected > 20, "the counts are read"
    assert model_last_launch(REPEATS, (64, 256), ("with_structure", arguments)) == pytest.approx(expected, rel=0.1)
    stored = np.int64(address_of(work)).tobytes()
    assert model_last_launch(REPEATS, (64, 256), ("with_stored_pointers", stored)) == pytest.approx(expected, rel=0.2)


ALL_PAIRS = """
struct Body { float position[3], velocity[3], acceleration[3], mass; };
__global__ void pairs(Body *bodies, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = bodies[i].position[0], sum = 0.0f;
    for (int j = 0; j < n; ++j) sum += (bodies[j].position[0] - x) * bodies[j].mass;
    bodies[i].acceleration[0] = sum;
}
"""


def test_the_size_of_an_array_limits_its_traffic_though_its_values_decide_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")
    count = 63 * 256
    bodies = new_memory(40 * count)
    bodies.mark_written()
    arguments = np.int64(address_of(bodies)).tobytes() + np.int32(count).tobytes()
    sizes = (f"zeros:{count}", str(count))
    alone = model_kernel(tmp_path / "pairs.cu", ALL_PAIRS, "pairs", 63, 256, sizes, "rtx-3080").time_us
    found = model_last_launch(ALL_PAIRS, (63, 256), ("pairs", arguments), gpu="rtx-3080")
    assert found == pytest.approx(alone, rel=0.05)


ADDRESSES = """
__global__ void write(unsigned long long *words, unsigned *errors) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    words[i] = (unsigned long long)(words + i);
}
__global__ void compare(unsigned long long *words, unsigned *errors) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (words[i] != (unsigned long long)(words + i)) atomicAdd(errors, 1);
}
"""


def test_addresses_that_a_program_stored_equal_those_that_are_modeled():
    threads = 1024 * 256
    words, errors = new_memory(8 * threads), new_memory(4)
    errors.data[:] = 0
    errors.mark_written()
    words.data[:] = 0
    words.mark_written()
    arguments = np.array([address_of(words), address_of(errors)], np.int64).tobytes()
    unequal = model_last_launch(ADDRESSES, (1024, 256), ("compare", arguments))
    equal = model_last_launch(ADDRESSES, (1024, 256), ("write", arguments), ("compare", arguments))
    assert equal < unequal / 2, "without errors there are no atomic operations"


def test_a_failed_launch_has_no_modeled_time():
    text = "__global__ void check(int n) { if (n < 0) __trap(); }"
    journal, outer = Journal(model_launch=lambda *launch: 1.0), current_journal()
    set_current_journal(journal)
    try:
        module = LoadedModule(SimulatedModule(text, Path("check.cu"), {}), text)
        module.launch("check", (1, 1, 1), (32, 1, 1), np.int32(1).tobytes())
        with pytest.raises(DriverLaunchError):
            module.launch("check", (1, 1, 1), (32, 1, 1), np.int32(-1).tobytes())
    finally:
        set_current_journal(outer)
    assert [entry.modeled_us for entry in journal.entries] == [1.0, None]


def test_a_launch_that_is_not_to_run_changes_nothing_and_is_not_listed():
    text = "__global__ void check(int n) { if (n < 0) __trap(); }"
    journal, outer = Journal(should_execute=lambda: False), current_journal()
    set_current_journal(journal)
    try:
        module = LoadedModule(SimulatedModule(text, Path("check.cu"), {}), text)
        module.launch("check", (1, 1, 1), (32, 1, 1), np.int32(-1).tobytes())
    finally:
        set_current_journal(outer)
    assert journal.entries == []
