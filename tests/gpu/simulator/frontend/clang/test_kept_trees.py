"""A text that was parsed is not parsed again, unless it or anything that it includes has changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.simulator.frontend.clang import parsing
from gpu.simulator.simulated_module import SimulatedModule


def run_kernel(text: str, folder: Path, defines: dict[str, int | str] | None = None, *include_dirs: Path) -> int:
    """Return what thread 0 of the kernel `k` writes."""
    data = np.zeros(1, np.int32)
    module = SimulatedModule(text, folder / "kernel.cu", defines or {}, include_dirs)
    module.kernel("k").launch((1, 1, 1), (1, 1, 1), [data.view(np.uint8)])
    return int(data[0])


@pytest.fixture
def parses(monkeypatch):
    """Collect the paths that clang parses."""
    parsed: list[str] = []
    parse_unit = parsing._parse_unit

    def parse(path, *arguments, **options):
        parsed.append(path)
        return parse_unit(path, *arguments, **options)

    monkeypatch.setattr(parsing, "_parse_unit", parse)
    return parsed


TEXT = "__constant__ int c = 3;\n__global__ void k(int *data) { data[0] = c + VALUE; }"


def test_another_module_of_a_text_needs_no_parse(tmp_path: Path, parses: list[str]) -> None:
    assert run_kernel(TEXT, tmp_path, {"VALUE": 1}) == 4
    first = SimulatedModule(TEXT, tmp_path / "kernel.cu", {"VALUE": 1})
    first.set_constant("c", np.array([10], np.int32))
    assert run_kernel(TEXT, tmp_path, {"VALUE": 1}) == 4, "each module has its own variables"
    assert len(parses) == 1
    assert run_kernel(TEXT, tmp_path, {"VALUE": 2}) == 5
    assert run_kernel(TEXT.replace("c +", "c -"), tmp_path, {"VALUE": 2}) == 1
    assert len(parses) == 3


def test_a_text_with_several_missing_headers_is_parsed_once(tmp_path: Path, parses: list[str]) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 5\n")
    for name in ("value.h", tmp_path / "value.h"):
        text = f'#include <vector>\n#include "absent.h"\n#include "{name}"\n{TEXT}'
        assert run_kernel(text, tmp_path) == 8
    assert len(parses) == 2


NAMED = '#include "value.h"\n'
INCLUDES = [
    (NAMED, {}),
    ("#define NAME <value.h>\n#include NAME\n", {}),
    ("#include NAME\n", {"NAME": '"value.h"'}),
    ("#inc\\\nlude <value.h>\n", {}),
    ('%:include "value.h"\n', {}),
    ('#if __has_include("value.h")\n#include "value.h"\n#else\n#define VALUE 7\n#endif\n', {}),
]


@pytest.mark.parametrize(("directive", "defines"), INCLUDES)
def test_a_changed_include_is_read_again(tmp_path: Path, directive: str, defines: dict[str, int | str]) -> None:
    included = tmp_path / "value.h"
    for value in (1, 2):
        included.write_text(f"#define VALUE {value}")
        assert run_kernel(directive + TEXT, tmp_path, defines) == 3 + value


def test_an_include_of_an_include_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text(NAMED)
    for value in (1, 2):
        (tmp_path / "value.h").write_text(f"#define VALUE {value}")
        assert run_kernel('#include "outer.h"\n' + TEXT, tmp_path) == 3 + value


def test_an_include_that_appears_before_another_is_found(tmp_path: Path) -> None:
    text = f"{NAMED}#ifndef VALUE\n#define VALUE 7\n#endif\n{TEXT}"
    further = tmp_path / "further"
    further.mkdir()
    assert run_kernel(text, tmp_path, {}, further) == 10
    (further / "value.h").write_text("#define VALUE 1")
    assert run_kernel(text, tmp_path, {}, further) == 4
    (tmp_path / "value.h").write_text("#define VALUE 2")
    assert run_kernel(text, tmp_path, {}, further) == 5
