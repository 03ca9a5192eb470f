"""Headers of the project around a program are found without -I."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.hosts.program.host_compiler import find_compiler
from gpu.hosts.program.include_folders import add_project_folders
from tests import needs

HELPER = """\
#pragma once
#include "second.h"
#ifdef __DRIVER_TYPES_H__
static inline const char *name_of(cudaError_t error) { return cudaGetErrorName(error); }
#endif
#ifdef __CUDA_RUNTIME_H__
#define checked(call) do { if ((call) != cudaSuccess) exit(SECOND); } while (0)
#endif
"""
PROGRAM = """\
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <helper.h>
__global__ void fill(int *out) { out[threadIdx.x] = SECOND * threadIdx.x; }
int main() {
    int *memory, last;
    checked(cudaMalloc(&memory, 37 * sizeof(int)));
    fill<<<1, 37>>>(memory);
    checked(cudaMemcpy(&last, memory + 36, sizeof last, cudaMemcpyDeviceToHost));
    printf("%s %d\\n", name_of(cudaErrorInvalidValue), last);
}
"""


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def add_folders(file: Path, given: list[Path]) -> tuple[Path, ...]:
    return add_project_folders({file: file.read_text()}, given)


def test_a_helper_folder_of_the_repository_is_found_and_named_once(tmp_path, command_server):
    """The helper declares its functions only if the runtime's headers define their include guards, as NVIDIA's does."""
    try:
        find_compiler()
    except EngineUnavailableError:
        needs.skip(needs.COMPILER)
    (tmp_path / ".git").mkdir()
    write(tmp_path / "Common" / "helper.h", HELPER)
    write(tmp_path / "Common" / "second.h", "#define SECOND 5\n")
    file = write(tmp_path / "Samples" / "first" / "sum" / "sum.cu", PROGRAM)
    ended = command_server.run(["program", str(file)], cwd=file.parent)
    assert (ended.returncode, ended.stdout) == (0, "cudaErrorInvalidValue 180\n"), ended.stderr
    assert ended.stderr.count("lockstep: Also searched for include files: ../../../Common.\n") == 1


@pytest.mark.parametrize("name", ["Common", "include", "inc"])
def test_folders_are_searched_up_to_the_repositorys_root(tmp_path, monkeypatch, name):
    write(tmp_path / name / "outer.h")
    repository = tmp_path / "project"
    (repository / ".git").mkdir(parents=True)
    write(repository / name / "shared.h", '#include "outer.h"\n')
    file = write(repository / "a" / "b" / "c" / "d" / "main.cu", "#include <shared.h>\n#include <outer.h>\n")
    monkeypatch.chdir(file.parent)
    assert add_folders(file, []) == (repository / name,)


def test_without_a_repository_three_parents_are_searched(tmp_path, monkeypatch):
    near = write(tmp_path / "top" / "inc" / "near.h").parent
    write(tmp_path / "include" / "far.h")
    file = write(tmp_path / "top" / "a" / "b" / "c" / "main.cu", '#include "near.h"\n#include "far.h"\n')
    monkeypatch.chdir(tmp_path)
    assert add_folders(file, []) == (near,)


def test_only_folders_with_missing_headers_are_added_after_the_given_ones(tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    given = write(tmp_path / "given" / "helper.h").parent
    write(tmp_path / "Common" / "helper.h")
    unused = write(tmp_path / "include" / "other.h").parent
    file = write(tmp_path / "main.cu", '#include <helper.h>\n#include <stdio.h>\n#include "own.cuh"\n')
    write(tmp_path / "own.cuh")
    monkeypatch.chdir(tmp_path)
    assert add_folders(file, [given]) == (given,)
    assert capsys.readouterr().err == ""
    write(tmp_path / "own.cuh", "#include <other.h>\n")
    assert add_folders(file, [given]) == (given, unused)
    assert capsys.readouterr().err == "lockstep: Also searched for include files: include.\n"


@pytest.mark.parametrize(
    ("header", "advice"), [("helper_cuda.h", "the folder Common of their repository"), ("other.h", "with -I FOLDER")]
)
def test_a_missing_header_gets_advice(tmp_path, command_server, header, advice):
    try:
        find_compiler()
    except EngineUnavailableError:
        needs.skip(needs.COMPILER)
    file = write(tmp_path / "main.cu", f"#include <{header}>\nint main() {{}}\n")
    ended = command_server.run(["program", str(file)], cwd=tmp_path)
    assert ended.returncode == 1
    assert header in ended.stderr
    assert advice in ended.stderr
