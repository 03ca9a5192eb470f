"""What a compiler is given is read as on a command line, and anything else is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.messages.compiler_options import CompilerOptions, parse_compiler_options


def test_folders_and_macros_are_read(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "inc").mkdir()
    text = f"-I inc -D N=16 -DFAST '-Ia b' -I {tmp_path} TEXT=a=b PLAIN"
    assert parse_compiler_options(text, tmp_path) == CompilerOptions(
        (str(tmp_path / "inc"), str(tmp_path / "a b"), str(tmp_path)),
        {"N": "16", "FAST": "1", "TEXT": "a=b", "PLAIN": "1"},
    )
    assert parse_compiler_options("", tmp_path) == CompilerOptions()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("-O3", "Unsupported compiler option -O3"),
        ("-I", "-I needs a value"),
        ("-D N=1 -D", "-D needs a value"),
        ("-I absent", "There is no folder "),
        ("-D 3=4", "'3' is not a valid macro name"),
        ("-D 'N", "unclosed quotation mark"),
    ],
)
def test_what_is_no_option_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_compiler_options(text, tmp_path)
