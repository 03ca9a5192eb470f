"""What objects hold when they come to life: braces, members' own initializers, and default constructors."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING

from gpu.simulator import ir
from gpu.simulator.frontend.clang import (
    ClangType,
    Cursor,
    CursorKind,
    TypeKind,
    start_of,
    string_of,
)
from gpu.simulator.frontend.conversions import convert, number_of, zero_of
from gpu.simulator.frontend.scope import Scope, decayed
from gpu.simulator.frontend.types import is_instantiated, is_reference, refuse, shown_members
from gpu.simulator.types import INT32, VOID, ArrayOf, Pointer, Scalar, Struct, Type

if TYPE_CHECKING:
    from gpu.simulator.frontend.expressions import Expressions

INSTEAD_OF_DESTRUCTOR = "Write a method for it, and call that where the object's life ends."
_SIZE = Scalar("uint64")
ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)


class Construction:
    """Lowers the initial values of one function's objects."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self._scope = scope
        self._expressions = expressions

    def braces(self, cursor: Cursor, type: Type, declared: ClangType | None = None) -> ir.Expression:
        """Lower `{...}` to a struct's value, or to a scalar's; what it leaves out is as without it, or zero."""
        given = deque(_expressions_of(cursor))
        if not isinstance(type, Struct):
            return self._expressions.converted(given[0], type) if given else zero_of(type)
        if type.is_union:
            return self._union(cursor, type, given)
        if declared is None and is_record(cursor.type):
            declared = cursor.type
        if declared is not None and not _is_aggregate(declared):
            return self._by_constructor(cursor, type, declared, list(given))
        return self._members(type, declared, given)

    def array_values(self, cursor: Cursor, type: ArrayOf, declared: ClangType | None = None) -> list[ir.Expression]:
        """Lower an array's braces to a value for each innermost element; what they leave out is as without them."""
        if cursor.kind == CursorKind.STRING_LITERAL:
            letters = [number_of(type.element, letter) for letter in bytes_of(cursor)]
            return letters + [zero_of(type.element)] * (type.count - len(letters))
        return self._elements(type, declared or cursor.type, deque(_expressions_of(cursor)))

    def _members(self, type: Struct, declared: ClangType | None, given: deque[Cursor]) -> ir.Expression:
        """Give each member what comes next."""
        sources = _sources(declared)
        named = {}
        if given and _designated(given[0]):
            for value in given:
                designator, inner = value.children
                named[designator.spelling] = inner
            given.clear()
        parts: list[ir.Expression] = []
        for member in type.fields:
            source = sources.get(member.name)
            if member.name in named:
                given.append(named[member.name])
            if not given or _is_left_out(given[0]):
                if given:
                    given.popleft()
                parts += [zero_of(member.type)] if source is None else self._of_member(source, member.type)
            elif member.is_reference:
                parts.append(self._expressions.address(given.popleft()))
            else:
                parts += self._next(member.type, None if source is None else source.type, given)
        return ir.Construct(type, tuple(parts))

    def _elements(self, type: ArrayOf, declared: ClangType, given: deque[Cursor]) -> list[ir.Expression]:
        """Give each element of an array what comes next."""
        inner = declared.canonical
        element = inner.element_type if inner.kind in ARRAYS else inner
        values: list[ir.Expression] = []
        if given:
            _designated(given[0])
        for number in range(type.length):
            if not given:
                missing = (type.length - number) * (type.count // type.length)
                if isinstance(type.innermost, Struct):
                    return values + self._default_elements(declared, type.innermost, missing)
                return values + [zero_of(type.innermost)] * missing
            values += self._next(type.element, element, given)
        return values

    def _next(self, type: Type, declared: ClangType | None, given: deque[Cursor]) -> list[ir.Expression]:
        """Take the next value, or where braces were left out as many as a member or an element needs."""
        first = given[0]
        if isinstance(type, ArrayOf) and first.kind not in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL):
            return self._elements(type, declared or first.type, given)
        is_plain = first.kind != CursorKind.INIT_LIST_EXPR
        if isinstance(type, Struct) and not type.is_union and is_plain and self._expressions.type_of(first) != type:
            if declared is None or _is_aggregate(declared):
                return [self._members(type, declared, given)]
            return [self._by_constructor(first, type, declared, [given.popleft()])]
        given.popleft()
        if isinstance(type, ArrayOf):
            return self.array_values(first, type, declared)
        if not is_plain:
            return [self.braces(first, type, declared)]
        return [self._expressions.converted(first, type)]

    def _by_constructor(self, cursor: Cursor, type: Struct, declared: ClangType, given: list[Cursor]) -> ir.Expression:
        """Lower braces, or a value to be converted, where clang does not say which constructor makes the object."""
        if not given:
            return self._default_object(declared, type)
        taking = [
            member
            for member in shown_members(declared.canonical.declaration)
            if member.kind == CursorKind.CONSTRUCTOR and len(member.arguments) == len(given)
        ]
        if len(taking) != 1 or taking[0].definition is None or is_instantiated(declared.declaration):
            name = declared.canonical.spelling
            raise refuse(cursor, f"this value for a {name}", instead=f"Name the type: {name}(...).")
        return self._expressions.constructed(type, taking[0], given)

    def default(self, type: Struct, declared: ClangType, *, given: Collection[str] = ()) -> ir.Expression:
        """Return what a struct holds without a constructor's doing: its members' own initializers, else zeros.

        Members that are `given` are initialized by others.
        """
        if type.is_union:
            return zero_of(type)
        sources = _sources(declared)
        parts: list[ir.Expression] = []
        for member in type.fields:
            source = sources.get(member.name)
            if source is None or member.name in given or member.is_reference:
                parts.append(zero_of(member.type))
            else:
                parts += self._of_member(source, member.type)
        return ir.Construct(type, tuple(parts))

    def default_array(self, declared: ClangType, type: ArrayOf) -> list[ir.Expression]:
        """Return what each innermost element of an array of structs holds that nothing was given; [] where nothing."""
        if not isinstance(type.innermost, Struct) or not is_constructed(declared):
            return []
        return self._default_elements(declared, type.innermost, type.count)

    def new(self, cursor: Cursor) -> ir.Expression:
        """Lower `new T`, `new T[n]` and `new (place) T`: memory from the heap or a place, and what it holds."""
        pointer = self._expressions.type_of(cursor)
        assert isinstance(pointer, Pointer)
        type, declared = pointer.element, cursor.type.canonical.pointee
        place: ir.Expression | None = None
        count: ir.Expression = number_of(_SIZE, 1)
        initial: Cursor | None = None
        is_array = declared.canonical.kind != TypeKind.ULONG or _names_extent(cursor)
        for part in _expressions_of(cursor):
            if part.type.canonical.spelling == "void *":
                place = self._expressions.value(part)
            elif is_array and part.type.canonical.kind == TypeKind.ULONG:
                count, is_array = self._expressions.converted(part, _SIZE), False
            else:
                initial = part
        if place is None:
            function = self._scope.function_called(self._scope.program.known("malloc"), start_of(cursor))
            size = ir.Binary(_SIZE, "*", count, number_of(_SIZE, type.size))
            place = ir.Call(function.type, function, (size,))
        held = ir.Local(pointer, self._scope.new_slot(), "new")
        made: ir.Expression = ir.Assign(pointer, held, convert(place, pointer, cursor))
        values: list[ir.Expression] = []
        if initial is not None and initial.type.canonical.kind in ARRAYS:
            if is_constructed(declared):
                values = self._default_elements(declared, type, _length(count, cursor))  # type: ignore[arg-type]
        elif initial is not None and (
            initial.kind != CursorKind.CALL_EXPR or not self._holds_nothing(initial, declared)
        ):
            values = [self._expressions.converted(initial, type)]
        for number, value in enumerate(values):
            element = ir.Element(type, held, number_of(INT32, number), start_of(cursor))
            made = ir.Sequence(VOID, made, ir.Assign(type, element, value))
        return ir.Sequence(pointer, made, held)

    def _holds_nothing(self, initial: Cursor, declared: ClangType) -> bool:
        return not initial.arguments and not is_constructed(declared)

    def delete(self, cursor: Cursor) -> ir.Expression:
        """Lower `delete`: what is freed is not given out again, and nothing else happens."""
        (operand,) = _expressions_of(cursor)
        if name := destructor(operand.type.canonical.pointee):
            raise refuse(cursor, f"an object of {name}, whose destructor does something", instead=INSTEAD_OF_DESTRUCTOR)
        return self._expressions.discarded(operand)

    def _default_elements(self, array: ClangType, element: Struct, count: int) -> list[ir.Expression]:
        return [self._default_object(_innermost(array), element) for _ in range(count)]

    def _default_object(self, declared: ClangType, type: Struct) -> ir.Expression:
        """Return what a struct holds that nothing was given: what its default constructor makes."""
        if not is_constructed(declared):
            return zero_of(type)
        constructor = default_constructor(declared)
        if constructor is not None:
            if is_instantiated(declared.canonical.declaration):
                name = declared.canonical.spelling
                raise refuse(
                    self._scope.definition,
                    f"the default constructor of {name} where it is not written out",
                    instead=f"Write it: {name}(), of a member behind the colon of its class's constructor.",
                )
            return self._expressions.constructed(type, constructor, [])
        return self.default(type, declared)

    def _of_member(self, source: Cursor, type: Type) -> list[ir.Expression]:
        """Return what a member, or a base class, holds by itself: a value, or one for each element of an array."""
        if source.kind == CursorKind.FIELD_DECL and (initial := initializer(source)) is not None:
            if isinstance(type, ArrayOf):
                return self.array_values(initial, type, source.type)
            if initial.kind == CursorKind.INIT_LIST_EXPR:
                return [self.braces(initial, type, source.type)]
            return [self._expressions.converted(initial, type)]
        if source.kind == CursorKind.CXX_BASE_SPECIFIER and not is_record(source.type):
            self._check_template(source)
            return [zero_of(type)]
        if isinstance(type, ArrayOf) and isinstance(type.innermost, Struct) and is_constructed(source.type):
            return self._default_elements(source.type, type.innermost, type.count)
        return [self._default_object(source.type, type) if isinstance(type, Struct) else zero_of(type)]

    def _check_template(self, base: Cursor) -> None:
        """Refuse a base class, which depends on a template's arguments, whose constructor would have to be found."""
        template = next((c.referenced for c in base.children if c.kind == CursorKind.TEMPLATE_REF), None)
        members = template.children if template is not None else []
        if any(
            (member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor)
            or (member.kind == CursorKind.FIELD_DECL and initializer(member) is not None)
            for member in members
        ):
            raise refuse(
                self._scope.definition,
                f"the default constructor of {base.spelling} where it is not written out",
                instead="Write it behind the colon of the constructor.",
            )

    def _union(self, cursor: Cursor, type: Struct, given: deque[Cursor]) -> ir.Expression:
        if not given or _is_left_out(given[0]):
            return zero_of(type)
        held = ir.Local(Pointer(type), self._scope.new_slot(), "a union")
        first = type.fields[0]
        place = ir.Element(first.type, ir.Member(Pointer(decayed(first.type)), held, 0), None, start_of(cursor))
        if isinstance(first.type, ArrayOf):
            raise refuse(cursor, "braces for a union that starts with an array", instead="Assign its elements.")
        fresh = ir.Assign(held.type, held, ir.Temporary(Pointer(type), zero_of(type)))
        value = self._expressions.converted(given[0], first.type)
        made = ir.Sequence(VOID, fresh, ir.Assign(first.type, place, value))
        return ir.Sequence(type, made, ir.Load(type, ir.Element(type, held, None, start_of(cursor))))


