"""Random expressions of every type and operator give in each lane what the machine's C compiler makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.gpu.simulator.expressions import (
    C_MACROS,
    CUDA_MACROS,
    FLOATS,
    INTEGERS,
    ROUNDED_PRODUCTS,
    TYPES,
    CType,
    ExpressionNode,
    draw_operands,
    float_expressions,
    integer_expressions,
    render,
)
from tests.gpu.simulator.kernel_runner import run_kernel
from tests.gpu.simulator.oracle import run_c

Array = np.ndarray[Any, Any]

# Blocks that end within a warp, and more than one of them.
BLOCK, GRID = 50, 5
LANES = BLOCK * GRID

_PARAMETERS = (
    *(f"const {type.name} *{type.letter}_in" for type in TYPES),
    *(f"{type.name} {type.letter}_all" for type in TYPES),
    "int n, long long *wholes, double *reals",
)

# A program runs in all lanes, or in lanes that a branch has picked.
_GUARDS = ("", "if (i % 3 != 1)", "if (i0 > 0)", "if (u_all != 0)")


@dataclass(frozen=True)
class Program:
    """An expression, the type that its value is kept in, and the branch that it stands in."""

    expression: ExpressionNode
    type: CType
    guard: str


@dataclass(repr=False)
class ProgramBatch:
    """The text of many programs, and which rows of the results are whose."""

    seed: int
    body: str = ""
    texts: list[str] = field(default_factory=list)
    rows: list[tuple[int, bool]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"batch of {len(self.texts)} programs, seed {self.seed}"

    def count(self, *, real: bool) -> int:
        """Return how many rows of results there are of a kind."""
        return sum(is_real == real for _, is_real in self.rows)

    def add(self, program: Program) -> None:
        """Write a program: it keeps its value, and what its expression leaves in the variables that it changes."""
        number = len(self.texts)
        changed: list[CType] = []
        text = render(program.expression, changed)
        kept = [(program.type.is_float, text), *((type.is_float, f"m{place}") for place, type in enumerate(changed))]
        declared = " ".join(f"{type.name} m{place} = {type.letter}1;" for place, type in enumerate(changed))
        stores = " ".join(self._store(number, is_real, value) for is_real, value in kept)
        self.texts.append(f"{program.guard} {text}")
        self.body += f"BEGIN\n{program.guard} {{ {declared}\n  {stores} }}\nEND({number})\n"

    def _store(self, number: int, is_real: bool, value: str) -> str:
        row = self.count(real=is_real)
        self.rows.append((number, is_real))
        array, type = ("reals", "double") if is_real else ("wholes", "long long")
        return f"{array}[{row} * n + i] = ({type})({value});"

    def source(self) -> str:
        """Return the body of the kernel, and of C's loop."""
        loads = "".join(
            f"{type.name} {type.letter}0 = {type.letter}_in[i], {type.letter}1 = {type.letter}_in[n + i];\n"
            for type in TYPES
        )
        return loads + self.body


def cuda_source(batch: ProgramBatch, products: str = ROUNDED_PRODUCTS) -> str:
    return (
        f"{products}{CUDA_MACROS}\n#define BEGIN\n#define END(program)\n"
        f"__global__ void expressions({', '.join(_PARAMETERS)}) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\n{batch.source()}}}\n"
    )


def c_source(batch: ProgramBatch) -> str:
    return (
        f"{C_MACROS}\n#define BEGIN undefined = 0;\n#define END(program) unknown[program * n + i] = undefined;\n"
        f"void expressions({', '.join(_PARAMETERS)}, bool *unknown) {{\n"
        f"for (int i = 0; i < n; i++) {{\n{batch.source()}}}}}\n"
    )


def are_identical(left: Array, right: Array) -> Array:
    """Return where two values have the same bits, or are both NaN."""
    if left.dtype.kind != "f":
        return left == right
    return (left.view(np.uint64) == right.view(np.uint64)) | (np.isnan(left) & np.isnan(right))


def make_batch(programs: list[Program], seed: int) -> ProgramBatch:
    batch = ProgramBatch(seed)
    for program in programs:
        batch.add(program)
    return batch


