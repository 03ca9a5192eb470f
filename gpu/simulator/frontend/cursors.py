"""Clang's syntax tree as plain objects, which ask libclang once for each thing and keep the answer."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping
from ctypes import byref
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, overload

from clang import cindex
from clang.cindex import CursorKind, StorageClass, TypeKind

from gpu.errors import SourcePosition
from gpu.simulator.frontend import libclang
from gpu.simulator.frontend.child_launches import Edits
from gpu.simulator.frontend.libclang import String, decoded, function

T = TypeVar("T")


class _AskedOnce(Generic[T]):
    """An attribute that is worked out when it is first asked for, and then is the object's own."""

    def __init__(self, answer: Callable[[Any], T]) -> None:
        self._answer = answer
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, asked: None, owner: type) -> _AskedOnce[T]: ...
    @overload
    def __get__(self, asked: object, owner: type) -> T: ...
    def __get__(self, asked: object | None, owner: type) -> _AskedOnce[T] | T:
        if asked is None:
            return self
        answer = self._answer(asked)
        setattr(asked, self._name, answer)
        return answer


def _text(name: str) -> _AskedOnce[str]:
    ask = function(name, String)
    return _AskedOnce(lambda asked: decoded(ask(asked.raw)))


def _number(name: str) -> _AskedOnce[int]:
    ask = function(name, ctypes.c_longlong)
    return _AskedOnce(lambda asked: ask(asked.raw))


def _flag(name: str) -> _AskedOnce[bool]:
    ask = function(name, ctypes.c_uint)
    return _AskedOnce(lambda asked: bool(ask(asked.raw)))


def _cursor(name: str) -> _AskedOnce[Cursor | None]:
    ask = function(name, cindex.Cursor)
    return _AskedOnce(lambda asked: asked.tree.cursor(ask(asked.raw)))


def _type(name: str) -> _AskedOnce[ClangType]:
    ask = function(name, cindex.Type)
    return _AskedOnce(lambda asked: asked.tree.type(ask(asked.raw)))


class SourceOffset(NamedTuple):
    """Where something stands, of a macro's text where the macro is used; what clang made up has no `file`."""

    file: str
    offset: int


_storage_class = function("clang_Cursor_getStorageClass", ctypes.c_int)
_type_declaration = function("clang_getTypeDeclaration", cindex.Cursor)
_offset_of = function("clang_Type_getOffsetOf", ctypes.c_longlong)
_cursor_at = function("clang_getCursor", cindex.Cursor)
_location = function("clang_getCursorLocation", cindex.SourceLocation)
_extent = function("clang_getCursorExtent", cindex.SourceRange)
_start = function("clang_getRangeStart", cindex.SourceLocation)
_end = function("clang_getRangeEnd", cindex.SourceLocation)
_expansion = function("clang_getExpansionLocation", None)
_spelled = function("clang_getSpellingLocation", None)
_written = function("clang_getFileLocation", None)
_file_name = function("clang_getFileName", String)
_content = function("clang_getFileContents", ctypes.c_void_p)

_number_of_template_arguments = function("clang_Cursor_getNumTemplateArguments", ctypes.c_int)
_template_argument_type = function("clang_Cursor_getTemplateArgumentType", cindex.Type)
_template_argument_value = function("clang_Cursor_getTemplateArgumentValue", ctypes.c_longlong)

_CURSOR_KINDS = {kind.value: kind for kind in CursorKind.get_all_kinds()}
_TYPE_KINDS = {kind.value: kind for kind in TypeKind._kinds if kind is not None}  # noqa: SLF001
_EXPRESSIONS = frozenset(kind for kind in _CURSOR_KINDS.values() if kind.is_expression())
_DECLARATIONS = frozenset(kind.value for kind in _CURSOR_KINDS.values() if kind.is_declaration())
_WITHOUT_CHILDREN = frozenset(
    (
        CursorKind.INTEGER_LITERAL,
        CursorKind.FLOATING_LITERAL,
        CursorKind.CHARACTER_LITERAL,
        CursorKind.CXX_BOOL_LITERAL_EXPR,
        CursorKind.STRING_LITERAL,
        CursorKind.CXX_THIS_EXPR,
        CursorKind.TYPE_REF,
        CursorKind.NULL_STMT,
        CursorKind.BREAK_STMT,
        CursorKind.CONTINUE_STMT,
    )
)
_NOTHING = CursorKind.INVALID_FILE.value

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_printing = function("clang_getCursorPrettyPrinted", String)
_policy = function("clang_getCursorPrintingPolicy", ctypes.c_void_p)
_dispose_policy = function("clang_PrintingPolicy_dispose", None)

