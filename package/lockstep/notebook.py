"""The cell magic `%%lockstep` of IPython and Jupyter: run a CUDA C++ kernel in the simulator, and play its steps.

`%load_ext lockstep` registers it. The cell is the CUDA C++ file; the line is the kernel and the options of `simulate`:

    %%lockstep double_all --grid 2 --block 64 --arg array:data --arg 100
"""

from __future__ import annotations

import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lockstep import APP

_ARRAY = "array:"
_NO_PLAYER = "--no-player"
_MAX_PAGE_BYTES = 20 << 20
"""Bytes of the largest player that a notebook gets; browsers become slow with larger ones."""
_HEIGHT = 560
"""Height of the player in pixels."""


class KernelRun:
    """The result of a cell, which a notebook shows as a report and a player.

    Parameters
    ----------
    report : str
        Findings, counts and results, as `simulate` prints them.
    has_findings : bool
        Whether the kernel has errors.
    arrays : dict of str to ndarray
        The arrays after the launch, by the names of the `array:NAME` arguments.
    player : str
        The HTML page that plays the steps; "" without one.
    """

    def __init__(self, report: str, has_findings: bool, arrays: dict[str, Any], player: str) -> None:
        self.report, self.has_findings, self.arrays, self.player = report, has_findings, arrays, player

    def __repr__(self) -> str:
        return self.report

    def _repr_html_(self) -> str:
        # The name of the frame selects the player's embedded form, since such a frame has no address.
        frame = (
            f'<iframe name="#embed" sandbox="allow-scripts" srcdoc="{html.escape(self.player)}" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )
        return f"<pre>{html.escape(self.report)}</pre>{frame if self.player else ''}"


def run_cell(line: str, cell: str, variables: dict[str, Any]) -> KernelRun:
    """Run a cell's kernel.

    Parameters
    ----------
    line : str
        The kernel's name and the options of `simulate`. The argument `array:NAME` is the NumPy array in a variable;
        `--no-player` records no steps, for large launches.
    cell : str
        CUDA C++ source.
    variables : dict
        The notebook's variables.

    Raises
    ------
    ValueError
        Nothing ran: an option or a variable is invalid, or the kernel does not compile.
    """
    words = shlex.split(line)
    with_player = _NO_PLAYER not in words
    words = [word for word in words if word != _NO_PLAYER]
    if not words or words[0].startswith("-"):
        raise ValueError("Name the kernel: %%lockstep KERNEL --grid BLOCKS --block THREADS --arg SPEC ...")
    with tempfile.TemporaryDirectory(prefix="lockstep-notebook-") as name:
        folder = Path(name)
        source, recording = folder / "cell.cu", folder / "steps.trace"
        source.write_text(cell, "utf-8")
        options, results = _save_arrays(words[1:], variables, folder)
        if with_player:
            options += ["--trace", str(recording)]
        done = _run_python(str(APP / "main.py"), "simulate", str(source), words[0], *options)
        if done.returncode not in (0, 1) or not done.stdout:
            raise ValueError(
                done.stderr.replace(str(source), source.name).strip() or "The simulator ended unexpectedly."
            )
        report = re.sub(r"\n+Recorded .*\n*\Z", "\n", done.stdout)
        player = ""
        if with_player:
            player, problem = _write_player(recording, words[0], shlex.join(words[1:]))
            report += problem
        return KernelRun(report, done.returncode == 1, _load_arrays(results), player)


def _save_arrays(words: list[str], variables: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, Path]]:
    """Save the arrays of `array:NAME` arguments; return the options of `simulate`, and the file of each result."""
    import numpy as np

    options, dumps, results = [], [], {}
    index = -1
    for previous, word in zip(["", *words], words, strict=False):
        index += previous == "--arg"
        if previous != "--arg" or not word.startswith(_ARRAY):
            options.append(word)
            continue
        name = word.removeprefix(_ARRAY)
        if not isinstance(variables.get(name), np.ndarray):
            raise ValueError(f"--arg {word}: the notebook has no NumPy array {name!r}.")
        np.save(folder / f"{name}.npy", variables[name])
        options.append(f"file:{folder / f'{name}.npy'}")
        results[name] = folder / f"{name}-result.npy"
        dumps += ["--dump", f"{index}={results[name]}"]
    return options + dumps, results


def _load_arrays(results: dict[str, Path]) -> dict[str, Any]:
    import numpy as np

    return {name: np.load(path) for name, path in results.items() if path.exists()}


def _write_player(recording: Path, title: str, settings: str) -> tuple[str, str]:
    """Return the HTML page that plays a recording, or "" and the reason."""
    page = recording.with_suffix(".html")
    done = _run_python("-m", "gui.driving.player_page", str(recording), str(page), title, settings, folder=APP)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["it ended unexpectedly"])[-1]
        return "", f"\nThe steps cannot be shown: {reason}\n"
    if page.stat().st_size > _MAX_PAGE_BYTES:
        megabytes = page.stat().st_size / 1e6
        return "", f"\nThe steps need {megabytes:.0f} MB, too much for a notebook: use fewer blocks, or {_NO_PLAYER}.\n"
    return page.read_text("utf-8"), ""


def _run_python(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in another process, since clang may crash on a text, in a folder or the notebook's."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
