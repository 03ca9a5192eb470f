"""Functions of CuPy that need no kernel: fusion, benchmarks, settings and cupyx."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.fft

from gpu.hosts.cupy.arrays import DeviceArray, assign_result, from_result
from gpu.hosts.cupy.forwarding import ForwardedFunction, call_on_host, to_host

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


_linalg_errors = ["ignore"]


def seterr(*, linalg: str | None = None, **others: Any) -> dict[str, Any]:
    """Set whether `cupy.linalg` checks its results; return the previous settings.

    Parameters
    ----------
    linalg : {"ignore", "raise"} or None
        Without influence: NumPy always raises `LinAlgError`.
    **others
        "divide", "over", "under" and "invalid", which CuPy does not support either.
    """
    before = {**dict.fromkeys(("divide", "over", "under", "invalid")), "linalg": _linalg_errors[0]}
    if any(each is not None for each in others.values()) or linalg not in (None, "ignore", "raise"):
        raise NotImplementedError
    if set(others) - set(before):
        raise TypeError(f"seterr() got an unexpected keyword argument {min(set(others) - set(before))!r}")
    _linalg_errors[:] = [linalg or _linalg_errors[0]]
    return before


@contextmanager
def errstate(**settings: Any) -> Iterator[None]:
    """Set as `seterr` in a with statement."""
    before = seterr(**settings)
    try:
        yield
    finally:
        seterr(**before)


class FftPlan:
    """What `get_fft_plan` returns, for `plan=` and with statements; NumPy and SciPy need no plan."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> FftPlan:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class _PlanCache:
    """The cache of plans, which is always empty."""

    def __repr__(self) -> str:
        return "-------------------- cuFFT plan cache --------------------\nthe simulator needs no plans"

    def clear(self) -> None:
        """Do nothing."""

    def set_size(self, size: int) -> None:
        """Do nothing."""

    set_memsize = set_size

    def get_size(self) -> int:
        """Return 0."""
        return 0

    get_memsize = get_curr_size = get_curr_memsize = get_size

    def show_info(self) -> None:
        """Print that there are no plans."""
        print(self)


def _forward_fft(function: Callable[..., Any]) -> ForwardedFunction:
    """Return a function of `scipy.fft` that SciPy computes even if a script makes CuPy the global backend."""

    @functools.wraps(function)
    def compute(*arguments: Any, **options: Any) -> Any:
        with scipy.fft.set_backend("scipy", only=True):
            return function(*arguments, **options)

    return ForwardedFunction(f"scipy.fft.{function.__name__}", compute)


