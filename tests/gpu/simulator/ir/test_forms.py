"""Every operator and intrinsic has every form or a reason why not, and all forms compute what C and Python do."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest

from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import Assembly, memory_type
from gpu.simulator.compiled.native_code import compile_text
from gpu.simulator.ir.forms import Missing, Operation, choose_form
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.ir.operations import BINARY, UNARY
from gpu.simulator.types import BOOL, Scalar
from gpu.timing.estimate.compiler import _create_target_machine
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.operations import COMPARISONS, find_operation
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from tests.gpu.simulator.expressions import TYPES, draw_operands
from tests.gpu.simulator.oracle import run_cplusplus
from tools.intrinsic_headers import (
    C_TYPES,
    DEVICE_HEADER,
    HOST_HEADER,
    render_device_header,
    render_host_header,
    split_signature,
)

Array = np.ndarray[Any, Any]

COUNT = 512
"""Operands of each operation: two of three are edges, such as INT_MIN, NaN and denormal numbers."""

ROWS = (*BINARY.values(), *UNARY.values(), *dict.fromkeys(INTRINSICS.values()))
KINDS = {"binary": BINARY, "unary": UNARY, "intrinsic": INTRINSICS}


class Overload(NamedTuple):
    """An operation for one type: the types of its operands and its result."""

    row: Operation
    operands: tuple[Scalar, ...]
    result: Scalar
    c_types: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.row.name}[{', '.join(self.c_types[1:])}]"

    def emit(self, asm: Assembly, values: list[str], target: arithmetic.Target) -> str:
        """Write the operation in LLVM's language."""
        kind = self.operands[0]
        if self.row in BINARY.values():
            if self.row.name in ("<<", ">>"):
                values = [values[0], arithmetic.emit_cast(asm, self.operands[1], kind, values[1])]
            return arithmetic.emit_binary(asm, self.row.name, kind, *values, target=target)
        if self.row in UNARY.values():
            return arithmetic.emit_unary(asm, self.row.name, kind, *values)
        return arithmetic.emit_intrinsic(asm, self.row.name, kind, values, target)


def iterate_overloads() -> Iterator[Overload]:
    for row in ROWS:
        for type in row.types or ("",):
            result, parameters = split_signature(row.signature, type)
            yield Overload(row, tuple(C_TYPES[each] for each in parameters), C_TYPES[result], (result, *parameters))


OVERLOADS = tuple(iterate_overloads())


def draw(overload: Overload, number: int) -> list[Array]:
    """Draw operands; a shift's amount is mostly near the width."""
    generator = np.random.default_rng(number)
    c_types = {np.dtype(each.dtype): each for each in TYPES}
    drawn = [draw_operands(c_types[each.dtype], COUNT, generator) for each in overload.operands]
    if overload.row.name in ("<<", ">>"):
        drawn[1] = np.where(generator.random(COUNT) < 0.8, generator.integers(0, 70, COUNT), drawn[1]).astype(np.int32)
    if overload.row.name == "ldexp":
        drawn[1] = generator.integers(-1200, 1200, COUNT).astype(np.int32)
    return drawn


