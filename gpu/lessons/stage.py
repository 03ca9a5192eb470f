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
from gpu.engines.base import Buffer
from gpu.engines.simulator import SimulatorEngine
from gpu.kernel.arguments import dtype_of
from gpu.lessons.expressions import MAX_ELEMENTS, Array, evaluate, evaluate_integer, evaluate_number
from gpu.lessons.stage_arrays import LARGE_KINDS, MARGIN, NEAR_KIND, StageArray, find_range, generate_array
from gpu.messages.judgments import GradingCase, format_number
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import Pointer, Scalar, Type, decay

_MAX_THREADS = 1 << 22
"""Most threads of a launch, so that a lesson is recorded and graded in seconds."""
_MAX_VARIABLE_BYTES = 64 << 20
"""Most bytes of a kernel file's variables."""

_MAX_SHOWN_VALUES = 9
"""Longest array of a failing input that is shown."""
_TRIAL = re.compile(r"\btrial\b")


@dataclass(frozen=True)
class StageLaunch:
    """Launch of a kernel: its extents, and for each parameter the name of an array or an expression."""

    kernel: str
    grid: tuple[str | int, ...]
    block: tuple[str | int, ...]
    arguments: tuple[str | int | float, ...]
    shared: str | int = 0


@dataclass(frozen=True)
class ProgramInterface:
    """Standard input and output of a whole program.

    Parameters
    ----------
    arguments : tuple of (str, int or float)
        Names of arrays, and expressions, in the order of standard input; "out" arrays are written to standard output.
    dtype : {"float32", "int32"}
        Type of the arrays' elements.
    status : str or int
        The expected exit code, as an expression; results are only checked if it is 0.
    streams : int
        Number of streams that the program must use, besides the default stream.
    block, launches : str or int
        The threads per block of each launch, and the least number of launches, as expressions; 0 for any.
    failure_status : int
        The expected exit code if an allocation, a copy or a kernel fails; 0 if such failures are not tested.
    """

    arguments: tuple[str | int | float, ...]
    dtype: str = "float32"
    status: str | int = 0
    streams: int = 0
    block: str | int = 0
    launches: str | int = 0
    failure_status: int = 0


