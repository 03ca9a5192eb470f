"""Kernels of lessons: their arrays, launches and expected results."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.value_changes import make_equal, make_negative, sort_ascending, sort_descending
from gpu.engines.base import Buffer
from gpu.engines.simulator import SimulatorEngine
from gpu.kernel.arguments import dtype_of
from gpu.lessons.expressions import MAX_ELEMENTS, Array, evaluate, evaluate_integer, evaluate_number
from gpu.messages.judgments import RANDOM_KIND, GradingCase
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Type

INPUT_KINDS = (RANDOM_KIND, "equal", "lowest", "highest", "only the last", "only the first", "falling", "rising",
               "negative", "alternating")  # fmt: skip
"""Kinds of generated inputs: random, and special cases that reveal common mistakes."""

_MAX_THREADS = 1 << 22
"""Most threads of a launch, so that a lesson is recorded and graded in seconds."""
_MAX_VARIABLE_BYTES = 64 << 20
"""Most bytes of a kernel file's variables."""

_ARRAY = re.compile(r"(?P<use>inout|in|out)\s+(?P<size>[^=]+?)(?:\s+of\s+(?P<low>[^.]+?)\.\.(?P<high>[^=]+?))?"
                    r"(?:\s*=\s*(?P<fill>.+))?")  # fmt: skip


@dataclass(frozen=True)
class StageArray:
    """Array argument of a kernel.

    Parameters
    ----------
    use : {"in", "inout", "out"}
        Whether it is initialized before the launch and checked after it.
    size : str
        Number of elements, as an expression.
    low, high : str
        Range of generated values, as expressions; "" for the default.
    fill : str
        Initial content, as an expression; "" for random values, or for an uninitialized output.
    """

    use: str
    size: str
    low: str = ""
    high: str = ""
    fill: str = ""

    @classmethod
    def parse(cls, text: str) -> StageArray | None:
        """Parse "in n", "in n of 0..9", "out 1 = 0" or "inout n"; return None if the text is not an array."""
        match = _ARRAY.fullmatch(text.strip())
        if match is None:
            return None
        return cls(match["use"], match["size"].strip(), match["low"] or "", match["high"] or "", match["fill"] or "")


@dataclass(frozen=True)
class StageLaunch:
    """Launch of a kernel: its extents, and for each parameter the name of an array or an expression."""

    kernel: str
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    arguments: tuple[str | int | float, ...]
    shared: str | int = 0