def compute_numpy(overload: Overload, operands: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        found = overload.row.get_function(overload.operands[0])(*operands)
    return np.asarray(found).astype(overload.result.dtype)


# Rows.


def _forms(row: Operation) -> dict[str, list[Any]]:
    """Return the forms of a row, one for each type of its first operand."""
    kinds = {C_TYPES[split_signature(row.signature, type)[1][0]] for type in row.types or ("",)}
    names = ("numpy", "llvm", "nvptx", "host")
    return {name: [choose_form(getattr(row, name), kind) for kind in kinds] for name in names} | {"ptx": [row.ptx]}


def find_gaps(row: Operation) -> list[str]:
    """Return which forms of a row are neither there nor missing for a stated reason."""
    gaps = []
    for name, forms in _forms(row).items():
        for form in forms:
            stated = isinstance(form, Missing) and name != "numpy" and form.reason.strip()
            if not (stated or callable(form) or (isinstance(form, str) and name != "numpy" and form.strip())):
                gaps.append(name)
    return gaps


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_has_every_form_or_a_reason(row: Operation) -> None:
    assert find_gaps(row) == []


@pytest.mark.parametrize("form", ["numpy", "llvm", "nvptx", "ptx", "host"])
@pytest.mark.parametrize("nothing", [None, "", Missing(" ")])
def test_a_row_without_a_form_is_found(form: str, nothing: Any) -> None:
    row = dataclasses.replace(INTRINSICS["__popc"], **{form: nothing})
    assert find_gaps(row) == [form]


def test_each_ptx_instruction_computes_one_row() -> None:
    named = [row.ptx for row in ROWS if isinstance(row.ptx, str)]
    assert len(named) == len(set(named))
    for name in named:
        opcode, *words = name.split(".")
        if opcode == "setp":
            assert words[0] in COMPARISONS
        else:
            assert find_operation(opcode, tuple(words))


def test_headers_are_those_of_the_rows() -> None:
    assert DEVICE_HEADER.read_text("utf-8") == render_device_header(), "run python -m tools.intrinsic_headers"
    assert HOST_HEADER.read_text("utf-8") == render_host_header(), "run python -m tools.intrinsic_headers"


# Results.

# Of each function of floats, in long double of C++, or for float in double; the others are exact in Python.
_SAME_IN_C = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos"),
    *("atan", "sinh", "cosh", "tanh", "erf", "erfc", "lgamma", "tgamma", "asinh", "acosh", "atanh", "fabs", "floor"),
    *("ceil", "trunc", "round", "rint", "nearbyint", "fmin", "fmax", "copysign", "pow", "fmod", "atan2", "hypot"),
    *("fdim", "fma"),
)
C_REFERENCES = {
    **{name: f"std::{name}({{}})" for name in _SAME_IN_C},
    **{
        f"__{name}f": f"std::{name}({{}})"
        for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "pow")
    },
    **{name: f"x {name} y" for name in ("+", "-", "*", "/")},
    **{f"__f{name}_rn": f"x {op} y" for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))},
    **{f"__d{name}_rn": f"x {op} y" for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    "__fdividef": "x / y",
    "__frcp_rn": "1 / x",
    "__fsqrt_rn": "std::sqrt(x)",
    "__fmaf_rn": "std::fma(x, y, z)",
    "rsqrt": "1 / std::sqrt(x)",
    "__frsqrt_rn": "1 / std::sqrt(x)",
    "exp10": "std::pow((decltype(x))10, x)",
    "__exp10f": "std::pow((decltype(x))10, x)",
    "ldexp": "std::ldexp(x, y)",
    "min": "std::fmin(x, y)",
    "max": "std::fmax(x, y)",
    "abs": "std::fabs(x)",
    "__saturatef": "x > 0 ? (x < 1 ? x : 1) : 0",
    "__lockstep_between": "(float)((float)((float)(1 - (float)z) * (float)x) + (float)((float)z * (float)y))",
}
_ROUNDS_ONCE = frozenset(
    ("+", "-", "*", "/", "sqrt", "fabs", "floor", "ceil", "trunc", "round", "rint", "nearbyint", "fmin", "fmax")
) | frozenset(("copysign", "fmod", "fdim", "fma", "ldexp", "min", "max", "abs", "__saturatef", "__lockstep_between"))
_TOLERANCE, _TOLERANCES = 4, {"erfc": 128, "lgamma": 128}
"""Of other functions, in units in the last place."""


