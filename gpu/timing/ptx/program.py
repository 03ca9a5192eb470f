"""Parse the PTX of a kernel file into instructions in basic blocks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from gpu.base.errors import KernelError
from gpu.files.source_lexer import blank_comments
from gpu.simulator.ptx_syntax import parse_instruction, replace_wait_loops, split_statements

_HOST_CALL = re.compile(r"\{[^{}]*\bcall(?:\.uni)?\b[^;{}]*\b(?:vprintf|__assertfail)\b[^{}]*\}")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_VARIABLE = re.compile(
    r"\.(shared|const|global|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*([^;]+))?;"
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr[^\w\n]*(?:\.\w+\s+)*(?:\.align\s+\d+)?)?\s+([\w$]+)(?:\[(\d+)\])?"
)
_FILE = re.compile(r"\.file\s+(\d+)\s+\"([^\"]*)\"")
_LINE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+)\s+(\d+)")
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
_NAME = re.compile(r"(?<![\w$%.])[\w$]+")
_REGISTER = re.compile(r"%[a-zA-Z_][\w$]*")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|lanemask_\w+|clock\w*|globaltimer\w*|smid|nsmid|dynamic_smem_size|envreg\d+)\b"
)


@dataclass(frozen=True)
class PtxVariable:
    """A variable in memory: its state space, size and alignment in bytes, and initializer."""

    name: str
    space: str
    size: int
    alignment: int
    initializer: str = ""


@dataclass(frozen=True)
class PtxParameter:
    """A kernel parameter: its offset and size in the parameter buffer, in bytes."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class PtxInstruction:
    """An instruction.

    Parameters
    ----------
    opcode : str
        The first word, such as "ld".
    modifiers : tuple of str
        The other words: "global", "v4", "f32".
    operands : tuple of str
        The operands as in the text.
    guard : str
        The predicate of the instruction; "" if it is unconditional.
    negated : bool
        Whether it is executed if the predicate is false.
    line : int
        The source line according to the compiler; 0 if unknown.
    text_line : int
        The line in the PTX text.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    line: int = 0
    text_line: int = 0

    @cached_property
    def type(self) -> str:
        """The last word that is a type, such as "f32"."""
        return next((word for word in reversed(self.modifiers) if re.fullmatch(r"[bsuf]\d+|pred", word)), "")

    @cached_property
    def written_registers(self) -> tuple[str, ...]:
        """The registers that the instruction writes."""
        if self.opcode in ("st", "red", "bar", "barrier", "bra", "ret", "exit", "membar", "fence", "nanosleep", "trap"):
            return ()
        if self.opcode == "cp" or (self.operands and self.operands[0].startswith("[")):
            return ()
        if self.opcode == "wmma" and self.modifiers[0] == "store":
            return ()
        return tuple(find_registers(self.operands[0])) if self.operands else ()

    @cached_property
    def read_registers(self) -> tuple[str, ...]:
        """The registers that the instruction reads, including its guard."""
        rest = self.operands if not self.written_registers else self.operands[1:]
        registers = [name for operand in rest for name in find_registers(operand)]
        return (*registers, self.guard) if self.guard else tuple(registers)

    @property
    def text(self) -> str:
        """The instruction as in the PTX text."""
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join((self.opcode, *self.modifiers))} {', '.join(self.operands)}".strip()

    @property
    def is_shared_loop(self) -> bool:
        """Whether the assembler generates a loop for an atomic operation on shared memory.

        The loop loads, computes, and stores unless another thread has changed the word. Only integers of 32 bits,
        exchanges and comparisons with an exchange have an instruction of their own.
        """
        if self.opcode not in ("atom", "red") or "shared" not in self.modifiers:
            return False
        is_wide = self.type.endswith("64") or self.type.startswith("f")
        return is_wide and not {"exch", "cas"}.intersection(self.modifiers)

    @property
    def ends_block(self) -> bool:
        return self.opcode in ("bra", "ret", "exit", "trap", "brx")


@dataclass(eq=False)
class BasicBlock:
    """Instructions that are executed one after the other.

    `successors` are the numbers of the possible next blocks; `is_unroll_disabled` forbids unrolling the loop.
    """

    number: int
    label: str
    instructions: list[PtxInstruction] = field(default_factory=list)
    successors: tuple[int, ...] = ()
    is_unroll_disabled: bool = False


@dataclass(eq=False)
class PtxKernel:
    """The parsed text of a kernel.

    Parameters
    ----------
    name : str
        The mangled name.
    parameters : tuple of PtxParameter
    variables : tuple of PtxVariable
        Variables in shared and local memory.
    blocks : list of BasicBlock
    register_widths : dict of str to int
        Bytes of the registers with a prefix, such as "%rd", or of a register of inline assembly; 0 for a predicate.
    """

    name: str
    parameters: tuple[PtxParameter, ...]
    variables: tuple[PtxVariable, ...]
    blocks: list[BasicBlock]
    register_widths: dict[str, int]

    @property
    def instructions(self) -> Iterator[PtxInstruction]:
        """The instructions of all blocks, in order."""
        return (instruction for block in self.blocks for instruction in block.instructions)

    def find_writers(self) -> dict[str, list[PtxInstruction]]:
        """Return the instructions that write each register; an empty list for other registers."""
        writers: dict[str, list[PtxInstruction]] = defaultdict(list)
        for instruction in self.instructions:
            for name in instruction.written_registers:
                writers[name].append(instruction)
        return writers

    @property
    def shared_bytes(self) -> int:
        """The total size of arrays with a known size."""
        return lay_out_variables(self.shared_variables)[1]

    @property
    def local_bytes(self) -> int:
        """The total size of a thread's arrays in local memory."""
        return lay_out_variables([variable for variable in self.variables if variable.space == "local"])[1]

    @property
    def shared_variables(self) -> tuple[PtxVariable, ...]:
        return tuple(variable for variable in self.variables if variable.space == "shared" and variable.size)


