"""The command `run nbody`: forces verified, steps done and measured, frames and the last state in files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from gpu import engines
from gpu.cli import report as cli_text
from gpu.cli import run as cli_run
from gpu.cli.cluster_options import OnCluster
from gpu.cli.judged import Judged, judged
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.declaration.roles import Role
from gpu.engines.base import TO_SIMULATE, Engine
from gpu.errors import InputError
from gpu.files import images, opening
from gpu.messages.bodies import BodyFigures, Camera, figures_of
from gpu.messages.distributed import DistributedRun
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody.divided import CONSERVED, MOVING
from gpu.patterns.nbody.forces import Motion, motion_of
from gpu.patterns.nbody.physics import half_mass_radius
from gpu.patterns.nbody.simulation import BodySimulation, conserved, energy
from gpu.run.execute import Outcome, run_pattern

_FRAME = (1280, 720)
_CAMERA_RADII = 3.5
_PROGRESS_WIDTH = 40


def run(
    pattern: Pattern,
    variant_name: str,
    given: Mapping[str, str],
    *,
    engine_name: str,
    executor: str,
    schedule: str,
    source: str | None,
    target: str | None,
    kernel: str | None,
    frames: str | None,
    seed: int,
    as_json: bool,
    cluster: OnCluster | None = None,
) -> bool:
    """Verify the first forces, do the steps, print what came of it; return whether the forces are right.

    Parameters
    ----------
    pattern : Pattern
    variant_name : str
    given : mapping
        Texts of parameters.
    engine_name, executor, schedule : str
    source : str or None
        A file of bodies; without one they are made.
    target : str or None
        A file for the bodies as they are in the end.
    kernel : str or None
        A file whose text stands in the place of the pattern's kernel file.
    frames : str or None
        A folder for a picture after each step, and one before the first; made where it does not exist.
    seed : int
        What bodies that are made grow from.
    as_json : bool
    cluster : OnCluster or None
        The cluster that is asked for, which then takes an engine's place.
    """
    variant = pattern.variant(variant_name)
    if cluster is not None and frames is not None:
        raise InputError("--frames draws what one device has: leave out --engine dask.")
    if target:
        nbody_files.check_target(target)
    inputs, params, about = read_inputs(pattern, given, source, seed)
    folder = None if frames is None else opening.folder(frames)
    forces_alone = {**params, **pattern.with_value(Role.STEPS, 0)}
    edited = judged(pattern, variant, kernel, inputs, forces_alone, seed=seed)
    if edited.ended:
        return cli_run.refused(pattern, variant, edited, as_json=as_json)
    if cluster is not None:
        return _run_on_cluster(
            pattern, variant, inputs, params, about, edited, target, cluster, seed=seed, as_json=as_json
        )
    with closing(engines.create(engine_name, executor, schedule)) as engine:
        outcome = run_pattern(
            engine, pattern, variant, inputs, forces_alone, lambda progress: None, sources=edited.sources
        )
        steps = pattern.value(params, Role.STEPS)
        engine.sources = dict(edited.sources)
        figures = _simulate(engine, variant.name, inputs, steps, motion_of(params), target, folder)
    verdict = edited.verdict(outcome.report.verified, variant)
    counts = cli_run.counted(outcome.report, pattern, variant, inputs, forces_alone, edited.sources, seed)
    if as_json:
        data = {**cli_text.report_data(outcome.report, counts), **edited.data(verdict), "simulation": asdict(figures)}
        print(cli_text.as_json(data))
    else:
        print(cli_text.report_as_text(outcome.report, counts, verdict, pattern, about, None, None))
        rows = [
            *_rows(figures, simulated=outcome.report.simulated),
            *(("saved", str(path)) for path in (target, frames) if path),
        ]
        print(cli_text.rows_as_text(rows))
        cli_run.print_findings(edited, verdict)
    return not verdict.bad


def _run_on_cluster(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    about: str,
    edited: Judged,
    target: str | None,
    cluster: OnCluster,
    *,
    seed: int,
    as_json: bool,
) -> bool:
    """Do first forces and steps in one run, whose bodies stay on the devices until the end."""
    from gpu.cli.cluster import Runner
    from gpu.distributed.cluster import opened

    with opened(cluster.asked) as workers:
        outcome, done = Runner(workers, cluster)(pattern, variant, inputs, params, edited.sources, (CONSERVED,))
    figures = _figures_of(done, outcome, inputs, pattern.value(params, Role.STEPS), motion_of(params))
    if target:
        nbody_files.write_bodies(target, outcome.outputs["bodies"], figures.time)
    verdict = edited.verdict(outcome.report.verified, variant)
    forces_alone = {**params, **pattern.with_value(Role.STEPS, 0)}
    counts = cli_run.counted(outcome.report, pattern, variant, inputs, forces_alone, edited.sources, seed)
    if as_json:
        data = {**cli_text.report_data(outcome.report, counts), **done.data(), **edited.data(verdict)}
        print(cli_text.as_json({**data, "simulation": asdict(figures)}))
    else:
        told = (outcome.report, counts, verdict, pattern, about, None, None)
        print(cli_text.report_as_text(*told, distributed=done))
        rows = [*_rows(figures, simulated=outcome.report.simulated), *([("saved", target)] if target else [])]
        print(cli_text.rows_as_text(rows))
        cli_run.print_findings(edited, verdict)
    return not verdict.bad


def _figures_of(done: DistributedRun, outcome: Outcome, inputs: Inputs, steps: int, motion: Motion) -> BodyFigures:
    """Return the figures of a run over several devices; its kernels' time is that of the worker that took longest."""
    count, (begun, ended) = len(inputs["bodies"]), outcome.outputs[CONSERVED]
    return figures_of(
        count,
        steps * motion.time_step,
        steps,
        lately=steps,
        kernel_ms=done.times_of(*MOVING).kernel,
        radius=half_mass_radius(inputs["bodies"]),
        executor=outcome.report.executor,
        conserved=conserved(ended, energy(begun)),
    )


