"""`python main.py bench cluster`: several devices beside one, in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpu.bench import document
from gpu.bench.cluster import disk, measure, overhead
from gpu.bench.cluster.cases import CASES, ClusterCase
from gpu.bench.cluster.disk import DiskRow
from gpu.bench.cluster.measure import ClusterRow
from gpu.bench.cluster.overhead import OverheadRow
from gpu.bench.cluster.sizes import DISK, ON_GPUS, OVERHEAD, SIMULATED
from gpu.distributed.asked import Asked
from gpu.distributed.cluster import opened
from gpu.distributed.layout import short_bytes
from gpu.distributed.run import devices_of, devices_text
from gpu.errors import InputError, LockstepError

_MOST = 5

_METHOD = """\
Each pattern runs on one worker and on all, in one run, by the same program: its own steps, and what they exchange. Data
lies on the devices: inputs are made there, results stay there, but for n-body, which brings bodies to the devices and
back within its time. *By the clock* is from the first task's submission to the last one's result, Dask included; *on
the devices* is what the device that is busy for longest spends in kernels and with copies from other devices. More than
2^30 elements, or 2^29 keys, are several chunks on one device too. One device scans each chunk from where the one before
ended, and so reads and writes every element once, as a scan that looks back over all of them would; of several, all but
the last one read theirs once more before, for the totals (*reduce chunk*). By that traffic two are at most 1.33 times
as fast as one, four 2.67 times. Results are compared between one worker and all, bit for bit but for n-body, and with
what they should be where that is cheap: sums, order, the ends of each part. The last columns say how what was exchanged
went."""

_BESIDE = """\
A run that fits one device, from the request until its result is compared, without Dask, and on a cluster that is open.
"""

_FROM_DISK = """\
An image that is read from a disk in chunks, after the system was asked to keep nothing of it. What the disk reads is
what all workers read together, and nothing else. Filtered, it is written as another image on the same disk, which has
to do both: beside that stands what the disk copies, the same chunks read and written with nothing between, and no
filter is faster. What is written counts when the disk has it."""


def run(
    asked: Asked, sizes: Mapping[str, int], repetitions: int, page: Path, folder: Path, engine: str = "auto"
) -> int:
    """Measure on a cluster, print as it comes, and write the page's sections; return 1 where a result is wrong.

    What simulators take is printed, and written nowhere.

    Parameters
    ----------
    asked : Asked
    sizes : mapping of str to int
        By names of `gpu.bench.cluster.sizes.NAMES`, others than are taken by themselves; what is 0 is left out.
    repetitions : int
    page : Path
    folder : Path
        Where the image lies that is read from a disk.
    engine : str
        Which the workers have.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    begun = time.perf_counter()
    with opened(asked, engine) as cluster:
        ready = time.perf_counter() - begun
        started = f"Its workers are ready {ready:.1f} s after it is asked for, Dask being imported."
        simulated = cluster.workers[0].device.engine != "cuda"
        if devices_of(cluster.workers) < len(cluster.workers):
            raise InputError(
                f"There are {devices_text(cluster)}: what workers that share a GPU gain says nothing of several GPUs."
            )
        name = devices_text(cluster) + (", simulated: their times are no GPU's" if simulated else "")
        print(f"{name}. {started}", flush=True)
        wanted = {**(SIMULATED if simulated else ON_GPUS), **sizes}
        rows: list[ClusterRow] = []
        spent: list[OverheadRow] = []
        read: list[DiskRow] = []
        failed: list[str] = []

        def fail(case: ClusterCase, error: LockstepError) -> None:
            failed.append(f"{case.work}: {error.message}")
            print(failed[-1], flush=True)

        cases = [CASES[each](wanted[each]) for each in CASES if wanted[each]]
        for row in measure.measure(cluster, cases, min(repetitions, _MOST), fail):
            rows.append(row)
            print(_told(row, rows), flush=True)
        if wanted[OVERHEAD]:
            kind = cluster.workers[0].device.engine
            for beside in overhead.measure(cluster, overhead.works(wanted[OVERHEAD]), min(repetitions, _MOST), kind):
                spent.append(beside)
                print(" | ".join(_overhead_cells(beside)), flush=True)
        if wanted[DISK]:
            for each in disk.measure(cluster, wanted[DISK], folder):
                read.append(each)
                print(" | ".join(_disk_cells(each, read)), flush=True)
    if not simulated:
        # A section is replaced as a whole: what was not measured this time stays where it is.
        if rows or spent or failed:
            document.write_section(page, "Several devices", name, "\n\n".join(_page(rows, spent, started, failed)))
        if read:
            document.write_section(page, "Streamed from a disk", name, _disk_page(read))
    verified = [each.right for each in rows] + [each.right for each in spent] + [each.right for each in read]
    return 0 if all(verified) and not failed else 1


