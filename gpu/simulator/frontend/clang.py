"""Parsing CUDA C++, and what the front end asks of the cursors that come of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from clang import cindex
from clang.cindex import CursorKind, StorageClass, TypeKind

from gpu.errors import CompileError, SourcePosition
from gpu.files.sources import check_includes
from gpu.simulator.frontend.child_launches import KERNEL_MARK, Edits, is_child_launch, rewrite
from gpu.simulator.frontend.cursors import ClangType, Cursor, SyntaxTree
from gpu.simulator.frontend.header import PLAIN, SHIM, parsed_before
from gpu.simulator.frontend.stack import with_room
from gpu.simulator.frontend.template_words import missing_word, place_of_word, with_words

# Where includes are found that are not there: libclang takes files that exist in its memory alone.
_MISSING = SHIM / "missing"

# The headers, and what a file begins with, are parsed once; the second flag stands for
# CXTranslationUnit_CreatePreambleOnFirstParse, which the binding has no name for.
_WITH_PREAMBLE = cindex.TranslationUnit.PARSE_PRECOMPILED_PREAMBLE | 0x100

UNUSED_PARAMETER = "-Wunused-parameter"

_ARGUMENTS = (
    "-ferror-limit=0",
    "-x",
    "cuda",
    "--cuda-device-only",
    "--cuda-gpu-arch=sm_90",
    "-nocudainc",
    "-nocudalib",
    # Clang looks for a toolkit all the same, and takes what is written by its version: variadic functions, as printf is
    # one, only where there is one. So it looks where none is, and is told.
    f"--cuda-path={SHIM}",
    "-Xclang",
    "-fcuda-allow-variadic-functions",
    "-nostdinc",
    "-nostdinc++",
    "-std=c++17",
    "-fgnu-keywords",  # typeof
    "-fno-builtin",  # or std::forward is clang's own, without a body
    "-Wno-c++11-narrowing",  # of which nvcc warns only
    "-Wno-invalid-constexpr",  # which nvcc says nothing of
    "-Wno-pragma-once-outside-header",
    "-Wtype-limits",  # what is always true, or never, of an unsigned number
    UNUSED_PARAMETER,
    "-I",
    str(SHIM),
)


_SHOWN = 20
"""Errors that a compiler's log shows at most."""

_COPIED_NUMBER = re.compile(r"\s*(\d+[.:]?)")
"""What a listing in a book begins its lines with."""

_UNSIZED = "definition of variable with array type needs an explicit size"

_MOST_OF_MESSAGE = 500
"""Characters of what clang says that are shown: it quotes names and texts of any length."""
_EXCERPT = 160
"""Characters of a source line that one of them shows at most."""


@dataclass(frozen=True)
class Diagnosis:
    """An error or a warning that clang found, with its source line and a caret, and the option that asks for it.

    `offset` is where a macro is used, `written` where an argument of it stands.
    """

    message: str
    position: SourcePosition
    file: str
    offset: int
    written: int
    excerpt: str
    is_error: bool
    option: str

    def error(self, others: Sequence[Diagnosis] = ()) -> CompileError:
        """Return it as an error; `detail` holds the others too."""
        shown = others[:_SHOWN] or (self,)
        log = "\n".join(found.excerpt for found in shown)
        if (more := len(others) - len(shown)) > 0:
            log += f"\nand {more:,} more."
        return CompileError(f"{self.position}: {self.message}", position=self.position, detail=log)

    def lies_in(self, cursor: Cursor) -> bool:
        """Whether it is within a cursor's text."""
        start, (first, last) = cursor.start, cursor.written
        if first != start and first.file == last.file == self.file:  # all of it is an argument of a macro
            return first.offset <= self.written <= last.offset
        return start.file != "" and start.file == self.file and start.offset <= self.offset <= cursor.end.offset


