"""C's operators and CUDA's functions as LLVM instructions, with the same results as `gpu.simulator.operations`."""

from __future__ import annotations

import numpy as np

from gpu.simulator.compiled.assembly import Assembly, UnsupportedKernel, value_type
from gpu.simulator.types import BOOL, INT64, Pointer, Scalar

_INTEGER = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_FLOAT = {"+": "fadd contract", "-": "fsub contract", "*": "fmul contract", "/": "fdiv"}
_COMPARISONS = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq", "!=": "ne"}

_LLVM_FLOAT_FUNCTIONS = {
    **{name: name for name in ("sqrt", "sin", "cos", "exp", "exp2", "log", "log2", "log10", "pow", "fabs", "floor")},
    **{name: name for name in ("ceil", "trunc", "round", "rint", "nearbyint", "copysign", "fma")},
    "fmin": "minnum",
    "fmax": "maxnum",
}
_C_FUNCTIONS = {
    "tan": 1,
    "asin": 1,
    "acos": 1,
    "atan": 1,
    "sinh": 1,
    "cosh": 1,
    "tanh": 1,
    "cbrt": 1,
    "expm1": 1,
    "log1p": 1,
    "erf": 1,
    "erfc": 1,
    "asinh": 1,
    "acosh": 1,
    "atanh": 1,
    "lgamma": 1,
    "tgamma": 1,
    "fmod": 2,
    "atan2": 2,
    "hypot": 2,
}
_FAST_MATH_FUNCTIONS = {
    **{f"__{name}f": f"{name}f" for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "pow")},
    "__fsqrt_rn": "sqrtf",
    "__frsqrt_rn": "rsqrtf",
    "__fmaf_rn": "fmaf",
}
_ROUNDED_OPERATIONS = {
    "__fadd_rn": "fadd",
    "__fsub_rn": "fsub",
    "__fmul_rn": "fmul",
    "__fdiv_rn": "fdiv",
    "__fdividef": "fdiv",
}


def format_literal(type: Scalar, value: np.generic) -> str:
    """Return a constant in LLVM syntax."""
    if type == BOOL:
        return "true" if value else "false"
    if type.is_float:
        return f"0x{np.float64(value).view(np.uint64):016X}"
    return str(int(value))


def emit_binary(asm: Assembly, op: str, type: Scalar, left: str, right: str, *, flags: str = "") -> str:
    """Emit a binary operation; return its result, which is one bit for a comparison.

    Parameters
    ----------
    asm : Assembly
    op : str
        A C++ operator, such as `+` or `<<`.
    type : Scalar
        The type of both operands.
    left, right : str
        The operands, as LLVM values.
    flags : str
        LLVM flags of integer operations, such as `nsw `; "" for none.
    """
    name = value_type(type)
    if op in _COMPARISONS:
        return asm.value(f"{_comparison(op, type)} {name} {left}, {right}", "c")
    if type.is_float:
        return asm.value(f"{_FLOAT[op]} {name} {left}, {right}")
    if op in _INTEGER:
        return asm.value(f"{_INTEGER[op]} {flags if op in '+-*' else ''}{name} {left}, {right}")
    if op in ("<<", ">>"):
        return _emit_shift(asm, op, type, left, right)
    return _emit_division(asm, op, type, left, right)


def _comparison(op: str, type: Scalar) -> str:
    kind = _COMPARISONS[op]
    if type.is_float:
        return f"fcmp {'une' if kind == 'ne' else 'o' + kind}"
    return f"icmp {kind if kind in ('eq', 'ne') else ('s' if type.is_signed else 'u') + kind}"


def _emit_shift(asm: Assembly, op: str, type: Scalar, left: str, right: str) -> str:
    """Shift; a shift by the width or more results in 0, or in the sign for signed right shifts."""
    name, bits = value_type(type), 8 * type.size
    kind = "shl" if op == "<<" else "ashr" if type.is_signed else "lshr"
    if right.isdigit() and int(right) < bits:
        return asm.value(f"{kind} {name} {left}, {right}")
    inside = asm.value(f"icmp ult {name} {right}, {bits}")
    amount = asm.value(f"select i1 {inside}, {name} {right}, {name} 0")
    shifted = asm.value(f"{kind} {name} {left}, {amount}")
    rest = asm.value(f"ashr {name} {left}, {bits - 1}") if kind == "ashr" else "0"
    return asm.value(f"select i1 {inside}, {name} {shifted}, {name} {rest}")