def _names_extent(new: Cursor) -> bool:
    """Whether brackets stand between a `new` and its initializer."""
    for spelling, offset in new.tokens():
        if spelling == "[" or (spelling in ("(", "{") and offset > new.start.offset + len("new ")):
            return spelling == "["
    return False


def _length(count: ir.Expression, cursor: Cursor) -> int:
    if not isinstance(count, ir.Const):
        raise refuse(cursor, "a new array of objects of which nobody knows how many", instead="Write their number.")
    return int(count.value)


def bytes_of(cursor: Cursor) -> bytes:
    """Return the bytes of a string literal, without the zero at its end."""
    return (string_of(cursor) or "").encode("latin-1", errors="replace")


def is_constructed(declared: ClangType) -> bool:
    """Whether an object of a type, or one of an array's, holds something when nothing was given."""
    declared = _innermost(declared)
    if not is_record(declared):
        return False
    if default_constructor(declared) is not None:
        return True
    return any(
        is_constructed(source.type) or (source.kind == CursorKind.FIELD_DECL and initializer(source) is not None)
        for source in _sources(declared).values()
    )


def default_constructor(declared: ClangType) -> Cursor | None:
    """Return the default constructor that a class's author wrote; of a template that of the template."""
    for member in shown_members(declared.canonical.declaration):
        if member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor:
            definition = member.definition
            return definition if definition is not None and not member.is_default_method else None
    return None


