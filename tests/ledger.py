"""Ledger of a whole test run: every collected case ran, or a marker explains why not.

`make test` runs pytest several times with `--ledger FOLDER`; each run writes one file. Then `python -m tests.ledger
FOLDER` compares what was collected with what was executed, lists the skips by reason, and fails on a difference.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

EXPLAINING = ("sweep",)
"""Markers of cases that belong to another tier."""


class LedgerPlugin:
    """Writes the collected and the executed cases of one pytest run.

    Parameters
    ----------
    folder : pathlib.Path
        Receives `collected-*.json`, from every process that collects, and `executed-*.json`, from the one that reports.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder, self._worker = folder, worker
        self._executed: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Write the cases before any is deselected. All workers collect the same; the first one writes."""
        if self._worker in ("", "gw0"):
            cases = {item.nodeid: sorted(mark.name for mark in item.iter_markers()) for item in items}
            self._write("collected", cases)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._worker or report.when == "teardown":
            return
        if report.skipped:
            self._executed[report.nodeid] = _skip_reason(report)
        elif report.when == "call" or report.failed:
            self._executed[report.nodeid] = ""

    def pytest_sessionfinish(self) -> None:
        if not self._worker:
            self._write("executed", self._executed)

    def _write(self, kind: str, content: object) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        number = len(list(self._folder.glob(f"{kind}-*")))
        (self._folder / f"{kind}-{number}.json").write_text(json.dumps(content), "utf-8")


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


@dataclass
class Ledger:
    """All runs of one `make test`.

    Attributes
    ----------
    markers : dict of str to list of str
        The markers of each collected case, by its node id.
    skipped : dict of str to str
        The reason for each case that was skipped wherever it was tried.
    executed : set of str
    """

    markers: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    executed: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        """Return the ledger that several runs of pytest wrote to a folder."""
        ledger = cls()
        for path in sorted(folder.glob("collected-*.json")):
            ledger.markers |= json.loads(path.read_text("utf-8"))
        for path in sorted(folder.glob("executed-*.json")):
            for case, reason in json.loads(path.read_text("utf-8")).items():
                if reason:
                    ledger.skipped[case] = reason
                else:
                    ledger.executed.add(case)
        for case in ledger.executed:
            ledger.skipped.pop(case, None)
        return ledger

    @property
    def unexplained(self) -> list[str]:
        """Cases that were collected, did not run, and have neither a reason nor a marker of another tier."""
        return sorted(
            case
            for case, markers in self.markers.items()
            if case not in self.executed and case not in self.skipped and not set(markers) & set(EXPLAINING)
        )

    @property
    def untested_functions(self) -> list[str]:
        """Test functions without any executed or skipped case: all of their cases are in another tier."""
        seen = set(map(_function_name, self.executed | set(self.skipped)))
        return sorted(set(map(_function_name, self.markers)) - seen)

    def summary(self) -> str:
        """Return the counts, and the skips by reason."""
        functions = set(map(_function_name, self.markers))
        total = f"{len(self.executed):,} of {len(self.markers):,} cases ran, of {len(functions):,} test functions"
        in_sweep = sum(bool(set(markers) & set(EXPLAINING)) for markers in self.markers.values())
        lines = [f"{total}; {len(self.skipped):,} skipped, {in_sweep:,} left to make sweep"]
        lines += [f"  {count:5,} {reason}" for reason, count in Counter(self.skipped.values()).most_common()]
        return "\n".join(lines)


def _function_name(case: str) -> str:
    return case.partition("[")[0]


def _format_cases(title: str, cases: Iterable[str]) -> list[str]:
    lines = [f"  {case}" for case in cases]
    return [f"{title}:", *lines[:20], *(["  ..."] if len(lines) > 20 else [])] if lines else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the summary of a folder; return 1 where a case neither ran nor has an explanation."""
    (folder,) = sys.argv[1:] if arguments is None else arguments
    ledger = Ledger.read(Path(folder))
    print(ledger.summary())
    problems = _format_cases("collected, but not run and not explained by a marker", ledger.unexplained)
    problems += _format_cases("test functions of which no case is in make test", ledger.untested_functions)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems or not ledger.executed else 0


if __name__ == "__main__":
    sys.exit(main())
