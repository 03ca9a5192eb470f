"""One row per operator and intrinsic: its type rule, and each form in which Lockstep computes it.

The lockstep executor, constant folding and the display of values use the NumPy form; compiled kernels use the LLVM
form; the timing model compiles kernels with the NVPTX form, and executes PTX instructions with the NumPy form of the
row that names them; the host code of programs uses the host form. A row without a form states the reason.

A form in LLVM consists of lines of instructions, of which all but the last name their value: `larger = fcmp ogt $T $x,
$y`. `$x`, `$y` and `$z` are the operands, `$T` is the type of the first one, `$S` its suffix in names of LLVM's
functions, `$bits` its width, and `$flags` are flags of an instruction that does not wrap. `@ctpop $x` calls a function
of LLVM, `libm tan $x` one of the C library; `call` calls any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu.simulator.types import Scalar

Value = Any
Function = Callable[..., Value]


@dataclass(frozen=True)
class Missing:
    """The reason why a row lacks a form, as the rest of a sentence about the operation."""

    reason: str


@dataclass(frozen=True, eq=False)
class Operation:
    """The meaning of an operator or intrinsic.

    The NumPy, LLVM, NVPTX and host forms may be mappings by the type of the first operand: "f4" is float, "f" any
    floating-point type, "i" and "u" signed and unsigned integers, "b" bool, and "" all other types.

    Parameters
    ----------
    signature : str
        The type rule in C, such as "int(unsigned int)"; T is replaced by each of `types`.
    numpy : callable or mapping
        A function of NumPy values: scalars, or arrays with one value per lane.
    llvm, nvptx : str, Missing or mapping
        Text in LLVM's language, for CPUs and for GPUs.
    ptx : str or Missing
        The PTX instruction that computes the NumPy form, such as "popc" or "setp.lt".
    host : str, Missing or mapping
        An expression in C++ of the parameters x, y and z.
    constant : mapping
        The LLVM form if the right operand is a constant other than 0 and smaller than the width.
    has_float_name : bool
        Whether the name with an "f" at its end is the function for float.
    header : str
        The header of the shim that declares the intrinsic; "" for the generated one.
    is_conversion : bool
        Whether the result is the same number, or the same bits, in another type.
    """

    name: str
    signature: str
    types: tuple[str, ...]
    numpy: Function | Mapping[str, Function]
    llvm: str | Missing | Mapping[str, str | Missing]
    nvptx: str | Missing | Mapping[str, str | Missing]
    ptx: str | Missing
    host: str | Missing | Mapping[str, str | Missing]
    constant: Mapping[str, str] | None = None
    has_float_name: bool = False
    header: str = ""
    is_conversion: bool = False

    def get_function(self, type: Scalar) -> Function:
        """Return the NumPy form for a type of the first operand."""
        function: Function = choose_form(self.numpy, type)
        return function


def choose_form(forms: Any, type: Scalar) -> Any:
    """Return the form for a type of the first operand."""
    if not isinstance(forms, Mapping):
        return forms
    kind = type.dtype.kind
    return next(forms[key] for key in (f"{kind}{type.size}", kind, "u" if kind == "b" else "", "") if key in forms)
