"""libclang, as far as the front end needs it: parsing CUDA C++, and three calls that its Python binding leaves out."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from clang import cindex
from clang.cindex import Cursor, CursorKind, TypeKind

from gpu.errors import CompileError, SourcePosition
from gpu.simulator.frontend.child_launches import KERNEL_MARK, Edits, is_child_launch, rewrite
from gpu.simulator.frontend.header import PLAIN, SHIM, parsed_before

# Where includes are found that are not there: libclang takes files that exist in its memory alone.
_MISSING = SHIM / "missing"

# The headers, and what a file begins with, are parsed once; the second flag stands for
# CXTranslationUnit_CreatePreambleOnFirstParse, which the binding has no name for.
_WITH_PREAMBLE = cindex.TranslationUnit.PARSE_PRECOMPILED_PREAMBLE | 0x100

_ARGUMENTS = (
    "-ferror-limit=0",
    "-x",
    "cuda",
    "--cuda-device-only",
    "--cuda-gpu-arch=sm_90",
    "-nocudainc",
    "-nocudalib",
    "-nostdinc",
    "-nostdinc++",
    "-std=c++17",
    "-Wno-unknown-cuda-version",
    "-Wno-c++11-narrowing",  # of which nvcc warns only
    "-Wno-pragma-once-outside-header",
    "-I",
    str(SHIM),
)

# How the files of a unit were rewritten, by their names.
_edits: WeakKeyDictionary[cindex.TranslationUnit, dict[str, Edits]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Diagnosis:
    """An error or a warning that clang found, with its source line and a caret."""

    message: str
    position: SourcePosition
    file: str
    offset: int
    excerpt: str
    is_error: bool

    def error(self, others: Sequence[Diagnosis] = ()) -> CompileError:
        """Return it as an error; `detail` holds the others too."""
        log = "\n".join(found.excerpt for found in others or (self,))
        return CompileError(f"{self.position}: {self.message}", position=self.position, detail=log)

    def lies_in(self, cursor: Cursor) -> bool:
        """Whether it is within a cursor's text."""
        start, end = cursor.extent.start, cursor.extent.end
        return start.file is not None and start.file.name == self.file and start.offset <= self.offset <= end.offset


def parse(
    text: str,
    path: Path,
    defines: Mapping[str, int | str],
    include_dirs: Sequence[Path] = (),
    *,
    again: bool = False,
) -> tuple[Cursor, list[Diagnosis]]:
    """Parse a CUDA C++ file and return the cursor of its translation unit, and what clang says of it.

    An include that is not there is left out, as it usually serves the host's code.

    Parameters
    ----------
    text : str
        The source, which may differ from what the file holds.
    path : Path
        Where it belongs: includes are looked for beside it.
    defines : mapping
        Macros.
    include_dirs : sequence of Path
        Where else includes are looked for.
    again : bool
        Whether texts of this file are parsed one after the other, as while one types: what they begin with is kept from
        one time to the next, and cursors of the time before are void.
    """
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    folders = [f"-I{folder}" for folder in (path.parent, *include_dirs, _MISSING)]
    # What begins with a preamble of its own does not begin with a header that is parsed already.
    header = PLAIN if again else parsed_before(_ARGUMENTS)
    arguments = [*_ARGUMENTS, *header, *macros, *folders]
    files = {str(path): text}
    edits: dict[str, Edits] = {}
    while True:
        unit = _parsed(str(path), tuple(arguments), list(files.items()), again=again)
        _edits[unit] = edits
        said = [found for found in unit.diagnostics if found.severity >= cindex.Diagnostic.Warning]
        missing = {found[1] for error in said if (found := re.fullmatch("'(.*)' file not found", error.spelling))}
        stubs = {str(_MISSING / name): "" for name in missing}
        if missing and not stubs.keys() & files.keys():
            files |= stubs
            continue
        launching = {str(error.location.file) for error in said if is_child_launch(error.spelling)} - edits.keys()
        if not launching:
            lines = text.split("\n")
            return unit.cursor, [_diagnosis(each, lines, path, edits) for each in said]
        for name in launching:
            files[name], edits[name] = rewrite(files[name] if name in files else Path(name).read_text(encoding="utf-8"))
        arguments = [*_ARGUMENTS, *PLAIN, *macros, *folders, "-DLOCKSTEP_CHILD_LAUNCHES"]


