"""What a compiler made of a kernel file: PTX text as instructions in basic blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gpu.errors import KernelError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_VARIABLE = re.compile(
    r"\.(shared|const|global|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*([^;]+))?;"
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr[^\w\n]*(?:\.\w+\s+)*(?:\.align\s+\d+)?)?\s+([\w$]+)(?:\[(\d+)\])?"
)
_WAITING = re.compile(
    r"[\w$]+:\s*(mbarrier\.(?:try|test)_wait[\w.:]*)\s+([\w$%]+)\s*,([^;]*);"
    r"\s*@\s*[\w$%]+\s+bra\s+([\w$]+);\s*bra\s+[\w$]+;\s*\4:"
)
_INSTRUCTION = re.compile(r"(?:@(!?)(%?[\w$]+)\s+)?([a-z_][\w.:]*)\s*(.*)", re.DOTALL)
_FILE = re.compile(r"\.file\s+(\d+)\s+\"([^\"]*)\"")
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+)\s+(\d+)")
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
_REGISTER = re.compile(r"%[a-zA-Z_][\w$]*")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|lanemask_\w+|clock\w*|globaltimer\w*|smid|nsmid|dynamic_smem_size|envreg\d+)\b"
)


@dataclass(frozen=True)
class PtxVariable:
    """A variable in memory: its state space, its size in bytes, its alignment, and what it starts with."""

    name: str
    space: str
    size: int
    alignment: int
    initial: str = ""


@dataclass(frozen=True)
class PtxParameter:
    """A kernel's parameter: its place among their bytes, and its size."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class PtxInstruction:
    """An instruction.

    Parameters
    ----------
    opcode : str
        The first of its words, such as "ld".
    words : tuple of str
        The others: "global", "v4", "f32".
    operands : tuple of str
        As the text has them.
    guard : str
        The predicate that it runs under; "" where it always runs.
    negated : bool
        Whether it runs where that is false.
    line : int
        The source line that the compiler says it is of; 0 where it says none.
    text_line : int
        Its own, in the compiler's text.
    """

    opcode: str
    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    line: int = 0
    text_line: int = 0

    @cached_property
    def type(self) -> str:
        """The last word that is a type, such as "f32"."""
        return next((word for word in reversed(self.words) if re.fullmatch(r"[bsuf]\d+|pred", word)), "")

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The registers that it writes."""
        if self.opcode in ("st", "red", "bar", "barrier", "bra", "ret", "exit", "membar", "fence", "nanosleep", "trap"):
            return ()
        if self.opcode == "cp" or (self.operands and self.operands[0].startswith("[")):
            return ()
        if self.opcode == "wmma" and self.words[0] == "store":
            return ()
        return tuple(_registers(self.operands[0])) if self.operands else ()

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The registers that it reads, its guard's among them."""
        rest = self.operands if not self.written else self.operands[1:]
        found = [name for operand in rest for name in _registers(operand)]
        return (*found, self.guard) if self.guard else tuple(found)

    @property
    def text(self) -> str:
        """As the compiler wrote it."""
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join((self.opcode, *self.words))} {', '.join(self.operands)}".strip()

    @property
    def ends_block(self) -> bool:
        return self.opcode in ("bra", "ret", "exit", "trap", "brx")


@dataclass(eq=False)
class BasicBlock:
    """Instructions that run one after the other.

    `follows` are the numbers of the blocks that may come next; `keeps_rounds` is whether the text forbids to unroll it.
    """

    number: int
    label: str
    instructions: list[PtxInstruction] = field(default_factory=list)
    follows: tuple[int, ...] = ()
    keeps_rounds: bool = False


@dataclass(eq=False)
class PtxKernel:
    """A kernel's text, taken apart."""

    name: str
    parameters: tuple[PtxParameter, ...]
    variables: tuple[PtxVariable, ...]
    blocks: list[BasicBlock]
    widths: dict[str, int]

    @property
    def shared_bytes(self) -> int:
        """Of the arrays of known size."""
        return placed(self.shared)[1]

    @property
    def shared(self) -> tuple[PtxVariable, ...]:
        return tuple(each for each in self.variables if each.space == "shared" and each.size)


