"""The command `atomics`: counted and measured cost of atomics, textbook times, and updates that a race loses."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gpu import engines
from gpu.base.errors import InputError
from gpu.declaration.pattern import Inputs, Pattern
from gpu.declaration.presentation import ATOMICS
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.runs.atomics import (
    VARIANTS,
    AtomicsStudy,
    Interleaving,
    Latencies,
    ThreadStep,
    compute_latency_chain,
    compute_textbook_time,
    describe_latency_chain,
)
from gpu.run.workload import Workload


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    default = Latencies()
    parser.add_argument("--text", metavar="TEXT", help="count the letters of a text instead of an image's levels")
    parser.add_argument("--input", metavar="FILE", help="an image, or a .txt file (default: a photograph)")
    parser.add_argument("--bins", metavar="N", help="bins of the image's levels (default: 256)")
    parser.add_argument(
        "--engine",
        choices=engines.NAMES,
        default="auto",
        help="engine of the measurement; auto uses a GPU if one is usable, else the simulator (default: auto)",
    )
    parser.add_argument(
        "--executor",
        choices=engines.EXECUTORS,
        default="auto",
        help="the simulator's executor: compiled (to machine code) or lockstep; auto is compiled (default: auto)",
    )
    parser.add_argument(
        "--clock",
        metavar="GHZ",
        default=default.clock_ghz,
        help="clock of the textbook example (default: %(default)s)",
    )
    parser.add_argument(
        "--global-cycles",
        metavar="N",
        default=default.global_cycles,
        help="the example's one-way latency of global memory (default: %(default)s)",
    )
    parser.add_argument(
        "--shared-cycles",
        metavar="N",
        default=default.shared_cycles,
        help="the example's one-way latency of shared memory (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> None:
    """Count and measure the atomics, compute their textbook times, and print the results.

    Raises
    ------
    InputError
        The input cannot be read, or an option is not a positive number.
    """
    from gpu.patterns import pattern_with_lesson
    from gpu.run.atomics import study_atomics
    from gpu.run.pattern_run import run_pattern

    pattern = pattern_with_lesson(ATOMICS)
    latencies = Latencies(*(_parse_positive(options, name) for name in ("clock", "global_cycles", "shared_cycles")))
    inputs, texts = _read_input(pattern, options)
    result = study_atomics(pattern, inputs, texts, lambda progress: None)
    with closing(engines.create_engine(options.engine, options.executor)) as engine:
        times = []
        for variant in map(pattern.variant, VARIANTS):
            for _ in range(2):  # the first run is a warm-up
                outcome = run_pattern(
                    engine, Workload(pattern, variant, inputs, texts), lambda progress: None, with_reference=False
                )
            times.append(outcome.report.time_ms.kernel)
        measured_on = f"{engine.device.name} ({engine.device.executor})"
        simulated = engine.device.engine == "simulator"
    if options.json:
        data = {
            **asdict(result),
            "latencies": asdict(latencies),
            "measured_on": measured_on,
            "simulated": simulated,
            "kernel_ms": times,
        }
        latency_chain = compute_latency_chain(result.textbook_counts, latencies)
        data["chain"] = asdict(latency_chain) if latency_chain is not None else None
        data["textbook"] = [asdict(compute_textbook_time(counts, latencies)) for counts in result.counts]
        print(json.dumps(data, indent=2))
    else:
        titles = [pattern.variant(name).title for name in VARIANTS]
        print(format_study(result, latencies, titles, times, measured_on, simulated=simulated))


def _read_input(pattern: Pattern, options: argparse.Namespace) -> tuple[Inputs, dict[str, str]]:
    from gpu.files import images
    from gpu.files import text as text_files

    text = options.text
    if text is None and options.input and Path(options.input).suffix.lower() == ".txt":
        text = text_files.read_text(options.input)
    if text is not None:
        return {}, pattern.params_for_file("text", text)
    image = images.read_image(options.input or images.DEFAULT_SAMPLE)
    inputs = {"image": image.pixels, "maxval": np.array(image.maxval, image.pixels.dtype)}
    return inputs, pattern.params_for_role(Role.BINS, options.bins) if options.bins else {}


def _parse_positive(options: argparse.Namespace, name: str) -> float:
    text = getattr(options, name)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise InputError(f"--{name.replace('_', '-')} must be a number above 0, not {text!r}.")
    return value


def format_study(
    study_result: AtomicsStudy,
    latencies: Latencies,
    titles: Sequence[str],
    times: Sequence[float],
    measured_on: str,
    *,
    simulated: bool,
) -> str:
    """Return the study as text tables.

    Parameters
    ----------
    titles : sequence of str
        The variants' titles.
    times : sequence of float
        Kernel times of the variants, in milliseconds.
    measured_on : str
        Device and executor of the times.
    simulated : bool
        Whether the times are the simulator's.
    """
    lines = _format_counts(study_result, titles)
    global_rate, shared_rate = (
        f"{cycles:g} cycles each way, so {latencies.per_second(cycles) / 1e6:.3g} million atomics/s on one address"
        for cycles in (latencies.global_cycles, latencies.shared_cycles)
    )
    lines += [
        "",
        f"Textbook example at {latencies.clock_ghz:g} GHz, atomics in DRAM; `model histogram` models a present GPU",
        f"  global memory: {global_rate}",
        f"  shared memory: {shared_rate}",
        *(
            f"  {figure:>20}  {what}"
            for figure, what in describe_latency_chain(study_result.textbook_counts, latencies)
        ),
        f"  {'variant':<26}{'textbook':>12}{'to simulate' if simulated else 'measured':>14}  longest queue",
    ]
    for title, counts, time in zip(titles, study_result.counts, times, strict=True):
        textbook = compute_textbook_time(counts, latencies)
        lines.append(f"  {title:<26}{textbook.time_ms:>9.4f} ms{time:>11.4f} ms  {textbook.bound_by or 'none'}")
    clock = f"{SIMULATION_TIME_LABEL}, not a GPU's time:" if simulated else "measured: kernel time of"
    lines += [f"  {clock} the whole input on {measured_on}", ""]
    for name, orders in (("read, add, write", study_result.racy), ("atomic", study_result.atomic)):
        correct = sum(order.is_correct for order in orders)
        lines.append(f"Two threads each add one to 0, {name}: correct in {correct} of {len(orders)} orders")
        lines += [f"  {_format_order(order)}" for order in orders]
    return "\n".join(lines)


def _format_counts(study_result: AtomicsStudy, titles: Sequence[str]) -> list[str]:
    """Return the table of counted atomic operations."""
    elements = study_result.counts[0].elements
    cut = f", of {study_result.elements}" if elements < study_result.elements else ""
    lines = [
        f"Atomics of {elements} elements{cut}: counted by the simulator",
        "  variant                   memory    atomics  addresses  hottest  warp queue  block queue",
    ]
    for title, counts in zip(titles, study_result.counts, strict=True):
        for memory, each in (("global", counts.global_counts), ("shared", counts.shared_counts)):
            if each.operations:
                lines.append(
                    f"  {title:<26}{memory:<8}{each.operations:>9}{each.addresses:>11}{each.hottest:>9}"
                    f"{each.warp_queue:>12}{each.block_queue:>13}"
                )
                title = ""
    return lines


def _format_order(order: Interleaving) -> str:
    steps = "   ".join(f"{_format_moment(moment):<10}" for moment in order.moments)
    return f"{steps} -> {order.result}{'' if order.is_correct else '  an update is lost'}"


def _format_moment(moment: ThreadStep) -> str:
    return f"{'AB'[moment.thread]} {moment.step} {moment.value}"
