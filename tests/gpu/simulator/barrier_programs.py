"""Random kernels whose threads part ways, meet at barriers, and exchange values.

Every one is right on a GPU: a barrier stands only where all threads of the block come that have not returned, and of an
exchange a lane uses only what a lane that takes part has given. Every loop ends.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from tests.gpu.simulator.statements import VARIABLES

_ROUNDS = 3

HEAD = """
struct Pair { int first, second; };
__device__ int mixed(int x, int y) { if (x < y) return x * 3 - y; return x ^ y; }
__device__ void turn(Pair &pair) { int kept = pair.first; pair.first = pair.second; pair.second = kept + 1; }
__device__ int fold_block(int *s, int value) {
    int t = threadIdx.x;
    s[t] = value;
    __syncthreads();
    int sum = s[t] - s[(t + 5) % blockDim.x];
    __syncthreads();
    return sum;
}
extern "C" __global__ void k(const int *in, int *out, int *counts, int u) {
    __shared__ int s[128], tally[8];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < 8) tally[t] = t;
    s[t] = i;
    int own[4] = {i, t, 0, u};
    int a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    const int *moving = in + i;
    __syncthreads();
"""
TAIL = """
    __syncthreads();
    if (t < 8) counts[blockIdx.x * 8 + t] = tally[t];
    out[i] = a * 31 + b * 7 + c + own[0] + own[1] * 3 + own[2] * 5 + own[3];
}
"""


def _values(counters: tuple[str, ...]) -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.sampled_from((*VARIABLES, *VARIABLES, "t", "u", "i", *counters)),
        st.integers(-9, 9).map(lambda number: f"({number})"),
    )
    return st.one_of(
        leaf,
        st.tuples(leaf, st.sampled_from("+-*^&|/%"), leaf).map(lambda made: f"({' '.join(made)})"),
        st.tuples(leaf, st.sampled_from(("<<", ">>")), leaf).map(lambda made: f"({made[0]} {made[1]} {made[2]})"),
        st.tuples(leaf, leaf).map(lambda made: f"mixed({made[0]}, {made[1]})"),
        st.tuples(leaf, leaf, leaf).map(lambda made: f"({made[0]} > {made[1]} ? {made[2]} : own[{made[1]} & 3])"),
    )


def _conditions(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(value, st.sampled_from(("<", ">=", "!=")), value).map(lambda made: " ".join(made)),
        st.tuples(value, value).map(lambda made: f"({made[0]} & 1) && {made[1]} > 0"),
    )


def _exchange_statement(made: tuple[str, str, str, str]) -> str:
    variable, given, lane, how = made
    source = {"": f"({lane} & 31)", "_xor": "((t & 31) ^ 5)", "_down": "((t & 31) + 3)", "_up": "((t & 31) - 2)"}[how]
    by = {"": source, "_xor": "5", "_down": "3", "_up": "2"}[how]
    return (
        f"{{ unsigned here = __activemask(); int from = {source}; int got = __shfl{how}_sync(here, {given}, {by}); "
        f"{variable} += from >= 0 && from < 32 && (here >> from & 1) ? got : 7; }}"
    )


def _simple_statement(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    variable = st.sampled_from(VARIABLES)
    return st.one_of(
        st.tuples(variable, st.sampled_from(("=", "+=", "-=", "*=", "^=")), value).map(
            lambda made: f"{' '.join(made)};"
        ),
        st.tuples(variable, value, value, st.sampled_from(("", "_xor", "_down", "_up"))).map(_exchange_statement),
        st.tuples(variable, value).map(
            lambda made: f"{made[0]} ^= (int)__ballot_sync(__activemask(), {made[1]} > 3) + __popc(__activemask());"
        ),
        st.tuples(variable, value).map(lambda made: f"{made[0]} += __reduce_max_sync(__activemask(), {made[1]});"),
        st.tuples(value, value).map(lambda made: f"atomicAdd(&tally[{made[0]} & 7], {made[1]});"),
        st.tuples(value, value).map(lambda made: f"own[{made[0]} & 3] = {made[1]};"),
        st.tuples(variable, value).map(lambda made: f"moving += {made[1]} & 1; {made[0]} -= *moving;"),
        st.tuples(variable, value).map(
            lambda made: (
                f"{{ Pair pair = {{{made[0]}, {made[1]}}}; turn(pair); {made[0]} = pair.first - pair.second; }}"
            )
        ),
        st.tuples(value, variable, value).map(
            lambda made: (
                f"switch ({made[0]} & 3) {{ case 0: {made[1]}++; case 2: {made[1]} *= 5; break; "
                f"default: {made[1]} -= {made[2]}; }}"
            )
        ),
    )


_LEAVE_KERNEL = "{{ out[i] = {}; return; }}"
_LEAVE_FUNCTION = "return {};"


@cache
def _divergent_statement(
    depth: int, loops: int, counters: tuple[str, ...] = (), leaving: str = _LEAVE_KERNEL
) -> st.SearchStrategy[str]:
    """Make a statement for threads that go their own ways, each counting its loops in variables of its own."""
    value = _values(counters)
    condition, simple = _conditions(value), _simple_statement(value)
    leave = st.tuples(condition, value).map(lambda made: f"if ({made[0]}) {leaving.format(made[1])}")
    jump = st.tuples(condition, st.sampled_from(("break;", "continue;"))).map(lambda made: f"if ({made[0]}) {made[1]}")
    if depth == 0:
        return st.one_of(simple, simple, simple, jump) if loops else simple
    inner = st.lists(_divergent_statement(depth - 1, loops, counters, leaving), min_size=1, max_size=2).map(" ".join)
    counter = f"p{depth}"
    looped = _divergent_statement(depth - 1, loops + 1, (*counters, counter), leaving)
    looped = st.lists(looped, min_size=1, max_size=2).map(" ".join)
    return st.one_of(
        simple,
        leave,
        st.tuples(condition, inner, inner).map(lambda made: f"if ({made[0]}) {{ {made[1]} }} else {{ {made[2]} }}"),
        st.tuples(value, looped).map(
            lambda made: f"for (int {counter} = 0; {counter} < ({made[0]} & {_ROUNDS}); ++{counter}) {{ {made[1]} }}"
        ),
        st.tuples(condition, looped).map(
            lambda made: f"{{ int {counter} = 0; do {{ {made[1]} }} while (++{counter} < {_ROUNDS} && {made[0]}); }}"
        ),
    )


@cache
def _uniform_statement(depth: int, counters: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Make a statement that all threads come to that have not returned: there may be barriers in it."""
    value, agreed = _values(counters), st.sampled_from(("u", "(u & 1)", "3", "2", *counters))
    variable = st.sampled_from(VARIABLES)
    meeting = st.one_of(
        st.tuples(variable, value).map(
            lambda made: f"s[t] = {made[1]}; __syncthreads(); {made[0]} += s[(t + 7) % blockDim.x]; __syncthreads();"
        ),
        st.tuples(variable, value).map(lambda made: f"{made[0]} -= __syncthreads_count({made[1]} & 1);"),
        st.tuples(variable, value).map(lambda made: f"{made[0]} = fold_block(s, {made[1]}) + {made[0]};"),
    )
    if depth == 0:
        return st.one_of(meeting, _divergent_statement(2, 0, counters), _divergent_statement(1, 0, counters))
    counter = f"k{depth}"
    inner = st.lists(_uniform_statement(depth - 1, counters), min_size=1, max_size=2).map(" ".join)
    looped = st.lists(_uniform_statement(depth - 1, (*counters, counter)), min_size=1, max_size=2).map(" ".join)
    jump = st.one_of(
        st.just(""),
        st.tuples(agreed, st.sampled_from(("break;", "continue;"))).map(
            lambda made: f"if ({made[0]} == {counter}) {made[1]}"
        ),
    )
    return st.one_of(
        meeting,
        _divergent_statement(3, 0, counters),
        st.tuples(agreed, inner, inner).map(lambda made: f"if ({made[0]} > 1) {{ {made[1]} }} else {{ {made[2]} }}"),
        st.tuples(agreed, looped, jump, looped).map(
            lambda made: (
                f"for (int {counter} = 0; {counter} < ({made[0]} & {_ROUNDS}); ++{counter}) "
                f"{{ {made[1]} {made[2]} {made[3]} }}"
            )
        ),
        st.tuples(looped, jump, agreed).map(
            lambda made: (
                f"{{ int {counter} = 0; while ({counter}++ < {_ROUNDS}) "
                f"{{ {made[0]} {made[1]} if ({made[2]} > {counter}) {{ {made[0]} }} }} }}"
            )
        ),
    )


