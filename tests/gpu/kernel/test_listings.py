"""The listings of the teaching texts, each with the finding or the warning that its mistake deserves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import KernelError
from gpu.base.findings import Finding
from gpu.kernel.arguments import dtype_of
from gpu.kernel.simulate import Simulation, simulate
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import Pointer
from tests import needs

# They are not the project's: they lie in a folder beside the checkout, or further out where it is one of several.
PLACES = [folder / "shared" / "listings" for folder in Path(__file__).parents[4:]]
LISTINGS = next((place for place in PLACES if place.is_dir()), PLACES[0])

Run = Mapping[str, Any]


def runs_by_file() -> dict[str, list[Run]]:
    """Return the runs of each listing; none where the listings are not there."""
    expected = LISTINGS / "expected.json"
    found: dict[str, list[Run]] = {}
    for run in json.loads(expected.read_text(encoding="utf-8")) if expected.exists() else []:
        found.setdefault(run["file"], []).append(run)
    return found


RUNS = runs_by_file()

NOTE_LINES = {
    ("2-scan-efficient.cu", "never-written"): 41,
    ("2-scan-exclusive-efficient.cu", "never-written"): 42,
}
"""Where what is expected gives the line of the comment above the statement that writes."""

ALSO_RIGHT = {("4-conv-v1.cu", "image no multiple of the block, room behind it"): {("never-written", (32,))}}
"""Warnings that are not expected and are true: here elements 50 to 63 of the output stay without a value."""

RACY_BEHIND = {
    ("1-last-warp-repaired.cu", "block of 32"),
    ("1-template-repaired.cu", "32 threads"),
    ("1-template-repaired.cu", "arguments as callReduction passes them"),
    ("4-conv-v1.cu", "image no multiple of the block"),
}
"""Listings of which the text expects the error only: threads without an invalid access race, as in its other cases."""

WORDS = {
    "a __shared__ array without a size needs extern": "extern",
    "a line number of the listing was copied": "copied",
}
"""What a refusal must say, by the beginning of the reason."""


@needs.needs(RUNS, needs.LISTINGS)
@pytest.mark.parametrize("file", RUNS)
def test_a_listing_gets_what_it_deserves(file: str, tmp_path: Path) -> None:
    wrong = {run["case"]: difference for run in RUNS[file] if (difference := compare_run(run, tmp_path))}
    assert wrong == {}


def compare_run(run: Run, folder: Path) -> list[str]:
    """Simulate a run, and return where it differs from what is expected."""
    outcome = run["as_printed_outcome"]
    try:
        simulation = simulate_run(run, folder)
    except KernelError as refusal:
        return compare_refusal(refusal, outcome)
    if outcome["outcome"] == "refused":
        return ["it runs"]
    return [*compare_findings(simulation, run), *compare_values(simulation, outcome)]


def simulate_run(run: Run, folder: Path) -> Simulation:
    path = LISTINGS / run["file"]
    text, defines = path.read_text(encoding="utf-8"), run.get("defines", {})
    arguments = [make_texture_argument(argument, folder) for argument in run["args"]]
    if any(isinstance(argument, list) for argument in arguments):
        parameters = SimulatedModule(text, path, defines, tolerant=True).kernel(run["kernel"]).parameters
        arguments = [
            make_typed_argument(argument, type) for argument, (_, type) in zip(arguments, parameters, strict=True)
        ]
    return simulate(
        path,
        run["kernel"],
        run["grid"],
        run["block"],
        arguments,
        shared_bytes=run["shared"],
        defines=defines,
        constants={name: ",".join(map(str, values)) for name, values in run.get("constants", {}).items()},
    )


def make_texture_argument(argument: Any, folder: Path) -> Any:
    """Return a texture's description as the argument that makes it; anything else as it is."""
    if not isinstance(argument, dict):
        return argument
    word, _, count = argument["texture"].partition(":")
    assert word == "arange"
    target = folder / "texture.npy"
    np.save(target, np.arange(int(count)).astype(np.uint8).reshape(argument["height"], argument["width"]))
    return f"texture:{target}"


def make_typed_argument(argument: Any, type: Any) -> Any:
    """Return a list as an array of what a pointer leads to; anything else as it is."""
    if not isinstance(argument, list):
        return argument
    assert isinstance(type, Pointer)
    dtype = dtype_of(type.element)
    return np.array(argument).astype(dtype.base).reshape(-1, *dtype.shape)


def compare_refusal(refusal: KernelError, outcome: Mapping[str, Any]) -> list[str]:
    if outcome["outcome"] != "refused":
        return [f"refused: {refusal.message}"]
    said, wrong = f"{refusal.message} {refusal.advice} {refusal.detail}", []
    for because in outcome["refused_because"]:
        word = next((word for reason, word in WORDS.items() if because["reason"].startswith(reason)), "")
        if not re.search(rf":{because['line']}:|line {because['line']}\b", said):
            wrong.append(f"nothing of line {because['line']}: {said}")
        if word not in said:
            wrong.append(f"nothing of {because['reason']}: {said}")
    return wrong


def compare_findings(simulation: Simulation, run: Run) -> list[str]:
    outcome, wrong = run["as_printed_outcome"], []
    more = outcome.get("more_findings_of_these_kinds_are_right_too", False)
    racy = (run["file"], run["case"]) in RACY_BEHIND
    wanted = {(each["kind"], tuple(sorted(each["lines"]))) for each in outcome.get("findings", [])}
    found = {(each.kind, finding_lines(each)) for each in simulation.findings if not (racy and each.kind == "race")}
    if racy and not any(each.kind == "race" for each in simulation.findings):
        wrong.append("no race")
    wrong += [f"not found: {each}" for each in wanted - found]
    wrong += [f"found: {each}" for each in found - wanted if not (more and each[0] in {kind for kind, _ in wanted})]
    notes = {
        (each["kind"], (NOTE_LINES.get((run["file"], each["kind"]), each["line"]),))
        for each in outcome.get("notes", [])
    }
    warned = {(each.kind, finding_lines(each)) for each in simulation.warnings}
    wrong += [f"no warning: {each}" for each in notes - warned]
    unexpected = warned - notes - ALSO_RIGHT.get((run["file"], run["case"]), set())
    return wrong + [f"a warning: {each}" for each in unexpected]


def finding_lines(finding: Finding) -> tuple[int, ...]:
    return tuple(sorted(position.line for position in finding.positions))


def compare_values(simulation: Simulation, outcome: Mapping[str, Any]) -> list[str]:
    wrong = []
    for number, expected in outcome.get("values", {}).items():
        values = simulation.arrays[int(number)].reshape(-1)
        tolerance = outcome.get("relative_tolerance", 0)
        for place, (value, right) in enumerate(zip(values.tolist(), expected, strict=True)):
            if right is not None and not np.isclose(value, right, rtol=tolerance, atol=0):
                wrong.append(f"element {place} of argument {number} is {value}, not {right}")
    return wrong[:4]