class LazyKernels(Mapping[str, PtxKernel]):
    """Kernels by name, each parsed when it is first read: a file has many, and a run launches few of them."""

    def __init__(self, parsers: Mapping[str, Callable[[], PtxKernel]]) -> None:
        self._parsers = {name: cache(parse) for name, parse in parsers.items()}

    def __getitem__(self, name: str) -> PtxKernel:
        return self._parsers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsers)

    def __len__(self) -> int:
        return len(self._parsers)


@dataclass(eq=False)
class PtxProgram:
    """The kernels of a file by name, and its variables."""

    kernels: Mapping[str, PtxKernel]
    variables: tuple[PtxVariable, ...]

    def find_kernel(self, name: str) -> PtxKernel:
        """Return a kernel by its name, or by a C++ name that matches a single mangled name.

        Raises
        ------
        KernelError
            If no kernel, or more than one, has this name.
        """
        if name in self.kernels:
            return self.kernels[name]
        head, _, arguments = name.partition("<")
        plain = head.rpartition("::")[2]
        candidates = [kernel for kernel in self.kernels if kernel == plain or f"{len(plain)}{plain}" in kernel]
        if len(candidates) > 1 and arguments:
            pattern = f"{len(plain)}{plain}I{_match_template_arguments(arguments.removesuffix('>'))}"
            exact = [kernel for kernel in candidates if re.search(f"{pattern}E", kernel)]
            candidates = exact or [kernel for kernel in candidates if re.search(pattern, kernel)]
        if len(candidates) != 1:
            raise KernelError(f"The compiler's PTX has no kernel {name!r}.")
        return self.kernels[candidates[0]]


_MANGLED_TYPES = {
    "bool": "b", "char": "c", "signedchar": "a", "unsignedchar": "h", "short": "s", "unsignedshort": "t", "int": "i",
    "unsigned": "j", "unsignedint": "j", "long": "l", "unsignedlong": "m", "longlong": "x", "unsignedlonglong": "y",
    "float": "f", "double": "d",
}  # fmt: skip
"""Letters of types in mangled names, by the types without spaces."""


