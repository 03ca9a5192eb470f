"""Pictures of a recording's findings that no cell of its dataflow shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpu.base.warp import WARP
from gui.painting.values import format_values
from gui.step_view.dataflow.finding_picture import FindingPicture, ShownAccess, ShownElement
from gui.step_view.recording.models import RecordingModels

if TYPE_CHECKING:
    from gpu.recording.recording import LaunchSpan
    from gpu.stepping.findings import LocatedFinding
    from gpu.stepping.races import Race

_MAX_PICTURES = 16
_MAX_FAULTY, _CONTEXT = 6, 4
"""Maximum number of faulty elements in a picture, and of other elements of the array beside them."""
_MAX_THREADS = 2
"""Maximum number of shown threads that access one element."""
_MAX_WARPS = 3


def build_finding_pictures(models: RecordingModels) -> tuple[FindingPicture, ...]:
    """Return pictures of the findings of each kind that no cell of the dataflow shows, by event.

    A picture takes space from the rows, so a kind has none if a cell shows its first finding.
    """
    first_of_kind = {found.finding.kind: found for found in reversed(models.data.findings)}
    shown_kinds = {kind for kind, found in first_of_kind.items() if models.has_cell(found)}
    hidden = [
        found for found in models.data.findings if found.finding.kind not in shown_kinds and not models.has_cell(found)
    ]
    return tuple(_build_picture(models, found) for found in hidden[:_MAX_PICTURES])


def _build_picture(models: RecordingModels, found: LocatedFinding) -> FindingPicture:
    launch = models.recording.launches[found.launch]
    races = [race for race in models.data.races if race.second.moment == found.moment]
    if found.finding.kind == "race" and races:
        own = (race for race in races if (race.second.block, race.second.thread) == found.thread)
        return _build_race_picture(models, found, launch, next(own, races[0]))
    faulty = found.faulty
    if faulty is None:
        return _build_lanes_picture(models, found, launch)
    threads: dict[int, list[tuple[int, int]]] = {}
    for element, thread in sorted(zip(faulty.elements, faulty.threads, strict=True)):
        threads.setdefault(element, []).append(thread)
    about = next((element for element in threads if found.thread in threads[element]), min(threads))
    count = launch.trace.arrays[faulty.array].count
    accessed = sorted(threads)
    # The thread's element and the next ones; at the end of the elements, also those before it.
    start = max(0, min(accessed.index(about), len(accessed) - _MAX_FAULTY))
    accessed = accessed[start : start + _MAX_FAULTY]
    accesses = tuple(
        ShownAccess(*thread, element) for element in accessed for thread in threads[element][:_MAX_THREADS]
    )
    indices = set(accessed)
    if any(element >= count for element in indices):
        indices |= set(range(max(0, count - _CONTEXT), count))
    if any(element < 0 for element in indices):
        indices |= set(range(min(_CONTEXT, count)))
    if 0 <= about < count:
        indices |= set(range(max(0, about - 2), min(count, about + _CONTEXT)))
    return FindingPicture(
        found.moment, _write_caption(models, found, f" at {faulty.name}[{about}]"),
        models.recording.warps[found.launch], found.thread, faulty.name,
        _list_elements(models, found, faulty.array, sorted(indices)), accesses,
    )  # fmt: skip


def _build_race_picture(
    models: RecordingModels, found: LocatedFinding, launch: LaunchSpan, race: Race
) -> FindingPicture:
    accesses = tuple(
        ShownAccess(each.block, each.thread, race.element, "writes" if each.is_write else "reads")
        for each in (race.first, race.second)
    )
    first = max(0, race.element - 2)
    indices = range(first, min(launch.trace.arrays[race.array].count, first + 2 * _CONTEXT))
    names = (models.recording.name_thread(found.launch, each.block, each.thread) for each in (race.first, race.second))
    caption = f"{_describe(found)}: {' and '.join(names)} at {race.name}[{race.element}]"
    elements = _list_elements(models, found, race.array, indices)
    return FindingPicture(
        found.moment, caption, models.recording.warps[found.launch], found.thread, race.name, elements, accesses
    )


def _build_lanes_picture(models: RecordingModels, found: LocatedFinding, launch: LaunchSpan) -> FindingPicture:
    block, thread = found.thread or (0, 0)
    lanes = models.data.lanes.lanes_at(found.moment)
    states = lanes.state[block]
    first = max(0, min(thread // WARP - 1, len(states) - _MAX_WARPS))
    return FindingPicture(
        found.moment, _write_caption(models, found), models.recording.warps[found.launch], found.thread,
        lanes=states[first : first + _MAX_WARPS], first_warp=first, summary=lanes.summary(block),
    )  # fmt: skip


def _list_elements(
    models: RecordingModels, found: LocatedFinding, array: int, indices: Sequence[int]
) -> tuple[ShownElement, ...]:
    trace = models.recording.launches[found.launch].trace
    event, stored = found.moment - models.recording.launches[found.launch].first, trace.arrays[array]
    values = format_values(trace.array(array, event)[: stored.count], 6)
    is_set = trace.memory.find_written(stored, event)
    is_set |= stored.name in models.initialized_arrays(found.launch)
    return tuple(
        ShownElement(index, values[index] if inside and is_set[index] else "", not inside)
        for index in indices
        for inside in [0 <= index < stored.count]
    )


def _write_caption(models: RecordingModels, found: LocatedFinding, place: str = "") -> str:
    name = f": {models.recording.name_thread(found.launch, *found.thread)}{place}" if found.thread else ""
    return f"{_describe(found)}{name}"


def _describe(found: LocatedFinding) -> str:
    from gpu.messages.verdicts import collect_mistakes, describe_mistakes

    return describe_mistakes(collect_mistakes([found.finding]))
