"""The command `run nbody`: verify forces, simulate and measure steps, save frames and the final state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from gpu import engines
from gpu.base.errors import InputError
from gpu.cli import report as cli_text
from gpu.cli.patterns import run as cli_run
from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.cli.patterns.kernel_check import KernelCheck, check_kernel
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL, Engine
from gpu.files import file_access, images
from gpu.messages.bodies import BodyFigures, Camera, compute_body_figures
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody.forces import Motion, motion_from_params
from gpu.patterns.nbody.multi_device import CONSERVED, TIME_STEP_NAMES
from gpu.patterns.nbody.physics import half_mass_radius
from gpu.patterns.nbody.simulation import BodySimulation, conserved_quantities, total_energy
from gpu.run.pattern_run import Outcome, run_pattern

_FRAME_SIZE = (1280, 720)
_CAMERA_RADII = 3.5
_PROGRESS_WIDTH = 40


def run(
    pattern: Pattern,
    variant_name: str,
    texts: Mapping[str, str],
    *,
    engine_name: str,
    executor: str,
    schedule: str,
    input_file: str | None,
    output_file: str | None,
    source_file: str | None,
    frames: str | None,
    seed: int,
    as_json: bool,
    cluster: ClusterRunOptions | None = None,
) -> bool:
    """Verify the first forces, simulate the steps and print a report; return whether the verdict is good.

    Parameters
    ----------
    pattern : Pattern
    variant_name : str
    texts : mapping
        Texts of the parameters given on the command line, by name.
    engine_name, executor, schedule : str
    input_file : str or None
        File of bodies; without one they are generated.
    output_file : str or None
        File for the final state of the bodies.
    source_file : str or None
        Kernel file to use instead of the pattern's.
    frames : str or None
        Folder for a picture of the start and one of each step; created if it does not exist.
    seed : int
        Seed of generated bodies.
    as_json : bool
    cluster : ClusterRunOptions or None
        Cluster to run on instead of an engine.
    """
    variant = pattern.variant(variant_name)
    if cluster is not None and frames is not None:
        raise InputError("--frames draws the bodies of one device: omit --engine dask.")
    if output_file:
        nbody_files.check_target(output_file)
    inputs, params, input_description = read_inputs(pattern, texts, input_file, seed)
    folder = None if frames is None else file_access.ensure_folder(frames)
    forces_alone = {**params, **pattern.params_for_role(Role.STEPS, 0)}
    kernel_check = check_kernel(pattern, variant, source_file, inputs, forces_alone, seed=seed)
    if kernel_check.aborted:
        return cli_run.report_refusal(pattern, variant, kernel_check, as_json=as_json)
    if cluster is not None:
        return _run_on_cluster(
            pattern,
            variant,
            inputs,
            params,
            input_description,
            kernel_check,
            output_file,
            cluster,
            seed=seed,
            as_json=as_json,
        )
    with closing(engines.create_engine(engine_name, executor, schedule)) as engine:
        outcome = run_pattern(
            engine, pattern, variant, inputs, forces_alone, lambda progress: None, sources=kernel_check.sources
        )
        steps = pattern.value(params, Role.STEPS)
        engine.sources = dict(kernel_check.sources)
        figures = _simulate(engine, variant.name, inputs, steps, motion_from_params(params), output_file, folder)
    verdict = kernel_check.verdict(outcome.report.verified, variant)
    counts = cli_run.count_work(outcome.report, pattern, variant, inputs, forces_alone, kernel_check.sources, seed)
    if as_json:
        data = {
            **cli_text.report_data(outcome.report, counts),
            **kernel_check.data(verdict),
            "simulation": asdict(figures),
        }
        print(cli_text.format_json(data))
    else:
        print(cli_text.format_report(outcome.report, counts, verdict, pattern, input_description, None, None))
        rows = [
            *_format_rows(figures, simulated=outcome.report.simulated),
            *(("saved", str(path)) for path in (output_file, frames) if path),
        ]
        print(cli_text.format_rows(rows))
        cli_run.print_findings(kernel_check, verdict)
    return not verdict.is_bad


def _run_on_cluster(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    input_description: str,
    kernel_check: KernelCheck,
    output_file: str | None,
    cluster: ClusterRunOptions,
    *,
    seed: int,
    as_json: bool,
) -> bool:
    """Compute the first forces and the steps in one run; the bodies stay on the devices until the end."""
    from gpu.cli.patterns.cluster import ClusterRunner
    from gpu.distributed.cluster.dask_cluster import open_cluster

    with open_cluster(cluster.settings) as workers:
        outcome, distributed = ClusterRunner(workers, cluster)(
            pattern, variant, inputs, params, kernel_check.sources, (CONSERVED,)
        )
    figures = _collect_figures(
        distributed, outcome, inputs, pattern.value(params, Role.STEPS), motion_from_params(params)
    )
    if output_file:
        nbody_files.write_bodies(output_file, outcome.outputs["bodies"], figures.time)
    verdict = kernel_check.verdict(outcome.report.verified, variant)
    forces_alone = {**params, **pattern.params_for_role(Role.STEPS, 0)}
    counts = cli_run.count_work(outcome.report, pattern, variant, inputs, forces_alone, kernel_check.sources, seed)
    if as_json:
        data = {**cli_text.report_data(outcome.report, counts), **distributed.data(), **kernel_check.data(verdict)}
        print(cli_text.format_json({**data, "simulation": asdict(figures)}))
    else:
        report_arguments = (outcome.report, counts, verdict, pattern, input_description, None, None)
        print(cli_text.format_report(*report_arguments, distributed=distributed))
        rows = [
            *_format_rows(figures, simulated=outcome.report.simulated),
            *([("saved", output_file)] if output_file else []),
        ]
        print(cli_text.format_rows(rows))
        cli_run.print_findings(kernel_check, verdict)
    return not verdict.is_bad


def _collect_figures(
    distributed: DistributedRun, outcome: Outcome, inputs: Inputs, steps: int, motion: Motion
) -> BodyFigures:
    """Return the figures of a run on several devices, with the kernel time of the slowest worker."""
    count, (start, end) = len(inputs["bodies"]), outcome.outputs[CONSERVED]
    return compute_body_figures(
        count,
        steps * motion.time_step,
        steps,
        recent_steps=steps,
        kernel_ms=distributed.phase_times(*TIME_STEP_NAMES).kernel,
        radius=half_mass_radius(inputs["bodies"]),
        executor=outcome.report.executor,
        conserved=conserved_quantities(end, total_energy(start)),
    )


def read_inputs(
    pattern: Pattern, texts: Mapping[str, str], input_file: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Read or generate the bodies; return them, all parameters and a description.

    Parameters
    ----------
    pattern : Pattern
        The pattern for simulations of bodies.
    texts : mapping of str to str
        Texts of the parameters given on the command line, by name.
    input_file : str or None
        The file with the bodies; None generates them.
    seed : int
        Random seed of generated bodies.

    Raises
    ------
    InputError
        The file cannot be read, or a parameter is invalid or has no effect.
    """
    params = pattern.check(texts)
    cli_run.refuse_idle_parameters(pattern, texts, params)
    inputs = pattern.prepare_inputs({"bodies": nbody_files.read_bodies(input_file)} if input_file else {}, params, seed)
    pattern.accept(inputs, params)
    origin = Path(input_file).name if input_file else f"{pattern.value(params, Role.SOURCE)}, seed {seed}"
    count = len(inputs["bodies"])
    return inputs, params, f"{origin}, {count} bod{'y' if count == 1 else 'ies'}"