def _parsed(
    path: str, arguments: tuple[str, ...], files: list[tuple[str, str]], *, again: bool
) -> cindex.TranslationUnit:
    if not again:
        return _index().parse(path, args=arguments, unsaved_files=files)
    kept = _kept(path, arguments)
    if kept:
        kept[0].reparse(unsaved_files=files)
    else:
        kept.append(_index().parse(path, args=arguments, unsaved_files=files, options=_WITH_PREAMBLE))
    return kept[0]


@lru_cache(maxsize=8)
def _kept(path: str, arguments: tuple[str, ...]) -> list[cindex.TranslationUnit]:
    """Return a place for the unit of a file that is parsed again and again."""
    return []


def _with_caret(line: str, column: int) -> str:
    """Return a source line and a caret below a column, which clang counts in bytes."""
    before = line.encode()[: column - 1].decode(errors="ignore")
    return f"\n    {line}\n    {''.join(letter if letter.isspace() else ' ' for letter in before)}^"


@cache
def _index() -> cindex.Index:
    return cindex.Index.create()


def _diagnosis(said: cindex.Diagnostic, lines: list[str], path: Path, edits: Mapping[str, Edits]) -> Diagnosis:
    location = said.location
    file = location.file.name if location.file is not None else ""
    is_error = said.severity >= cindex.Diagnostic.Error
    position, message = _position(location, edits), said.spelling
    if is_child_launch(message):
        message = "the simulator does not support a launch of which a macro writes a part only; write it out"
    excerpt = f"{position}: {'error' if is_error else 'warning'}: {message}"
    if Path(file) == path and 0 < position.line <= len(lines):
        excerpt += _with_caret(lines[position.line - 1], position.column)
    return Diagnosis(message, position, file, location.offset, excerpt, is_error)


def _position(location: cindex.SourceLocation, edits: Mapping[str, Edits]) -> SourcePosition:
    if location.file is None:
        return SourcePosition("the command line", location.line, location.column)
    name = str(location.file.name)
    line, column = location.line, location.column
    if name in edits:
        line, column = edits[name].line_and_column(location.offset)
    return SourcePosition(_last_part(name), line, column)


@cache
def _last_part(path: str) -> str:
    return Path(path).name


def children_of(cursor: Cursor) -> list[Cursor]:
    """Return the cursors below one, which are kept with it: the binding's own way takes several times as long."""
    kept: list[Cursor] | None = getattr(cursor, "_kept_children", None)
    if kept is None:
        kept = cursor._kept_children = []  # noqa: SLF001
        cindex.conf.lib.clang_visitChildren(cursor, _COLLECT, kept)
        for child in kept:
            child._tu = cursor._tu  # noqa: SLF001
    return kept


def descendants_of(cursor: Cursor) -> Iterator[Cursor]:
    """Yield a cursor and all those below it, in the order of the text."""
    left = [cursor]
    while left:
        yield (found := left.pop())
        left += reversed(children_of(found))


def _collect(child: Cursor, parent: Cursor, found: list[Cursor]) -> int:
    found.append(child)
    return 1  # CXChildVisit_Continue


_COLLECT = cindex.callbacks["cursor_visit"](_collect)


def is_own(cursor: Cursor) -> bool:
    """Whether a cursor is of the user's text, not of the shim's headers."""
    file = cursor.location.file
    return file is None or not str(file.name).startswith(str(SHIM))


_places: list[SourcePosition | None] = [None]


@contextmanager
def as_if_at(place: SourcePosition | None) -> Iterator[None]:
    """Have everything start at one place, which is where the user calls what a header of the shim defines."""
    _places.append(place)
    try:
        yield
    finally:
        _places.pop()


def start_of(cursor: Cursor) -> SourcePosition:
    """Return where a cursor's text begins, as the user sees it."""
    return _places[-1] or _position(cursor.extent.start, _edits.get(cursor.translation_unit, {}))


