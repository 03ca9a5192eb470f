"""Texts: what is read for its letters, and the files of kernels with what they include."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.files.sources import SourceLines, read_source
from gpu.files.text import read_text
from tests.odd_inputs import mutate_bytes, read_or_none

_KERNEL = b'#include "x.h"\n#include <k.cu>\n__global__ void k(int *a) {\n\ta[threadIdx.x] = 1; // \xc3\xa9\n}\r\n'


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read a kernel's file that was changed, beside an include that is odd, as a text and as a source."""
    kernel, include = folder / "k.cu", folder / "x.h"
    kernel.write_bytes(random.bytes(300) if random.random() < 0.1 else mutate_bytes(random, _KERNEL * 3))
    match int(random.integers(5)):
        case 0:
            include.symlink_to("x.h")
        case 1:
            os.mkfifo(include)
        case 2:
            include.mkdir()
        case 3:
            include.write_bytes(mutate_bytes(random, _KERNEL))
    text = read_or_none(lambda: read_text(kernel))
    assert text is None or "\0" not in text
    source = read_or_none(lambda: read_source(kernel))
    assert source is not None
    assert "\r" not in source
    sources = SourceLines(kernel, (folder, folder / "none"))
    for line, column in random.integers(-3, 12, (5, 2)).tolist():
        assert "\n" not in sources.line("k.cu", line)
        assert sources.caret(SourcePosition("k.cu", line, column)).strip() in ("", "^")
