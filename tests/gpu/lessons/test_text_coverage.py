"""Coverage of the teaching texts: each worked example is a lesson's question, each faulty listing a task's mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu.base.paths import ROOT
from gpu.lessons.lesson import Lesson
from gpu.lessons.lesson_reader import LIBRARY, find_lesson_folders, read_lesson
from gpu.lessons.questions.generation import ask_question
from tests import needs

LISTINGS = ROOT.parent / "shared" / "listings"

STEPS_OF_EXAMPLES = {
    "0": [
        "08-reduction: Idle lanes, counted", "08-reduction: Whole warps finish", "08-reduction: Any number of values",
    ],
    "1": [
        "08-reduction: Half the iterations", "08-reduction: What is half of three?", "08-reduction: Barriers",
        "08-reduction: The last warp", "08-reduction: Operations and steps", "08-reduction: The last warp",
        "08-reduction: The last warp", "08-reduction: One launch, or two?", "08-reduction: Swapped arguments",
    ],
    "2": [
        "08-reduction: Operations and steps", "08-reduction: Operations and steps",
        "08-reduction: Operations and steps", "08-reduction: How many operations at once?",
        "08-reduction: Operations and steps", "09-scan: Up-sweep and down-sweep",
        "08-reduction: Idle lanes, counted", "08-reduction: Whole warps finish",
        "08-reduction: Idle lanes, counted", "08-reduction: Idle lanes, counted",
        "08-reduction: Where warps still diverge", "08-reduction: Where warps still diverge",
        "09-scan: Cut the sausage",
        "09-scan: How many operations?", "09-scan: How many operations?", "09-scan: How many operations?",
        "09-scan: How many operations in the tree?", "09-scan: How many operations in the tree?",
        "09-scan: How many operations in the tree?",
        "09-scan: Elements of the up-sweep", "09-scan: Elements of the down-sweep",
        "09-scan: Inclusive or exclusive?", "09-scan: Inclusive or exclusive?",
    ],
    "3": [
        "13-histogram: Letters of a text", "13-histogram: Letters of a text",
        "13-histogram: A section for each thread", "13-histogram: A section for each thread",
        "13-histogram: How many updates remain?", "13-histogram: How many updates remain?",
        "13-histogram: Atomic updates",
        "13-histogram: Too many threads", "13-histogram: Interleaved letters",
        "03-coalescing: How many sectors?", "13-histogram: What limits the histogram?",
        "13-histogram: What limits the histogram?", "13-histogram: Contention", "13-histogram: Contention",
        "13-histogram: Letters of a text", "13-histogram: What limits the histogram?", "13-histogram: Contention",
        "13-histogram: Aggregation",
    ],
    "4": [
        "16-matrix-product: How much faster are tiles?", "15-convolution: A tile with its halo",
        "15-convolution: A tile with its halo", "15-convolution: A tile with its halo",
        "15-convolution: How many pixels have this neighbor?", "15-convolution: A tile with its halo",
        "15-convolution: What does the tile save?", "15-convolution: Write the sum",
        "09-scan: Inclusive or exclusive?", "09-scan: Inclusive or exclusive?",
        "09-scan: How slow is the naive scan?", "09-scan: Up-sweep and down-sweep",
        "12-compaction: Three launches of the pattern", "09-scan: The naive scan",
        "09-scan: Bank conflicts in a scan", "09-scan: Bank conflicts in a scan",
        "05-bank-conflicts: Strided access", "12-compaction: Pack the odd numbers", "12-compaction: Unpack them",
        "", "17-sort: Kernels that launch kernels", "17-sort: Kernels that launch kernels",
        "17-sort: 7 14 4 1, bit by bit", "17-sort: 7 14 4 1, bit by bit", "17-sort: 7 14 4 1, bit by bit",
        "17-sort: 7 14 4 1, bit by bit", "17-sort: 7 14 4 1, bit by bit", "17-sort: 7 14 4 1, bit by bit",
        "17-sort: Which position does a key get?", "17-sort: Fix the radix sort",
        "19-softmax: What is a share?",
    ],
}  # fmt: skip
"""The steps about each text's worked examples, in order; "" for an example of host code."""

