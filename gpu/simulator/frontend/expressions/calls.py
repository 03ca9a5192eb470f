"""Lowering of calls and launches: functions and methods with a body, by name or through a pointer."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang.child_launches import CONFIGURE_FUNCTION
from gpu.simulator.frontend.clang.parsing import ClangType, Cursor, CursorKind, get_reported_position, is_kernel, is_own
from gpu.simulator.frontend.lowering.addresses import (
    call_arguments,
    called_prototype,
    is_reference_function,
    names_method,
)
from gpu.simulator.frontend.lowering.classes import has_body, is_implicit
from gpu.simulator.frontend.lowering.closures import is_closure
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.frontend.lowering.cuda_functions import is_explicit, lower_builtin_call
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error, is_reference, value_type
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.types import FUNCTION_POINTER, VOID, Pointer, Scalar


def lower_call(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a call to its value."""
    callee = cursor.referenced
    name = cursor.spelling
    prototype = called_prototype(cursor)
    if prototype is not None:
        return _lower_indirect_call(lower, cursor, prototype)
    if callee is None:
        raise build_unsupported_error(
            cursor, f"a call of {name or 'an unnamed function'}", advice="Call a function by its name."
        )
    if callee.kind == CursorKind.CONVERSION_FUNCTION and is_closure(callee.owner):
        return _convert_closure_to_pointer(lower, cursor, callee.owner)
    if callee.kind == CursorKind.CXX_METHOD and is_implicit(callee):
        return _lower_implicit_assignment(lower, cursor)
    _check_virtual(cursor, callee)
    if not has_body(callee) or _is_intrinsic(callee):
        return lower_builtin_call(lower, cursor)
    pointer = lower_reference_call(lower, cursor)
    if pointer is not None:
        assert isinstance(pointer.type, Pointer)
        return ir.Load(
            pointer.type.element, ir.Element(pointer.type.element, pointer, None, get_reported_position(cursor))
        )
    return _lower_direct_call(lower, cursor, callee)


def _is_intrinsic(callee: Cursor) -> bool:
    """Return whether a function that the shim defines for constants is also an intrinsic of the executors."""
    return (
        callee.kind == CursorKind.FUNCTION_DECL
        and callee.spelling in INTRINSICS
        and not is_own(callee)
        and all(argument_type.canonical is callee.result_type.canonical for argument_type in callee.type.argument_types)
    )


def lower_reference_call(lower: Lowering, cursor: Cursor) -> ir.Expression | None:
    """Lower a call that returns a reference to an address; None for a call that returns a value."""
    callee = cursor.referenced
    if callee is None or callee.kind == CursorKind.CONSTRUCTOR or not is_reference_function(callee):
        return None
    if is_implicit(callee) or not has_body(callee):
        return None
    return _lower_direct_call(lower, cursor, callee)


def lower_launch(lower: Lowering, call: Cursor, configuration: Cursor) -> ir.Expression | None:
    """Lower a kernel launch, rewritten as two calls and a comma; None for any other comma expression."""
    if configuration.kind != CursorKind.CALL_EXPR or configuration.spelling != CONFIGURE_FUNCTION:
        return None
    callee = call.referenced
    if callee is None or not is_kernel(callee):
        raise build_unsupported_error(
            call, "a launch of anything but a named __global__ function", advice="Name the kernel."
        )
    assert configuration.referenced is not None
    grid, block, shared_bytes, stream = lower_arguments(lower, configuration, configuration.referenced)
    function = lower.scope.unit.function(callee)
    arguments = tuple(lower_arguments(lower, call, callee))
    return ir.LaunchCall(VOID, function, grid, block, shared_bytes, stream, arguments, get_reported_position(call))


def _lower_direct_call(lower: Lowering, cursor: Cursor, callee: Cursor) -> ir.Expression:
    if is_kernel(callee):
        raise build_unsupported_error(
            cursor, f"a call of the kernel {callee.spelling}", advice="Launch it: <<<grid, block>>>."
        )
    _check_virtual(cursor, callee)
    function = lower.scope.add_call(callee, get_reported_position(cursor))
    arguments = lower_arguments(lower, cursor, callee)
    if callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION) and not callee.is_static_method:
        arguments.insert(0, _object_address(lower, cursor))
    return ir.Call(function.type, function, tuple(arguments), get_reported_position(cursor))


def _check_virtual(cursor: Cursor, callee: Cursor) -> None:
    """Raise CompileError for a call of a virtual function, even of one without a body."""
    if callee.is_virtual_method:
        raise build_unsupported_error(
            cursor,
            f"a call of the virtual function {callee.spelling}",
            advice="Make the type a template parameter, or switch on a member that identifies it.",
        )


