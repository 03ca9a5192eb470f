"""The drawing of a run's record: every task and all that it took are there, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

from gpu.base.drawing import THEMES
from gpu.distributed.picture import MAX_CELLS, WORKER_COLORS, draw_task_graph
from gpu.distributed.task_layout import lay_out_tasks
from gpu.engines.base import Device, PhaseTimes
from gpu.messages.runs.distributed_run import DistributedRun, TaskDependency, TaskRecord, WorkerStatus

DEVICE = Device("simulator", "a CPU", "compiled", 1024, 49152, 4)
SPACE = "{http://www.w3.org/2000/svg}"


def task(name, place, worker, begin, taken=(), elements=None):
    step = name.rpartition("-")[0]
    made = (("", 4 * (place + 1)),)
    return TaskRecord(name, step, place, worker, begin, begin + 1, PhaseTimes(), made, tuple(taken), elements)


def run(*tasks):
    workers = tuple(WorkerStatus(str(each), f"tcp://{each}", "here", DEVICE) for each in range(2))
    return DistributedRun(workers, tasks, (), 4.0, 0)


SCAN = (
    task("chunk-0", 0, "tcp://0", 10, elements=(0, 5000)),
    task("chunk-1", 1, "tcp://1", 10, elements=(5000, 6000)),
    task("totals-2", 0, "tcp://0", 11, [TaskDependency("chunk-0"), TaskDependency("chunk-1")]),
    task("carry-3", 0, "tcp://0", 12, [TaskDependency("chunk-0"), TaskDependency("totals-2")]),
    task("carry-4", 1, "tcp://1", 12, [TaskDependency("chunk-1"), TaskDependency("totals-2")]),
)


def draw_record(record):
    root = ElementTree.fromstring(draw_task_graph(record, "Scan <of> 2"))
    kinds = Counter(word for each in root.iter() for word in each.get("class", "").split())
    return root, kinds, [each.text for each in root.iter(f"{SPACE}text")]


def test_what_was_made_from_what_by_whom_is_drawn():
    root, kinds, words = draw_record(run(*SCAN))
    assert root.find(f"{SPACE}title").text == words[0] == "Scan <of> 2"
    assert (kinds["cell"], kinds["input"], kinds["w0"], kinds["w1"]) == (7, 2, 3, 2)
    # Of six things taken two went to the other worker, and a line of either kind explains them.
    assert (kinds["moved"], kinds["stays"]) == (2 + 1, 4 + 2 + 1)
    labels = [each for each in words if each in ("input", "chunk", "totals", "carry") or "from others" in each]
    assert labels == ["input", "chunk", "nothing from others", "totals", "8 B from others", "carry", "4 B from others"]
    assert {"5\u202f000", "1\u202f000", "from 5\u202f000"} <= {*words}


def test_time_goes_to_the_right_and_each_worker_has_its_lane():
    root, _, words = draw_record(run(*SCAN))
    bars = [each for each in root.iter(f"{SPACE}rect") if "busy" in each.get("class", "")]
    lanes = [each for each in root.iter(f"{SPACE}rect") if each.get("class") == "lane"]
    assert [float(bar.get("y")) for bar in bars] == [float(lanes[worker].get("y")) for worker in (0, 1, 0, 0, 1)]
    left, wide = float(lanes[0].get("x")), float(lanes[0].get("width"))
    assert [round((float(bar.get("x")) - left) / wide * 3) for bar in bars] == [0, 0, 1, 2, 2]
    assert "3 s" in words


def test_chunks_of_the_input_lie_side_by_side():
    """Only the first of two chunks was reduced: its cell lay upon the second one's."""
    layout = lay_out_tasks(
        (
            task("reduce-0", 0, "tcp://0", 10, elements=(0, 5000)),
            task("scan-1", 0, "tcp://0", 11, [TaskDependency("reduce-0")]),
            task("scan-2", 1, "tcp://1", 11, [TaskDependency("reduce-0")], elements=(5000, 6000)),
        )
    )
    assert {name: cell.column for name, cell in layout.inputs.items()} == {"reduce-0": 0, "scan-2": 1}
    assert layout.tasks["reduce-0"].column == 0


def test_a_task_that_was_done_again_is_one_cell_and_two_bars():
    again = replace(SCAN[1], worker="tcp://0", begin=14, end=15)
    _, kinds, _ = draw_record(run(*SCAN, again))
    assert (kinds["cell"], kinds["busy"], kinds["b0"]) == (7, 6, 4)


def test_many_rounds_are_drawn_at_once_and_more_only_in_time():
    rounds = [task("step-0", 0, "tcp://0", 0), task("step-1", 1, "tcp://1", 0)]
    for number in range(2, MAX_CELLS, 2):
        taken = [TaskDependency(f"step-{number - 2}"), TaskDependency(f"step-{number - 1}")]
        rounds += [task(f"step-{number + place}", place, f"tcp://{place}", number, taken) for place in range(2)]
    _, kinds, _ = draw_record(run(*rounds))  # it would never end if each way to a task were followed
    assert kinds["cell"] == kinds["busy"] == MAX_CELLS
    _, kinds, _ = draw_record(run(*rounds, task("step-x", 0, "tcp://0", 1000)))
    assert (kinds["cell"], kinds["busy"]) == (0, MAX_CELLS + 1)


def test_it_has_the_colors_of_the_window():
    from gui.painting.colors import warp_color
    from gui.painting.theme import THEMES as LOOKS

    for name, colors in THEMES.items():
        assert colors == {role: getattr(LOOKS[name], role) for role in colors}
        assert [warp_color(LOOKS[name], number).name() for number in range(8)] == [*WORKER_COLORS[name]]
