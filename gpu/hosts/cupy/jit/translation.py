"""Translation of a Python function to a function of CUDA C++."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from gpu.hosts.cupy.jit.expressions import CallableKernel, ExpressionTranslator
from gpu.hosts.cupy.jit.functions import LoopRange
from gpu.hosts.cupy.jit.operators import apply_operator
from gpu.hosts.cupy.jit.values import (
    BOOL,
    Constant,
    Expression,
    TupleValue,
    Value,
    ValueType,
    cast,
    format_type,
    to_value,
)

_MAX_FUNCTIONS = 100
_UNSUPPORTED = {
    ast.FunctionDef: "nested functions",
    ast.ClassDef: "classes",
    ast.Delete: "`del`",
    ast.With: "`with`",
    ast.Raise: "`raise`",
    ast.Try: "`try`",
    ast.Import: "imports",
    ast.ImportFrom: "imports",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
}


@dataclass
class TranslatedSource:
    """The functions of a source.

    Parameters
    ----------
    mode : {"cuda", "numpy"}
        How types are combined.
    functions : dict
        Name and type of the result, by function and types of the arguments; None while it is being translated.
    """

    mode: str
    codes: list[str] = field(default_factory=list)
    functions: dict[Any, tuple[str, ValueType | None] | None] = field(default_factory=dict)

    def add(self, function: Callable[..., Any], types: Sequence[ValueType], qualifiers: str) -> tuple[str, Any]:
        """Translate a function for these types of arguments, once; return its name and the type of its result.

        Raises
        ------
        TypeError, ValueError, NameError, NotImplementedError
            If the function cannot be translated; the message contains its text.
        """
        key = function, tuple(types)
        if key in self.functions:
            if (found := self.functions[key]) is None:
                raise ValueError("Recursive function is not supported.")
            return found
        if len(self.functions) >= _MAX_FUNCTIONS:
            raise ValueError("Number of functions exceeds upper limit.")
        suffix = f"_{len(self.functions)}" if self.functions else ""
        self.functions[key] = None
        translator = _FunctionTranslator(self, function, suffix)
        self.codes.append(translator.translate(types, qualifiers))
        result = self.functions[key] = translator.name, translator.result
        return result


def _parse(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str]:
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise RuntimeError(f"cupyx.jit needs the Python source of {function}: {error}") from None
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError("Lockstep's cupyx.jit translates functions that are defined with def, no lambda.")
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise NotImplementedError("cupyx.jit translates functions without *args, **kwargs and default values only.")
    return tree, text


class _FunctionTranslator(ExpressionTranslator):
    """The translation of one function.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, program: TranslatedSource, function: Callable[..., Any], suffix: str) -> None:
        tree, self._text = _parse(function)
        variables = inspect.getclosurevars(function)
        super().__init__(program.mode, {**variables.builtins, **variables.globals, **variables.nonlocals})
        self._program, self._tree = program, tree
        self.name = f"{tree.name}{suffix}"
        self.result: ValueType | None = None
        self._is_kernel = False

    def translate(self, types: Sequence[ValueType], qualifiers: str) -> str:
        """Return the function's code for these types of arguments."""
        names = [argument.arg for argument in self._tree.args.args]
        if len(names) != len(types):
            raise TypeError(f"{self.name}() takes {len(names)} positional arguments but {len(types)} were given.")
        self._is_kernel = "__global__" in qualifiers
        for name, type_ in zip(names, types, strict=True):
            self.variables[name] = Value(name, type_)
        body = self._translate_block(self._tree.body)
        parameters = ", ".join(f"{format_type(type_)} {name}" for name, type_ in zip(names, types, strict=True))
        head = f"{qualifiers} {format_type(self.result)} {self.name}({parameters})"
        lines = textwrap.indent("\n".join([*self.declarations, *body]), "    ")
        return f"{head} {{\n{lines}\n}}\n"

    def call_kernel(self, kernel: CallableKernel, arguments: Sequence[Expression]) -> Value:
        """Return the call of another translated function."""
        if not kernel.is_device:
            raise TypeError(
                f"Calling __global__ function {kernel.function.__name__} from __global__ function is not allowed."
            )
        values = [to_value(each, self.mode) for each in arguments]
        types = [each.type for each in values if each.type is not None]
        name, result = self._program.add(kernel.function, types, "__device__")
        return Value(f"{name}({', '.join(each.code for each in values)})", result)

    def _translate_block(self, statements: Sequence[ast.stmt]) -> list[str]:
        return [line for statement in statements for line in self._translate_located(statement)]

    def _translate_located(self, statement: ast.stmt) -> list[str]:
        """Translate a statement; an error shows its lines in the function."""
        try:
            return self._translate_statement(statement)
        except (TypeError, ValueError, NameError, AttributeError, IndexError, NotImplementedError) as error:
            if getattr(error, "has_lines", False):
                raise
            self._raise_located(error, statement)

    def _raise_located(self, error: Exception, statement: ast.stmt) -> NoReturn:
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.If | ast.For | ast.While):
            last = statement.lineno
        lines = [
            f"{'>' if statement.lineno <= number <= last else ' '} {line}".rstrip()
            for number, line in enumerate(self._text.splitlines(), 1)
        ]
        located = type(error)(f"{error}\n\n" + "\n".join(lines))
        located.has_lines = True  # type: ignore[attr-defined]
        raise located from None

    def _translate_statement(self, statement: ast.stmt) -> list[str]:
        """Return the lines of a statement."""
        match statement:
            case ast.Return():
                return self._translate_return(statement)
            case ast.Assign(targets=[target]):
                return self._assign(target, self.translate_expression(statement.value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign(target, self.translate_expression(value))
            case ast.AugAssign():
                return self._translate_augmented(statement)
            case ast.For(orelse=[]):
                return self._translate_for(statement)
            case ast.While(orelse=[]):
                condition = cast(self.translate_expression(statement.test), BOOL, self.mode, "unsafe")
                return [f"while ({condition.code}) {{", *self._indent(statement.body), "}"]
            case ast.If():
                return self._translate_if(statement)
            case ast.Assert():
                condition = cast(self.translate_expression(statement.test), BOOL, self.mode, "unsafe")
                return [f"assert({condition.code});"]
            case ast.Expr():
                value = self.translate_expression(statement.value)
                return [f"{value.code};"] if isinstance(value, Value) else []
            case ast.Pass():
                return []
            case ast.Break():
                return ["break;"]
            case ast.Continue():
                return ["continue;"]
        what = _UNSUPPORTED.get(type(statement), f"this form of {type(statement).__name__}")
        raise NotImplementedError(f"cupyx.jit does not support {what}.")

    def _indent(self, statements: Sequence[ast.stmt]) -> list[str]:
        return [f"    {line}" for line in self._translate_block(statements)]

    def _translate_return(self, statement: ast.Return) -> list[str]:
        value = Constant(None) if statement.value is None else self.translate_expression(statement.value)
        if isinstance(value, Constant) and value.value is None:
            return ["return;"]
        returned = to_value(value, self.mode)
        if self._is_kernel:
            raise ValueError(f"A kernel returns nothing, but this function returns {returned.type}.")
        if self.result is not None and self.result != returned.type:
            raise ValueError(f"Failed to infer the return type: {self.result} or {returned.type}")
        self.result = returned.type
        return [f"return {returned.code};"]

    def _assign(self, target: ast.expr, value: Expression) -> list[str]:
        if isinstance(target, ast.Tuple):
            return self._unpack(target, value)
        if isinstance(target, ast.Name) and isinstance(value, TupleValue):
            copies = [self._store_temporary(to_value(each, self.mode)) for each in value.items]
            self.variables[target.id] = TupleValue(tuple(copy for copy, _ in copies))
            return [line for _, line in copies]
        is_number = isinstance(value, Constant) and isinstance(value.value, bool | int | float | complex | np.generic)
        if isinstance(target, ast.Name) and isinstance(value, Constant) and not is_number:
            if isinstance(self.variables.get(target.id), Value):
                raise TypeError(f"Type mismatch of variable: `{target.id}`")
            self.constants[target.id] = value.value
            return []
        if isinstance(target, ast.Name) and target.id not in self.variables:
            stored = to_value(value, self.mode)
            self.variables[target.id] = Value(target.id, stored.type)
            self.declarations.append(f"{format_type(stored.type)} {target.id};")
            return [f"{target.id} = {stored.code};"]
        return self._store(to_value(self.translate_expression(target), self.mode), value)

    def _store(self, place: Value, value: Expression) -> list[str]:
        if isinstance(place.type, np.dtype):
            return [f"{place.code} = {cast(value, place.type, self.mode).code};"]
        stored = to_value(value, self.mode)
        if place.type != stored.type:
            raise TypeError(f"Data type mismatch of variable: `{place.code}`: {place.type} != {stored.type}")
        return [f"{place.code} = {stored.code};"]

    def _store_temporary(self, value: Value) -> tuple[Value, str]:
        name = self.declare(f"{format_type(value.type)} {{}};")
        return Value(name, value.type), f"{name} = {value.code};"

    def _unpack(self, target: ast.Tuple, value: Expression) -> list[str]:
        if isinstance(value, Constant) and isinstance(value.value, tuple | list):
            value = TupleValue(tuple(Constant(each) for each in value.value))
        if not isinstance(value, TupleValue):
            raise ValueError(f"{getattr(value, 'code', value)} cannot be unpacked")
        if len(target.elts) != len(value.items):
            raise ValueError(f"{len(value.items)} values cannot be unpacked to {len(target.elts)} names")
        copies = [self._store_temporary(to_value(each, self.mode)) for each in value.items]
        lines = [line for _, line in copies]
        for name, (copy, _) in zip(target.elts, copies, strict=True):
            lines += self._assign(name, copy)
        return lines

    def _translate_augmented(self, statement: ast.AugAssign) -> list[str]:
        """Translate `target op= value`, with one evaluation of the target's index."""
        target = self.translate_expression(statement.target)
        if not isinstance(target, Value):
            raise TypeError("Only variables and elements can be changed by an operator with assignment.")
        place = Value(f"_place_{self.count_names()}", target.dtype)
        result = apply_operator(type(statement.op), (place, self.translate_expression(statement.value)), self.mode)
        stored = cast(result, target.dtype, self.mode)
        name = format_type(target.dtype)
        return [f"{{ {name} &{place.code} = {target.code}; {place.code} = {stored.code}; }}"]

    def _translate_if(self, statement: ast.If) -> list[str]:
        condition = self.translate_expression(statement.test)
        if isinstance(condition, Constant):
            return self._translate_block(statement.body if condition.value else statement.orelse)
        lines = [f"if ({cast(condition, BOOL, self.mode, 'unsafe').code}) {{", *self._indent(statement.body), "}"]
        if statement.orelse:
            lines[-1:] = ["} else {", *self._indent(statement.orelse), "}"]
        return lines

    def _translate_for(self, statement: ast.For) -> list[str]:
        loop = self.translate_expression(statement.iter)
        if not isinstance(loop, LoopRange) or not isinstance(statement.target, ast.Name):
            raise NotImplementedError("for-loop is supported only for range iterator.")
        name = statement.target.id
        known = self.variables.get(name)
        if known is None:
            self.variables[name] = Value(name, loop.stop.type)
            self.declarations.append(f"{format_type(loop.stop.type)} {name};")
        elif not isinstance(known, Value) or known.type != loop.stop.type:
            raise TypeError(f"Data type mismatch of variable: `{name}`: {known} != {loop.stop.type}")
        number = self.count_names()
        it, stop, step = (f"_{word}_{number}" for word in ("it", "stop", "step"))
        starts = f"{it} = {loop.start.code}, {stop} = {loop.stop.code}, {step} = {loop.step.code}"
        upward, downward = f"{it} < {stop}", f"{it} > {stop}"
        condition = {1: upward, -1: downward, 0: f"{step} >= 0 ? {upward} : {downward}"}[loop.step_sign]
        pragma = [] if loop.unroll is None else ["#pragma unroll" if loop.unroll is True else ""]
        if loop.unroll is not None and loop.unroll is not True:
            pragma = [f"#pragma unroll({int(loop.unroll) or 1})"]
        head = f"for ({format_type(loop.stop.type)} {starts}; {condition}; {it} += {step}) {{"
        return [*pragma, head, f"    {name} = {it};", *self._indent(statement.body), "}"]
