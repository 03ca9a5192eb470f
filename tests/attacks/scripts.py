"""PyCUDA's scripts: calls of the driver with what nobody meant, and now and then a script of which bytes are others."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.paths import ROOT
from gpu.hosts.driver.faults import DriverError
from gpu.hosts.pycuda import devices, driver, packing
from gpu.hosts.pycuda.names import NAMES
from tests.odd_inputs import mutate_bytes

_RUN = 0.01
_SCRIPT = b"""import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("__global__ void f(int *a, int n) { if (threadIdx.x < n) a[threadIdx.x] += n; }")
a = np.zeros(32, np.int32)
module.get_function("f")(cuda.InOut(a), np.int32(32), block=(32, 1, 1), grid=(1, 1))
print(a.sum())
"""
_ODD: tuple[Any, ...] = (
    0, 1, -1, 3, 64, 4096, 2**31, 2**40, 2**63, 2**64, -(2**63), 10**30, 1.5, float("nan"), None, True, "", "x", b"",
    b"abc", (), (1, 2), (-1,), [1], {}, np.float32(2), np.int64(-3), np.dtype("f4"), "f4", "O", "S0", object(),
)  # fmt: skip
_EXPECTED = (
    DriverError, struct.error, TypeError, ValueError, AttributeError, OverflowError, NotImplementedError, IndexError,
    KeyError,
)  # fmt: skip
"""What a script may catch; Python's own where what it gave is none of what the routine takes."""
_LEFT_ALONE = ("Context", "Device", "init", "PointerHolderBase", "Allocation", "HostPointer", "HostMemory")
_CODES = "@<=PpiIqQfdbBhHlLs?x0123456789 \0é"


def attack(random: np.random.Generator, folder: Path) -> None:
    """Call routines one after the other, with what they gave before, with numbers and with nonsense."""
    if random.random() < _RUN and not driver.explain_unavailable():
        _run(random, folder)
        return
    devices.init()
    context = devices.SimulatedDevice(0).make_context()
    try:
        known: list[Any] = [NAMES["mem_alloc"](64), np.zeros(16, np.int32), NAMES["mem_alloc"](4096), bytearray(8)]
        routines = sorted(name for name in NAMES if callable(NAMES[name]) and not name.endswith(_LEFT_ALONE))
        for _ in range(8):
            call = NAMES[routines[int(random.integers(len(routines)))]]
            if random.random() < 0.4:
                thing = known[int(random.integers(len(known)))]
                offered = (
                    [name for name in dir(thing) if not name.startswith("__")]
                    if "gpu" in type(thing).__module__
                    else []
                )
                call = getattr(thing, offered[int(random.integers(len(offered)))]) if offered else call
            given = [_draw_argument(random, known) for _ in range(int(random.integers(5)))]
            found = _call_or_none(call, given) if callable(call) else None
            if found is not None and not isinstance(found, type):
                known.append(found)
        text = "".join(_CODES[place] for place in random.integers(len(_CODES), size=int(random.integers(8))).tolist())
        _call_or_none(packing.calcsize, [text])
        _call_or_none(packing.pack, [text, *(_draw_argument(random, known) for _ in range(int(random.integers(4))))])
    finally:
        context.detach()


def _draw_argument(random: np.random.Generator, known: list[Any]) -> Any:
    held = known if random.random() < 0.5 else _ODD
    return held[int(random.integers(len(held)))]


def _call_or_none(call: Callable[..., Any], given: list[Any]) -> Any:
    try:
        return call(*given)
    except _EXPECTED:
        return None


def _run(random: np.random.Generator, folder: Path) -> None:
    (folder / "s.py").write_bytes(mutate_bytes(random, _SCRIPT, head=len(_SCRIPT)))
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    target = str(random.choice(["r.json", "none/r.json", "folder", "/dev/full", "fifo", "x" * 300]))
    script = str(random.choice(["s.py", "s.py", "s.py", "fifo", "folder", "/dev/zero", "-m"]))
    command = [sys.executable, str(ROOT / "main.py"), "pycuda", "--report", target, script, "\udcff"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    said = done.stderr.decode(errors="replace")
    assert 0 <= done.returncode <= 255
    assert str(ROOT / "gpu") not in said, said  # a traceback is the script's own
    if target != "r.json" or script != "s.py":
        assert done.returncode != 0
        assert "Traceback" not in said, said