def _simulate(
    engine: Engine,
    variant: str,
    inputs: Inputs,
    steps: int,
    motion: Motion,
    output_file: str | None,
    folder: Path | None,
) -> BodyFigures:
    """Simulate the steps from the start; only the steps are timed."""
    simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
    camera = Camera(distance=_CAMERA_RADII * simulation.radius)

    def save_frame() -> None:
        if folder is not None:
            picture = simulation.draw(camera, *_FRAME_SIZE)
            images.write_image(str(folder / f"frame-{simulation.steps:06}.png"), picture, None)

    simulation.measure_conserved(motion.softening)
    save_frame()
    kernel_ms = 0.0
    engine.take_times()
    executed = engine.executor_choice
    for step in simulation.advance(variant, steps, motion):
        _show_progress(f"step {step} of {steps}" if step < steps else "")
        if folder is not None:
            executed = engine.executor_choice
            kernel_ms += engine.take_times().kernel
            save_frame()
            engine.take_times()
    executed = engine.executor_choice if folder is None else executed
    kernel_ms += engine.take_times().kernel
    figures = simulation.figures(steps, kernel_ms, executed, simulation.measure_conserved(motion.softening))
    if output_file:
        nbody_files.write_bodies(output_file, simulation.download_bodies(), simulation.time)
    simulation.close()
    return figures


def _show_progress(progress: str) -> None:
    """Show progress on a terminal, on a line that the next output overwrites."""
    if sys.stderr.isatty():
        print(f"{progress:<{_PROGRESS_WIDTH}}\r", end="", file=sys.stderr, flush=True)


def _format_rows(figures: BodyFigures, *, simulated: bool) -> list[tuple[str, str]]:
    rows = []
    if figures.steps:
        rate = f"{figures.interactions_per_s / 1e6:.4g} Minteraction/s, {figures.gflops:.4g} GFLOP/s"
        clock = f"{SIMULATION_TIME_LABEL}," if simulated else "for"
        rows.append(("steps", f"{figures.steps}, to time {figures.time:.6g}"))
        rows.append(("kernels", f"{figures.kernel_ms:.4g} ms {clock} all steps: {rate}"))
    conservation = figures.conserved
    assert conservation is not None, "measured after the last step"
    energies = f"kinetic {conservation.kinetic:.6g}, potential {conservation.potential:.6g}"
    rows.append(("energy", f"{conservation.total:.6g}: {energies}"))
    rows.append(("drift", f"{conservation.drift:.3g} of the initial energy"))
    rows.append(("momentum", " ".join(f"{value:.3g}" for value in conservation.momentum)))
    angular_momentum = " ".join(f"{value:.6g}" for value in conservation.angular_momentum)
    rows.append(("rotation", f"{angular_momentum}  angular momentum"))
    return rows
