"""The command `run nbody`: verify forces, simulate and measure steps, save frames and the final state."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

from gpu import engines
from gpu.base.errors import InputError
from gpu.cli import report as cli_text
from gpu.cli.patterns import run as cli_run
from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.cli.patterns.kernel_check import check_kernel
from gpu.cli.patterns.run_options import RunOptions
from gpu.declaration.pattern import Inputs, Params, Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL, Engine
from gpu.files import file_access, images
from gpu.messages.bodies import BodyFigures, Camera, compute_body_figures
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody.forces import Motion, motion_from_params
from gpu.patterns.nbody.multi_device import CONSERVED, TIME_STEP_NAMES
from gpu.patterns.nbody.physics import half_mass_radius
from gpu.patterns.nbody.picture import BodyPicture
from gpu.patterns.nbody.simulation import BodySimulation, conserved_quantities, total_energy
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

_FRAME_SIZE = (1280, 720)
_CAMERA_RADII = 3.5
_PROGRESS_WIDTH = 40


def run(options: RunOptions) -> bool:
    """Verify the first forces, simulate the steps and print a report; return whether the verdict is good."""
    pattern, variant, output_file = options.pattern, options.variant, options.output_file
    if options.cluster is not None and options.frames is not None:
        raise InputError("--frames draws the bodies of one device: omit --engine dask.")
    if output_file:
        nbody_files.check_target(output_file)
    inputs, params, input_description = read_inputs(pattern, options.texts, options.input_file, options.seed)
    folder = None if options.frames is None else file_access.ensure_folder(options.frames)
    forces_alone = {**params, **pattern.params_for_role(Role.STEPS, 0)}
    workload = Workload(pattern, variant, inputs, forces_alone, seed=options.seed)
    kernel_check = check_kernel(workload, options.source_file)
    workload = replace(workload, sources=kernel_check.sources)
    if kernel_check.aborted:
        return cli_run.report_refusal(pattern, variant, kernel_check, as_json=options.as_json)
    distributed = None
    if options.cluster is not None:
        outcome, distributed = _run_on_cluster(options.cluster, replace(workload, params=params))
        figures = _collect_figures(
            distributed, outcome, inputs, pattern.value(params, Role.STEPS), motion_from_params(params)
        )
        if output_file:
            nbody_files.write_bodies(output_file, outcome.outputs["bodies"], figures.time)
    else:
        with closing(engines.create_engine(options.engine, options.executor, options.schedule)) as engine:
            outcome = run_pattern(engine, workload, lambda progress: None)
            steps = pattern.value(params, Role.STEPS)
            engine.sources = dict(workload.sources)
            figures = _simulate(engine, variant.name, inputs, steps, motion_from_params(params), output_file, folder)
    verdict = kernel_check.verdict(outcome.report.verified, variant)
    counts = cli_run.count_work(outcome.report, workload)
    if options.as_json:
        data = {
            **cli_text.report_data(outcome.report, counts),
            **(distributed.data() if distributed is not None else {}),
            **kernel_check.data(verdict),
            "simulation": asdict(figures),
        }
        print(cli_text.format_json(data))
    else:
        rows = [
            *_format_rows(figures, simulated=outcome.report.simulated),
            *(("saved", str(path)) for path in (output_file, options.frames) if path),
        ]
        print(cli_text.format_report(outcome.report, counts, verdict, pattern, input_description, rows, distributed))
        cli_run.print_findings(kernel_check, verdict)
    return not verdict.is_bad


def _run_on_cluster(cluster: ClusterRunOptions, workload: Workload) -> tuple[Outcome, DistributedRun]:
    """Compute the first forces and the steps in one run; the bodies stay on the devices until the end."""
    from gpu.cli.patterns.cluster import ClusterRunner
    from gpu.distributed.cluster.dask_cluster import open_cluster

    with open_cluster(cluster.settings) as workers:
        return ClusterRunner(workers, cluster)(workload, (CONSERVED,))


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
            picture = simulation.draw(BodyPicture(camera, *_FRAME_SIZE))
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