def has_attribute(cursor: Cursor, kind: str) -> bool:
    """Whether a declaration has an attribute, such as CUDADEVICE_ATTR."""
    return any(child.kind.name == kind for child in children_of(cursor))


def is_kernel(cursor: Cursor) -> bool:
    """Whether a function is a `__global__` one."""
    return any(
        child.kind == CursorKind.CUDAGLOBAL_ATTR
        or (child.kind == CursorKind.ANNOTATE_ATTR and child.spelling == KERNEL_MARK)
        for child in children_of(cursor)
    )


def string_of(cursor: Cursor) -> str | None:
    """Return the text of a string literal, behind any conversions; None for another expression."""
    for inner in descendants_of(cursor):
        if inner.kind == CursorKind.STRING_LITERAL:
            return str(inner.spelling[1:-1]).encode().decode("unicode_escape")
    return None


def operand_positions(cursor: Cursor) -> Iterator[tuple[str, int]]:
    """Yield the spelling and the offset of each token of a cursor."""
    for token in cursor.get_tokens():
        yield token.spelling, token.extent.start.offset


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(cindex.conf.lib, name)
    function.restype, function.argtypes = result, arguments
    return function


@cache
def _calls() -> dict[str, Any]:
    text, number, pointer = cindex._CXString, ctypes.c_int, ctypes.c_void_p  # noqa: SLF001
    return {
        "binary": _function("clang_getCursorBinaryOperatorKind", number, Cursor),
        "binary_spelling": _function("clang_getBinaryOperatorKindSpelling", text, number),
        "unary": _function("clang_getCursorUnaryOperatorKind", number, Cursor),
        "evaluate": _function("clang_Cursor_Evaluate", pointer, Cursor),
        "kind": _function("clang_EvalResult_getKind", number, pointer),
        "integer": _function("clang_EvalResult_getAsLongLong", ctypes.c_longlong, pointer),
        "is_unsigned": _function("clang_EvalResult_isUnsignedInt", ctypes.c_uint, pointer),
        "unsigned": _function("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong, pointer),
        "double": _function("clang_EvalResult_getAsDouble", ctypes.c_double, pointer),
        "dispose": _function("clang_EvalResult_dispose", None, pointer),
    }


@cache
def _binary_spelling(kind: int) -> str:
    result = _calls()["binary_spelling"](kind)
    spelling = cindex.conf.lib.clang_getCString(result)
    return spelling.decode() if isinstance(spelling, bytes) else str(spelling)


def binary_operator(cursor: Cursor) -> str:
    """Return the operator of a binary or compound assignment expression, such as `+` or `<<=`."""
    return _binary_spelling(_calls()["binary"](cursor))


_UNARY = {
    1: "x++",
    2: "x--",
    3: "++x",
    4: "--x",
    5: "&",
    6: "*",
    7: "+",
    8: "-",
    9: "~",
    10: "!",
    13: "__extension__",
}


def unary_operator(cursor: Cursor) -> str:
    """Return a unary operator; `x++`, `++x`, `x--` and `--x` tell the increments apart."""
    kind = _calls()["unary"](cursor)
    return _UNARY.get(kind, f"unary operator {kind}")


def evaluate(cursor: Cursor) -> int | float | None:
    """Return the value of a constant expression or of a constant's declaration, None where there is none."""
    calls = _calls()
    result = calls["evaluate"](cursor)
    if not result:
        return None
    try:
        kind = calls["kind"](result)
        if kind == 1:
            return int(calls["unsigned" if calls["is_unsigned"](result) else "integer"](result))
        return float(calls["double"](result)) if kind == 2 else None
    finally:
        calls["dispose"](result)


__all__ = [
    "Cursor",
    "CursorKind",
    "Diagnosis",
    "TypeKind",
    "as_if_at",
    "binary_operator",
    "children_of",
    "descendants_of",
    "evaluate",
    "has_attribute",
    "is_kernel",
    "is_own",
    "operand_positions",
    "parse",
    "start_of",
    "string_of",
    "unary_operator",
]
