"""C's operators and CUDA's functions as LLVM instructions: the forms of `gpu.simulator.ir`, and conversions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from gpu.simulator.compiled.llvm.assembly import Assembly, UnsupportedKernel, value_type
from gpu.simulator.ir.forms import Missing, choose_form
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.ir.operations import BINARY, UNARY
from gpu.simulator.types import BOOL, INT64, Scalar, Type

Target = Literal["llvm", "nvptx"]
"""The forms of operations to write: for CPUs or for GPUs."""


def format_literal(type: Scalar, value: np.generic) -> str:
    """Return a constant in LLVM syntax."""
    if type == BOOL:
        return "true" if value else "false"
    if type.is_float:
        return f"0x{np.float64(value).view(np.uint64):016X}"
    return str(int(value))


def emit_binary(
    asm: Assembly, op: str, type: Scalar, left: str, right: str, *, flags: str = "", target: Target = "llvm"
) -> str:
    """Return the result of a binary operator of C.

    Parameters
    ----------
    asm : Assembly
        Receives the instructions.
    op : str
        A key of `gpu.simulator.ir.operations.BINARY`, such as "+" or "<".
    type : Scalar
        The type of both operands, and of the result unless that is one bit, as for comparisons.
    left, right : str
        The operands, as LLVM values or constants.
    flags : str
        LLVM's flags for the operation, such as "nsw ".
    target : {"llvm", "nvptx"}
        Whether to write the form for CPUs or for GPUs.

    Raises
    ------
    UnsupportedKernel
        The operation has no such form.
    """
    operation = BINARY[op]
    form = operation.llvm if target == "llvm" else operation.nvptx
    is_constant = operation.constant is not None and right.isdigit() and int(right) > 0
    if is_constant and not type.is_float and (op in "/%" or int(right) < 8 * type.size):
        form = operation.constant or form
    return _emit_form(asm, op, choose_form(form, type), type, (left, right), flags)


def emit_fused(asm: Assembly, op: str, type: Scalar, left: str | tuple[str, ...], right: str | tuple[str, ...]) -> str:
    """Return the sum or difference of a number and an exact product, rounded once.

    Parameters
    ----------
    asm : Assembly
        Receives the instructions.
    op : str
        "+" or "-".
    type : Scalar
        The type of all operands.
    left, right : str or tuple of str
        The operands; one is a tuple of the product's factors.
    """
    factors, z = (left, right) if isinstance(left, tuple) else (right, left)
    assert isinstance(factors, tuple)
    assert isinstance(z, str)
    x, y = factors
    if op == "-" and isinstance(left, tuple):
        z = emit_unary(asm, "-", type, z)
    elif op == "-":
        x = emit_unary(asm, "-", type, x)
    return emit_intrinsic(asm, "fma", type, (x, y, z))


def emit_unary(asm: Assembly, op: str, type: Scalar, operand: str) -> str:
    """Return the result of `-`, `~` or `!`.

    Parameters
    ----------
    asm : Assembly
        Receives the instructions.
    op : str
        A key of `gpu.simulator.ir.operations.UNARY`.
    type : Scalar
        The type of the operand, and of the result unless that is one bit, as of `!`.
    operand : str
        The operand, as an LLVM value or constant.
    """
    return _emit_form(asm, op, choose_form(UNARY[op].llvm, type), type, (operand,))


def emit_cast(asm: Assembly, source: Scalar, target: Scalar, operand: str, form: Target = "llvm") -> str:
    """Return a value converted to another scalar type.

    Parameters
    ----------
    asm : Assembly
        Receives the instructions.
    source, target : Scalar
        The types of the operand and of the result.
    operand : str
        The operand, as an LLVM value or constant.
    form : {"llvm", "nvptx"}
        Whether to write code for CPUs or for GPUs, where conversions from floats to integers saturate anyway.
    """
    if source == target:
        return operand
    before, after = value_type(source), value_type(target)
    if target == BOOL:
        if source.is_float:
            return asm.value(f"fcmp une {before} {operand}, 0.0")
        if operand.isdigit():
            return "true" if int(operand) else "false"
        return asm.value(f"icmp ne {before} {operand}, 0")
    if source.is_float and target.is_float:
        return asm.value(f"{'fpext' if target.size > source.size else 'fptrunc'} {before} {operand} to {after}")
    if source.is_float and form == "nvptx" and target.size >= 4:
        return asm.value(f"fpto{'s' if target.is_signed else 'u'}i {before} {operand} to {after}")
    if source.is_float:
        return _emit_saturation(asm, source, target, operand)
    if target.is_float:
        return asm.value(f"{'sitofp' if source.is_signed else 'uitofp'} {before} {operand} to {after}")
    if source.size == target.size and source != BOOL:
        return operand
    if operand.lstrip("-").isdigit():
        return str(_wrap(_wrap(int(operand), source), target))
    if source != BOOL and target.size < source.size:
        return asm.value(f"trunc {before} {operand} to {after}")
    return asm.value(f"{'sext' if source.is_signed else 'zext'} {before} {operand} to {after}")


def _wrap(number: int, type: Scalar) -> int:
    """Return an integer wrapped to a type."""
    bits = 8 * type.size
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if type.is_signed and low >> (bits - 1) else low


def _emit_saturation(asm: Assembly, source: Scalar, target: Scalar, operand: str) -> str:
    if target.size < 4:  # convert to 32 bits, and keep the low ones
        wide = Scalar("int32" if target.is_signed else "uint32")
        return emit_cast(asm, wide, target, _emit_saturation(asm, source, wide, operand))
    before, after = value_type(source), value_type(target)
    function = f"@llvm.fpto{'si' if target.is_signed else 'ui'}.sat.{after}.f{8 * source.size}"
    asm.declare(f"{after} {function}({before})")
    result = asm.value(f"call {after} {function}({before} {operand})")
    if 8 in (source.size, target.size):  # NaN is 0 only from float to 32 bits
        nan = asm.value(f"fcmp uno {before} {operand}, 0.0")
        result = asm.value(f"select i1 {nan}, {after} {-(1 << (8 * target.size - 1))}, {after} {result}")
    return result


def emit_intrinsic(asm: Assembly, name: str, kind: Type, values: Sequence[str], target: Target = "llvm") -> str:
    """Return the result of a CUDA function.

    Parameters
    ----------
    asm : Assembly
        Receives the instructions.
    name : str
        A key of `gpu.simulator.ir.intrinsics.INTRINSICS`, such as "sqrt".
    kind : Scalar
        The type of the first argument.
    values : sequence of str
        The arguments, as LLVM values or constants.
    target : {"llvm", "nvptx"}
        Whether to write the form for CPUs or for GPUs.

    Raises
    ------
    UnsupportedKernel
        The function has no such form.
    """
    assert isinstance(kind, Scalar)
    row = INTRINSICS[name]
    return _emit_form(asm, name, choose_form(row.llvm if target == "llvm" else row.nvptx, kind), kind, values)


def _emit_form(
    asm: Assembly, name: str, form: str | Missing, type: Scalar, operands: Sequence[str], flags: str = ""
) -> str:
    """Write a form in the language of `gpu.simulator.ir.forms`, and return its value."""
    if isinstance(form, Missing):
        raise UnsupportedKernel(f"the function {name}, which {form.reason}")
    bits = 8 * type.size
    names: dict[str, str | int] = {"T": value_type(type), "S": f"{'f' if type.is_float else 'i'}{bits}"}
    names |= {"bits": bits, "last": bits - 1, "flags": flags, **dict(zip("xyz", operands, strict=False))}
    for target, line in _parse_form(form):
        names[target] = result = _emit_line(asm, line % names, type)
    return result


@cache
def _parse_form(form: str) -> list[tuple[str, str]]:
    """Return the name of each line's value, and the line as a format string."""
    lines = re.sub(r"\$(\w+)", r"%(\1)s", form).split("\n")
    parts = [line.partition(" = ") for line in lines]
    return [(name, line) if equals else ("", name) for name, equals, line in parts]


