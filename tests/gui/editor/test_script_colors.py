"""Colors of a script: Python's, and in strings that hold kernels CUDA's."""

from __future__ import annotations

from gui.editor.script_colors import script_spans, segments_of

TEXT = '''import numpy  # not """ a string
module = SourceModule("""
__global__ void f(int *x) { /* two
lines */ x[threadIdx.x] = 0;
}
""", no_extern_c=True)
words = \'\'\'only
words\'\'\'
'''


def colored(number):
    """Return what is colored in a line: the text and its color."""
    line = TEXT.split("\n")[number]
    return [(line[start:end], kind) for start, end, kind in script_spans(line, segments_of(TEXT).get(number, ()))]


def test_python_has_its_own_colors():
    found = colored(0)
    assert ("import", "Keyword") in found
    assert found[-1] == ('# not """ a string', "Comment")


def test_a_kernel_in_a_string_has_those_of_cuda():
    assert ('"""', "Literal.String") in colored(1)
    assert ("SourceModule", "Name.Function") in colored(1)
    assert [text for text, kind in colored(2) if kind.startswith("Keyword")][:2] == ["__global__", "void"]
    assert ("lines */", "Comment") in colored(3)
    assert ("threadIdx", "Name.Builtin") in colored(3)
    assert colored(5)[0] == ('"""', "Literal.String")
    assert any(text == "True" and kind.startswith("Keyword") for text, kind in colored(5))


def test_a_string_without_a_kernel_is_a_string():
    assert colored(6)[-2:] == [("'''", "Literal.String"), ("only", "Literal.String")]
    assert colored(7) == [("words", "Literal.String"), ("'''", "Literal.String")]


def test_a_string_that_nothing_closes_goes_to_the_end():
    assert set(segments_of('x = """a\nb\nc')) == {0, 1, 2}
