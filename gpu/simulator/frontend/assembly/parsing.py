"""Parse PTX: the instructions of an `asm` statement, and the constraints of its operands."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.files.source_lexer import blank_comments
from gpu.simulator import ir
from gpu.simulator.ptx_syntax import parse_instruction, replace_wait_loops, split_statements

_STATEMENT = re.compile(r'\basm (?:volatile )?\("((?:[^"\\]|\\.)*)"(.*?)\);\n', re.DOTALL)
_CONSTRAINT = re.compile(r'[:,] "([=+]?&?[a-zA-Z]+)" \(')
_REGISTERS = re.compile(r"\.reg\s+(?:\.v\d\s+)?\.(\w+)\s+(.*)", re.DOTALL)
_REGISTER_RANGE = re.compile(r"([\w$%]+)<(\d+)>")
_HINTS = frozenset(
    (
        *("volatile", "ftz", "approx", "full", "rn", "sync", "aligned", "uni", "relaxed", "acquire", "release"),
        *("acq_rel", "weak", "gpu", "cta", "sys", "cluster", "cg", "ca", "cs", "cv", "lu", "wb", "wt", "nc"),
        *("global", "shared", "local", "const", "param", "noftz", "level::eviction_priority"),
    )
)
"""Modifiers that do not affect the result of an instruction."""
_TYPE = re.compile(r"[usbf](?:8|16|32|64)|pred|f16x2|bf16x2|bf16")
_SCOPES: dict[str, ir.Scope] = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": "system"}
_ORDERS: tuple[ir.MemoryOrder, ...] = ("volatile", "relaxed", "acquire", "release", "acq_rel")


@dataclass(frozen=True)
class AsmStatement:
    """An `asm` statement.

    Parameters
    ----------
    constraints : tuple of str
        The operands' constraints, outputs first: "=r", "l".
    """

    template: str
    constraints: tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """One instruction, or a declaration of registers, which has a type and the operation `.reg`.

    Parameters
    ----------
    operation : str
        The first word: "mad".
    modifiers : tuple of str
        The other words, without types and hints: "lo".
    types : tuple of str
        The types: "s32".
    suffixes : tuple of str
        All words after the first, with the hints.
    operands : tuple of str
        The operands: vectors in braces, addresses in brackets.
    guard : str
        The guard predicate, or "".
    is_negated : bool
        Whether the guard predicate is negated.
    """

    operation: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    suffixes: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    is_negated: bool = False

    def __str__(self) -> str:
        return ".".join((self.operation, *self.suffixes))


def parse_asm_statements(function: str) -> list[AsmStatement]:
    """Return the `asm` statements of a function as clang prints it, in order."""
    return [
        AsmStatement(
            match[1].encode("latin-1", "replace").decode("unicode_escape"),
            tuple(_CONSTRAINT.findall(match[2])),
        )
        for match in _STATEMENT.finditer(function)
    ]


def parse_instructions(template: str) -> list[Instruction] | None:
    """Return the instructions of a template; None if it contains anything else, such as a label."""
    parsed = []
    for _, statement in split_statements(replace_wait_loops(blank_comments(template), ".until")):
        text = statement if "{" in statement else statement.rstrip("} \t\n")
        if not text:
            continue
        registers = _REGISTERS.match(text)
        if registers is not None:
            parsed.append(Instruction(".reg", (), (registers[1],), (), tuple(_register_names(registers[2]))))
            continue
        parts = parse_instruction(text)
        if parts is None or text.endswith(":"):
            return None
        types = tuple(word for word in parts.words if _TYPE.fullmatch(word))
        modifiers = tuple(word for word in parts.words if word not in _HINTS and word not in types and "::" not in word)
        parsed.append(Instruction(parts.opcode, modifiers, types, *parts[1:]))
    return parsed


def _register_names(text: str) -> list[str]:
    names = []
    for part in text.split(","):
        register_range = _REGISTER_RANGE.fullmatch(part.strip())
        names += (
            [f"{register_range[1]}{number}" for number in range(int(register_range[2]))]
            if register_range is not None
            else [part.strip()]
        )
    return names


def parse_number(text: str) -> int | float | None:
    """Parse a number in PTX syntax."""
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return float(struct.unpack(">f", bytes.fromhex(match[1]))[0])
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return float(struct.unpack(">d", bytes.fromhex(match[1]))[0])
    try:
        return int(text.rstrip("U"), 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def find_order(suffixes: Sequence[str]) -> ir.MemoryOrder | None:
    """Return the memory order that an instruction names; None if it names none."""
    return next((order for order in _ORDERS if order in suffixes), None)


def find_scope(suffixes: Sequence[str], default: ir.Scope) -> ir.Scope:
    """Return the scope that an instruction names."""
    return next((scope for word, scope in _SCOPES.items() if word in suffixes), default)


def split_parts(text: str) -> list[str]:
    """Return the parts of a vector operand: "{a, b}"."""
    return [part.strip() for part in text.strip("{} ").split(",")]