def _emit_line(asm: Assembly, line: str, type: Scalar) -> str:
    llvm_type = value_type(type)
    if line.startswith(("@", "libm ")):
        function, _, text = line.removeprefix("libm ").partition(" ")
        arguments = [each if " " in each else f"{llvm_type} {each}" for each in text.split(", ")]
        attributes = ""
        if not line.startswith("@"):
            function = f"@{function}{'f' if type.size == 4 else ''}"
            attributes = " nounwind willreturn memory(none)"
        elif function.startswith("@nvvm."):
            function = f"@llvm.{function[1:]}"
        else:
            function = f"@llvm.{function[1:]}.{f'f{8 * type.size}' if type.is_float else llvm_type}"
        asm.declare(f"{llvm_type} {function}({', '.join(each.split()[0] for each in arguments)}){attributes}")
        line = f"call {llvm_type} {function}({', '.join(arguments)})"
    elif line.startswith("call "):
        head, _, text = line.removeprefix("call ").rstrip(")").partition("(")
        asm.declare(f"{head}({', '.join(each.split()[0] for each in text.split(', '))})")
    return asm.value(line)


def emit_pointer_conversion(asm: Assembly, operand: str, target: Scalar) -> str:
    """Convert a pointer to an integer."""
    return emit_cast(asm, INT64, target, asm.value(f"ptrtoint ptr {operand} to i64"))
