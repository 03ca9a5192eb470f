"""A kernel of a lesson's own: what its arrays hold, how it is launched, what should come of it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from gpu.engines.base import Buffer
from gpu.engines.simulator import SimulatorEngine
from gpu.errors import InputError
from gpu.kernel.arguments import dtype_of
from gpu.lessons.expressions import MOST_ELEMENTS, Array, evaluate, whole
from gpu.messages.judgments import MANY, StageCase
from gpu.simulator.module import SimulatedModule
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Type

KINDS = (MANY, "equal", "lowest", "highest", "only the last", "only the first", "falling", "alternating")
"""How inputs are made: at random, or as what goes wrong first."""

_ARRAY = re.compile(r"(?P<use>inout|in|out)\s+(?P<size>[^=]+?)(?:\s+of\s+(?P<low>[^.]+?)\.\.(?P<high>[^=]+?))?"
                    r"(?:\s*=\s*(?P<fill>.+))?")  # fmt: skip


@dataclass(frozen=True)
class StageArray:
    """An array that a kernel gets.

    Parameters
    ----------
    use : {"in", "inout", "out"}
        Whether it is made before the launch, and whether it is looked at after it.
    size : str
        How many elements it has, as an expression.
    low, high : str
        The least and the greatest value that inputs have, as expressions; "" for the usual ones.
    fill : str
        What it holds before the launch, as an expression; "" for random values, or of an output for nothing.
    """

    use: str
    size: str
    low: str = ""
    high: str = ""
    fill: str = ""

    @classmethod
    def of(cls, text: str) -> StageArray | None:
        """Read "in n", "in n of 0..9", "out 1 = 0", "inout n"; None for what is no array."""
        found = _ARRAY.fullmatch(text.strip())
        if found is None:
            return None
        return cls(found["use"], found["size"].strip(), found["low"] or "", found["high"] or "", found["fill"] or "")


@dataclass(frozen=True)
class StageLaunch:
    """A launch: a kernel, its extents, and for each of its parameters an array's name or an expression."""

    kernel: str
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    arguments: tuple[str | int | float, ...]
    shared: str | int = 0