def kernels() -> st.SearchStrategy[str]:
    """Make a kernel `k(const int *in, int *out, int *counts, int u)`; `in` holds four ints a thread and 200 more."""
    return st.lists(_uniform_statement(2), min_size=2, max_size=3).map(lambda made: HEAD + "\n".join(made) + TAIL)


_FUNCTION = """
__device__ {} {}(int a, int b, int c, int t, int i, int u, int *own, const int *moving, int *tally, int *left) {{
    const volatile int *seen = moving;
    {}
}}
"""


@cache
def _function(name: str, gives: bool) -> st.SearchStrategy[str]:
    """Make a function that some threads leave while others go on in it, and that waits: it reads volatile memory."""
    leaving = _LEAVE_FUNCTION if gives else "{{ *left = {}; return; }}"
    value = _values(("q",))
    within, behind = (
        st.lists(_divergent_statement(depth, loops, ("q",), leaving), min_size=1, max_size=2).map(" ".join)
        for depth, loops in ((2, 1), (1, 0))
    )
    last = leaving.format("seen[t & 7] - c").replace("{{", "{").replace("}}", "}")
    return st.one_of(
        st.tuples(_conditions(value), value, within).map(
            lambda made: (
                f"for (int q = a & 3;; ++q) {{ b += seen[q]; if (q > {_ROUNDS} || {made[0]}) "
                f"{leaving.format(made[1])} {made[2]} }}"
            )
        ),
        st.tuples(within, behind).map(
            lambda made: f"for (int q = 0; q < (b & {_ROUNDS}); ++q) {{ {made[0]} }} int q = 5; {made[1]} {last}"
        ),
    ).map(lambda body: _FUNCTION.format("int" if gives else "void", name, body))


def kernels_with_functions() -> st.SearchStrategy[str]:
    """Make a kernel, as `kernels` does, that calls functions which its threads leave at different places."""
    value = _values(())
    given = "t, i, u, own, moving, tally, &left"
    call = st.one_of(
        st.tuples(st.sampled_from(VARIABLES), value, value, value).map(
            lambda made: f"{made[0]} = found({', '.join(made[1:])}, {given}) + {made[0]};"
        ),
        st.tuples(st.sampled_from(VARIABLES), value, value, value).map(
            lambda made: f"{{ int left = 3; done({', '.join(made[1:])}, {given}); {made[0]} -= left; }}"
        ),
    )
    called = st.tuples(_conditions(value), call, _divergent_statement(1, 0), call, _divergent_statement(0, 0)).map(
        lambda made: f"if ({made[0]}) {{ {made[1]} {made[2]} }} else {{ {made[3]} }} {made[4]}"
    )
    return st.tuples(_function("found", True), _function("done", False), called).map(
        lambda made: HEAD.replace('extern "C"', f'{made[0]}{made[1]}extern "C"') + "int left = 0;\n" + made[2] + TAIL
    )
