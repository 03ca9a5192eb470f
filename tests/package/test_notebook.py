"""The cell magic `%%lockstep`, in the shell that a notebook's kernel runs; and the notebook of the handbook."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
from lockstep import load_ipython_extension
from lockstep.notebook import run_cell

from gpu.base.paths import DOCS
from tests import needs

DOUBLE = """
extern "C" __global__ void double_all(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
"""


def test_a_cell_gives_report_arrays_and_player():
    values = np.linspace(-1, 1, 65, dtype=np.float32)
    run = run_cell("double_all --grid 3 --block 32 --arg array:values --arg 65", DOUBLE, {"values": values})
    assert not run.has_findings
    np.testing.assert_array_equal(run.arrays["values"], 2 * values)
    assert "if (i < n) data[i] *= 2;" in repr(run)
    assert "/" not in re.findall(r"Counters of (\S+)", repr(run))[0]
    shown = run._repr_html_()
    frame = re.search(r'<iframe name="#embed" sandbox="allow-scripts" srcdoc="([^"]*)"', shown)
    assert unescape(frame[1]) == run.player
    assert "double_all" in run.player
    assert "Recorded" not in repr(run)


def test_findings_are_reported():
    run = run_cell("double_all --grid 3 --block 32 --arg zeros:64 --arg 65 --no-player", DOUBLE, {})
    assert run.has_findings
    assert "out-of-bounds" in repr(run).lower()
    assert (run.player, "iframe" in run._repr_html_()) == ("", False)


def test_text_of_a_kernel_is_no_markup():
    text = DOUBLE.replace("data[i] *= 2;", 'data[i] *= 2;  // <b>"&"</b></iframe>')
    shown = run_cell("double_all --grid 1 --block 32 --arg zeros:8 --arg 8", text, {})._repr_html_()
    assert "<b>" not in shown
    assert shown.count("</iframe>") == 1


@pytest.mark.parametrize(
    ("line", "cell", "complaint"),
    [
        ("", DOUBLE, "Name the kernel"),
        ("--grid 1", DOUBLE, "Name the kernel"),
        ("double_all --grid x", DOUBLE, "--grid"),
        ("double_all --grid 1 --block 1 --arg array:missing --arg 1", DOUBLE, "no NumPy array 'missing'"),
        ("double_all --grid 1 --block 1 --arg zeros:1 --arg 1", DOUBLE.replace(";\n}", "\n}"), "cell.cu:4"),
        ("other --grid 1 --block 1", DOUBLE, "other"),
    ],
)
def test_what_cannot_run_is_one_error(line, cell, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        run_cell(line, cell, {})


def test_without_the_windows_libraries_the_report_remains(monkeypatch):
    from lockstep import notebook

    run_python = notebook._run_python

    def fail(*words, **options):
        if words[0] == "-m":
            words = ("-c", "raise ImportError('libEGL.so.1: cannot open shared object file')")
        return run_python(*words, **options)

    monkeypatch.setattr(notebook, "_run_python", fail)
    run = run_cell("double_all --grid 1 --block 32 --arg zeros:8 --arg 8", DOUBLE, {})
    assert "No findings." in repr(run)
    assert repr(run).endswith("The steps cannot be shown: ImportError: libEGL.so.1: cannot open shared object file\n")


def test_a_large_player_is_left_out(monkeypatch):
    monkeypatch.setattr("lockstep.notebook._MAX_PAGE_BYTES", 1000)
    run = run_cell("double_all --grid 1 --block 32 --arg zeros:8 --arg 8", DOUBLE, {})
    assert run.player == ""
    assert "too much for a notebook: use fewer blocks, or --no-player" in repr(run)


def test_the_notebook_of_the_handbook_runs(capsys):
    needs.module("IPython", needs.IPYTHON)
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        load_ipython_extension(shell)
        cells = json.loads((DOCS / "notebook.ipynb").read_text("utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "code":
                shell.run_cell("".join(cell["source"]), store_history=True).raise_error()
        result = shell.run_cell("%%lockstep other\n__global__ void one() {}")
        assert "other" in str(result.error_in_exec)
    finally:
        InteractiveShell.clear_instance()
    capsys.readouterr()
