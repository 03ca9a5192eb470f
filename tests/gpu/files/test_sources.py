"""The texts of kernel files, as editors and shells save them."""

from __future__ import annotations

import codecs
import time
from pathlib import Path

import pytest

from gpu.files.sources import SourceLines, read_includes, read_source
from gpu.kernel.simulate import simulate

TEXT = "// é\n__global__ void f(int *a) { a[threadIdx.x] = 1; }\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.encode().replace(b"\n", b"\r"),
        TEXT.encode().replace(b"\n", b"\r\n"),
    ],
    ids=["UTF-8", "with a mark", "UTF-16", "big-endian", "CR", "CRLF"],
)
def test_a_kernels_file_is_read_however_it_was_saved(tmp_path: Path, data: bytes):
    path = tmp_path / "k.cu"
    path.write_bytes(data)
    assert read_source(path).lstrip("\ufeff") == TEXT
    assert simulate(path, "f", 1, 4, ["zeros:4"]).arrays[0].tolist() == [1, 1, 1, 1]


def test_half_a_letter_of_utf_16_is_no_mistake_of_ours(tmp_path: Path):
    path = tmp_path / "k.cu"
    path.write_bytes(codecs.BOM_UTF16_LE + b"a\0\x00\xd8b")
    assert read_source(path).startswith("a")


def test_blank_lines_are_read_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("int a;\n")
    text = '#include "a.h"\n' + "\n" * 100_000 + "int b;\n"
    began = time.process_time()
    read_includes(text, tmp_path / "test.cu")
    assert SourceLines(tmp_path / "test.cu", edited=text).line("a.h", 1) == "int a;"
    assert time.process_time() - began < 5
