"""The front end: CUDA C++ to the IR's functions and variables, one kernel at a time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from gpu.base import nesting
from gpu.base.errors import CompileError, KernelError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import (
    UNUSED_PARAMETER,
    Cursor,
    CursorKind,
    Diagnosis,
    StorageClass,
    TypeKind,
    get_reported_position,
    has_attribute,
    is_kernel,
    is_own,
    override_position,
    parse,
)
from gpu.simulator.frontend.clang.precompiled_header import find_named_function
from gpu.simulator.frontend.coverage import find_unreached_lines
from gpu.simulator.frontend.expressions.construction import lower_array_braces
from gpu.simulator.frontend.expressions.expressions import Expressions
from gpu.simulator.frontend.functions import lower_function
from gpu.simulator.frontend.lowering.addresses import is_reference_function
from gpu.simulator.frontend.lowering.classes import ARRAYS
from gpu.simulator.frontend.lowering.constant_initializers import find_constants
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.frontend.lowering.launched_lambdas import LaunchedLambdas, has_lambda_argument
from gpu.simulator.frontend.lowering.scope import Scope
from gpu.simulator.frontend.lowering.types import TypeLowering, build_unsupported_error
from gpu.simulator.types import VOID, ArrayOf, Pointer, Scalar, Type, decay

_OUTER = (CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE, CursorKind.UNEXPOSED_DECL)
_METHODS = (CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR, CursorKind.DESTRUCTOR)
_WITH_BODY = (
    *(CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL),
    *_METHODS,
)
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, *_METHODS)
_NAMES_CHECKED = (
    *(CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL, CursorKind.ENUM_DECL),
    *(CursorKind.CLASS_TEMPLATE, CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION, CursorKind.VAR_DECL),
    *(CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL, CursorKind.FIELD_DECL),
)
_SCOPES = (CursorKind.NAMESPACE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
_FAILED_ASSERTION = "static assertion failed"
_INSTANCE_FUNCTION = "lockstep_instance"

nesting.raise_recursion_limit()


class Program:
    """A parsed kernel file. A kernel is lowered, or refused, when it is requested.

    Parameters
    ----------
    text : str
        The source. It may contain host code too, which is ignored.
    path : Path
        The path of the file.
    defines : mapping
        Macros.
    instances : tuple of str
        The instantiations of kernel templates to make available, such as "reduce<float, 256>".
    include_dirs : sequence of Path
        Folders for includes, in addition to the file's folder.
    tolerant : bool
        Whether an error in one function does not affect the others; any other error is then raised by `lower_kernel`.
    is_reparse : bool
        Whether successive versions of this file are parsed; the program of the previous version becomes invalid.

    Raises
    ------
    CompileError
        Clang reports an error outside of host code.
    """

    def __init__(
        self,
        text: str,
        path: Path,
        defines: Mapping[str, int | str],
        instances: tuple[str, ...] = (),
        include_dirs: Sequence[Path] = (),
        *,
        tolerant: bool = False,
        is_reparse: bool = False,
    ) -> None:
        self._path, self._text = path, text
        self.types = TypeLowering()
        self.variables: dict[str, ir.GlobalVariable] = {}
        self._local_names: dict[str, str] = {}
        self.unset_constants: dict[str, SourcePosition] = {}
        """The `__constant__` variables without an initializer, and where they are declared."""
        self._functions: dict[tuple[Cursor, SourcePosition | None], ir.Function] = {}
        self._shared_users: dict[Cursor, bool] = {}
        self.functions_by_number: dict[int, ir.Function] = {}
        self.shared_variables: dict[Cursor, ir.SharedVariable] = {}
        self._kernels: dict[str, Cursor] = {}
        self._definitions: dict[str, list[Cursor]] = {}
        self._templates: set[str] = set()
        instantiations = "".join(
            f"\nvoid {_INSTANCE_FUNCTION}() {{ {_build_using_directive(name, text)}auto lockstep_pointer = &{name}; }}"
            for name in instances
        )
        self._tree, self._all_diagnoses = parse(
            text + instantiations, path, defines, include_dirs, is_reparse=is_reparse
        )
        self._errors = [error for error in self._all_diagnoses if error.is_error]
        self._checked_names: set[Cursor] = set()
        declarations = _collect_declarations(self._tree.declarations)
        self._bodies = [cursor for cursor in declarations if cursor.kind in _WITH_BODY and cursor.is_definition]
        for cursor in declarations:
            self._register(cursor, instances)
        self._tolerant = tolerant
        functions = [body for body in self._bodies if body.kind in _FUNCTIONS]
        self._outer_errors = [error for error in self._errors if not any(error.is_within(body) for body in functions)]
        self._unattributed_errors = [
            error
            for error in self._outer_errors
            if not any(
                error.is_within(declaration)
                for declaration in declarations
                if declaration.kind != CursorKind.STATIC_ASSERT
            )
        ]
        if not tolerant:
            self._raise_errors()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the `__global__` functions, without overloaded ones and with instantiated templates."""
        return tuple(name for name in self._kernels if len(self._non_templates(name)) < 2)

    @property
    def overloads(self) -> tuple[str, ...]:
        """The `__global__` functions that share a name, each with its line: "reduce@12"."""
        return tuple(
            f"{name}@{cursor.position.line}"
            for name in self._definitions
            for cursor in (self._non_templates(name) if len(self._non_templates(name)) > 1 else ())
        )

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the `__global__` templates."""
        return tuple(sorted(self._templates))

    @property
    def symbols(self) -> dict[str, str]:
        """The kernels by linker symbol; the symbol of an `extern "C"` kernel is its name."""
        overloads = {
            cursor.symbol: f"{name}@{cursor.position.line}"
            for name in self._definitions
            for cursor in (self._non_templates(name) if len(self._non_templates(name)) > 1 else ())
        }
        return {cursor.symbol: name for name, cursor in self._kernels.items()} | overloads

    def find_unreached_lines(
        self, lines: Collection[int], reached: Collection[SourcePosition], kernels: Collection[str]
    ) -> dict[int, bool]:
        """Return those of the file's lines with code that no thread reached, and whether the preprocessor skips each.

        Parameters
        ----------
        reached : collection of SourcePosition
            The positions that threads reached.
        kernels : collection of str
            The kernels to consider, in addition to all functions that are not kernels.
        """
        name = self._path.name
        bodies = [body for body in self._bodies if body.position.file == name]
        others = [body for body in bodies if is_kernel(body) and body.spelling not in kernels]
        in_others = {line for body in others for line in range(body.position.line, body.end_position.line + 1)}
        return find_unreached_lines(
            [body for body in bodies if body not in others],
            self._text.split("\n"),
            lines,
            [position for position in reached if position.file == name],
            self._tree.skipped_lines - in_others,
        )

    def lower_kernel(self, name: str) -> ir.Function:
        """Lower a kernel and all functions that it calls.

        Raises
        ------
        KernelError
            There is no kernel of that name.
        CompileError
            The kernel uses something that the simulator does not support.
        """
        for error in self._unattributed_errors:
            # An #error, a missing header, a failed assertion: it belongs to no function. Host code explains the others.
            if error.message.startswith(_FAILED_ASSERTION) or not self._has_host_code():
                raise error.to_error(self._errors)
        if len(self._non_templates(name)) > 1:
            raise self._ambiguity_error(name, self._non_templates(name))
        if name in self._kernels:
            return self.function(self._kernels[name])
        if has_lambda_argument(name) and (lambda_kernel := self._launched_lambdas.find_kernel(name)) is not None:
            return self.function(lambda_kernel)
        if name in self._templates:
            raise KernelError(f"{name} is a template: name an instantiation, such as {name}<float>.")
        overloads = self._definitions.get(name.partition("<")[0].rstrip(), ())
        if "<" in name and len(overloads) > 1:
            raise self._ambiguity_error(name, overloads)
        errors = [
            error
            for error in self._errors
            if not any(_is_host(body) and error.is_within(body) for body in self._bodies)
        ]
        available = ", ".join((*self.kernels, *self.overloads, *sorted(self._templates)))
        template = name.partition("<")[0].rstrip().rpartition("::")[2]
        instances = [body for body in self._bodies if body.spelling == _INSTANCE_FUNCTION]
        other = next((error for error in errors if not any(map(error.is_within, instances))), None)
        if errors and (not available or (template in self._templates and (other or not overloads))):
            raise (other or errors[0]).to_error()
        if template in self._templates and overloads:
            line = overloads[0].position.line
            raise KernelError(f"{name} does not match the parameters of the template in line {line}.")
        reason = f"{self._path.name} has no kernel {name!r}; it has {available or 'none'}."
        if other is not None:
            reason = f"{reason} The compiler also reports: {other.to_error().message}"
        host = next((body for body in self._bodies if body.spelling == name and not is_kernel(body)), None)
        if host is None:
            raise KernelError(reason)
        raise KernelError(f"{reason} {name} in line {host.position.line} is not __global__.", position=host.position)

    @cached_property
    def _launched_lambdas(self) -> LaunchedLambdas:
        return LaunchedLambdas.collect(body for body in self._bodies if body.kind in _FUNCTIONS)

    def isolate_kernel(self, name: str, line: int) -> str:
        """Return the text with all kernels of a name blanked, except the one at a line; line numbers are unchanged.

        Raises
        ------
        KernelError
            No kernel of that name is at that line.
        """
        overloads = self._definitions.get(name.partition("<")[0].rstrip(), ())
        positions = [
            (overload.start.offset, overload.end.offset)
            for overload in overloads
            if overload.start.file == str(self._path)
        ]
        data = self._text.encode()
        lines = [(data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end) + 1) for start, end in positions]
        selected = next(
            (position for position, (first, last) in zip(positions, lines, strict=True) if first <= line <= last), None
        )
        if selected is None:
            available = ", ".join(f"{name}@{first}" for first, _ in lines) or "none of that name"
            raise KernelError(f"{self._path.name} has no kernel {name} at line {line}; it has {available}.")
        for start, end in positions:
            if (start, end) != selected:
                data = data[:start] + re.sub(rb"[^\n]", b" ", data[start:end]) + data[end:]
        return data.decode()

    def _non_templates(self, name: str) -> list[Cursor]:
        """Return the kernels of a name that are not templates."""
        return [each for each in self._definitions.get(name, ()) if each.kind == CursorKind.FUNCTION_DECL]

    def _ambiguity_error(self, name: str, cursors: Sequence[Cursor]) -> KernelError:
        first, *others = sorted(cursor.position.line for cursor in cursors)
        lines = f"{', '.join(map(str, [first, *others[:-1]]))} and {others[-1]}"
        return KernelError(
            f"{self._path.name} has several kernels {name}, at lines {lines}: "
            f"select one by its line, as in {name}@{first}."
        )

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield clang's diagnostics of the file, without those that concern only host code, which never runs here.

        Unused parameters are reported for kernels only, since helper functions may share a parameter list; and not for
        kernels with errors, where code that uses the parameter may be missing.
        """
        has_host_code = self._has_host_code()
        for diagnosis in self._all_diagnoses:
            body = next((body for body in self._bodies if diagnosis.is_requested_within(body)), None)
            if diagnosis.option == UNUSED_PARAMETER and (
                body is None or not is_kernel(body) or any(error.is_within(body) for error in self._errors)
            ):
                continue
            if not has_host_code or (body is not None and not _is_host(body)):
                yield diagnosis

    def iterate_warnings(self, name: str) -> Iterator[Diagnosis]:
        """Yield the warnings that concern a kernel: those in its own code and in everything that is not a kernel."""
        others = [body for body in self._bodies if is_kernel(body) and body.location != self._kernels[name].location]
        for diagnosis in self.diagnoses():
            if not diagnosis.is_error and not any(diagnosis.is_within(body) for body in others):
                yield diagnosis

    def find_outputs(self, name: str) -> dict[str, SourcePosition]:
        """Return the parameters through which a kernel may write, and where they are declared."""
        parameters = [child for child in self._kernels[name].children if child.kind == CursorKind.PARM_DECL]
        return {
            parameter.spelling: parameter.position
            for parameter in parameters
            if parameter.type.canonical.kind == TypeKind.POINTER and not parameter.type.canonical.pointee.is_const
        }

    def function(self, cursor: Cursor, place: SourcePosition | None = None) -> ir.Function:
        """Return the IR of a function that has a body; lower it at the first request.

        A function from a header of the shim is lowered for each `place` that calls it, as if it were defined there. The
        exception are functions with `__shared__` variables, which must be the same for all callers.
        """
        definition = cursor.definition
        if definition is None:
            # An error in a template's body leaves its instantiations without one.
            template = cursor.template
            for error in self._errors:
                if template is not None and error.is_within(template):
                    raise error.to_error(self._errors)
            raise build_unsupported_error(cursor, f"the function {cursor.spelling}, which is not defined here")
        # Lambdas of one function share a name, and so do the instantiations for them.
        place = None if is_own(definition) or self._has_shared(definition) else place
        key = definition, place
        if key not in self._functions:
            for error in self._errors:
                if error.is_requested_within(definition):
                    raise error.to_error(self._errors)
            if self._errors and is_own(definition):
                self._check_names(definition)
            _check_nesting(definition)
            result = VOID if definition.kind == CursorKind.CONSTRUCTOR else self._result_type(definition)
            function = ir.Function(definition.spelling, result)
            first_new = len(self._functions)
            self._functions[key] = function
            try:
                with override_position(place):
                    lower_function(self, function, definition)
            except CompileError:
                # Functions lowered since then may call this incomplete one, so discard them all.
                for later in list(self._functions)[first_new:]:
                    del self._functions[later]
                raise
        return self._functions[key]

    def _has_shared(self, definition: Cursor) -> bool:
        """Return whether a function declares `__shared__` variables."""
        if definition not in self._shared_users:
            self._shared_users[definition] = any(
                descendant.kind == CursorKind.VAR_DECL and has_attribute(descendant, CursorKind.CUDASHARED_ATTR)
                for descendant in definition.descendants()
            )
        return self._shared_users[definition]

    def _check_names(self, cursor: Cursor) -> None:
        """Raise the error that affects a type or variable that a function names, directly or indirectly.

        After an error, clang continues as if an unknown type were int or the declaration were missing.
        """
        for inner in (
            descendant for part in (cursor, cursor.template) if part is not None for descendant in part.descendants()
        ):
            referenced = inner.referenced
            if (
                referenced is None
                or referenced.kind not in _NAMES_CHECKED
                or referenced in self._checked_names
                or not is_own(referenced)
            ):
                continue
            self._checked_names.add(referenced)
            methods = [descendant for descendant in referenced.descendants() if descendant.kind in _FUNCTIONS]
            for error in self._errors:
                if error.is_requested_within(referenced) and not any(
                    error.is_requested_within(method) for method in methods
                ):
                    self._checked_names.discard(referenced)
                    raise error.to_error(self._errors)
            self._check_names(referenced)

    def find_header_function(self, name: str) -> Cursor:
        """Return a function that the header defines in its block `extern "C++"`."""
        block = self._tree.get_declaration_at(*find_named_function()).owner
        return next(child for child in block.children if child.spelling == name and child.is_definition)

    def function_number(self, cursor: Cursor) -> int:
        """Return the number that represents a pointer to a function; it is the same in every program of one text."""
        function = self.function(cursor)
        definition = cursor.definition or cursor
        name = definition.usr or f"{definition.location.offset}"
        while True:
            number = int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "little") | 1
            if self.functions_by_number.setdefault(number, function) is function:
                return number
            name += "'"  # another function with the same name, such as for lambdas

    def _result_type(self, definition: Cursor) -> Type:
        type = self.types.lower(definition.result_type, definition)
        return Pointer(decay(type)) if is_reference_function(definition) else type

    def is_variable(self, declaration: Cursor) -> bool:
        """Return whether a name is a variable in device memory, whatever its initializer."""
        return _variable_space(declaration) is not None and not declaration.type.is_const

    def variable(self, declaration: Cursor) -> ir.GlobalVariable | None:
        """Return a variable of the module, or a constant table; None for any other name."""
        if declaration.kind != CursorKind.VAR_DECL:
            return None
        if declaration.storage_class == StorageClass.EXTERN:
            declaration = declaration.definition or declaration
        has_initializer = _find_initializer(declaration) is not None
        is_table = _memory_space(declaration) is None and has_initializer and _is_constant_table(declaration)
        space = "constant" if is_table else _variable_space(declaration)
        if space is None:
            return None
        name = self._find_name(declaration)
        if name not in self.variables:
            type = self.types.lower(declaration.type, declaration)
            self.variables[name] = ir.GlobalVariable(name, space, type, self._lower_initializer(declaration, type))
        return self.variables[name]

    def _find_name(self, declaration: Cursor) -> str:
        """Return the name of a variable: of a function's variables, too, each has its own."""
        name = _qualified_name(declaration)
        if _memory_space(declaration) is not None:
            return name
        if declaration.usr not in self._local_names:
            if declaration.parent is not None and declaration.parent.kind in _FUNCTIONS:
                name = f"{declaration.parent.spelling}::{name}"
            used = {*self.variables, *self._local_names.values()}
            numbered = (f"{name} ({number})" for number in itertools.count(2))
            self._local_names[declaration.usr] = next(
                each for each in itertools.chain([name], numbered) if each not in used
            )
        return self._local_names[declaration.usr]

    def string(self, text: bytes) -> str:
        """Return the name of the constant array that holds a string."""
        name = f"the string {text.decode('latin-1')!r}"
        char = Scalar("int8")
        letters = tuple((index, build_constant(char, letter)) for index, letter in enumerate((*text, 0)))
        self.variables[name] = ir.GlobalVariable(name, "constant", ArrayOf(char, len(letters)), letters)
        return name

    def _register(self, cursor: Cursor, instances: tuple[str, ...]) -> None:
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition:
            if is_kernel(cursor):
                # Of two kernels in different namespaces, the second gets its qualified name.
                name = _qualified_name(cursor) if cursor.spelling in self._kernels else cursor.spelling
                self._kernels[name] = cursor
                if cursor.template is None:  # specializations have one
                    self._definitions.setdefault(_qualified_name(cursor), []).append(cursor)
            elif cursor.spelling == _INSTANCE_FUNCTION:
                for inner in cursor.descendants():
                    if inner.kind == CursorKind.DECL_REF_EXPR and inner.referenced is not None:
                        self._kernels[instances[sum(name in self._kernels for name in instances)]] = inner.referenced
                        break
        elif cursor.kind == CursorKind.FUNCTION_TEMPLATE and is_kernel(cursor):
            self._templates.add(cursor.spelling)
            if cursor.is_definition:
                self._definitions.setdefault(_qualified_name(cursor), []).append(cursor)
        elif cursor.kind == CursorKind.VAR_DECL and _memory_space(cursor):
            self.variable(cursor)
            if _memory_space(cursor) == "constant" and _find_initializer(cursor) is None:
                self.unset_constants[_qualified_name(cursor)] = cursor.position

    def _has_host_code(self) -> bool:
        return any(cursor.kind in (CursorKind.FUNCTION_DECL, *_METHODS) and _is_host(cursor) for cursor in self._bodies)

    def _raise_errors(self) -> None:
        """Raise the first error, as nvcc would; in a file with host code, errors are raised per function instead."""
        if self._errors and not self._has_host_code():
            raise self._errors[0].to_error(self._errors)

    def _lower_initializer(self, declaration: Cursor, type: Type) -> tuple[tuple[int, ir.Const], ...]:
        _check_nesting(declaration)
        value = _find_initializer(declaration)
        if value is None:
            return ()
        expressions = Expressions(Scope(self, ir.Function("", VOID), declaration))
        if isinstance(type, ArrayOf):
            elements, size = lower_array_braces(expressions, value, type), type.innermost.size
        else:
            # Clang evaluates calls of constexpr functions too.
            number = declaration.constant if isinstance(type, Scalar) else None
            element = expressions.convert(value, type) if number is None else build_constant(type, number)
            elements, size = [element], type.size
        return tuple(
            (number * size + offset, part)
            for number, element in enumerate(elements)
            for offset, part in find_constants(element, value)
        )


