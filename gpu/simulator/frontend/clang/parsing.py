"""Parse CUDA C++ with libclang, collect its diagnostics, and answer common questions about cursors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path

from clang import cindex
from clang.cindex import CursorKind, StorageClass, TypeKind

from gpu.base.errors import CompileError, SourcePosition
from gpu.files.sources import INCLUDE, RELAXED_CONSTEXPR, has_computed_include, read_includes
from gpu.simulator.frontend.clang.child_launches import KERNEL_MARK, SourceMap, is_child_launch, rewrite_launches
from gpu.simulator.frontend.clang.cursors import ClangType, Cursor, SyntaxTree
from gpu.simulator.frontend.clang.host_calls import STRICT_CONSTEXPR, describe_host_call
from gpu.simulator.frontend.clang.large_stack import run_with_large_stack
from gpu.simulator.frontend.clang.libclang import skipped_ranges
from gpu.simulator.frontend.clang.precompiled_header import (
    SHIM,
    UNCOMPILED_HEADER,
    get_index,
    get_precompiled_header,
)
from gpu.simulator.frontend.clang.template_keywords import find_keyword_offset, insert_keywords, parse_missing_keyword

# The folder of empty stand-ins for missing includes; libclang accepts files that exist only in memory.
_MISSING_INCLUDE_FOLDER = SHIM / "missing"

# Parse the headers and the preamble of a file only once; the second flag is
# CXTranslationUnit_CreatePreambleOnFirstParse, which the binding does not name.
_WITH_PREAMBLE = cindex.TranslationUnit.PARSE_PRECOMPILED_PREAMBLE | 0x100

# libclang knows what the preprocessor skips only with a detailed record, which adds a declaration for every macro.
_PREPROCESSING = (
    cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
)

UNUSED_PARAMETER = "-Wunused-parameter"

_ARGUMENTS = (
    "-ferror-limit=0",
    "-x",
    "cuda",
    "--cuda-device-only",
    "--cuda-gpu-arch=sm_90",
    "-nocudainc",
    "-nocudalib",
    # Clang always looks for a toolkit, and enables features by its version, such as variadic functions for printf.
    # So point it to a folder without a toolkit, and enable them explicitly.
    f"--cuda-path={SHIM}",
    "-Xclang",
    "-fcuda-allow-variadic-functions",
    "-nostdinc",
    "-nostdinc++",
    "-std=c++17",
    "-fgnu-keywords",  # typeof
    "-fno-builtin",  # otherwise std::forward is a builtin without a body
    "-Wno-c++11-narrowing",  # nvcc only warns
    "-Wno-invalid-constexpr",  # nvcc accepts it
    "-Wno-register",  # nvcc ignores it
    "-Wno-pragma-once-outside-header",
    "-Wtype-limits",  # comparisons of unsigned numbers that are always true or false
    "-Wuninitialized",
    UNUSED_PARAMETER,
    "-I",
    str(SHIM),
)


_Options = tuple[tuple[str, ...], tuple[str, ...]]
"""Clang's arguments for every file, with which the header is precompiled, and those for a file's macros and folders."""

_KEPT_TREES = 16
"""The most syntax trees that are kept; one of the project's kernel files takes up to 7 MB."""

_LOGGED_ERRORS = 20
"""The most errors that a compiler log shows."""

_COPIED_NUMBER = re.compile(r"\s*(\d+[.:]?)")
"""A line number copied from a listing in a book."""

_UNSIZED_ARRAY_MESSAGE = "definition of variable with array type needs an explicit size"

_REQUEST = "requested here"
"""Part of clang's notes that lead from an error in a template to the code that instantiates it."""

_MISMATCH = re.compile("candidate (?:function|function template|template) (?:not viable|ignored): (.+)")
"""Clang's note on why a function does not take a call's arguments."""

_MESSAGE_LENGTH = 500
"""The most characters of a clang message that are shown; it may quote names and texts of any length."""
_EXCERPT_LENGTH = 160
"""The most characters of a source line that an excerpt shows."""


_confinement: list[str] = []
"""Clang's arguments that hide files from it; see `confine_includes`."""


