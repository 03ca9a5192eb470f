"""Grading of whole programs: host code and kernels, with standard input and output.

A program reads its arguments from standard input, and writes its results to standard output, as numbers separated by
white space.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import CompileError, Diagnostic
from gpu.lessons.expressions import Array, evaluate_integer, evaluate_number
from gpu.lessons.lesson import Task
from gpu.lessons.program_probes import Results, check_failures, check_origin, check_streams
from gpu.lessons.program_runner import COMPARED, STREAM_ORDERS, ProgramRun, ProgramRunner
from gpu.lessons.stage import ProgramInterface, Stage, find_wrong_elements
from gpu.lessons.stage_arrays import NEAR_KIND
from gpu.messages.judgments import RANDOM_KIND, GradingCase, Judgment, WrongElement
from gpu.messages.verdicts import Check, Verdict, collect_mistakes, decide_verdict
from gpu.simulator.checkers.report import build_diagnostics
from gpu.simulator.frontend.editor_diagnostics import build_diagnostic

_KINDS_SIZE = 64
"""Largest size for which all kinds of input are tried; one size is."""
_SCHEDULE = "shuffle:1"
_MAX_SHOWN_CHARACTERS = 80
_STREAM_NOTES = {
    "late": ", with the operations of streams as late as the program allows",
    "late-interleaved": ", with the operations of streams as late as the program allows, one of each stream in turn",
    "late-first": ", with only the operations of the first stream as late as the program allows",
    "late-others": ", with the operations of all streams but the first as late as the program allows",
    "late-reversed": ", with the operations of streams as late as the program allows, those of later streams first",
}


@dataclass(frozen=True)
class _ProgramCase:
    """Input of a run, with the order of its streams and of its warps."""

    case: GradingCase
    streams: str = STREAM_ORDERS[0]


class _RejectedRunError(Exception):
    """A run for which the program is rejected.

    Parameters
    ----------
    words : str
        Short verdict.
    sentence : str
        The reason.
    """

    def __init__(self, words: str, sentence: str) -> None:
        super().__init__(words)
        self.words, self.sentence = words, sentence.rstrip()


def grade_program(task: Task, stage: Stage, text: str, *, seed: int = 0) -> Judgment:
    """Grade a whole program; the result depends only on the text and the seed.

    Parameters
    ----------
    stage : Stage
        The program's interface, arrays and expectations.
    text : str
        Complete text of the program.
    seed : int
        Random seed of hidden inputs.

    Raises
    ------
    InputError
        If an expectation cannot be computed, or if this machine cannot compile programs or confine them.
    """
    return _ProgramGrader(task, stage, text, seed).grade()


class _ProgramGrader:
    """Grade one program."""

    def __init__(self, task: Task, stage: Stage, text: str, seed: int) -> None:
        assert stage.program is not None
        self._task, self._stage, self._text, self._seed = task, stage, text, seed
        self._program: ProgramInterface = stage.program
        dtype = np.dtype(self._program.dtype)
        self._types = dict.fromkeys(stage.arrays, dtype)
        self._runs = self._stream_count = 0

    def grade(self) -> Judgment:
        try:
            runner = ProgramRunner(self._stage.file, self._text)
        except CompileError as error:
            return self._describe_uncompilable(error)
        with runner:
            for each in self._generate_cases():
                before = self._stage.generate_inputs(each.case, self._types)
                text = self._format_input(before, each.case)
                self._runs += 1
                run = runner.run(text, streams=each.streams, schedule=each.case.schedule)
                wrong: WrongElement | None = None
                try:
                    wrong = self._check_run(run, before, each.case)
                    self._stream_count = max(self._stream_count, run.stream_count)
                except _RejectedRunError as rejected:
                    verdict = Verdict("wrong", f"✗ {rejected.words}", rejected.sentence)
                    check = Check(ended=True, failure=rejected.sentence)
                    return self._reject(verdict, check, each, text, failure=rejected.sentence)
                if run.findings or wrong is not None:
                    return self._describe_failure(run, wrong, each, text)
            judgment = self._probe(runner)
            if judgment is not None:
                return judgment
        check = Check(input=f"n up to {max(self._task.sizes)}", orders=(*STREAM_ORDERS[1:], _SCHEDULE))
        verdict = decide_verdict(True, edited=True, check=check)
        return Judgment(self._task.name, True, verdict, check, runs=self._runs)

    def _probe(self, runner: ProgramRunner) -> Judgment | None:
        """Return a judgment if kernels do not compute the results, a stream has no part, or an error is ignored."""
        small, largest = self._find_small_size(), self._task.sizes[-1]
        for n in dict.fromkeys((small, largest)):
            case = next((each for each in self._generate_probe_cases(n) if not self._find_status(each)), None)
            if case is None:
                continue
            before = self._stage.generate_inputs(case, self._types)
            text = self._format_input(before, case)
            results = Results.select(self._stage.compute_expected(before, case), before)
            rejection = check_origin(runner, text, results)
            if rejection is None and n == largest and self._program.streams:
                least = evaluate_integer(self._program.launches, self._stage.evaluate_names(case.n, case.trial))
                needed = (self._program.streams, min(self._program.streams, least))
                rejection = check_streams(runner, text, results, self._stream_count, needed)
            if rejection is None and n == small and self._program.failure_status:
                rejection = check_failures(runner, text, self._program.failure_status)
            if rejection is not None:
                verdict = Verdict("flawed", f"✗ {rejection.words}", rejection.sentence)
                return self._reject(verdict, Check(), _ProgramCase(case), text, failure=rejection.sentence)
        return None

    def _generate_probe_cases(self, n: int) -> Iterator[GradingCase]:
        hidden = self._find_hidden_seed()
        return (GradingCase(n, "precise", hidden, trial=trial) for trial in range(4))

    def _find_status(self, case: GradingCase) -> int:
        """Return the expected exit code."""
        names = self._stage.evaluate_names(case.n, case.trial)
        before = self._stage.generate_inputs(case, self._types)
        return evaluate_integer(self._program.status, {**names, **before})

    def _find_hidden_seed(self) -> int:
        return zlib.crc32(f"{self._task.name} {self._seed}".encode())

    def _find_small_size(self) -> int:
        """Return the largest of the sizes for which all kinds of input are tried."""
        return ([n for n in self._task.sizes if n <= _KINDS_SIZE] or [self._task.sizes[0]])[-1]

    def _generate_cases(self) -> Iterator[_ProgramCase]:
        hidden, sizes, small = self._find_hidden_seed(), self._task.sizes, self._find_small_size()
        for n in sizes:
            for trial in range(2):
                yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden + trial, trial=trial))
        for n in dict.fromkeys((small, sizes[-1])):
            yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden, _SCHEDULE))
            for streams in STREAM_ORDERS[1:]:
                for trial in range(2 if n == small and self._stage.has_trials else 1):
                    yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden, trial=trial), streams)
        for number, kind in enumerate(self._task.kinds):
            if kind not in (RANDOM_KIND, NEAR_KIND):
                yield _ProgramCase(GradingCase(small, kind, hidden, trial=number % 4))
        for n in dict.fromkeys((small, sizes[-1])):
            yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden), COMPARED)
        for n in self._task.select_hidden_sizes(hidden):
            # In one trial the program may have to fail.
            for trial in range(2 if self._stage.has_trials else 1):
                yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden, trial=trial))
            if self._program.streams:
                yield _ProgramCase(GradingCase(n, RANDOM_KIND, hidden), STREAM_ORDERS[1])

    def _format_input(self, before: Mapping[str, Array], case: GradingCase) -> str:
        """Return the text of standard input: the arguments in order, one per line."""
        names = {**self._stage.evaluate_names(case.n, case.trial), **before}
        lines = []
        for argument in self._program.arguments:
            if argument not in self._stage.arrays:
                lines.append(f"{evaluate_number(argument, names):.9g}")
            elif self._stage.arrays[str(argument)].use != "out":
                lines.append(" ".join(f"{value:.9g}" for value in before[str(argument)].tolist()))
        return "\n".join(lines) + "\n"

    def _check_run(self, run: ProgramRun, before: Mapping[str, Array], case: GradingCase) -> WrongElement | None:
        """Return the first wrong element of a run's output.

        Raises
        ------
        _RejectedRunError
            If there is another reason to reject the program.
        """
        names = {**self._stage.evaluate_names(case.n, case.trial), **before}
        status = evaluate_integer(self._program.status, names)
        if run.is_timeout or run.signal in ("SIGXCPU", "SIGKILL"):
            raise _RejectedRunError("it does not end", "The program exceeds the time limit of a run.")
        if run.signal == "SIGXFSZ":
            raise _RejectedRunError("it writes too much", "The program writes more than 8 MB.")
        if run.signal:
            raise _RejectedRunError("it crashes", f"The host code ends by {run.signal}.")
        if run.findings:
            return None
        if run.overrun:
            sentence = f"A copy accesses {run.overrun} bytes past the end of an array of the host."
            raise _RejectedRunError("it copies too much", sentence)
        if run.code != status:
            says = f" Its error output: {_shorten(run.errors)}." if run.errors.strip() else ""
            sentence = f"The program ends with exit code {run.code} instead of {status}.{says} {run.refused_launch}"
            raise _RejectedRunError("wrong exit code", sentence)
        if status:
            return None
        self._check_launches(run, names)
        wrong = self._find_wrong_element(run.output, before, case)
        if wrong is None and run.allocation_count:
            count = f"{run.allocation_count} allocation{'s' if run.allocation_count > 1 else ''}"
            raise _RejectedRunError("memory is not freed", f"At its end {count} of device memory is not freed.")
        return wrong

    def _check_launches(self, run: ProgramRun, names: Mapping[str, Any]) -> None:
        """Raise _RejectedRunError if a run has too few launches, or blocks of another size than the task demands."""
        if not run.block_sizes:
            sentence = f"The program ends without a launch that succeeds. {run.refused_launch}"
            raise _RejectedRunError("no kernel runs", sentence)
        block, least = (evaluate_integer(text, names) for text in (self._program.block, self._program.launches))
        other = next((size for size in run.block_sizes if block not in (0, size)), None)
        if other is not None:
            raise _RejectedRunError("other blocks", f"A launch has {other} threads per block instead of {block}.")
        if len(run.block_sizes) < least:
            count = "1 launch" if len(run.block_sizes) == 1 else f"{len(run.block_sizes)} launches"
            sentence = f"The program has {count} instead of at least {least}. {run.refused_launch}"
            raise _RejectedRunError("too few launches", sentence)

    def _find_wrong_element(self, output: str, before: Mapping[str, Array], case: GradingCase) -> WrongElement | None:
        expected = self._stage.compute_expected(before, case)
        words = output.split()
        count = sum(values.size for values in expected.values())
        if len(words) != count:
            sentence = f"The program prints {len(words)} numbers instead of {count}."
            raise _RejectedRunError("wrong number of results", sentence)
        first = 0
        for name, exact in expected.items():
            try:
                got = np.array(words[first : first + exact.size], np.float64)
            except ValueError:
                raise _RejectedRunError("its output is not a number", f"It prints {_shorten(output)}.") from None
            first += exact.size
            bad = find_wrong_elements(got, exact, 0.0 if self._types[name].kind in "iu" else self._stage.tolerance)
            if bad.any():
                index = int(np.argmax(bad))
                return WrongElement(name, index, float(got[index]), float(exact[index]), False)
        return None

    def _describe_failure(self, run: ProgramRun, wrong: WrongElement | None, case: _ProgramCase, text: str) -> Judgment:
        check = Check(
            mistakes=collect_mistakes(run.findings, self._stage.file),
            diagnostics=build_diagnostics(run.findings, self._text, Path(self._stage.file)),
            ended=bool(run.code),
            input=self._describe_case(case),
        )
        verdict = decide_verdict(False, edited=True, check=check)
        if wrong is not None:
            in_order = case.streams == STREAM_ORDERS[0]
            words = verdict.words if in_order else "✗ the result depends on the order of the streams"
            verdict = Verdict("wrong", words, f"For this input, {wrong}. {run.refused_launch}".rstrip())
        return self._reject(verdict, check, case, text, wrong=wrong)

    def _reject(
        self,
        verdict: Verdict,
        check: Check,
        case: _ProgramCase,
        text: str,
        *,
        wrong: WrongElement | None = None,
        failure: str = "",
    ) -> Judgment:
        shown = f"{self._describe_case(case)}; standard input: {_shorten(text)}"
        return Judgment(
            self._task.name, False, verdict, check, None, wrong, runs=self._runs, failure=failure, input=shown
        )

    def _describe_case(self, case: _ProgramCase) -> str:
        return f"{case.case}{_STREAM_NOTES.get(case.streams, '')}"

    def _describe_uncompilable(self, error: CompileError) -> Judgment:
        message = f"{error.message} {error.advice}".strip()
        diagnostics: tuple[Diagnostic, ...] = ()
        if error.position is not None:
            diagnostics = (
                build_diagnostic(message, error.position, Path(self._stage.file), self._text.split("\n"), "error"),
            )
        check = Check(diagnostics=diagnostics, ended=True, failure=message)
        verdict = Verdict("wrong", "✗ it does not compile", message)
        return Judgment(self._task.name, False, verdict, check, runs=self._runs, failure="" if diagnostics else message)


def _shorten(text: str) -> str:
    """Return a text in one line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN_CHARACTERS else f"{line[:_MAX_SHOWN_CHARACTERS]}…"
