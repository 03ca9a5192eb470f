"""Benchmarks of a pattern: workloads, and the library routines (peers) measured in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Peer:
    """A library routine that a user could call instead of our variants.

    Parameters
    ----------
    action : callable
        Does the work once, and is timed; its return value is ignored.
    package : str
        A package that it needs and that Lockstep does not require.
    work_fraction : float
        The fraction of the case's work that it does.
    """

    name: str
    action: Callable[[], Any]
    package: str = ""
    work_fraction: float = 1.0


@dataclass(frozen=True)
class SelfTimedPeer:
    """A peer that has to be timed in a separate process.

    Parameters
    ----------
    name, package, work_fraction
        As in Peer.
    measure : callable
        seed -> milliseconds, and a remark on them; raises RuntimeError if it cannot measure.
    """

    name: str
    measure: Callable[[int], tuple[float, str]]
    package: str = ""
    work_fraction: float = 1.0


@dataclass(frozen=True)
class CudaProgram:
    """A CUDA C++ program that does the work, times itself, and is compiled on the machine that runs it.

    Parameters
    ----------
    file : str
        Its source file under `gpu/bench/`.
    arguments : tuple
        Its first arguments; a seed, warm-up rounds and repetitions follow. It prints the milliseconds of each
        repetition.
    prints_version : bool
        Whether it prints the version of the measured library first.
    options : tuple of str
        Compiler options in addition to -O3: those that its users build it with.
    """

    name: str
    file: str
    arguments: tuple[str | int, ...]
    prints_version: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A workload for every variant of a pattern.

    Parameters
    ----------
    work : str
        Its name in the tables.
    params : mapping
    make_inputs : callable or None
        A random generator -> inputs; None to generate them from the parameters.
    variants : tuple of str
        Names of variants; empty for all correct ones. A variant that does not support the inputs is left out.
    restores_inputs : bool
        Whether the inputs are restored before each repetition, which overwrites them.
    libraries : mapping of str to callable
        By a library's module, "torch" or "cupy": (the module, a seed) -> the peers, with their input on the GPU.
    """

    work: str
    params: Mapping[str, Any] = field(default_factory=dict)
    make_inputs: Callable[[np.random.Generator], Mapping[str, Array]] | None = None
    variants: tuple[str, ...] = ()
    restores_inputs: bool = False
    libraries: Mapping[str, Callable[[Any, int], Iterator[Peer]]] = field(default_factory=dict)
    programs: tuple[CudaProgram, ...] = ()


@dataclass(frozen=True)
class SizeCurve:
    """Sizes at which all variants of a pattern are measured on a GPU, to be saved as data.

    Parameters
    ----------
    sizes : tuple of int
        Powers of two, ascending: elements, columns or bodies; for image patterns, pixels per side.
    params : mapping
        Values of parameters that differ from the defaults.
    restores_inputs : bool
        As in Case.
    """

    sizes: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    restores_inputs: bool = False


@dataclass(frozen=True)
class SizeComparison:
    """Comparison of the fastest variants with their peers over sizes, since a single size can mislead.

    Parameters
    ----------
    work : str
        The work done at every size.
    unit : str
        Unit of the sizes, such as "elements".
    cases : mapping of int or str to Case
        By size, ascending; or by shape, such as "64 x 4096", in any order.
    """

    work: str
    unit: str
    cases: Mapping[int, Case] | Mapping[str, Case]


def _no_peers(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Peer | SelfTimedPeer]:
    """Yield no peers."""
    yield from ()


@dataclass(frozen=True)
class Benchmark:
    """All benchmarks of a pattern.

    Parameters
    ----------
    gpu, compiled, lockstep : tuple of Case
        Cases on a GPU, larger than its L2 unless the case is about small sizes; and on the simulator's two executors.
    curve : SizeCurve
        Sizes measured on a GPU.
    goals : mapping of str to str
        Performance targets on the compiled executor, by variant, such as "4 x SciPy".
    peers : callable
        (inputs, params) -> CPU libraries, on the same input.
    timing_model_cases : tuple of Case
        Cases on which the timing model is compared with a GPU: from sizes that fit in L2 to larger ones, and with
        other block sizes.
    size_comparisons : tuple of SizeComparison
        Comparisons on a GPU of the fastest variants with their peers over sizes.
    """

    gpu: tuple[Case, ...] = ()
    compiled: tuple[Case, ...] = ()
    lockstep: tuple[Case, ...] = ()
    curve: SizeCurve = field(default_factory=SizeCurve)
    goals: Mapping[str, str] = field(default_factory=dict)
    peers: Callable[[Mapping[str, Array], Mapping[str, Any]], Iterator[Peer | SelfTimedPeer]] = _no_peers
    timing_model_cases: tuple[Case, ...] = ()
    size_comparisons: tuple[SizeComparison, ...] = ()


def powers_of_two(*exponents: int) -> tuple[int, ...]:
    """Return powers of two."""
    return tuple(2**exponent for exponent in exponents)


def random_image(height: int, width: int) -> Callable[[np.random.Generator], Mapping[str, Array]]:
    """Return a function that generates gray 8-bit images of uniform noise."""
    return lambda rng: {"image": rng.integers(0, 256, (height, width), np.uint8), "maxval": np.array(255)}


def constant_image(height: int, width: int) -> Callable[[np.random.Generator], Mapping[str, Array]]:
    """Return a function that generates gray 8-bit images of one value."""
    return lambda rng: {
        "image": np.full((height, width), rng.integers(0, 256), np.uint8),
        "maxval": np.array(255),
    }


def float_array_peers(n: int, call: Callable[[Any, Any], Any]) -> Mapping[str, Callable[[Any, int], Iterator[Peer]]]:
    """Return the PyTorch and CuPy peers for n float32 values from 0 to 1; `call` takes the module and the values."""

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        values = torch.rand(n, device="cuda")
        yield Peer(f"PyTorch {torch.__version__}", lambda: call(torch, values))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        values = cupy.random.default_rng(seed).random(n, dtype=cupy.float32)
        yield Peer(f"CuPy {cupy.__version__}", lambda: call(cupy, values))

    return {"torch": torch, "cupy": cupy}