def _build_using_directive(name: str, text: str) -> str:
    """Return a using directive, so that template arguments are also looked up in the kernel's namespace."""
    namespace = name.partition("<")[0].rpartition("::")[0]
    is_namespace = namespace and re.search(rf"\bnamespace\s+(\w+::)*{namespace.rpartition('::')[2]}\b", text)
    return f"using namespace {namespace}; " if is_namespace else ""


def _check_nesting(cursor: Cursor) -> None:
    """Refuse code that is nested more deeply than the recursive IR walkers support."""
    deepest = cursor.find_deeper_nesting(nesting.MAX_STATEMENT_DEPTH, nesting.MAX_EXPRESSION_DEPTH)
    if deepest is not None:
        construct = "expression" if deepest.is_expression else "statement"
        levels = nesting.MAX_EXPRESSION_DEPTH if deepest.is_expression else nesting.MAX_STATEMENT_DEPTH
        position = get_reported_position(deepest)
        raise CompileError(
            f"{position}: this {construct} of {cursor.spelling} is nested more than {levels} levels deep.",
            position=position,
            advice="Divide it into several.",
        )


def _collect_declarations(outermost: Iterable[Cursor]) -> list[Cursor]:
    """Return the declarations of the file and its includes, including those within `extern "C"` and namespaces."""
    declarations = []
    for cursor in outermost:
        if not is_own(cursor):
            continue  # the shim's hundreds of declarations are found by reference
        if cursor.kind in _OUTER:
            declarations += _collect_declarations(cursor.children)
        else:
            declarations.append(cursor)
    return declarations


