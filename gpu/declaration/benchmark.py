"""What a pattern is measured on, and beside whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Peer:
    """What a user would take instead.

    Parameters
    ----------
    who : str
    action : callable
        Does the work once, and is timed; what it returns is not looked at.
    package : str
        The package that it needs and that is no requirement of ours.
    part : float
        How much of the case's work it does, where that is not all.
    """

    who: str
    action: Callable[[], Any]
    package: str = ""
    part: float = 1.0


@dataclass(frozen=True)
class SelfTimed:
    """What a user would take instead, which has to be timed in a process of its own.

    Parameters
    ----------
    who, package, part
        As of a Peer.
    measure : callable
        seed -> milliseconds, and what is remarked on them; RuntimeError says why there are none.
    """

    who: str
    measure: Callable[[int], tuple[float, str]]
    package: str = ""
    part: float = 1.0


@dataclass(frozen=True)
class CudaProgram:
    """A program in CUDA C++ that does the work, times itself, and is compiled where it is to run.

    Parameters
    ----------
    who : str
    file : str
        Its source, under `gpu/bench/`.
    arguments : tuple
        What it is to do; a seed, rounds to warm up and repetitions follow. It prints the milliseconds of each.
    versioned : bool
        Whether it prints the version of what it measures before them.
    options : tuple of str
        For the compiler, besides -O3: those that its users build it with.
    """

    who: str
    file: str
    arguments: tuple[str | int, ...]
    versioned: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A task for every variant of a pattern.

    Parameters
    ----------
    work : str
        What the tables call it.
    params : mapping
    make_inputs : callable or None
        A random generator -> inputs; None lets the pattern make them from the parameters.
    variants : tuple of str
        Which variants; all of ours that are correct when empty. One that cannot take the inputs is left out.
    anew : bool
        Whether each repetition begins with the inputs anew, as it must where they are overwritten and that matters.
    libraries : mapping of str to callable
        By a library's module, "torch" or "cupy": (the module, a seed) -> the peers, their input on the GPU.
    programs : tuple of CudaProgram
    """

    work: str
    params: Mapping[str, Any] = field(default_factory=dict)
    make_inputs: Callable[[np.random.Generator], Mapping[str, Array]] | None = None
    variants: tuple[str, ...] = ()
    anew: bool = False
    libraries: Mapping[str, Callable[[Any, int], Iterator[Peer]]] = field(default_factory=dict)
    programs: tuple[CudaProgram, ...] = ()


@dataclass(frozen=True)
class SizeCurve:
    """Sizes over which all variants of a pattern are measured on a GPU, to be kept as data.

    Parameters
    ----------
    sizes : tuple of int
        Powers of two, ascending: elements, columns or bodies, of a pattern of images the pixels of a side.
    params : mapping
        Values of parameters that are not the defaults.
    anew : bool
        As of a Case.
    """

    sizes: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    anew: bool = False


@dataclass(frozen=True)
class Beside:
    """The fastest variants beside their peers over sizes: one size flatters.

    Parameters
    ----------
    work : str
        What is done at every size.
    unit : str
        What sizes count, such as "elements".
    cases : mapping of int or str to Case
        By size, ascending; or by shape, such as "64 x 4096", which have no order.
    """

    work: str
    unit: str
    cases: Mapping[int, Case] | Mapping[str, Case]


def _alone(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Peer | SelfTimed]:
    """Measure beside nobody."""
    yield from ()


@dataclass(frozen=True)
class Benchmark:
    """What a pattern is measured on.

    Parameters
    ----------
    gpu, compiled, lockstep : tuple of Case
        On a GPU, every size past its last cache but where small ones are asked about; on the simulator's two executors.
    curve : SizeCurve
        On a GPU, over sizes.
    wanted : mapping of str to str
        What is wanted of variants that are compiled, by their names, such as "4 x SciPy".
    peers : callable
        (inputs, params) -> the CPU's libraries, on the same input.
    timed : tuple of Case
        What the timing model is compared with a GPU on: from within the last cache to past it, and other blocks.
    beside : tuple of Beside
        On a GPU, the fastest variants beside their peers over sizes.
    """

    gpu: tuple[Case, ...] = ()
    compiled: tuple[Case, ...] = ()
    lockstep: tuple[Case, ...] = ()
    curve: SizeCurve = field(default_factory=SizeCurve)
    wanted: Mapping[str, str] = field(default_factory=dict)
    peers: Callable[[Mapping[str, Array], Mapping[str, Any]], Iterator[Peer | SelfTimed]] = _alone
    timed: tuple[Case, ...] = ()
    beside: tuple[Beside, ...] = ()


def powers(*exponents: int) -> tuple[int, ...]:
    """Return powers of two."""
    return tuple(2**exponent for exponent in exponents)


def random_image(height: int, width: int) -> Callable[[np.random.Generator], Mapping[str, Array]]:
    """Return a maker of gray 8-bit images of uniform noise."""
    return lambda rng: {"image": rng.integers(0, 256, (height, width), np.uint8), "maxval": np.array(255)}


def constant_image(height: int, width: int) -> Callable[[np.random.Generator], Mapping[str, Array]]:
    """Return a maker of gray 8-bit images of one value."""
    return lambda rng: {
        "image": np.full((height, width), rng.integers(0, 256), np.uint8),
        "maxval": np.array(255),
    }


def of_floats(n: int, call: Callable[[Any, Any], Any]) -> Mapping[str, Callable[[Any, int], Iterator[Peer]]]:
    """Return what PyTorch and CuPy do with n float32 from 0 to 1; `call` takes the module and the values."""

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        values = torch.rand(n, device="cuda")
        yield Peer(f"PyTorch {torch.__version__}", lambda: call(torch, values))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        values = cupy.random.default_rng(seed).random(n, dtype=cupy.float32)
        yield Peer(f"CuPy {cupy.__version__}", lambda: call(cupy, values))

    return {"torch": torch, "cupy": cupy}