def read_inputs(
    pattern: Pattern, given: Mapping[str, str], source: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Return the bodies, all parameters, and what people say of them."""
    params = pattern.check(given)
    cli_run.refuse_idle_parameters(pattern, given, params)
    inputs = pattern.inputs({"bodies": nbody_files.read_bodies(source)} if source else {}, params, seed)
    pattern.accept(inputs, params)
    origin = Path(source).name if source else f"{pattern.value(params, Role.SOURCE)}, seed {seed}"
    count = len(inputs["bodies"])
    return inputs, params, f"{origin}, {count} bod{'y' if count == 1 else 'ies'}"


def _simulate(
    engine: Engine,
    variant: str,
    inputs: Inputs,
    steps: int,
    motion: Motion,
    target: str | None,
    folder: Path | None,
) -> BodyFigures:
    """Do the steps from the beginning; only they are timed."""
    simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
    camera = Camera(distance=_CAMERA_RADII * simulation.radius)

    def save_frame() -> None:
        if folder is not None:
            picture = simulation.draw(camera, *_FRAME)
            images.write_image(str(folder / f"frame-{simulation.steps:06}.png"), picture, None)

    simulation.conserved(motion.softening)
    save_frame()
    kernel_ms = 0.0
    engine.take_times()
    executed = engine.executed
    for done in simulation.advance(variant, steps, motion):
        _tell(f"step {done} of {steps}" if done < steps else "")
        if folder is not None:
            executed = engine.executed
            kernel_ms += engine.take_times().kernel
            save_frame()
            engine.take_times()
    executed = engine.executed if folder is None else executed
    kernel_ms += engine.take_times().kernel
    figures = simulation.figures(steps, kernel_ms, executed, simulation.conserved(motion.softening))
    if target:
        nbody_files.write_bodies(target, simulation.bodies(), simulation.time)
    simulation.close()
    return figures


def _tell(progress: str) -> None:
    """Show on a terminal how far it is, in a line that whatever comes next takes the place of."""
    if sys.stderr.isatty():
        print(f"{progress:<{_PROGRESS_WIDTH}}\r", end="", file=sys.stderr, flush=True)


def _rows(figures: BodyFigures, *, simulated: bool) -> list[tuple[str, str]]:
    rows = []
    if figures.steps:
        rate = f"{figures.interactions_per_s / 1e6:.4g} Minteraction/s, {figures.gflops:.4g} GFLOP/s"
        taken = f"{TO_SIMULATE}," if simulated else "for"
        rows.append(("steps", f"{figures.steps}, to time {figures.time:.6g}"))
        rows.append(("kernels", f"{figures.kernel_ms:.4g} ms {taken} all steps: {rate}"))
    kept = figures.conserved
    assert kept is not None, "it was to be measured"
    rows.append(("energy", f"{kept.total:.6g}: kinetic {kept.kinetic:.6g}, potential {kept.potential:.6g}"))
    rows.append(("drift", f"{kept.drift:.3g} of the energy at the beginning"))
    rows.append(("momentum", " ".join(f"{value:.3g}" for value in kept.momentum)))
    rows.append(("turning", " ".join(f"{value:.6g}" for value in kept.angular_momentum) + "  angular momentum"))
    return rows