def confine_includes(folder: Path) -> None:
    """Hide from clang, in this process, all files but the simulator's headers; another include is an empty file.

    Whatever the spelling, neither an include nor a test whether a file exists reaches another file.

    Parameters
    ----------
    folder : Path
        A folder for a file that lists the visible folders.
    """
    visible = {"type": "directory-remap", "name": str(SHIM), "external-contents": str(SHIM)}
    overlay = folder / "visible_files.yaml"
    description = {"version": 0, "redirecting-with": "redirect-only", "roots": [visible]}
    overlay.write_text(json.dumps(description), "utf-8")
    _confinement[:] = ["-ivfsoverlay", str(overlay)]


@dataclass(frozen=True)
class Diagnosis:
    """An error or a warning of clang, with its source line and a caret, and the option that enables it.

    For a macro, `offset` is where it is used; a second offset is where its argument is spelled. For an error in a
    template, `requests` are the files and offsets where its instantiation is requested, from the inside out.
    """

    message: str
    position: SourcePosition
    file: str
    offset: int
    spelling_offset: int
    excerpt: str
    is_error: bool
    option: str
    requests: tuple[tuple[str, int], ...] = ()

    def to_error(self, others: Sequence[Diagnosis] = ()) -> CompileError:
        """Return the diagnostic as an error; `detail` lists the others too."""
        shown = others[:_LOGGED_ERRORS] or (self,)
        log = "\n".join(diagnosis.excerpt for diagnosis in shown)
        if (more := len(others) - len(shown)) > 0:
            log += f"\nand {more:,} more."
        return CompileError(f"{self.position}: {self.message}", position=self.position, detail=log)

    def is_within(self, cursor: Cursor) -> bool:
        """Return whether the diagnostic is within a cursor's text."""
        start, (first, last) = cursor.start, cursor.spelling_range
        if first != start and first.file == last.file == self.file:  # the whole cursor is an argument of a macro
            return first.offset <= self.spelling_offset <= last.offset
        return start.file != "" and start.file == self.file and start.offset <= self.offset <= cursor.end.offset

    def is_requested_within(self, cursor: Cursor) -> bool:
        """Return whether the diagnostic is within a cursor's text, or in a template that this text instantiates."""
        start, end = cursor.start, cursor.end
        return self.is_within(cursor) or any(
            file == start.file and start.offset <= offset <= end.offset for file, offset in self.requests
        )


def parse(
    text: str,
    path: Path,
    defines: Mapping[str, int | str],
    include_dirs: Sequence[Path] = (),
    *,
    is_reparse: bool = False,
) -> tuple[SyntaxTree, list[Diagnosis]]:
    """Parse a CUDA C++ file, and return its syntax tree and clang's diagnostics.

    A missing include is treated as an empty file, since usually only host code needs it. The trees of the last texts
    are kept: a check, a recording and a count of one text parse it once.

    Parameters
    ----------
    text : str
        The source, which may differ from the file's content.
    path : Path
        The file's path; includes are searched in its folder.
    defines : mapping
        Macros.
    include_dirs : sequence of Path
        Additional folders for includes.
    is_reparse : bool
        Whether successive versions of this file are parsed, as while the user types. The preamble is then cached
        between parses, and cursors of the previous parse become invalid.
    """
    arguments = _ARGUMENTS if RELAXED_CONSTEXPR in defines else (*_ARGUMENTS, *STRICT_CONSTEXPR)
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    folders = [f"-I{folder}" for folder in (path.parent, *include_dirs, _MISSING_INCLUDE_FOLDER)]
    if _confinement:
        # The precompiled header is in a hidden folder.
        options = arguments, (*macros, *folders, *_confinement)
        return _parse_text(text, path, options, UNCOMPILED_HEADER, is_reparse=is_reparse)
    includes = read_includes(text, path, include_dirs)
    options = arguments, (*macros, *folders)
    if is_reparse:
        # A file with a cached preamble cannot also use the precompiled header.
        return _parse_text(text, path, options, UNCOMPILED_HEADER, is_reparse=True)
    header = get_precompiled_header(arguments)
    if any(map(has_computed_include, (text, *includes.values()))):
        return _parse_text(text, path, options, header)
    return _parse_once(text, path, options, header, tuple(includes.items()))


