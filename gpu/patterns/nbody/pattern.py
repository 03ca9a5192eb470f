"""N-body simulation: gravity between all pairs of bodies, and their motion over time."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from gpu.declaration.distributed_program import DistributedProgram
from gpu.declaration.gpu_sizes import elements_rule
from gpu.declaration.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Integer,
    Outputs,
    Params,
    Pattern,
    Preset,
    Progress,
    Real,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import BodiesPresentation
from gpu.declaration.roles import Role
from gpu.declaration.rounding import UNIT
from gpu.engines.base import Engine
from gpu.messages.bodies import FLOPS_PER_INTERACTION
from gpu.patterns.nbody.benchmark import BENCHMARK
from gpu.patterns.nbody.files import MAX_BODIES, accept_bodies
from gpu.patterns.nbody.forces import AUTO, FILE, PLANS, motion_from_params
from gpu.patterns.nbody.multi_device import CHUNKS_FILE, CONSERVED, plan
from gpu.patterns.nbody.physics import compute_accelerations, verified_bodies
from gpu.patterns.nbody.presets import GENERATORS, VARIABLE_SIZE_PRESETS, assign_origins, generate
from gpu.patterns.nbody.simulation import BodySimulation

_LEAPFROG = ("leapfrog_kick_drift", "leapfrog_kick")
_STEP_BODIES = 16


def _host_program(variant: str) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        motion, steps = motion_from_params(params), params["steps"]
        simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
        try:
            yield Progress(0.0, "uploaded")
            accelerations = simulation.accelerations(variant, motion.softening, motion.block)
            for step in simulation.advance(variant, steps, motion):
                yield Progress(step / steps, f"step {step} of {steps}")
            verified = accelerations[verified_bodies(simulation.count)]
            return {
                "accelerations": verified,
                "all accelerations": accelerations,
                "bodies": simulation.download_bodies(),
            }
        finally:
            simulation.close()

    return run


def _reference(inputs: Inputs, params: Params) -> Array:
    bodies = inputs["bodies"]
    return compute_accelerations(bodies, verified_bodies(len(bodies)), params["softening"])[0]


def _tolerance(inputs: Inputs, params: Params) -> float:
    """Bound the rounding error of float32 sums of n terms, and of each term.

    A term goes through about 30 roundings, including a reciprocal root with an error of up to 2 units. The roundings of
    a sum are up and down with equal probability: their total exceeds 8 sqrt(n) with a probability of 2 exp(-8 * 8 / 2),
    or 1e-14 (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019, th. 2.4). That does not
    hold for terms that are very small relative to their sum, such as a galaxy's many light bodies; they have a separate
    bound.
    """
    bodies = inputs["bodies"]
    _, magnitudes, lost = compute_accelerations(bodies, verified_bodies(len(bodies)), params["softening"])
    return float(((32 + 8 * len(bodies) ** 0.5) * UNIT * magnitudes + lost).max())


def _cost(inputs: Inputs, params: Params) -> Cost:
    n = len(inputs["bodies"])
    passes = params["steps"] + 1
    return Cost(bytes_read=16 * n * passes, bytes_written=16 * n * passes, flops=FLOPS_PER_INTERACTION * n**2 * passes)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span: bodies in parallel, interactions in sequence, with 19 operations in 9 steps of at most 6.

    The usual count is 20 operations, with two for the reciprocal root. The linear cost of time steps is left out.
    """
    passes = params["steps"] + 1
    return Textbook(operations=19 * n**2 * passes, steps=9 * n * passes, peak=6 * n)


def _work(inputs: Inputs, params: Params) -> Work:
    return Work(len(inputs["bodies"]) ** 2 * (params["steps"] + 1), "interaction")


def make_input(params: Params, seed: int) -> Inputs:
    """Generate the bodies of a preset, and their origins for coloring."""
    bodies = generate(params["preset"], params["bodies"], seed)
    return {"bodies": bodies, "origins": assign_origins(params["preset"], bodies)}


def _accept(inputs: Inputs, params: Params) -> None:
    accept_bodies(inputs["bodies"], "The input")


def _select_bodies(inputs: Inputs) -> Inputs:
    """Select a few evenly spread bodies, so that every step can be followed."""
    bodies = inputs["bodies"]
    chosen = np.arange(min(len(bodies), _STEP_BODIES)) * len(bodies) // min(len(bodies), _STEP_BODIES)
    return {name: np.ascontiguousarray(values[chosen]) for name, values in inputs.items()}


