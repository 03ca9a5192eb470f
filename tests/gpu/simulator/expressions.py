"""Random C expressions, written once for both sides: CUDA for the simulator, C for the oracle.

What C leaves undefined (division by zero, a shift past the width, a float that no integer holds) stands behind a macro.
On the simulator's side it is the plain operator; on C's side it also notes that the lane's answer is anybody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]


class CType(NamedTuple):
    """A type of C: a letter for its variables, its names in a declaration and in a cast, and NumPy's."""

    letter: str
    name: str
    short: str
    dtype: type[np.generic]

    @property
    def is_float(self) -> bool:
        return issubclass(self.dtype, np.floating)


TYPES = (
    CType("b", "bool", "bool", np.bool_),
    CType("c", "signed char", "int8_t", np.int8),
    CType("uc", "unsigned char", "uint8_t", np.uint8),
    CType("s", "short", "int16_t", np.int16),
    CType("us", "unsigned short", "uint16_t", np.uint16),
    CType("i", "int", "int32_t", np.int32),
    CType("u", "unsigned int", "uint32_t", np.uint32),
    CType("l", "long long", "int64_t", np.int64),
    CType("ul", "unsigned long long", "uint64_t", np.uint64),
    CType("f", "float", "float", np.float32),
    CType("d", "double", "double", np.float64),
)
INTEGERS = tuple(type for type in TYPES if not type.is_float)
FLOATS = tuple(type for type in TYPES if type.is_float)

_INTEGER_LITERALS = (
    "0 1 (-1) 2 7 31 32 127 128 (-128) 255 32767 65535 2147483647 (-2147483647-1) 0x80000000 4294967295u 3u 5ll "
    "2147483648 9223372036854775807ll 18446744073709551615ull 'A' true false 012 0x7fu (-3ll)"
)
_FLOAT_LITERALS = (
    "0.0f (-0.0f) 1.0f 1.5f (-2.5f) 0.1f 0.1 1e-45f 1e-40f 3.4e38f 1e308 5e-324 2.f 16777217.0 1e10f 1e19 0.5 (-1.0) "
    "1.f .25f 0x1.8p3f INFINITY (-INFINITY) NAN"
)

ROUNDED_PRODUCTS = """
template <class T> __device__ T round_product(T product) { return product; }
#define MUL(a, b) round_product((a) * (b))
"""
"""Products that the sums which use them do not fuse, as the C compiler computes them."""

FUSED_PRODUCTS = "#define MUL(a, b) ((a) * (b))"

CUDA_MACROS = """
#define DIV(a, b) ((a) / (b))
#define REM(a, b) ((a) % (b))
#define SHL(a, b) ((a) << (b))
#define SHR(a, b) ((a) >> (b))
#define STATIC_CAST(T, x) static_cast<T>(x)
#define CALL_CAST(T, x) T(x)
#define TO_INTEGER(T, low, high, x) ((T)(x))
#define SET_INTEGER(T, low, high, m, x) ((m) = (x))
#define UPDATE_INTEGER(op, T, low, high, m, x) ((m) op##= (x))
#define UPDATE(op, macro, m, x) ((m) op##= (x))
"""

C_MACROS = """
#define MUL(a, b) ((a) * (b))
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
static int undefined;
#define CHECKED(T, good, value) ({ if (!(good)) undefined = 1; (good) ? (T)(value) : (T)0; })
#define DIVIDED(op, a, b) ({ __typeof__((a) op (b)) l_ = (a), r_ = (b); bool signed_ = (__typeof__(l_))-1 < 0; \\
    CHECKED(__typeof__(l_), r_ != 0 && !(signed_ && r_ == -1 && l_ == -l_), l_ op r_); })
#define DIV(a, b) DIVIDED(/, a, b)
#define REM(a, b) DIVIDED(%, a, b)
#define SHIFTED(op, a, b) ({ __typeof__(+(a)) l_ = (a); __typeof__(+(b)) r_ = (b); \\
    CHECKED(__typeof__(l_), !(r_ < 0) && r_ < 8 * sizeof(l_), l_ op r_); })
#define SHL(a, b) SHIFTED(<<, a, b)
#define SHR(a, b) SHIFTED(>>, a, b)
#define STATIC_CAST(T, x) ((T)(x))
#define CALL_CAST(T, x) ((T)(x))
#define TO_INTEGER(T, low, high, x) ({ __typeof__(x) v_ = (x); CHECKED(T, v_ >= low && v_ < high, v_); })
#define SET_INTEGER(T, low, high, m, x) ((m) = TO_INTEGER(T, low, high, x))
#define UPDATE_INTEGER(op, T, low, high, m, x) ((m) = TO_INTEGER(T, low, high, (m) op (x)))
#define UPDATE(op, macro, m, x) ((m) = macro(m, x))
"""


