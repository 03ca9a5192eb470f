"""Calls: of functions and methods with a body, of constructors, and of what CUDA gives a kernel by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.addresses import call_arguments, called_prototype, is_reference_function, names_method
from gpu.simulator.frontend.child_launches import CONFIGURE
from gpu.simulator.frontend.clang import (
    ClangType,
    Cursor,
    CursorKind,
    is_kernel,
    start_of,
    string_of,
)
from gpu.simulator.frontend.closures import is_closure, is_in_closure
from gpu.simulator.frontend.construction import INSTEAD_OF_DESTRUCTOR, destructor
from gpu.simulator.frontend.conversions import number_of
from gpu.simulator.frontend.scope import Scope, decayed, value_type
from gpu.simulator.frontend.types import is_reference, refuse
from gpu.simulator.intrinsics import ATOMICS, BLOCK_VOTES, FENCES, INTRINSICS, WARP_OPERATIONS
from gpu.simulator.types import FUNCTION_POINTER, INT32, VOID, Pointer, Scalar, Struct

if TYPE_CHECKING:
    from gpu.simulator.frontend.expressions import Expressions


class Calls:
    """Lowers the calls of one function."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self._scope = scope
        self._expressions = expressions

    def call(self, cursor: Cursor) -> ir.Expression:
        """Lower a call to its value."""
        callee = cursor.referenced
        name = cursor.spelling
        prototype = called_prototype(cursor)
        if prototype is not None:
            return self._indirect(cursor, prototype)
        if callee is None:
            raise refuse(
                cursor, f"a call of {name or 'something without a name'}", instead="Call a function by its name."
            )
        if callee.kind == CursorKind.CONVERSION_FUNCTION and is_closure(callee.owner):
            return self._closure_as_pointer(cursor, callee.owner)
        if callee.kind == CursorKind.CONSTRUCTOR:
            return self._constructor(cursor, callee)
        if callee.kind == CursorKind.CXX_METHOD and is_implicit(callee):
            return self._implicit_method(cursor)
        if not _has_body(callee):
            return self._by_name(cursor, name)
        pointer = self.reference(cursor)
        if pointer is not None:
            assert isinstance(pointer.type, Pointer)
            return ir.Load(pointer.type.element, ir.Element(pointer.type.element, pointer, None, start_of(cursor)))
        return self._call_with_body(cursor, callee)

    def reference(self, cursor: Cursor) -> ir.Expression | None:
        """Lower a call that returns a reference to the address; None for a call that returns a value."""
        callee = cursor.referenced
        if callee is None or callee.kind == CursorKind.CONSTRUCTOR or not is_reference_function(callee):
            return None
        if is_implicit(callee) or not _has_body(callee):
            return None
        return self._call_with_body(cursor, callee)

    def launch(self, call: Cursor, configuration: Cursor) -> ir.Expression | None:
        """Lower a launch of a kernel, which has become two calls; None for two other operands of a comma."""
        if configuration.kind != CursorKind.CALL_EXPR or configuration.spelling != CONFIGURE:
            return None
        callee = call.referenced
        if callee is None or not is_kernel(callee):
            raise refuse(call, "a launch of anything but a __global__ function by its name", instead="Name the kernel.")
        assert configuration.referenced is not None
        grid, block, shared_bytes, stream = self._arguments(configuration, configuration.referenced)
        function = self._scope.program.function(callee)
        arguments = tuple(self._arguments(call, callee))
        return ir.Launch(VOID, function, grid, block, shared_bytes, stream, arguments, start_of(call))

    def _call_with_body(self, cursor: Cursor, callee: Cursor) -> ir.Expression:
        if is_kernel(callee):
            raise refuse(cursor, f"a call of the kernel {callee.spelling}", instead="Launch it: <<<grid, block>>>.")
        if callee.is_virtual_method:
            raise refuse(
                cursor,
                f"a call of the virtual function {callee.spelling}",
                instead="Make the type a template's parameter, or switch on a member that names it.",
            )
        function = self._scope.function_called(callee, start_of(cursor))
        arguments = self._arguments(cursor, callee)
        if callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION) and not callee.is_static_method:
            arguments.insert(0, self._object(cursor))
        return ir.Call(function.type, function, tuple(arguments))

    def _indirect(self, cursor: Cursor, prototype: ClangType) -> ir.Expression:
        """Lower a call through a pointer; where that is a template's argument, the function is known."""
        pointer, *given = cursor.children
        called = self._expressions.value(pointer)
        arguments = []
        for argument, type in zip(given, prototype.argument_types, strict=True):
            if is_reference(type):
                arguments.append(self._expressions.address(argument))
            else:
                held = value_type(self._scope.program.types.lower(type, argument))
                arguments.append(self._expressions.converted(argument, held))
        functions = self._scope.program.functions_by_number
        if isinstance(called, ir.Const) and int(called.value) in functions:
            function = functions[int(called.value)]
            return ir.Call(function.type, function, tuple(arguments))
        if is_reference(prototype.result):
            raise refuse(cursor, "a call through a pointer to a function that returns a reference")
        result = self._scope.program.types.lower(prototype.result, cursor)
        return ir.IndirectCall(value_type(result), called, functions, tuple(arguments), start_of(cursor))

    def _closure_as_pointer(self, cursor: Cursor, closure: Cursor) -> ir.Expression:
        """A lambda that captures nothing is a function."""
        for method in closure.children:
            if method.kind == CursorKind.CXX_METHOD and method.spelling == "operator()":
                return number_of(FUNCTION_POINTER, self._scope.address_taken(method))
        raise refuse(cursor, "a pointer to this lambda", instead="Write a __device__ function.")

    def _arguments(self, cursor: Cursor, callee: Cursor) -> list[ir.Expression]:
        """Lower the arguments to what the parameters hold: values, or addresses where they are references."""
        given = call_arguments(cursor)
        lowered = []
        for number, parameter in enumerate(callee.arguments):
            argument = given[number] if number < len(given) else None
            if argument is None or not _is_given(argument):
                argument = _default_of(parameter, cursor)
            lowered.append(self._argument(argument, parameter))
        return lowered

    def _argument(self, argument: Cursor, parameter: Cursor) -> ir.Expression:
        if is_reference(parameter.type):
            return self._expressions.address(argument)
        type = self._scope.program.types.lower(parameter.type, parameter)
        return self._expressions.converted(argument, value_type(type))

    def _object(self, cursor: Cursor) -> ir.Expression:
        """Return the address of the object that a method is called on."""
        first = cursor.children[0]
        if not names_method(first):  # an operator: the object is its first operand
            return self._expressions.address(first)
        owner = next(iter(first.children), None)
        if owner is None or not owner.is_expression:
            if self._scope.this is None:
                raise refuse(cursor, f"the method {cursor.spelling} without an object")
            return self._scope.this
        if isinstance(self._expressions.type_of(owner), Pointer):
            return self._expressions.value(owner)
        return self._expressions.address(owner)

    def _implicit_method(self, cursor: Cursor) -> ir.Expression:
        """An assignment that the struct does not define copies its members."""
        operands = cursor.arguments
        if cursor.spelling != "operator=" or len(operands) != 2:
            raise refuse(cursor, f"a call of {cursor.spelling}")
        place = self._expressions.place(operands[0])
        if place is None:
            raise refuse(cursor, "an assignment to a value")
        return ir.Assign(place.type, place, self._expressions.converted(operands[1], place.type))

    def _constructor(self, cursor: Cursor, callee: Cursor) -> ir.Expression:
        type = decayed(self._expressions.type_of(cursor))
        given = cursor.arguments
        if not isinstance(type, Struct):
            raise refuse(cursor, f"the construction of {type}")
        if name := destructor(cursor.type):
            raise refuse(cursor, f"an object of {name}, whose destructor does something", instead=INSTEAD_OF_DESTRUCTOR)
        if _has_body(callee) and not is_implicit(callee):
            return self._constructed(type, callee, self._arguments(cursor, callee), start_of(cursor))
        if len(given) == 1:
            return self._expressions.converted(given[0], type)
        return self._expressions.construction.default(type, cursor.type)

    def constructed_from(self, type: Struct, constructor: Cursor, given: list[Cursor]) -> ir.Expression:
        """Return the object that a constructor makes; the parameters' defaults stand in for what is not given."""
        parameters = constructor.arguments
        values = [*given, *(_default_of(parameter, constructor) for parameter in parameters[len(given) :])]
        arguments = list(map(self._argument, values, parameters))
        return self._constructed(type, constructor, arguments, start_of(constructor))

    def _constructed(
        self, type: Struct, constructor: Cursor, arguments: list[ir.Expression], position: SourcePosition
    ) -> ir.Expression:
        function = self._scope.function_called(constructor, position)
        this = ir.Temporary(Pointer(type), None)
        held = ir.Local(this.type, self._scope.new_slot(), "this")
        call = ir.Call(function.type, function, (held, *arguments))
        made = ir.Sequence(VOID, ir.Assign(this.type, held, this), call)
        return ir.Sequence(type, made, ir.Load(type, ir.Element(type, held, None, position)))

    def _by_name(self, cursor: Cursor, name: str) -> ir.Expression:
        """Lower a call of one of CUDA's functions."""
        arguments = cursor.arguments
        type = self._expressions.type_of(cursor)
        if name in ATOMICS:
            return self._atomic(cursor, arguments)
        if name.startswith("__builtin_") and isinstance(type, Scalar) and (number := cursor.constant) is not None:
            return number_of(type, number)
        if name == "__lockstep_wait_for_children":
            return ir.WaitForChildren(VOID, start_of(cursor))
        if name == "__lockstep_grid_sync":
            self._scope.function.syncs_grid = True
            return ir.GridBarrier(VOID, start_of(cursor))
        if name in ("clock", "clock64"):
            assert isinstance(type, Scalar)
            return ir.Clock(type)
        if name in FENCES:
            lanes = [self._expressions.value(each) for each in arguments if _is_given(each)]
            return ir.Fence(VOID, name, *lanes)
        if name in WARP_OPERATIONS or name in BLOCK_VOTES:
            values = tuple(self._expressions.value(argument) for argument in arguments if _is_given(argument))
            assert isinstance(type, Scalar)
            return ir.Warp(type, name, values, start_of(cursor))
        if name == "printf":
            text = string_of(arguments[0])
            if text is None:
                raise refuse(cursor, "a printf whose format is not written out", instead="Write it as a string.")
            return ir.Print(INT32, text, tuple(self._printed(argument) for argument in arguments[1:]))
        if name == "__lockstep_assert":
            text = string_of(arguments[1]) or ""
            return ir.Assertion(VOID, self._expressions.condition(arguments[0]), text, start_of(cursor))
        if name in INTRINSICS and isinstance(type, Scalar):
            return ir.Intrinsic(type, name, tuple(self._expressions.value(argument) for argument in arguments))
        if name in _REFUSED:
            construct, instead = _REFUSED[name]
            raise refuse(cursor, construct, instead=instead)
        raise refuse(
            cursor,
            f"a call of {name or 'this'}, which has no body here",
            instead="Define it in this file or in one that it includes.",
        )

    def _printed(self, argument: Cursor) -> ir.Expression | str:
        text = string_of(argument)
        if text is not None:
            return text
        value = self._expressions.value(argument)
        if not isinstance(value.type, Scalar | Pointer):
            raise refuse(argument, f"{value.type} as an argument of printf", instead="Print its members, one by one.")
        return value

    def _atomic(self, cursor: Cursor, arguments: tuple[Cursor, ...]) -> ir.Expression:
        pointer = self._expressions.value(arguments[0])
        if not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Scalar):
            raise refuse(cursor, f"{cursor.spelling} on this address")
        element = pointer.type.element
        base, index = (pointer.pointer, pointer.index) if isinstance(pointer, ir.Offset) else (pointer, None)
        values = tuple(self._expressions.converted(argument, element) for argument in arguments[1:])
        place = ir.Element(element, base, index, start_of(cursor))
        return ir.Atomic(element, ATOMICS[cursor.spelling], place, values)


