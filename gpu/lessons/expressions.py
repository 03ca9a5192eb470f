"""Expressions in lesson files, such as "ceil(n / 64)" or "cumsum(x)": arithmetic on numbers and arrays only.

Lesson files may be untrusted, so they are not passed to Python's `eval`: everything not listed here is refused.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.base.python_operators import OPERATORS
from gpu.files.file_access import format_path

Array = npt.NDArray[Any]
Value = Any
"""A Python number, a NumPy array or scalar, or a tuple of these."""

MAX_ELEMENTS = 1 << 22
"""Elements of the largest array that an expression may create."""

_MAX_LENGTH = 500


class ExpressionError(InputError):
    """Error in an expression of a lesson.

    Parameters
    ----------
    expression : str
        The complete expression.
    reason : str
        What is wrong with it.
    """

    def __init__(self, expression: str, reason: str) -> None:
        super().__init__(reason)
        self.expression = expression


_BINARY = {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.RShift}
_COMPARISONS = {ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq}
_UNARY = {ast.USub, ast.Invert}


def _arange(count: Value, *further_arguments: Value) -> Array:
    return np.arange(*(_check_element_count(argument) for argument in (count, *further_arguments)))


def _zeros(*extents: Value) -> Array:
    _check_element_count(math.prod(int(extent) for extent in extents))
    return np.zeros([int(extent) for extent in extents])


def _split_rows(values: Value, size: Value) -> Array:
    """Split values into rows of the given length; pad the last with zeros."""
    flat, width = np.asarray(values).reshape(-1), int(size)
    rows = -(-flat.size // width)
    padded = np.zeros(_check_element_count(rows * width), flat.dtype)
    padded[: flat.size] = flat
    return padded.reshape(rows, width)


def _correlate(values: Value, weights: Value) -> Array:
    """Return the weighted sum of each element's neighborhood, centered, with zeros outside."""
    value_array, weight_array = np.asarray(values, np.float64), np.asarray(weights, np.float64)
    _check_element_count(value_array.size * weight_array.size)
    padded = np.pad(value_array, [(size // 2, size // 2) for size in weight_array.shape])
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight_array.shape)
    result: Array = np.tensordot(windows, weight_array, axes=weight_array.ndim)
    return result


def _bincount(values: Value, bins: Value) -> Array:
    numbers = np.asarray(values).reshape(-1).astype(np.int64)
    return np.bincount(
        numbers, minlength=max(_check_element_count(bins), _check_element_count(numbers.max(initial=-1) + 1))
    )


def _join(*parts: Value) -> Array:
    _check_element_count(sum(np.size(part) for part in parts))
    return np.concatenate([np.atleast_1d(part) for part in parts])


def _where(*values: Value) -> Value:
    return np.where(*_check_broadcast(*values))


def _matmul(left: Value, right: Value) -> Value:
    _check_element_count(math.prod(np.shape(left)[:-1]) * math.prod(np.shape(right)[1:]))
    return left @ right


def _exclusive_sum(values: Value) -> Array:
    result: Array = np.cumsum(values) - np.asarray(values)
    return result


def _reshape(values: Value, *extents: Value) -> Array:
    return np.asarray(values).reshape([int(extent) for extent in extents])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "all": np.all,
    "any": np.any,
    "arange": _arange,
    "bincount": _bincount,
    "ceil": math.ceil,
    "correlate": _correlate,
    "count": np.count_nonzero,
    "cummax": np.maximum.accumulate,
    "cumsum": np.cumsum,
    "exclusive": _exclusive_sum,
    "exp": np.exp,
    "flat": lambda values: np.asarray(values).reshape(-1),
    "flip": np.flip,
    "float": lambda values: np.asarray(values, np.float64),
    "int": lambda values: np.asarray(values).astype(np.int64),
    "join": _join,
    "log2": lambda value: float(np.log2(max(float(value), 1.0))),
    "max": lambda *values: max(values) if len(values) > 1 else np.max(values[0]),
    "maxima": lambda values: np.max(values, axis=-1, keepdims=True),
    "min": lambda *values: min(values) if len(values) > 1 else np.min(values[0]),
    "reshape": _reshape,
    "roll": np.roll,
    "rows": _split_rows,
    "sort": np.sort,
    "sqrt": np.sqrt,
    "sum": np.sum,
    "sums": lambda values: np.sum(values, axis=-1, keepdims=True),
    "transpose": np.transpose,
    "unique": np.unique,
    "where": _where,
    "zeros": _zeros,
}
"""Functions available to expressions. `rows(x, k)` splits x into rows of k; `maxima` and `sums` are row-wise."""


def evaluate(text: str | int | float, names: Mapping[str, Value]) -> Value:
    """Evaluate an expression.

    Parameters
    ----------
    text : str, int or float
        Such as "ceil(n / 64)"; a number is returned unchanged.
    names : mapping
        Values of the expression's names.

    Raises
    ------
    ExpressionError
        If it is not an expression, or uses something that is not allowed.
    """
    if not isinstance(text, str):
        return text
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(text, f"An expression can have at most {_MAX_LENGTH} characters, not {len(text)}.")
    tree = _parse(text)
    try:
        with np.errstate(all="ignore"):
            return _evaluate_node(tree, names, text)
    except InputError as error:
        raise ExpressionError(text, error.message) from None
    except (ArithmeticError, ValueError, TypeError, IndexError, MemoryError) as error:
        raise ExpressionError(text, f"{text!r} cannot be computed: {format_path(str(error))}.") from None


def evaluate_number(text: str | int | float, names: Mapping[str, Value]) -> float:
    """Evaluate an expression to a finite number; raise ExpressionError for any other value."""
    value = evaluate(text, names)
    try:
        number = math.nan if np.ndim(value) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ExpressionError(str(text), f"{text!r} must be a finite number, not {format_path(str(value))}.")
    return number


def evaluate_integer(text: str | int | float, names: Mapping[str, Value]) -> int:
    """Evaluate an expression to an integer; raise ExpressionError for any other value."""
    number = evaluate_number(text, names)
    if not number.is_integer():
        raise ExpressionError(str(text), f"{text!r} must be an integer, not {number}.")
    return int(number)


@lru_cache(maxsize=1024)  # a submission is judged on many inputs, by the same expressions
def _parse(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings(action="ignore"):  # Python's syntax warnings
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(text, f"{text!r} is not a valid expression.") from None


def _evaluate_node(node: ast.expr, names: Mapping[str, Value], text: str) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise InputError(f"{text!r} has the unknown name {name!r}; known names: {known}.")
            return names[name]
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return _matmul(_evaluate_node(left, names, text), _evaluate_node(right, names, text))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _check_broadcast(_evaluate_node(left, names, text), _evaluate_node(right, names, text))
            return np.float64(base) ** np.float64(exponent)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return OPERATORS[type(op)](
                *_check_broadcast(_evaluate_node(left, names, text), _evaluate_node(right, names, text))
            )
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return OPERATORS[type(sign)](_evaluate_node(operand, names, text))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in _COMPARISONS:
            return OPERATORS[type(comparison)](
                *_check_broadcast(_evaluate_node(left, names, text), _evaluate_node(right, names, text))
            )
        case ast.IfExp(test=test, body=body, orelse=other):
            return _evaluate_node(body if _evaluate_node(test, names, text) else other, names, text)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_evaluate_node(argument, names, text) for argument in arguments))
        case ast.Subscript(value=values, slice=index):
            return np.asarray(_evaluate_node(values, names, text))[_evaluate_index(index, names, text)]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return _build_array([_evaluate_node(element, names, text) for element in elements])
    raise InputError(f"{text!r} has {ast.unparse(node)!r}, which lesson expressions do not support.")


def _evaluate_index(node: ast.expr, names: Mapping[str, Value], text: str) -> Any:
    if isinstance(node, ast.Slice):
        bounds = (node.lower, node.upper, node.step)
        return slice(*(None if bound is None else int(_evaluate_node(bound, names, text)) for bound in bounds))
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate_index(each, names, text) for each in node.elts)
    return _evaluate_node(node, names, text)


def _build_array(values: list[Value]) -> Array:
    _check_element_count(sum(np.size(value) for value in values))
    return np.array(values)


def _check_broadcast(*values: Value) -> tuple[Value, ...]:
    """Return values for an element-wise operation if its result is not too large."""
    _check_element_count(math.prod(np.broadcast_shapes(*(np.shape(value) for value in values))))
    return values


def _check_element_count(count: Value) -> int:
    if int(count) > MAX_ELEMENTS:
        raise InputError(f"An expression may create at most {MAX_ELEMENTS} elements, not {int(count)}.")
    return int(count)
