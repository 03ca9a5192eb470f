"""Random structured programs over a few int variables, in text that is both C and CUDA.

Every loop counts in a variable of its own, which nothing else changes and `continue` cannot pass by, so that all end.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

VARIABLES = ("a", "b", "c")

# How many rounds a loop makes at most. Loops nest three deep, and every lane goes its own way.
_ROUNDS = 4


def _values(counters: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Make int expressions that always have a value."""
    leaf = st.one_of(
        st.sampled_from((*VARIABLES, *counters, *VARIABLES)), st.integers(-9, 9).map(lambda number: f"({number})")
    )
    pair = st.tuples(leaf, st.sampled_from(("+", "-", "*", "^", "&", "|")), leaf).map(
        lambda made: f"({' '.join(made)})"
    )
    return st.one_of(
        leaf,
        pair,
        st.tuples(pair, st.sampled_from((">>", "<<")), st.integers(0, 3).map(str)).map(lambda made: " ".join(made)),
        st.tuples(leaf, st.sampled_from((3, 5, 7))).map(lambda made: f"({made[0]} % {made[1]})"),
        st.tuples(_conditions(leaf), leaf, leaf).map(lambda made: f"({made[0]} ? {made[1]} : {made[2]})"),
    )


def _conditions(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    compared = st.tuples(value, st.sampled_from(("<", ">", "==", "!=", "<=", ">=")), value).map(
        lambda made: " ".join(made)
    )
    return st.one_of(
        compared,
        st.tuples(compared, st.sampled_from(("&&", "||")), compared).map(lambda made: f"({' '.join(made)})"),
        value.map(lambda text: f"{text} & 1"),
        compared.map(lambda text: f"!({text})"),
    )


def _side_effect_conditions(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Make conditions that may change something, on the right of one that decides whether it runs.

    Such a one stands alone: in a larger expression C would not say whether the change or another read comes first.
    """
    plain = _conditions(value)
    changing = st.tuples(plain, st.sampled_from(VARIABLES)).map(lambda made: f"({made[0]}) && {made[1]}++ < 5")
    return st.one_of(plain, plain, plain, changing)


@cache
def statements(depth: int, loops: int, counters: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Make a statement: `loops` is how many loops it stands in, whose counters it may read."""
    value, condition = _values(counters), _side_effect_conditions(_values(counters))
    variable = st.sampled_from(VARIABLES)
    simple = st.one_of(
        st.tuples(variable, st.sampled_from(("=", "+=", "-=", "*=", "^=", "|=", "&=")), value).map(
            lambda made: f"{' '.join(made)};"
        ),
        st.tuples(variable, st.sampled_from(("++", "--"))).map(lambda made: f"{made[0]}{made[1]};"),
        st.tuples(variable, variable, value).map(lambda made: f"{made[0]} = {made[1]} = {made[2]};"),
    )
    leave = st.tuples(condition, value).map(lambda made: f"if ({made[0]}) LEAVE({made[1]})")
    if loops:
        jump = st.tuples(condition, st.sampled_from(("break;", "continue;"))).map(
            lambda made: f"if ({made[0]}) {made[1]}"
        )
        simple = st.one_of(simple, simple, simple, jump, jump, leave)
    if depth == 0:
        return simple
    inner = _bodies(depth - 1, loops, counters)
    counter = f"k{loops}"
    looped = _bodies(depth - 1, loops + 1, (*counters, counter))
    bound = value.map(lambda text: f"({text} & {_ROUNDS - 1})")

    def loop(form: str) -> st.SearchStrategy[str]:
        return st.tuples(bound, looped, condition).map(
            lambda made: form.format(k=counter, bound=made[0], body=made[1], condition=made[2])
        )

    shadowing = st.tuples(variable, value, inner).map(
        lambda made: f"{{ int outer = {made[1]}; {{ int {made[0]} = outer; {made[2]} }} }}"
    )
    return st.one_of(
        simple,
        leave,
        st.tuples(condition, inner).map(lambda made: f"if ({made[0]}) {{ {made[1]} }}"),
        st.tuples(condition, inner, inner).map(lambda made: f"if ({made[0]}) {{ {made[1]} }} else {{ {made[2]} }}"),
        st.tuples(condition, inner, condition, inner, inner).map(
            lambda made: f"if ({made[0]}) {{ {made[1]} }} else if ({made[2]}) {{ {made[3]} }} else {{ {made[4]} }}"
        ),
        shadowing,
        st.tuples(st.sampled_from(_SWITCHES), value, inner, inner, inner).map(
            lambda made: made[0].format(value=made[1], one=made[2], two=made[3], three=made[4])
        ),
        st.one_of([loop(form) for form in _LOOPS]),
    )


def _bodies(depth: int, loops: int, counters: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(statements(depth, loops, counters), min_size=1, max_size=3).map("\n".join)


# Every form leaves its loop within _ROUNDS rounds, also where the bound changes while it runs.
_LOOPS = (
    "for (int {k} = 0; {k} < {bound}; {k}++) {{ {body} }}",
    "for (int {k} = 4, down = 1; {k} > {bound}; {k} -= down) {{ {body} }}",
    "{{ int {k} = 0; for (; {k} < {bound}; ++{k}) {{ {body} }} }}",
    "for (int {k} = 0;; {k}++) {{ if ({k} >= {bound}) break; {body} }}",
    "for (int {k} = 0; {k} < {bound};) {{ {k} += 1; {body} }}",
    "{{ int {k} = 0; for (;;) {{ if ({k}++ >= {bound}) break; {body} }} }}",
    "{{ int {k} = 0; while ({k}++ < {bound}) {{ {body} }} }}",
    "{{ int {k} = 0; while ({k} < {bound} && ({condition})) {{ {k}++; {body} }} }}",
    "{{ int {k} = 0; do {{ {body} }} while (++{k} < {bound}); }}",
    "{{ int {k} = 0; do {{ {body} }} while ({k}++ < {bound} && ({condition})); }}",
)

_SWITCHES = (
    "switch ({value} & 3) {{ case 0: {{ {one} }} break; case 1: {{ {two} }} default: {{ {three} }} }}",
    "switch ({value}) {{ case -1: case 2: {{ {one} }} case 3: break; case 0: {{ {two} }} a++; case 1: {{ {three} }} }}",
    "switch ({value} % 4) {{ default: {{ {one} }} break; case 0: {{ {two} }} case 1: {{ {three} }} break; }}",
)


def bodies() -> st.SearchStrategy[str]:
    """Make the body of a function of three ints, which LEAVEs with an int at its end at the latest."""
    return st.lists(statements(3, 0), min_size=2, max_size=5).map(
        lambda made: "\n".join((*made, "LEAVE(a * 31 + b * 7 + c)"))
    )
