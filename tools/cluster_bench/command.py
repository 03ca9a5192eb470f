"""Measurements of several devices and of one in the same run, and the sections of the page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu.base.errors import InputError, LockstepError
from gpu.bench.pages import document
from gpu.distributed.cluster.dask_cluster import Cluster, open_cluster
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.distributed.distributed_run import count_devices, describe_devices
from gpu.distributed.task_layout import format_short_bytes
from tools.cluster_bench import disk, measure, overhead
from tools.cluster_bench.cases import CASES, ClusterCase
from tools.cluster_bench.disk import DiskRow
from tools.cluster_bench.measure import ClusterRow
from tools.cluster_bench.overhead import OverheadRow
from tools.cluster_bench.sizes import DISK, GPU_SIZES, OVERHEAD, SIMULATOR_SIZES

_MAX_REPETITIONS = 5

_METHOD = """\
Each pattern runs on one worker and on all workers, with the same Dask tasks, in the same run of the benchmark. Inputs
are generated on the devices and results stay there. Only the times of n-body include transfers, those of the bodies.
*By the clock* is the time from the submission of the first Dask task to the result of the last one. *On the devices* is
the time that the busiest device spends in kernels and with copies from other devices. More than 2^30 elements, or 2^29
keys, are several chunks, on one device too.
One device scans each chunk from the end of the chunk before, so it reads and writes every element once, as a
single-pass scan does. Several devices read the elements of all chunks but the last once more, for the totals
(*reduce chunk*). With this traffic the speedup of two devices is at most 1.33, and that of four at most 2.67.
Results on one worker and on all workers are compared bit for bit, except for n-body. They are also checked for
properties that are cheap to test: sums, order, and the ends of each part. The last columns show how many bytes were
copied between devices and sent through sockets."""

_OVERHEAD_DESCRIPTION = """\
Time of a run that fits one device, until its result is verified: without Dask, and on a running cluster.
"""

_DISK_DESCRIPTION = """\
The benchmark writes an image to a disk, asks the system to drop it from its cache, and reads it in chunks. *Read only*
is the rate at which all workers together read the image and do nothing else. *Copy only* reads and writes the same
chunks without a filter, on the same disk; this is an upper bound for the convolution. A write is complete when the data
is on the disk."""


@dataclass
class _Results:
    """The results of all benchmarks, and the messages of those that failed."""

    rows: list[ClusterRow] = field(default_factory=list)
    overhead_rows: list[OverheadRow] = field(default_factory=list)
    disk_rows: list[DiskRow] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run(
    settings: ClusterSettings,
    sizes: Mapping[str, int],
    repetitions: int,
    page: Path,
    folder: Path,
    engine: str = "auto",
) -> int:
    """Measure on a cluster, print the results as they come, and write the page's sections.

    Times of simulators are printed but not written to the page.

    Parameters
    ----------
    sizes : mapping of str to int
        Sizes other than the defaults, by names of `tools.cluster_bench.sizes.NAMES`; 0 skips a benchmark.
    folder : Path
        Folder on a disk for the streamed image.
    engine : str
        Engine of the workers.

    Returns
    -------
    int
        1 if a result is wrong or a benchmark failed, else 0.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    start = time.perf_counter()
    with open_cluster(settings, engine) as cluster:
        startup_s = time.perf_counter() - start
        startup = f"Its workers are ready after {startup_s:.1f} s, not counting the import of Dask."
        simulated = cluster.workers[0].device.engine != "cuda"
        if count_devices(cluster.workers) < len(cluster.workers):
            raise InputError(
                f"There are {describe_devices(cluster)}: workers that share a GPU do not show the speedup of "
                "several GPUs."
            )
        name = describe_devices(cluster) + (", simulated: their times are not a GPU's" if simulated else "")
        print(f"{name}. {startup}", flush=True)
        chosen_sizes = {**(SIMULATOR_SIZES if simulated else GPU_SIZES), **sizes}
        results = _measure(cluster, chosen_sizes, min(repetitions, _MAX_REPETITIONS), folder)
    if not simulated:
        # A section is replaced as a whole, so it is kept if none of its benchmarks ran.
        if results.rows or results.overhead_rows or results.failed:
            document.write_section(page, "Several devices", name, "\n\n".join(_page_sections(results, startup)))
        if results.disk_rows:
            document.write_section(page, "Streamed from a disk", name, _disk_page(results.disk_rows))
    all_rows: tuple[ClusterRow | OverheadRow | DiskRow, ...] = (
        *results.rows,
        *results.overhead_rows,
        *results.disk_rows,
    )
    return 0 if all(row.correct for row in all_rows) and not results.failed else 1