def _match_template_arguments(text: str) -> str:
    """Return a pattern of mangled template arguments, after which others with defaults may follow."""
    patterns = []
    for argument in re.sub(r"\s", "", text).split(","):
        value = {"true": "1", "false": "0"}.get(argument, argument)
        pointed = argument.rstrip("*")
        if pointed in _MANGLED_TYPES:
            patterns.append("P" * (len(argument) - len(pointed)) + _MANGLED_TYPES[pointed])
        elif value.lstrip("-").rstrip("uUlL").isdigit():
            patterns.append(f"L[a-z]{value.rstrip('uUlL').replace('-', 'n')}E")
        elif re.fullmatch(r"\w+", argument):
            patterns.append(f"{len(argument)}{argument}")
        else:
            patterns.append(".+?")
    return "".join(patterns)


def lay_out_variables(variables: Sequence[PtxVariable]) -> tuple[dict[str, int], int]:
    """Lay out variables one after the other; return their offsets, and the total size in bytes."""
    offsets, end = {}, 0
    for variable in variables:
        end = -(-end // variable.alignment) * variable.alignment
        offsets[variable.name] = end
        end += variable.size
    return offsets, end


def parse_ptx(text: str, file: str = "") -> PtxProgram:
    """Parse PTX text; instructions get the source lines of the named file, where the text has them."""
    text = _HOST_CALL.sub(_replace_host_call, replace_wait_loops(blank_comments(text), ""))
    files = frozenset(number for number, name in _FILE.findall(text) if name.replace("\\", "/").endswith(f"/{file}"))
    parsers: dict[str, Callable[[], PtxKernel]] = {}
    outside, end = [], 0
    for match in _ENTRY.finditer(text):
        outside.append(text[end : match.start()])
        head = _find_closing_bracket(text, match.end() - 1, "()")
        opening = text.index("{", head)
        end = _find_closing_bracket(text, opening, "{}")
        first = text.count("\n", 0, opening + 1) + 1
        parsers[match[1]] = partial(
            _parse_kernel, match[1], text[match.end() : head - 1], text[opening + 1 : end - 1], files, first
        )
    outside.append(text[end:])
    variables = tuple(variable for part in outside for variable in _parse_variables(part))
    shared = tuple(variable for variable in variables if variable.space == "shared")
    return PtxProgram(
        LazyKernels({name: partial(_add_shared_variables, parse, shared) for name, parse in parsers.items()}), variables
    )


def _add_shared_variables(parse: Callable[[], PtxKernel], shared: Sequence[PtxVariable]) -> PtxKernel:
    """Return a parsed kernel with the file's shared variables that it uses."""
    kernel = parse()
    used = {word for instruction in kernel.instructions for word in _find_names(instruction)}
    kernel.variables = (*kernel.variables, *(variable for variable in shared if variable.name in used))
    return kernel


def _replace_host_call(call: re.Match[str]) -> str:
    """Replace a call that the host handles by its result 0: a kernel that is right and fast executes few of them."""
    results = re.findall(r"ld\.param\.b32\s+(%\w+),", call[0])
    return "".join(f"mov.b32 {register}, 0;" for register in results) + "\n" * call[0].count("\n")


def _find_names(instruction: PtxInstruction) -> Iterator[str]:
    for operand in instruction.operands:
        yield from re.findall(r"[A-Za-z_$][\w$]*", operand)


def _find_closing_bracket(text: str, opening: int, pair: str) -> int:
    """Return the index after the bracket that closes the one at an index."""
    depth = 0
    for index in range(opening, len(text)):
        if text[index] == pair[0]:
            depth += 1
        elif text[index] == pair[1]:
            depth -= 1
            if not depth:
                return index + 1
    raise KernelError("The compiler's PTX ends in the middle of a kernel.")


def _parse_variables(text: str) -> Iterator[PtxVariable]:
    for match in _VARIABLE.finditer(text):
        space, alignment, type, name, dimensions, initial = match.groups()
        size = _type_size(type)
        for length in re.findall(r"\[(\d*)\]", dimensions or ""):
            size *= int(length or 0)
        yield PtxVariable(name, space, size, max(int(alignment or 0), _type_size(type)), (initial or "").strip())


def _type_size(type: str) -> int:
    return _SIZES[re.sub(r"\D", "", type)]


def _preserve_line_breaks(match: re.Match[str]) -> str:
    """Return the line breaks of removed text, so that line numbers stay the same."""
    return "\n" * match[0].count("\n")


def _parse_kernel(name: str, head: str, body: str, files: frozenset[str], first: int) -> PtxKernel:
    parameters, end = [], 0
    for match in _PARAMETER.finditer(head):
        alignment = int(match[1] or _type_size(match[2]))
        size = _type_size(match[2]) * int(match[4] or 1)
        end = -(-end // alignment) * alignment
        parameters.append(PtxParameter(match[3], end, size))
        end += size
    widths = {"%p": 0, "%rs": 2, "%r": 4, "%rd": 8, "%f": 4, "%fd": 8, "%h": 2, "%hh": 4}
    own_registers = set()  # of inline assembly
    for type, registers in re.findall(r"\.reg\s+\.(\w+)\s+([^;]+);", body):
        for register in registers.split(","):
            prefix = register.strip().partition("<")[0]
            if not prefix.startswith("%"):
                own_registers.add(prefix)
                prefix = f"%own_{prefix}"
            widths[prefix] = 0 if type == "pred" else _type_size(type)
    if own_registers:
        # In one pass: unrolled inline assembly declares thousands of registers.
        body = _NAME.sub(lambda match: f"%own_{match[0]}" if match[0] in own_registers else match[0], body)
    return PtxKernel(name, tuple(parameters), tuple(_parse_variables(body)), _parse_blocks(body, files, first), widths)


def _parse_blocks(body: str, files: frozenset[str], first: int) -> list[BasicBlock]:
    """Return the basic blocks of a text that begins at a line number."""
    body = _VARIABLE.sub(_preserve_line_breaks, body)
    blocks = [BasicBlock(0, "")]
    line = 0
    for lines_before, statement in split_statements(body):
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
                blocks[-1].is_unroll_disabled = True
            if statement.startswith(".loc"):
                # For code from a header, the line of the call.
                line = next((int(number) for file, number in _LINE.findall(statement) if file in files), 0)
            continue
        parsed = parse_instruction(statement)
        if parsed is None:
            raise KernelError(f"Cannot parse {statement!r} in the compiler's PTX.")
        if blocks[-1].instructions and blocks[-1].instructions[-1].ends_block:
            blocks.append(BasicBlock(len(blocks), ""))
        blocks[-1].instructions.append(PtxInstruction(*parsed, line, first + lines_before))
    labels = {block.label: block.number for block in blocks if block.label}
    for block in blocks:
        block.successors = _find_successors(block, labels, len(blocks))
    return blocks


def _find_successors(block: BasicBlock, labels: dict[str, int], count: int) -> tuple[int, ...]:
    last = block.instructions[-1] if block.instructions else None
    next_block = (block.number + 1,) if block.number + 1 < count else ()
    if last is None or not last.ends_block:
        return next_block
    if last.opcode == "brx":
        raise KernelError("The compiler generated a jump table, which the timing model does not support.")
    target = (labels[last.operands[0]],) if last.opcode == "bra" else ()
    return target if not last.guard else tuple(dict.fromkeys((*target, *next_block)))


def find_registers(operand: str) -> Iterator[str]:
    """Yield the names of an operand's registers, except special ones."""
    for match in _REGISTER.finditer(operand):
        if not _SPECIAL.match(match[0]):
            yield match[0]
    if not operand.startswith(("%", "[", "{", "$")) and re.fullmatch(r"[a-z]\w*", operand):
        yield operand