@lru_cache(maxsize=_KEPT_TREES)
def _parse_once(
    text: str, path: Path, options: _Options, header: tuple[str, str], _includes: tuple[tuple[Path, str], ...]
) -> tuple[SyntaxTree, list[Diagnosis]]:
    """Return the tree and diagnostics of a text with these includes, which are part of the cache's key."""
    return _parse_text(text, path, options, header)


def _parse_text(
    text: str, path: Path, options: _Options, header: tuple[str, str], *, is_reparse: bool = False
) -> tuple[SyntaxTree, list[Diagnosis]]:
    """Parse a text with options for its macros and folders; add empty files and rewrite texts until clang accepts."""
    general, own = options
    arguments = [*general, *header, *own]
    files = {str(path): text, **_list_stubs(text)}
    edits: dict[str, SourceMap] = {}
    while True:
        unit = _parse_unit(str(path), tuple(arguments), list(files.items()), is_reparse=is_reparse)
        diagnostics = [
            diagnostic for diagnostic in unit.diagnostics if diagnostic.severity >= cindex.Diagnostic.Warning
        ]
        not_found = (re.fullmatch("'(.*)' file not found", diagnostic.spelling) for diagnostic in diagnostics)
        missing = {match[1] for match in not_found if match is not None}
        stubs = {str(_MISSING_INCLUDE_FOLDER / name): "" for name in missing}
        if missing and not stubs.keys() & files.keys():
            files |= stubs
            continue
        if words := _missing_template_keywords(diagnostics, files, edits):
            for name, places in words.items():
                files[name], edits[name] = insert_keywords(_read_text(name, files), places)
            continue
        if spellings := _find_refused_spellings(diagnostics, files):
            for name, replacements in spellings.items():
                files[name] = _replace_spellings(_read_text(name, files), replacements)
            continue
        launching = {
            str(error.location.file) for error in diagnostics if is_child_launch(error.spelling)
        } - edits.keys()
        if not launching:
            lines = text.split("\n")
            find_skipped_lines = partial(_find_skipped_lines, str(path), tuple(arguments), files, edits)
            tree = SyntaxTree(unit, edits, find_skipped_lines)
            return tree, [_build_diagnosis(diagnostic, lines, path, tree) for diagnostic in diagnostics]
        for name in launching:
            files[name], edits[name] = rewrite_launches(_read_text(name, files))
        with_launches = (*general, "-DLOCKSTEP_CHILD_LAUNCHES")
        header = header if header is UNCOMPILED_HEADER else get_precompiled_header(with_launches)
        arguments = [*with_launches, *header, *own]


def _list_stubs(text: str) -> dict[str, str]:
    """Return empty files for a text's includes, which clang uses for those that are nowhere else.

    Without them it stops at each missing include, and the text is parsed once more for each. Such an empty file would
    also answer `__has_include`; texts with a test or an include that needs an expansion have none.
    """
    if has_computed_include(text):
        return {}
    names = {name for name in INCLUDE.findall(text) if _PLAIN_NAME.fullmatch(name)}
    return {str(_MISSING_INCLUDE_FOLDER / name): "" for name in names}


_PLAIN_NAME = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)*")


def _find_skipped_lines(
    path: str, arguments: tuple[str, ...], files: Mapping[str, str], edits: Mapping[str, SourceMap]
) -> frozenset[int]:
    """Parse a file once more, without function bodies, and return the lines that the preprocessor skips."""
    unit = _load_unit(path, arguments, list(files.items()), _PREPROCESSING)
    return SyntaxTree(unit, edits, frozenset).find_lines_between(skipped_ranges(unit, path))


def _missing_template_keywords(
    diagnostics: Sequence[cindex.Diagnostic], files: Mapping[str, str], edits: Mapping[str, SourceMap]
) -> dict[str, set[int]]:
    """Return the offsets where clang misses the keyword `template`, by file, in files that are not rewritten yet."""
    offsets: dict[str, set[int]] = {}
    for error in diagnostics:
        word, name = parse_missing_keyword(error.spelling), str(error.location.file)
        if word is not None and name not in edits:
            keyword_offset = find_keyword_offset(_read_text(name, files), error.location.offset, word)
            if keyword_offset is not None:
                offsets.setdefault(name, set()).add(keyword_offset)
    return offsets