def _measure(cluster: Cluster, sizes: Mapping[str, int], repetitions: int, folder: Path) -> _Results:
    """Run the benchmarks of nonzero size, and print the results as they come."""
    results = _Results()

    def fail(case: ClusterCase, error: LockstepError) -> None:
        results.failed.append(f"{case.work}: {error.message}")
        print(results.failed[-1], flush=True)

    cases = [CASES[each](sizes[each]) for each in CASES if sizes[each]]
    for row in measure.measure(cluster, cases, repetitions, fail):
        results.rows.append(row)
        print(" | ".join(_cells(row, results.rows)), flush=True)
    if sizes[OVERHEAD]:
        works = overhead.make_overhead_works(sizes[OVERHEAD])
        for overhead_row in overhead.measure(cluster, works, repetitions, cluster.workers[0].device.engine):
            results.overhead_rows.append(overhead_row)
            print(" | ".join(_overhead_cells(overhead_row)), flush=True)
    if sizes[DISK]:
        for disk_row in disk.measure(cluster, sizes[DISK], folder):
            results.disk_rows.append(disk_row)
            print(" | ".join(_disk_cells(disk_row, results.disk_rows)), flush=True)
    return results


def _page_sections(results: _Results, startup: str) -> Iterator[str]:
    rows, overhead_rows, failed = results.rows, results.overhead_rows, results.failed
    if rows:
        yield _METHOD
        head = ("work", "devices", "ms by the clock", "speedup", "ms on the devices", "speedup", "its steps, ms")
        moved = ("ms to and from the host", "from device", "by sockets", "")
        yield _format_table((*head, *moved), [_cells(row, rows) for row in rows])
    if failed:
        yield "\n".join(f"- {each}" for each in failed)
    if overhead_rows:
        yield _OVERHEAD_DESCRIPTION + startup
        seconds = ("without Dask, s", "one worker, s", "all workers, s", "overhead on one, s", "overhead on all, s")
        head = ("work", *seconds, "")
        yield _format_table(head, [_overhead_cells(row) for row in overhead_rows])


def _disk_page(disk_rows: Sequence[DiskRow]) -> str:
    shares = ("of read only", "of copy only")
    head = ("operation", "read", "written", "s", "GB/s read", *shares, "peak memory of a worker", "")
    return f"{_DISK_DESCRIPTION}\n\n{_format_table(head, [_disk_cells(row, disk_rows) for row in disk_rows])}"


def _cells(row: ClusterRow, rows: Sequence[ClusterRow]) -> tuple[str, ...]:
    one = next(each for each in rows if each.work == row.work)
    steps = ", ".join(f"{step} {ms:.3g}" for step, ms in row.steps.items() if ms)
    if row.time_steps:
        steps += f"; {row.median_wall_ms / row.time_steps:.4g} per time step by the clock"
    return (
        row.work,
        str(row.workers),
        f"{row.median_wall_ms:.4g}",
        f"{one.median_wall_ms / row.median_wall_ms:.2f} x",
        f"{row.median_device_ms:.4g}",
        f"{one.median_device_ms / row.median_device_ms:.2f} x",
        steps,
        f"{row.transfer_ms:.3g}",
        format_short_bytes(row.device_bytes),
        format_short_bytes(row.socket_bytes),
        _format_verdict(row.correct),
    )


def _overhead_cells(row: OverheadRow) -> tuple[str, ...]:
    seconds = (
        row.local_s,
        row.one_worker_s,
        row.all_workers_s,
        row.one_worker_s - row.local_s,
        row.all_workers_s - row.local_s,
    )
    return (row.work, *(f"{each:.3f}" for each in seconds), _format_verdict(row.correct))


def _disk_cells(row: DiskRow, rows: Sequence[DiskRow]) -> tuple[str, ...]:
    return (
        row.operation,
        format_short_bytes(row.read_bytes),
        format_short_bytes(row.written_bytes),
        f"{row.seconds:.2f}",
        f"{row.rate:.3g}" if row.read_bytes else "",
        _format_rate_share(row, rows, disk.READ) if row.read_bytes else "",
        _format_rate_share(row, rows, disk.COPY) if row.read_bytes and row.written_bytes else "",
        format_short_bytes(row.peak_bytes) if row.peak_bytes else "",
        _format_verdict(row.correct),
    )


def _format_rate_share(row: DiskRow, rows: Sequence[DiskRow], operation: str) -> str:
    best_rate = max((each.rate for each in rows if each.operation == operation), default=0.0)
    return f"{row.rate / best_rate:.0%}" if best_rate else ""


def _format_verdict(correct: bool) -> str:
    return "verified" if correct else "WRONG"


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 2), "---"], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