def _call_fft(method: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Compute a function of `scipy.fft` for device arrays; leave others to SciPy."""
    if not any(isinstance(each, DeviceArray) for each in args):
        return NotImplemented
    return _forward_fft(method)(*args, **kwargs)


_plan_cache = _PlanCache()
FFT_CONFIG: dict[str, Any] = {
    "use_multi_gpus": False,
    "enable_nd_planning": True,
    "set_cufft_gpus": lambda gpus: None,
    "get_plan_cache": lambda: _plan_cache,
    "clear_plan_cache": _plan_cache.clear,
    "show_plan_cache_info": _plan_cache.show_info,
}
_FFT_FUNCTIONS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "dct", "idct", "dst", "idst")
SCIPY_FFT: dict[str, Any] = {
    **{
        name: _forward_fft(getattr(scipy.fft, name))
        for base in _FFT_FUNCTIONS
        for name in (base, f"{base}2", f"{base}n")
        if hasattr(scipy.fft, name)
    },
    "get_fft_plan": FftPlan,
    "__ua_domain__": "numpy.scipy.fft",
    "__ua_function__": _call_fft,
}
"""The names of the modules cupy.fft.config and cupyx.scipy.fft beyond those of SciPy."""


def _scatter(name: str) -> Callable[[DeviceArray, Any, Any], None]:
    def scatter(a: DeviceArray, slices: Any, value: Any) -> None:
        getattr(np, name).at(to_host(a, written=True), to_host(slices), to_host(value))

    return scatter


def _rsqrt(x: Any, out: Any = None, dtype: Any = None) -> Any:
    return assign_result(from_result(1 / np.sqrt(to_host(x))), out)


def _empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    return np.empty(shape, dtype, order)


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


_REMOVED_FROM_NUMPY: dict[str, Callable[..., Any]] = {
    "in1d": lambda *arguments, **options: np.isin(*arguments, **options).ravel(),
    "msort": functools.partial(np.sort, axis=0),
    "trapz": np.trapezoid,
    "asfarray": _asfarray,
}
CUPY: dict[str, Any] = {
    "fuse": fuse,
    "vectorize": vectorize,
    **{name: ForwardedFunction(name, function) for name, function in _REMOVED_FROM_NUMPY.items()},
}


def _taxicab(x: Any) -> Any:
    """Return the absolute values as BLAS defines them: of complex numbers, the sum of those of both parts."""
    return np.abs(x.real) + np.abs(x.imag)


def _transposed(operation: str, a: Any) -> Any:
    return {"N": lambda: a, "T": lambda: a.T, "H": lambda: a.conj().T}[operation]()


def _gemm(transa: str, transb: str, a: Any, b: Any, out: Any = None, alpha: Any = 1.0, beta: Any = 0.0) -> Any:
    product = alpha * (_transposed(transa, a) @ _transposed(transb, b))
    return assign_result((product if out is None else product + beta * out).astype(a.dtype), out)


def _dgmm(side: str, a: Any, x: Any, out: Any = None, incx: int = 1) -> Any:
    diagonal = x[::incx][: a.shape[0 if side == "L" else 1]]
    return assign_result(diagonal[:, None] * a if side == "L" else a * diagonal, out)


def _update_last(name: str, compute: Callable[..., Any]) -> Callable[..., None]:
    """Return a function that stores its result in its last argument, an array."""

    def update(*arguments: Any) -> None:
        *inputs, target = arguments
        call_on_host(name, lambda *host, out: assign_result(compute(*host, out), out), tuple(inputs), {"out": target})

    return update


_CUBLAS: dict[str, Callable[..., Any]] = {
    "dot": lambda x, y, out=None: assign_result(np.dot(x, y), out),
    "dotu": lambda x, y, out=None: assign_result(np.dot(x, y), out),
    "dotc": lambda x, y, out=None: assign_result(np.vdot(x, y), out),
    "nrm2": lambda x, out=None: assign_result(np.linalg.norm(x.ravel()), out),
    "asum": lambda x, out=None: assign_result(_taxicab(x).sum(), out),
    "iamax": lambda x, out=None: assign_result(_taxicab(x).argmax() + 1, out),
    "iamin": lambda x, out=None: assign_result(_taxicab(x).argmin() + 1, out),
    "gemm": _gemm,
    "geam": lambda transa, transb, alpha, a, beta, b, out=None: assign_result(
        (alpha * _transposed(transa, a) + beta * _transposed(transb, b)).astype(a.dtype), out
    ),
    "dgmm": _dgmm,
}
_CUBLAS_UPDATES: dict[str, Callable[..., Any]] = {
    "axpy": lambda a, x, y: a * x + y,
    "scal": lambda a, x: a * x,
    "gemv": lambda transa, alpha, a, x, beta, y: alpha * (_transposed(transa, a) @ x) + beta * y,
    "ger": lambda alpha, x, y, a: alpha * np.outer(x, y) + a,
    "geru": lambda alpha, x, y, a: alpha * np.outer(x, y) + a,
    "gerc": lambda alpha, x, y, a: alpha * np.outer(x, y.conj()) + a,
}
CUBLAS: dict[str, Any] = {
    **{name: ForwardedFunction(f"cublas.{name}", function) for name, function in _CUBLAS.items()},
    **{name: _update_last(f"cublas.{name}", compute) for name, compute in _CUBLAS_UPDATES.items()},
}
CUPYX: dict[str, Any] = {
    "scatter_add": _scatter("add"),
    "scatter_max": _scatter("maximum"),
    "scatter_min": _scatter("minimum"),
    "rsqrt": _rsqrt,
    "errstate": errstate,
    "seterr": seterr,
    "geterr": lambda: seterr(),
    "allow_synchronize": do_nothing,
    "is_available": lambda: True,
    "empty_pinned": _empty_pinned,
    "zeros_pinned": lambda shape, dtype=float, order="C": np.zeros(shape, dtype, order),
    "empty_like_pinned": np.empty_like,
    "zeros_like_pinned": np.zeros_like,
}
PROFILER: dict[str, Any] = {"benchmark": benchmark, "profile": do_nothing, "time_range": do_nothing}
"""The names of the modules cupy, cupyx and cupyx.profiler."""