def _find_refused_spellings(
    diagnostics: Sequence[cindex.Diagnostic], files: Mapping[str, str]
) -> dict[str, dict[int, bytes]]:
    """Return replacements of equal length, by file and offset, for what nvcc accepts and clang does not.

    These are `alignas` after a keyword such as `__shared__`, and a special register with one percent sign in an asm
    statement with operands.
    """
    replacements: dict[str, dict[int, bytes]] = {}
    for error in diagnostics:
        if error.location.file is None:
            continue
        name, offset = str(error.location.file), int(error.location.offset)
        if error.spelling in _REFUSED_ALIGNMENTS:
            old, new = _ALIGNMENT, _ACCEPTED_ALIGNMENT
        elif error.spelling == _REFUSED_PERCENT_SIGN:
            old, new, offset = b"%", b"$", offset - 2
        else:
            continue
        if _read_text(name, files).encode().startswith(old, offset):
            replacements.setdefault(name, {})[offset] = new
    return replacements


_REFUSED_ALIGNMENTS = ("an attribute list cannot appear here", "'alignas' attribute cannot be applied to types")
_ALIGNMENT, _ACCEPTED_ALIGNMENT = b"alignas", b"alignaS"
"""The keyword, and the shim's macro of equal length for C's `_Alignas`, which clang accepts after other specifiers."""
_REFUSED_PERCENT_SIGN = "invalid % escape in inline assembly string"
"""Clang reports it two bytes after the sign. PTX allows the dollar sign in names, where clang accepts it."""


def _replace_spellings(text: str, replacements: Mapping[int, bytes]) -> str:
    code = bytearray(text.encode())
    for offset, new in replacements.items():
        code[offset : offset + len(new)] = new
    return code.decode()


def _read_text(name: str, files: Mapping[str, str]) -> str:
    return files[name] if name in files else Path(name).read_text(encoding="utf-8")


def _parse_unit(
    path: str, arguments: tuple[str, ...], files: list[tuple[str, str]], *, is_reparse: bool
) -> cindex.TranslationUnit:
    if not is_reparse:
        return _load_unit(path, arguments, files)
    units = _cached_units(path, arguments)
    if not units:
        units.append(_load_unit(path, arguments, files, _WITH_PREAMBLE))
        return units[0]
    try:
        with _silence_stderr():
            run_with_large_stack(lambda: units[0].reparse(unsaved_files=files))
    except cindex.TranslationUnitLoadError:
        units.clear()
        raise _build_crash_error(path) from None
    return units[0]


def _load_unit(
    path: str, arguments: tuple[str, ...], files: list[tuple[str, str]], options: int = 0
) -> cindex.TranslationUnit:
    try:
        with _silence_stderr():
            return run_with_large_stack(
                lambda: get_index(arguments).parse(path, args=arguments, unsaved_files=files, options=options)
            )
    except cindex.TranslationUnitLoadError:
        raise _build_crash_error(path) from None


def _build_crash_error(path: str) -> CompileError:
    """Return the error of a crash from which libclang recovered; it gives no details."""
    return CompileError(
        f"{Path(path).name}: clang ran out of memory or stack.",
        advice="Look for a macro, a template or an expression that expands without end.",
    )


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Suppress libclang's own output to standard error; the user sees an error message instead."""
    try:
        original = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    try:
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, 2)
        os.close(null_device)
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)


@lru_cache(maxsize=8)
def _cached_units(path: str, arguments: tuple[str, ...]) -> list[cindex.TranslationUnit]:
    """Return the list that holds the translation unit of a file that is parsed repeatedly."""
    return []


