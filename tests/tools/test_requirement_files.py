"""Each requirements file has what its commands need and no more; the package depends on what running needs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

from gpu.base.paths import ROOT

# The distributions of modules with another name.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "clang": "libclang",
    "cv2": "opencv-python-headless",
    "cuda": "cuda-bindings",
    "pytestqt": "pytest-qt",
}
OWN = {"gpu", "gui", "tools", "tests", "main", "lockstep"}
# CuPy is named by hand; Numba and torch are peers that `bench` measures where they are installed.
PEERS = {"cupy", "cupyx", "numba", "torch"}
HOSTS = {"ipython", "pytest"}  # they load our extension and our plugin
OF_PYTEST = {"packaging"}  # only replacements of CuPy's test decorators import it
NOT_IMPORTED = {"mako", "pytools", "platformdirs"}  # PyCUDA's Python files import these


def required(*names: str) -> set[str]:
    """Return the distributions that requirements files name themselves, without those of files they include."""
    lines = "\n".join((ROOT / f"requirements{name}.txt").read_text("utf-8") for name in names)
    return {name.lower().replace("_", "-") for name in re.findall(r"^([A-Za-z][\w-]*)", lines, re.MULTILINE)}


def read_modules(path: Path) -> set[str]:
    """Return the modules that a file imports."""
    modules = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while nodes:
        node = nodes.pop()
        nodes += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)]
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    return modules


@cache  # three tests read a thousand files
def read_modules_of_folder(folder: str) -> set[str]:
    return set().union(*map(read_modules, (ROOT / folder).rglob("*.py")))


def imported(*folders: str) -> set[str]:
    """Return the distributions of the modules that the files of folders import, without Python's and Lockstep's."""
    modules = read_modules(ROOT / "main.py").union(*map(read_modules_of_folder, folders))
    names = {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names) - OWN
    return {DISTRIBUTIONS.get(name, name).lower().replace("_", "-") for name in names}


def test_what_runs_lockstep_needs_no_package_of_the_tests():
    missing = (
        imported("gpu", "gui", "package/lockstep")
        - required("-run", "-cuda", "-dask", "-bench")
        - PEERS
        - HOSTS
        - OF_PYTEST
    )
    assert missing == set()


def test_no_package_is_required_in_vain():
    assert required("-run") - imported("gpu", "gui") - NOT_IMPORTED == set()


def test_the_tests_need_no_linter():
    text = (ROOT / "requirements.txt").read_text("utf-8")
    assert "-r requirements-run.txt\n" in text
    assert not required("", "-run") & required("-dev")
    optional = required("-cuda", "-dask", "-bench", "-docs") | PEERS | OF_PYTEST
    assert imported("gpu", "gui", "tests") - required("", "-run") - optional == set()


def test_the_package_depends_on_what_running_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["requirements_txt"]
    assert hook["files"] == ["requirements-run.txt"]
    assert set(project["project"]["dynamic"]) == {"version", "dependencies", "optional-dependencies"}
    assert {extra: files[-1] for extra, files in hook["optional-dependencies"].items()} == {
        "cuda": "requirements-cuda.txt",
        "dask": "requirements-dask.txt",
        "dev": "requirements-dev.txt",
    }


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def test_the_lock_has_a_hash_for_each_package_that_running_needs_and_its_dependencies():
    text = (ROOT / "requirements-lock.txt").read_text("utf-8")
    hashes = r"((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
    pins = re.findall(r"^([a-z][\w-]*)==([\d.]+)(?: ;[^\\\n]*)? \\\n" + hashes, text, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[^ #]", text, re.MULTILINE))
    assert {name for name, _, _ in pins} >= required("-run")
    wanted = re.findall(r"^([A-Za-z][\w-]*)(>=|==)([\d.]+)", (ROOT / "requirements-run.txt").read_text("utf-8"), re.M)
    assert len(wanted) == len(required("-run"))
    for name, operator, version in wanted:
        locked = [parse_version(each) for pin, each, _ in pins if pin == name.lower()]
        least = parse_version(version)
        assert all(each == least if operator == "==" else each >= least for each in locked), name


def test_each_package_has_a_lower_bound_that_a_job_tests():
    for file in ("requirements-run.txt", "requirements.txt"):
        names = re.findall(r"^[A-Za-z].*", (ROOT / file).read_text("utf-8"), re.MULTILINE)
        assert [name for name in names if not re.match(r"[\w-]+(>=|==)\d", name)] == []
    assert "--resolution lowest-direct -r requirements.txt" in (ROOT / "Makefile").read_text("utf-8")
    assert "make oldest" in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_workflows_pin_actions_by_commit():
    uses = [
        line
        for path in (*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml")
        for line in re.findall(r"^\s*(?:- )?uses: (.*)", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(uses) >= 10
    assert [line for line in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line)] == []
