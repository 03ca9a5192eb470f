"""`lockstep check` on folders of programs, kernels and scripts, as a CI service runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpu.base.paths import ROOT
from gpu.cli import main as cli
from gpu.hosts.pycuda import driver
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW

SHIFT = """\
#include "helper.h"
__global__ void shift(float *a, int n) {
    int i = threadIdx.x;
    if (i < n - 1) a[i] = a[i + 1];
    touch(a, n);
}
int main() {
    float *a;
    cudaMalloc(&a, 64 * sizeof(float));
    cudaMemset(a, 0, 64 * sizeof(float));
    shift<<<1, 64>>>(a, 64);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""
HELPER = "\n__device__ void touch(float *a, int n) { a[n] = 1; }\n"
SAXPY = """\
// lockstep: simulate saxpy --grid 4 --block 256 --arg 1000 --arg 2.0 --arg random:1000 --arg zeros:1000
// lockstep: simulate fill --grid 1 --block 32 --arg zeros:32
__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += a * x[i];
}
__global__ void fill(int *y) { y[threadIdx.x] = 1; }
"""
FILL_COMMENT = "// lockstep: simulate fill --grid 1 --block 32 --arg zeros:32\n"
ONE_LAUNCH = SAXPY.replace(FILL_COMMENT, "")
"""The same without the second launch, which takes a process of its own."""
SCRIPT = '''\
import numpy as np
import pycuda.autoinit
import pycuda.gpuarray as gpuarray
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void f(float *a) {
    a[threadIdx.x] = a[threadIdx.x + 1];
}
""")
a = gpuarray.to_gpu(np.zeros(64, np.float32))
module.get_function("f")(a, block=(64, 1, 1))
'''


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    code = cli.main(("check", *arguments), NO_WINDOW)
    out, err = capsys.readouterr()
    return code, (out + err).splitlines()


@needs.cplusplus
@needs.posix
def test_findings_name_file_line_kind_and_kernel_and_reports_hold_the_same(capsys):
    write("src/shift.cu", SHIFT)
    write("src/helper.h", HELPER)
    write("src/saxpy.cu", SAXPY)
    write("src/bare.cu", "__global__ void f() {}\n")
    write("src/.hidden/x.cu", SHIFT)
    write("src/plain.py", "print(1)\n")
    code, lines = check(capsys, "src", "--json", "o.json", "--sarif", "o.sarif", "--junit", "o.xml")
    assert code == 1
    heads = [(line.split(": ")[0], line.split(": ")[1], line.rpartition(" [")[2]) for line in lines[:2]]
    assert heads == [("src/saxpy.cu:5", "out-of-bounds", "saxpy]"), ("src/helper.h:2", "out-of-bounds", "shift]")]
    assert lines[2].startswith("src/shift.cu:4: race: ")
    assert lines[3].startswith("    src/shift.cu:4: thread (")
    assert lines[4:6] == [
        "Not checked:",
        "  src/bare.cu: It has no main function, and no line `// lockstep: simulate KERNEL [options]`.",
    ]
    assert lines[6].startswith("3 checked, 3 findings, 1 not checked; ")

    data = json.loads(Path("o.json").read_text())
    assert [(unit["name"], len(unit["findings"])) for unit in data["units"]] == [
        ("src/saxpy.cu: saxpy", 1),
        ("src/saxpy.cu: fill", 0),
        ("src/shift.cu", 2),
    ]
    (run,) = json.loads(Path("o.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("src/saxpy.cu", 5),
        ("src/helper.h", 2),
        ("src/shift.cu", 4),
    ]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert len({result["partialFingerprints"]["lockstep/v1"] for result in run["results"]}) == 3
    assert "src/bare.cu" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    suite = ElementTree.parse("o.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == [
        "src/saxpy.cu: saxpy",
        "src/shift.cu",
    ]


@needs.needs(not driver.explain_unavailable(), needs.PYCUDA)
def test_a_finding_in_a_script_is_at_the_line_of_its_kernel_text(capsys):
    write("script.py", SCRIPT)
    code, lines = check(capsys, ".")
    assert code == 1
    assert lines[0].startswith("script.py:8: out-of-bounds: ")
    write(
        "script.py",
        SCRIPT.replace("float", "%s").replace('}\n""")', '}\n""" % "float")').replace("np.%s32", "np.float32"),
    )
    code, lines = check(capsys, "script.py")
    assert code == 1
    assert lines[0].startswith("script.py:12: out-of-bounds: ")
    assert "(kernel.cu:4)" in lines[0]
    write("script.py", "import pycuda.driver\n")
    code, lines = check(capsys, "script.py")
    assert (code, lines[1]) == (2, "  script.py: It launched no kernel.")


def test_scripts_of_cupy_are_checked(capsys):
    write(
        "script.py",
        "import cupy as cp\n\n"
        'code = """\nextern "C" __global__ void shift(float *a) {\n    a[threadIdx.x] = a[threadIdx.x + 1];\n}\n"""\n'
        'cp.RawKernel(code, "shift")((1,), (64,), (cp.ones(65, cp.float32),))\n',
    )
    code, lines = check(capsys, ".")
    assert code == 1
    assert lines[0].startswith("script.py:5: race: ")


def test_known_findings_are_not_reported_again_and_new_ones_are(capsys):
    write("saxpy.cu", ONE_LAUNCH)
    assert check(capsys, "saxpy.cu", "--write-baseline", "known.json")[0] == 1
    write("saxpy.cu", "\n\n" + ONE_LAUNCH)
    code, lines = check(capsys, "saxpy.cu", "--baseline", "known.json", "--sarif", "o.sarif", "--junit", "o.xml")
    assert code == 0
    assert [line.rpartition(";")[0] for line in lines] == ["1 checked, 0 findings, 1 known from the baseline"]
    (result,) = json.loads(Path("o.sarif").read_text())["runs"][0]["results"]
    assert result["baselineState"] == "unchanged"
    assert ElementTree.parse("o.xml").getroot().get("failures") == "0"
    write("saxpy.cu", SAXPY.replace("{ y[threadIdx.x] = 1; }", "{ y[threadIdx.x + 1] = 1; }"))
    code, lines = check(capsys, "saxpy.cu", "--baseline", "known.json")
    assert code == 1
    assert lines[0].startswith("saxpy.cu:7: out-of-bounds: ")
    assert lines[1].startswith("2 checked, 1 finding, 1 known from the baseline")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"findings": []}', '{"version": 1, "findings": 3}', '{"version": 1, "findings": [3]}']
)
def test_a_file_that_is_no_baseline_is_refused(capsys, text):
    write("saxpy.cu", SAXPY)
    write("known.json", text)
    code, lines = check(capsys, "saxpy.cu", "--baseline", "known.json")
    assert (code, lines) == (2, ["lockstep: known.json is no baseline: write one with --write-baseline."])