@dataclass(frozen=True)
class Stage:
    """Kernel file of a lesson with its arrays and launches, or a whole program.

    Parameters
    ----------
    file : str
        Name of the kernel file in the lesson's folder.
    constants : mapping of str to str
        Contents of `__constant__` variables, as expressions.
    launches : tuple of StageLaunch
        In order; empty for a whole program, which launches its kernels itself.
    named_expressions : mapping of str to (str or int)
        Named expressions, in order.
    expectations : mapping of str to str
        Expected contents of arrays, as expressions on the initial contents; if empty, the reference solution's
        results are expected.
    tolerance : float
        Tolerance of real numbers, relative to the largest value.
    program : ProgramInterface or None
        The interface of a whole program; None for kernels.
    """

    file: str
    arrays: Mapping[str, StageArray]
    launches: tuple[StageLaunch, ...]
    constants: Mapping[str, str] = field(default_factory=dict)
    named_expressions: Mapping[str, str | int] = field(default_factory=dict)
    expectations: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-5
    program: ProgramInterface | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Arrays that are checked: those with an expectation, otherwise all that are written."""
        return tuple(self.expectations) or tuple(name for name, array in self.arrays.items() if array.use != "in")

    @property
    def has_trials(self) -> bool:
        """Whether any expression uses `trial`."""
        launched = [text for each in self.launches for text in (*each.grid, *each.block, *each.arguments, each.shared)]
        if self.program is not None:
            launched += [*self.program.arguments, self.program.status]
        sizes = [text for each in self.arrays.values() for text in (each.size, each.low, each.high, each.fill)]
        texts = [*launched, *sizes, *self.named_expressions.values(), *self.constants.values()]
        return any(isinstance(text, str) and _TRIAL.search(text) for text in texts)

    def evaluate_names(self, n: int, trial: int = 0) -> dict[str, Any]:
        """Return the names for expressions of sizes and launches: `n`, `trial` and those in `let`."""
        names: dict[str, Any] = {"n": n, "trial": trial}
        for name, text in self.named_expressions.items():
            names[name] = evaluate(text, names)
        return names

    def generate_inputs(
        self, case: GradingCase, types: Mapping[str, np.dtype[Any]], *, for_display: bool = False
    ) -> dict[str, Array]:
        """Generate the initial contents of arrays and constants, except uninitialized ones.

        Parameters
        ----------
        types : mapping
            Type of each array's elements, and of each constant.
        for_display : bool
            Whether to generate small positive numbers for display.

        Raises
        ------
        InputError
            If an expression cannot be computed.
        """
        if case.kind not in LARGE_KINDS:
            return self._generate_values(case, types, for_display=for_display)
        bits = max((np.iinfo(dtype).bits for dtype in types.values() if dtype.kind in "iu"), default=0)
        for spare in range(0 if self.expectations else MARGIN, max(2 * bits, MARGIN + 1)):
            values = self._generate_values(case, types, spare=spare)
            if self._fits(values, case, types):
                break
        return values

    def _generate_values(
        self, case: GradingCase, types: Mapping[str, np.dtype[Any]], *, for_display: bool = False, spare: int = 0
    ) -> dict[str, Array]:
        names = self.evaluate_names(case.n, case.trial)
        parameters = self.find_parameters(case.n, case.trial) if case.kind == NEAR_KIND else ()
        values: dict[str, Array] = {}
        for name, array in self.arrays.items():
            if array.use == "out" and not array.fill:
                continue
            scope = {**names, **values}
            size = self._evaluate_size(name, array, scope)
            if array.fill:
                filled = np.broadcast_to(np.asarray(evaluate(array.fill, scope)).reshape(-1), (size,))
                values[name] = filled.astype(types[name])
                continue
            bounds = find_range(name, array, types[name], scope, case.kind, for_display=for_display, spare=spare)
            generator = np.random.default_rng([zlib.crc32(name.encode()), case.seed, size])
            values[name] = generate_array(generator, size, bounds, case.kind, array, types[name], parameters)
        for name, text in self.constants.items():
            values[name] = np.atleast_1d(np.asarray(evaluate(text, {**names, **values}))).astype(types[name])
        return values

    def find_parameters(self, n: int, trial: int = 0) -> tuple[float, ...]:
        """Return the numbers that launches pass to kernels and that depend neither on n nor on an array."""
        texts = {text for launch in self.launches for text in launch.arguments if text not in self.arrays}
        scopes = [self.evaluate_names(size, trial) for size in (n, n + 1)]
        uses_array = {text for text in texts for name in self.arrays if re.search(rf"\b{re.escape(name)}\b", str(text))}
        numbers = {tuple(evaluate_number(text, names) for names in scopes) for text in texts - uses_array}
        return tuple(sorted(first for first, second in numbers if first == second))

    def _fits(self, values: Mapping[str, Array], case: GradingCase, types: Mapping[str, np.dtype[Any]]) -> bool:
        """Return whether integer results, and sums of their terms' magnitudes, fit in their types."""
        # Arrays with a declared range or a fill may be indices, which must be integers.
        exact = {
            name: each.astype(np.float64 if each.dtype.kind == "f" or self._is_free(name) else np.int64)
            for name, each in values.items()
        }
        magnitudes = {name: np.abs(each) if self._is_free(name) else each for name, each in exact.items()}
        try:
            return all(
                np.abs(result).max(initial=0) <= np.iinfo(types[name]).max
                for inputs in (exact, magnitudes)
                for name, result in self._evaluate_expectations(inputs, case).items()
                if types[name].kind in "iu"
            )
        except InputError:  # such as an index outside an array
            return False

    def _is_free(self, name: str) -> bool:
        """Return whether an array's values are generated without a declared range."""
        return name in self.arrays and self.arrays[name].is_free

    def compute_expected(self, before: Mapping[str, Array], case: GradingCase) -> dict[str, Array]:
        """Return the expected contents of arrays, computed from the initial ones; empty without expectations."""
        exact = {
            name: values.astype(np.int64 if values.dtype.kind in "iub" else np.float64)
            for name, values in before.items()
        }
        return self._evaluate_expectations(exact, case)

    def _evaluate_expectations(self, inputs: Mapping[str, Array], case: GradingCase) -> dict[str, Array]:
        names = {**self.evaluate_names(case.n, case.trial), **inputs}
        return {name: np.asarray(evaluate(text, names)).reshape(-1) for name, text in self.expectations.items()}

    def run(self, engine: SimulatorEngine, before: Mapping[str, Array], case: GradingCase) -> dict[str, Array]:
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
        names, types = self.evaluate_names(case.n, case.trial), self.find_types(plain)
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
                _evaluate_argument(argument, type, buffers, {**names, **before})
                for argument, (_, type) in zip(launch.arguments, parameters, strict=True)
            ]
            grid, block = (_evaluate_extents(extent, names) for extent in (launch.grid, launch.block))
            if prod((*grid, *block)) > _MAX_THREADS:
                raise InputError(f"{launch.kernel} is launched with more than {_MAX_THREADS:,} threads.")
            engine.launch(kernel, grid, block, *arguments, shared_bytes=evaluate_integer(launch.shared, names))
        return {name: engine.download(buffer) for name, buffer in buffers.items()}

    def describe_input(self, before: Mapping[str, Array], case: GradingCase) -> str:
        """Return the launch's extents and, if they are short, the initial arrays and constants, as text."""
        names = self.evaluate_names(case.n, case.trial)
        extents = (_evaluate_extents(extent, names) for extent in (self.launches[0].grid, self.launches[0].block))
        parts = [f"{name} {_format_extents(each)}" for name, each in zip(("grid", "block"), extents, strict=True)]
        for name, values in before.items():
            if values.size <= _MAX_SHOWN_VALUES:
                parts.append(f"{name} = [{', '.join(format_number(float(value)) for value in values)}]")
        return "; ".join(parts)

    def count_threads(self, n: int) -> int:
        """Return the number of threads of the largest launch."""
        names = self.evaluate_names(n)
        return max(
            prod((*_evaluate_extents(launch.grid, names), *_evaluate_extents(launch.block, names)))
            for launch in self.launches
        )

    def count_shared_bytes(self, module: SimulatedModule, names: Mapping[str, Any]) -> int:
        """Return the shared memory of a block in bytes, static and dynamic: the most of all launches."""
        return max(
            module.kernel(launch.kernel).traits.static_shared_bytes + evaluate_integer(launch.shared, names)
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


def _format_extents(extents: tuple[int, int, int]) -> str:
    """Format extents without trailing ones: "64", "8 x 4"."""
    count = max((number for number, extent in enumerate(extents, 1) if extent > 1), default=1)
    return " x ".join(str(extent) for extent in extents[:count])


def _find_element_type(type: Type) -> np.dtype[Any]:
    element = decay(type)
    return dtype_of(element)


def _evaluate_extents(extents: tuple[str | int, ...], names: Mapping[str, Any]) -> tuple[int, int, int]:
    x, y, z = (*(evaluate_integer(extent, names) for extent in extents), *[1] * (3 - len(extents)))
    return x, y, z


def find_wrong_elements(got: Array, exact: Array, tolerance: float) -> Array:
    """Return which results are wrong; infinities must be equal, and widen no tolerance.

    Parameters
    ----------
    got : array of shape (n,)
    exact : array of shape (n,)
        float64.
    tolerance : float
        The largest error of a correct result, as a fraction of the largest finite exact magnitude.

    Returns
    -------
    bool array of shape (n,)
    """
    scale = float(np.abs(exact).max(initial=0.0, where=np.isfinite(exact))) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        is_right: Array = (np.abs(got.astype(np.float64) - exact) <= tolerance * scale) | (got == exact)
    return ~is_right
