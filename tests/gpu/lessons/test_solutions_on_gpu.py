"""Every task's reference solution on a real GPU, against NumPy: the grader runs them in the simulator alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.devices.probe import find_nvcc
from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.lessons.expressions import evaluate_integer, evaluate_number
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gpu.lessons.stage import Stage
from gpu.lessons.task_texts import reference_solution
from gpu.messages.judgments import GradingCase
from gpu.simulator.simulated_module import SimulatedModule

pytestmark = [pytest.mark.gpu, pytest.mark.hardware]

TASKS = [
    pytest.param(lesson, step.task, id=f"{folder.name}-{step.task.name}")
    for folder in find_lesson_folders(LIBRARY)
    for lesson in [read_lesson(folder)]
    for step in lesson.steps
    if step.task is not None
]
SEED = 20261127


class GpuEngine:
    """Launches on a GPU; the kernels' parameters are read by the simulator, which a stage requires."""

    def __init__(self, gpu: Engine, simulator: SimulatorEngine) -> None:
        self._gpu, self._simulator = gpu, simulator

    def build_simulated_module(self, file: str) -> SimulatedModule:
        return self._simulator.build_simulated_module(file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)


@pytest.mark.parametrize(("lesson", "task"), TASKS)
def test_a_solution_computes_on_a_gpu_what_the_lesson_expects(
    cuda_engine: Engine, lesson: Lesson, task: Task, tmp_path: Path, monkeypatch
) -> None:
    stage, text = lesson.stage(task.stage), reference_solution(lesson, task)
    trials = range(2 if stage.has_trials else 1)
    cases = [GradingCase(n, seed=SEED, trial=trial) for n in task.sizes for trial in trials]
    if stage.program is not None:
        program = compile_program(text, tmp_path)
        for case in cases:
            check_program(stage, program, case)
        return
    unmangled = re.sub(r"^__global__", 'extern "C" __global__', text, flags=re.MULTILINE)
    monkeypatch.setattr(cuda_engine, "sources", {stage.file: unmangled})
    simulator = SimulatorEngine("lockstep")
    simulator.sources = {stage.file: text}
    engine: Any = GpuEngine(cuda_engine, simulator)
    types = stage.find_types(simulator.build_simulated_module(stage.file))
    for case in cases:
        before = stage.generate_inputs(case, types)
        after = stage.run(engine, before, case)
        expected = stage.compute_expected(before, case) or stage.run(simulator, before, case)
        compare(stage, {name: after[name] for name in stage.outputs}, expected)


def compare(stage: Stage, results: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Compare results with the tolerance of the grader."""
    for name, values in results.items():
        exact = np.asarray(expected[name]).reshape(-1)
        scale = float(np.abs(exact.astype(np.float64)).max(initial=0.0)) or 1.0
        tolerance = stage.tolerance * scale if values.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(values.reshape(-1), exact, rtol=0, atol=tolerance, err_msg=name)


def compile_program(text: str, folder: Path) -> Path:
    source, program = folder / "solution.cu", folder / "solution"
    source.write_text(text, "utf-8")
    command = [find_nvcc(), "-std=c++17", "-arch=native", str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return program


def check_program(stage: Stage, program: Path, case: GradingCase) -> None:
    """Run a program with a case as its standard input; compare its exit code and its standard output."""
    interface = stage.program
    assert interface is not None
    dtype = np.dtype(interface.dtype)
    before = stage.generate_inputs(case, dict.fromkeys(stage.arrays, dtype))
    names = {**stage.evaluate_names(case.n, case.trial), **before}
    lines = []
    for argument in interface.arguments:
        if argument not in stage.arrays:
            lines.append(f"{evaluate_number(argument, names):.9g}")
        elif stage.arrays[str(argument)].use != "out":
            lines.append(" ".join(f"{value:.9g}" for value in before[str(argument)].tolist()))
    run = subprocess.run(
        [str(program)], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60, check=False
    )
    status = evaluate_integer(interface.status, names)
    assert run.returncode == status, run.stderr
    if status == 0:
        expected = stage.compute_expected(before, case)
        values = np.array(run.stdout.split(), np.float64).astype(dtype)
        ends = np.cumsum([each.size for each in expected.values()])
        assert values.size == ends[-1]
        compare(stage, dict(zip(expected, np.split(values, ends[:-1]), strict=True)), expected)
