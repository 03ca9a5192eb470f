"""The header that is parsed once and kept: whatever becomes of its file, kernels load."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from clang import cindex
from clang.cindex import CursorKind

from gpu.simulator import disk
from gpu.simulator.frontend.clang import parsing
from gpu.simulator.frontend.clang.precompiled_header import UNCOMPILED_HEADER
from gpu.simulator.simulated_module import SimulatedModule

TEXT = "__global__ void k(int *data) { data[threadIdx.x] = max(__popc(threadIdx.x), 1); }"


def load_kernel() -> None:
    data = np.zeros(32, np.int32)
    SimulatedModule(TEXT, Path("kernel.cu"), {}).kernel("k").launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert data.tolist() == [max(lane.bit_count(), 1) for lane in range(32)]


def is_header_intact(folder: Path) -> bool:
    """Whether a name is kept, and what it names."""
    (name,) = folder.glob("*.header")
    path = folder / f"{(disk.read_entry(name, name.stem) or b'').decode()}.pch"
    return hashlib.sha256(path.read_bytes()).hexdigest() == path.stem and path.stat().st_size > 100_000


def truncate_file(folder: Path) -> None:
    (path,) = folder.glob("*.pch")
    path.write_bytes(path.read_bytes()[:-100])


def write_file_of_other_clang(folder: Path) -> None:
    content = b"CPCH of another version"
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"{digest}.pch").write_bytes(content)
    (name,) = folder.glob("*.header")
    disk.write_entry(name, name.stem, digest.encode())


def write_missing_name(folder: Path) -> None:
    (name,) = folder.glob("*.header")
    name.write_bytes(b"\xff../../etc")


def write_name_of_other_arguments(folder: Path) -> None:
    (name,) = folder.glob("*.header")
    digest = disk.read_entry(name, name.stem) or b""
    disk.write_entry(name, "another key", digest)


def remove_files(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "damage",
    [truncate_file, write_file_of_other_clang, write_missing_name, write_name_of_other_arguments, remove_files],
)
def test_a_damaged_header_is_made_anew(tmp_path, monkeypatch, damage) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    monkeypatch.setenv("LOCKSTEP_CACHE", str(before))
    load_kernel()
    assert is_header_intact(before)
    damage(before)
    before.rename(after)  # another folder stands for another process, which has not looked yet
    monkeypatch.setenv("LOCKSTEP_CACHE", str(after))
    load_kernel()
    assert is_header_intact(after)


def test_a_cache_that_is_cleared_is_filled_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    load_kernel()
    remove_files(tmp_path)
    load_kernel()
    assert is_header_intact(tmp_path)


def test_without_room_for_it_the_header_is_read_each_time(tmp_path, monkeypatch, caplog) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("LOCKSTEP_CACHE", str(file / "cache"))
    disk._warn_once.cache_clear()
    load_kernel()
    assert file.read_text() == "no folder"
    assert caplog.messages == [f"lockstep: The cache folder {file / 'cache'} is not used: Not a directory."]
    caplog.clear()


LAUNCHING = """
__global__ void child(int *data) { data[threadIdx.x] += 1; }
__global__ void parent(int *data) { child<<<1, 32>>>(data); }
"""


@pytest.mark.parametrize(("text", "parses"), [(TEXT, 1), (LAUNCHING, 2)])
def test_a_text_is_parsed_once_and_once_more_where_it_launches(monkeypatch, text, parses) -> None:
    parsed = []
    whole_parse = parsing._parse_unit

    def parse(path, arguments, files, *, is_reparse):
        parsed.append(arguments)
        return whole_parse(path, arguments, files, is_reparse=is_reparse)

    monkeypatch.setattr(parsing, "_parse_unit", parse)
    data = np.zeros(32, np.int32)
    module = SimulatedModule(text, Path("kernel.cu"), {})
    for name in module.kernels:
        module.kernel(name).launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert len(parsed) == parses
    assert all("-include-pch" in each for each in parsed)


TEMPLATES = """
template <typename T> struct Box { T v; __device__ T get() { return v; } __device__ T get_again(); };
template <typename T> __device__ T Box<T>::get_again() { return v; }
template <typename T> __device__ T twice(T a) { return a * 2; }
template <> __device__ int twice<int>(int a) { return a + a; }
template <typename T> __global__ void reduce(T *a) {
    Box<T> box = {*a};
    *a = box.get() + box.get_again() + twice(*a);
}
template __global__ void reduce<double>(double *);
template struct Box<char>;
__device__ auto add_one = [](auto x) { return x + 1; };
struct Pair { int x; __device__ Pair(int y); };
__device__ Pair::Pair(int y) : x(y) {}
__global__ void k(int *b) { *b = twice(*b) + add_one(*b) + Pair(3).x; }
void host() { reduce<float><<<1, 1>>>(0); }
"""


def list_declarations(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Return the declarations of `TEMPLATES`; with a precompiled header if it has a folder."""
    path = Path("templates.cu")
    if folder is None:
        monkeypatch.setattr(parsing, "get_precompiled_header", lambda _arguments: UNCOMPILED_HEADER)
        parsing._parse_once.cache_clear()
    else:
        monkeypatch.setenv("LOCKSTEP_CACHE", str(folder))
    tree, diagnoses = parsing.parse(TEMPLATES, path, {})
    assert not any(each.is_error for each in diagnoses)
    return [
        (each.kind.name, each.spelling, each.location.offset)
        for each in tree.declarations
        if each.location.file == str(path)
    ]