def destructor(declared: ClangType) -> str:
    """Return the name of the class, among a type, its members and bases, whose destructor does something; or ""."""
    declared = _innermost(declared)
    if is_reference(declared) or not is_record(declared):
        return ""
    declaration = declared.canonical.declaration
    for member in shown_members(declaration):
        if member.kind == CursorKind.DESTRUCTOR:
            body = (member.definition or member).children
            if any(part.children for part in body if part.kind == CursorKind.COMPOUND_STMT):
                return str(declaration.spelling)
    return next((name for source in _sources(declared).values() if (name := destructor(source.type))), "")


def _sources(declared: ClangType | None) -> dict[str, Cursor]:
    """Return what declares each member; a base class, of which there is one that is not empty, is named ""."""
    if declared is None:
        return {}
    canonical = declared.canonical
    found = {field.spelling: field for field in canonical.fields if field.spelling}
    for member in shown_members(canonical.declaration):
        if member.kind == CursorKind.CXX_BASE_SPECIFIER:
            found[""] = member
    return found


def initializer(declaration: Cursor) -> Cursor | None:
    """Return a variable's or a member's own initializer; a type's arguments and extents are expressions before it."""
    name = declaration.location.offset
    expressions = [child for child in declaration.children if child.is_expression and child.end.offset > name]
    if not expressions:
        return None
    last = expressions[-1]
    is_array = declaration.type.canonical.kind == TypeKind.CONSTANTARRAY
    return last if not is_array or last.kind in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL) else None


