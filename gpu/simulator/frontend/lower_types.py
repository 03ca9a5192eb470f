"""Clang's types as the IR's, and the words in which the front end refuses what it does not support."""

from __future__ import annotations

from clang import cindex

from gpu.errors import CompileError
from gpu.simulator.frontend.clang import Cursor, CursorKind, TypeKind, start_of
from gpu.simulator.types import BOOL, VOID, ArrayOf, Field, Pointer, Scalar, Struct, Type, leaves

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
    return type.get_canonical().kind in REFERENCES


class TypeLowering:
    """The types of one program: each struct is one object."""

    def __init__(self) -> None:
        self._structs: dict[str, Struct] = {}

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
        if kind == TypeKind.POINTER:
            return Pointer(self._pointee(canonical.get_pointee(), cursor))
        if kind in REFERENCES:
            return self.lower(canonical.get_pointee(), cursor)
        if kind == TypeKind.CONSTANTARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), canonical.element_count)
        if kind == TypeKind.INCOMPLETEARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), 0)
        if kind == TypeKind.RECORD:
            return self._struct(canonical, cursor)
        raise refuse(cursor, f"the type {type.spelling}")

    def _pointee(self, type: cindex.Type, cursor: Cursor) -> Type:
        if type.get_canonical().kind in (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO):
            raise refuse(cursor, "a pointer to a function", instead="Call the function by its name, or pass a functor.")
        return self.lower(type, cursor)

    def _struct(self, canonical: cindex.Type, cursor: Cursor) -> Struct:
        name = canonical.spelling
        if name in self._structs:
            return self._structs[name]
        declaration = canonical.get_declaration()
        if declaration.kind == CursorKind.UNION_DECL:
            raise refuse(cursor, f"the union {name}", instead="Use reinterpret_cast or __int_as_float.")
        struct = self._structs[name] = Struct(name)
        fields = [*self._bases(declaration.get_definition() or declaration, cursor)]
        for member in canonical.get_fields():
            if member.is_bitfield():
                raise refuse(cursor, f"the bit field {member.spelling} of {name}")
            offset = canonical.get_offset(member.spelling) if member.spelling else member.get_field_offsetof()
            fields.append(Field(member.spelling, self.lower(member.type, cursor), offset // 8))
        struct.fields, struct.size = tuple(fields), max(canonical.get_size(), 1)
        struct.alignment = canonical.get_align()
        return struct

    def _bases(self, definition: Cursor, cursor: Cursor) -> list[Field]:
        """Libclang gives no offset of a base class: the first one starts the object, an empty one takes no room."""
        bases: list[Field] = []
        for base in definition.get_children():
            if base.kind == CursorKind.CXX_BASE_SPECIFIER:
                inherited = self.lower(base.type, cursor)
                if bases and leaves(inherited):
                    raise refuse(cursor, f"{definition.spelling}, which has several base classes")
                bases.append(Field("", inherited, 0))
        return bases
