"""Cooperative groups in functions with `jit.rawkernel`: `cupyx.jit.cg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.hosts.cupy.jit.functions import Dim3, JitFunction, Translation, get_constant
from gpu.hosts.cupy.jit.values import BOOL, UINT32, Constant, Expression, Value, cast

_UINT64 = np.dtype(np.uint64)
_NAMESPACE = "cooperative_groups::"
HEADERS = "#include <cooperative_groups.h>\n#include <cooperative_groups/memcpy_async.h>\n"
"""What a source needs that uses groups."""


def uses_groups(code: str) -> bool:
    """Return whether a source needs the headers of groups."""
    return _NAMESPACE in code


class ThreadGroup:
    """A group of threads; the functions of `CUDA C++` are its attributes.

    Parameters
    ----------
    name : {"grid", "thread_block"}
    """

    def __init__(self, name: str) -> None:
        self.code = f"{_NAMESPACE}this_{name}()"
        counts, indices = _METHODS[name]
        number = _UINT64 if name == "grid" else UINT32
        types = dict.fromkeys(counts, number) | {"is_valid": BOOL, "sync": None}
        for method, dtype in types.items():
            setattr(self, method, JitFunction(method, self._translate_number(method, dtype)))
        for method in indices:
            setattr(self, method, JitFunction(method, self._translate_index(method)))

    def _translate_number(self, method: str, dtype: Any) -> Callable[..., Value]:
        return lambda translation: Value(f"{self.code}.{method}()", dtype)

    def _translate_index(self, method: str) -> Callable[..., Constant]:
        axes = (Value(f"{self.code}.{method}().{axis}", UINT32) for axis in "xyz")
        index = Dim3(*axes)
        return lambda translation: Constant(index)


_METHODS = {
    "grid": (
        ("thread_rank", "block_rank", "num_threads", "num_blocks", "size"),
        ("dim_blocks", "block_index", "group_dim"),
    ),
    "thread_block": (
        ("thread_rank", "num_threads", "size"),
        ("group_index", "thread_index", "dim_threads", "group_dim"),
    ),
}
"""The methods of each group that return a number, and those that return an index of three axes."""


def _find_group(group: Expression) -> str:
    found = get_constant(group, "group")
    if not isinstance(found, ThreadGroup):
        raise ValueError("group must be a valid cooperative group")
    return found.code


def _translate_copy(
    translation: Translation,
    group: Expression,
    dst: Expression,
    dst_idx: Expression,
    src: Expression,
    src_idx: Expression,
    size: Expression,
    *,
    aligned_size: Expression | None = None,
) -> Value:
    target, source = (translation.index(*each) for each in ((dst, dst_idx), (src, src_idx)))
    if not isinstance(target, Value) or not isinstance(source, Value):
        raise TypeError("dst/src must be of array type.")
    count = cast(size, UINT32, translation.mode).code
    return Value(f"{_NAMESPACE}memcpy_async({_find_group(group)}, &({target.code}), &({source.code}), {count})", None)


def _translate_call(call: str) -> Callable[..., Value]:
    return lambda translation, group: Value(f"{_NAMESPACE}{call}({_find_group(group)})", None)


def _translate_wait_prior(translation: Translation, group: Expression, step: Expression) -> Value:
    return Value(f"{_NAMESPACE}wait_prior<{int(get_constant(step, 'step'))}>({_find_group(group)})", None)


NAMES: dict[str, Any] = {
    "this_grid": JitFunction("this_grid", lambda translation: Constant(ThreadGroup("grid"))),
    "this_thread_block": JitFunction("this_thread_block", lambda translation: Constant(ThreadGroup("thread_block"))),
    "sync": JitFunction("sync", _translate_call("sync")),
    "wait": JitFunction("wait", _translate_call("wait")),
    "wait_prior": JitFunction("wait_prior", _translate_wait_prior),
    "memcpy_async": JitFunction("memcpy_async", _translate_copy),
}
"""The names of the module cupyx.jit.cg."""