_ONE_MACRO = re.compile(r"\w+\s*\(.*\)", re.DOTALL)


@cache
def _last_part(path: str) -> str:
    return Path(path).name


class TemplateArgument(NamedTuple):
    """An argument of a template as it is written, and what declares it where it is a class."""

    text: str
    declaration: Cursor | None


class Cursor:
    """A node of clang's syntax tree. Of one declaration there is one cursor, so that those are compared by identity.

    Parameters
    ----------
    raw : clang.cindex.Cursor
        What libclang takes for it.
    tree : SyntaxTree
        The tree that it is of.
    """

    def __init__(self, raw: cindex.Cursor, tree: SyntaxTree) -> None:
        self.raw = raw
        self.tree = tree
        self.kind: CursorKind = _CURSOR_KINDS[raw._kind_id]  # noqa: SLF001
        self.is_expression = self.kind in _EXPRESSIONS

    spelling = _text("clang_getCursorSpelling")
    display_name = _text("clang_getCursorDisplayName")
    usr = _text("clang_getCursorUSR")
    symbol = _text("clang_Cursor_getMangling")
    referenced = _cursor("clang_getCursorReferenced")
    definition = _cursor("clang_getCursorDefinition")
    parent = _cursor("clang_getCursorSemanticParent")
    template = _cursor("clang_getSpecializedCursorTemplate")
    type = _type("clang_getCursorType")
    variable_initializer = _cursor("clang_Cursor_getVarDeclInitializer")
    result_type = _type("clang_getCursorResultType")
    enum_type = _type("clang_getEnumDeclIntegerType")
    field_offset = _number("clang_Cursor_getOffsetOfField")
    enum_value = _number("clang_getEnumConstantDeclValue")
    is_definition = _flag("clang_isCursorDefinition")
    is_bit_field = _flag("clang_Cursor_isBitField")
    is_static_method = _flag("clang_CXXMethod_isStatic")
    is_virtual_method = _flag("clang_CXXMethod_isVirtual")
    is_default_method = _flag("clang_CXXMethod_isDefaulted")
    is_default_constructor = _flag("clang_CXXConstructor_isDefaultConstructor")

    @_AskedOnce
    def location(self) -> SourceOffset:
        """Where a declaration has its name, and anything else its most telling token."""
        return self.tree.place(_location(self.raw))

    @_AskedOnce
    def start(self) -> SourceOffset:
        """Where the text begins."""
        return self.tree.place(_start(_extent(self.raw)))

    @_AskedOnce
    def end(self) -> SourceOffset:
        """Where the text ends."""
        return self.tree.place(_end(_extent(self.raw)))

    @_AskedOnce
    def written(self) -> tuple[SourceOffset, SourceOffset]:
        """Where the text begins and ends, of a macro's argument where that is written."""
        extent = _extent(self.raw)
        return self.tree.written(_start(extent)), self.tree.written(_end(extent))

    @_AskedOnce
    def position(self) -> SourcePosition:
        """Where the text begins, as the user sees it."""
        return self.tree.position(_start(_extent(self.raw)))

    @_AskedOnce
    def end_position(self) -> SourcePosition:
        """Where the text ends, as the user sees it."""
        return self.tree.position(_end(_extent(self.raw)))

    @_AskedOnce
    def text(self) -> str:
        """The text, blanks and comments made one blank each; "" of what a macro's text is all of."""
        return self.tree.text(_extent(self.raw))

    @_AskedOnce
    def printed(self) -> str:
        """A declaration as clang writes it: without macros, and of a template's instantiation with its arguments."""
        policy = ctypes.c_void_p(_policy(self.raw))
        try:
            return decoded(_printing(self.raw, policy))
        finally:
            _dispose_policy(policy)

    @_AskedOnce
    def children(self) -> tuple[Cursor, ...]:
        """The nodes below this one, in the order of the text."""
        if self.kind in _WITHOUT_CHILDREN:
            return ()
        return tuple(map(self.tree.known_cursor, libclang.children(self.raw)))

    @_AskedOnce
    def arguments(self) -> tuple[Cursor, ...]:
        """The arguments of a call, or the parameters of a function."""
        # All but defaults are children too, whose answers are kept with those.
        children = {bytes(child.raw): child for child in self.children}
        return tuple(children.get(bytes(raw)) or self.tree.known_cursor(raw) for raw in libclang.arguments(self.raw))

    @property
    def owner(self) -> Cursor:
        """The class of a member."""
        assert self.parent is not None
        return self.parent

    @_AskedOnce
    def template_arguments(self) -> tuple[TemplateArgument, ...]:
        """What a function template was instantiated with; a pack's are left out."""
        return tuple(self._template_argument(at) for at in range(max(_number_of_template_arguments(self.raw), 0)))

    def _template_argument(self, at: int) -> TemplateArgument:
        raw = _template_argument_type(self.raw, at)
        if raw._kind_id:  # noqa: SLF001
            type = self.tree.type(raw).canonical
            return TemplateArgument(type.spelling, type.declaration)
        return TemplateArgument(str(_template_argument_value(self.raw, at)), None)

    def descendants(self) -> Iterator[Cursor]:
        """Yield this cursor and all those below it, in the order of the text; but not what is below a name."""
        left = [self]
        while left:
            yield (found := left.pop())
            if found.kind != CursorKind.DECL_REF_EXPR:
                left += reversed(found.children)

    def nested_deeper_than(self, statements: int, expressions: int) -> Cursor | None:
        """Return a node that is within more statements or expressions than these; None where there is none."""
        left = [(self, 0, 0)]
        while left:
            node, outer, around = left.pop()
            if outer > statements or around > expressions:
                return node
            if node.kind != CursorKind.DECL_REF_EXPR:
                inner = (outer, around + 1) if node.is_expression else (outer + 1, 0)
                left += [(child, *inner) for child in node.children]
        return None

    def tokens(self) -> Iterator[tuple[str, int]]:
        """Yield the spelling and the offset of each token of this node's text."""
        return self.tree.tokens(self.raw.extent)

    def token_there(self) -> str:
        """Return the token where this stands; "" where there is none."""
        place = self.raw.location
        return next((text for text, _ in self.tree.tokens(cindex.SourceRange.from_locations(place, place))), "")

    def named_there(self) -> Cursor | None:
        """Return the innermost node where this stands, which need not be this one."""
        return self.tree.cursor(_cursor_at(self.tree.unit, self.raw.location))

    def stands_with(self, other: Cursor) -> bool:
        """Whether two nodes stand at the same place, also within a macro."""
        return bool(self.raw.location == other.raw.location)

    @_AskedOnce
    def operator(self) -> str:
        """The operator of an expression, such as `+` or `<<=`; `x++`, `++x`, `x--` and `--x` tell increments apart."""
        if self.kind == CursorKind.UNARY_OPERATOR:
            return libclang.unary_operator(self.raw)
        if self.kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            return libclang.binary_operator(self.raw)
        return ""

    @_AskedOnce
    def constant(self) -> int | float | None:
        """The value of a constant expression or of a constant's declaration, None where there is none."""
        return libclang.evaluated(self.raw)

    @_AskedOnce
    def storage_class(self) -> StorageClass:
        """Whether a declaration is static or extern."""
        return StorageClass.from_id(_storage_class(self.raw))