def parse(
    text: str,
    path: Path,
    defines: Mapping[str, int | str],
    include_dirs: Sequence[Path] = (),
    *,
    again: bool = False,
) -> tuple[SyntaxTree, list[Diagnosis]]:
    """Parse a CUDA C++ file, and return its tree and what clang says of it.

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
    check_includes(text, path, include_dirs)
    # What begins with a preamble of its own does not begin with a header that is parsed already.
    header = PLAIN if again else parsed_before(_ARGUMENTS)
    arguments = [*_ARGUMENTS, *header.arguments, *macros, *folders]
    files = {str(path): text}
    edits: dict[str, Edits] = {}
    while True:
        unit = _parsed(str(path), tuple(arguments), list(files.items()), again=again)
        said = [found for found in unit.diagnostics if found.severity >= cindex.Diagnostic.Warning]
        missing = {found[1] for error in said if (found := re.fullmatch("'(.*)' file not found", error.spelling))}
        stubs = {str(_MISSING / name): "" for name in missing}
        if missing and not stubs.keys() & files.keys():
            files |= stubs
            continue
        if words := _missing_words(said, files, edits):
            for name, places in words.items():
                files[name], edits[name] = with_words(_text_of(name, files), places)
            continue
        launching = {str(error.location.file) for error in said if is_child_launch(error.spelling)} - edits.keys()
        if not launching:
            lines = text.split("\n")
            tree = SyntaxTree(unit, edits, header.declarations)
            return tree, [_diagnosis(each, lines, path, tree) for each in said]
        for name in launching:
            files[name], edits[name] = rewrite(_text_of(name, files))
        header = PLAIN
        arguments = [*_ARGUMENTS, *header.arguments, *macros, *folders, "-DLOCKSTEP_CHILD_LAUNCHES"]


def _missing_words(
    said: Sequence[cindex.Diagnostic], files: Mapping[str, str], edits: Mapping[str, Edits]
) -> dict[str, set[int]]:
    """Return where clang misses the word `template`, by files that are not rewritten yet."""
    found: dict[str, set[int]] = {}
    for error in said:
        word, name = missing_word(error.spelling), str(error.location.file)
        if word is not None and name not in edits:
            place = place_of_word(_text_of(name, files), error.location.offset, word)
            if place is not None:
                found.setdefault(name, set()).add(place)
    return found


def _text_of(name: str, files: Mapping[str, str]) -> str:
    return files[name] if name in files else Path(name).read_text(encoding="utf-8")


def _parsed(
    path: str, arguments: tuple[str, ...], files: list[tuple[str, str]], *, again: bool
) -> cindex.TranslationUnit:
    kept = _kept(path, arguments) if again else []
    try:
        with _silenced():
            if kept:
                with_room(lambda: kept[0].reparse(unsaved_files=files))
            else:
                options = _WITH_PREAMBLE if again else 0
                kept.append(
                    with_room(lambda: _index().parse(path, args=arguments, unsaved_files=files, options=options))
                )
    except cindex.TranslationUnitLoadError:
        # Libclang has come back from a crash, and says no more.
        kept.clear()
        raise CompileError(
            f"{Path(path).name}: clang gave up, as it ran out of memory or of stack.",
            advice="Look for a macro or a template that grows without end, and for an expression without end.",
        ) from None
    return kept[0]


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep what libclang writes on its own to the standard error from the user, who is told in a sentence."""
    try:
        before = os.dup(2)
    except OSError:  # there is none
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@lru_cache(maxsize=8)
def _kept(path: str, arguments: tuple[str, ...]) -> list[cindex.TranslationUnit]:
    """Return a place for the unit of a file that is parsed again and again."""
    return []


def _with_caret(line: str, column: int) -> str:
    """Return a source line and a caret below a column, which clang counts in bytes."""
    before = line.encode()[: column - 1].decode(errors="ignore")
    if len(line) > _EXCERPT:
        first = max(0, len(before) - _EXCERPT // 2)
        line, before = line[first : first + _EXCERPT], before[first:]
    return f"\n    {line}\n    {''.join(letter if letter.isspace() else ' ' for letter in before)}^"


@cache
def _index() -> cindex.Index:
    return cindex.Index.create()


def _diagnosis(said: cindex.Diagnostic, lines: list[str], path: Path, tree: SyntaxTree) -> Diagnosis:
    place, position = tree.place(said.location), tree.position(said.location)
    written = tree.written(said.location)
    is_error = said.severity >= cindex.Diagnostic.Error
    message = said.spelling
    if len(message) > _MOST_OF_MESSAGE:
        message = f"{message[:_MOST_OF_MESSAGE]}…"
    if is_child_launch(message):
        message = "the simulator does not support a launch of which a macro writes a part only; write it out"
    line = lines[position.line - 1] if Path(place.file) == path and 0 < position.line <= len(lines) else None
    if line is not None and message.startswith("expected ';'"):
        number = _COPIED_NUMBER.match(line)
        if number is not None and number.end() == position.column - 1:
            message = f"a line's number was copied with it; delete '{number[1]}'"
    if line is not None and message.startswith(_UNSIZED) and _begins_with_shared(line, position.column):
        message = "an unsized __shared__ array is declared extern: the launch gives its size"
    excerpt = f"{position}: {'error' if is_error else 'warning'}: {message}"
    if line is not None:
        excerpt += _with_caret(line, position.column)
    return Diagnosis(message, position, place.file, place.offset, written.offset, excerpt, is_error, said.option)


def _begins_with_shared(line: str, column: int) -> bool:
    """Whether the declaration of what stands at a column, which clang counts in bytes, has `__shared__`."""
    before = line.encode()[: column - 1].decode(errors="ignore")
    return "__shared__" in re.split("[;{}]", before)[-1]


def is_own(cursor: Cursor) -> bool:
    """Whether a cursor is of the user's text, not of the shim's headers."""
    return _is_own(cursor.location.file)


@cache
def _is_own(file: str) -> bool:
    return not file.startswith(str(SHIM))


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
    return _places[-1] or cursor.position


def has_attribute(cursor: Cursor, kind: CursorKind) -> bool:
    """Whether a declaration has an attribute, such as CUDADEVICE_ATTR."""
    return any(child.kind == kind for child in cursor.children)


def is_kernel(cursor: Cursor) -> bool:
    """Whether a function is a `__global__` one."""
    return any(
        child.kind == CursorKind.CUDAGLOBAL_ATTR
        or (child.kind == CursorKind.ANNOTATE_ATTR and child.spelling == KERNEL_MARK)
        for child in cursor.children
    )


def string_of(cursor: Cursor) -> str | None:
    """Return the text of a string literal, behind any conversions; None for another expression."""
    for inner in cursor.descendants():
        if inner.kind == CursorKind.STRING_LITERAL:
            return str(inner.spelling[1:-1]).encode().decode("unicode_escape")
    return None


__all__ = [
    "UNUSED_PARAMETER",
    "ClangType",
    "Cursor",
    "CursorKind",
    "Diagnosis",
    "StorageClass",
    "TypeKind",
    "as_if_at",
    "has_attribute",
    "is_kernel",
    "is_own",
    "parse",
    "start_of",
    "string_of",
]


def bytes_of(cursor: Cursor) -> bytes:
    """Return the bytes of a string literal, without the zero at its end."""
    return (string_of(cursor) or "").encode("latin-1", errors="replace")
