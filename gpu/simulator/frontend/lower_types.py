"""Clang's types as the IR's, and the words in which the front end refuses what it does not support."""

from __future__ import annotations

from clang import cindex

from gpu.errors import CompileError
from gpu.simulator.frontend.clang import Cursor, CursorKind, TypeKind, children_of, start_of
from gpu.simulator.frontend.closures import is_closure, name_of_capture
from gpu.simulator.types import BOOL, FUNCTION_POINTER, VOID, ArrayOf, Field, Pointer, Scalar, Struct, Type, leaves

_SIGNED = {TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
_UNSIGNED = {
    TypeKind.CHAR_U,
    TypeKind.UCHAR,
    TypeKind.USHORT,
    TypeKind.UINT,
    TypeKind.ULONG,
    TypeKind.ULONGLONG,
}
_FLOATS = {TypeKind.FLOAT: Scalar("float32"), TypeKind.DOUBLE: Scalar("float64")}
REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)


def refuse(cursor: Cursor, construct: str, *, instead: str = "") -> CompileError:
    """Make the error for something that the simulator does not run."""
    position = start_of(cursor)
    return CompileError(f"{position}: the simulator does not support {construct}.", position=position, advice=instead)


def is_reference(type: cindex.Type) -> bool:
    """Whether a type of clang's is `T &` or `T &&`."""
    return type.get_canonical().kind in REFERENCES and not is_function_type(type)


def is_function_type(type: cindex.Type) -> bool:
    """Whether a type is that of a function, or of a pointer or a reference to one."""
    canonical = type.get_canonical()
    if canonical.kind in (TypeKind.POINTER, *REFERENCES):
        canonical = canonical.get_pointee().get_canonical()
    return bool(canonical.kind == TypeKind.FUNCTIONPROTO)


def is_instantiated(declaration: Cursor) -> bool:
    """Whether a class is one that clang has made of a template: libclang shows its fields, and no other member."""
    return not children_of(declaration) and _template_of(declaration) is not None


def shown_members(declaration: Cursor) -> list[Cursor]:
    """Return the members of a class; of an instantiation those of its template."""
    template = _template_of(declaration) if is_instantiated(declaration) else None
    return children_of(template or declaration.get_definition() or declaration)


def _template_of(declaration: Cursor) -> Cursor | None:
    template: Cursor | None = cindex.conf.lib.clang_getSpecializedCursorTemplate(declaration)
    return template


class TypeLowering:
    """The types of one program: each struct is one object."""

    def __init__(self) -> None:
        self._structs: dict[int, Struct] = {}

    def lower(self, type: cindex.Type, cursor: Cursor) -> Type:
        """Return the IR's type, of a reference the type that it refers to; `cursor` is where a refusal points."""
        canonical = type.get_canonical()
        kind = canonical.kind
        if kind == TypeKind.VOID:
            return VOID
        if kind == TypeKind.BOOL:
            return BOOL
        if kind in _FLOATS:
            return _FLOATS[kind]
        if kind in _SIGNED:
            return Scalar(f"int{8 * canonical.get_size()}")
        if kind in _UNSIGNED:
            return Scalar(f"uint{8 * canonical.get_size()}")
        if kind == TypeKind.ENUM:
            return self.lower(canonical.get_declaration().enum_type, cursor)
        if is_function_type(canonical):
            return FUNCTION_POINTER
        if kind == TypeKind.POINTER:
            return Pointer(self.lower(canonical.get_pointee(), cursor))
        if kind in REFERENCES:
            return self.lower(canonical.get_pointee(), cursor)
        if kind == TypeKind.CONSTANTARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), canonical.element_count)
        if kind == TypeKind.INCOMPLETEARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), 0)
        if kind == TypeKind.RECORD:
            return self._struct(canonical, cursor)
        raise refuse(cursor, f"the type {type.spelling}", instead="Use integers, float, double, and structs of them.")

    def _struct(self, canonical: cindex.Type, cursor: Cursor) -> Struct:
        declaration = canonical.get_declaration()
        # By what declares it: lambdas, and what is declared in functions, share names.
        key, name = declaration.hash, canonical.spelling
        if key in self._structs:
            return self._structs[key]
        struct = self._structs[key] = Struct(name, is_union=declaration.kind == CursorKind.UNION_DECL)
        first = next((field.get_field_offsetof() // 8 for field in canonical.get_fields()), canonical.get_size())
        fields = [*self._bases(declaration.get_definition() or declaration, cursor, first)]
        for member in canonical.get_fields():
            if member.is_bitfield():
                raise refuse(cursor, f"the bit field {member.spelling} of {name}", instead="Use shifts and masks.")
            is_named = bool(member.spelling) and "(anonymous " not in member.spelling
            offset = canonical.get_offset(member.spelling) if is_named else member.get_field_offsetof()
            type = self.lower(member.type, cursor)
            named = name_of_capture(member) if is_closure(declaration) else member.spelling
            by_reference = is_reference(member.type)
            held = Pointer(type.innermost if isinstance(type, ArrayOf) else type) if by_reference else type
            fields.append(Field(named, held, offset // 8, type if by_reference else None))
        struct.fields, struct.size = tuple(fields), max(canonical.get_size(), 1)
        struct.alignment = canonical.get_align()
        return struct

    def _bases(self, definition: Cursor, cursor: Cursor, start: int) -> list[Field]:
        """Libclang gives no offset of a base class: the first one starts the object, an empty one takes no room."""
        bases: list[Field] = []
        for base in shown_members(definition):
            if base.kind == CursorKind.CXX_BASE_SPECIFIER:
                if is_instantiated(definition) and base.type.get_canonical().kind != TypeKind.RECORD:
                    # Nor does it say which base class that is a template's an instantiation has: its bytes are copied.
                    alignment = next(size for size in (8, 4, 2, 1) if start % size == 0)
                    return [Field("", Struct("a base class", (), start, alignment, is_union=True), 0)] if start else []
                inherited = self.lower(base.type, cursor)
                if bases and leaves(inherited):
                    raise refuse(
                        cursor, f"{definition.spelling}, which has several base classes", instead="Make them members."
                    )
                bases.append(Field("", inherited, 0))
        return bases