UNCHECKED = {
    *("__lockstep_to_half", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv"),
    *("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1"),
}
"""Functions that the C++ compiler lacks; their forms are compared with each other only."""


def _wrap(number: int, type: Scalar) -> int:
    bits = 8 * type.size
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if type.is_signed and low >> (bits - 1) else low


def _divide(x: int, y: int) -> int:
    return -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _low_24(x: int, signed: bool) -> int:
    low = x & 0xFFFFFF
    return low - (1 << 24) if signed and low >> 23 else low


def _permute(both: bytes, selector: int) -> int:
    choices = [selector >> 4 * place & 15 for place in range(4)]
    return int.from_bytes([255 * (both[c & 7] >> 7) if c & 8 else both[c & 7] for c in choices], "little")


def reference_of_integers(name: str, bits: int, signed: bool, *operands: int) -> int | None:
    """Return what an operation on integers is in Python; None for an operation on other numbers."""
    x, y, z = (*operands, 0, 0)[:3]
    amount = y & ((1 << bits) - 1)
    text = f"{x % (1 << bits):0{bits}b}"
    results = {
        "+": lambda: x + y, "-": lambda: x - y if len(operands) == 2 else -x, "*": lambda: x * y, "&": lambda: x & y,
        "|": lambda: x | y, "^": lambda: x ^ y, "~": lambda: ~x, "!": lambda: int(x == 0), "<": lambda: int(x < y),
        ">": lambda: int(x > y), "<=": lambda: int(x <= y), ">=": lambda: int(x >= y), "==": lambda: int(x == y),
        "!=": lambda: int(x != y), "/": lambda: _divide(x, y), "%": lambda: x - _divide(x, y) * y if y else -1,
        "<<": lambda: x << amount if amount < bits else 0, ">>": lambda: x >> min(amount, bits),
        "min": lambda: min(x, y), "max": lambda: max(x, y), "abs": lambda: abs(x), "llabs": lambda: abs(x),
        "popc": lambda: text.count("1"), "clz": lambda: (text + "1").index("1"),
        "ffs": lambda: text[::-1].find("1") + 1, "brev": lambda: int(text[::-1], 2),
        "byte_perm": lambda: _permute((x | y << 32).to_bytes(8, "little"), z),
        "mul24": lambda: _low_24(x, signed) * _low_24(y, signed), "mulhi": lambda: x * y >> bits,
    }  # fmt: skip
    plain = name.removeprefix("__").removesuffix("ll") if name.startswith("__") else name
    key = plain.removeprefix("u") if plain.startswith("umul") else plain
    return results[key]() if key in results else None


BIT_PATTERNS = frozenset(name for name, row in INTRINSICS.items() if row.is_conversion and "half" not in name)


def compute_reference(overload: Overload, operands: list[Array], c_results: dict[str, Array]) -> Array | None:
    """Return what an operation should compute, in a more precise type if it has one; None if nothing tells."""
    name, kind = overload.row.name, overload.operands[0]
    if name in BIT_PATTERNS:
        return np.frombuffer(operands[0].tobytes(), overload.result.dtype)
    if overload.name in c_results:
        return c_results[overload.name]
    with np.errstate(all="ignore"):
        match name:
            case "<" | ">" | "<=" | ">=" | "==" | "!=" if kind.is_float:
                pairs = zip(*(operand.tolist() for operand in operands), strict=True)
                return np.array([eval(f"x {name} y", {"x": x, "y": y}) for x, y in pairs])
            case "!" if kind.is_float:
                return np.array([x == 0 for x in operands[0].tolist()])
            case "-" if kind.is_float and len(operands) == 1:
                return np.copysign(operands[0], np.where(np.signbit(operands[0]), 1, -1).astype(kind.dtype))
            case "isnan" | "isinf" | "isfinite":
                return np.array([getattr(math, name)(x) for x in operands[0].tolist()])
            case "__lockstep_mantissa" | "__lockstep_exponent":
                parts = [math.frexp(x) if math.isfinite(x) else (x, 0) for x in operands[0].tolist()]
                return np.array(parts)[:, int(name.endswith("exponent"))].astype(overload.result.dtype)
            case "__lockstep_from_half":
                return np.array([struct.unpack("e", struct.pack("H", x))[0] for x in operands[0].tolist()], "f4")
    if kind.is_float:
        return None
    numbers = zip(*(operand.tolist() for operand in operands), strict=True)
    results = [reference_of_integers(name, 8 * kind.size, kind.is_signed, *each) for each in numbers]
    return (
        None
        if None in results
        else np.array([_wrap(int(each or 0), overload.result) for each in results], overload.result.dtype)
    )


def find_differences(found: Array, right: Array, units: int, *, ignores_zero_signs: bool) -> Array:
    """Return where results differ, floats by more than some units in the last place, or in being NaN or infinite."""
    if found.dtype.kind != "f":
        return np.flatnonzero(found != right)
    with np.errstate(all="ignore"):
        rounded = right.astype(found.dtype)
        equal = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        signs = ignores_zero_signs | np.isnan(found) | (found != 0) | (np.signbit(found) == np.signbit(rounded))
        spacing = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1))).astype(right.dtype)
        near = np.abs(found.astype(right.dtype) - right) <= units * spacing
        return np.flatnonzero(~((equal & signs) | (near if units else False)))


