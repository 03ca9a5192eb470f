"""Launch extents from a file's own `<<<...>>>`, where they are constants."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu.base.errors import InputError
from gpu.base.python_operators import OPERATORS
from gpu.files.source_lexer import blank_comments_and_literals, find_launches, split_at_commas

Extents = tuple[int, ...]
Extent = int | Sequence[int]
Extent3 = tuple[int, int, int]

_SIZES = {
    "char": 1,
    "bool": 1,
    "short": 2,
    "int": 4,
    "unsigned": 4,
    "float": 4,
    "long": 8,
    "double": 8,
    "size_t": 8,
    "float2": 8,
    "float4": 16,
}
_OPERATORS = {ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift}
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*(?:unsigned\s+|signed\s+)?(\w+)\s*\)")
_MAXIMUM_VALUE = 1 << 40
_MAXIMUM_DEPTH = 20
_TYPE = r"(?:unsigned|int|long|short|size_t|auto|u?int\d+_t|dim3)"
_DECLARATION = re.compile(
    # A lookahead, because a function's first declaration is inside text that looks like a declaration itself.
    rf"(?:^|(?<=[;{{}}]))(?=\s*((?:(?:const|static|constexpr)\s+)*{_TYPE}(?:\s+(?:int|long|const))*)\s+([A-Za-z_][^;]*);)",
    re.MULTILINE,
)


class _UnknownError(Exception):
    """The value of an expression cannot be determined from the text."""


@dataclass(frozen=True)
class FileLaunch:
    """The extents with which a file launches a kernel; None where one is not constant or differs between launches.

    Parameters
    ----------
    lines : tuple of int
        The lines of its launches; empty if the file does not launch it.
    grid, block : tuple of int or None
        Blocks and threads in x, y and z.
    """

    lines: tuple[int, ...] = ()
    grid: Extents | None = None
    block: Extents | None = None
    shared_bytes: int | None = None

    def missing_extent_error(self, kernel: str, path: str, option: str) -> InputError:
        """Return the error for an extent that was neither specified nor found in the file."""
        if not self.lines:
            reason = f"{path} does not launch {kernel}"
        else:
            lines = ", ".join(map(str, self.lines))
            reason = f"it is not a constant where {path} launches {kernel}, line{'s' * (len(self.lines) > 1)} {lines}"
            if len(self.lines) > 1:
                reason = f"it differs, or is not a constant, in the launches of {kernel}, lines {lines} of {path}"
        return InputError(f"Give {option}: {reason}.")

    def complete(
        self, grid: Extent | None, block: Extent | None, shared_bytes: int | None, *, kernel: str, path: str
    ) -> tuple[Extent3, Extent3, int]:
        """Return the extents and the dynamic shared memory of a launch; those that are None are the file's.

        Raises
        ------
        InputError
            An extent is invalid, or neither specified nor known from the file.
        """
        if shared_bytes is None and self.shared_bytes is None and self.lines and (grid is None or block is None):
            raise self.missing_extent_error(kernel, path, "--shared")
        extents: list[Extent3] = []
        for name, specified, constant in (("grid", grid, self.grid), ("block", block, self.block)):
            chosen = constant if specified is None else specified
            if chosen is None:
                raise self.missing_extent_error(kernel, path, f"--{name}")
            extents.append(_to_extent(name, chosen))
        return extents[0], extents[1], (self.shared_bytes or 0) if shared_bytes is None else shared_bytes


def _to_extent(name: str, extent_or_extents: Extent) -> Extent3:
    extents = list(extent_or_extents) if isinstance(extent_or_extents, Sequence | np.ndarray) else [extent_or_extents]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int | np.integer) for extent in extents):
        raise InputError(f"The {name} is one to three whole numbers, not {extent_or_extents!r}.")
    x, y, z = (*map(int, extents), *[1] * (3 - len(extents)))
    return x, y, z


def find_host_launch(text: str, kernel: str, defines: Mapping[str, int | str] | None = None) -> FileLaunch:
    """Determine the extents with which a file launches a kernel.

    Host code does not run: an extent is known if it consists of numbers, macros, and variables (including dim3) that
    have one value in the whole text.

    Parameters
    ----------
    text : str
        The file's text.
    kernel : str
        Its name; for a template an instantiation. A line suffix is ignored: launches of all overloads count.
    defines : mapping or None
        Macros defined on the command line.
    """
    # Comments and strings become spaces, so positions and line numbers stay the same.
    text = blank_comments_and_literals(text)
    name, arguments, _ = kernel.partition("@")[0].partition("<")
    template_arguments = re.sub(r"\s", "", f"<{kernel.partition('@')[0].partition('<')[2]}") if arguments else ""
    launches = list(_find_launches(text, name.strip().rpartition("::")[2]))
    matching = [item for item in launches if item[1] == template_arguments] or launches
    macros = {key: str(value) for key, value in (defines or {}).items()}
    configurations = [
        _evaluate_extents(parts, _Constants(text, _text_in_scope(text, position), macros))
        for position, _, parts in matching
    ]
    if not configurations:
        return FileLaunch()
    grids, blocks, sizes = (set(item) for item in zip(*configurations, strict=True))
    return FileLaunch(
        tuple(text.count("\n", 0, position) + 1 for position, _, _ in matching),
        grids.pop() if len(grids) == 1 else None,
        blocks.pop() if len(blocks) == 1 else None,
        sizes.pop() if len(sizes) == 1 else None,
    )


def _find_launches(text: str, name: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the position of each launch of a kernel, its template arguments, and the parts of its <<<...>>>."""
    launched = re.compile(rf"\b{re.escape(name)}\s*(<[^<>;{{}}]*>)?\s*\Z")
    for launch in find_launches(text.encode("ascii", "replace")):  # a byte per letter, so that offsets stay the same
        match = launched.search(text, 0, launch.start)
        if match is not None:
            yield match.start(), re.sub(r"\s", "", match[1] or ""), split_at_commas(text[slice(*launch.configuration)])


