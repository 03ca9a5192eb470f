"""Split long kernels into functions, because LLVM's compile time grows faster than a function's length.

A part is a sequence of lines that is entered at its first line and left at its last. It becomes a function. The
function's parameters are the values and the addresses of variables that the part uses; variables that no other part
uses become local variables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MIN_LINES = 1500
"""The least number of lines for a function; the rarer a call, the smaller its cost."""

_NAME = re.compile(r"%[\w.]+")
_DEFINITION = re.compile(r"  (%[\w.]+) = (.*)")
_TARGET = re.compile(r"label %([\w.]+)")
_LABEL = re.compile(r"^([\w.]+):$", re.MULTILINE)
_TYPE = re.compile(r"\b(i\d+|float|double|ptr)\b")
_BYTES = re.compile(r"\[(\d+) x i8\]")
_CASTS = ("zext", "sext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast")
_FRAME_DEPENDENT = ("  ret void", "llvm.stacksave")


@dataclass(eq=False)
class OutlinedLines:
    """Lines that become a function; they may contain other parts."""

    lines: list[str | OutlinedLines]
    name: str = ""
    parameter_types: dict[str, str] = field(default_factory=dict)
    """Types of the parameters, by name."""


def is_self_contained(lines: Sequence[str | OutlinedLines]) -> bool:
    """Return whether lines have no jumps to the outside and do not depend on the kernel's stack frame."""
    text = "\n".join(line for line in lines if isinstance(line, str))
    return not any(each in text for each in _FRAME_DEPENDENT) and set(_TARGET.findall(text)) <= set(
        _LABEL.findall(text)
    )


class Outliner:
    """Writes a kernel's functions.

    Parameters
    ----------
    signature : str
        The kernel's parameters, which each part gets too.
    prologue : sequence of str
        Lines that compute values from the parameters, repeated in each part.
    allocas : sequence of str
        The lines that declare variables.
    persistent : set of str
        The variables that keep their values between calls of a part.
    """

    def __init__(self, signature: str, prologue: Sequence[str], allocas: Sequence[str], persistent: set[str]) -> None:
        self._signature = signature
        self._arguments = ", ".join(part.replace(" noalias", "") for part in signature.split(", "))
        self._prologue = list(prologue)
        self._common_names = {*_NAME.findall(signature), *(_defined_name(line) for line in prologue)}
        self._allocas = {_defined_name(line): line for line in allocas}
        self._persistent = persistent
        self._types: dict[str, str] = dict.fromkeys(self._allocas, "ptr")
        self._uses: dict[OutlinedLines, Counter[str]] = {}
        self._functions: list[str] = []

    def write_kernel(self, kernel: OutlinedLines) -> tuple[list[str], list[str]]:
        """Return the lines of the kernel's variables, and its other lines with parts replaced by calls."""
        self._count_uses(kernel)
        owner = dict.fromkeys(self._allocas, kernel)
        for part in _iterate_parts(kernel):  # outer parts before inner ones
            for name, count in self._uses[part].items():
                if count == self._uses[kernel][name] and name in owner and name not in self._persistent:
                    owner[name] = part
        for number, part in enumerate(reversed(list(_iterate_parts(kernel)))):
            part.name = f"@part.{number}"
            self._write_part(part, [self._allocas[name] for name in self._allocas if owner[name] is part])
        own_lines = [line for name, line in self._allocas.items() if owner[name] is kernel]
        return own_lines, self._replace_parts(kernel)

    @property
    def functions(self) -> list[str]:
        """The parts' functions."""
        return self._functions

    def _count_uses(self, part: OutlinedLines) -> Counter[str]:
        """Count the uses of names in a part, including the parts within it."""
        uses: Counter[str] = Counter()
        for line in part.lines:
            if isinstance(line, OutlinedLines):
                uses += self._count_uses(line)
                continue
            uses.update(_NAME.findall(line))
            match = _DEFINITION.match(line)
            if match is not None:
                self._types[match[1]] = _value_type(match[2])
        self._uses[part] = uses
        return uses

    def _write_part(self, part: OutlinedLines, allocas: list[str]) -> None:
        local_names = {_defined_name(line) for line in allocas}
        lines = self._replace_parts(part)
        local_names |= {match[1] for line in lines if (match := _DEFINITION.match(line)) is not None}
        used_names = {name for line in lines if not line.endswith(":") for name in _NAME.findall(_TARGET.sub("", line))}
        part.parameter_types = {
            name: self._types[name] for name in sorted(used_names - local_names - self._common_names)
        }
        parameters = [
            f"ptr noalias {_size_attribute(self._allocas[name])} {name}" if name in self._allocas else f"{type} {name}"
            for name, type in part.parameter_types.items()
        ]
        head = f"define internal void {part.name}({', '.join([self._signature, *parameters])}) noinline nounwind {{"
        body = ["entry:", *allocas, *self._prologue, "  br label %start", "start:", *lines, "  ret void", "}"]
        self._functions.append("\n".join([head, *body]))

    def _replace_parts(self, part: OutlinedLines) -> list[str]:
        lines = []
        for line in part.lines:
            if isinstance(line, OutlinedLines):
                arguments = [f"{type} {name}" for name, type in line.parameter_types.items()]
                lines.append(f"  call void {line.name}({', '.join([self._arguments, *arguments])})")
            else:
                lines.append(line)
        return lines


def _iterate_parts(part: OutlinedLines) -> Iterator[OutlinedLines]:
    for line in part.lines:
        if isinstance(line, OutlinedLines):
            yield line
            yield from _iterate_parts(line)


def _size_attribute(alloca: str) -> str:
    """Return a parameter attribute that allows speculative reads of a variable, so that LLVM hoists them from loops."""
    match = _BYTES.search(alloca)
    assert match is not None
    return f"align 16 dereferenceable({match[1]})"


def _defined_name(line: str) -> str:
    match = _DEFINITION.match(line)
    assert match is not None
    return match[1]


def _value_type(instruction: str) -> str:
    operation, _, rest = instruction.partition(" ")
    if operation in ("alloca", "getelementptr", "inttoptr"):
        return "ptr"
    if operation in ("icmp", "fcmp"):
        return "i1"
    if operation == "ptrtoint" or operation in _CASTS:
        rest = rest.rpartition(" to ")[2]
    elif operation in ("select", "atomicrmw"):
        rest = rest.partition(",")[2]
    elif operation in ("cmpxchg", "extractvalue"):
        return ""
    match = _TYPE.search(rest)
    return match[1] if match is not None else ""
