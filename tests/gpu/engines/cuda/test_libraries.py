"""Libraries beside the engines: with a CuPy of NumPy's arrays where there is no GPU, and with the real one."""

from __future__ import annotations

import builtins
import ctypes
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import InputError, LaunchError
from gpu.engines.cuda import libraries
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import all_patterns
from gpu.run.kernel_check import check_variant
from gpu.run.pattern_run import record_pattern, run_pattern
from gpu.run.workload import Workload
from tests import needs
from tests.gpu.fake_libraries import LibraryEngine

LIBRARIES = [
    (pattern, variant) for pattern in all_patterns().values() for variant in pattern.variants if variant.library
]
IDS = [f"{pattern.name}-{variant.name}" for pattern, variant in LIBRARIES]


@dataclass
class UnownedMemory:
    address: int
    size: int
    owner: object
    device_id: int


@dataclass
class Pointer:
    memory: UnownedMemory
    offset: int


def ndarray(shape: tuple[int, ...], dtype: Any, pointer: Pointer) -> Any:
    memory = pointer.memory
    held = (ctypes.c_uint8 * memory.size).from_address(memory.address + pointer.offset)
    return np.frombuffer(held, dtype).reshape(shape)


@pytest.fixture
def fake_pool(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """CuPy as far as it is used, over the processor's memory; what its pool was told."""
    told: list[str] = []
    cupy = ModuleType("cupy")
    cupy.__dict__.update(
        ndarray=ndarray,
        cuda=SimpleNamespace(UnownedMemory=UnownedMemory, MemoryPointer=Pointer),
        get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: told.append("freed")),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cublas", ModuleType("cupy.cublas"))
    return told


@contextmanager
def untimed() -> Iterator[None]:
    yield


def address_of(values: np.ndarray[Any, Any]) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
    return values.ctypes.data, values.shape, values.dtype


def test_a_routine_works_in_the_memory_it_is_given_after_a_first_time_on_copies(fake_pool: list[str]) -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.full(5, 7, np.int32)
    calls: list[str] = []

    @contextmanager
    def timed() -> Iterator[None]:
        calls.append("begin")
        yield
        calls.append("end")

    def routine(library: Any, first: Any, second: Any) -> None:
        assert library is sys.modules["cupy"]
        calls.append(f"{first.shape} {second.dtype} {second.sum()}")
        first *= 2
        second += 1

    libraries.call(routine, [address_of(a), address_of(b)], timed)
    assert calls == ["(2, 3) int32 35", "begin", "(2, 3) int32 35", "end"]
    assert a.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert b.tolist() == [8] * 5
    assert fake_pool == ["freed"]


def test_what_goes_wrong_in_a_library_is_one_sentence_with_the_evidence(fake_pool: list[str]) -> None:
    def broken(library: Any, array: Any) -> None:
        raise RuntimeError("out of memory allocating 8 bytes.\nmore of it")

    with pytest.raises(LaunchError, match=r"^CuPy failed: out of memory allocating 8 bytes\.$") as caught:
        libraries.call(broken, [address_of(np.zeros(3))], untimed)
    assert "in broken" in caught.value.detail


def test_what_the_engine_says_meanwhile_stays_as_it_is(fake_pool: list[str]) -> None:
    @contextmanager
    def refused() -> Iterator[None]:
        raise LaunchError("The driver refused it.")
        yield

    with pytest.raises(LaunchError, match=r"^The driver refused it\.$"):
        libraries.call(lambda library, array: None, [address_of(np.zeros(3))], refused)


def test_a_cupy_that_does_not_load_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any) -> Any:
        if name == "cupy":
            raise ImportError("libcublas.so.13 is missing")
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LaunchError, match=r"CuPy does not load: libcublas\.so\.13 is missing\."):
        libraries.call(lambda library: None, [], untimed)


def test_whether_there_is_a_library_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert libraries.explain_missing_library().startswith("CuPy is not installed; run `pip install cupy-cuda13x`")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "cupy" or None)
    assert libraries.explain_missing_library() == ""


@pytest.mark.parametrize(("pattern", "variant"), LIBRARIES, ids=IDS)
def test_a_library_is_refused_where_there_is_none_and_has_nothing_to_step(pattern, variant) -> None:
    tell = lambda progress: None  # noqa: E731
    words = rf"{variant.library} cannot be called here\. The simulator runs kernels from source"
    with pytest.raises(InputError, match=words):
        run_pattern(SimulatorEngine(), Workload(pattern, variant, {}, {}), tell)
    for act in (record_pattern, check_variant):
        with pytest.raises(InputError, match=f"{variant.library} is a library: it has no source"):
            act(Workload(pattern, variant, {}, {}), tell)
    engine = SimulatorEngine()
    with pytest.raises(LaunchError, match="libraries do not include"):
        engine.call(lambda library: None)


@pytest.mark.parametrize(("pattern", "variant"), LIBRARIES, ids=IDS)
def test_host_programs_of_libraries(pattern, variant) -> None:
    outcome = run_pattern(LibraryEngine(), Workload(pattern, variant, {}, {"n": 77}), lambda progress: None)
    assert outcome.report.verified
    assert outcome.report.time_ms.kernel > 0


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.parametrize(("pattern", "variant"), LIBRARIES, ids=IDS)
def test_libraries_on_the_gpu(pattern, variant) -> None:
    needs.module("cupy", "CuPy: pip install cupy-cuda13x")
    for _ in range(2):  # what CuPy keeps has to outlive an engine
        engine = engines.create_engine("cuda")
        try:
            for n in (1, 33, 1000):
                outcome = run_pattern(engine, Workload(pattern, variant, {}, {"n": n}), lambda progress: None)
                assert outcome.report.verified
                assert outcome.report.time_ms.kernel > 0
            ours = run_pattern(engine, Workload(pattern, pattern.first_rung, {}, {"n": 1000}), lambda progress: None)
            assert ours.report.verified
        finally:
            engine.close()
