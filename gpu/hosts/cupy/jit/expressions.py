"""Translation of Python's expressions to CUDA C++."""

from __future__ import annotations

import ast
import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gpu.hosts.cupy.forwarding import ForwardedFunction
from gpu.hosts.cupy.jit.functions import BUILTINS, CASTS, JitFunction
from gpu.hosts.cupy.jit.operators import apply_operator, apply_ufunc
from gpu.hosts.cupy.jit.values import (
    BOOL,
    INT64,
    ArrayType,
    Constant,
    Expression,
    PointerType,
    TupleValue,
    Value,
    cast,
    format_type,
    to_value,
)


@runtime_checkable
class CallableKernel(Protocol):
    """A translated function that others call."""

    function: Callable[..., Any]
    is_device: bool


class ExpressionTranslator(ABC):
    """The variables of a function, and the translation of its expressions.

    Parameters
    ----------
    mode : {"cuda", "numpy"}
    constants : mapping
        The objects of Python that the function uses, by name.
    """

    def __init__(self, mode: str, constants: Mapping[str, Any]) -> None:
        self.mode = mode
        self.constants = dict(constants)
        self.variables: dict[str, Expression] = {}
        self.declarations: list[str] = []
        self._names = 0

    @abstractmethod
    def call_kernel(self, kernel: CallableKernel, arguments: Sequence[Expression]) -> Value:
        """Return the call of another translated function."""

    def count_names(self) -> int:
        """Return a new number, for a name."""
        self._names += 1
        return self._names

    def declare(self, declaration: str) -> str:
        """Add a declaration, with `{}` in place of a new name; return the name."""
        name = f"_local_{self.count_names()}"
        self.declarations.append(declaration.format(name))
        return name

    def translate_expression(self, node: ast.expr) -> Any:
        """Return an expression's value.

        Raises
        ------
        TypeError, ValueError, NameError, AttributeError, IndexError, NotImplementedError
            If the expression is not supported.
        """
        value = self._translate(node)
        if isinstance(value, Constant) and isinstance(value.value, Value | TupleValue):
            return value.value
        return value

    def _translate(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return Constant(node.value)
            case ast.Name():
                return self._find_name(node.id)
            case ast.Tuple():
                return self._make_tuple([self.translate_expression(each) for each in node.elts])
            case ast.Attribute():
                return self._get_attribute(self.translate_expression(node.value), node.attr)
            case ast.Subscript():
                return self.index(self.translate_expression(node.value), self.translate_expression(node.slice))
            case ast.BinOp():
                operands = self.translate_expression(node.left), self.translate_expression(node.right)
                return apply_operator(type(node.op), operands, self.mode)
            case ast.UnaryOp():
                return apply_operator(type(node.op), (self.translate_expression(node.operand),), self.mode)
            case ast.BoolOp():
                values = [self.translate_expression(each) for each in node.values]
                return functools.reduce(lambda x, y: apply_operator(type(node.op), (x, y), self.mode), values)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._choose(node)
            case ast.Call():
                return self._call(node)
        raise NotImplementedError(f"cupyx.jit does not support the expression {ast.unparse(node)}.")

    def _find_name(self, name: str) -> Expression:
        if name in self.variables:
            return self.variables[name]
        if name in self.constants:
            return Constant(self.constants[name])
        raise NameError(f"Unbound name: {name}")

    def _make_tuple(self, items: Sequence[Expression]) -> Expression:
        if all(isinstance(each, Constant) for each in items):
            return Constant(tuple(each.value for each in items if isinstance(each, Constant)))
        return TupleValue(tuple(items))

    def _get_attribute(self, owner: Expression, name: str) -> Expression:
        if isinstance(owner, Constant):
            return Constant(getattr(owner.value, name))
        if isinstance(owner, Value) and isinstance(owner.type, ArrayType):
            axes = range(owner.type.ndim)
            if name in ("shape", "strides"):
                return TupleValue(tuple(Value(f"{owner.code}.{name}()[{axis}]", INT64) for axis in axes))
            if name == "size":
                return Value(f"{owner.code}.size()", INT64)
            if name == "ndim":
                return Constant(owner.type.ndim)
            if name == "dtype":
                return Constant(owner.type.dtype)
        if isinstance(owner, Value) and name in ("real", "imag") and owner.dtype.kind == "c":
            part = np.dtype(np.float32 if owner.dtype.itemsize == 8 else np.float64)
            return Value(f"({owner.code}).{name}()", part)
        raise AttributeError(f"Unknown attribute: {name}")

    def _compare(self, node: ast.Compare) -> Expression:
        operands = [self.translate_expression(each) for each in (node.left, *node.comparators)]
        results = [
            apply_operator(type(op), pair, self.mode)
            for op, pair in zip(node.ops, itertools.pairwise(operands), strict=True)
        ]
        return functools.reduce(lambda x, y: apply_operator(ast.And, (x, y), self.mode), results)

    def _choose(self, node: ast.IfExp) -> Expression:
        condition = self.translate_expression(node.test)
        first: Expression = self.translate_expression(node.body)
        second: Expression = self.translate_expression(node.orelse)
        if isinstance(condition, Constant):
            return first if condition.value else second
        left, right = to_value(first, self.mode), to_value(second, self.mode)
        if isinstance(first, Constant) and not isinstance(first.value, np.generic):
            left = cast(first, right.dtype, self.mode)
        elif isinstance(second, Constant) and not isinstance(second.value, np.generic):
            right = cast(second, left.dtype, self.mode)
        if left.type != right.type:
            raise TypeError(f"Type mismatch in conditional expression.: {left.type} != {right.type}")
        return Value(f"({cast(condition, BOOL, self.mode, 'unsafe').code} ? {left.code} : {right.code})", left.type)

    def _call(self, node: ast.Call) -> Any:
        function = self.translate_expression(node.func)
        if not isinstance(function, Constant):
            raise TypeError(f"`{ast.unparse(node.func)}` is not callable.")
        arguments = [self.translate_expression(each) for each in node.args]
        options = {str(each.arg): self.translate_expression(each.value) for each in node.keywords}
        called = function.value
        if called.__hash__ is not None:
            called = BUILTINS.get(called, called)
        if isinstance(called, JitFunction):
            return called.translate(self, *arguments, **options)
        if isinstance(called, CallableKernel):
            return self.call_kernel(called, arguments)
        if isinstance(called, type) and (called in CASTS or issubclass(called, np.generic)) and len(arguments) == 1:
            return self._convert(arguments[0], CASTS.get(called) or np.dtype(called))
        if all(isinstance(each, Constant) for each in (*arguments, *options.values())):
            values = [each.value for each in arguments]
            return Constant(called(*values, **{key: each.value for key, each in options.items()}))
        if isinstance(called, ForwardedFunction | np.ufunc):
            if options:
                raise TypeError(f"{next(iter(options))!r} is an invalid keyword to ufunc {called.__name__}")
            return apply_ufunc(called.__name__, arguments, self.mode)
        raise TypeError(f"Invalid function call '{ast.unparse(node.func)}'.")

    def _convert(self, argument: Expression, dtype: np.dtype[Any]) -> Expression:
        if isinstance(argument, Constant):
            return Constant(dtype.type(argument.value))
        return cast(argument, dtype, self.mode, "unsafe")

    def index(self, array: Expression, index: Expression) -> Expression:
        """Return an element or a part of an array, or an item of a tuple.

        Raises
        ------
        TypeError
            If the object cannot be indexed so.
        IndexError
            If there are more indices than axes.
        """
        if isinstance(array, Constant | TupleValue):
            items = array.value if isinstance(array, Constant) else array.items
            if not isinstance(index, Constant):
                raise TypeError(f"A {type(items).__name__} of Python takes constants as indices only.")
            found = items[index.value]
            return Constant(found) if isinstance(array, Constant) else found
        if isinstance(array.type, PointerType):
            return Value(f"{array.code}[{self._get_index(index)}]", array.type.dtype)
        if not isinstance(array.type, ArrayType):
            raise TypeError(f"`{array.code}` is not subscriptable.")
        return self._index_array(array.code, array.type, self._list_indices(index))

    def _list_indices(self, index: Expression) -> list[Expression]:
        if isinstance(index, TupleValue):
            return list(index.items)
        if isinstance(index, Constant) and isinstance(index.value, tuple):
            return [Constant(each) for each in index.value]
        return [index]

    def _index_array(self, code: str, type_: ArrayType, indices: Sequence[Expression]) -> Value:
        if len(indices) > type_.ndim:
            raise IndexError(f"The number of indices is beyond array dim: {type_.ndim}")
        codes = [self._get_index(each) for each in indices]
        if len(indices) == type_.ndim:
            if type_.ndim == 1:
                return Value(f"{code}[{codes[0]}]", type_.dtype)
            element = f"jit_element({', '.join((code, *codes))})" if codes else f"{code}[0]"
            return Value(element, type_.dtype)
        for each in codes:
            code = f"jit_row({code}, {each})"
        return Value(code, ArrayType(type_.dtype, type_.ndim - len(codes), type_.contiguous))

    def _get_index(self, index: Expression) -> str:
        value = to_value(index, self.mode)
        if value.dtype.kind not in "iu":
            raise TypeError(f"Array indices must be integers, not {format_type(value.dtype)}.")
        return value.code