class ClangType:
    """A type as clang has it. Of one type there is one object, so that types are compared by identity.

    Parameters
    ----------
    raw : clang.cindex.Type
        What libclang takes for it.
    tree : SyntaxTree
        The tree that it is of.
    """

    def __init__(self, raw: cindex.Type, tree: SyntaxTree) -> None:
        self.raw = raw
        self.tree = tree
        self.kind: TypeKind = _TYPE_KINDS[raw._kind_id]  # noqa: SLF001

    spelling = _text("clang_getTypeSpelling")
    canonical = _type("clang_getCanonicalType")
    pointee = _type("clang_getPointeeType")
    element_type = _type("clang_getElementType")
    result = _type("clang_getResultType")
    element_count = _number("clang_getNumElements")
    size = _number("clang_Type_getSizeOf")
    alignment = _number("clang_Type_getAlignOf")
    is_const = _flag("clang_isConstQualifiedType")
    is_volatile = _flag("clang_isVolatileQualifiedType")

    @_AskedOnce
    def declaration(self) -> Cursor:
        """What declares a struct, a class, a union or an enumeration."""
        return self.tree.known_cursor(_type_declaration(self.raw))

    @_AskedOnce
    def fields(self) -> tuple[Cursor, ...]:
        """The members of a struct that hold data."""
        return tuple(map(self.tree.known_cursor, libclang.fields(self.raw)))

    @_AskedOnce
    def argument_types(self) -> tuple[ClangType, ...]:
        """The types of a function type's parameters."""
        return tuple(map(self.tree.type, libclang.argument_types(self.raw)))

    def offset_of(self, field: str) -> int:
        """Return the bits before a member of a struct."""
        return int(_offset_of(self.raw, field.encode()))


