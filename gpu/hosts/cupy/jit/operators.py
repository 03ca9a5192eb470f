"""Python's operators and NumPy's elementwise functions, in CUDA C++ with CuPy's types."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from gpu.base.python_operators import OPERATORS
from gpu.hosts.cupy.jit.values import (
    BOOL,
    Constant,
    Dtype,
    Expression,
    Value,
    cast,
    find_constant_type,
    format_type,
    is_exactly_castable,
    promote,
    to_value,
)

_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LOGICAL = {ast.And: "&&", ast.Or: "||"}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_BITWISE = {ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_SIGNS: dict[type[ast.AST], str] = {ast.Invert: "~", ast.USub: "-", ast.UAdd: "+"}
_CALLS = {ast.FloorDiv: "jit_floor_divide", ast.Mod: "jit_remainder"}
_BINARY_UFUNCS: dict[str, type[ast.AST]] = {
    "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "true_divide": ast.Div,
    "floor_divide": ast.FloorDiv, "remainder": ast.Mod, "mod": ast.Mod, "power": ast.Pow,
    "bitwise_and": ast.BitAnd, "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor, "left_shift": ast.LShift,
    "right_shift": ast.RShift, "equal": ast.Eq, "not_equal": ast.NotEq, "less": ast.Lt, "less_equal": ast.LtE,
    "greater": ast.Gt, "greater_equal": ast.GtE, "logical_and": ast.And, "logical_or": ast.Or,
}  # fmt: skip
_UNARY_UFUNCS: dict[str, type[ast.AST]] = {
    "negative": ast.USub, "positive": ast.UAdd, "invert": ast.Invert, "logical_not": ast.Not,
}  # fmt: skip
_FLOAT_FUNCTIONS = {
    **{name: name for name in "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh".split()},  # noqa: SIM905
    **{name: name for name in "floor ceil trunc rint fabs hypot copysign fmod fmin fmax nextafter".split()},  # noqa: SIM905
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
}
"""Names of NumPy's functions of floating-point numbers, and those of CUDA C++."""
_FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]


def apply_operator(op: type[ast.AST], arguments: Sequence[Expression], mode: str) -> Expression:
    """Return the result of an operator of one or two arguments.

    Raises
    ------
    TypeError
        If an argument is not a number, or the operator does not have its type.
    """
    if all(isinstance(each, Constant) for each in arguments):
        return Constant(OPERATORS[op](*(each.value for each in arguments if isinstance(each, Constant))))
    types = [_find_type(each, mode) for each in arguments]
    if len(arguments) == 1:
        return _apply_unary(op, arguments[0], types[0], mode)
    common = promote(types, mode)
    if op in _LOGICAL:
        left, right = (cast(each, BOOL, mode, "unsafe").code for each in arguments)
        return Value(f"({left} {_LOGICAL[op]} {right})", BOOL)
    if op in _COMPARISONS:
        left, right = (cast(each, common, mode, "unsafe").code for each in arguments)
        return Value(f"({left} {_COMPARISONS[op]} {right})", BOOL)
    if common.kind == "b" and op not in (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Add, ast.Mult, ast.Div):
        common = np.dtype(np.int8)
    return _apply_arithmetic(op, arguments, common, mode)


def _apply_arithmetic(op: type[ast.AST], arguments: Sequence[Expression], common: Dtype, mode: str) -> Value:
    if op is ast.Div and common.kind in "biu":
        common = np.dtype(np.float64)
    left, right = (cast(each, common, mode, "unsafe").code for each in arguments)
    name = format_type(common)
    if op in _ARITHMETIC or op is ast.Div:
        return Value(f"({name})({left} {_ARITHMETIC.get(op, '/')} {right})", common)
    if op in _BITWISE and common.kind in "biu":
        return Value(f"({name})({left} {_BITWISE[op]} {right})", common)
    if op in _CALLS and common.kind != "c":
        wide = "float" if common.name == "float16" else name
        return Value(f"({name}){_CALLS[op]}(({wide}){left}, ({wide}){right})", common)
    if op is ast.Pow:
        function = "jit_power" if common.kind in "biu" else "pow"
        return Value(f"({name}){function}({left}, {right})", common)
    raise TypeError(f"{op.__name__} does not support the type {common}")


def _apply_unary(op: type[ast.AST], argument: Expression, dtype: Dtype, mode: str) -> Value:
    code = to_value(argument, mode).code
    if op is ast.Not:
        return Value(f"(!{cast(argument, BOOL, mode, 'unsafe').code})", BOOL)
    if op is ast.Invert and dtype.kind not in "biu":
        raise TypeError(f"~ does not support the type {dtype}")
    symbol = "!" if dtype.kind == "b" and op is ast.Invert else _SIGNS[op]
    return Value(f"({format_type(dtype)})({symbol}{code})", dtype)


def _find_type(expression: Expression, mode: str) -> Dtype:
    if isinstance(expression, Constant):
        return find_constant_type(expression.value, mode)
    return to_value(expression, mode).dtype


def apply_ufunc(name: str, arguments: Sequence[Expression], mode: str) -> Value:
    """Return the result of a function of NumPy by its name, such as "sqrt".

    Raises
    ------
    TypeError
        If the function or the types of its arguments are not supported.
    """
    table = _UNARY_UFUNCS if len(arguments) == 1 else _BINARY_UFUNCS
    if name in table:
        return to_value(apply_operator(table[name], arguments, mode), mode)
    types = [_find_type(each, mode) for each in arguments]
    if name in ("minimum", "maximum"):
        common = promote(types, mode)
        left, right = (cast(each, common, mode, "unsafe").code for each in arguments)
        return Value(f"jit_{name}({left}, {right})", common)
    if name in ("absolute", "abs", "fabs") and types[0].kind in "iuf":
        return Value(f"jit_absolute({to_value(arguments[0], mode).code})", types[0])
    if name in ("isnan", "isinf", "isfinite") and types[0].kind in "biuf":
        return Value(f"{name}((double)({to_value(arguments[0], mode).code}))", BOOL)
    if name not in _FLOAT_FUNCTIONS:
        raise TypeError(f"Lockstep's cupyx.jit does not have the function {name}")
    common = _find_float_type(types, mode)
    codes = ", ".join(cast(each, common, mode, "unsafe").code for each in arguments)
    if common.name == "float16":
        codes = ", ".join(f"(float)({cast(each, common, mode, 'unsafe').code})" for each in arguments)
    return Value(f"({format_type(common)}){_FLOAT_FUNCTIONS[name]}({codes})", common)


def _find_float_type(types: list[Dtype], mode: str) -> Dtype:
    """Return the first floating-point type to which CuPy converts all arguments."""
    for candidate in _FLOATS:
        if all(
            is_exactly_castable(each, candidate) if mode == "cuda" else np.can_cast(each, candidate) for each in types
        ):
            return candidate
    raise TypeError(f"the function does not support {', '.join(map(str, types))}")
