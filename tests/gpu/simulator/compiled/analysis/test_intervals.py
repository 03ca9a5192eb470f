"""Which values integers can have, against all that they do have; what is promised to LLVM has to be so."""

from __future__ import annotations

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.intervals import Intervals
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.types import BOOL, INT32, Scalar

UINT32 = Scalar("uint32")
FLOAT32 = Scalar("float32")
HERE = SourcePosition("kernel.cu", 1, 1)
BLOCK = (4, 3, 2)


def make_frame(*statements: ir.Statement, parameters: int = 0) -> PlannedFrame:
    named = tuple((f"p{number}", INT32) for number in range(parameters))
    return PlannedFrame("", ir.Function("f", INT32, named, body=ir.Block(statements)), 9)


def make_constant(value: int, type: Scalar = INT32) -> ir.Const:
    return ir.Const(type, np.dtype(type.name).type(value))


def make_thread_index(axis: int = 0, type: Scalar = UINT32) -> ir.Special:
    return ir.Special(type, "threadIdx", axis)


def type_limits(type: Scalar) -> tuple[int, int]:
    known = np.iinfo(type.name)
    return int(known.min), int(known.max)


def compute_interval(expression: ir.Expression, block: tuple[int, ...] = BLOCK, within: PlannedFrame | None = None):
    return Intervals(block).find_interval(within or make_frame(), expression)


def overflow_flags(expression: ir.Binary, block: tuple[int, ...] = BLOCK) -> list[str]:
    return Intervals(block).no_wrap_flags(make_frame(), expression).split()


