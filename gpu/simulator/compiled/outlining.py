"""Long kernels in parts: LLVM takes more than twice as long for a function that is twice as long.

A part is a run of lines that is entered at its first and left at its last. It becomes a function that is given what it
uses of the rest: values as they are, variables by their addresses. Variables that nobody else uses are its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LONG = 1500
"""Lines that are worth a function. What is called less often costs nothing to call."""

_NAME = re.compile(r"%[\w.]+")
_DEFINED = re.compile(r"  (%[\w.]+) = (.*)")
_TARGET = re.compile(r"label %([\w.]+)")
_PLACED = re.compile(r"^([\w.]+):$", re.MULTILINE)
_TYPE = re.compile(r"\b(i\d+|float|double|ptr)\b")
_BYTES = re.compile(r"\[(\d+) x i8\]")
_CASTS = ("zext", "sext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast")
_STAYS = ("  ret void", "llvm.stacksave")


@dataclass(eq=False)
class OutlinedLines:
    """Lines that become a function, parts among them."""

    lines: list[str | OutlinedLines]
    name: str = ""
    given: dict[str, str] = field(default_factory=dict)
    """What it is given, by name: the types."""


def can_stand_alone(lines: Sequence[str | OutlinedLines]) -> bool:
    """Whether lines lead nowhere else, and nothing in them belongs to the kernel's own frame."""
    text = "\n".join(line for line in lines if isinstance(line, str))
    return not any(each in text for each in _STAYS) and set(_TARGET.findall(text)) <= set(_PLACED.findall(text))


class Outliner:
    """Writes a kernel's functions.

    Parameters
    ----------
    signature : str
        The kernel's parameters, which each part is given too.
    prologue : sequence of str
        Lines that make values of the parameters, which each part makes anew.
    allocas : sequence of str
        The lines of variables.
    kept : set of str
        The variables whose values last from one run of a part to the next.
    """

    def __init__(self, signature: str, prologue: Sequence[str], allocas: Sequence[str], kept: set[str]) -> None:
        self._signature = signature
        self._arguments = ", ".join(_without_attributes(each) for each in signature.split(", "))
        self._prologue = list(prologue)
        self._known = {*_NAME.findall(signature), *(_defined(line) for line in prologue)}
        self._allocas = {_defined(line): line for line in allocas}
        self._kept = kept
        self._types: dict[str, str] = dict.fromkeys(self._allocas, "ptr")
        self._uses: dict[OutlinedLines, Counter[str]] = {}
        self._written: list[str] = []

    def write(self, whole: OutlinedLines) -> tuple[list[str], list[str]]:
        """Return the lines of the kernel's own variables, and its lines; parts of it are calls now."""
        self._note(whole)
        owner = dict.fromkeys(self._allocas, whole)
        for part in _all_parts(whole):  # inner ones after those around them
            for name, count in self._uses[part].items():
                if count == self._uses[whole][name] and name in owner and name not in self._kept:
                    owner[name] = part
        for number, part in enumerate(reversed(list(_all_parts(whole)))):
            part.name = f"@part.{number}"
            self._write_part(part, [self._allocas[name] for name in self._allocas if owner[name] is part])
        own = [line for name, line in self._allocas.items() if owner[name] is whole]
        return own, self._with_calls(whole)

    @property
    def functions(self) -> list[str]:
        """The parts' functions."""
        return self._written

    def _note(self, part: OutlinedLines) -> Counter[str]:
        """Take note of how often a part uses names, those within it included."""
        used: Counter[str] = Counter()
        for line in part.lines:
            if isinstance(line, OutlinedLines):
                used += self._note(line)
                continue
            used.update(_NAME.findall(line))
            found = _DEFINED.match(line)
            if found is not None:
                self._types[found[1]] = _type(found[2])
        self._uses[part] = used
        return used

    def _write_part(self, part: OutlinedLines, own: list[str]) -> None:
        inside = {_defined(line) for line in own}
        lines = self._with_calls(part)
        inside |= {found[1] for line in lines if (found := _DEFINED.match(line)) is not None}
        used = {name for line in lines if not line.endswith(":") for name in _NAME.findall(_TARGET.sub("", line))}
        part.given = {name: self._types[name] for name in sorted(used - inside - self._known)}
        more = [
            f"ptr noalias {_size(self._allocas[name])} {name}" if name in self._allocas else f"{type} {name}"
            for name, type in part.given.items()
        ]
        head = f"define internal void {part.name}({', '.join([self._signature, *more])}) noinline nounwind {{"
        body = ["entry:", *own, *self._prologue, "  br label %start", "start:", *lines, "  ret void", "}"]
        self._written.append("\n".join([head, *body]))

    def _with_calls(self, part: OutlinedLines) -> list[str]:
        lines = []
        for line in part.lines:
            if isinstance(line, OutlinedLines):
                given = [f"{type} {name}" for name, type in line.given.items()]
                lines.append(f"  call void {line.name}({', '.join([self._arguments, *given])})")
            else:
                lines.append(line)
        return lines


def _all_parts(part: OutlinedLines) -> Iterator[OutlinedLines]:
    for line in part.lines:
        if isinstance(line, OutlinedLines):
            yield line
            yield from _all_parts(line)


def _size(alloca: str) -> str:
    """Return what says that a variable may be read wherever one likes: LLVM then does so before a loop."""
    found = _BYTES.search(alloca)
    assert found is not None
    return f"align 16 dereferenceable({found[1]})"


def _without_attributes(parameter: str) -> str:
    return parameter.replace(" noalias", "")


def _defined(line: str) -> str:
    found = _DEFINED.match(line)
    assert found is not None
    return found[1]


def _type(instruction: str) -> str:
    """Return the type of what an instruction gives."""
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
    found = _TYPE.search(rest)
    return found[1] if found is not None else ""
