"""The library that clang's Python binding loads: the wheel's own or, in a conda environment, conda's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clang import cindex

from gpu.base.paths import ROOT
from gpu.simulator.frontend.clang.libclang import find_conda_library
from tests import needs


@pytest.mark.parametrize("name", ["lib/libclang.so", "lib/libclang.dylib", "Library/bin/libclang-13.dll"])
def test_condas_library_is_found_by_the_name_of_each_system(tmp_path, name):
    assert find_conda_library(tmp_path) is None
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert find_conda_library(tmp_path) == tmp_path / name


def load_library(environment, *folders):
    """Return the library that the front end loads in a conda environment, with a binding of clang in a folder."""
    start = f"import sys; sys.prefix = {str(environment)!r}; from gpu.simulator.frontend.clang import cursors; "
    command = [sys.executable, "-c", start + "from clang import cindex; print(cindex.conf.get_filename())"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs.linux
def test_a_binding_without_a_library_loads_condas(tmp_path):
    """conda's package of the binding is LLVM's own, which has no library and names no folder."""
    source = Path(cindex.__file__)
    (tmp_path / "clang").mkdir()
    text = source.read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("    library_path = ")]
    (tmp_path / "clang" / "cindex.py").write_text(text.replace(line, "    library_path = None"), "utf-8")
    (tmp_path / "clang" / "__init__.py").touch()
    shutil.copy(source.with_name("enumerations.py"), tmp_path / "clang")
    library = tmp_path / "environment" / "lib" / "libclang.so"
    library.parent.mkdir(parents=True)
    library.symlink_to(Path(cindex.conf.get_filename()).resolve())
    assert load_library(tmp_path / "environment", tmp_path) == str(library)


@needs.linux
def test_the_wheels_library_is_preferred_to_condas(tmp_path):
    """Its version is the one that is required."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libclang.so").write_text("another version")
    assert Path(load_library(tmp_path)).samefile(cindex.conf.get_filename())