def _text_in_scope(text: str, position: int) -> str:
    """Return the text without other functions' bodies, which are out of scope at a position."""
    visible, depth, start = "", 0, 0
    for brace in re.finditer(r"[{}]|;", text):
        depth += (brace[0] == "{") - (brace[0] == "}")
        if depth <= 0 and brace[0] != "{":
            item, depth = text[start : brace.end()], 0
            if start <= position < brace.end() or not re.search(r"\)[^;={]*\{", item):
                visible += item
            start = brace.end()
    return visible


def _evaluate_extents(
    configuration: list[str], constants: _Constants
) -> tuple[Extents | None, Extents | None, int | None]:
    grid, block, shared = (*configuration, "", "", "")[:3]

    def evaluate_extents(text: str) -> Extents | None:
        try:
            extents = constants.evaluate_extents(text)
        except _UnknownError:
            return None
        return extents if all(0 < extent < _MAXIMUM_VALUE for extent in extents) else None

    size = (evaluate_extents(shared) or (0 if shared == "0" else None,))[0] if shared else 0
    return evaluate_extents(grid), evaluate_extents(block), size


def _find_declarations(text: str) -> Iterator[tuple[str, str | None, bool]]:
    """Yield each declared variable's name, its initializer or None, and whether the initializer follows a `=`."""
    for match in _DECLARATION.finditer(text):
        for part in split_at_commas(match[2]):
            variable = re.fullmatch(r"(\w+)\s*(?:=\s*(.+)|[({](.*)[)}])?", part, re.DOTALL)
            if variable is not None:
                constructed = (
                    None if variable[3] is None else f"dim3{{{variable[3]}}}" if "dim3" in match[1] else variable[3]
                )
                yield variable[1], variable[2] or constructed, variable[2] is not None


class _Constants:
    """The macros and variables of a text that have a single value."""

    def __init__(self, text: str, visible_text: str, defines: Mapping[str, str]) -> None:
        self._text, self._visible_text, self._defines = text, visible_text, defines
        self._declarations = list(_find_declarations(visible_text))

    def evaluate_extents(self, expression: str, depth: int = 0) -> Extents:
        """Return the one to three extents that an expression denotes."""
        expression = self._resolve(expression.strip(), depth)
        match = re.fullmatch(r"dim3\s*[({](.*)[)}]", expression, re.DOTALL)
        if match is not None:
            parts = split_at_commas(match[1])
            if not 1 <= len(parts) <= 3:
                raise _UnknownError
            return tuple(self._evaluate_number(part, depth + 1) for part in parts)
        return (self._evaluate_number(expression, depth + 1),)

    def _resolve(self, text: str, depth: int) -> str:
        """Replace a name by its definition until the definition is not a name."""
        while re.fullmatch(r"[A-Za-z_]\w*", text):
            text, depth = self._find_definition(text), depth + 1
            if depth > _MAXIMUM_DEPTH:
                raise _UnknownError
        return text

    def _find_definition(self, name: str) -> str:
        if name in self._defines:
            return self._defines[name]
        word = re.escape(name)
        macros = set(re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{word}[ \t]+([^\n]+?)[ \t]*$", self._text, re.MULTILINE))
        declared = [definition for each, definition, _ in self._declarations if each == name]
        # A name that is modified, or that a parameter or a loop variable shares, is not a constant.
        assignments = len(re.findall(rf"\b{word}\s*(?:\.\w+\s*)?(?:[-+*/%&|^]|<<|>>)?=(?!=)", self._visible_text))
        incremented = re.search(rf"(?:\+\+|--|[(,]\s*&|>>)\s*{word}\b|\b{word}\s*(?:\+\+|--)", self._visible_text)
        uninitialized = re.search(rf"\b{_TYPE}\s+{word}\s*[;,)>]", self._visible_text)
        initialized = sum(assigned for each, _, assigned in self._declarations if each == name)
        if incremented or uninitialized or assignments > initialized:
            raise _UnknownError
        definitions: list[str | None] = [*macros, *dict.fromkeys(declared)]
        definition = definitions[0] if len(definitions) == 1 else None
        if definition is None:
            raise _UnknownError
        return definition

    def _evaluate_number(self, text: str, depth: int) -> int:
        if depth > _MAXIMUM_DEPTH:
            raise _UnknownError
        text = _SIZEOF.sub(lambda match: str(_SIZES.get(match[1], match[0])), text)
        text = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        try:
            return self._evaluate_node(ast.parse(text.strip().replace("\n", " "), mode="eval").body, depth)
        except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
            raise _UnknownError from None

    def _evaluate_node(self, node: ast.expr, depth: int) -> int:
        match node:
            case ast.Constant(int() as number) if not isinstance(number, bool):
                value = number
            case ast.Name(name):
                value = self._evaluate_number(self._resolve(name, depth), depth + 1)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                first, second = self._evaluate_node(left, depth), self._evaluate_node(right, depth)
                if isinstance(op, ast.LShift) and second > 40:
                    raise _UnknownError
                value = OPERATORS[type(op)](first, second)
            case _:
                raise _UnknownError
        if not 0 <= value < _MAXIMUM_VALUE:  # C divides negative numbers differently from Python
            raise _UnknownError
        return value
