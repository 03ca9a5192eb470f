"""How a file launches its own kernels: the extents in `<<<...>>>`, as far as they are constants of the text."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gpu.errors import InputError

Extents = tuple[int, ...]

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
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*(?:unsigned\s+|signed\s+)?(\w+)\s*\)")
_MOST = 1 << 40
_DEEPEST = 20
_TYPE = r"(?:unsigned|int|long|short|size_t|auto|u?int\d+_t|dim3)"
_DECLARATION = re.compile(
    # Looked ahead for, as the first declaration in a function follows what looks like one.
    rf"(?:^|(?<=[;{{}}]))(?=\s*((?:(?:const|static|constexpr)\s+)*{_TYPE}(?:\s+(?:int|long|const))*)\s+([A-Za-z_][^;]*);)",
    re.MULTILINE,
)


class _UnknownError(Exception):
    """An expression that is no constant of the text."""


@dataclass(frozen=True)
class FileLaunch:
    """What a file launches a kernel with; None for what is not a constant, or differs from launch to launch.

    Parameters
    ----------
    lines : tuple of int
        Where it launches it; empty where it never does.
    grid, block : tuple of int or None
        Blocks and threads in x, y and z.
    shared_bytes : int or None
    """

    lines: tuple[int, ...] = ()
    grid: Extents | None = None
    block: Extents | None = None
    shared_bytes: int | None = None

    def missing(self, kernel: str, path: str, option: str) -> InputError:
        """Return what is said where an extent is neither given nor known."""
        if not self.lines:
            why = f"{path} does not launch {kernel}"
        else:
            lines = ", ".join(map(str, self.lines))
            why = f"it is no constant where {path} launches {kernel}, line{'s' * (len(self.lines) > 1)} {lines}"
            if len(self.lines) > 1:
                why = f"it is not one constant in all launches of {kernel}, lines {lines} of {path}"
        return InputError(f"Give {option}: {why}.")


def host_launch(text: str, kernel: str, defines: Mapping[str, int | str] | None = None) -> FileLaunch:
    """Find out what a file launches a kernel with.

    Host code does not run: an extent is known where it is made of numbers, of macros, and of variables, dim3 too, that
    have one value in all of the text.

    Parameters
    ----------
    text : str
        The file's.
    kernel : str
        Its name, of a template an instantiation, perhaps with a line: launches of all kernels of that name count.
    defines : mapping or None
        Macros that are given from outside.
    """
    # What is blanked keeps its place, and with it its line.
    text = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    name, arguments, _ = kernel.partition("@")[0].partition("<")
    wanted = re.sub(r"\s", "", f"<{kernel.partition('@')[0].partition('<')[2]}") if arguments else ""
    launches = list(_launches(text, name.strip().rpartition("::")[2]))
    matching = [each for each in launches if each[1] == wanted] or launches
    macros = {key: str(value) for key, value in (defines or {}).items()}
    found = [_evaluated(parts, _Constants(text, _seen_from(text, place), macros)) for place, _, parts in matching]
    if not found:
        return FileLaunch()
    grids, blocks, sizes = (set(each) for each in zip(*found, strict=True))
    return FileLaunch(
        tuple(text.count("\n", 0, place) + 1 for place, _, _ in matching),
        grids.pop() if len(grids) == 1 else None,
        blocks.pop() if len(blocks) == 1 else None,
        sizes.pop() if len(sizes) == 1 else None,
    )


def _launches(text: str, name: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the place of each launch of a kernel, its template arguments, and what stands in <<<...>>>."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*(<[^<>;{{}}]*>)?\s*<<<([^;{{}}]*?)>>>\s*\(", text):
        yield found.start(), re.sub(r"\s", "", found[1] or ""), _parts(found[2])


def _seen_from(text: str, place: int) -> str:
    """Return the text without the functions that a place is not in: their names are not its names."""
    kept, depth, start = "", 0, 0
    for brace in re.finditer(r"[{}]|;", text):
        depth += (brace[0] == "{") - (brace[0] == "}")
        if depth <= 0 and brace[0] != "{":
            item, depth = text[start : brace.end()], 0
            if start <= place < brace.end() or not re.search(r"\)[^;={]*\{", item):
                kept += item
            start = brace.end()
    return kept


def _parts(text: str) -> list[str]:
    """Return what commas divide outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _evaluated(configuration: list[str], constants: _Constants) -> tuple[Extents | None, Extents | None, int | None]:
    grid, block, shared = (*configuration, "", "", "")[:3]

    def known(text: str) -> Extents | None:
        try:
            extents = constants.extents(text)
        except _UnknownError:
            return None
        return extents if all(0 < extent < _MOST for extent in extents) else None

    size = (known(shared) or (0 if shared == "0" else None,))[0] if shared else 0
    return known(grid), known(block), size