TASKS_OF_LISTINGS = {
    "0-neighbored": [
        ("08-reduction/guard", "the number in the block is compared with the length of the array"),
        ("08-reduction/ninety-six", "halves are rounded down, so leftover elements are not added"),
    ],
    "0-neighbored-less": [("08-reduction/guard", "one element past the end")],
    "1-last-warp": [("04-shared-memory/any-block", "no size, but not extern either")],
    "1-last-warp-repaired": [("08-reduction/last-warp", "no __syncwarp() before the reads"),
                             ("08-reduction/ninety-six", "128 threads instead of 96")],
    "1-template": [("04-shared-memory/any-block", "no size, but not extern either")],
    "1-template-repaired": [("08-reduction/last-warp", "no __syncwarp() before the next writes")],
    "1-template-host": [("08-reduction/last-warp", "no __syncwarp() before the reads")],
    "1-two-stage": [("04-shared-memory/any-block", "no size, but not extern either")],
    "1-two-stage-repaired": [("04-shared-memory/any-block", "too small for larger blocks")],
    "2-reduction-better": [("01-threads-and-indices/add", "blockDim has three components, not one")],
    "2-reduction-naive": [("01-threads-and-indices/add", "blockDim has three components, not one")],
    "2-reduction-naive-repaired": [("04-shared-memory/any-block", "too small for larger blocks")],
    "2-scan-efficient": [("09-scan/down-sweep", "each thread loads two elements and writes one")],
    "2-scan-exclusive": [("09-scan/all-come", "each thread leaves when it has nothing more to add")],
    "2-scan-exclusive-efficient": [("09-scan/down-sweep", "each thread loads two elements and writes one")],
    "2-scan-inefficient-repaired": [("09-scan/all-come", "each thread leaves when it has nothing more to add")],
    "3-fig-9-10": [("13-histogram/letters", "a string instead of a character")],
    "3-fig-9-10-names": [("13-histogram/letters", "a string instead of a character")],
    "3-fig-9-10-repaired": [("13-histogram/letters", "characters that are not letters are counted too")],
    "3-fig-9-11": [("13-histogram/private", "the block's bins are added to themselves"),
                   ("13-histogram/runs", "the test for an empty run is always true")],
    "3-fig-9-11-commit": [("13-histogram/runs", "a run is added to the bin of the next value"),
                          ("13-histogram/runs", "the last run is never added")],
    "4-conv-v1": [("15-convolution/bounds", "threads without a pixel write as well"),
                  ("15-convolution/bounds", "threads past the end of a row write into the next row")],
    "4-conv-v2": [("15-convolution/blur", "the nearest pixel instead of zero")],
    "4-nbody-tile": [("04-shared-memory/any-block", "a size that is not a compile-time constant")],
    "4-nbody-tile-repaired": [("18-n-body/tile", "leftovers of the previous tile are read")],
    "4-scan-v1": [("01-threads-and-indices/add", "no bounds check")],
    "4-scan-v2": [("09-scan/down-sweep", "elements past the end are loaded"),
                  ("16-matrix-product/registers", "blocks overlap")],
    "4-sgemm-naive": [("16-matrix-product/registers", "rows beyond the matrix are written"),
                      ("16-matrix-product/naive", "the kernel reads C before it writes C")],
    "4-sgemm-tiled": [("16-matrix-product/tile-of-b", "every row of the tile b is the same row of B"),
                      ("16-matrix-product/tile-of-b", "the next tile is loaded while other threads still multiply")],
    "4-sgemm-tiled-barrier": [("16-matrix-product/tile-of-b", "every row of the tile b is the same row of B")],
    "4-sgemm-tiled-repaired": [("16-matrix-product/naive", "the kernel reads C before it writes C")],
    "4-texture-histogram": [("13-histogram/private", "some bins are not initialized")],
    "4-warp-radix": [("17-sort/radix", "no __syncwarp() before the next reads")],
}  # fmt: skip
"""The mistakes of tasks that correspond to faulty listings."""

