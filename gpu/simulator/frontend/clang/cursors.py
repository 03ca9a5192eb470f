"""Clang's syntax tree as Python objects, which query libclang once per attribute and cache the answer."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import byref
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, overload

from clang import cindex
from clang.cindex import CursorKind, StorageClass, TypeKind

from gpu.base.errors import SourcePosition
from gpu.files.source_lexer import blank_comments
from gpu.simulator.frontend.clang import libclang
from gpu.simulator.frontend.clang.child_launches import SourceMap
from gpu.simulator.frontend.clang.libclang import String, bind_function, decode_string

T = TypeVar("T")


class _CachedAttribute(Generic[T]):
    """An attribute that is computed at first access and then stored in the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> _CachedAttribute[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> _CachedAttribute[T] | T:
        if instance is None:
            return self
        value = self._compute(instance)
        setattr(instance, self._name, value)
        return value


def _text_attribute(name: str) -> _CachedAttribute[str]:
    call_libclang = bind_function(name, String)
    return _CachedAttribute(lambda instance: decode_string(call_libclang(instance.raw)))


def _number_attribute(name: str) -> _CachedAttribute[int]:
    call_libclang = bind_function(name, ctypes.c_longlong)
    return _CachedAttribute(lambda instance: call_libclang(instance.raw))


def _flag_attribute(name: str) -> _CachedAttribute[bool]:
    call_libclang = bind_function(name, ctypes.c_uint)
    return _CachedAttribute(lambda instance: bool(call_libclang(instance.raw)))


def _cursor_attribute(name: str) -> _CachedAttribute[Cursor | None]:
    call_libclang = bind_function(name, cindex.Cursor)
    return _CachedAttribute(lambda instance: instance.tree.get_optional_cursor(call_libclang(instance.raw)))


def _type_attribute(name: str) -> _CachedAttribute[ClangType]:
    call_libclang = bind_function(name, cindex.Type)
    return _CachedAttribute(lambda instance: instance.tree.type(call_libclang(instance.raw)))


class SourceOffset(NamedTuple):
    """A source location; for a macro's text, where the macro is used. Compiler-generated text has no `file`."""

    file: str
    offset: int


_storage_class = bind_function("clang_Cursor_getStorageClass", ctypes.c_int)
_type_declaration = bind_function("clang_getTypeDeclaration", cindex.Cursor)
_offset_of = bind_function("clang_Type_getOffsetOf", ctypes.c_longlong)
_cursor_at = bind_function("clang_getCursor", cindex.Cursor)
_location = bind_function("clang_getCursorLocation", cindex.SourceLocation)
_extent = bind_function("clang_getCursorExtent", cindex.SourceRange)
_start = bind_function("clang_getRangeStart", cindex.SourceLocation)
_end = bind_function("clang_getRangeEnd", cindex.SourceLocation)
_expansion = bind_function("clang_getExpansionLocation", None)
_spelling_location = bind_function("clang_getSpellingLocation", None)
_file_location = bind_function("clang_getFileLocation", None)
_file_name = bind_function("clang_getFileName", String)
_content = bind_function("clang_getFileContents", ctypes.c_void_p)

_number_of_template_arguments = bind_function("clang_Cursor_getNumTemplateArguments", ctypes.c_int)
_template_argument_type = bind_function("clang_Cursor_getTemplateArgumentType", cindex.Type)
_template_argument_value = bind_function("clang_Cursor_getTemplateArgumentValue", ctypes.c_longlong)

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
_NULL_CURSOR_KIND = CursorKind.INVALID_FILE.value

_printing = bind_function("clang_getCursorPrettyPrinted", String)
_policy = bind_function("clang_getCursorPrintingPolicy", ctypes.c_void_p)
_dispose_policy = bind_function("clang_PrintingPolicy_dispose", None)

_ONE_MACRO = re.compile(r"\w+\s*\(.*\)", re.DOTALL)


@cache
def _base_name(path: str) -> str:
    return Path(path).name


class TemplateArgument(NamedTuple):
    """An argument of a template, as written in the source; for a class also its declaration."""

    text: str
    declaration: Cursor | None


class Cursor:
    """A node of clang's syntax tree. Each declaration has only one cursor, so declarations compare by identity.

    Parameters
    ----------
    raw : clang.cindex.Cursor
        libclang's cursor.
    tree : SyntaxTree
        The tree that the node belongs to.
    """

    def __init__(self, raw: cindex.Cursor, tree: SyntaxTree) -> None:
        self.raw = raw
        self.tree = tree
        self.kind: CursorKind = _CURSOR_KINDS[raw._kind_id]  # noqa: SLF001
        self.is_expression = self.kind in _EXPRESSIONS

    spelling = _text_attribute("clang_getCursorSpelling")
    display_name = _text_attribute("clang_getCursorDisplayName")
    usr = _text_attribute("clang_getCursorUSR")
    symbol = _text_attribute("clang_Cursor_getMangling")
    referenced = _cursor_attribute("clang_getCursorReferenced")
    definition = _cursor_attribute("clang_getCursorDefinition")
    parent = _cursor_attribute("clang_getCursorSemanticParent")
    template = _cursor_attribute("clang_getSpecializedCursorTemplate")
    lexical_parent = _cursor_attribute("clang_getCursorLexicalParent")
    type = _type_attribute("clang_getCursorType")
    variable_initializer = _cursor_attribute("clang_Cursor_getVarDeclInitializer")
    result_type = _type_attribute("clang_getCursorResultType")
    enum_type = _type_attribute("clang_getEnumDeclIntegerType")
    field_offset = _number_attribute("clang_Cursor_getOffsetOfField")
    bit_width = _number_attribute("clang_getFieldDeclBitWidth")
    enum_value = _number_attribute("clang_getEnumConstantDeclValue")
    is_definition = _flag_attribute("clang_isCursorDefinition")
    is_bit_field = _flag_attribute("clang_Cursor_isBitField")
    is_static_method = _flag_attribute("clang_CXXMethod_isStatic")
    is_virtual_method = _flag_attribute("clang_CXXMethod_isVirtual")
    is_default_method = _flag_attribute("clang_CXXMethod_isDefaulted")
    is_default_constructor = _flag_attribute("clang_CXXConstructor_isDefaultConstructor")

    @_CachedAttribute
    def location(self) -> SourceOffset:
        """The location of a declaration's name; for other nodes, of their most characteristic token."""
        return self.tree.expansion_offset(_location(self.raw))

    @_CachedAttribute
    def start(self) -> SourceOffset:
        """The beginning of the text."""
        return self.tree.expansion_offset(_start(_extent(self.raw)))

    @_CachedAttribute
    def end(self) -> SourceOffset:
        """The end of the text."""
        return self.tree.expansion_offset(_end(_extent(self.raw)))

    @_CachedAttribute
    def spelling_range(self) -> tuple[SourceOffset, SourceOffset]:
        """The beginning and the end of the text; for a macro's argument, where it is spelled."""
        extent = _extent(self.raw)
        return self.tree.spelling_offset(_start(extent)), self.tree.spelling_offset(_end(extent))

    @_CachedAttribute
    def position(self) -> SourcePosition:
        """The beginning of the text, as reported to the user."""
        return self.tree.position(_start(_extent(self.raw)))

    @_CachedAttribute
    def end_position(self) -> SourcePosition:
        """The end of the text, as reported to the user."""
        return self.tree.position(_end(_extent(self.raw)))

    @_CachedAttribute
    def text(self) -> str:
        """The text with blanks and comments collapsed; "" if a macro's text contains all of it."""
        return self.tree.text(_extent(self.raw))

    @_CachedAttribute
    def printed_text(self) -> str:
        """A declaration as clang prints it: with macros expanded, and instantiations with their arguments."""
        policy = ctypes.c_void_p(_policy(self.raw))
        try:
            return decode_string(_printing(self.raw, policy))
        finally:
            _dispose_policy(policy)

    @_CachedAttribute
    def children(self) -> tuple[Cursor, ...]:
        """The child nodes, in source order."""
        if self.kind in _WITHOUT_CHILDREN:
            return ()
        return tuple(map(self.tree.get_cursor, libclang.children(self.raw)))

    @_CachedAttribute
    def arguments(self) -> tuple[Cursor, ...]:
        """The arguments of a call, or the parameters of a function."""
        # All arguments except defaults are children too; reuse those cursors and their cached attributes.
        children = {bytes(child.raw): child for child in self.children}
        return tuple(children.get(bytes(raw)) or self.tree.get_cursor(raw) for raw in libclang.arguments(self.raw))

    @property
    def owner(self) -> Cursor:
        """The class of a member, or the block of a declaration."""
        assert self.parent is not None
        return self.parent

    @_CachedAttribute
    def template_arguments(self) -> tuple[TemplateArgument, ...]:
        """The arguments with which a function template was instantiated, without parameter packs."""
        return tuple(self._template_argument(index) for index in range(max(_number_of_template_arguments(self.raw), 0)))

    def _template_argument(self, index: int) -> TemplateArgument:
        raw = _template_argument_type(self.raw, index)
        if raw._kind_id:  # noqa: SLF001
            type = self.tree.type(raw).canonical
            return TemplateArgument(type.spelling, type.declaration)
        return TemplateArgument(str(_template_argument_value(self.raw, index)), None)

    def descendants(self) -> Iterator[Cursor]:
        """Yield this cursor and all below it, in source order, except those below a name."""
        pending = [self]
        while pending:
            yield (node := pending.pop())
            if node.kind != CursorKind.DECL_REF_EXPR:
                pending += reversed(node.children)

    def find_deeper_nesting(self, statements: int, expressions: int) -> Cursor | None:
        """Return a node that is nested in more statements or expressions than given; None if there is none."""
        pending = [(self, 0, 0)]
        while pending:
            node, statement_depth, expression_depth = pending.pop()
            if statement_depth > statements or expression_depth > expressions:
                return node
            if node.kind != CursorKind.DECL_REF_EXPR:
                inner = (statement_depth, expression_depth + 1) if node.is_expression else (statement_depth + 1, 0)
                pending += [(child, *inner) for child in node.children]
        return None

    def tokens(self) -> Iterator[tuple[str, int]]:
        """Yield the spelling and offset of each token in this node's text."""
        return self.tree.tokens(self.raw.extent)

    def token_at_location(self) -> str:
        """Return the token at this node's location; "" if there is none."""
        location = self.raw.location
        return next((text for text, _ in self.tree.tokens(cindex.SourceRange.from_locations(location, location))), "")

    def node_at_location(self) -> Cursor | None:
        """Return the innermost node at this node's location, which may be another node."""
        return self.tree.get_optional_cursor(_cursor_at(self.tree.unit, self.raw.location))

    def has_same_location(self, other: Cursor) -> bool:
        """Return whether two nodes have the same location, also within a macro."""
        return bool(self.raw.location == other.raw.location)

    @_CachedAttribute
    def operator(self) -> str:
        """The operator, such as `+` or `<<=`; increments and decrements are `x++`, `++x`, `x--` and `--x`."""
        if self.kind == CursorKind.UNARY_OPERATOR:
            return libclang.unary_operator(self.raw)
        if self.kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            return libclang.binary_operator(self.raw)
        return ""

    @_CachedAttribute
    def constant(self) -> int | float | None:
        """The value of a constant expression or of a constant's declaration; None for anything else."""
        return libclang.evaluate_constant(self.raw)

    @_CachedAttribute
    def storage_class(self) -> StorageClass:
        """Whether a declaration is static or extern."""
        return StorageClass.from_id(_storage_class(self.raw))


class ClangType:
    """A type of clang. Each type has only one object, so types compare by identity.

    Parameters
    ----------
    raw : clang.cindex.Type
        libclang's type.
    tree : SyntaxTree
        The tree that the type belongs to.
    """

    def __init__(self, raw: cindex.Type, tree: SyntaxTree) -> None:
        self.raw = raw
        self.tree = tree
        self.kind: TypeKind = _TYPE_KINDS[raw._kind_id]  # noqa: SLF001

    spelling = _text_attribute("clang_getTypeSpelling")
    canonical = _type_attribute("clang_getCanonicalType")
    pointee = _type_attribute("clang_getPointeeType")
    element_type = _type_attribute("clang_getElementType")
    result = _type_attribute("clang_getResultType")
    element_count = _number_attribute("clang_getNumElements")
    size = _number_attribute("clang_Type_getSizeOf")
    alignment = _number_attribute("clang_Type_getAlignOf")
    is_const = _flag_attribute("clang_isConstQualifiedType")
    is_volatile = _flag_attribute("clang_isVolatileQualifiedType")

    @_CachedAttribute
    def declaration(self) -> Cursor:
        """The declaration of a struct, a class, a union or an enumeration."""
        return self.tree.get_cursor(_type_declaration(self.raw))

    @_CachedAttribute
    def fields(self) -> tuple[Cursor, ...]:
        """The members of a struct that hold data."""
        return tuple(map(self.tree.get_cursor, libclang.fields(self.raw)))

    @_CachedAttribute
    def argument_types(self) -> tuple[ClangType, ...]:
        """The types of a function type's parameters."""
        return tuple(map(self.tree.type, libclang.argument_types(self.raw)))

    def offset_of(self, field: str) -> int:
        """Return the offset of a struct's member in bits."""
        return int(_offset_of(self.raw, field.encode()))


def _is_instance(cursor: Cursor) -> bool:
    """Return whether a declaration is an instance of a template: it has no text of its own, unlike a specialization."""
    template = cursor.template
    if template is None:
        return False
    parent = cursor.lexical_parent
    if parent is None or parent.kind != CursorKind.TRANSLATION_UNIT:
        return True
    return cursor.location in (template.location, template.definition and template.definition.location)


class SyntaxTree:
    """The syntax tree of a parsed file.

    Parameters
    ----------
    unit : clang.cindex.TranslationUnit
        The translation unit, which lives as long as the tree.
    source_maps : mapping
        The source maps of rewritten files, by file name.
    find_skipped_lines : callable
        Returns `skipped_lines`.
    """

    def __init__(
        self,
        unit: cindex.TranslationUnit,
        source_maps: Mapping[str, SourceMap],
        find_skipped_lines: Callable[[], frozenset[int]],
    ) -> None:
        self.unit = unit
        self.source_maps = source_maps
        self._find_skipped_lines = find_skipped_lines
        self._declarations: dict[bytes, Cursor] = {}
        self._types: dict[bytes, ClangType] = {}
        self._files: dict[int | None, str] = {None: ""}
        self._contents: dict[str, bytes] = {}
        # Output parameters into which libclang writes the parts of a location.
        self._file, self._line, self._column, self._offset = ctypes.c_void_p(), *(ctypes.c_uint() for _ in range(3))
        self._location_outputs = tuple(map(byref, (self._file, self._line, self._column, self._offset)))
        self.root = self.get_cursor(unit.cursor)

    @_CachedAttribute
    def declarations(self) -> tuple[Cursor, ...]:
        """The top-level declarations, without those of a precompiled header."""
        # If libclang leaves out that header's declarations, it adds instances of templates.
        return tuple(each for each in self.root.children if not _is_instance(each))

    def get_declaration_at(self, file: Path, offset: int) -> Cursor:
        """Return the declaration whose name begins at an offset, in bytes, of an included file."""
        return self.get_cursor(_cursor_at(self.unit, libclang.location_at(self.unit, str(file), offset)))

    @_CachedAttribute
    def skipped_lines(self) -> frozenset[int]:
        """The lines of the parsed file, without those of directives, that `#if` or the like excludes."""
        return self._find_skipped_lines()

    def find_lines_between(self, ranges: Iterable[cindex.SourceRange]) -> frozenset[int]:
        """Return the lines within ranges, without each range's first and last line."""
        ends = [(self.position(_start(each)).line, self.position(_end(each)).line) for each in ranges]
        return frozenset(line for first, last in ends for line in range(first + 1, last))

    def get_optional_cursor(self, raw: cindex.Cursor) -> Cursor | None:
        """Return the cursor for a cursor of libclang; None for its null cursor."""
        return None if raw._kind_id == _NULL_CURSOR_KIND else self.get_cursor(raw)  # noqa: SLF001

    def get_cursor(self, raw: cindex.Cursor) -> Cursor:
        """Return the cursor for a cursor of libclang that is not null."""
        if raw._kind_id not in _DECLARATIONS:  # noqa: SLF001
            return Cursor(raw, self)
        key = bytes(raw)[:16]  # the rest depends on how the declaration was found
        cursor = self._declarations.get(key)
        if cursor is None:
            cursor = self._declarations[key] = Cursor(raw, self)
        return cursor

    def type(self, raw: cindex.Type) -> ClangType:
        """Return the type for a type of libclang."""
        key = bytes(raw)[8:16]  # between padding and the unit: the type itself
        clang_type = self._types.get(key)
        if clang_type is None:
            clang_type = self._types[key] = ClangType(raw, self)
        return clang_type

    def expansion_offset(self, location: cindex.SourceLocation) -> SourceOffset:
        """Return the file and offset of a libclang location; for a macro's text, where the macro is used."""
        _expansion(location, self._location_outputs[0], None, None, self._location_outputs[3])
        return SourceOffset(self._current_file(), self._offset.value)

    def spelling_offset(self, location: cindex.SourceLocation) -> SourceOffset:
        """Return the file and offset of a libclang location; for a macro's argument, where it is spelled."""
        _file_location(location, self._location_outputs[0], None, None, self._location_outputs[3])
        return SourceOffset(self._current_file(), self._offset.value)

    def text(self, extent: cindex.SourceRange) -> str:
        """Return the text of a range, with blanks and comments collapsed."""
        first = _start(extent)
        start, end = self.expansion_offset(first), self.expansion_offset(_end(extent))
        if not start.file or start.file != end.file:
            return ""
        text = self._file_content(start.file)[start.offset : end.offset].decode(errors="replace")
        if _ONE_MACRO.fullmatch(text):
            _spelling_location(first, self._location_outputs[0], None, None, self._location_outputs[3])
            if (self._current_file(), self._offset.value) != start:
                return ""
        return " ".join(blank_comments(text).split())

    def _file_content(self, name: str) -> bytes:
        """Return the content of the file that libclang has just named."""
        if name not in self._contents:
            size = ctypes.c_size_t()
            content = _content(self.unit, self._file, byref(size))
            self._contents[name] = ctypes.string_at(content, size.value) if content else b""
        return self._contents[name]

    def position(self, location: cindex.SourceLocation) -> SourcePosition:
        """Return a location as reported to the user."""
        _expansion(location, *self._location_outputs)
        file, line, column = self._current_file(), self._line.value, self._column.value
        if file in self.source_maps:
            line, column = self.source_maps[file].find_original_position(self._offset.value)
        return SourcePosition(_base_name(file) if file else "the command line", line, column)

    def _current_file(self) -> str:
        file = self._file.value
        if file not in self._files:
            self._files[file] = decode_string(_file_name(self._file))
        return self._files[file]

    def tokens(self, extent: cindex.SourceRange) -> Iterator[tuple[str, int]]:
        """Yield the spelling and offset of each token in a range of the text."""
        for token in self.unit.get_tokens(extent=extent):
            yield token.spelling, token.extent.start.offset
