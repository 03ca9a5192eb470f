"""The declaration is closed: nobody outside of it knows a parameter by its name, or a kind of result by a pattern's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu.base.paths import ROOT
from gpu.patterns import all_patterns

DECLARING = (ROOT / "gpu" / "patterns", ROOT / "gpu" / "declaration", ROOT / "gpu" / "bench" / "cluster")
"""What says what patterns take, or, of several devices, what they are measured on."""
UNAWARE = (ROOT / "gpu" / "simulator",)
"""What may not import a declaration, as the linter holds: its fields are others."""
NAMES = {parameter.name for pattern in all_patterns().values() for parameter in pattern.parameters}
WORDS = re.compile(rf"""["']({"|".join(map(re.escape, NAMES))})["']|\bchange\(""")
"""How a parameter may be named: as a string, or as a keyword of `change`."""
HOLDERS = re.compile(r"params|fields|given|settings|kept")
"""How things are called that hold parameters by their names."""


def find_parameter_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name wherever a parameter is named: looked up, compared, set, or given by keyword."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=holder, slice=ast.Constant(value=str(name))) if _holds_params(holder):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="lend"), args=[ast.Constant(value=str(name))]):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(value=holder, attr="get" | "pop"), args=[ast.Constant(value=name), *_]):
                if _holds_params(holder):
                    yield node.lineno, name
            case ast.Compare(left=left, comparators=[right]):
                yield from _compared_names(left, right)
            case ast.Assign(targets=[target], value=ast.Dict() as given) if _holds_params(target):
                yield from _dict_keys(given)
            case ast.AugAssign(target=target, value=given) if _holds_params(target):
                yield from _dict_keys(given)
            case ast.Call(func=ast.Attribute(attr="change"), keywords=keywords):
                yield from ((node.lineno, each.arg) for each in keywords if each.arg)
            case ast.Call(func=ast.Attribute(attr="check"), args=[ast.Dict() as given]):
                yield from _dict_keys(given)
            case ast.keyword(arg=str(of), value=ast.Dict() as given) if HOLDERS.search(of):
                yield from _dict_keys(given)
            case ast.Dict(keys=keys) if any(key is None for key in keys) and any(map(_holds_params, node.values)):
                yield from _dict_keys(node)


def _compared_names(left: ast.expr, right: ast.expr) -> Iterator[tuple[int, str]]:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            is_name = (
                isinstance(other, ast.Attribute) and other.attr == "name" and _last_name(other.value) == "parameter"
            )
            if is_name or (one is left and _holds_params(other)):
                yield one.lineno, one.value


def _dict_keys(given: ast.expr) -> Iterator[tuple[int, str]]:
    for part in ast.walk(given):
        for key in part.keys if isinstance(part, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.lineno, key.value


def _last_name(holder: ast.expr) -> str:
    match holder:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _holds_params(holder: ast.expr) -> bool:
    return HOLDERS.search(_last_name(holder)) is not None


def find_known_names(source: str) -> list[tuple[int, str]]:
    if not WORDS.search(source):
        return []  # parsing takes a hundred times as long
    return sorted({(line, name) for line, name in find_parameter_names(ast.parse(source)) if name in NAMES})


def list_checked_files() -> list[Path]:
    every = [*(ROOT / "gpu").rglob("*.py"), *(ROOT / "gui").rglob("*.py")]
    return sorted(file for file in every if not any(folder in file.parents for folder in (*DECLARING, *UNAWARE)))


def test_no_parameter_is_known_by_its_name() -> None:
    places = {
        str(file.relative_to(ROOT)): find_known_names(file.read_text(encoding="utf-8")) for file in list_checked_files()
    }
    assert {file: found for file, found in places.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    [
        'size = params["n"]',
        'block = request.params.get("block", 256)',
        'if parameter.name == "block": pass',
        'several = "n" in params',
        'settings.params |= {"of": "letters"}',
        'settings.params |= {"of": "letters"} if text else {"input": "file"}',
        'form.change(filter="custom")',
        'pattern.check({"n": 1})',
        'Case(work, "scan", params={"n": 1})',
        'given = {**params, "n": 1}',
        'field = form.fields["coefficients"]',
        'field = form.lend("text")',
    ],
)
def test_each_way_of_naming_a_parameter_is_seen(source: str) -> None:
    assert find_known_names(source)