@dataclass(frozen=True)
class Stage:
    """Kernel file of a lesson with its arrays and launches.

    Parameters
    ----------
    file : str
        Name of the kernel file in the lesson's folder.
    arrays : mapping of str to StageArray
    constants : mapping of str to str
        Contents of `__constant__` variables, as expressions.
    launches : tuple of StageLaunch
        In order.
    named_expressions : mapping of str to (str or int)
        Named expressions, in order.
    expectations : mapping of str to str
        Expected contents of arrays, as expressions on the initial contents; if empty, the reference solution's
        results are expected.
    tolerance : float
        Tolerance of real numbers, relative to the largest value.
    """

    file: str
    arrays: Mapping[str, StageArray]
    launches: tuple[StageLaunch, ...]
    constants: Mapping[str, str] = field(default_factory=dict)
    named_expressions: Mapping[str, str | int] = field(default_factory=dict)
    expectations: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-5

    @property
    def outputs(self) -> tuple[str, ...]:
        """Arrays that are checked: those with an expectation, otherwise all that are written."""
        return tuple(self.expectations) or tuple(name for name, array in self.arrays.items() if array.use != "in")

    def evaluate_names(self, n: int) -> dict[str, Any]:
        """Return the names for expressions of sizes and launches: `n` and those in `let`."""
        names: dict[str, Any] = {"n": n}
        for name, text in self.named_expressions.items():
            names[name] = evaluate(text, names)
        return names

    def generate_inputs(
        self, case: GradingCase, types: Mapping[str, np.dtype[Any]], *, for_display: bool = False
    ) -> dict[str, Array]:
        """Generate the initial contents of arrays and constants, except uninitialized ones.

        Parameters
        ----------
        case : GradingCase
        types : mapping
            Type of each array's elements, and of each constant.
        for_display : bool
            Whether to generate small positive numbers for display.

        Raises
        ------
        InputError
            If an expression cannot be computed.
        """
        names = self.evaluate_names(case.n)
        values: dict[str, Array] = {}
        for name, array in self.arrays.items():
            if array.use == "out" and not array.fill:
                continue
            values[name] = self._generate_array(
                name, array, case, types[name], {**names, **values}, for_display=for_display
            )
        for name, text in self.constants.items():
            values[name] = np.atleast_1d(np.asarray(evaluate(text, {**names, **values}))).astype(types[name])
        return values

    def _generate_array(
        self,
        name: str,
        array: StageArray,
        case: GradingCase,
        dtype: np.dtype[Any],
        names: Mapping[str, Any],
        *,
        for_display: bool,
    ) -> Array:
        size = self._evaluate_size(name, array, names)
        if array.fill:
            return np.broadcast_to(np.asarray(evaluate(array.fill, names)).reshape(-1), (size,)).astype(dtype)
        low = evaluate_number(array.low, names) if array.low else 1.0 if for_display else -50.0
        high = evaluate_number(array.high, names) if array.high else 9.0 if for_display else 50.0
        if dtype.kind == "u":
            low = max(low, 0.0)
        _check_range(name, low, high, dtype)
        generator = np.random.default_rng([zlib.crc32(name.encode()), case.seed, size])
        # Sums of integers are exact in float32 in any order.
        values = generator.integers(int(np.ceil(low)), int(high), size, endpoint=True).astype(np.float64)
        match case.kind:
            case "equal":
                values = make_equal(values)
            case "lowest":
                values[:] = low
            case "highest":
                values[:] = high
            case "only the last" | "only the first":
                index = -1 if case.kind == "only the last" else 0
                values[:] = min(max(low, 0.0), high)
                values[index:][:1] = high
            case "falling":
                values = sort_descending(values)
            case "rising":
                values = sort_ascending(values)
            case "negative":
                values = make_negative(values)
            case "alternating":
                values = np.where(np.arange(size) % 2 == 0, low, high)
        return values.clip(min(low, high), high).astype(dtype)

    def compute_expected(self, before: Mapping[str, Array], n: int) -> dict[str, Array]:
        """Return the expected contents of arrays, computed from the initial ones; empty without expectations."""
        names = {**self.evaluate_names(n), **{name: values.copy() for name, values in before.items()}}
        exact = {
            name: value.astype(np.int64 if value.dtype.kind in "iub" else np.float64)
            if isinstance(value, np.ndarray)
            else value
            for name, value in names.items()
        }
        return {name: np.asarray(evaluate(text, exact)).reshape(-1) for name, text in self.expectations.items()}

    def run(self, engine: SimulatorEngine, before: Mapping[str, Array], n: int) -> dict[str, Array]:
        """Build the file with an engine, launch it, and return the final contents of all arrays.

        Raises
        ------
        InputError
            If the launches do not match the kernels.
        KernelError
            If the text does not compile, has no such kernel, or a launch fails.
        """
        module: Any = engine.build(self.file)
        plain = engine.build_simulated_module(self.file)
        names, types = self.evaluate_names(n), self.find_types(plain)
        for name in self.constants:
            module.set_constant(name, before[name])
        buffers: dict[str, Buffer] = {}
        for name, array in self.arrays.items():
            size = self._evaluate_size(name, array, {**names, **before})
            buffers[name] = engine.upload(before[name]) if name in before else engine.allocate((size,), types[name])
        for launch in self.launches:
            kernel = module.kernel(launch.kernel)
            parameters = plain.kernel(launch.kernel).parameters
            if len(parameters) != len(launch.arguments):
                raise InputError(
                    f"{launch.kernel} takes {len(parameters)} arguments, but the lesson has {len(launch.arguments)}."
                )
            arguments = [
                _evaluate_argument(argument, type, buffers, names)
                for argument, (_, type) in zip(launch.arguments, parameters, strict=True)
            ]
            grid, block = (_evaluate_extents(extent, names) for extent in (launch.grid, launch.block))
            if prod((*grid, *block)) > _MAX_THREADS:
                raise InputError(f"{launch.kernel} is launched with more than {_MAX_THREADS:,} threads.")
            engine.launch(kernel, grid, block, *arguments, shared_bytes=evaluate_integer(launch.shared, names))
        return {name: engine.download(buffer) for name, buffer in buffers.items()}

    def count_threads(self, n: int) -> int:
        """Return the number of threads of the largest launch."""
        names = self.evaluate_names(n)
        return max(
            prod((*_evaluate_extents(launch.grid, names), *_evaluate_extents(launch.block, names)))
            for launch in self.launches
        )

    def find_types(self, module: SimulatedModule) -> dict[str, np.dtype[Any]]:
        """Return the types of arrays' elements, from the kernels' parameters, and of constants."""
        size = sum(each.size for each in module.variables.values())
        if size > _MAX_VARIABLE_BYTES:
            raise InputError(
                f"{self.file}'s variables have {size:,} bytes; at most {_MAX_VARIABLE_BYTES:,} are allowed."
            )
        types: dict[str, np.dtype[Any]] = {}
        for launch in self.launches:
            parameters = module.kernel(launch.kernel).parameters
            for argument, (name, type) in zip(launch.arguments, parameters, strict=False):
                if argument in self.arrays:
                    if not isinstance(type, Pointer):
                        raise InputError(f"{launch.kernel}'s {name} is not a pointer, but the lesson passes an array.")
                    types.setdefault(str(argument), dtype_of(type.element))
        for name in self.constants:
            if name not in module.variables:
                raise InputError(f"{self.file} has no __constant__ variable {name!r}.")
            types[name] = _find_element_type(module.variables[name])
        if missing := [name for name in self.arrays if name not in types]:
            raise InputError(f"No kernel uses the array {missing[0]!r}.")
        return types

    def _evaluate_size(self, name: str, array: StageArray, names: Mapping[str, Any]) -> int:
        size = evaluate_integer(array.size, names)
        if not 0 <= size <= MAX_ELEMENTS:
            raise InputError(f"The array {name!r} has {size} elements; 0 to {MAX_ELEMENTS} are allowed.")
        return size