PATTERN = Pattern(
    name="nbody",
    order=6,
    title="N-body",
    summary="Gravity between all pairs of bodies.",
    kernel_file=FILE,
    helpers={
        FILE: ("nbody_potential", "nbody_moments"),
        "splat.cu": ("splat_bodies", "splat_develop"),
        CHUNKS_FILE: ("nbody_gather",),
    },
    distributed=DistributedProgram(
        local="Each device computes the accelerations of its own bodies, and moves them.",
        exchange="In each time step every device gathers the positions of all bodies.",
        fix_up="",
        plan=plan,
        divided_inputs=("bodies", "origins"),
        on_demand=(CONSERVED,),
    ),
    presentation=BodiesPresentation(forces_output="all accelerations"),
    parameters=(
        Choice(
            name="preset",
            label="Example",
            role=Role.SOURCE,
            help="The initial bodies.",
            options=tuple(GENERATORS),
            titles=("Two galaxies", "Plummer sphere", "Uniform cube", "Cold collapse", "Solar system", "Figure eight"),
            default="galaxies",
        ),
        Integer(
            name="bodies",
            label="Bodies",
            role=Role.SIZE,
            help="Number of bodies to generate.",
            unit="bodies",
            default=4096,
            minimum=1,
            maximum=MAX_BODIES,
            on_gpu=elements_rule(2**8),
            only_if=("preset", VARIABLE_SIZE_PRESETS),
        ),
        Integer(
            name="steps",
            label="Steps",
            role=Role.STEPS,
            help="Number of time steps of a run; 0 computes only the accelerations.",
            default=0,
            minimum=0,
            maximum=1_000_000,
        ),
        Real(
            name="dt",
            label="Time step",
            role=Role.TIME_STEP,
            help="Simulated time per step, in units where G is 1.",
            default=0.005,
            minimum=1e-6,
            maximum=10.0,
        ),
        Real(
            name="softening",
            label="Softening",
            role=Role.SOFTENING,
            help="Length below which gravity is reduced, so that close encounters stay smooth.",
            default=0.03,
            minimum=0.0,
            maximum=10.0,
        ),
        Choice(
            name="block",
            label="Block",
            role=Role.BLOCK,
            help="Threads per block, for kernels with a free block size; auto selects the best.",
            unit="threads",
            options=(AUTO, *(str(2**power) for power in range(3, 11))),
            default=AUTO,
        ),
    ),
    variants=(
        Variant(
            "naive",
            "Naive",
            run=_host_program("naive"),
            idea="One thread per body sums the accelerations by all bodies, read from global memory.",
            limit="A global load for each interaction.",
            kernels=("nbody_naive", *_LEAPFROG),
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_host_program("tiled"),
            idea="Shared-memory tiling: a block loads each tile of bodies once for all its threads.",
            limit="A shared load for each interaction.",
            kernels=("nbody_tiled", *_LEAPFROG),
        ),
        Variant(
            "registers",
            "Several bodies per thread",
            run=_host_program("registers"),
            idea="Register tiling: each body read from shared memory acts on several bodies in a thread's registers.",
            limit="A small number of bodies has too few threads to fill the chip.",
            kernels=("nbody_registers", *_LEAPFROG),
        ),
        Variant(
            "split",
            "Several threads per body",
            run=_host_program("split"),
            idea="For a small number of bodies, several threads share one: each processes a part of every tile.",
            limit="Thirteen instructions for each interaction.",
            kernels=("nbody_split", *_LEAPFROG),
        ),
        Variant(
            "pairs",
            "Each pair once",
            run=_host_program("pairs"),
            idea="Action equals reaction: each pair is computed once, and partial sums rotate among the lanes.",
            limit="Seventeen instructions for two interactions; the order of sums varies, and with it their last bits.",
            kernels=("nbody_pairs", *_LEAPFROG),
            threads=lambda params: PLANS["pairs"](params["bodies"], None, 1).block,
        ),
    ),
    benchmark=BENCHMARK,
    default_variant="tiled",
    result="accelerations",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    present=lambda inputs, params, outputs: {},
    accept=_accept,
    make_input=make_input,
    textbook=_textbook,
    step_params={"preset": "cube", "bodies": _STEP_BODIES, "steps": 0, "block": "8"},
    step_input=_select_bodies,
    presets=(
        Preset(
            "Two galaxies",
            "Two disc galaxies collide; tides pull their discs into tails and bridges before they merge.",
            {"preset": "galaxies", "bodies": 4096},
        ),
        Preset(
            "Plummer sphere",
            "A star cluster in equilibrium: bodies move, but their distribution does not change.",
            {"preset": "plummer", "bodies": 4096},
        ),
        Preset(
            "Cold collapse",
            "A sphere of bodies almost at rest collapses, rebounds, and settles.",
            {"preset": "collapse", "bodies": 4096},
        ),
        Preset(
            "Uniform cube",
            "A cube of bodies at rest: its corners reach the center last.",
            {"preset": "cube", "bodies": 4096},
        ),
        Preset(
            "Solar system",
            "The sun and eight planets, with their masses and orbits: astronomical units, and a year is 6.283.",
            {"preset": "solar", "dt": 0.005, "softening": 0.0},
        ),
        Preset(
            "Figure eight",
            "Three equal bodies follow each other along one curve, with a period of 6.326.",
            {"preset": "figure-eight", "dt": 0.005, "softening": 0.0},
        ),
    ),
)
