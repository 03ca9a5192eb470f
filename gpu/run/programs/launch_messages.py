"""Convert a program's launches into messages, with findings at the lines of the program's file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from gpu.base.errors import Diagnostic
from gpu.hosts.driver.journal import Journal, LaunchEntry
from gpu.messages.programs import ProgramLaunch, WholeProgram
from gpu.messages.run_counts import RunCounts
from gpu.messages.verdicts import Mistake, collect_mistakes
from gpu.run.work_count import collect_run_counts
from gpu.simulator.checkers.report import build_diagnostics

_GENERATED_FILE = "kernel.cu"
"""PyCUDA's name of a module's text."""
_GENERATED_POSITION = re.compile(r"\bkernel\.cu:(\d+)")
_MAX_LINES = 4000
"""Lines of a text that are searched for in the program's file."""


class LaunchConverter:
    """Converts the launches of one run."""

    def __init__(self, program: WholeProgram) -> None:
        self._program = program
        self._reported_count = 0
        self._lines: dict[int, Mapping[int, int]] = {}

    def convert_new_launches(self, journal: Journal) -> tuple[ProgramLaunch, ...]:
        """Return the launches that were added to the journal since the last call."""
        new = tuple(
            self._convert_launch(number, entry, journal.texts[entry.text_index])
            for number, entry in enumerate(journal.entries[self._reported_count :], self._reported_count + 1)
        )
        self._reported_count = len(journal.entries)
        return new

    def _convert_launch(self, number: int, entry: LaunchEntry, text: str) -> ProgramLaunch:
        threads = math.prod(entry.grid) * math.prod(entry.block)
        file = Path(_GENERATED_FILE if self._program.is_script else self._program.path)
        diagnostics = (
            build_diagnostics(entry.findings, text, file, extents=(entry.grid, entry.block)) if entry.findings else ()
        )
        lines = self._find_script_lines(entry.text_index, text) if diagnostics and self._program.is_script else None
        return ProgramLaunch(
            number,
            entry.kernel,
            entry.call_site,
            entry.grid,
            entry.block,
            entry.shared_bytes,
            entry.simulated_ms,
            self._map_mistakes(lines, collect_mistakes(entry.findings, str(file))),
            diagnostics,
            self._map_diagnostics(lines, diagnostics),
            RunCounts(f"{threads} threads", 1, "launch", 0, **collect_run_counts(entry.counts))
            if entry.counts
            else None,
            str(entry.trace) if entry.trace is not None and entry.trace.is_file() else "",
            entry.modeled_us,
        )

    def _find_script_lines(self, number: int, text: str) -> Mapping[int, int]:
        if number not in self._lines:
            self._lines[number] = match_script_lines(text, self._program.text)
        return self._lines[number]

    @staticmethod
    def _map_mistakes(lines: Mapping[int, int] | None, mistakes: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
        if lines is None:
            return mistakes
        return tuple(
            Mistake(mistake.kind, tuple(lines[at] for at in mistake.lines if at in lines)) for mistake in mistakes
        )

    def _map_diagnostics(
        self, lines: Mapping[int, int] | None, diagnostics: tuple[Diagnostic, ...]
    ) -> tuple[Diagnostic, ...]:
        if lines is None:
            return diagnostics
        name = Path(self._program.path).name

        def place_in_script(match: re.Match[str]) -> str:
            line = lines.get(int(match[1]))
            return match[0] if line is None else f"{name}:{line}"

        return tuple(
            replace(
                diagnostic,
                line=lines[diagnostic.line],
                message=_GENERATED_POSITION.sub(place_in_script, diagnostic.message),
            )
            for diagnostic in diagnostics
            if diagnostic.line in lines
        )


def match_script_lines(text: str, script: str) -> dict[int, int]:
    """Map line numbers of a kernel's text to those of the script that contains it, both from 1.

    A script may assemble its kernels from pieces; only lines that the script contains as compiled are mapped.
    """
    compiled, written = text.split("\n")[:_MAX_LINES], script.split("\n")[:_MAX_LINES]
    blocks = SequenceMatcher(None, compiled, written, autojunk=False).get_matching_blocks()
    return {
        block.a + index + 1: block.b + index + 1
        for block in blocks
        for index in range(block.size)
        if compiled[block.a + index].strip()
    }