def test_a_baseline_of_another_version_is_refused_even_without_assertions():
    write("known.json", '{"version": 2, "findings": []}')
    code = "from gpu.cli.check.findings import read_baseline; read_baseline('known.json')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "known.json is a baseline of version 2, but this Lockstep reads version 1" in done.stderr


@needs.cplusplus
@needs.posix
def test_a_program_that_fails_is_a_failure_with_the_end_of_its_output(capsys):
    write("a b.cu", '#include <cstdio>\nint main() { printf("wrong \\x01 sum\\n"); return 3; }\n')
    code, lines = check(capsys, ".", "--junit", "o.xml", "--sarif", "o.sarif")
    assert code == 1
    assert lines[0] == "a b.cu:1: program-failed: It ended with exit code 3."
    (case,) = ElementTree.parse("o.xml").getroot()
    assert case.find("failure") is not None
    assert (case.findtext("system-out") or "").startswith("wrong ? sum")
    (result,) = json.loads(Path("o.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.cu"


@needs.cplusplus
@needs.posix
def test_what_does_not_compile_or_takes_too_long_is_not_checked_and_said(capsys):
    write("wrong.cu", "__global__ void f( {}\nint main() { return 0; }\n")
    write("endless.cu", "int main() { for (volatile int i = 0;; ) i = i + 1; }\n")
    code, lines = check(capsys, ".", "--max-seconds", "4", "--junit", "o.xml")
    assert code == 2
    assert lines[:2] == ["Not checked:", "  endless.cu: It took longer than 4 s."]
    assert lines[2].startswith("  wrong.cu: ")
    assert lines[3].startswith("0 checked, 0 findings, 2 not checked")
    assert ElementTree.parse("o.xml").getroot().get("skipped") == "2"


def test_a_named_file_that_cannot_be_checked_is_an_error_though_others_can(capsys):
    write("saxpy.cu", ONE_LAUNCH.replace("y[i] += a * x[i];", "if (i < n) y[i] += a * x[i];"))
    write("bare.cu", "__global__ void f() {}\n")
    assert check(capsys, ".")[0] == 0
    assert check(capsys, "saxpy.cu", "bare.cu")[0] == 2
    assert check(capsys, "saxpy.cu", "nothing.cu")[1] == ["lockstep: There is no file or folder 'nothing.cu'."]


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_a_wrong_number_of_jobs_is_refused(capsys, jobs):
    with pytest.raises(SystemExit) as end:
        check(capsys, ".", f"--jobs={jobs}")
    assert end.value.code == 2
    assert f"argument --jobs: '{jobs}' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run reduction", "the lockstep comment is not simulate KERNEL [options] or program [options] [-- ARGS ...]."),
        ("simulate", "the lockstep comment is not simulate KERNEL [options] or program [options] [-- ARGS ...]."),
        ("simulate f --dump 0=a.npy", "--dump has no place in a lockstep comment."),
        ("program --report=a.json", "--report has no place in a lockstep comment."),
        ('simulate f --arg "1', "the lockstep comment is not a command line: No closing quotation."),
    ],
)
def test_a_comment_that_is_no_command_is_refused_with_its_line(capsys, words, message):
    write("a.cu", f"__global__ void f() {{}}\n  // lockstep: {words}\n")
    assert check(capsys, "a.cu") == (2, [f"lockstep: a.cu:2: {message}"])


@needs.cplusplus
@needs.linux
@pytest.mark.parametrize("sent", ["SIGINT", "SIGKILL"])
def test_a_signal_ends_all_runs_at_once(tmp_path, sent):
    started = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in started:
        loop = "for (volatile int i = 0;; ) i = i + 1;"
        write(f"{file.stem}.cu", f'#include <cstdio>\nint main() {{ fopen("{file.name}", "w"); {loop} }}\n')
    command = [sys.executable, str(ROOT / "main.py"), "check", ".", "--jobs", "2"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and not all(file.exists() for file in started):
        time.sleep(0.05)
    assert find_processes("a.cu")
    child.send_signal(signal.Signals[sent])
    _, err = child.communicate(timeout=60)
    expected = (130, "lockstep: Stopped.\n") if sent == "SIGINT" else (-signal.SIGKILL, "")
    assert (child.returncode, err) == expected
    while time.monotonic() < end and find_processes(str(tmp_path)):
        time.sleep(0.05)
    assert not find_processes(str(tmp_path))


def find_processes(text: str) -> list[int]:
    """Return the processes whose command line or working directory contains a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            if text in words or text in str((process / "cwd").readlink()):
                found.append(int(process.name))
        except OSError:
            continue
    return found
