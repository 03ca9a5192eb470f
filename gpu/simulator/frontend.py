"""The front end: CUDA C++ text to the IR's functions and variables, one kernel at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gpu.errors import CompileError, KernelError
from gpu.simulator import ir
from gpu.simulator.clang import Cursor, CursorKind, evaluate, parse, start_of
from gpu.simulator.lower import FunctionLowering
from gpu.simulator.lower_types import lower_type, refuse
from gpu.simulator.types import VOID, ArrayOf, Scalar


class Program:
    """A parsed kernel file. What a kernel needs is lowered when the kernel is asked for, and refused then.

    Parameters
    ----------
    text : str
        The source.
    path : Path
        The file it belongs to.
    defines : mapping
        Macros.

    Raises
    ------
    CompileError
        What clang rejects.
    """

    def __init__(self, text: str, path: Path, defines: Mapping[str, int | str]) -> None:
        self._path = path
        self._functions: dict[str, ir.Function] = {}
        self.variables: dict[str, ir.GlobalVariable] = {}
        self._kernels: dict[str, Cursor] = {}
        self._unit = parse(text, path, defines)
        for cursor in _declarations(self._unit):
            if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition() and _has(cursor, "CUDAGLOBAL_ATTR"):
                self._kernels[cursor.spelling] = cursor
            elif cursor.kind == CursorKind.VAR_DECL and _space(cursor):
                self._declare(cursor)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the `__global__` functions."""
        return tuple(self._kernels)

    def kernel(self, name: str) -> ir.Function:
        """Lower a kernel and all that it calls.

        Raises
        ------
        KernelError
            There is no kernel of that name.
        CompileError
            It uses something that the simulator does not support.
        """
        if name not in self._kernels:
            raise KernelError(f"{self._path.name} has no kernel {name!r}; it has {', '.join(self._kernels) or 'none'}.")
        return self.function(self._kernels[name])

    def function(self, cursor: Cursor) -> ir.Function:
        """Return the IR of a function that has a body, lowering it the first time."""
        definition = cursor.get_definition()
        if definition is None:
            raise refuse(cursor, f"the function {cursor.spelling}, which has no body here")
        key = definition.get_usr()
        if key not in self._functions:
            function = ir.Function(definition.spelling, lower_type(definition.result_type, definition))
            self._functions[key] = function
            FunctionLowering(self, function, definition).run()
        return self._functions[key]

    def _declare(self, cursor: Cursor) -> None:
        type = lower_type(cursor.type, cursor)
        space = _space(cursor)
        element = type.innermost if isinstance(type, ArrayOf) else type
        if not isinstance(element, Scalar) or space is None:
            raise refuse(cursor, f"a variable of type {cursor.type.spelling} outside of a function")
        count = type.count if isinstance(type, ArrayOf) else 1
        initial = tuple(_initial_values(cursor))
        self.variables[cursor.spelling] = ir.GlobalVariable(cursor.spelling, space, element, count, initial)


def _declarations(unit: Cursor) -> list[Cursor]:
    """Return the declarations of the file and its includes, those within `extern "C"` and namespaces too."""
    found = []
    for cursor in unit.get_children():
        if cursor.kind in (CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE, CursorKind.UNEXPOSED_DECL):
            found += _declarations(cursor)
        else:
            found.append(cursor)
    return found


def _has(cursor: Cursor, attribute: str) -> bool:
    return any(child.kind.name == attribute for child in cursor.get_children())


def _space(cursor: Cursor) -> Literal["constant", "global"] | None:
    if cursor.storage_class.name == "EXTERN":
        return None
    if _has(cursor, "CUDACONSTANT_ATTR"):
        return "constant"
    return "global" if _has(cursor, "CUDADEVICE_ATTR") else None


def _initial_values(cursor: Cursor) -> list[Any]:
    """Return the numbers of a module variable's initialiser, flattened."""
    children = [child for child in cursor.get_children() if child.kind.is_expression()]
    if not children or "=" not in {token.spelling for token in cursor.get_tokens()}:
        return []
    return _flatten(children[-1])


def _flatten(cursor: Cursor) -> list[Any]:
    if cursor.kind == CursorKind.INIT_LIST_EXPR:
        return [value for child in cursor.get_children() for value in _flatten(child)]
    value = evaluate(cursor)
    if value is None:
        raise CompileError(
            f"{start_of(cursor)}: a module variable starts with constants only.", position=start_of(cursor)
        )
    return [value]


__all__ = ["VOID", "Program"]
