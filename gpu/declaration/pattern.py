"""The declaration of a pattern, from which forms, commands, benchmarks and tests are generated."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.base.warp import WARP
from gpu.declaration.benchmark import Benchmark
from gpu.declaration.distributed_program import DistributedProgram
from gpu.declaration.gpu_sizes import SizeRule
from gpu.declaration.presentation import CountsPresentation, InputKind, Presentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.rounding import RoundingBound
from gpu.engines.base import Device, Engine
from gpu.files.arrays import read_array, read_npy

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
Outputs = Mapping[str, Array]
Value = str | int | float | tuple[float, ...] | Array
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Progress:
    """Progress of a run: `fraction` in 0..1, or None if unknown.

    `sample` returns a few hundred of the current values, shape (columns,), for a picture; `partials` returns all
    partial results that are about to be combined into one value, one per block. Both are optional.
    """

    fraction: float | None
    message: str = ""
    sample: Callable[[], Array] | None = None
    partials: Callable[[], Array] | None = None


def compiling_progress(kernel: str) -> Progress:
    """Return the progress to report while the engine compiles a kernel."""
    return Progress(None, f"compiling {kernel} for this processor")


HostProgram = Callable[[Engine, Inputs, Params], Generator[Progress, None, Outputs]]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One setting of a pattern.

    Parameters
    ----------
    name : str
        The name in `params`; the command line's option is `--name`.
    label, help, unit : str
        Texts for a form: a short label, a sentence, the unit.
    default : value of the parameter
        The value unless another is given.
    only_if : tuple of (str, tuple of str) or None
        The name of a Choice and the options for which this parameter applies; None for always.
    role : Role or None
        Its purpose, for code outside the pattern's own host programs.
    """

    name: str
    label: str
    default: Any
    help: str = ""
    unit: str = ""
    only_if: tuple[str, tuple[str, ...]] | None = None
    role: Role | None = None

    @property
    def initial(self) -> Value:
        """The initial value in a form."""
        value: Value = self.default
        return value

    def initial_for(self, params: Params) -> Value:
        """Return the default value, given other parameters' values."""
        return self.initial

    def check(self, value: Any) -> Value:
        """Return a value, or its text, converted and validated; raise InputError if it is not allowed."""
        raise NotImplementedError

    def applies(self, params: Params) -> bool:
        """Return whether this parameter applies, given the others."""
        return self.only_if is None or params.get(self.only_if[0]) in self.only_if[1]


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of `options`, which a form shows by their `titles`, or by their formatted names."""

    options: tuple[str, ...]
    default: str
    titles: tuple[str, ...] = ()

    def check(self, value: Any) -> str:
        if str(value) not in self.options:
            raise InputError(f"--{self.name} is one of {', '.join(self.options)}, not {value!r}.")
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """A whole number from `minimum` to `maximum` in steps of `step`.

    Parameters
    ----------
    minimum_label : str
        Text that a form shows for the minimum.
    reason : str
        Sentence why other values are rejected, where it is not obvious.
    defaults_by_option : tuple of (str, int)
        Different defaults, by options of the Choice in `only_if`.
    on_gpu : SizeRule or None
        The default on a GPU, for the parameter that determines the amount of work.
    """

    default: int
    minimum: int
    maximum: int
    step: int = 1
    minimum_label: str = ""
    reason: str = ""
    defaults_by_option: tuple[tuple[str, int], ...] = ()
    on_gpu: SizeRule | None = None

    def initial_for(self, params: Params) -> int:
        option = params.get(self.only_if[0]) if self.only_if is not None else None
        return dict(self.defaults_by_option).get(str(option), self.default)

    def check(self, value: Any) -> int:
        try:
            number = int(value)
            whole = number == float(value)
        except (TypeError, ValueError, OverflowError):
            number, whole = 0, False
        if not whole or not self.minimum <= number <= self.maximum or (number - self.minimum) % self.step:
            steps = f" in steps of {self.step}" if self.step > 1 else ""
            raise InputError(
                f"--{self.name} is a whole number from {self.minimum} to {self.maximum}{steps}, not {value!r}. "
                f"{self.reason}".rstrip()
            )
        return number


@dataclass(frozen=True, kw_only=True)
class Real(Parameter):
    """A finite number from `minimum` to `maximum`."""

    default: float
    minimum: float
    maximum: float

    def check(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not self.minimum <= number <= self.maximum:
            raise InputError(f"--{self.name} is a number from {self.minimum:g} to {self.maximum:g}, not {value!r}.")
        return number


NO_CENTER_ROW = "With an even number of rows, no row is centered on the result's pixel."


@dataclass(frozen=True, kw_only=True)
class Matrix(Parameter):
    """A square float32 matrix with an odd number of rows up to `maximum`; its text is the path of a .npy or .csv."""

    default: tuple[tuple[float, ...], ...]
    maximum: int

    @property
    def initial(self) -> Array:
        return np.array(self.default, np.float32)

    def check(self, value: Any) -> Array:
        matrix = _read_matrix(self.name, Path(value)) if isinstance(value, str | Path) else np.asarray(value)
        rows = matrix.shape[0] if matrix.ndim == 2 else 0
        if matrix.ndim != 2 or matrix.shape[1] != rows or rows % 2 == 0 or rows > self.maximum:
            shape = " x ".join(map(str, matrix.shape)) or "a single number"
            even = (
                f" {NO_CENTER_ROW}" if matrix.ndim == 2 and rows and rows % 2 == 0 and matrix.shape[1] == rows else ""
            )
            raise InputError(
                f"--{self.name} is a square matrix with an odd number of rows up to {self.maximum}, not {shape}.{even}"
            )
        if not np.issubdtype(matrix.dtype, np.number) or np.issubdtype(matrix.dtype, np.complexfloating):
            raise InputError(f"--{self.name} holds real numbers, not {matrix.dtype}.")
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(matrix, np.float32)
        if not np.isfinite(single).all():
            raise InputError(f"--{self.name} holds a value that is not a finite float32.")
        return single


def _read_matrix(name: str, path: Path) -> Array:
    try:
        return read_npy(path) if path.suffix.lower() == ".npy" else read_array(path, 2)
    except InputError as error:
        raise InputError(f"--{name}: {error.message}", advice=error.advice, detail=error.detail) from None


@dataclass(frozen=True)
class Textbook:
    """Theoretical work and span of an algorithm for n elements, on an unlimited number of processors.

    Parameters
    ----------
    operations : int
        Work: operations of all threads, as counted by `gpu.simulator.executor.operation_counter`.
    steps : int
        Span: length of the longest chain of dependent operations.
    peak : int
        Peak parallelism: the most operations in one step.
    """

    operations: int
    steps: int
    peak: int

    @property
    def average_parallelism(self) -> float | None:
        """The average parallelism, operations per step; None without steps."""
        return self.operations / self.steps if self.steps else None

    @classmethod
    def sequential(cls, operations: int) -> Textbook:
        """Return work and span of one thread that executes all operations in sequence."""
        return cls(operations, operations, min(operations, 1))


@dataclass(frozen=True)
class Variant:
    """A variant: one implementation of a pattern.

    Parameters
    ----------
    name, title : str
        The name on the command line, and the displayed one.
    run : HostProgram
        Launches the kernels: a generator that yields Progress between launches and returns the outputs.
    idea, limit : str
        What this variant does differently, and what still limits it: the reason for the next variant.
    kernels : tuple of str
        The `__global__` functions it launches.
    deliberate_error : str
        Why its results are wrong by design, for example a race; empty for a correct variant.
    textbook : callable or None
        (params, n) -> theoretical work and span for n elements; None to use the pattern's. See `Pattern.textbook_of`.
    comparable : callable
        (params, result) -> the form in which result and reference are compared, such as sorted for a variant that
        does not define the order.
    obstacle : callable
        (inputs, params) -> sentence why this variant does not support them; empty if it does. For methods that are
        faster on restricted inputs, such as separable filters.
    threads : callable or None
        params -> threads per block; None for the value of the parameter `block`, if there is one.
    file : str
        The file under `kernels/` with its kernels; empty for the pattern's file.
    library : str
        The library that it calls for comparison, such as "cuBLAS": it has no kernels and no source, and runs on
        engines that support libraries.
    warpgroups : bool
        Whether it multiplies tiles by warpgroups, which not every device supports.
    is_single_thread : bool
        Whether one thread does all the work, like a sequential program: a far smaller input shows everything than for
        parallel variants, and large inputs take long.
    checked_side : callable or None
        params -> side of the matrices on which its kernels are checked, if they behave differently on smaller ones or
        take long at the usual size.
    max_default_size : int
        Upper limit of the default of `Pattern.device_sized_parameter`, if its work grows faster than that parameter; 0
        for none.
    is_quadratic : bool
        Whether its work grows with the square of the size, unlike that of the pattern's other variants.
    successor : str
        The name of the variant that removes its limit, if it is not the next one. See `Pattern.find_successor`.
    """

    name: str
    title: str
    run: HostProgram
    idea: str
    limit: str
    kernels: tuple[str, ...]
    deliberate_error: str = ""
    textbook: Callable[[Params, int], Textbook] | None = None
    comparable: Callable[[Params, Array], Array] = lambda params, result: result
    obstacle: Callable[[Inputs, Params], str] = lambda inputs, params: ""
    threads: Callable[[Params], int] | None = None
    file: str = ""
    library: str = ""
    warpgroups: bool = False
    is_single_thread: bool = False
    checked_side: Callable[[Params], int] | None = None
    max_default_size: int = 0
    is_quadratic: bool = False
    successor: str = ""

    def unsupported_reason(self, device: Device) -> str:
        """Return a sentence why a device cannot run it; "" if it can."""
        if self.library:
            return device.no_library
        return device.no_warpgroups if self.warpgroups else ""


@dataclass(frozen=True)
class Cost:
    """Minimum traffic and operations of a pattern, for every variant."""

    bytes_read: int
    bytes_written: int
    flops: int


@dataclass(frozen=True)
class Work:
    """Amount of work for throughput, such as pixels: `amount` of `unit`, shown in millions (M) or billions (G)."""

    amount: int
    unit: str
    prefix: Literal["M", "G"] = "M"


@dataclass(frozen=True)
class LengthsPresentation:
    """Presentation of elements as lengths laid end to end, at the positions that their scan computes.

    Parameters
    ----------
    total_length : int
        Total length that they are cut from; 0 for their sum.
    unit : str
        Unit of the lengths, such as "inches".
    remainder_label : str
        Label of the remaining length, such as "left".
    inclusive : bool
        Whether the scan gives the ends of the lengths instead of the starts.
    """

    total_length: int
    unit: str
    remainder_label: str = ""
    inclusive: bool = True


@dataclass(frozen=True)
class Preset:
    """A demonstration: titled settings.

    Parameters
    ----------
    title, text : str
        Title in a list, and a sentence or two about what it demonstrates.
    params : mapping
        Values of parameters; the others take their defaults.
    variant : str
        The variant to select; "" keeps the selection.
    lengths : LengthsPresentation or None
        How to draw the elements as lengths.
    """

    title: str
    text: str
    params: Params
    variant: str = ""
    lengths: LengthsPresentation | None = None


@dataclass(frozen=True)
class CountedText:
    """How a kernel counts a text, by the names of its arrays.

    Parameters
    ----------
    characters : str
        The array of characters.
    bins : tuple of str
        The arrays of bins.
    names : tuple of str
        The names of the bins.
    """

    characters: str
    bins: tuple[str, ...]
    names: tuple[str, ...]


def find_by_role(parameters: Iterable[Parameter], role: Role) -> Parameter | None:
    """Return the parameter with a role; None if there is none."""
    return next((parameter for parameter in parameters if parameter.role is role), None)


_Kind = TypeVar("_Kind", bound=Parameter)


def _cast(kind: type[_Kind], parameter: Parameter | None) -> _Kind | None:
    """Cast a parameter to the class that its role requires."""
    assert parameter is None or isinstance(parameter, kind), f"{parameter} is not a {kind.__name__}"
    return parameter


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A parallel algorithm: its input, parameters, variants, reference result and tolerance.

    Parameters
    ----------
    name, title, summary : str
        The name on the command line, the displayed one, and a description of at most 45 characters.
    order : int
        Its position among the patterns, from 1, unique.
    kernel_file : str
        The file under `kernels/` with the ladder's kernels; variants may name other files.
    presentation : Presentation
        How the window's Run tab shows a result, and the kind of input. Image patterns take `image` and `maxval`; array
        patterns take `values` of one dimension; matrix patterns `values` of two dimensions and optional further
        inputs; patterns of bodies take `bodies` of shape (n, 7).
    parameters : tuple of Parameter
        Roles are unique.
    variants : tuple of Variant
        The ladder, naive variant first.
    default_variant : str
        The variant to run by default.
    result : str
        The name of the output to verify and save.
    reference : callable
        The reference result in float64 or integers, computed on the CPU by a library: (inputs, params) -> array.
    tolerance : callable
        The largest absolute error of a correct result, or of each of its elements: (inputs, params) -> float, array
        of the reference's shape, or RoundingBound.
    cost, work : callable
        (inputs, params) -> Cost and Work.
    present : callable
        The result as shown or saved to a file: (inputs, params, outputs) -> arrays by name. `picture` is uint8,
        shape (height, width) or (height, width, 3), for a screen; `image`, where the result is an image, has the
        input's dtype and levels, for a file and as another pattern's input. An array pattern presents `input` and
        `output` as outlines: shape (2, columns), the minimum and maximum of each column's elements; `elements`, their
        number; and optionally `kept`, the outline of the input elements that are in the result, NaN where none is.
    accept : callable
        (inputs, params) -> None; raises InputError if they are not compatible.
    make_input : callable or None
        (params, seed) -> generated inputs, for a run without input; None if input is always required.
    complete_inputs : callable
        (inputs, params, seed) -> inputs, completed by those that a file does not contain. Complete inputs stay
        unchanged.
    step_params : mapping
        Values of parameters for a run that is small enough to follow step by step.
    textbook : callable or None
        (params, n) -> theoretical work and span for n elements, the pixels of an image. A variant with a different
        algorithm declares its own.
    sequential_operations : callable or None
        (params, n) -> operations of the sequential algorithm for n elements; divided by a variant's operations, they
        are its work efficiency.
    step_input : callable
        inputs -> inputs, cropped to a size that can be followed step by step.
    crop_input : callable or None
        (inputs, params, small_params) -> inputs, cropped to the sizes in `small_params`. None if the first elements, or
        the first rows and columns, of every array are a valid input.
    edge_params : callable
        params -> names and changed parameters of further inputs on which edited kernels run. See
        `gpu.declaration.edge_cases`, which generates the others from the declaration.
    accept_edge_case : callable
        (inputs, params) -> None; raises InputError for valid inputs with which a correct kernel may be wrong, for
        example as its partial results leave the range of their type.
    presets : tuple of Preset
        Demonstrations.
    helpers : mapping of str to tuple of str
        The `__global__` functions that measure or draw and belong to no variant, by file under `kernels/`.
    lessons : tuple of str
        Lessons with a separate tab in the window: `ATOMICS`.
    benchmark : Benchmark
        Workloads and peers of the command `bench`.
    value_names : callable or None
        params -> names of the result's values; empty if they have only positions.
    describe_text : callable
        params -> how a text is counted, for its picture; None for no text.
    side_on_gpu : SizeRule or None
        The smallest side of an image from which variants can be compared on a GPU.
    distributed : DistributedProgram or None
        How it runs on several devices; None if it runs on one only.
    """

    name: str
    title: str
    summary: str
    order: int
    kernel_file: str
    presentation: Presentation
    parameters: tuple[Parameter, ...]
    variants: tuple[Variant, ...]
    default_variant: str
    result: str
    reference: Callable[[Inputs, Params], Array]
    tolerance: Callable[[Inputs, Params], float | Array | RoundingBound]
    cost: Callable[[Inputs, Params], Cost]
    work: Callable[[Inputs, Params], Work]
    present: Callable[[Inputs, Params, Outputs], Outputs]
    accept: Callable[[Inputs, Params], None] = lambda inputs, params: None
    make_input: Callable[[Params, int], Inputs] | None = None
    complete_inputs: Callable[[Inputs, Params, int], Inputs] = lambda supplied, params, seed: supplied
    step_params: Params = field(default_factory=dict)
    textbook: Callable[[Params, int], Textbook] | None = None
    sequential_operations: Callable[[Params, int], int] | None = None
    step_input: Callable[[Inputs], Inputs] = lambda inputs: inputs
    crop_input: Callable[[Inputs, Params, Params], Inputs] | None = None
    edge_params: Callable[[Params], tuple[tuple[str, Params], ...]] = lambda params: ()
    accept_edge_case: Callable[[Inputs, Params], None] = lambda inputs, params: None
    presets: tuple[Preset, ...] = ()
    helpers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lessons: tuple[str, ...] = ()
    benchmark: Benchmark = field(default_factory=Benchmark)
    value_names: Callable[[Params], tuple[str, ...]] | None = None
    describe_text: Callable[[Params], CountedText | None] = lambda params: None
    side_on_gpu: SizeRule | None = None
    distributed: DistributedProgram | None = None

    def parameter(self, role: Role) -> Parameter | None:
        """Return the parameter with a role; None if there is none."""
        return find_by_role(self.parameters, role)

    def textbook_of(self, variant: Variant, params: Params, n: int) -> Textbook | None:
        """Return the theoretical work and span of a variant for n elements; None if they are not declared."""
        textbook = variant.textbook or self.textbook
        return textbook(params, n) if textbook is not None and not variant.library else None

    @property
    def first_rung(self) -> Variant:
        """The first parallel variant, at which a ladder starts."""
        return next(variant for variant in self.variants if not variant.is_single_thread)

    def require_distributed(self) -> DistributedProgram:
        """Return the distributed program; raise InputError if there is none."""
        if self.distributed is None:
            raise InputError(f"{self.title} runs on one device only.", advice="Leave out --engine dask.")
        return self.distributed

    def find_successor(self, variant: Variant) -> Variant | None:
        """Return the variant that removes a variant's limit; None for the last one and for library variants."""
        if variant.successor:
            return self.variant(variant.successor)
        following = self.variants[self.variants.index(variant) + 1 :][:1]
        return next(
            (each for each in following if not (each.library or each.deliberate_error or variant.library)), None
        )

    @property
    def size(self) -> Integer | None:
        """The parameter for the number of generated elements, columns or bodies."""
        return _cast(Integer, self.parameter(Role.SIZE))

    @property
    def block(self) -> Choice | None:
        """The parameter for the number of threads per block."""
        return _cast(Choice, self.parameter(Role.BLOCK))

    def block_sizes(self, params: Mapping[str, Any]) -> tuple[list[int], int]:
        """Return the possible block sizes of whole warps, and the chosen one; ([], 0) if it is none of them."""
        block = self.block
        if block is None or not str(params[block.name]).isdigit():
            return [], 0
        sizes = [int(option) for option in block.options if option.isdigit() and int(option) >= WARP]
        chosen = int(params[block.name])
        return (sizes, chosen) if chosen in sizes else ([], 0)

    @property
    def source(self) -> Choice | None:
        """The parameter for the source of the input: a generator, or a file."""
        return _cast(Choice, self.parameter(Role.SOURCE))

    @property
    def subject(self) -> Choice | None:
        """The parameter for the kind of input, if there are several kinds."""
        return _cast(Choice, self.parameter(Role.SUBJECT))

    @property
    def device_sized_parameter(self) -> Integer | None:
        """The parameter with a default that depends on the GPU's size; None if there is none."""
        integers = (parameter for parameter in self.parameters if isinstance(parameter, Integer))
        return next((integer for integer in integers if integer.on_gpu is not None), None)

    def default_size(self, variant: Variant, device: Device | None) -> int:
        """Return the default of `device_sized_parameter`, 0 without one: on a GPU, enough work for meaningful times.

        Parameters
        ----------
        variant : Variant
            The variant to run, which may limit the default.
        device : Device or None
            None for a device that is not known yet.
        """
        growing = self.device_sized_parameter
        if growing is None:
            return 0
        default = (0 if device is None else self.min_comparable_size(device)) or growing.default
        return min(default, variant.max_default_size or default)

    def with_default_size(self, variant: Variant, device: Device | None) -> Pattern:
        """Return the pattern with the default size of a variant on a device; see `default_size`."""
        growing, size = self.device_sized_parameter, self.default_size(variant, device)
        return replace(
            self,
            parameters=tuple(
                replace(parameter, default=size) if parameter is growing else parameter for parameter in self.parameters
            ),
        )

    def min_comparable_size(self, device: Device) -> int:
        """Return the smallest value of `device_sized_parameter` for comparing variants on a device, 0 if not a GPU."""
        growing = self.device_sized_parameter
        if growing is None or growing.on_gpu is None or device.executor != "gpu":
            return 0
        return min(growing.on_gpu(device.multiprocessors), growing.maximum)

    def comparison_sizes(self, inputs: Inputs, params: Params, device: Device) -> tuple[str, int, int]:
        """Return the size of a run, and the smallest size for comparing variants on a device.

        Returns
        -------
        str
            The parameter of both sizes; "" if they are the side of an image.
        int, int
            The two sizes; 0 if they do not exist, for example for a file.
        """
        if "image" in inputs:
            if self.side_on_gpu is None or device.executor != "gpu":
                return "", 0, 0
            return "", math.isqrt(math.prod(inputs["image"].shape[:2])), self.side_on_gpu(device.multiprocessors)
        growing = self.device_sized_parameter
        if growing is None or not growing.applies(params) or self.reads_file(params):
            return "", 0, 0
        return growing.name, params[growing.name], self.min_comparable_size(device)

    def value(self, params: Params, role: Role) -> Any:
        """Return the value of the parameter with a role; None if there is none, or it does not apply."""
        parameter = self.parameter(role)
        return params.get(parameter.name) if parameter is not None and parameter.applies(params) else None

    def count_elements(self, params: Params) -> int | None:
        """Return the number of generated or typed elements; None if the parameters do not determine it."""
        typed = self.value(params, Role.VALUES)
        size = len(typed.replace(",", " ").split()) if typed is not None else self.value(params, Role.SIZE)
        return None if size is None else int(size)

    def params_for_role(self, role: Role, value: Any) -> dict[str, Any]:
        """Return {name: value} for the parameter with a role; an empty dictionary if there is none."""
        parameter = self.parameter(role)
        return {} if parameter is None else {parameter.name: value}

    def input_kind(self, params: Params) -> InputKind:
        """Return the kind of input of a run with these parameters."""
        if isinstance(self.presentation, CountsPresentation) and self.subject is not None:
            return self.presentation.kinds[params[self.subject.name]]
        return self.presentation.kind

    def reads_file(self, params: Params) -> bool:
        """Return whether a run with these parameters reads its values from a file."""
        return bool(self.value(params, Role.SOURCE) == FROM_FILE)

    def generates_input(self, params: Params) -> bool:
        """Return whether a run with these parameters generates its input, although it could read a file instead."""
        kind = self.value(params, Role.SOURCE)
        return kind is not None and kind != FROM_FILE and self.source is not None and FROM_FILE in self.source.options

    def params_for_file(self, kind: InputKind, text: str = "") -> dict[str, Any]:
        """Return the parameters for input of a kind from a file; for "text", `describe_text` is its content."""
        settings: dict[str, Any] = {}
        if isinstance(self.presentation, CountsPresentation) and self.subject is not None:
            kinds = self.presentation.kinds
            settings[self.subject.name] = next(option for option in self.subject.options if kinds[option] == kind)
        if kind == "text":
            settings |= self.params_for_role(Role.TEXT, text)
        if kind == "values":
            settings |= self.params_for_role(Role.SOURCE, FROM_FILE)
        return settings

    @property
    def is_image_pattern(self) -> bool:
        """Whether it is an image pattern, even if it supports other kinds of input too."""
        return self.presentation.kind == "image"

    @property
    def dimensions(self) -> int:
        """The number of dimensions of numeric input; 0 if it takes none."""
        return self.presentation.dimensions

    def variant(self, name: str) -> Variant:
        """Return the variant of that name; raise InputError with all names if there is none."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = ", ".join(variant.name for variant in self.variants)
        raise InputError(f"{self.title} has no variant {name!r}; there are {names}.")

    @property
    def kernel_files(self) -> tuple[str, ...]:
        """Every kernel file of the ladder, the pattern's own first."""
        return tuple(dict.fromkeys([self.kernel_file, *(variant.file for variant in self.variants if variant.file)]))

    def kernel_file_of(self, variant: str) -> str:
        """Return the kernel file of the variant of that name; "" for a library variant."""
        return "" if self.variant(variant).library else self.variant(variant).file or self.kernel_file

    def check(self, supplied: Params) -> dict[str, Any]:
        """Return the values of all parameters, with defaults; raise InputError for an invalid or unknown parameter."""
        parameters = {parameter.name: parameter for parameter in self.parameters}
        for name in supplied:
            if name not in parameters:
                raise InputError(f"{self.title} has no parameter {name!r}; there are {', '.join(parameters)}.")
        return {
            name: parameter.check(supplied[name] if name in supplied else parameter.initial_for(supplied))
            for name, parameter in parameters.items()
        }

    def prepare_inputs(self, supplied: Inputs, params: Params, seed: int) -> Inputs:
        """Return `params`, completed by further inputs, or an input generated from `params` and `seed`.

        Raises
        ------
        InputError
            Nothing is given, and the pattern cannot generate an input.
        """
        if supplied:
            return self.complete_inputs(supplied, params, seed)
        if self.make_input is None:
            raise InputError(f"{self.title} needs an image; none is open.")
        return self.make_input(params, seed)
