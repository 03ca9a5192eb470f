"""The front end: CUDA C++ text to the IR's functions and variables, one kernel at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from gpu.errors import CompileError, KernelError, SourcePosition
from gpu.simulator import ir, nesting
from gpu.simulator.frontend.addresses import is_reference_function
from gpu.simulator.frontend.clang import (
    UNUSED_PARAMETER,
    Cursor,
    CursorKind,
    Diagnosis,
    StorageClass,
    TypeKind,
    as_if_at,
    has_attribute,
    is_kernel,
    is_own,
    parse,
    start_of,
)
from gpu.simulator.frontend.classes import ARRAYS
from gpu.simulator.frontend.construction import array_values
from gpu.simulator.frontend.conversions import convert, number_of
from gpu.simulator.frontend.coverage import unreached_lines
from gpu.simulator.frontend.expressions import Expressions
from gpu.simulator.frontend.functions import lower_function
from gpu.simulator.frontend.launched_lambdas import LaunchedLambdas, names_lambda
from gpu.simulator.frontend.scope import Scope
from gpu.simulator.frontend.types import TypeLowering, decayed, refuse
from gpu.simulator.types import VOID, ArrayOf, Pointer, Scalar, Type, leaves

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
_NAMED = (CursorKind.NAMESPACE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
_INSTANCE = "lockstep_instance"

nesting.make_room()


class Program:
    """A parsed kernel file. What a kernel needs is lowered when the kernel is asked for, and refused then.

    Parameters
    ----------
    text : str
        The source. It may hold host code too, which is left alone.
    path : Path
        The file it belongs to.
    defines : mapping
        Macros.
    instances : tuple of str
        The instantiations of kernel templates that are wanted, such as "reduce<float, 256>".
    include_dirs : sequence of Path
        Where includes are looked for, other than beside the file.
    tolerant : bool
        Whether an error in one function spares the others; any other error is then raised by `kernel`.
    again : bool
        Whether texts of this file are parsed one after the other; the program of the time before is void.

    Raises
    ------
    CompileError
        What clang rejects, but for errors in host code.
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
        again: bool = False,
    ) -> None:
        self._path, self._text = path, text
        self.types = TypeLowering()
        self.variables: dict[str, ir.GlobalVariable] = {}
        self.unset_constants: dict[str, SourcePosition] = {}
        """The `__constant__` variables without an initializer, and where they are declared."""
        self._functions: dict[tuple[Cursor, SourcePosition | None], ir.Function] = {}
        self._with_shared: dict[Cursor, bool] = {}
        self.functions_by_number: dict[int, ir.Function] = {}
        self._kernels: dict[str, Cursor] = {}
        self._definitions: dict[str, list[Cursor]] = {}
        self._templates: set[str] = set()
        hidden = "".join(
            f"\nvoid {_INSTANCE}() {{ {_seen_from(name, text)}auto lockstep_pointer = &{name}; }}" for name in instances
        )
        self._tree, self._said = parse(text + hidden, path, defines, include_dirs, again=again)
        self._errors = [found for found in self._said if found.is_error]
        declarations = _declarations(self._tree.declarations)
        self._bodies = [cursor for cursor in declarations if cursor.kind in _WITH_BODY and cursor.is_definition]
        for cursor in declarations:
            self._enter(cursor, instances)
        self._tolerant = tolerant
        functions = [body for body in self._bodies if body.kind in _FUNCTIONS]
        self._loose = [error for error in self._errors if not any(error.lies_in(body) for body in functions)]
        self._sound: set[Cursor] = set()
        self._nobodys = [error for error in self._loose if not any(error.lies_in(each) for each in declarations)]
        if not tolerant:
            self._raise_errors()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the `__global__` functions that no other one has; of templates, those that are instantiated."""
        return tuple(name for name in self._kernels if len(self._plain(name)) < 2)

    @property
    def overloads(self) -> tuple[str, ...]:
        """The `__global__` functions that share their names, each with its line: "reduce@12"."""
        return tuple(
            f"{name}@{cursor.position.line}"
            for name in self._definitions
            for cursor in (self._plain(name) if len(self._plain(name)) > 1 else ())
        )

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the `__global__` templates."""
        return tuple(sorted(self._templates))

    @property
    def symbols(self) -> dict[str, str]:
        """The kernels by the names that a linker knows them by: of `extern "C"` ones their own."""
        overloads = {
            cursor.symbol: f"{name}@{cursor.position.line}"
            for name in self._definitions
            for cursor in (self._plain(name) if len(self._plain(name)) > 1 else ())
        }
        return {cursor.symbol: name for name, cursor in self._kernels.items()} | overloads

    def unreached(
        self, lines: Collection[int], reached: Collection[SourcePosition], kernels: Collection[str]
    ) -> set[int]:
        """Return those of the file's lines that hold code which no thread came to.

        Parameters
        ----------
        lines : collection of int
        reached : collection of SourcePosition
            What threads came to.
        kernels : collection of str
            The kernels that matter, beside all that is no kernel.
        """
        name = self._path.name
        functions = (
            body
            for body in self._bodies
            if body.position.file == name and (not is_kernel(body) or body.spelling in kernels)
        )
        return unreached_lines(
            functions, self._text.split("\n"), lines, [place for place in reached if place.file == name]
        )

    def kernel(self, name: str) -> ir.Function:
        """Lower a kernel and all that it calls.

        Raises
        ------
        KernelError
            There is no kernel of that name.
        CompileError
            It uses something that the simulator does not support.
        """
        if self._nobodys and not self._has_host_code():
            # An #error, or a header that is not there: no function answers for it, and no host code needs it.
            raise self._nobodys[0].error(self._errors)
        if len(self._plain(name)) > 1:
            raise self._ambiguous(name, self._plain(name))
        if name in self._kernels:
            return self.function(self._kernels[name])
        if names_lambda(name) and (launched := self._launched.kernel(name)) is not None:
            return self.function(launched)
        if name in self._templates:
            raise KernelError(f"{name} is a template: name an instantiation, such as {name}<float>.")
        same = self._definitions.get(name.partition("<")[0].rstrip(), ())
        if "<" in name and len(same) > 1:
            raise self._ambiguous(name, same)
        for error in self._errors:
            if not any(_is_host(body) and error.lies_in(body) for body in self._bodies):
                raise error.error()
        known = ", ".join((*self.kernels, *self.overloads, *sorted(self._templates))) or "none"
        reason = f"{self._path.name} has no kernel {name!r}; it has {known}."
        host = next((body for body in self._bodies if body.spelling == name and not is_kernel(body)), None)
        if host is None:
            raise KernelError(reason)
        raise KernelError(f"{reason} {name} in line {host.position.line} is not __global__.", position=host.position)

    @cached_property
    def _launched(self) -> LaunchedLambdas:
        return LaunchedLambdas.of(body for body in self._bodies if body.kind in _FUNCTIONS)

    def alone(self, name: str, line: int) -> str:
        """Return the text without the kernels that share a name, but for the one that has a line; all lines stay.

        Raises
        ------
        KernelError
            None of them has that line.
        """
        same = self._definitions.get(name.partition("<")[0].rstrip(), ())
        places = [(each.start.offset, each.end.offset) for each in same if each.start.file == str(self._path)]
        data = self._text.encode()
        lines = [(data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end) + 1) for start, end in places]
        chosen = next(
            (place for place, (first, last) in zip(places, lines, strict=True) if first <= line <= last), None
        )
        if chosen is None:
            known = ", ".join(f"{name}@{first}" for first, _ in lines) or "none of that name"
            raise KernelError(f"{self._path.name} has no kernel {name} at line {line}; it has {known}.")
        for start, end in places:
            if (start, end) != chosen:
                data = data[:start] + re.sub(rb"[^\n]", b" ", data[start:end]) + data[end:]
        return data.decode()

    def _plain(self, name: str) -> list[Cursor]:
        """Return the kernels of a name that are no templates."""
        return [each for each in self._definitions.get(name, ()) if each.kind == CursorKind.FUNCTION_DECL]

    def _ambiguous(self, name: str, cursors: Sequence[Cursor]) -> KernelError:
        first, *others = sorted(each.position.line for each in cursors)
        lines = f"{', '.join(map(str, [first, *others[:-1]]))} and {others[-1]}"
        return KernelError(
            f"{self._path.name} has several kernels {name}, at lines {lines}: name one by its line, as {name}@{first}."
        )

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield what clang says of the file, but for what concerns host code alone, which never runs here.

        Helpers may share parameters that not each of them uses; a kernel's is given by somebody who expects something,
        and in one with errors what would use it may be lost.
        """
        has_host_code = self._has_host_code()
        for found in self._said:
            body = next((body for body in self._bodies if found.lies_in(body)), None)
            if found.option == UNUSED_PARAMETER and (
                body is None or not is_kernel(body) or any(error.lies_in(body) for error in self._errors)
            ):
                continue
            if not has_host_code or (body is not None and not _is_host(body)):
                yield found

    def warnings(self, name: str) -> Iterator[Diagnosis]:
        """Yield the warnings that concern a kernel: those in its own text, and in what is no kernel."""
        others = [body for body in self._bodies if is_kernel(body) and body.location != self._kernels[name].location]
        for found in self.diagnoses():
            if not found.is_error and not any(found.lies_in(body) for body in others):
                yield found

    def outputs(self, name: str) -> dict[str, SourcePosition]:
        """Return the parameters through which a kernel may write, and where they stand."""
        parameters = [each for each in self._kernels[name].children if each.kind == CursorKind.PARM_DECL]
        return {
            each.spelling: each.position
            for each in parameters
            if each.type.canonical.kind == TypeKind.POINTER and not each.type.canonical.pointee.is_const
        }

    def function(self, cursor: Cursor, place: SourcePosition | None = None) -> ir.Function:
        """Return the IR of a function that has a body, lowering it the first time.

        What a header of the shim defines is lowered for each `place` that calls it, and is as if it stood there, but
        for what has `__shared__` variables of its own: these are the same wherever it is called.
        """
        definition = cursor.definition
        if definition is None:
            # An error in a template's body leaves its instantiations without one.
            template = cursor.template
            for error in self._errors:
                if template is not None and error.lies_in(template):
                    raise error.error(self._errors)
            raise refuse(cursor, f"the function {cursor.spelling}, which has no body here")
        # Lambdas share a name with others of the same function, and so do the instantiations for them.
        place = None if is_own(definition) or self._has_shared(definition) else place
        key = definition, place
        if key not in self._functions:
            for error in self._errors:
                if error.lies_in(definition):
                    raise error.error(self._errors)
            if self._loose and is_own(definition):
                self._check_names(definition)
            _check_nesting(definition)
            result = VOID if definition.kind == CursorKind.CONSTRUCTOR else self._result_type(definition)
            function = ir.Function(definition.spelling, result)
            before = len(self._functions)
            self._functions[key] = function
            try:
                with as_if_at(place):
                    lower_function(self, function, definition)
            except CompileError:
                # What was lowered since may call this one, which is not whole: none of it is kept.
                for later in list(self._functions)[before:]:
                    del self._functions[later]
                raise
        return self._functions[key]

    def _has_shared(self, definition: Cursor) -> bool:
        """Whether a function declares `__shared__` variables."""
        if definition not in self._with_shared:
            self._with_shared[definition] = any(
                each.kind == CursorKind.VAR_DECL and has_attribute(each, CursorKind.CUDASHARED_ATTR)
                for each in definition.descendants()
            )
        return self._with_shared[definition]

    def _check_names(self, cursor: Cursor) -> None:
        """Raise the error that spoils what a function names: a type, a variable, or what either of these names.

        Clang goes on after an error as if what is unknown were an int, or not there.
        """
        for inner in (each for part in (cursor, cursor.template) if part is not None for each in part.descendants()):
            named = inner.referenced
            if named is None or named.kind not in _NAMES_CHECKED or named in self._sound or not is_own(named):
                continue
            self._sound.add(named)
            methods = [each for each in named.descendants() if each.kind in _FUNCTIONS]
            for error in self._loose:
                if error.lies_in(named) and not any(error.lies_in(method) for method in methods):
                    self._sound.discard(named)
                    raise error.error(self._errors)
            self._check_names(named)

    def known(self, name: str) -> Cursor:
        """Return a function that a header of the shim defines."""
        return next(each for each in self._tree.root.children if each.spelling == name and each.is_definition)

    def function_number(self, cursor: Cursor) -> int:
        """Return what a pointer to a function holds: a number that is the same in every program of one text."""
        function = self.function(cursor)
        definition = cursor.definition or cursor
        name = definition.usr or f"{definition.location.offset}"
        while True:
            number = int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "little") | 1
            if self.functions_by_number.setdefault(number, function) is function:
                return number
            name += "'"  # of another function, as those for lambdas are called

    def _result_type(self, definition: Cursor) -> Type:
        type = self.types.lower(definition.result_type, definition)
        return Pointer(decayed(type)) if is_reference_function(definition) else type

    def is_variable(self, declaration: Cursor) -> bool:
        """Whether a name is a variable in the device's memory, whatever its initializer."""
        return _space(declaration) is not None and not declaration.type.is_const

    def variable(self, declaration: Cursor) -> ir.GlobalVariable | None:
        """Return a variable of the module, or a constant table; None for any other name."""
        if declaration.kind != CursorKind.VAR_DECL:
            return None
        name = _qualified(declaration) if _space(declaration) else declaration.usr
        if name not in self.variables:
            space = _space(declaration)
            if space is None and _initial_value(declaration) is not None and _is_constant_table(declaration):
                space = "constant"
            if space is None:
                return None
            type = self.types.lower(declaration.type, declaration)
            self.variables[name] = ir.GlobalVariable(name, space, type, self._initial(declaration, type))
        return self.variables[name]

    def string(self, text: bytes) -> str:
        """Return the name of the constant array that holds a string."""
        name = f"the string {text.decode('latin-1')!r}"
        char = Scalar("int8")
        letters = tuple((place, number_of(char, letter)) for place, letter in enumerate((*text, 0)))
        self.variables[name] = ir.GlobalVariable(name, "constant", ArrayOf(char, len(letters)), letters)
        return name

    def _enter(self, cursor: Cursor, instances: tuple[str, ...]) -> None:
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition:
            if is_kernel(cursor):
                # Of two in different namespaces, the second one goes by its whole name.
                name = _qualified(cursor) if cursor.spelling in self._kernels else cursor.spelling
                self._kernels[name] = cursor
                if cursor.template is None:  # which a specialization has
                    self._definitions.setdefault(_qualified(cursor), []).append(cursor)
            elif cursor.spelling == _INSTANCE:
                for inner in cursor.descendants():
                    if inner.kind == CursorKind.DECL_REF_EXPR and inner.referenced is not None:
                        self._kernels[instances[_number_of_instances(self._kernels, instances)]] = inner.referenced
                        break
        elif cursor.kind == CursorKind.FUNCTION_TEMPLATE and is_kernel(cursor):
            self._templates.add(cursor.spelling)
            if cursor.is_definition:
                self._definitions.setdefault(_qualified(cursor), []).append(cursor)
        elif cursor.kind == CursorKind.VAR_DECL and _space(cursor):
            self.variable(cursor)
            if _space(cursor) == "constant" and _initial_value(cursor) is None:
                self.unset_constants[_qualified(cursor)] = cursor.position

    def _has_host_code(self) -> bool:
        return any(cursor.kind in (CursorKind.FUNCTION_DECL, *_METHODS) and _is_host(cursor) for cursor in self._bodies)

    def _raise_errors(self) -> None:
        """Raise the first error, as nvcc would; but in a file with host code each function answers for its own."""
        if self._errors and not self._has_host_code():
            raise self._errors[0].error(self._errors)

    def _initial(self, declaration: Cursor, type: Type) -> tuple[tuple[int, ir.Const], ...]:
        _check_nesting(declaration)
        value = _initial_value(declaration)
        if value is None:
            return ()
        expressions = Expressions(Scope(self, ir.Function("", VOID), declaration))
        if isinstance(type, ArrayOf):
            elements, size = array_values(expressions, value, type), type.innermost.size
        else:
            elements, size = [expressions.converted(value, type)], type.size
        return tuple(
            (number * size + offset, part)
            for number, element in enumerate(elements)
            for offset, part in _constants(element, value)
        )


