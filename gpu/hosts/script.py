"""Execution of a script or module as by Python."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import re
import runpy
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from gpu.base.errors import Diagnostic
from gpu.base.paths import ROOT

_FAILED, _REFUSED = 1, 2
_IMPORTS = {
    name: re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:{modules})\b", re.MULTILINE)
    for name, modules in (("pycuda", "pycuda"), ("cupy", "cupyx?"))
}


def find_libraries(text: str) -> tuple[str, ...]:
    """Return which of "pycuda" and "cupy" a script's text imports."""
    return tuple(name for name, pattern in _IMPORTS.items() if pattern.search(text))


def run_script(program: Sequence[str], text: str | None = None) -> int:
    """Run a script or a module as Python would; return its exit code. Print exceptions to standard error.

    Parameters
    ----------
    program : sequence of str
        The script's path, or -m and a module's name; then its arguments.
    text : str or None
        Text that replaces the script file's content.
    """
    is_module = program[0] == "-m"
    words = list(program[1:] if is_module else program)
    # The script must not import from the folder from which this program was started.
    here = str(ROOT)
    sys.path[:] = [folder for folder in sys.path if folder not in ("", here)]
    sys.path.insert(0, str(Path.cwd()) if is_module else str(Path(words[0]).resolve().parent))
    sys.argv = words
    if is_module and not _module_exists(words[0]):
        print(f"lockstep: There is no module {words[0]!r}.", file=sys.stderr)
        return _REFUSED
    try:
        if is_module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        elif text is None:
            runpy.run_path(words[0], run_name="__main__")
        else:
            _run_text(words[0], text)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return _FAILED
    except Exception as error:
        print(_format_traceback(error), end="", file=sys.stderr)
        return _FAILED
    return 0


def _module_exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        return error.name is None or not f"{module}.".startswith(f"{error.name}.")
    except (ImportError, ValueError):
        return False
    except Exception:  # importing the parent package fails; running the module reports that
        return True


def diagnose_script(text: str) -> tuple[Diagnostic, ...]:
    """Return the syntax error in a script's text, without running it."""
    lines = text.split("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), len(lines))
        column = min(max(error.offset or 1, 1), len(lines[line - 1]) + 1)
        ends_here = error.end_lineno == line and error.end_offset is not None and error.end_offset > column
        end = error.end_offset if ends_here and error.end_offset is not None else len(lines[line - 1]) + 1
        message = error.msg[:1].upper() + error.msg[1:]
        return (Diagnostic(line, column, max(end, column + 1), "error", message),)
    except (ValueError, RecursionError, MemoryError) as error:  # a null character, or nested too deep
        return (Diagnostic(1, 1, 2, "error", f"Python cannot read this text: {error}"),)
    return ()


def _run_text(path: str, text: str) -> None:
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)  # for tracebacks
    module = ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(compile(text, path, "exec"), module.__dict__)


def _format_traceback(error: Exception) -> str:
    """Format a traceback as on a GPU, without frames of Lockstep's."""
    formatted = traceback.TracebackException.from_exception(error)
    ours = str(ROOT / "gpu")
    each: traceback.TracebackException | None = formatted
    while each is not None:
        each.stack[:] = [
            frame for frame in each.stack if not frame.filename.startswith(ours) and "runpy" not in frame.filename
        ]
        each = each.__cause__ or each.__context__
    return "".join(formatted.format())
