"""Comments and literals are told apart as a C++ compiler tells them apart, in text and in bytes."""

from __future__ import annotations

import pytest

from gpu.files.source_lexer import (
    blank_comments,
    blank_comments_and_literals,
    find_comments,
    find_launches,
    split_at_commas,
)
from gpu.process.submission import find_forbidden_include


@pytest.mark.parametrize(
    ("text", "without_comments", "code"),
    [
        ("a // b\nc", "a     \nc", "a     \nc"),
        ("a /* b\n c */ d", "a     \n      d", "a     \n      d"),
        ('f("//", "/*"); // x', 'f("//", "/*");     ', "f(    ,     );     "),
        ("'\"' + '\\'' // '", "'\"' + '\\''     ", "    +          "),
        ("1'0 /* ' */ + 0xF'F + u8'\"'", "1'0         + 0xF'F + u8'\"'", "1'0         + 0xF'F + u8   "),
        ('R"x(/* ")x" // y', 'R"x(/* ")x"     ', "                "),
        ("a // b \\\n c\nd", "a       \n  \nd", "a       \n  \nd"),
        ("#error \"don't\nx /* y", "#error \"don't\nx     ", "#error       \nx     "),
    ],
)
def test_comments_and_literals_become_blanks(text: str, without_comments: str, code: str) -> None:
    assert blank_comments(text) == without_comments
    assert blank_comments_and_literals(text) == code
    assert blank_comments(text.encode()) == without_comments.encode()
    assert blank_comments_and_literals(text.encode()) == code.encode()


def test_comments_have_their_places() -> None:
    text = 'x /* a */ "/* b */" // c'
    assert [text[first:last] for first, last in find_comments(text)] == ["/* a */", "// c"]


def test_launches_are_not_found_in_comments_and_strings() -> None:
    code = b'k<<<1, 2>>>(3); // k<<<1, 2>>>(3);\nputs("k<<<1, 2>>>(3);");'
    assert [launch.start for launch in find_launches(blank_comments_and_literals(code))] == [1]


def test_commas_within_brackets_do_not_split() -> None:
    assert split_at_commas("a, {b, c}, [d + 4], f(x, y)") == ["a", "{b, c}", "[d + 4]", "f(x, y)"]


@pytest.mark.parametrize("quoted", ['"/*"', "'/*'", '#error "/*', 'R"(/*)"'])
def test_a_quoted_comment_hides_no_include_from_the_grader(quoted: str) -> None:
    assert find_forbidden_include(f'{quoted}\n#include "/etc/passwd"\n// "*/"')
    assert not find_forbidden_include('/* #include "x.h" */ // "\n#include <cuda_runtime.h>\n')