def _seen_from(name: str, text: str) -> str:
    """Return what has the arguments of an instantiation looked for in the kernel's own namespace too."""
    namespace = name.partition("<")[0].rpartition("::")[0]
    is_one = namespace and re.search(rf"\bnamespace\s+(\w+::)*{namespace.rpartition('::')[2]}\b", text)
    return f"using namespace {namespace}; " if is_one else ""


def _check_nesting(cursor: Cursor) -> None:
    """Refuse what is nested deeper than all that walks through it reaches."""
    deepest = cursor.nested_deeper_than(nesting.STATEMENTS, nesting.EXPRESSIONS)
    if deepest is not None:
        what = "expression" if deepest.is_expression else "statement"
        levels = nesting.EXPRESSIONS if deepest.is_expression else nesting.STATEMENTS
        position = start_of(deepest)
        raise CompileError(
            f"{position}: this {what} of {cursor.spelling} is nested more than {levels} levels deep.",
            position=position,
            advice="Divide it into several.",
        )


def _constants(value: ir.Expression, cursor: Cursor) -> list[tuple[int, ir.Const]]:
    """Return the constants that a value is made of, with their offsets."""
    if isinstance(value, ir.Const):
        return [(0, value)]
    if isinstance(value, ir.Construct):
        flat = [part for inner in value.parts for _, part in _constants(inner, cursor)]
        return [
            (offset, convert(part, leaf, cursor))  # type: ignore[misc]
            for (offset, leaf), part in zip(leaves(value.type), flat, strict=True)
        ]
    raise CompileError(
        f"{start_of(cursor)}: a variable of the module starts with constants only.", position=start_of(cursor)
    )


