"""Parameters of elementwise and reduction kernels: their declarations, types and CUDA C++."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray, check_dtype, from_interface
from gpu.hosts.cupy.forwarding import reject_host_arrays

HEADERS = "#include <cupy/complex.cuh>\n#include <cupy/carray.cuh>\n"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*")
_C_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    **{
        f"uint{bits}": f"unsigned {name}" for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    },
    "float16": "float16",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}
_TEXTURE = "cudaTextureObject_t"
Type = np.dtype[Any] | str
"""A dtype, or the name of a C++ type that NumPy does not have."""


@dataclass(frozen=True)
class DeclaredParameter:
    """A parameter of a kernel: "raw T x".

    Parameters
    ----------
    type_name : str
        A dtype's name, or one letter, which stands for any type.
    is_raw : bool
        Whether the kernel indexes the array itself.
    """

    name: str
    type_name: str
    is_raw: bool
    is_output: bool

    @property
    def is_variable(self) -> bool:
        """Whether the type is one letter, which the arguments decide."""
        return len(self.type_name) == 1


def check_name(name: str) -> str:
    """Return a kernel's name; raise ValueError if C++ does not allow it."""
    if not _NAME.fullmatch(name):
        raise ValueError(f'Invalid kernel name: "{name}"')
    return name


def parse_parameters(declaration: str, *, is_output: bool) -> tuple[DeclaredParameter, ...]:
    """Return the parameters of a declaration: "T x, raw float32 y".

    Raises
    ------
    ValueError
        If the declaration is invalid.
    TypeError
        If NumPy does not know a type.
    """
    parameters = []
    for text in declaration.split(","):
        words = text.split()
        if not words:
            continue
        qualifiers, rest = words[:-2], words[-2:]
        if len(rest) != 2 or not _NAME.fullmatch(rest[1]) or set(qualifiers) - {"raw", "const", "_non_const"}:
            raise ValueError(f"Invalid parameter {text.strip()!r}; expected, for example, 'raw T x'")
        if rest[1] in ("n", "i") or rest[1].startswith("_"):
            raise ValueError(f"Parameter {rest[1]!r} is not available; n, i and names that begin with _ are reserved")
        if len(rest[0]) > 1 and rest[0] != _TEXTURE:
            check_dtype(rest[0])
        parameters.append(DeclaredParameter(rest[1], rest[0], "raw" in qualifiers, is_output))
    return tuple(parameters)


class DeclaredKernel:
    """A kernel with declared inputs and outputs, whose source is generated for their types.

    Raises ValueError if the name or a declaration is invalid.
    """

    def __init__(self, name: str, in_params: str, out_params: str) -> None:
        self.name = self.__name__ = check_name(name)
        self.in_params = parse_parameters(in_params, is_output=False)
        self.out_params = parse_parameters(out_params, is_output=True)
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self._codes: dict[tuple[str, ...], str] = {}

    @property
    def cached_codes(self) -> dict[tuple[str, ...], str]:
        """The generated sources, by the parameters' types."""
        return self._codes

    _cached_codes = cached_codes


def convert_arguments(arguments: Sequence[Any]) -> list[Any]:
    """Return arguments as device arrays, numbers and textures; raise TypeError for others."""
    converted = [from_interface(argument) for argument in arguments]
    reject_host_arrays(converted)
    for each in converted:
        if not isinstance(each, DeviceArray | np.generic | bool | int | float | complex) and not _is_texture(each):
            raise TypeError(f"Unsupported type {type(each)}")
    return converted


def _is_texture(argument: Any) -> bool:
    return isinstance(getattr(argument, "ptr", None), int) and hasattr(argument, "texture")


