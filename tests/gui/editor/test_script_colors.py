"""Colors of a script: Python's, and in strings that hold kernels CUDA's."""

from __future__ import annotations

from gui.editor.script_colors import find_string_segments, split_script_into_spans

TEXT = '''import numpy  # not """ a string
module = SourceModule("""
__global__ void f(int *x) { /* two
lines */ x[threadIdx.x] = 0;
}
""", no_extern_c=True)
words = \'\'\'only
words\'\'\'
'''


def colored_spans(number):
    """Return what is colored in a line: the text and its color."""
    line = TEXT.split("\n")[number]
    return [
        (line[start:end], kind)
        for start, end, kind in split_script_into_spans(line, find_string_segments(TEXT).get(number, ()))
    ]


def test_python_has_its_own_colors():
    found = colored_spans(0)
    assert ("import", "Keyword") in found
    assert found[-1] == ('# not """ a string', "Comment")


def test_a_kernel_in_a_string_has_those_of_cuda():
    assert ('"""', "Literal.String") in colored_spans(1)
    assert ("SourceModule", "Name.Function") in colored_spans(1)
    assert [text for text, kind in colored_spans(2) if kind.startswith("Keyword")][:2] == ["__global__", "void"]
    assert ("lines */", "Comment") in colored_spans(3)
    assert ("threadIdx", "Name.Builtin") in colored_spans(3)
    assert colored_spans(5)[0] == ('"""', "Literal.String")
    assert any(text == "True" and kind.startswith("Keyword") for text, kind in colored_spans(5))


def test_a_string_without_a_kernel_is_a_string():
    assert colored_spans(6)[-2:] == [("'''", "Literal.String"), ("only", "Literal.String")]
    assert colored_spans(7) == [("words", "Literal.String"), ("'''", "Literal.String")]


def test_a_string_that_nothing_closes_goes_to_the_end():
    assert set(find_string_segments('x = """a\nb\nc')) == {0, 1, 2}