def _number_of_instances(kernels: Mapping[str, Cursor], instances: tuple[str, ...]) -> int:
    return sum(name in kernels for name in instances)


def _declarations(outermost: Iterable[Cursor]) -> list[Cursor]:
    """Return the declarations of the file and its includes, those within `extern "C"` and namespaces too."""
    found = []
    for cursor in outermost:
        if not is_own(cursor):
            continue  # the shim's: hundreds, and found by reference when they are used
        if cursor.kind in _OUTER:
            found += _declarations(cursor.children)
        else:
            found.append(cursor)
    return found


def _qualified(cursor: Cursor) -> str:
    """Return a name with the namespaces and classes that it is in, as a user writes it."""
    names = [cursor.spelling]
    outer = cursor.parent
    while outer is not None and outer.kind != CursorKind.TRANSLATION_UNIT:
        if outer.kind in _NAMED and outer.spelling and not outer.spelling.startswith("("):
            names.append(outer.display_name)
        outer = outer.parent
    return "::".join(reversed(names))


def _is_host(cursor: Cursor) -> bool:
    on_device = is_kernel(cursor) or has_attribute(cursor, CursorKind.CUDADEVICE_ATTR)
    return not on_device and cursor.spelling != _INSTANCE


def _space(cursor: Cursor) -> ir.VariableSpace | None:
    if cursor.storage_class == StorageClass.EXTERN:
        return None
    if cursor.type.canonical.spelling.startswith("texture<"):
        return "texture"
    if has_attribute(cursor, CursorKind.CUDACONSTANT_ATTR):
        return "constant"
    return "global" if has_attribute(cursor, CursorKind.CUDADEVICE_ATTR) else None


def _is_constant_table(declaration: Cursor) -> bool:
    """An array's const is that of its elements, which its canonical type has lost."""
    element = declaration.type
    while element.canonical.kind in ARRAYS:
        element = element.element_type
    return element.is_const


def _initial_value(declaration: Cursor) -> Cursor | None:
    """Return a module variable's initializer; an array's extents are expressions too."""
    children = [child for child in declaration.children if child.is_expression]
    if not children:
        return None
    last = children[-1]
    is_array = declaration.type.canonical.kind in ARRAYS
    if is_array and last.kind not in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL):
        return None
    if last.kind == CursorKind.CALL_EXPR and not last.arguments:
        return None  # a constructor that does nothing
    return last


def is_instantiation(name: str) -> bool:
    """Whether a kernel's name has template arguments."""
    return re.fullmatch(r"[\w:]+\s*<.*>", name, re.DOTALL) is not None and not names_lambda(name)