def test_a_file_has_the_same_declarations_and_no_instance_of_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precompiled = list_declarations(tmp_path, monkeypatch)
    names = [name for _, name, _ in precompiled]
    assert names == ["Box", "get_again", "twice", "twice", "reduce", "Box", "add_one", "Pair", "Pair", "k", "host"]
    assert precompiled == list_declarations(None, monkeypatch)


OWN_OVERLOAD = """
__device__ int log2(int x) { return 31 - __clz(x); }
__global__ void k(int *out) { out[threadIdx.x] = log2((int)threadIdx.x + 1); }
"""


def test_a_file_may_define_an_overload_that_the_header_has_too() -> None:
    out = np.zeros(32, np.int32)
    SimulatedModule(OWN_OVERLOAD, Path("kernel.cu"), {}).kernel("k").launch((1, 1, 1), (32, 1, 1), [out.view(np.uint8)])
    assert out.tolist() == [lane.bit_length() - 1 for lane in range(1, 33)]


PASSED_FUNCTIONS = """
template <typename F> __device__ float apply(F function, float x) { return function(x); }
__global__ void k(float *out) {
    auto make = make_float2;
    out[threadIdx.x] = apply(rcbrtf, 8.0f) + apply(sinpif, 0.5f) + make(3.0f, 4.0f).y;
}
"""


def test_functions_may_be_passed_by_their_names() -> None:
    out = np.zeros(32, np.float32)
    module = SimulatedModule(PASSED_FUNCTIONS, Path("kernel.cu"), {})
    module.kernel("k").launch((1, 1, 1), (32, 1, 1), [out.view(np.uint8)])
    assert out.tolist() == [5.5] * 32


def list_loaded_functions(cursor: cindex.Cursor) -> Iterator[str]:
    """Yield the functions that clang loads whether a file uses them or not: on devices, with bodies, no templates."""
    for child in cursor.get_children():
        if child.kind in {CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE, CursorKind.STRUCT_DECL}:
            yield from list_loaded_functions(child)
        elif child.kind in {CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR}:
            kinds = {part.kind for part in child.get_children()}
            if kinds >= {CursorKind.CUDADEVICE_ATTR, CursorKind.COMPOUND_STMT}:
                yield child.spelling


def test_clang_loads_few_functions_for_each_file() -> None:
    arguments = [*parsing._ARGUMENTS, *UNCOMPILED_HEADER]
    unit = cindex.Index.create().parse("empty.cu", args=arguments, unsaved_files=[("empty.cu", "")])
    loaded = [*list_loaded_functions(unit.cursor)]
    assert "malloc" in loaded, "such functions are found"
    assert len(loaded) < 300, f"write LOCKSTEP_FUNCTION for some of {loaded}"