def _expressions_of(braces: Cursor) -> list[Cursor]:
    return [child for child in braces.children if child.is_expression]


def _designated(value: Cursor) -> bool:
    """Whether a value in braces says which member it is for."""
    children = value.children
    if value.kind != CursorKind.UNEXPOSED_EXPR or value.type.kind != TypeKind.VOID:
        return False
    if len(children) != 2 or children[0].kind != CursorKind.MEMBER_REF:
        raise refuse(value, "braces that name elements", instead="Give every member and element its place.")
    return True


def _is_aggregate(declared: ClangType) -> bool:
    """Whether braces give a class's members their values themselves: it has no constructor."""
    return not is_record(declared) or not any(
        member.kind == CursorKind.CONSTRUCTOR and not member.is_default_method
        for member in shown_members(declared.canonical.declaration)
    )


def _is_left_out(value: Cursor) -> bool:
    """Whether clang stands something in for what braces leave out."""
    return value.kind == CursorKind.UNEXPOSED_EXPR and not value.children and value.constant is None


def _innermost(type: ClangType) -> ClangType:
    type = type.canonical
    while type.kind in ARRAYS:
        type = type.element_type.canonical
    return type


def is_record(type: ClangType) -> bool:
    """Whether a type is a struct, a class or a union."""
    return bool(type.canonical.kind == TypeKind.RECORD)