def _qualified_name(cursor: Cursor) -> str:
    """Return a name qualified with its namespaces and classes."""
    names = [cursor.spelling]
    outer = cursor.parent
    while outer is not None and outer.kind != CursorKind.TRANSLATION_UNIT:
        if outer.kind in _SCOPES and outer.spelling and not outer.spelling.startswith("("):
            names.append(outer.display_name)
        outer = outer.parent
    return "::".join(reversed(names))


def _is_host(cursor: Cursor) -> bool:
    on_device = is_kernel(cursor) or has_attribute(cursor, CursorKind.CUDADEVICE_ATTR)
    return not on_device and cursor.spelling != _INSTANCE_FUNCTION


def _memory_space(cursor: Cursor) -> ir.VariableSpace | None:
    if cursor.storage_class == StorageClass.EXTERN and not cursor.is_definition:
        return None
    if cursor.type.canonical.spelling.startswith("texture<"):
        return "texture"
    if has_attribute(cursor, CursorKind.CUDACONSTANT_ATTR):
        return "constant"
    return "global" if has_attribute(cursor, CursorKind.CUDADEVICE_ATTR) else None


def _variable_space(cursor: Cursor) -> ir.VariableSpace | None:
    """Return a variable's memory space: that of its declaration, or global for a static variable of a function."""
    in_function = cursor.parent is not None and cursor.parent.kind in _FUNCTIONS
    is_static = in_function and cursor.storage_class == StorageClass.STATIC
    return _memory_space(cursor) or ("global" if is_static else None)


def _is_constant_table(declaration: Cursor) -> bool:
    """Return whether an array's elements are const, which its canonical type does not show."""
    element = declaration.type
    while element.canonical.kind in ARRAYS:
        element = element.element_type
    return element.is_const


def _find_initializer(declaration: Cursor) -> Cursor | None:
    """Return a module variable's initializer, skipping expressions in its type such as extents."""
    children = [child for child in declaration.children if child.is_expression]
    if not children:
        return None
    last = children[-1]
    is_array = declaration.type.canonical.kind in ARRAYS
    if is_array and last.kind not in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL):
        return None
    if last.kind == CursorKind.CALL_EXPR and not last.arguments:
        return None  # a constructor without effect
    return last


def is_instantiation(name: str) -> bool:
    """Return whether a kernel's name has template arguments."""
    return re.fullmatch(r"[\w:]+\s*<.*>", name, re.DOTALL) is not None and not has_lambda_argument(name)