def resolve_types(parameters: Sequence[DeclaredParameter], arguments: Sequence[Any]) -> dict[str, Type]:
    """Return the type of each parameter, by its name, and of each type letter.

    Parameters
    ----------
    arguments : sequence
        Those of the first parameters; further parameters are outputs that do not exist yet.

    Raises
    ------
    TypeError
        If an array's dtype differs from its parameter's, or nothing decides a letter.
    """
    letters: dict[str, Type] = {}
    pairs = list(zip(parameters, arguments, strict=False))
    for parameter, argument in pairs:
        if _is_texture(argument) and parameter.is_variable:
            letters[parameter.type_name] = _TEXTURE
        if not isinstance(argument, DeviceArray):
            continue
        expected = (
            letters.setdefault(parameter.type_name, argument.dtype)
            if parameter.is_variable
            else np.dtype(parameter.type_name)
        )
        if expected != argument.dtype:
            raise TypeError(f"Type is mismatched. {parameter.name} {argument.dtype} {expected}")
    for parameter, argument in pairs:
        if parameter.is_variable and not isinstance(argument, DeviceArray):
            letters.setdefault(parameter.type_name, np.asarray(argument).dtype)
    types: dict[str, Type] = dict(letters)
    for parameter in parameters:
        if not parameter.is_variable:
            types[parameter.name] = _TEXTURE if parameter.type_name == _TEXTURE else np.dtype(parameter.type_name)
        elif parameter.type_name in letters:
            types[parameter.name] = letters[parameter.type_name]
        else:
            raise TypeError(f"No argument decides the type {parameter.type_name} of {parameter.name}")
    return types


def c_type(type_: Type) -> str:
    """Return a type in CUDA C++; raise TypeError if these kernels do not have it."""
    if isinstance(type_, str):
        return type_
    if type_.name not in _C_TYPES:
        raise TypeError(f"Lockstep's CuPy has no elementwise kernels of {type_}")
    return _C_TYPES[type_.name]


def format_typedefs(types: dict[str, Type], letters: Sequence[str]) -> str:
    """Return the typedefs of the type letters."""
    return "".join(f"typedef {c_type(types[letter])} {letter};\n" for letter in dict.fromkeys(letters))


def to_scalar(argument: Any, type_: Type) -> Any:
    """Return a number converted to a dtype, or a texture; raise OverflowError as NumPy if it does not fit."""
    if isinstance(type_, str):
        return argument
    if isinstance(argument, np.generic):
        return argument.astype(type_)
    return np.array(argument, type_)[()]


def _pack_members(numbers: Sequence[int]) -> Any:
    """Return the bytes of a `CArray` or `CIndexer`, as a structure that is passed by value."""
    packed = np.zeros(1, np.dtype([("members", np.int64, (len(numbers),))]))
    packed["members"] = numbers
    return packed


def declare_array(parameter: DeclaredParameter, type_: Type, array: DeviceArray) -> tuple[str, Any]:
    """Return an array's parameter in CUDA C++, named `x` if it is raw and else `_raw_x`, and its argument."""
    name = parameter.name if parameter.is_raw else f"_raw_{parameter.name}"
    const = "" if parameter.is_output else "const "
    element = f"{const}{c_type(type_)}"
    contiguous = bool(array.flags.c_contiguous)
    if contiguous and not parameter.is_raw:
        return f"{element} *{name}", array
    # A kernel may write to raw inputs, as CuPy lets it.
    writable = c_type(type_) if parameter.is_raw else element
    return f"CArray<{writable}, {array.ndim}, {'true' if contiguous else 'false'}> {name}", pack_array(array)


def pack_array(array: DeviceArray) -> Any:
    """Return an array's `CArray`, as a structure that is passed by value."""
    return _pack_members([array.ptr, array.size, *(array.shape or (1,)), *(array.strides or (0,))])


def declare_indexer(name: str, shape: Sequence[int]) -> tuple[str, Any]:
    """Return an index space's parameter in CUDA C++, and its argument."""
    size = int(np.prod(shape, dtype=np.int64)) if shape else 1
    extents = list(shape) or [1]
    return f"CIndexer<{len(shape)}> {name}", _pack_members([size, *extents, *([0] * len(extents))])