def _declared(text: str) -> Iterator[tuple[str, str | None, bool]]:
    """Yield the variables that are declared, what each one starts with (None: nothing), and whether behind a `=`."""
    for found in _DECLARATION.finditer(text):
        for part in _parts(found[2]):
            variable = re.fullmatch(r"(\w+)\s*(?:=\s*(.+)|[({](.*)[)}])?", part, re.DOTALL)
            if variable is not None:
                made = None if variable[3] is None else f"dim3{{{variable[3]}}}" if "dim3" in found[1] else variable[3]
                yield variable[1], variable[2] or made, variable[2] is not None


class _Constants:
    """The macros and variables of a text that have one value."""

    def __init__(self, text: str, seen: str, defines: Mapping[str, str]) -> None:
        self._text, self._seen, self._defines = text, seen, defines
        self._declared = list(_declared(seen))

    def extents(self, text: str, depth: int = 0) -> Extents:
        """Return the extents that an expression stands for, one to three."""
        text = self._resolved(text.strip(), depth)
        made = re.fullmatch(r"dim3\s*[({](.*)[)}]", text, re.DOTALL)
        if made is not None:
            parts = _parts(made[1])
            if not 1 <= len(parts) <= 3:
                raise _UnknownError
            return tuple(self._number(part, depth + 1) for part in parts)
        return (self._number(text, depth + 1),)

    def _resolved(self, text: str, depth: int) -> str:
        """Follow a name to what it stands for, as far as that is a name again."""
        while re.fullmatch(r"[A-Za-z_]\w*", text):
            text, depth = self._meaning(text), depth + 1
            if depth > _DEEPEST:
                raise _UnknownError
        return text

    def _meaning(self, name: str) -> str:
        if name in self._defines:
            return self._defines[name]
        word = re.escape(name)
        macros = set(re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{word}[ \t]+([^\n]+?)[ \t]*$", self._text, re.MULTILINE))
        declared = [meaning for each, meaning, _ in self._declared if each == name]
        # A name that is changed, or that a parameter or a loop has too, is no constant.
        touched = len(re.findall(rf"\b{word}\s*(?:\.\w+\s*)?(?:[-+*/%&|^]|<<|>>)?=(?!=)", self._seen))
        stepped = re.search(rf"(?:\+\+|--|[(,]\s*&|>>)\s*{word}\b|\b{word}\s*(?:\+\+|--)", self._seen)
        bare = re.search(rf"\b{_TYPE}\s+{word}\s*[;,)>]", self._seen)
        initialized = sum(assigned for each, _, assigned in self._declared if each == name)
        if stepped or bare or touched > initialized:
            raise _UnknownError
        meanings: list[str | None] = [*macros, *dict.fromkeys(declared)]
        meaning = meanings[0] if len(meanings) == 1 else None
        if meaning is None:
            raise _UnknownError
        return meaning

    def _number(self, text: str, depth: int) -> int:
        if depth > _DEEPEST:
            raise _UnknownError
        text = _SIZEOF.sub(lambda found: str(_SIZES.get(found[1], found[0])), text)
        text = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        try:
            return self._value(ast.parse(text.strip().replace("\n", " "), mode="eval").body, depth)
        except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
            raise _UnknownError from None

    def _value(self, node: ast.expr, depth: int) -> int:
        match node:
            case ast.Constant(int() as number) if not isinstance(number, bool):
                value = number
            case ast.Name(name):
                value = self._number(self._resolved(name, depth), depth + 1)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                first, second = self._value(left, depth), self._value(right, depth)
                if isinstance(op, ast.LShift) and second > 40:
                    raise _UnknownError
                value = _OPERATORS[type(op)](first, second)
            case _:
                raise _UnknownError
        if not 0 <= value < _MOST:  # a difference below 0 is divided otherwise in C
            raise _UnknownError
        return value
