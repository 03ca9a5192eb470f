"""Clang's types as the IR's, and the words in which the front end refuses what it does not support."""

from __future__ import annotations

from clang import cindex

from gpu.errors import CompileError
from gpu.simulator.clang import Cursor, TypeKind, start_of
from gpu.simulator.types import BOOL, VOID, ArrayOf, Pointer, Scalar, Type

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


def refuse(cursor: Cursor, construct: str, *, instead: str = "") -> CompileError:
    """Make the error for something that the simulator does not run."""
    position = start_of(cursor)
    return CompileError(f"{position}: the simulator does not support {construct}.", position=position, advice=instead)


def lower_type(type: cindex.Type, cursor: Cursor) -> Type:
    """Return the IR's type; `cursor` is where a refusal points."""
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
        return lower_type(canonical.get_declaration().enum_type, cursor)
    if kind == TypeKind.POINTER:
        return Pointer(lower_type(canonical.get_pointee(), cursor))
    if kind == TypeKind.CONSTANTARRAY:
        return ArrayOf(lower_type(canonical.element_type, cursor), canonical.element_count)
    if kind == TypeKind.INCOMPLETEARRAY:
        return ArrayOf(lower_type(canonical.element_type, cursor), 0)
    raise refuse(cursor, f"the type {type.spelling}")
