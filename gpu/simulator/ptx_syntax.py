"""Syntax of PTX: statements, instructions, and the loops that wait for barrier objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpu.files.source_lexer import split_at_commas

_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z_][\w.:]*)\s*(.*)", re.DOTALL)
_WAIT_LOOP = re.compile(
    r"([\w$%]+):\s*(mbarrier\.(?:try|test)_wait[\w.:]*)\s+([\w$%]+)\s*,([^;]*);"
    r"\s*@\s*\3\s+bra(?:\.uni)?\s+([\w$%]+)\s*;\s*bra(?:\.uni)?\s+\1\s*;\s*\5:"
)
"""The loop that polls a barrier until a phase is complete."""


class ParsedInstruction(NamedTuple):
    """An instruction's parts.

    Parameters
    ----------
    opcode : str
        The first word, such as "ld".
    words : tuple of str
        The other words: "global", "v4", "f32".
    operands : tuple of str
        The operands as in the text: vectors in braces, addresses in brackets.
    guard : str
        The predicate of the instruction; "" if it is unconditional.
    is_negated : bool
        Whether it is executed if the predicate is false.
    """

    opcode: str
    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    is_negated: bool


def parse_instruction(statement: str) -> ParsedInstruction | None:
    """Parse an instruction without its semicolon; return None for any other text."""
    match = _INSTRUCTION.fullmatch(statement)
    if match is None:
        return None
    opcode, *words = match[3].split(".")
    operands = tuple(filter(None, split_at_commas(match[4])))
    return ParsedInstruction(opcode, tuple(words), operands, match[2] or "", bool(match[1]))


def replace_wait_loops(text: str, modifier: str) -> str:
    """Replace each loop that waits for a barrier by one test with another modifier; lines stay the same."""

    def replace(match: re.Match[str]) -> str:
        return f"{match[2]}{modifier} {match[3]},{match[4]};" + "\n" * match[0].count("\n")

    return _WAIT_LOOP.sub(replace, text)


def split_statements(body: str) -> Iterator[tuple[int, str]]:
    """Yield each instruction, directive and label with the number of lines before it; inner braces are ignored."""
    end = lines = counted_to = 0
    for part in body.split(";"):
        remainder = part.strip()
        end += len(part.rstrip())
        while True:
            remainder = remainder.strip()
            lines += body.count("\n", counted_to, end - len(remainder))
            counted_to = end - len(remainder)
            if remainder.startswith(("}", "{")) and not re.match(r"\{\s*%", remainder):
                remainder = remainder[1:]
                continue
            label = re.match(r"([\w$]+):(?!:)", remainder)
            if label is not None:
                yield lines, label[1] + ":"
                remainder = remainder[label.end() :]
                continue
            directive = re.match(r"\.(loc|pragma|file|section)[^\n]*(\n|$)", remainder)
            if directive is not None:
                yield lines, directive[0].strip()
                remainder = remainder[directive.end() :]
                continue
            break
        if remainder:
            yield lines, remainder
        end += len(part) - len(part.rstrip()) + 1