EXCLUDED_LISTINGS = {
    "0-recursive-cpu": "host code",
    "2-scan-inefficient": "signs of another language, and a missing macro",
    "3-fig-9-2": "host code",
    "3-fig-9-6": "a name that is not declared",
    "3-fig-9-8-numbered": "line numbers in the code",
    "4-conv-v3": "the host program never sets the filter",
    "4-quicksort": "dots instead of code",
    "4-thrust-sort": "host code",
}


@pytest.fixture(scope="module")
def lessons() -> dict[str, Lesson]:
    return {folder.name: read_lesson(folder) for folder in find_lesson_folders(LIBRARY)}


def _shared(name: str) -> Any:
    path = LISTINGS / name
    if not path.is_file():
        needs.skip(needs.LISTINGS)
    return json.loads(path.read_text(encoding="utf-8"))


def _list_steps() -> Iterator[tuple[str, str]]:
    for steps in STEPS_OF_EXAMPLES.values():
        for step in filter(None, steps):
            name, _, title = step.partition(": ")
            yield name, title


def test_all_listed_steps_and_mistakes_exist(lessons: dict[str, Lesson]) -> None:
    for name, title in _list_steps():
        step = next((each for each in lessons[name].steps if each.title == title), None)
        assert step is not None, f"{name}: {title}"
        assert step.question or step.task
    for places in TASKS_OF_LISTINGS.values():
        for task, says in places:
            name, _, task_name = task.partition("/")
            assert says in [each.says for each in lessons[name].task(task_name).mistakes], f"{task}: {says}"


def test_each_worked_example_has_a_step() -> None:
    examples = _shared("examples.json")
    for text, steps in STEPS_OF_EXAMPLES.items():
        found = [each for each in examples if each["text"] == int(text)]
        assert len(found) == len(steps), f"text {text}"
    assert len(examples) == sum(map(len, STEPS_OF_EXAMPLES.values()))


def test_each_faulty_listing_has_a_task() -> None:
    wrong = {
        Path(each["file"]).stem
        for each in _shared("expected.json")
        if each["as_printed_outcome"]["outcome"] != "runs" or "notes" in each["as_printed_outcome"]
    }
    assert wrong == TASKS_OF_LISTINGS.keys() | EXCLUDED_LISTINGS.keys()


@pytest.mark.parametrize(
    ("place", "examples", "additional"),
    [
        ("09-scan: Cut the sausage", [(2, 12)], []),
        ("08-reduction: Any number of values", [(0, 2)], [39]),
        ("09-scan: Inclusive or exclusive?", [(2, 21), (2, 22), (4, 8)], [0]),
        ("13-histogram: Letters of a text", [(3, 1)], [3]),  # and three spaces, in the bin after the letters' bins
        ("19-softmax: What is a share?", [(4, 30)], []),
    ],
)
def test_answers_agree_with_the_texts(
    lessons: dict[str, Lesson], place: str, examples: list[tuple[int, int]], additional: list[float]
) -> None:
    answers = list(additional)
    for text, number in examples:
        of_text = [each for each in _shared("examples.json") if each["text"] == text]
        numbers = of_text[number]["numbers"]["right"]
        answers += numbers["cuts"] if isinstance(numbers, dict) else numbers
    name, _, title = place.partition(": ")
    step = next(each for each in lessons[name].steps if each.title == title)
    for seed in (2,) if title == "What is a share?" else (0, 1, 2):  # a row of four elements, as in the text
        answer = ask_question(lessons[name], step, seed)[1].answer
        assert any(answer == pytest.approx(each, abs=1e-6) for each in answers)
