"""Parameters that are written, and files of text."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.declaration.text_parameters import BinEdges, Text, format_edges
from gpu.files.text import read_text

EDGES = BinEdges(name="edges", label="BinEdges", default=(0, 1), maximum=4)


def test_edges_are_read_as_people_write_them() -> None:
    assert EDGES.check("0, .5 1") == (0.0, 0.5, 1.0)
    assert EDGES.check(EDGES.check("-1e3,2")) == (-1000.0, 2.0)
    assert EDGES.check(format_edges((0.1, 1 / 3))) == EDGES.check((0.1, 1 / 3))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1", "has 2 to 4 numbers, not 1"),
        ("", "has 2 to 4 numbers, not 0"),
        ("1 2 3 4 5", "has 2 to 4 numbers, not 5"),
        ("1 1", "must increase, but 1 follows 1"),
        ("2 1", "must increase, but 1 follows 2"),
        ("0 one", "finite float32 numbers, not 'one'"),
        ("0 nan", "finite float32 numbers, not 'nan'"),
        ("0 1e39", "finite float32 numbers, not '1e39'"),
    ],
)
def test_other_edges_are_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        EDGES.check(text)


def test_a_text_that_is_too_long_is_refused() -> None:
    parameter = Text(name="text", label="Text", default="", maximum=3)
    assert parameter.check("abc") == "abc"
    with pytest.raises(InputError, match="up to 3 characters, not 4"):
        parameter.check("abcd")


def test_texts_are_read_in_either_code(tmp_path: Path) -> None:
    (tmp_path / "utf8.txt").write_bytes("\ufeffnaïve".encode())
    (tmp_path / "latin.txt").write_bytes("naïve".encode("latin-1"))
    assert read_text(tmp_path / "utf8.txt") == read_text(tmp_path / "latin.txt") == "naïve"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.txt").write_bytes(b"a\0b")
    (tmp_path / "long.txt").write_bytes(b"a" * (2**20 + 1))
    for name, why in (("none.txt", "no file"), (".", "is a folder"), ("zero.txt", "not a text"), ("long.txt", "1 MB")):
        with pytest.raises(InputError, match=why):
            read_text(tmp_path / name)
