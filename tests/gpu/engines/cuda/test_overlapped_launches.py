"""Launches that may begin while the previous one ends: which ones, and what the driver receives."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from gpu.base.paths import KERNELS
from gpu.engines.base import OVERLAPPED, Engine
from gpu.engines.cuda import tensor_maps

PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID in cuda.h


@pytest.mark.parametrize("overlapped", [True, False])
def test_the_driver_receives_extents_arguments_and_the_attribute(monkeypatch, overlapped: bool) -> None:
    received: dict[str, Any] = {}

    def launch(function: Any, *rest: Any) -> int:
        received["plain"] = [each.value for each in rest[:7]]
        return 0

    def launch_with_attributes(reference: Any, function: Any, addresses: Any, extra: Any) -> int:
        # CUlaunchConfig by its offsets: seven 32-bit numbers, the stream, the attributes, their number
        memory = ctypes.string_at(ctypes.addressof(reference._obj), 56)
        [attributes] = memoryview(memory[40:48]).cast("Q")
        attribute = memoryview(ctypes.string_at(attributes, 72)).cast("I").tolist()
        received["config"] = memoryview(memory[:28]).cast("I").tolist()
        received["stream"], received["count"] = memoryview(memory[32:40]).cast("Q")[0], memory[48]
        received["attribute"] = attribute[0], attribute[2]
        received["arguments"] = [ctypes.string_at(addresses[i], 4) for i in range(2)]
        return 700

    driver = SimpleNamespace(
        cuFuncSetAttribute=lambda *rest: 0, cuLaunchKernel=launch, cuLaunchKernelEx=launch_with_attributes
    )
    monkeypatch.setattr(tensor_maps, "load_driver", lambda **_: driver)
    extents = (3, 2, 1), (64, 1, 1)
    run = tensor_maps.prepare_launch(ctypes.c_void_p(1), *extents, [b"abcd", b"efgh"], 512, 9, overlapped=overlapped)
    status = run()
    if not overlapped:
        assert (status, received) == (0, {"plain": [3, 2, 1, 64, 1, 1, 512]})
        return
    assert status == 700
    assert received["config"] == [3, 2, 1, 64, 1, 1, 512]
    assert (received["stream"], received["count"]) == (9, 1)
    assert received["attribute"] == (PROGRAMMATIC_STREAM_SERIALIZATION, 1)
    assert received["arguments"] == [b"abcd", b"efgh"]


@pytest.mark.gpu
def test_edited_kernels_do_not_overlap(cuda_engine: Engine, monkeypatch) -> None:
    """They may lack the wait, and would read what the previous launch has not written yet."""
    monkeypatch.setattr(tensor_maps, "has_launch_attributes", lambda: True)
    text = (KERNELS / "sort_peak.cu").read_text("utf-8")
    built: Any = cuda_engine.build("sort_peak.cu", {OVERLAPPED: 1}).kernel("sort_peak_pass")
    assert built.overlapped
    plain: Any = cuda_engine.build("sort_peak.cu").kernel("sort_peak_pass")
    assert not plain.overlapped
    monkeypatch.setattr(cuda_engine, "sources", {"sort_peak.cu": text.replace("griddepcontrol.wait;", "")})
    edited: Any = cuda_engine.build("sort_peak.cu", {OVERLAPPED: 1}).kernel("sort_peak_pass")
    assert not edited.overlapped


def test_without_the_drivers_library_nothing_overlaps(monkeypatch) -> None:
    def fail() -> None:
        raise OSError("no driver")

    monkeypatch.setattr(tensor_maps, "load_driver", fail)
    assert not tensor_maps.has_launch_attributes()
