"""How to build and run public programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_ARGUMENT = 1 << 10
"""Limit down to which numbers among a program's arguments are halved: they are meant for GPUs."""

_MAX_REPETITIONS_ARGUMENT = 10_000
"""Largest value of a program's only argument that is taken as the number of repetitions of a kernel."""


@dataclass(frozen=True)
class Recipe:
    """How to build and run a program, from its makefile.

    Parameters
    ----------
    files, arguments, options : tuple of str
        Sources, arguments of the program, and the compiler's options -I, -D and --expt-relaxed-constexpr.
    """

    files: tuple[str, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...]


def read_hecbench_recipe(folder: Path) -> Recipe | None:
    """Return how to build and run a program; None if its makefile uses variables for it."""
    text = (folder / "Makefile").read_text("utf-8", "replace").replace("\\\n", " ")
    files = [word for line in re.findall(r"^(?:\w+_)?source\s*=\s*(.+)$", text, re.MULTILINE) for word in line.split()]
    command = re.search(r"^run:.*\n(?:\t.*\n)*?\t.*?\./\S+[ \t]*(.*)", text, re.MULTILINE)
    if not files or command is None or any("$" in word or not (folder / word).is_file() for word in files):
        return None
    arguments = re.split(r"[|>;&#]", command[1])[0].split()
    flags = [word for line in re.findall(r"^CFLAGS\s*[:+]?=\s*(.*)$", text, re.MULTILINE) for word in line.split()]
    options = [word for word in flags if word[:2] in ("-I", "-D") and "$" not in word and word != "-DDEBUG"]
    parts = [part for word in options for part in (word[:2], word[2:])]
    parts += [word for word in flags if word == "--expt-relaxed-constexpr"]
    return Recipe(tuple(files), tuple(arguments), tuple(parts))


def reduce_arguments(arguments: Sequence[str]) -> list[str]:
    """Reduce arguments for a simulation: one repetition, and large numbers halved down to the limit."""
    reduced = list(arguments)
    for index, word in enumerate(reduced):
        if word.isdigit():
            number = int(word)
            while number > MAX_ARGUMENT:
                number //= 2
            reduced[index] = str(number)
    if reduced and reduced[-1].isdigit():
        reduced[-1] = "1" if len(reduced) > 1 or int(arguments[-1]) <= _MAX_REPETITIONS_ARGUMENT else reduced[-1]
    return reduced
