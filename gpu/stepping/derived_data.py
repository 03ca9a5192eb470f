"""All data derived from a recording before it can be played."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.recording.recording import Recording
from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.findings import LocatedFinding, locate_findings
from gpu.stepping.launch_tree import Grid, build_launch_tree
from gpu.stepping.moment.lanes import LaneStates
from gpu.stepping.moment.traffic import find_max_address_count
from gpu.stepping.phases import Phases, find_phases
from gpu.stepping.races import Race, find_races
from gpu.stepping.segments import Segment, find_segments
from gpu.stepping.tally import Tally


@dataclass(frozen=True, eq=False)
class DerivedData:
    """The data derived from a recording.

    Parameters
    ----------
    tally : Tally
        The counts up to each moment.
    segments : tuple of Segment
        The intervals between barriers.
    phases : Phases
        The phases that the kernels' comments name.
    max_address_count : int
        The most distinct addresses that the atomic operations of one access target; 0 without atomic operations.
    grids : tuple of Grid
        The launches by the host and by kernels.
    races : tuple of Race
        The elements that threads race for.
    findings : tuple of LocatedFinding
        The findings with their threads and elements.
    """

    recording: Recording
    dataflow: Dataflow
    lanes: LaneStates
    tally: Tally
    segments: tuple[Segment, ...]
    phases: Phases
    max_address_count: int
    grids: tuple[Grid, ...]
    races: tuple[Race, ...]
    findings: tuple[LocatedFinding, ...]


def derive_data(recording: Recording) -> DerivedData:
    """Derive all data from a recording; raise InputError if its file is damaged."""
    dataflow = Dataflow(recording)
    return DerivedData(
        recording, dataflow, LaneStates(recording), Tally(recording), find_segments(dataflow), find_phases(recording),
        find_max_address_count(recording), build_launch_tree(recording), find_races(recording),
        locate_findings(recording),
    )  # fmt: skip