_TEXTURES = ("textures, which are bound on the host", "Read from a pointer to global memory: a[y * width + x].")
_FRAGMENTS = ("wmma", "Write the product as loops over tiles in shared memory.")

# What the shim declares so that it is refused by name: the construct, and what to write instead.
_REFUSED = {
    "__lockstep_tile_of_several_warps": (
        "a tile of more than 32 threads",
        "Take tiles of 32 threads, and __syncthreads() and shared memory between them.",
    ),
    "__lockstep_texture": _TEXTURES,
    "__lockstep_fragment": _FRAGMENTS,
}


def _has_body(callee: Cursor) -> bool:
    definition = callee.definition
    return definition is not None and any(child.kind == CursorKind.COMPOUND_STMT for child in definition.children)


def is_implicit(callee: Cursor) -> bool:
    """Whether the compiler wrote a method: then it stands where its class does. `= default` is the same in writing."""
    if is_in_closure(callee):
        return False
    written_by_clang = callee.stands_with(callee.owner)
    return bool(written_by_clang or callee.is_default_method)


def _is_given(argument: Cursor) -> bool:
    """Whether an argument is written out; clang stands something empty in for a default."""
    return argument.kind != CursorKind.UNEXPOSED_EXPR or bool(argument.children)


def _default_of(parameter: Cursor, call: Cursor) -> Cursor:
    values = [child for child in parameter.children if child.is_expression]
    if not values:
        raise refuse(call, f"a call without its argument {parameter.spelling}")
    return values[-1]