def _evaluate_argument(
    argument: str | float, type: Type, buffers: Mapping[str, Buffer], names: Mapping[str, Any]
) -> Buffer | np.generic:
    """Return a launch's argument: an array's buffer, or a number of the parameter's type."""
    if isinstance(argument, str) and argument in buffers:
        return buffers[argument]
    if not isinstance(type, Scalar):
        raise InputError(f"{argument!r} must be one of the lesson's arrays: {', '.join(buffers)}.")
    evaluate_number(argument, names)
    try:
        number: np.generic = type.dtype.type(evaluate(argument, names))
    except OverflowError:
        raise InputError(f"{argument!r} does not fit in the parameter's type, {type.dtype.name}.") from None
    return number


def _check_range(name: str, low: float, high: float, dtype: np.dtype[Any]) -> None:
    """Raise InputError if numbers from `low` to `high` cannot be generated exactly in an array's type."""
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    first, last = (-(2**53), 2**53) if limits is None else (max(limits.min, -(2**53)), min(limits.max, 2**53))
    if not (first <= low and high <= last and np.ceil(low) <= int(high)):
        raise InputError(
            f"The array {name!r} of {dtype.name} has no integers from {low:g} to {high:g}: "
            f"write LOW..HIGH, within {first}..{last}."
        )


def _find_element_type(type: Type) -> np.dtype[Any]:
    element = type.innermost if isinstance(type, ArrayOf) else type
    return dtype_of(element)


def _evaluate_extents(extents: tuple[str | int, ...], names: Mapping[str, Any]) -> tuple[int, int, int]:
    x, y, z = (*(evaluate_integer(extent, names) for extent in extents), *[1] * (3 - len(extents)))
    return x, y, z