@dataclass(frozen=True)
class ExpressionNode:
    """A piece of an expression: `text` with a place {0}, {1}, ... for each operand, and {m} for a variable it changes.

    Every node that changes a variable has one to itself, of type `changes`, so that no order of evaluation matters.
    """

    text: str
    operands: tuple[ExpressionNode, ...] = ()
    changes: CType | None = None


def render(node: ExpressionNode, changed: list[CType]) -> str:
    """Return a node's text; the variables that it changes are added to `changed`, and named by their place there."""
    name = f"m{len(changed)}"
    if node.changes is not None:
        changed.append(node.changes)
    return node.text.format(*(render(operand, changed) for operand in node.operands), m=name)


def _bounds(type: CType) -> str:
    """Return the lowest float that an integer type takes, and the first past its end, as C."""
    limits = np.iinfo(type.dtype)
    return f"{float(limits.min)!r}, {float(limits.max) + 1.0!r}"


def _leaf_nodes(types: tuple[CType, ...], literals: str) -> st.SearchStrategy[ExpressionNode]:
    variables = [f"{type.letter}{which}" for which in ("0", "1", "_all") for type in types]
    return st.sampled_from([ExpressionNode(text) for text in (*variables, *literals.split())])


def _operator_nodes(text: str, *operands: st.SearchStrategy[ExpressionNode]) -> st.SearchStrategy[ExpressionNode]:
    return st.tuples(*operands).map(lambda made: ExpressionNode(text, made))


def _mutation_nodes(
    text: str, types: tuple[CType, ...], *operands: st.SearchStrategy[ExpressionNode]
) -> st.SearchStrategy[ExpressionNode]:
    """Make nodes that change a variable of one of the types: {T} is its name, {limits} what floats it takes."""

    def make(type: CType, made: tuple[ExpressionNode, ...]) -> ExpressionNode:
        limits = "" if type.is_float or type.letter == "b" else _bounds(type)
        return ExpressionNode(text.replace("{T}", type.short).replace("{limits}", limits), made, type)

    return st.builds(make, st.sampled_from(types), st.tuples(*operands))


@cache
def integer_expressions(depth: int) -> st.SearchStrategy[ExpressionNode]:
    """Make expressions of an integer type."""
    leaf = _leaf_nodes(INTEGERS, _INTEGER_LITERALS)
    if depth == 0:
        return leaf
    whole, real = integer_expressions(depth - 1), float_expressions(depth - 1)
    anything = st.one_of(whole, real)
    numbers = tuple(type for type in INTEGERS if type.letter != "b")
    binary = [_operator_nodes(f"({{0}} {op} {{1}})", whole, whole) for op in "+-*&|^"]
    comparisons = [
        _operator_nodes(f"({{0}} {op} {{1}})", *pair)
        for op in ("<", "<=", ">", ">=", "==", "!=")
        for pair in ((whole, whole), (real, real), (whole, real))
    ]
    logical = [_operator_nodes(f"({{0}} {op} {{1}})", anything, anything) for op in ("&&", "||")]
    divisions = [_operator_nodes(f"{op}({{0}}, {{1}})", whole, whole) for op in ("DIV", "REM")]
    # A count of any size is nearly always past the width: most are made small.
    shifts = [
        _operator_nodes(f"{op}({{0}}, {count})", whole, whole)
        for op in ("SHL", "SHR")
        for count in ("{1}", "({1} & 7)", "({1} & 31)", "({1} & 63)")
    ]
    unary = [_operator_nodes(f"({op}{{0}})", whole) for op in "-~+"]
    casts = [_operator_nodes(form.replace("{T}", type.short), whole) for type in INTEGERS for form in _CASTS]
    truncations = [_operator_nodes(f"TO_INTEGER({type.short}, {_bounds(type)}, {{0}})", real) for type in numbers]
    changes = [
        _mutation_nodes("({m}++)", numbers),
        _mutation_nodes("(++{m})", numbers),
        _mutation_nodes("({m}--)", numbers),
        _mutation_nodes("(--{m})", numbers),
        *(_mutation_nodes(f"({{m}} {op}= {{0}})", INTEGERS, whole) for op in ("", "+", "-", "*", "&", "|", "^")),
        *(_mutation_nodes(f"UPDATE({op}, {macro}, {{m}}, {{0}})", INTEGERS, whole) for op, macro in _CHECKED_UPDATES),
        _mutation_nodes("SET_INTEGER({T}, {limits}, {m}, {0})", numbers, real),
        *(_mutation_nodes(f"UPDATE_INTEGER({op}, {{T}}, {{limits}}, {{m}}, {{0}})", numbers, real) for op in "+-*/"),
        _mutation_nodes("({m} = {0})", INTEGERS[:1], real),
        _mutation_nodes("(({m} += {0}), ({m} ^ {1}))", INTEGERS, whole, whole),
        _mutation_nodes("(({m} -= {0}) && {m} < {1})", INTEGERS, whole, whole),
    ]
    return st.one_of(
        st.one_of(binary),
        st.one_of(divisions),
        st.one_of(shifts),
        st.one_of(comparisons),
        st.one_of(logical),
        st.one_of(*unary, _operator_nodes("(!{0})", anything), _operator_nodes("((bool){0})", anything)),
        st.one_of(casts),
        st.one_of(truncations),
        _operator_nodes("({0} ? {1} : {2})", anything, whole, whole),
        _operator_nodes("({0}, {1})", anything, whole),
        st.one_of(changes),
        leaf,
    )


