"""All data derived from a recording before it can be played."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.launch_tree import Grid, launch_tree
from gpu.stepping.moment.lanes import LaneStates
from gpu.stepping.moment.traffic import most_addresses
from gpu.stepping.phases import Phases, phases_of
from gpu.stepping.races import Race, races_of
from gpu.stepping.recording import Recording
from gpu.stepping.segments import Segment, segments_of
from gpu.stepping.tally import Tally


@dataclass(frozen=True, eq=False)
class Derived:
    """The data derived from a recording.

    Parameters
    ----------
    segments : tuple of Segment
        The intervals between barriers.
    phases : Phases
        The phases that the kernels' comments name.
    addresses : int
        The most distinct addresses that the atomic operations of one access target; 0 without atomic operations.
    grids : tuple of Grid
        The launches by the host and by kernels.
    races : tuple of Race
        The elements that threads race for.
    """

    recording: Recording
    dataflow: Dataflow
    lanes: LaneStates
    tally: Tally
    segments: tuple[Segment, ...]
    phases: Phases
    addresses: int
    grids: tuple[Grid, ...]
    races: tuple[Race, ...]


def derive(recording: Recording) -> Derived:
    """Derive all data from a recording; raise InputError if its file is damaged."""
    dataflow = Dataflow(recording)
    return Derived(
        recording, dataflow, LaneStates(recording), Tally(recording), segments_of(dataflow), phases_of(recording),
        most_addresses(recording), launch_tree(recording), races_of(recording),
    )  # fmt: skip
