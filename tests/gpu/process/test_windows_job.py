"""Windows' job objects: the layout that Windows documents, and the calls in their order, on a stand-in for kernel32."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from gpu.process.windows_job import ExtendedLimits, limit_process_memory

JOB, PROCESS = 0x7FF_1234_5678_9ABC, 2**64 - 1


class Routine:
    """A routine that takes its arguments as Windows would: converted to its types, which must be declared before."""

    restype: Any = None
    argtypes: Any = None

    def __init__(self, name: str, answer: int, calls: list[tuple[Any, ...]]) -> None:
        self._name, self._answer, self._calls = name, answer, calls

    def __call__(self, *given: Any) -> int:
        assert len(given) == len(self.argtypes)
        taken = [kind.from_param(each) for kind, each in zip(self.argtypes, given, strict=True)]
        assert len(taken) == len(given)
        assert self.restype in (ctypes.c_void_p, ctypes.c_int)
        if self._name == "SetInformationJobObject":
            assert given[3] == ctypes.sizeof(ExtendedLimits)
            given = (*given[:2], ctypes.string_at(ctypes.addressof(given[2]._obj), given[3]))
        self._calls.append((self._name, *given))
        return self.restype(self._answer).value


class Kernel32:
    """What of kernel32 is called; `refused` names the routine that fails."""

    def __init__(self, refused: str = "") -> None:
        self.calls: list[tuple[Any, ...]] = []
        answers = {"CreateJobObjectW": JOB, "GetCurrentProcess": PROCESS, "SetInformationJobObject": 1,
                   "AssignProcessToJobObject": 1}  # fmt: skip
        for name, answer in answers.items():
            setattr(self, name, Routine(name, 0 if name == refused else answer, self.calls))


def test_the_layout_is_that_of_64_bit_windows():
    assert ctypes.sizeof(ExtendedLimits) == 144
    places = {name: getattr(ExtendedLimits, name).offset for name, *_ in ExtendedLimits._fields_}
    assert (places["transfers"], places["process_memory"], places["job_memory"]) == (64, 112, 120)
    basic = type(ExtendedLimits().basic)
    assert (basic.flags.offset, basic.least_working_set.offset, basic.affinity.offset) == (16, 24, 48)


def test_this_process_is_put_into_a_job_with_a_limit():
    kernel32 = Kernel32()
    assert limit_process_memory(3 << 32, kernel32)
    created, told, current, assigned = kernel32.calls
    assert created == ("CreateJobObjectW", None, None)
    assert told[:3] == ("SetInformationJobObject", JOB, 9)
    assert int.from_bytes(told[3][16:20], "little") == 0x100
    assert int.from_bytes(told[3][112:120], "little") == 3 << 32
    assert sum(told[3]) == 0x1 + 3, "nothing else is limited"
    assert current == ("GetCurrentProcess",)
    assert assigned == ("AssignProcessToJobObject", JOB, PROCESS)


@pytest.mark.parametrize("refused", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"])
def test_where_windows_refuses_the_process_works_as_it_is(refused):
    kernel32 = Kernel32(refused)
    assert not limit_process_memory(1 << 30, kernel32)
    assert kernel32.calls[-1][0] == refused