@pytest.mark.parametrize("type", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_the_last_number_of_a_type_does_not_wrap_and_the_next_one_does(type: str) -> None:
    scalar = Scalar(type)
    low, high = type_limits(scalar)
    last = ir.Binary(scalar, "+", make_constant(high - 1, scalar), make_constant(1, scalar))
    assert compute_interval(last) == (high, high)
    assert ("nsw" if low else "nuw") in overflow_flags(last)
    beyond = ir.Binary(scalar, "+", make_constant(high, scalar), make_constant(1, scalar))
    assert compute_interval(beyond) is None
    assert ("nsw" if low else "nuw") not in overflow_flags(beyond)
    first = ir.Binary(scalar, "-", make_constant(low + 1, scalar), make_constant(1, scalar))
    assert compute_interval(first) == (low, low)
    assert ("nsw" if low else "nuw") in overflow_flags(first)
    below = ir.Binary(scalar, "-", make_constant(low, scalar), make_constant(1, scalar))
    assert compute_interval(below) is None
    assert ("nsw" if low else "nuw") not in overflow_flags(below)


def test_an_unsigned_number_may_be_a_signed_one_too_as_long_as_it_has_room() -> None:
    for value, promised in ((2**31 - 2, ["nuw", "nsw"]), (2**31 - 1, ["nuw"]), (2**32 - 2, ["nuw"]), (2**32 - 1, [])):
        assert (
            overflow_flags(ir.Binary(UINT32, "+", make_constant(value, UINT32), make_constant(1, UINT32))) == promised
        )
    for value, promised in ((0, ["nuw", "nsw"]), (-1, ["nsw"]), (-(2**31), ["nsw"])):
        assert overflow_flags(ir.Binary(INT32, "+", make_constant(value), make_constant(0))) == promised
    assert overflow_flags(ir.Binary(INT32, "+", make_constant(-1), make_constant(2))) == ["nsw"], (
        "as an unsigned number -1 is a large one"
    )
    assert overflow_flags(ir.Binary(INT32, "+", make_constant(2), make_constant(-1))) == ["nsw"]
    assert overflow_flags(ir.Binary(UINT32, "-", make_constant(5, UINT32), make_constant(2**31, UINT32))) == [], (
        "as a signed one 2^31 is -2^31"
    )
    assert overflow_flags(ir.Binary(UINT32, "-", make_constant(5, UINT32), make_constant(2**31 - 1, UINT32))) == ["nsw"]


def test_only_what_can_wrap_has_flags() -> None:
    for op in ("/", "%", ">>", "&", "|", "=="):
        assert overflow_flags(ir.Binary(INT32, op, make_constant(6), make_constant(3))) == []
    assert overflow_flags(ir.Binary(FLOAT32, "+", make_constant(1, FLOAT32), make_constant(2, FLOAT32))) == []
    assert overflow_flags(ir.Binary(BOOL, "+", make_constant(0, BOOL), make_constant(1, BOOL))) == []
    assert overflow_flags(ir.Binary(INT32, "+", ir.Local(INT32, 5, "?"), make_constant(1))) == []
    assert overflow_flags(ir.Binary(INT32, "+", make_constant(1), ir.Local(INT32, 5, "?"))) == []


def test_where_a_thread_is() -> None:
    block = (256, 4, 2)
    expected = {
        ("threadIdx", 0): (0, 255), ("threadIdx", 1): (0, 3), ("threadIdx", 2): (0, 1),
        ("blockDim", 0): (256, 256), ("blockDim", 1): (4, 4), ("blockDim", 2): (2, 2),
        # As many blocks as threads can be numbered along x, and as CUDA takes along y and z.
        ("blockIdx", 0): (0, (2**31 - 1) // 256 - 1), ("blockIdx", 1): (0, 65_534), ("blockIdx", 2): (0, 65_534),
        ("gridDim", 0): (1, (2**31 - 1) // 256), ("gridDim", 1): (1, 65_535), ("gridDim", 2): (1, 65_535),
    }  # fmt: skip
    for (name, axis), interval in expected.items():
        assert compute_interval(ir.Special(UINT32, name, axis), block) == interval


def test_the_number_of_a_thread_in_the_grid_never_wraps() -> None:
    for threads in (1, 32, 1000, 1024):
        wide = ir.Binary(UINT32, "*", ir.Special(UINT32, "blockIdx", 0), ir.Special(UINT32, "blockDim", 0))
        place = ir.Binary(UINT32, "+", wide, make_thread_index())
        assert overflow_flags(wide, (threads, 1, 1)) == overflow_flags(place, (threads, 1, 1)) == ["nuw", "nsw"]
        assert compute_interval(ir.Cast(INT32, place), (threads, 1, 1)) == (0, (2**31 - 1) // threads * threads - 1)


SIDES = [(3, 3), (0, 3), (2, 9), (-4, -2), (-4, 5)]


@pytest.mark.parametrize("left", SIDES)
@pytest.mark.parametrize("right", SIDES)
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_sums_and_products_have_the_least_and_the_greatest_value_and_no_more(
    op: str, left: tuple[int, int], right: tuple[int, int]
) -> None:
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
    every = [apply(a, b) for a, b in product(range(left[0], left[1] + 1), range(right[0], right[1] + 1))]
    assert compute_interval(
        ir.Binary(INT32, op, make_ranged_expression(left, 0), make_ranged_expression(right, 1)), (16, 16, 1)
    ) == (min(every), max(every))


def make_ranged_expression(interval: tuple[int, int], axis: int) -> ir.Expression:
    """Return what takes all values of an interval, and is known to."""
    count = interval[1] - interval[0] + 1
    if count == 1:
        return make_constant(interval[0])
    within = ir.Binary(INT32, "%", ir.Cast(INT32, make_thread_index(axis)), make_constant(count))
    return ir.Binary(INT32, "+", within, make_constant(interval[0]))


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("/", (5, 15), (2, 4), (1, 7)),
        ("/", (0, 15), (1, 1), (0, 15)),
        ("/", (5, 15), (0, 4), None),
        ("/", (-1, 15), (2, 4), None),
        ("%", (5, 15), (2, 4), (0, 3)),
        ("%", (0, 2), (9, 9), (0, 2)),
        ("%", (5, 15), (1, 1), (0, 0)),
        ("%", (0, 8), (9, 9), (0, 8)),
        ("%", (0, 9), (9, 9), (0, 8)),
        ("%", (5, 15), (0, 4), None),
        ("%", (-1, 15), (2, 4), None),
        (">>", (5, 15), (1, 2), (1, 7)),
        (">>", (0, 15), (0, 3), (0, 15)),
        (">>", (-1, 15), (1, 2), None),
        (">>", (5, 15), (-1, 2), None),
        ("&", (5, 15), (2, 4), (0, 4)),
        ("&", (0, 3), (0, 9), (0, 3)),
        ("&", (-1, 15), (2, 4), None),
        ("&", (5, 15), (-2, 4), None),
        ("|", (5, 15), (2, 4), None),
        ("<<", (5, 15), (1, 1), None),
    ],
)
def test_the_other_operators(op: str, left: tuple[int, int], right: tuple[int, int], expected: object) -> None:
    assert (
        compute_interval(
            ir.Binary(INT32, op, make_ranged_expression(left, 0), make_ranged_expression(right, 1)), (16, 16, 1)
        )
        == expected
    )


def test_nothing_is_known_of_comparisons_and_floats() -> None:
    assert compute_interval(ir.Binary(BOOL, "<", make_thread_index(), make_thread_index(1))) is None
    assert compute_interval(make_constant(1, FLOAT32)) is None
    assert compute_interval(ir.Binary(FLOAT32, "+", make_constant(1, FLOAT32), make_constant(1, FLOAT32))) is None
    assert compute_interval(ir.Cast(FLOAT32, make_constant(1))) is None
    assert compute_interval(ir.Cast(BOOL, make_constant(1))) is None
    assert compute_interval(ir.Unary(INT32, "-", make_constant(1))) is None


def test_a_cast_keeps_what_fits() -> None:
    uint8 = Scalar("uint8")
    assert compute_interval(ir.Cast(uint8, make_constant(255))) == (255, 255)
    assert compute_interval(ir.Cast(uint8, make_constant(256))) is None
    assert compute_interval(ir.Cast(uint8, make_constant(-1))) is None
    assert compute_interval(ir.Cast(Scalar("int8"), make_constant(127))) == (127, 127)
    assert compute_interval(ir.Cast(Scalar("int8"), make_constant(128))) is None
    assert compute_interval(ir.Cast(Scalar("int8"), make_constant(-128))) == (-128, -128)
    assert compute_interval(ir.Cast(Scalar("int8"), make_constant(-129))) is None


def make_local(slot: int) -> ir.Local:
    return ir.Local(INT32, slot, f"v{slot}")


def test_a_variable_is_what_it_was_declared_as_if_nothing_else_is_ever_put_into_it() -> None:
    declared = ir.Declare(3, INT32, make_constant(7), HERE)
    assert compute_interval(make_local(3), within=make_frame(declared)) == (7, 7)
    assert compute_interval(make_local(4), within=make_frame(declared)) is None
    assert compute_interval(make_local(3), within=make_frame(ir.Declare(3, INT32, None, HERE))) is None
    assert (
        compute_interval(make_local(3), within=make_frame(declared, ir.Declare(3, INT32, make_constant(8), HERE)))
        is None
    )
    assign = ir.Evaluate(ir.Assign(INT32, make_local(3), make_constant(9)), HERE)
    update = ir.Evaluate(ir.Update(INT32, make_local(3), "+", make_constant(1), INT32), HERE)
    for change in (assign, update):
        assert compute_interval(make_local(3), within=make_frame(declared, change)) is None
        assert compute_interval(make_local(3), within=make_frame(change, declared)) is None
    other = ir.Evaluate(ir.Assign(INT32, make_local(2), make_constant(9)), HERE)
    assert compute_interval(make_local(3), within=make_frame(declared, other)) == (7, 7)


def test_a_parameter_is_whatever_the_caller_gives() -> None:
    for slot in (0, 1):
        assert (
            compute_interval(
                make_local(slot), within=make_frame(ir.Declare(slot, INT32, make_constant(7), HERE), parameters=2)
            )
            is None
        )
    assert compute_interval(
        make_local(2), within=make_frame(ir.Declare(2, INT32, make_constant(7), HERE), parameters=2)
    ) == (7, 7)


def test_functions_have_variables_of_their_own() -> None:
    first, second = (make_frame(ir.Declare(3, INT32, make_constant(each), HERE)) for each in (7, 8))
    intervals = Intervals(BLOCK)
    assert [intervals.find_interval(each, make_local(3)) for each in (first, second, first)] == [(7, 7), (8, 8), (7, 7)]


OPERATORS = ("+", "-", "*", "/", "%", ">>", "&")
TYPES = tuple(map(Scalar, ("uint8", "int8", "uint16", "int16")))


@st.composite
def expressions(draw: st.DrawFn, type: Scalar, depth: int = 2) -> ir.Expression:
    """Make an expression of one type from threads and numbers."""
    if not depth or draw(st.booleans()):
        low, high = type_limits(type)
        known = [each for each in (0, 1, 2, 3, 127, 128, 255, low, low + 1, high - 1, high) if low <= each <= high]
        some = st.sampled_from(known)
        return (
            make_thread_index(draw(st.integers(0, 2)), type) if draw(st.booleans()) else make_constant(draw(some), type)
        )
    left, right = draw(expressions(type, depth - 1)), draw(expressions(type, depth - 1))
    return ir.Binary(type, draw(st.sampled_from(OPERATORS)), left, right)


def evaluate(expression: ir.Expression, place: tuple[int, ...]) -> tuple[int, bool, bool] | None:
    """Return a value, and whether the operation passed its type as a signed and as an unsigned one; None if undefined.

    The second and third say so of the outermost operation alone.
    """
    match expression:
        case ir.Const(_, value):
            return int(value), False, False
        case ir.Special(_, _, axis):
            return place[axis], False, False
    assert isinstance(expression, ir.Binary)
    sides = evaluate(expression.left, place), evaluate(expression.right, place)
    if sides[0] is None or sides[1] is None:
        return None
    (left, *_), (right, *_), bits, op = *sides, 8 * expression.type.size, expression.op
    if (op in "/%" and not right) or (op == ">>" and not 0 <= right < bits):
        return None
    apply = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, ">>": operator.rshift, "&": operator.and_,
        "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "%": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    }[op]  # fmt: skip

    def signed(bit_pattern: int) -> int:
        return (bit_pattern + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    exact = apply(left, right)
    as_signed, as_unsigned = apply(signed(left), signed(right)), apply(left % 2**bits, right % 2**bits)
    wrapped = signed(exact) if expression.type.is_signed else exact % 2**bits
    return wrapped, as_signed != signed(as_signed), as_unsigned != as_unsigned % 2**bits


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_thread_has_a_value_outside_of_what_is_promised(data: st.DataObject) -> None:
    type = data.draw(st.sampled_from(TYPES))
    op, left, right = (data.draw(each) for each in (st.sampled_from(OPERATORS), *[expressions(type)] * 2))
    expression = ir.Binary(type, op, left, right)
    interval, promised = compute_interval(expression), overflow_flags(expression)
    for place in product(*map(range, BLOCK)):
        found = evaluate(expression, place)
        if found is None:
            continue
        value, past_signed, past_unsigned = found
        assert interval is None or interval[0] <= value <= interval[1]
        if op in "+-*":
            assert not (past_signed and "nsw" in promised)
            assert not (past_unsigned and "nuw" in promised)