@cache
def float_expressions(depth: int) -> st.SearchStrategy[ExpressionNode]:
    """Make expressions of a floating type."""
    leaf = _leaf_nodes(FLOATS, _FLOAT_LITERALS)
    if depth == 0:
        return leaf
    whole, real = integer_expressions(depth - 1), float_expressions(depth - 1)
    anything = st.one_of(whole, real)
    pairs = ((real, real), (real, real), (whole, real), (real, whole))
    arithmetic = [_operator_nodes(f"({{0}} {op} {{1}})", *pair) for op in "+-/" for pair in pairs]
    arithmetic += [_operator_nodes("MUL({0}, {1})", *pair) for pair in pairs]
    casts = [_operator_nodes(form.replace("{T}", type.short), anything) for type in FLOATS for form in _CASTS]
    changes = [
        *(_mutation_nodes(f"({{m}} {op}= {{0}})", FLOATS, anything) for op in ("", "+", "-", "*", "/")),
        _mutation_nodes("({m}++)", FLOATS),
        _mutation_nodes("(--{m})", FLOATS),
    ]
    return st.one_of(
        st.one_of(arithmetic),
        st.one_of(arithmetic),
        st.one_of(casts),
        st.one_of(_operator_nodes("(-{0})", real), _operator_nodes("(+{0})", real)),
        st.one_of(
            _operator_nodes("({0} ? {1} : {2})", anything, real, real),
            _operator_nodes("({0} ? {1} : {2})", anything, whole, real),
        ),
        _operator_nodes("({0}, {1})", anything, real),
        st.one_of(changes),
        leaf,
    )


_CASTS = ("(({T}){0})", "STATIC_CAST({T}, {0})", "CALL_CAST({T}, {0})")
_CHECKED_UPDATES = (("/", "DIV"), ("%", "REM"), ("<<", "SHL"), (">>", "SHR"))


def edge_values(type: CType) -> Array:
    """Return the values of a type at which arithmetic goes wrong first."""
    if type.letter == "b":
        return np.array([False, True])
    if not type.is_float:
        limits = np.iinfo(type.dtype)
        # Python's integers would not go into an unsigned array when they are negative.
        wanted = (limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, 0, 1, 2, 3, 7, 31, 100)
        negative = (-1, -2, -7) if limits.min < 0 else ()
        return np.array([*wanted, *negative], type.dtype)
    limits = np.finfo(type.dtype)
    tiny, small, large = limits.smallest_subnormal, limits.smallest_normal, limits.max
    ordinary = (0.0, 1.0, 0.5, 0.1, 1.5, 2.5, 3.0, 255.0, 2147483648.0, 4294967296.0, 1e10, 16777216.0, 9.3e18)
    positive = [type.dtype(value) for value in (*ordinary, tiny, small, large, np.inf)]
    return np.array([*positive, *(-value for value in positive), type.dtype(np.nan)])


def draw_operands(type: CType, count: int, generator: np.random.Generator) -> Array:
    """Draw values of a type: two of three from its edges, the others from all over."""
    edges = generator.choice(edge_values(type), count)
    if type.letter == "b":
        return edges
    if type.is_float:
        scale = 10.0 ** generator.uniform(-3, 12, count)
        ordinary = (generator.normal(size=count) * scale).astype(type.dtype)
    else:
        ordinary = np.frombuffer(generator.bytes(count * np.dtype(type.dtype).itemsize), type.dtype)
    return np.where(generator.random(count) < 2 / 3, edges, ordinary)