def _compile_functions(writers: dict[str, Overload]) -> dict[str, Any]:
    """Compile a loop over arrays for each operation; return the functions' addresses."""
    texts, declarations = [], set()
    for name, overload in writers.items():
        asm = Assembly()
        with asm.loop(COUNT, "i") as (index, _):
            values = []
            for number, type in enumerate(overload.operands):
                address = asm.offset(f"%p{number}", asm.value(f"mul i64 {index}, {type.size}"))
                values.append(asm.value(f"load {memory_type(type)}, ptr {address}"))
            result = overload.emit(asm, values, "llvm")
            if overload.result == BOOL:
                result = asm.value(f"zext i1 {result} to i8")
            address = asm.offset("%out", asm.value(f"mul i64 {index}, {overload.result.size}"))
            asm.emit(f"store {memory_type(overload.result)} {result}, ptr {address}")
        parameters = ", ".join(f"ptr %p{number}" for number in range(len(overload.operands)))
        lines = ["entry:", *asm.entry, "  br label %start", "start:", *map(str, asm.lines), "  ret void"]
        texts.append(f"define void @{name}({parameters}, ptr %out) {{\n" + "\n".join(lines) + "\n}")
        declarations |= asm.declarations
    builder = llvm.JITLibraryBuilder().add_object_img(compile_text("\n".join([*sorted(declarations), *texts])))
    for name in writers:
        builder.export_symbol(name)
    compiler = llvm.create_lljit_compiler()
    library = builder.add_current_process().link(compiler, "forms")
    return {name: (library, compiler, library[name]) for name in writers}


def _call(function: Any, *arrays: Array) -> None:
    arguments = [each.ctypes.data for each in arrays]
    ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * len(arguments))(function[2])(*arguments)


def _has_form(overload: Overload, form: str) -> bool:
    return not isinstance(choose_form(getattr(overload.row, form), overload.operands[0]), Missing)


@pytest.fixture(scope="module")
def operands() -> dict[str, list[Array]]:
    return {overload.name: draw(overload, number) for number, overload in enumerate(OVERLOADS)}


@pytest.fixture(scope="module")
def c_results(operands: dict[str, list[Array]]) -> dict[str, Array]:
    """Results of C++, in a wider type unless the operation rounds once."""
    chosen = [each for each in OVERLOADS if each.operands[0].is_float and each.row.name in C_REFERENCES]
    chosen = [each for each in chosen if len(each.operands) == 2 or each.row.name != "-"]
    results, loops, arrays = {}, [], []
    for overload in chosen:
        own, dtype = ("float", np.float32) if overload.operands[0].size == 4 else ("double", np.float64)
        wide, wide_dtype = ("double", np.float64) if own == "float" else ("long double", np.longdouble)
        if overload.row.name in _ROUNDS_ONCE:
            wide, wide_dtype = own, dtype
        result = np.zeros(COUNT, wide_dtype)
        results[overload.name] = result
        names = "xyz"[: len(overload.operands)]
        loads = "".join(
            f"{wide if each.is_float else 'int'} {name} = (({c_type} *)a[{len(arrays) + place}])[i]; "
            for place, (name, each, c_type) in enumerate(
                zip(names, overload.operands, overload.c_types[1:], strict=True)
            )
        )
        text = C_REFERENCES[overload.row.name].format(", ".join(names))
        arrays += [*operands[overload.name], result]
        loops.append(f"for (int i = 0; i < {COUNT}; ++i) {{ {loads} (({wide} *)a[{len(arrays) - 1}])[i] = {text}; }}")
    source = '#include <cmath>\nextern "C" void all(void **a) {\n' + "\n".join(loops) + "\n}"
    run_cplusplus(source, "all", np.array([each.ctypes.data for each in arrays], np.uint64))
    return results


