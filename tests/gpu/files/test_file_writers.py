"""Files that users name are written by `gpu.files.file_access` alone: no other code opens a file for writing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gpu.base.paths import ROOT

OWN_FILES = {
    "gpu/files/file_access.py": "writes them",
    "gpu/files/decoder.py": "a pipe",
    "gpu/files/scratch.py": "the lock of a scratch folder",
    "gpu/cli/check/runner.py": "a scratch folder",
    "gpu/hosts/pycuda/python_files.py": "PyCUDA's files in the data folder",
    "gpu/process/engine_process.py": "the null device",
    "gpu/simulator/disk.py": "the cache",
    "gpu/simulator/frontend/clang/precompiled_header.py": "a temporary folder",
    "gpu/simulator/frontend/clang/parsing.py": "the grader's scratch folder",
    "gpu/messages/shared_arrays.py": "files shared by two processes",
    "gpu/process/programs/server.py": "a program's scratch folder",
    "gpu/run/programs/child_runner.py": "a program's scratch folder",
    "gpu/run/programs/child.py": "a program's scratch folder",
    "gpu/timing/compiler.py": "a temporary folder",
    "gpu/hosts/program/host_compiler.py": "a program's scratch folder",
    "gpu/hosts/pycuda/compiler.py": "a script's own output of its nvcc",
    "gpu/distributed/data/files.py": "the unfinished file of `replace_path`",
    "gpu/distributed/data/tiff.py": "the unfinished file of `replace_path`",
    "gui/step_view/export/slides.py": "the unfinished folder of `replace_path`",
    "gui/driving/pictures.py": "README's pictures",
}
"""Modules that write other files, and which."""
_WRITERS = {"write_text", "write_bytes", "copyfile", "copy2", "touch"}
_WRITING_CLASSES = {"QSaveFile", "QFile"}
_WORDS = re.compile("|".join(("open", "save", *_WRITERS, *_WRITING_CLASSES)))
"""Only a text with one of these words is parsed."""


def _find_writers(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [each.value for each in (*node.args, *(word.value for word in node.keywords))
                 if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip
        opens = name == "open" and any(
            set(word) <= set("rwaxbt+") and set(word) & set("wax+") for word in words if word
        )
        saves = name == "save" and any(
            isinstance(each, ast.Call) and getattr(each.func, "id", "") == "str" for each in node.args
        )
        if name in _WRITERS | _WRITING_CLASSES or opens or saves:
            yield node.lineno


def test_no_other_module_opens_a_file_for_writing() -> None:
    found: dict[str, list[int]] = {}
    for path in sorted([*(ROOT / "gpu").rglob("*.py"), *(ROOT / "gui").rglob("*.py")]):
        text = path.read_text("utf-8")
        if _WORDS.search(text) and (lines := list(_find_writers(ast.parse(text)))):
            found[path.relative_to(ROOT).as_posix()] = lines
    assert not {name: lines for name, lines in found.items() if name not in OWN_FILES}
    assert set(OWN_FILES) == set(found)


def test_the_search_sees_each_way_to_write() -> None:
    for text in ("open(p, 'w')", "open(p, mode='xb')", "p.open('a')", "p.write_text('')", "p.write_bytes(b'')",
                 "shutil.copyfile(a, b)", "image.save(str(p))", "open(p, 'r+b')"):  # fmt: skip
        assert list(_find_writers(ast.parse(text))), text
    for text in ("open(p)", "open(p, 'rb')", "p.open()", "recording.save(file)"):
        assert not list(_find_writers(ast.parse(text))), text