def _emit_division(asm: Assembly, op: str, type: Scalar, left: str, right: str) -> str:
    """Divide without trapping: division by 0 sets all bits, and the smallest number divided by -1 wraps."""
    name, sign = value_type(type), "s" if type.is_signed else "u"
    kind = f"{sign}{'div' if op == '/' else 'rem'}"
    if right.isdigit() and int(right):
        return asm.value(f"{kind} {name} {left}, {right}")
    zero = asm.value(f"icmp eq {name} {right}, 0")
    safe = asm.value(f"select i1 {zero}, {name} 1, {name} {right}")
    if type.is_signed:
        minus = asm.value(f"icmp eq {name} {safe}, -1")
        safe = asm.value(f"select i1 {minus}, {name} 1, {name} {safe}")
        plain = asm.value(f"{kind} {name} {left}, {safe}")
        negated = asm.value(f"sub {name} 0, {left}") if op == "/" else "0"
        result = asm.value(f"select i1 {minus}, {name} {negated}, {name} {plain}")
    else:
        result = asm.value(f"{kind} {name} {left}, {safe}")
    return asm.value(f"select i1 {zero}, {name} -1, {name} {result}")


def emit_unary(asm: Assembly, op: str, type: Scalar, operand: str) -> str:
    """Return `-`, `~` or `!` of an operand of a type."""
    name = value_type(type)
    if op == "-":
        return asm.value(f"fneg {name} {operand}" if type.is_float else f"sub {name} 0, {operand}")
    if op == "~":
        return asm.value(f"xor {name} {operand}, {'true' if type == BOOL else -1}")
    return emit_zero_test(asm, type, operand)


def emit_zero_test(asm: Assembly, type: Scalar, operand: str) -> str:
    """Return whether a value is zero."""
    if type == BOOL:
        return asm.value(f"xor i1 {operand}, true")
    if type.is_float:
        return asm.value(f"fcmp oeq {value_type(type)} {operand}, 0.0")
    return asm.value(f"icmp eq {value_type(type)} {operand}, 0")


def emit_cast(asm: Assembly, source: Scalar, target: Scalar, operand: str) -> str:
    """Convert between scalars."""
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


def emit_intrinsic(asm: Assembly, name: str, type: Scalar, kinds: list[Scalar | Pointer], values: list[str]) -> str:
    """Emit a CUDA function, such as `__saturatef`; return its result.

    Parameters
    ----------
    asm : Assembly
    name : str
        The function's name.
    type : Scalar
        The type of the result.
    kinds : list of Scalar or Pointer
        The types of the arguments.
    values : list of str
        The arguments, as LLVM values.
    """
    kind = kinds[0]
    assert isinstance(kind, Scalar)
    name = _FAST_MATH_FUNCTIONS.get(name, name)
    if name == "__frcp_rn":
        return asm.value(f"fdiv float 1.0, {values[0]}")
    if name == "__saturatef":
        return _emit_llvm_call(asm, "minnum", kind, [_emit_llvm_call(asm, "maxnum", kind, [values[0], "0.0"]), "1.0"])
    if name in ("fdim", "fdimf"):
        larger = asm.value(f"fcmp ogt {value_type(kind)} {values[0]}, {values[1]}")
        difference = asm.value(f"fsub {value_type(kind)} {values[0]}, {values[1]}")
        return asm.value(f"select i1 {larger}, {value_type(kind)} {difference}, {value_type(kind)} 0.0")
    if name == "__lockstep_from_half":
        return asm.value(f"fpext half {asm.value(f'bitcast i16 {values[0]} to half')} to float")
    if name == "__lockstep_to_half":
        return asm.value(f"bitcast half {asm.value(f'fptrunc float {values[0]} to half')} to i16")
    if name in _ROUNDED_OPERATIONS:
        return asm.value(f"{_ROUNDED_OPERATIONS[name]} float {values[0]}, {values[1]}")
    if name in ("min", "max", "abs", "llabs") and not kind.is_float:
        sign = "s" if kind.is_signed else "u"
        function = "abs" if "abs" in name else f"{sign}{name}"
        return _emit_llvm_call(asm, function, kind, values + (["i1 false"] if function == "abs" else []))
    base = name[:-1] if name.endswith("f") and name not in ("erf",) else name
    base = {"min": "fmin", "max": "fmax", "abs": "fabs"}.get(base, base)
    if kind.is_float and base == "rsqrt":
        root = _emit_llvm_call(asm, "sqrt", kind, values)
        return asm.value(f"fdiv {value_type(kind)} {format_literal(kind, np.float64(1))}, {root}")
    if kind.is_float and base in _LLVM_FLOAT_FUNCTIONS:
        return _emit_llvm_call(asm, _LLVM_FLOAT_FUNCTIONS[base], kind, values)
    if kind.is_float and base in _C_FUNCTIONS:
        llvm_type, suffix = value_type(kind), "f" if kind.size == 4 else ""
        asm.declare(
            f"{llvm_type} @{base}{suffix}({', '.join([llvm_type] * len(values))}) nounwind willreturn memory(none)"
        )
        arguments = ", ".join(f"{llvm_type} {value}" for value in values)
        return asm.value(f"call {llvm_type} @{base}{suffix}({arguments})")
    return _emit_bit_function(asm, name, type, kind, values)