def _check(overload: Overload, found: Array, operands: list[Array], right: Array, form: str) -> list[str]:
    units = (
        0
        if overload.row.name in _ROUNDS_ONCE or not overload.result.is_float
        else _TOLERANCES.get(overload.row.name, _TOLERANCE)
    )
    ignores_zero_signs = overload.row.name in ("fmin", "fmax", "min", "max")
    wrong = find_differences(found, right, units, ignores_zero_signs=ignores_zero_signs)
    return [
        f"{overload.name}: {form} computes {found[at]!r} of {[each[at] for each in operands]}, but it is {right[at]!r} "
        f"({len(wrong)} of {COUNT})"
        for at in wrong[:3]
    ]


def test_numpy_and_llvm_compute_what_c_and_python_do(operands: Any, c_results: Any) -> None:
    writers = {f"f{number}": each for number, each in enumerate(OVERLOADS) if _has_form(each, "llvm")}
    functions = _compile_functions(writers)
    wrong, unchecked = [], set()
    for overload in OVERLOADS:
        given = operands[overload.name]
        found = compute_numpy(overload, given)
        right = compute_reference(overload, given, c_results)
        if right is None:
            unchecked.add(overload.row.name)
            right = found
        wrong += _check(overload, found, given, right, "NumPy")
        name = next((name for name, each in writers.items() if each is overload), None)
        if name is not None:
            compiled = np.zeros(COUNT, overload.result.dtype)
            _call(functions[name], *given, compiled)
            wrong += _check(overload, compiled, given, right, "LLVM")
    assert unchecked == UNCHECKED
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("x", "y", "z", "expected"),
    [
        (-1e308, -1e10, -math.inf, -math.inf),
        (1e308, 1e10, -1e300, math.inf),
        (1e200, 1e200, -math.inf, -math.inf),
        (math.inf, 1.0, -math.inf, math.nan),
        (math.inf, 0.0, 1.0, math.nan),
    ],
)
def test_fma_with_infinities(x: float, y: float, z: float, expected: float) -> None:
    with np.errstate(all="ignore"):
        found = INTRINSICS["fma"].numpy(*map(np.float64, (x, y, z)))
    np.testing.assert_equal(found, expected)


def test_host_code_computes_what_c_and_python_do(operands: Any, c_results: Any) -> None:
    chosen = [each for each in OVERLOADS if each.row.name in INTRINSICS and _has_form(each, "host")]
    arrays: list[Array] = []
    results, loops = {}, []
    for overload in chosen:
        results[overload.name] = np.zeros(COUNT, overload.result.dtype)
        own = [*operands[overload.name], results[overload.name]]
        values = [f"(({type} *)a[{len(arrays) + at}])[i]" for at, type in enumerate(overload.c_types[1:])]
        target = f"(({overload.c_types[0]} *)a[{len(arrays) + len(values)}])[i]"
        loops.append(f"for (int i = 0; i < {COUNT}; ++i) {target} = {overload.row.name}({', '.join(values)});")
        arrays += own
    headers = HOST_HEADER.parent
    source = f"""#include <math.h>
    #include <string.h>
    #define __noinline__
    #include "{headers / "host_functions.h"}"
    extern "C" void all(void **a) {{ {" ".join(loops)} }}"""
    run_cplusplus(source, "all", np.array([each.ctypes.data for each in arrays], np.uint64))
    wrong = []
    for overload in chosen:
        given = operands[overload.name]
        right = compute_reference(overload, given, c_results)
        right = compute_numpy(overload, given) if right is None else right
        wrong += _check(overload, results[overload.name], given, right, "the host")
    assert not wrong, "\n".join(wrong)


