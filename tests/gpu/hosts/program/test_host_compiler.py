"""The cache of compiled programs: a program is compiled again only if that could make a difference."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from gpu.hosts.program.host_compiler import HostOptions, compile_program
from tests import needs

pytestmark = needs.cplusplus


@pytest.mark.parametrize(
    ("expression", "entries"),
    [
        ('"the same"', 1),
        ("__FILE__", 2),
        ("__builtin_FILE()", 2),
    ],
)
def test_a_program_in_another_folder_is_compiled_again_only_if_it_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str, entries: int
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(cache))
    for name in ("one", "other"):
        # The loader gives a library that it has loaded from a path again, also if the file is another one by now.
        file, generated = tmp_path / name / "program.cpp", tmp_path / f"{name} generated {len(expression)}"
        file.parent.mkdir()
        generated.mkdir()
        file.write_text(
            '#include <device_launch_parameters.h>\n#include "text.h"\nextern "C" const char *text() { return TEXT; }\n'
        )
        (file.parent / "text.h").write_text(f"#define TEXT {expression}\n")
        text = ctypes.CDLL(str(compile_program([file], HostOptions(), generated))).text
        text.restype = ctypes.c_char_p
        assert text().decode() == (str(file) if entries == 2 else "the same")
    assert len([*cache.glob("*.host")]) == entries


def test_a_program_that_names_its_file_is_compiled_once_though_the_headers_folder_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(cache))
    file = tmp_path / "program.cpp"
    file.write_text(
        "#include <device_launch_parameters.h>\n"
        'extern "C" const char *text(const char *file = __builtin_FILE()) { return file; }\n'
    )
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        compile_program([file], HostOptions(), tmp_path / name)
    assert len([*cache.glob("*.host")]) == 1


def test_the_file_that_is_linked_to_every_program_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(cache))
    file, compiled, run = tmp_path / "program.cpp", [], subprocess.run

    def count(command, **options):
        compiled.append("-c" in command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", count)
    counts = []
    for number in (3, 4):
        file.write_text(f'extern "C" int number() {{ return {number}; }}\n')
        folder = tmp_path / str(number)
        folder.mkdir()
        library = ctypes.CDLL(str(compile_program([file], HostOptions(), folder)))
        assert library.number() == number
        assert library.lockstep_block_bytes(None) == -1
        counts.append(sum(compiled))
    assert counts == [2, 3]