def compare_batch(batch: ProgramBatch) -> float:
    """Compare both sides, and return in what share of the lanes C defines what comes out."""
    generator = np.random.default_rng(batch.seed)
    inputs = [draw_operands(type, 2 * LANES, generator) for type in TYPES]
    uniform = [draw_operands(type, 1, generator)[0] for type in TYPES]
    wholes = np.zeros((batch.count(real=False), LANES), np.int64)
    reals = np.zeros((batch.count(real=True), LANES))
    arguments = [*inputs, *uniform, np.int32(LANES), wholes, reals]
    *_, found_wholes, found_reals = run_kernel(cuda_source(batch), "expressions", *arguments, grid=GRID, block=BLOCK)
    unknown = np.zeros((len(batch.texts), LANES), np.bool_)
    run_c(c_source(batch), "expressions", *arguments, unknown)

    wrong: list[str] = []
    places = {True: 0, False: 0}
    for number, is_real in batch.rows:
        found, right = (found_reals, reals) if is_real else (found_wholes, wholes)
        row = places[is_real]
        places[is_real] += 1
        for lane in np.flatnonzero(~are_identical(found[row], right[row]) & ~unknown[number])[:1]:
            values = _values(batch.texts[number], inputs, uniform, int(lane))
            wrong.append(f"{batch.texts[number]}\n  gives {found[row, lane]!r}, C {right[row, lane]!r}, where {values}")
    assert not wrong, f"{len(wrong)} results differ, such as\n" + "\n".join(sorted(wrong, key=len)[:3])
    return float((~unknown).mean())


def _values(text: str, inputs: list[Array], uniform: list[Any], lane: int) -> str:
    named = {
        **{f"{type.letter}0": given[lane] for type, given in zip(TYPES, inputs, strict=True)},
        **{f"{type.letter}1": given[LANES + lane] for type, given in zip(TYPES, inputs, strict=True)},
        **{f"{type.letter}_all": given for type, given in zip(TYPES, uniform, strict=True)},
    }
    return f"lane {lane}, " + ", ".join(f"{name} = {value!r}" for name, value in named.items() if name in text)


def programs(depth: int) -> st.SearchStrategy[Program]:
    def build_program(expressions: st.SearchStrategy[ExpressionNode], type: CType) -> st.SearchStrategy[Program]:
        return st.builds(Program, expressions, st.just(type), st.sampled_from(_GUARDS))

    return st.one_of(
        build_program(integer_expressions(depth), TYPES[7]), build_program(float_expressions(depth), TYPES[10])
    )


@st.composite
def batches(draw: st.DrawFn, depth: int, count: int) -> ProgramBatch:
    return make_batch(draw(st.lists(programs(depth), min_size=count, max_size=count)), draw(st.integers(0, 2**32)))


# The same examples on every machine. A failure names the expression and the lane, so that nothing need be shrunk.
fixed = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


# An oracle that never knows would pass anything: in most lanes it must.


@settings(fixed, max_examples=8)
@given(batches(depth=1, count=24))
def test_single_operators(batch: ProgramBatch) -> None:
    assert compare_batch(batch) > 0.25


@settings(fixed, max_examples=10)
@given(batches(depth=3, count=12))
def test_nested_expressions(batch: ProgramBatch) -> None:
    assert compare_batch(batch) > 0.25


@pytest.mark.parametrize("source", TYPES, ids=lambda type: type.name)
def test_every_conversion_of_a_type(source: CType) -> None:
    made = []
    for target in TYPES:
        for operand in (f"{source.letter}0", f"{source.letter}_all"):
            if source.is_float and not target.is_float and target.letter != "b":
                limits = np.iinfo(target.dtype)
                text = f"TO_INTEGER({target.short}, {float(limits.min)!r}, {float(limits.max) + 1.0!r}, {operand})"
            else:
                text = f"(({target.short}){operand})"
            made.append(Program(ExpressionNode(text), target, ""))
    assert compare_batch(make_batch(made, 1)) > 0.25


@pytest.mark.parametrize("left", TYPES, ids=lambda type: type.name)
def test_every_operator_on_every_pair_of_types(left: CType) -> None:
    made = []
    for right in TYPES:
        real = left.is_float or right.is_float
        pair = f"{left.letter}0", f"{right.letter}1"
        forms = ["({} + {})", "({} - {})", "({} * {})", "({} / {})" if real else "DIV({}, {})"]
        forms += [] if real else ["REM({}, {})", "({} & {})", "({} | {})", "({} ^ {})", "SHL({}, {})", "SHR({}, {})"]
        made += [Program(ExpressionNode(form.format(*pair)), FLOATS[1] if real else INTEGERS[7], "") for form in forms]
        made += [
            Program(ExpressionNode(f"({pair[0]} {op} {pair[1]})"), INTEGERS[7], "")
            for op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
        ]
    assert compare_batch(make_batch(made, 2)) > 0.5