def _add_caret(line: str, column: int) -> str:
    """Return a source line with a caret below a column, which clang counts in bytes."""
    before = line.encode()[: column - 1].decode(errors="ignore")
    if len(line) > _EXCERPT_LENGTH:
        first = max(0, len(before) - _EXCERPT_LENGTH // 2)
        line, before = line[first : first + _EXCERPT_LENGTH], before[first:]
    return f"\n    {line}\n    {''.join(letter if letter.isspace() else ' ' for letter in before)}^"


def _build_diagnosis(diagnostic: cindex.Diagnostic, lines: list[str], path: Path, tree: SyntaxTree) -> Diagnosis:
    place, position = tree.expansion_offset(diagnostic.location), tree.position(diagnostic.location)
    written = tree.spelling_offset(diagnostic.location)
    is_error = diagnostic.severity >= cindex.Diagnostic.Error
    message = diagnostic.spelling
    reasons = {match[1] for note in diagnostic.children if (match := _MISMATCH.match(note.spelling)) is not None}
    if len(reasons) == 1:  # otherwise the candidates are overloads, and any of them may be meant
        message += f": {reasons.pop()}"
    if len(message) > _MESSAGE_LENGTH:
        message = f"{message[:_MESSAGE_LENGTH]}…"
    if is_child_launch(message):
        message = "the simulator does not support a launch of which a macro writes only a part; write out the launch"
    message = describe_host_call(diagnostic) or message
    line = lines[position.line - 1] if Path(place.file) == path and 0 < position.line <= len(lines) else None
    if line is not None and message.startswith("expected ';'"):
        number = _COPIED_NUMBER.match(line)
        if number is not None and number.end() == position.column - 1:
            message = f"the line starts with a copied line number; delete '{number[1]}'"
    if line is not None and message.startswith(_UNSIZED_ARRAY_MESSAGE) and _is_declared_shared(line, position.column):
        message = "an unsized __shared__ array must be declared extern: the launch specifies its size"
    excerpt = f"{position}: {'error' if is_error else 'warning'}: {message}"
    if line is not None:
        excerpt += _add_caret(line, position.column)
    notes = [tree.expansion_offset(note.location) for note in diagnostic.children if _REQUEST in note.spelling]
    requests = tuple((note.file, note.offset) for note in notes)
    return Diagnosis(
        message, position, place.file, place.offset, written.offset, excerpt, is_error, diagnostic.option, requests
    )


def _is_declared_shared(line: str, column: int) -> bool:
    """Return whether the declaration before a column, which clang counts in bytes, has `__shared__`."""
    before = line.encode()[: column - 1].decode(errors="ignore")
    return "__shared__" in re.split("[;{}]", before)[-1]


def is_own(cursor: Cursor) -> bool:
    """Return whether a cursor is in the user's code, not in the shim's headers."""
    return _is_own(cursor.location.file)


@cache
def _is_own(file: str) -> bool:
    return not file.startswith(str(SHIM))


_position_overrides: list[SourcePosition | None] = [None]


@contextmanager
def override_position(position: SourcePosition | None) -> Iterator[None]:
    """Report all positions as `position`: where the user calls a function that a header of the shim defines."""
    _position_overrides.append(position)
    try:
        yield
    finally:
        _position_overrides.pop()


def get_reported_position(cursor: Cursor) -> SourcePosition:
    """Return where a cursor's text begins, as reported to the user."""
    return _position_overrides[-1] or cursor.position


def has_attribute(cursor: Cursor, kind: CursorKind) -> bool:
    """Return whether a declaration has an attribute, such as CUDADEVICE_ATTR."""
    return any(child.kind == kind for child in cursor.children)


def is_kernel(cursor: Cursor) -> bool:
    """Return whether a function is a `__global__` function."""
    return any(
        child.kind == CursorKind.CUDAGLOBAL_ATTR
        or (child.kind == CursorKind.ANNOTATE_ATTR and child.spelling == KERNEL_MARK)
        for child in cursor.children
    )


def read_string_literal(cursor: Cursor) -> str | None:
    """Return the text of a string literal, looking through conversions; None for another expression."""
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
    "get_reported_position",
    "has_attribute",
    "is_kernel",
    "is_own",
    "override_position",
    "parse",
    "read_string_literal",
]


def read_literal_bytes(cursor: Cursor) -> bytes:
    """Return the bytes of a string literal, without the terminating zero."""
    return (read_string_literal(cursor) or "").encode("latin-1", errors="replace")