def _emit_llvm_call(asm: Assembly, name: str, kind: Scalar, values: list[str]) -> str:
    llvm_type = value_type(kind)
    suffix = f"f{8 * kind.size}" if kind.is_float else llvm_type
    typed = [value if " " in value else f"{llvm_type} {value}" for value in values]
    asm.declare(f"{llvm_type} @llvm.{name}.{suffix}({', '.join(each.split()[0] for each in typed)})")
    return asm.value(f"call {llvm_type} @llvm.{name}.{suffix}({', '.join(typed)})")


def _emit_bit_function(asm: Assembly, name: str, type: Scalar, kind: Scalar, values: list[str]) -> str:
    """Return the result of a function on bits."""
    llvm_type, unsigned = value_type(kind), Scalar(f"uint{8 * kind.size}")
    if name in ("__popc", "__popcll"):
        return emit_cast(asm, unsigned, type, _emit_llvm_call(asm, "ctpop", kind, values))
    if name in ("__clz", "__clzll"):
        return emit_cast(asm, unsigned, type, _emit_llvm_call(asm, "ctlz", kind, [*values, "i1 false"]))
    if name in ("__ffs", "__ffsll"):
        first = asm.value(f"add {llvm_type} {_emit_llvm_call(asm, 'cttz', kind, [*values, 'i1 false'])}, 1")
        none = asm.value(f"icmp eq {llvm_type} {values[0]}, 0")
        return emit_cast(asm, unsigned, type, asm.value(f"select i1 {none}, {llvm_type} 0, {llvm_type} {first}"))
    if name == "__brev":
        return _emit_llvm_call(asm, "bitreverse", kind, values)
    if name in ("__mul24", "__umul24"):
        return asm.value(f"mul i32 {', '.join(_emit_low_24(asm, name, value) for value in values)}")
    if name in ("__mulhi", "__umulhi"):
        extend = "sext" if name == "__mulhi" else "zext"
        wide = [asm.value(f"{extend} i32 {value} to i64") for value in values]
        high = asm.value(f"lshr i64 {asm.value(f'mul i64 {wide[0]}, {wide[1]}')}, 32")
        return asm.value(f"trunc i64 {high} to i32")
    if name in ("__float_as_int", "__float_as_uint", "__int_as_float", "__uint_as_float") or name.startswith(
        ("__double_as", "__longlong_as")
    ):
        return asm.value(f"bitcast {llvm_type} {values[0]} to {value_type(type)}")
    if name in ("isnan", "isinf", "isfinite") and kind.is_float:
        if name == "isnan":
            result = asm.value(f"fcmp uno {llvm_type} {values[0]}, 0.0")
        else:
            infinity = "0x7FF0000000000000"
            comparison = "oeq" if name == "isinf" else "one"
            result = asm.value(
                f"fcmp {comparison} {llvm_type} {_emit_llvm_call(asm, 'fabs', kind, values)}, {infinity}"
            )
        return emit_cast(asm, BOOL, type, result)
    raise UnsupportedKernel(f"the function {name}")


def _emit_low_24(asm: Assembly, name: str, value: str) -> str:
    if name == "__umul24":
        return asm.value(f"and i32 {value}, {0xFFFFFF}")
    return asm.value(f"ashr i32 {asm.value(f'shl i32 {value}, 8')}, 8")


def emit_pointer_conversion(asm: Assembly, operand: str, target: Scalar) -> str:
    """Convert a pointer to an integer."""
    return emit_cast(asm, INT64, target, asm.value(f"ptrtoint ptr {operand} to i64"))
