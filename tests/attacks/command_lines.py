"""Command lines: options of every command with values that nobody meant."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import numpy as np

from gpu.cli import main as cli
from gpu.cli.main import Desktop
from gpu.patterns import all_patterns

_ODD = (
    "", " ", "0", "-1", "1.5", "nan", "-inf", "1e9", "9" * 30, "9" * 5000, "0x10", "1_000", "٣", "²", "a\nb", "\x1b[2J",
    "\udcff", "x" * 5000, "-", "--", "--n", "none.npy", "/dev/zero", "/dev/full", "/", ".", "..", "~", "loop",
    "fifo.npy", "folder/x.npy", "loop/x.csv", "bad.csv", "bad.npy", "bad.png", "bad.tipsy", "1,2,,3", "=", "@file",
    "\u202e", "%s",
)  # fmt: skip
_COMMON = ("--input", "--output", "--seed", "--variant", "--engine", "--executor", "--frames", "--json", "--help")
_OF_SIMULATE = ("--shared", "-D", "-I", "--dump", "--max-steps", "--schedule", "--trace")
_MADE = ("zeros:", "full:3:", "full:", "arange:", "random:3:", "file:", "empty:", "")
_SMALL = {"n": "17", "bodies": "8", "steps": "1", "rows": "5", "columns": "5", "m": "5", "k": "5", "size": "3"}
_DESKTOP = Desktop(open_window=lambda path: 0, run_tour=lambda folder: 0, measure_actions=lambda page, repetitions: 0)


def attack(random: np.random.Generator, folder: Path) -> None:
    """Run a command in a folder of odd files; what it refuses is one line on stderr."""
    _write_odd_files(folder)
    before = Path.cwd()
    out, complaint = io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaint):
            code = _run(_draw_arguments(random))
    finally:
        os.chdir(before)
    said = complaint.getvalue()
    assert code in (cli.OK, cli.FAILED, cli.REFUSED)
    assert "Traceback" not in said
    if "error: " in said:  # what clang says of a macro comes with its lines
        assert code == cli.REFUSED
    elif code == cli.REFUSED:
        assert said.count("\n") == 1, said
        assert said.endswith("\n")
        assert said[:-1].isprintable(), said
        assert len(said) < 2500
    else:
        assert said == ""


def _run(words: list[str]) -> int:
    try:
        return cli.main(words, _DESKTOP)
    except SystemExit as end:
        return int(end.code or 0)


def _write_odd_files(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "folder" / "x.npy").mkdir(parents=True)
    os.mkfifo(folder / "fifo.npy")
    (folder / "k.cu").write_text("__global__ void k(int *a) { a[threadIdx.x] = 1; }")
    for ending in ("csv", "npy", "png", "tipsy"):
        (folder / f"bad.{ending}").write_bytes(b"\x93NUMPY\x01\0bad\n" + bytes(40))


def _draw_arguments(random: np.random.Generator) -> list[str]:
    def draw_odd_value() -> str:
        return _ODD[int(random.integers(len(_ODD)))]

    if random.random() < 0.2:
        words = [
            "simulate",
            "k.cu" if random.random() < 0.9 else draw_odd_value(),
            "k" if random.random() < 0.9 else draw_odd_value(),
        ]
        given = {"--grid": "1", "--block": "32", "--arg": "zeros:32"}
        for name in random.choice([*given, *_OF_SIMULATE], int(random.integers(1, 3))).tolist():
            before = {"--schedule": "shuffle:", "--dump": "0=", "--arg": str(random.choice(_MADE))}.get(name, "")
            given[name] = (before if random.random() < 0.8 else "") + draw_odd_value()
        return [*words, *(word for pair in given.items() for word in pair)]
    if random.random() < 0.25:
        command = str(random.choice(["run", "list", "atomics", "simulate", "bench", "tour", "nothing"]))
        others = [draw_odd_value() for _ in range(int(random.integers(4)))]
        # What is measured is not the reader: a page that cannot be written, or a device that there is none of.
        return [command, *(["nothing"] if command in ("bench", "atomics") else []), *others]
    patterns = all_patterns()
    pattern = patterns[sorted(patterns)[int(random.integers(len(patterns)))]]
    words = ["run", pattern.name, "--engine", "simulator", "--executor", "lockstep"]
    for parameter in pattern.parameters:
        if parameter.name in _SMALL:
            words += [f"--{parameter.name}", _SMALL[parameter.name]]
    names = [*_COMMON, *(f"--{parameter.name}" for parameter in pattern.parameters)]
    for _ in range(int(random.integers(1, 4))):
        name = str(random.choice(names))
        words += [name] if name in ("--json", "--help") else [name, draw_odd_value()]
    return words
