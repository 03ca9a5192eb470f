"""The options of `run`: a variant, its parameters and files, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.declaration.pattern import Pattern, Variant


@dataclass(frozen=True)
class RunOptions:
    """Options of one run.

    Parameters
    ----------
    texts : mapping
        Texts of the parameters given on the command line, by name.
    input_file : str or None
        Without a file the pattern generates the input, or the sample image is used.
    output_file : str or None
        File for the result.
    source_file : str or None
        Kernel file to use instead of the pattern's.
    frames : str or None
        For bodies: folder for a picture of the start and of each step; created if it does not exist.
    seed : int
        Seed of generated inputs.
    cluster : ClusterRunOptions or None
        Cluster to run on instead of an engine.
    """

    pattern: Pattern
    variant: Variant
    texts: Mapping[str, str]
    engine: str
    executor: str
    schedule: str
    input_file: str | None
    output_file: str | None
    source_file: str | None
    frames: str | None
    seed: int
    as_json: bool
    cluster: ClusterRunOptions | None = None
