"""Functions of CuPy that need no kernel: fusion, benchmarks, tests and cupyx."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray, asnumpy, from_host, from_result
from gpu.hosts.cupy.forwarding import ForwardedFunction, to_host

_MAX_BENCHMARK_S = 5.0
"""Seconds of a benchmark, since the simulator is slower than the repetitions that scripts ask for."""


def fuse(*functions: Any, **options: Any) -> Any:
    """Return a function itself, with its operations computed one by one: `@fuse`, `@fuse()`, `@fuse(kernel_name=...)`.

    Raises
    ------
    TypeError
        If an option is unknown.
    """
    if unknown := set(options) - {"kernel_name"}:
        raise TypeError(f"cupy.fuse got an unexpected keyword argument {min(unknown)!r}")
    if functions and callable(functions[0]):
        return functions[0]
    return lambda function: function


def vectorize(pyfunc: Callable[..., Any], otypes: Any = None, *arguments: Any, **options: Any) -> ForwardedFunction:
    """Return a function of arrays that calls a function of numbers for each element, in Python."""
    return ForwardedFunction("vectorize", np.vectorize(pyfunc, otypes, *arguments, **options))


class BenchmarkResult:
    """Times of a benchmark, all of this processor.

    Parameters
    ----------
    name : str
    times : sequence of float
        Seconds of each repetition.
    """

    def __init__(self, name: str, times: Sequence[float]) -> None:
        self.name = name
        self.cpu_times = np.array(times)
        self.gpu_times = self.cpu_times[None]

    def to_str(self, show_gpu: bool = False) -> str:
        """Return the mean, deviation and extremes in microseconds."""
        times = 1e6 * self.cpu_times
        return (
            f"{self.name:<20}: CPU: {times.mean():9.3f} us +/- {times.std():.3f} "
            f"(min: {times.min():.3f} / max: {times.max():.3f}) us, on the simulator"
        )

    __repr__ = __str__ = to_str


def benchmark(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n_repeat: int = 10_000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = _MAX_BENCHMARK_S,
    devices: Any = None,
) -> BenchmarkResult:
    """Call a function repeatedly for a few seconds; return the times of this processor.

    Parameters
    ----------
    func : callable
    args, kwargs : sequence, mapping
    n_repeat : int
        The most repetitions; fewer if they take longer than 5 s.
    name : str or None
    n_warmup : int
        Ignored: there is one repetition before.
    max_duration : float
        Seconds, up to 5.
    """
    options = dict(kwargs or {})
    func(*args, **options)
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < n_repeat and (not times or time.perf_counter() - began < min(max_duration, _MAX_BENCHMARK_S)):
        start = time.perf_counter()
        func(*args, **options)
        times.append(time.perf_counter() - start)
    return BenchmarkResult(name or str(getattr(func, "__name__", "function")), times)


@contextmanager
def do_nothing(*arguments: Any, **options: Any) -> Iterator[None]:
    """Do nothing in a with statement, in place of a profiler."""
    yield


def _compare(name: str) -> Callable[..., None]:
    """Return an assertion of `numpy.testing` that takes arrays of the device and of the host."""
    function = getattr(np.testing, name)

    @functools.wraps(function)
    def assertion(*arguments: Any, **options: Any) -> None:
        for option in ("strides_check", "contiguous_check", "type_check"):
            options.pop(option, None)
        function(*(asnumpy(each) if isinstance(each, DeviceArray) else each for each in arguments), **options)

    return assertion


def _assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0.0, **options: Any) -> None:
    _compare("assert_allclose")(actual, desired, rtol, atol, **{k: v for k, v in options.items() if k != "verbose"})


def _assert_array_list_equal(xlist: Sequence[Any], ylist: Sequence[Any], **options: Any) -> None:
    assert len(xlist) == len(ylist), f"Lengths of lists: {len(xlist)} and {len(ylist)}"
    for x, y in zip(xlist, ylist, strict=True):
        _compare("assert_array_equal")(x, y, **options)


def _shaped(values: Any, shape: Sequence[int], module: Any, dtype: Any) -> Any:
    host = np.asarray(values).reshape(shape).astype(dtype)
    return host if module is np else from_host(host)


def _shaped_arange(shape: Sequence[int], xp: Any = None, dtype: Any = np.float32, order: str = "C") -> Any:
    return _shaped(np.arange(1, int(np.prod(shape)) + 1), shape, xp, dtype)


def _shaped_random(
    shape: Sequence[int], xp: Any = None, dtype: Any = np.float32, scale: float = 10, seed: int = 0, order: str = "C"
) -> Any:
    generator = np.random.RandomState(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        values: Any = generator.randint(2, size=shape)
    elif kind in "iu":
        values = generator.randint(0, int(scale), size=shape)
    else:
        values = generator.rand(*shape) * scale
        values = values + 1j * generator.rand(*shape) * scale if kind == "c" else values
    return _shaped(values, shape, xp, dtype)


def _scatter(name: str) -> Callable[[DeviceArray, Any, Any], None]:
    def scatter(a: DeviceArray, slices: Any, value: Any) -> None:
        getattr(np, name).at(to_host(a, written=True), to_host(slices), to_host(value))

    return scatter


def _rsqrt(x: Any, out: Any = None, dtype: Any = None) -> Any:
    result = from_result(1 / np.sqrt(to_host(x)))
    if out is None:
        return result
    out[...] = result
    return out


def _empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    return np.empty(shape, dtype, order)


CUPY: dict[str, Any] = {"fuse": fuse, "vectorize": vectorize}
TESTING: dict[str, Any] = {
    **{
        name: _compare(name)
        for name in (
            *("assert_array_equal", "assert_array_almost_equal", "assert_array_less", "assert_array_max_ulp"),
            "assert_array_almost_equal_nulp",
        )
    },
    "assert_allclose": _assert_allclose,
    "assert_array_list_equal": _assert_array_list_equal,
    "shaped_arange": _shaped_arange,
    "shaped_random": _shaped_random,
}
CUPYX: dict[str, Any] = {
    "scatter_add": _scatter("add"),
    "scatter_max": _scatter("maximum"),
    "scatter_min": _scatter("minimum"),
    "rsqrt": _rsqrt,
    "errstate": np.errstate,
    "empty_pinned": _empty_pinned,
    "zeros_pinned": lambda shape, dtype=float, order="C": np.zeros(shape, dtype, order),
    "empty_like_pinned": np.empty_like,
    "zeros_like_pinned": np.zeros_like,
}
PROFILER: dict[str, Any] = {"benchmark": benchmark, "profile": do_nothing, "time_range": do_nothing}
"""The names of the modules cupy, cupy.testing, cupyx and cupyx.profiler."""