@dataclass(eq=False)
class PtxProgram:
    """The kernels of a file, by their names, and its variables."""

    kernels: dict[str, PtxKernel]
    variables: tuple[PtxVariable, ...]

    def kernel(self, name: str) -> PtxKernel:
        """Return a kernel by its name, or that of a C++ function that only one mangled name can stand for."""
        if name in self.kernels:
            return self.kernels[name]
        plain = name.partition("<")[0].rpartition("::")[2]
        alike = [each for each in self.kernels if each == plain or f"{len(plain)}{plain}" in each]
        if len(alike) != 1:
            raise KernelError(f"What the compiler made has no kernel {name!r}.")
        return self.kernels[alike[0]]


def placed(variables: Sequence[PtxVariable]) -> tuple[dict[str, int], int]:
    """Return where each variable lies, one behind the other, and how many bytes all take."""
    places, end = {}, 0
    for each in variables:
        end = -(-end // each.alignment) * each.alignment
        places[each.name] = end
        end += each.size
    return places, end


def parse(text: str, file: str = "") -> PtxProgram:
    """Take PTX text apart; instructions know their lines in the file of that name, where the text says them."""
    text = _WAITING.sub(_asked_once, _COMMENT.sub(_without, text))
    files = frozenset(number for number, name in _FILE.findall(text) if name.replace("\\", "/").endswith(f"/{file}"))
    kernels: dict[str, PtxKernel] = {}
    outside, end = [], 0
    for found in _ENTRY.finditer(text):
        outside.append(text[end : found.start()])
        head = _closing(text, found.end() - 1, "()")
        opening = text.index("{", head)
        end = _closing(text, opening, "{}")
        first = text.count("\n", 0, opening + 1) + 1
        kernels[found[1]] = _kernel(found[1], text[found.end() : head - 1], text[opening + 1 : end - 1], files, first)
    outside.append(text[end:])
    variables = tuple(each for part in outside for each in _variables(part))
    for kernel in kernels.values():
        used = {word for block in kernel.blocks for each in block.instructions for word in _names(each)}
        shared = [each for each in variables if each.space == "shared" and each.name in used]
        kernel.variables = (*kernel.variables, *shared)
    return PtxProgram(kernels, variables)


def _names(instruction: PtxInstruction) -> Iterator[str]:
    for operand in instruction.operands:
        yield from re.findall(r"[A-Za-z_$][\w$]*", operand)


def _closing(text: str, opening: int, pair: str) -> int:
    """Return the place behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(opening, len(text)):
        if text[place] == pair[0]:
            depth += 1
        elif text[place] == pair[1]:
            depth -= 1
            if not depth:
                return place + 1
    raise KernelError("The compiler's text ends in the middle of a kernel.")


def _variables(text: str) -> Iterator[PtxVariable]:
    for found in _VARIABLE.finditer(text):
        space, alignment, type, name, dimensions, initial = found.groups()
        size = _size_of(type)
        for length in re.findall(r"\[(\d*)\]", dimensions or ""):
            size *= int(length or 0)
        yield PtxVariable(name, space, size, max(int(alignment or 0), _size_of(type)), (initial or "").strip())


def _size_of(type: str) -> int:
    return _SIZES[re.sub(r"\D", "", type)]


def _asked_once(found: re.Match[str]) -> str:
    """Return what a loop asks that waits for a barrier: it is taken to have waited."""
    return f"{found[1]} {found[2]}, {found[3]};" + "\n" * found[0].count("\n")


def _without(found: re.Match[str]) -> str:
    """Return the ends of lines of what is left out, so that the others keep their numbers."""
    return "\n" * found[0].count("\n")


def _kernel(name: str, head: str, body: str, files: frozenset[str], first: int) -> PtxKernel:
    parameters, end = [], 0
    for found in _PARAMETER.finditer(head):
        alignment = int(found[1] or _size_of(found[2]))
        size = _size_of(found[2]) * int(found[4] or 1)
        end = -(-end // alignment) * alignment
        parameters.append(PtxParameter(found[3], end, size))
        end += size
    widths = {"%p": 0, "%rs": 2, "%r": 4, "%rd": 8, "%f": 4, "%fd": 8, "%h": 2, "%hh": 4}
    for type, registers in re.findall(r"\.reg\s+\.(\w+)\s+([^;]+);", body):
        for register in registers.split(","):
            own = register.strip().partition("<")[0]
            if not own.startswith("%"):  # of inline assembly
                body = re.sub(rf"(?<![\w$%.]){re.escape(own)}(?![\w$])", lambda found: f"%own_{found[0]}", body)
                own = f"%own_{own}"
            widths[own] = 0 if type == "pred" else _size_of(type)
    return PtxKernel(name, tuple(parameters), tuple(_variables(body)), _blocks(body, files, first), widths)


def _blocks(body: str, files: frozenset[str], first: int) -> list[BasicBlock]:
    """Return the basic blocks of a text whose first line has that number."""
    body = _VARIABLE.sub(_without, body)
    blocks = [BasicBlock(0, "")]
    line = 0
    for before, statement in _statements(body):
        if statement.endswith(":"):
            if blocks[-1].instructions or blocks[-1].label:
                blocks.append(BasicBlock(len(blocks), statement[:-1]))
            else:
                blocks[-1].label = statement[:-1]
            continue
        if statement.startswith("."):
            if "nounroll" in statement:
                if blocks[-1].instructions and blocks[-1].instructions[-1].ends_block:
                    blocks.append(BasicBlock(len(blocks), ""))
                blocks[-1].keeps_rounds = True
            if statement.startswith(".loc"):
                # Of what a header has, the line that called it.
                line = next((int(number) for file, number in _PLACE.findall(statement) if file in files), 0)
            continue
        found = _INSTRUCTION.fullmatch(statement)
        if found is None:
            raise KernelError(f"The compiler's text has {statement!r}, which is not understood.")
        opcode, *words = found[3].split(".")
        operands = tuple(_operands(found[4]))
        if blocks[-1].instructions and blocks[-1].instructions[-1].ends_block:
            blocks.append(BasicBlock(len(blocks), ""))
        guard, negated = found[2] or "", bool(found[1])
        blocks[-1].instructions.append(
            PtxInstruction(opcode, tuple(words), operands, guard, negated, line, first + before)
        )
    labels = {block.label: block.number for block in blocks if block.label}
    for block in blocks:
        block.follows = _follows(block, labels, len(blocks))
    return blocks


def _operands(text: str) -> Iterator[str]:
    """Yield what commas divide outside of brackets."""
    part, depth = "", 0
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


def _statements(body: str) -> Iterator[tuple[int, str]]:
    """Yield instructions, directives and labels, behind the number of lines before each; inner braces mean nothing."""
    end = lines = counted = 0
    for part in body.split(";"):
        rest = part.strip()
        end += len(part.rstrip())
        while True:
            rest = rest.strip()
            lines += body.count("\n", counted, end - len(rest))
            counted = end - len(rest)
            if rest.startswith(("}", "{")) and not re.match(r"\{\s*%", rest):
                rest = rest[1:]
                continue
            label = re.match(r"([\w$]+):(?!:)", rest)
            if label is not None:
                yield lines, label[1] + ":"
                rest = rest[label.end() :]
                continue
            located = re.match(r"\.(loc|pragma|file|section)[^\n]*(\n|$)", rest)
            if located is not None:
                yield lines, located[0].strip()
                rest = rest[located.end() :]
                continue
            break
        if rest:
            yield lines, rest
        end += len(part) - len(part.rstrip()) + 1


def _follows(block: BasicBlock, labels: dict[str, int], count: int) -> tuple[int, ...]:
    last = block.instructions[-1] if block.instructions else None
    behind = (block.number + 1,) if block.number + 1 < count else ()
    if last is None or not last.ends_block:
        return behind
    if last.opcode == "brx":
        raise KernelError("The compiler made a jump table, which the model does not follow.")
    target = (labels[last.operands[0]],) if last.opcode == "bra" else ()
    return target if not last.guard else tuple(dict.fromkeys((*target, *behind)))


def _registers(operand: str) -> Iterator[str]:
    for found in _REGISTER.finditer(operand):
        if not _SPECIAL.match(found[0]):
            yield found[0]
    if not operand.startswith(("%", "[", "{", "$")) and re.fullmatch(r"[a-z]\w*", operand):
        yield operand