def _is_defined(overload: Overload, operands: list[Array]) -> Array:
    """Return where the NVPTX form is meant to be exact: where C++ defines the result, and near enough to 1."""
    if overload.operands[0].is_float:
        if overload.row.name in _ROUNDS_ONCE - {"fma", "__lockstep_between"} or overload.result == BOOL:
            return np.ones(COUNT, bool)
        return np.all([(each > 0.01) & (each < 30) for each in operands], axis=0)
    if overload.row.name in ("/", "%"):
        lowest = np.iinfo(overload.operands[0].dtype).min
        return (operands[1] != 0) & ~((operands[0] == lowest) & (operands[1] == -1 if lowest else False))
    if overload.row.name in ("<<", ">>"):
        return (operands[1] >= 0) & (operands[1] < 8 * overload.operands[0].size)
    return np.ones(COUNT, bool)


def _write_gpu_kernel(name: str, overload: Overload) -> tuple[str, set[str]]:
    asm = Assembly()
    thread = "@llvm.nvvm.read.ptx.sreg.tid.x"
    asm.declare(f"i32 {thread}()")
    index = asm.value(f"zext i32 {asm.value(f'call i32 {thread}()')} to i64")
    values = []
    for number, type in enumerate(overload.operands):
        address = asm.offset(f"%p{number}", asm.value(f"mul i64 {index}, {type.size}"))
        values.append(asm.value(f"load {memory_type(type)}, ptr {address}"))
    result = overload.emit(asm, values, "nvptx")
    if overload.result == BOOL:
        result = asm.value(f"zext i1 {result} to i8")
    address = asm.offset("%out", asm.value(f"mul i64 {index}, {overload.result.size}"))
    asm.emit(f"store {memory_type(overload.result)} {result}, ptr {address}")
    parameters = ", ".join(f"ptr %p{number}" for number in range(len(overload.operands)))
    body = "\n".join(["entry:", *map(str, asm.lines), "  ret void"])
    return f"define ptx_kernel void @{name}({parameters}, ptr %out) {{\n{body}\n}}", asm.declarations


def test_gpu_code_computes_what_numpy_does(operands: Any) -> None:
    chosen = {f"k{number}": each for number, each in enumerate(OVERLOADS) if _has_form(each, "nvptx")}
    texts, declarations = [], set()
    for name, overload in chosen.items():
        text, declared = _write_gpu_kernel(name, overload)
        texts.append(text)
        declarations |= declared
    machine = _create_target_machine("sm_90")
    module = llvm.parse_assembly("\n".join([*sorted(declarations), *texts]))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    program = parse_ptx(machine.emit_assembly(module))
    wrong = []
    for name, overload in chosen.items():
        given = [each.copy() for each in operands[overload.name]]
        defined = _is_defined(overload, given)
        for each in given:
            each[~defined] = 1
        found = np.zeros(COUNT, overload.result.dtype)
        memory = SampledMemory({at: each.view(np.uint8) for at, each in enumerate((*given, found))})
        addresses = np.array([memory.address(at) for at in range(len(given) + 1)], np.int64)
        with np.errstate(all="ignore"):
            PtxMachine(program.find_kernel(name), {}).run(
                GridShape((1, 1, 1), (COUNT, 1, 1)), addresses.view(np.uint8), range(1), memory
            )
        right = compute_numpy(overload, given)
        units = 0 if overload.row.name in _ROUNDS_ONCE - {"fma", "__lockstep_between"} else 1000
        places = find_differences(found, right, units, ignores_zero_signs=True)
        wrong += [
            f"{overload.name}: the GPU computes {found[at]!r} of {[each[at] for each in given]}, NumPy {right[at]!r} "
            f"({len(places)} of {COUNT})"
            for at in places[:3]
        ]
    assert not wrong, "\n".join(wrong)