@dataclass(frozen=True)
class Stage:
    """A kernel file, and how it is launched.

    Parameters
    ----------
    file : str
        The kernel file's name in the lesson's folder.
    arrays : mapping of str to StageArray
    constants : mapping of str to str
        What `__constant__` variables hold, as expressions.
    launches : tuple of StageLaunch
        One after the other.
    lets : mapping of str to (str or int)
        Names for expressions, in order.
    expects : mapping of str to str
        What arrays should hold afterwards, as expressions on what they held before; where there is none, what the
        reference solution leaves there.
    tolerance : float
        By how much of the largest value a real number may be off.
    """

    file: str
    arrays: Mapping[str, StageArray]
    launches: tuple[StageLaunch, ...]
    constants: Mapping[str, str] = field(default_factory=dict)
    lets: Mapping[str, str | int] = field(default_factory=dict)
    expects: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-5

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that are looked at: those with an expectation, or else all that are written."""
        return tuple(self.expects) or tuple(name for name, each in self.arrays.items() if each.use != "in")

    def names(self, n: int) -> dict[str, Any]:
        """Return what expressions of sizes and launches know: `n`, and what `let` says."""
        names: dict[str, Any] = {"n": n}
        for name, text in self.lets.items():
            names[name] = evaluate(text, names)
        return names

    def inputs(self, case: StageCase, types: Mapping[str, np.dtype[Any]], *, shown: bool = False) -> dict[str, Array]:
        """Return what the arrays hold before the launch; those that hold nothing are left out.

        Parameters
        ----------
        case : StageCase
        types : mapping
            The type of each array's elements, and of each constant's.
        shown : bool
            Whether they are to be read by people: small and positive.

        Raises
        ------
        InputError
            An expression that cannot be computed.
        """
        names = self.names(case.n)
        made: dict[str, Array] = {}
        for name, array in self.arrays.items():
            if array.use == "out" and not array.fill:
                continue
            made[name] = self._made(name, array, case, types[name], {**names, **made}, shown=shown)
        for name, text in self.constants.items():
            made[name] = np.atleast_1d(np.asarray(evaluate(text, {**names, **made}))).astype(types[name])
        return made

    def _made(
        self,
        name: str,
        array: StageArray,
        case: StageCase,
        dtype: np.dtype[Any],
        names: Mapping[str, Any],
        *,
        shown: bool,
    ) -> Array:
        size = self._size(name, array, names)
        if array.fill:
            return np.broadcast_to(np.asarray(evaluate(array.fill, names)).reshape(-1), (size,)).astype(dtype)
        low = float(evaluate(array.low, names)) if array.low else 1.0 if shown else -50.0
        high = float(evaluate(array.high, names)) if array.high else 9.0 if shown else 50.0
        if dtype.kind == "u":
            low = max(low, 0.0)
        generator = np.random.default_rng([zlib.crc32(name.encode()), case.seed, size])
        # Of whole numbers sums of float32 are exact, whatever their order.
        values = generator.integers(int(np.ceil(low)), int(high), size, endpoint=True).astype(np.float64)
        match case.kind:
            case "equal":
                values[:] = values[:1] if size else 0
            case "lowest":
                values[:] = low
            case "highest":
                values[:] = high
            case "only the last" | "only the first":
                chosen = -1 if case.kind == "only the last" else 0
                values[:] = min(max(low, 0.0), high)
                values[chosen:][:1] = high
            case "falling":
                values = np.sort(values)[::-1]
            case "alternating":
                values = np.where(np.arange(size) % 2 == 0, low, high)
        return values.astype(dtype)

    def expected(self, before: Mapping[str, Array], n: int) -> dict[str, Array]:
        """Return what arrays should hold afterwards, of what they held before; nothing where nothing is said."""
        names = {**self.names(n), **{name: values.copy() for name, values in before.items()}}
        exact = {
            name: value.astype(np.int64 if value.dtype.kind in "iub" else np.float64)
            if isinstance(value, np.ndarray)
            else value
            for name, value in names.items()
        }
        return {name: np.asarray(evaluate(text, exact)).reshape(-1) for name, text in self.expects.items()}

    def run(self, engine: SimulatorEngine, before: Mapping[str, Array], n: int) -> dict[str, Array]:
        """Build the file on an engine, launch it, and return what all arrays hold afterwards.

        Raises
        ------
        InputError
            The launches do not fit the kernels.
        KernelError
            The text does not compile, has no such kernel, or its launch fails.
        """
        module: Any = engine.build(self.file)
        plain = engine.built(self.file)
        names, types = self.names(n), self.types(plain)
        for name in self.constants:
            module.set_constant(name, before[name])
        buffers: dict[str, Buffer] = {}
        for name, array in self.arrays.items():
            size = self._size(name, array, {**names, **before})
            buffers[name] = engine.upload(before[name]) if name in before else engine.allocate((size,), types[name])
        for launch in self.launches:
            kernel = module.kernel(launch.kernel)
            parameters = plain.kernel(launch.kernel).parameters
            if len(parameters) != len(launch.arguments):
                raise InputError(
                    f"{launch.kernel} takes {len(parameters)} arguments, and the lesson gives {len(launch.arguments)}."
                )
            given: list[Any] = []
            for argument, (_, type) in zip(launch.arguments, parameters, strict=True):
                if isinstance(argument, str) and argument in buffers:
                    given.append(buffers[argument])
                    continue
                if not isinstance(type, Scalar):
                    raise InputError(f"{argument!r} is to be an array of the lesson's: {', '.join(buffers)}.")
                given.append(type.dtype.type(evaluate(argument, names)))
            grid, block = (_extents(extent, names) for extent in (launch.grid, launch.block))
            engine.launch(kernel, grid, block, *given, shared_bytes=whole(launch.shared, names))
        return {name: engine.download(buffer) for name, buffer in buffers.items()}

    def threads(self, n: int) -> int:
        """Return the threads of the largest launch."""
        names = self.names(n)
        return max(prod((*_extents(each.grid, names), *_extents(each.block, names))) for each in self.launches)

    def types(self, module: SimulatedModule) -> dict[str, np.dtype[Any]]:
        """Return the type of each array's elements, as the kernels that get it have it, and of each constant's."""
        found: dict[str, np.dtype[Any]] = {}
        for launch in self.launches:
            parameters = module.kernel(launch.kernel).parameters
            for argument, (name, type) in zip(launch.arguments, parameters, strict=False):
                if argument in self.arrays:
                    if not isinstance(type, Pointer):
                        raise InputError(f"{launch.kernel}'s {name} is no pointer, and the lesson gives it an array.")
                    found.setdefault(str(argument), dtype_of(type.element))
        for name in self.constants:
            if name not in module.variables:
                raise InputError(f"{self.file} has no __constant__ variable {name!r}.")
            found[name] = _element(module.variables[name])
        if missing := [name for name in self.arrays if name not in found]:
            raise InputError(f"No kernel gets the array {missing[0]!r}.")
        return found

    def _size(self, name: str, array: StageArray, names: Mapping[str, Any]) -> int:
        size = whole(array.size, names)
        if not 0 <= size <= MOST_ELEMENTS:
            raise InputError(f"The array {name!r} has {size} elements; 0 to {MOST_ELEMENTS} are possible.")
        return size


def _element(type: Type) -> np.dtype[Any]:
    element = type.innermost if isinstance(type, ArrayOf) else type
    return dtype_of(element)


def _extents(extents: tuple[str | int, ...], names: Mapping[str, Any]) -> tuple[int, int, int]:
    x, y, z = (*(whole(each, names) for each in extents), *[1] * (3 - len(extents)))
    return x, y, z
