"""The tour: drive the real window through every pattern and variant, and save pictures and a table of results."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.files.file_access import ensure_folder, write_file
from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import Report
from gui.driving.window_session import are_flows_complete, open_window, wait_until
from gui.qt.exported_files import write_image

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

TIMEOUT_S = 300
_SMALL_SIZE = 64
"""Number of elements, or columns, that a single thread sorts or multiplies in a short time."""
_PICTURE_POSITION = 0.6
"""The share of a recording after which a picture is taken."""

COLUMNS = (
    "pattern", "variant", "engine", "executor", "device", "upload_ms", "kernel_ms", "download_ms", "throughput", "unit",
    "max_abs_error", "max_rel_error", "verdict", "picture",
)  # fmt: skip


@dataclass(frozen=True)
class TourStop:
    """One stop of the tour: a variant, its picture, and its report or problem."""

    pattern: str
    variant: str
    cautionary: bool
    picture: str
    report: Report | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The verdict on the result."""
        if self.report is None:
            return f"failed: {self.problem}"
        if self.report.verified:
            return "verified"
        return "wrong by design" if self.cautionary else "WRONG"

    @property
    def is_expected(self) -> bool:
        """Whether the result is as expected."""
        return self.report is not None and (bool(self.report.verified) or self.cautionary)

    def format_cells(self) -> tuple[str, ...]:
        """Return the stop's row of the results table, in the order of `COLUMNS`."""
        if self.report is None:
            return (self.pattern, self.variant, *([""] * 10), self.verdict, self.picture)
        r, deviation = self.report, self.report.deviation
        return (
            self.pattern, self.variant, r.engine, r.executor, r.device,
            *(f"{value:.4g}" for value in (r.time_ms.upload, r.time_ms.kernel, r.time_ms.download)),
            f"{r.throughput.value:.4g}", r.throughput.unit,
            "" if deviation is None else f"{deviation.max_abs:.3g}",
            "" if deviation is None else f"{deviation.max_rel:.3g}",
            self.verdict, self.picture,
        )  # fmt: skip


def run_tour(folder: str | Path, engine: str = "auto", *, timeout_s: float = TIMEOUT_S) -> int:
    """Drive the window through every variant, and step each pattern; save pictures, results.csv and results.md.

    Parameters
    ----------
    folder : str or Path
        Where the files are written; created if it does not exist.
    engine : str
        The window's engine.
    timeout_s : float
        Maximum seconds per stop.

    Returns
    -------
    int
        0 if every result was as expected (correct, or wrong for a cautionary variant), else 1.
    """
    folder = ensure_folder(folder)
    with open_window(engine) as window:
        stops = _visit_variants(window, folder, timeout_s)
    write_results(folder, stops)
    for stop in stops:
        print(f"{stop.pattern} {stop.variant}: {stop.verdict}")
    return 0 if stops and all(stop.is_expected for stop in stops) else 1


def _visit_variants(window: MainWindow, folder: Path, timeout_s: float) -> list[TourStop]:
    failures: list[Failure] = []
    window.bench.run_failed.connect(failures.append)
    window.bench.failed.connect(failures.append)
    window.jobs.engine_failed.connect(failures.append)
    stops = []
    ended: dict[str, list[Failure]] = {}
    for name, pattern in window.bench.patterns.items():
        window.choose_pattern(name)
        for number, variant in enumerate(pattern.variants, 1):
            if window.jobs.device is not None and variant.unsupported_reason(window.jobs.device):
                continue
            failures.clear()
            size = pattern.size.name if variant.is_single_thread and pattern.size is not None else ""
            before = window.page.form.values.get(size)
            if size:
                window.page.form.change_values(**{size: _SMALL_SIZE})
            window.choose_variant(variant.name)
            in_time = _wait_until_idle(window, failures, timeout_s)
            picture = f"{name}-{number}-{variant.name}.png"
            _save_picture(window, folder / picture)
            outcome = window.bench.outcomes.get(name)
            fresh = outcome is not None and outcome.variant == variant.name and not failures
            problem = failures[0].message if failures else "" if in_time else "it timed out"
            report = outcome.report if outcome is not None and fresh and in_time else None
            stops.append(TourStop(name, variant.name, bool(variant.deliberate_error), picture, report, problem))
            if not in_time:
                window.running.stop()
            if size:
                window.page.form.change_values(**{size: before})
        window.choose_variant(pattern.default_variant)
        _wait_until_idle(window, failures, timeout_s)
        ended[name] = list(failures)
    # All patterns in one theme, then in the other, because a change of theme restyles every page.
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        for name in window.bench.patterns:
            failures[:] = ended[name]
            window.choose_pattern(name)
            _wait_until_idle(window, failures, timeout_s)
            _save_picture(window, folder / f"{name}-{theme}.png")
            _save_step_picture(window, folder / f"{name}-step-{theme}.png", failures, timeout_s)
    return stops


def _save_step_picture(window: MainWindow, path: Path, failures: list[Failure], timeout_s: float) -> None:
    """Save a picture of the Step tab in the middle of its recording; after a failure do not wait for one."""
    tabs, step = window.page.tabs, window.page.step
    tabs.setCurrentIndex(window.page.stack.indexOf(step))
    wait_until(lambda: bool(failures) or step.is_up_to_date, timeout_s)
    step.player.go_to(round(_PICTURE_POSITION * step.player.end))
    wait_until(lambda: bool(failures) or (step.is_up_to_date and are_flows_complete(step)), timeout_s)
    _save_picture(window, path)
    tabs.setCurrentIndex(0)


def _wait_until_idle(window: MainWindow, failures: list[Failure], timeout_s: float) -> bool:
    """Wait until the run, its check and its counts are complete; return False on a timeout."""
    return wait_until(lambda: bool(failures) or window.is_idle, timeout_s)


def _save_picture(window: MainWindow, path: Path) -> None:
    write_image(path, window.grab())


def write_results(folder: Path, stops: list[TourStop]) -> None:
    """Write the results as results.csv and as results.md."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(COLUMNS)
    writer.writerows(stop.format_cells() for stop in stops)
    write_file(folder / "results.csv", table.getvalue())
    columns = [name for name in COLUMNS if name != "picture"]
    simulated = any(stop.report is not None and stop.report.simulated for stop in stops)
    origin = (
        f"Times and throughput are {SIMULATION_TIME_LABEL}, not a GPU's"
        if simulated
        else "Times and throughput are measured"
    )
    lines = ["# Results of the tour", "", f"{origin}; errors are relative to a CPU reference result.", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in stop.format_cells()[:-1])} |" for stop in stops]
    write_file(folder / "results.md", "\n".join(lines) + "\n")