def _lower_indirect_call(lower: Lowering, cursor: Cursor, prototype: ClangType) -> ir.Expression:
    """Lower a call through a pointer; if the pointer is a constant, such as a template argument, a direct call."""
    pointer, *values = cursor.children
    callee = lower.value(pointer)
    arguments = []
    for argument, type in zip(values, prototype.argument_types, strict=True):
        if is_reference(type):
            arguments.append(lower.address(argument))
        else:
            parameter_type = value_type(lower.scope.unit.types.lower(type, argument))
            arguments.append(lower.convert(argument, parameter_type))
    functions = lower.scope.unit.functions_by_number
    if isinstance(callee, ir.Const) and int(callee.value) in functions:
        function = functions[int(callee.value)]
        return ir.Call(function.type, function, tuple(arguments), get_reported_position(cursor))
    if is_reference(prototype.result):
        raise build_unsupported_error(cursor, "a call through a pointer to a function that returns a reference")
    result = lower.scope.unit.types.lower(prototype.result, cursor)
    return ir.IndirectCall(value_type(result), callee, functions, tuple(arguments), get_reported_position(cursor))


def _convert_closure_to_pointer(lower: Lowering, cursor: Cursor, closure: Cursor) -> ir.Expression:
    """Lower a lambda without captures to a function pointer."""
    for method in closure.children:
        if method.kind == CursorKind.CXX_METHOD and method.spelling == "operator()":
            return build_constant(FUNCTION_POINTER, lower.scope.add_pointer_target(method))
    raise build_unsupported_error(cursor, "a pointer to this lambda", advice="Write a __device__ function.")


def _object_address(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Return the address of the object that a method is called on."""
    first = cursor.children[0]
    if not names_method(first):  # an operator: the object is its first operand
        return lower.address(first)
    owner = next(iter(first.children), None)
    if owner is None or not owner.is_expression:
        if lower.scope.this is None:
            raise build_unsupported_error(cursor, f"the method {cursor.spelling} without an object")
        return lower.scope.this
    if isinstance(lower.type_of(owner), Pointer):
        return lower.value(owner)
    return lower.address(owner)


def convert_by_method(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an object's conversion to a number by the only conversion function of its class that returns one."""
    methods = [
        child
        for child in cursor.type.canonical.declaration.children
        if child.kind == CursorKind.CONVERSION_FUNCTION
        and isinstance(lower.scope.unit.types.lower(child.result_type, cursor), Scalar)
    ]
    if len(methods) != 1:
        return lower.value(cursor)
    function = lower.scope.add_call(methods[0], get_reported_position(cursor))
    return ir.Call(function.type, function, (lower.address(cursor),), get_reported_position(cursor))


def _lower_implicit_assignment(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an implicit assignment operator: it copies the members."""
    operands = cursor.arguments
    if cursor.spelling != "operator=" or len(operands) != 2:
        raise build_unsupported_error(cursor, f"a call of {cursor.spelling}")
    place = lower.place(operands[0])
    if place is None:
        raise build_unsupported_error(cursor, "an assignment to a value")
    return ir.Assign(place.type, place, lower.convert(operands[1], place.type))


def lower_arguments(lower: Lowering, cursor: Cursor, callee: Cursor) -> list[ir.Expression]:
    """Lower the arguments to the parameters' values, or to addresses for reference parameters."""
    arguments = call_arguments(cursor)
    lowered = []
    for number, parameter in enumerate(callee.arguments):
        argument = arguments[number] if number < len(arguments) else None
        if argument is None or not is_explicit(argument):
            # Clang represents `T()` of a number like an omitted argument; the parameter then has no default.
            argument = find_default_argument(parameter, cursor, argument)
        lowered.append(lower_argument(lower, argument, parameter))
    return lowered


def lower_argument(lower: Lowering, argument: Cursor, parameter: Cursor) -> ir.Expression:
    """Lower one argument to the parameter's value, or to an address for a reference parameter."""
    if is_reference(parameter.type):
        return lower.address(argument)
    type = lower.scope.unit.types.lower(parameter.type, parameter)
    return lower.convert(argument, value_type(type))


def find_default_argument(parameter: Cursor, call: Cursor, fallback: Cursor | None = None) -> Cursor:
    """Return the default of a parameter that a call omits; without a default, a fallback."""
    values = [child for child in parameter.children if child.is_expression] or (
        [fallback] if fallback is not None else []
    )
    if not values:
        raise build_unsupported_error(call, f"a call without the argument {parameter.spelling}")
    return values[-1]