def _told(row: ClusterRow, rows: Sequence[ClusterRow]) -> str:
    return " | ".join(_cells(row, rows))


def _page(
    rows: Sequence[ClusterRow],
    spent: Sequence[OverheadRow],
    started: str,
    failed: Sequence[str],
) -> Iterator[str]:
    if rows:
        yield _METHOD
        head = ("work", "devices", "ms by the clock", "speed-up", "ms on the devices", "speed-up", "its steps, ms")
        moved = ("ms to and from the host", "from device", "by sockets", "")
        yield _table((*head, *moved), [_cells(row, rows) for row in rows])
    if failed:
        yield "\n".join(f"- {each}" for each in failed)
    if spent:
        yield _BESIDE + started
        head = ("work", "plain, s", "one worker, s", "all workers, s", "more on one, s", "more on all, s", "")
        yield _table(head, [_overhead_cells(row) for row in spent])


def _disk_page(read: Sequence[DiskRow]) -> str:
    shares = ("of what the disk reads", "of what it copies")
    head = ("what", "read", "written", "s", "GB/s read", *shares, "most in a worker's memory", "")
    return f"{_FROM_DISK}\n\n{_table(head, [_disk_cells(row, read) for row in read])}"


def _cells(row: ClusterRow, rows: Sequence[ClusterRow]) -> tuple[str, ...]:
    one = next(each for each in rows if each.work == row.work)
    steps = ", ".join(f"{step} {ms:.3g}" for step, ms in row.steps.items() if ms)
    if row.time_steps:
        steps += f"; {row.wall / row.time_steps:.4g} a step of time by the clock"
    return (
        row.work,
        str(row.workers),
        f"{row.wall:.4g}",
        f"{one.wall / row.wall:.2f} x",
        f"{row.device:.4g}",
        f"{one.device / row.device:.2f} x",
        steps,
        f"{row.transfer_ms:.3g}",
        short_bytes(row.device_bytes),
        short_bytes(row.socket_bytes),
        _verdict(row.right),
    )


def _overhead_cells(row: OverheadRow) -> tuple[str, ...]:
    seconds = row.plain_s, row.one_s, row.all_s, row.one_s - row.plain_s, row.all_s - row.plain_s
    return (row.work, *(f"{each:.3f}" for each in seconds), _verdict(row.right))


def _disk_cells(row: DiskRow, rows: Sequence[DiskRow]) -> tuple[str, ...]:
    return (
        row.what,
        short_bytes(row.read_bytes),
        short_bytes(row.written_bytes),
        f"{row.seconds:.2f}",
        f"{row.rate:.3g}" if row.read_bytes else "",
        _share(row, rows, disk.READ) if row.read_bytes else "",
        _share(row, rows, disk.COPY) if row.read_bytes and row.written_bytes else "",
        short_bytes(row.held_bytes) if row.held_bytes else "",
        _verdict(row.right),
    )


def _share(row: DiskRow, rows: Sequence[DiskRow], of: str) -> str:
    most = max((each.rate for each in rows if each.what == of), default=0.0)
    return f"{row.rate / most:.0%}" if most else ""


def _verdict(right: bool) -> str:
    return "verified" if right else "WRONG"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 2), "---"], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