class SyntaxTree:
    """What clang has parsed.

    Parameters
    ----------
    unit : clang.cindex.TranslationUnit
        The translation unit, which lives as long as the tree.
    edits : mapping
        How the files were rewritten, by their names.
    skipped : int
        How many of the outermost declarations, from the first one, `declarations` leaves out.
    """

    def __init__(self, unit: cindex.TranslationUnit, edits: Mapping[str, Edits], skipped: int) -> None:
        self.unit = unit
        self.edits = edits
        self._skipped = skipped
        self._declarations: dict[bytes, Cursor] = {}
        self._types: dict[bytes, ClangType] = {}
        self._files: dict[int | None, str] = {None: ""}
        self._contents: dict[str, bytes] = {}
        # Where libclang writes what a location is.
        self._file, self._line, self._column, self._offset = ctypes.c_void_p(), *(ctypes.c_uint() for _ in range(3))
        self._answers = tuple(map(byref, (self._file, self._line, self._column, self._offset)))
        self.root = self.known_cursor(unit.cursor)

    @_AskedOnce
    def declarations(self) -> tuple[Cursor, ...]:
        """The outermost declarations, but for those that are skipped."""
        return tuple(map(self.known_cursor, libclang.children(self.root.raw)[self._skipped :]))

    def cursor(self, raw: cindex.Cursor) -> Cursor | None:
        """Return the cursor for one of libclang's; None for its null."""
        return None if raw._kind_id == _NOTHING else self.known_cursor(raw)  # noqa: SLF001

    def known_cursor(self, raw: cindex.Cursor) -> Cursor:
        """Return the cursor for one of libclang's that is not null."""
        if raw._kind_id not in _DECLARATIONS:  # noqa: SLF001
            return Cursor(raw, self)
        key = bytes(raw)[:16]  # the rest tells how the declaration was found
        found = self._declarations.get(key)
        if found is None:
            found = self._declarations[key] = Cursor(raw, self)
        return found

    def type(self, raw: cindex.Type) -> ClangType:
        """Return the type for one of libclang's."""
        key = bytes(raw)[8:16]  # between padding and the unit: the type itself
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = ClangType(raw, self)
        return found

    def place(self, location: cindex.SourceLocation) -> SourceOffset:
        """Return where a location of libclang's is."""
        _expansion(location, self._answers[0], None, None, self._answers[3])
        return SourceOffset(self._file_answered(), self._offset.value)

    def written(self, location: cindex.SourceLocation) -> SourceOffset:
        """Return where a location of libclang's is, of what is a macro's argument where that is written."""
        _written(location, self._answers[0], None, None, self._answers[3])
        return SourceOffset(self._file_answered(), self._offset.value)

    def text(self, extent: cindex.SourceRange) -> str:
        """Return a piece of text, as a cursor has it."""
        first = _start(extent)
        start, end = self.place(first), self.place(_end(extent))
        if not start.file or start.file != end.file:
            return ""
        found = self._content_of(start.file)[start.offset : end.offset].decode(errors="replace")
        if _ONE_MACRO.fullmatch(found):
            _spelled(first, self._answers[0], None, None, self._answers[3])
            if (self._file_answered(), self._offset.value) != start:
                return ""
        return " ".join(_COMMENT.sub(" ", found).split())

    def _content_of(self, name: str) -> bytes:
        """Return the text of the file that libclang has just named."""
        if name not in self._contents:
            size = ctypes.c_size_t()
            found = _content(self.unit, self._file, byref(size))
            self._contents[name] = ctypes.string_at(found, size.value) if found else b""
        return self._contents[name]

    def position(self, location: cindex.SourceLocation) -> SourcePosition:
        """Return where a location of libclang's is, as the user sees it."""
        _expansion(location, *self._answers)
        file, line, column = self._file_answered(), self._line.value, self._column.value
        if file in self.edits:
            line, column = self.edits[file].line_and_column(self._offset.value)
        return SourcePosition(_last_part(file) if file else "the command line", line, column)

    def _file_answered(self) -> str:
        file = self._file.value
        if file not in self._files:
            self._files[file] = decoded(_file_name(self._file))
        return self._files[file]

    def tokens(self, extent: cindex.SourceRange) -> Iterator[tuple[str, int]]:
        """Yield the spelling and the offset of each token in a range of the text."""
        for token in self.unit.get_tokens(extent=extent):
            yield token.spelling, token.extent.start.offset
