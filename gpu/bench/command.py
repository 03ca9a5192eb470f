"""`python main.py bench`: measure, print as it comes, and write the page."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu.bench.record import FEWEST
from gpu.errors import InputError
from gpu.files import opening

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"

_TITLES = {"gpu": "GPU", "simulator": "Simulator"}
WINDOW = "window"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "device", nargs="?", choices=[*sorted(_TITLES), WINDOW],
        help="what to measure: the kernels, on both where there is a GPU, or how long the window takes for a move",
    )  # fmt: skip
    parser.add_argument("--document", type=Path, default=PAGE, help="the page to write, docs/benchmarks.md")
    parser.add_argument("--repetitions", type=int, default=21, help="how often each is timed (21)")
    parser.add_argument("--seed", type=int, help="of the random inputs; another one each time")


def run(options: argparse.Namespace, measure_window: Callable[[Path, int], int]) -> int:
    """Measure and write; return 1 where a variant is wrong.

    Parameters
    ----------
    options : argparse.Namespace
    measure_window : callable
        Measures the window and writes that to a page, given how often each move is made; returns the exit code.
    """
    if options.repetitions < 1:
        raise InputError("--repetitions is a whole number from 1.")
    opening.check_target(options.document)
    if options.device == WINDOW:
        return measure_window(options.document, options.repetitions)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    devices = [options.device] if options.device else _devices_here()
    return max(_measure(device, seed, options) for device in devices)


def _devices_here() -> list[str]:
    from gpu.devices.survey import survey

    has_gpu = any(found.engine == "cuda" and found.usable for found in survey())
    return ["gpu", "simulator"] if has_gpu else ["simulator"]


def _measure(device: str, seed: int, options: argparse.Namespace) -> int:
    from gpu.bench import document, on_gpu, on_simulator  # only this command needs them, and every one reads this file
    from gpu.bench.measurement import table

    measuring: Any = on_gpu if device == "gpu" else on_simulator
    rows = []
    for row in measuring.run(seed, options.repetitions):
        rows.append(row)
        figures = f"{row.median_ms:10.3f} ms {row.rate:10.4g} {row.unit}" if row.rate is not None else " " * 26
        print(f"{row.work:<48} {row.who:<44} {figures}  {row.remark}", flush=True)
    fewer = f" ({FEWEST} where they take long)" if options.repetitions > FEWEST else ""
    remarks = f"Median of {options.repetitions}{fewer}, seed {seed}."
    document.write_section(options.document, _TITLES[device], measuring.device_name(), f"{remarks}\n\n{table(rows)}")
    return 1 if any("WRONG" in row.remark for row in rows) else 0
