"""Fuzz everything that reads untrusted input: python -m tools.fuzz, or `make fuzz`.

An area is a module in tests/attacks with `attack(random, folder)`, which generates one hostile input in an empty
folder, passes it to the code under attack, and raises unless that succeeds or refuses the input in one sentence. A seed
determines all inputs of an area, whichever of them run. Batches run in processes with limits, two at a time (`--jobs`).
The limit of a run counts computing time, so that a busy machine tests as many inputs as an idle one. Failures are kept
in a folder with the reason, and the results of a complete run are written to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import os
import pkgutil
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.base.child_processes import ONE_THREAD, kill_group, start_python
from gpu.base.paths import DOCS
from gpu.base.resource_limits import lower_limit

PAGE = DOCS / "reliability.md"
ATTACKS = "tests.attacks"
LIMIT_S = 10.0
"""Limit of an attack's computing time, in seconds."""
_LONGEST_WAIT = 6
"""Largest elapsed time of an attack, as a multiple of this limit: a busy machine runs it only part of the time."""

LIMIT_BYTES = 2**30
"""Memory limit of a process of attacks, in addition to its memory at the start."""

PASSED, TRACEBACK, HANG, MEMORY, CRASHED = "passed", "tracebacks", "hangs", "too much memory", "ended by a signal"
OUTCOMES = (PASSED, TRACEBACK, HANG, MEMORY, CRASHED)

_HEADING = "## Fuzzing"
_BATCH, _BATCH_S = 500, 10.0
"""The most attacks of a batch, and the computing time in seconds after which it starts no other one."""

_AREA_SHARE = 0.1
"""The largest part of a run's inputs that one area generates, so that fast areas leave time to slow ones."""

_GRACE_PERIOD_S = 20.0
DEFAULT_JOBS = 2
"""Default number of simultaneous batches."""

Attack = Callable[[np.random.Generator, Path], None]


class _HangError(BaseException):
    """An attack took too long; a BaseException, so that no `except Exception` of the code under attack catches it."""


def list_areas() -> list[str]:
    """Return the names of the attack modules, sorted."""
    parent = importlib.import_module(ATTACKS)
    return sorted(module.name for module in pkgutil.iter_modules(parent.__path__))


def load_attack(area: str, package: str = ATTACKS) -> Attack:
    """Return the attack function of an area."""
    attack: Attack = importlib.import_module(f"{package}.{area}").attack
    return attack


def make_generator(area: str, seed: int, number: int) -> np.random.Generator:
    """Return the random generator of the attack with that number."""
    return np.random.default_rng([seed, zlib.crc32(area.encode()), number])


# --- in the process of a batch


@dataclass(frozen=True)
class Batch:
    """Consecutive attacks of one area.

    Parameters
    ----------
    seed, first, count : int
        `count` attacks with numbers from `first`.
    limit_s : float
        Time limit of each attack, in seconds.
    """

    area: str
    package: str
    seed: int
    first: int
    count: int
    failures_folder: Path
    limit_s: float = LIMIT_S

    def failure_folder(self, number: int) -> Path:
        """Return the folder of a failed attack."""
        return self.failures_folder / f"{self.area}-{self.seed}-{number}"


def run_attacks(batch: Batch, output: IO[str]) -> None:
    """Run the attacks; write a line when each starts ("NUMBER") and one with its outcome ("NUMBER OUTCOME")."""
    attack = load_attack(batch.area, batch.package)
    _limit_memory()
    warnings.simplefilter("error")  # a user would see them, so they count as failures
    for number in range(batch.first, batch.first + batch.count):
        output.write(f"{number}\n")
        output.flush()
        outcome = _run_attack(attack, batch, number)
        output.write(f"{number} {outcome}\n")
        output.flush()
        if sum(os.times()[:4]) > _BATCH_S:
            return


def _run_attack(attack: Attack, batch: Batch, number: int) -> str:
    folder = batch.failure_folder(number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    outcome = PASSED
    try:
        with _time_limit(batch.limit_s):
            attack(make_generator(batch.area, batch.seed, number), folder)
    except BaseException as error:
        outcome = HANG if isinstance(error, _HangError) else MEMORY if isinstance(error, MemoryError) else TRACEBACK
        (folder / "why.txt").write_text(traceback.format_exc(), "utf-8", errors="backslashreplace")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    computing_s, start_s = time.process_time(), time.monotonic()

    def on_alarm(_number: int, _frame: object) -> None:
        computed_s = time.process_time() - computing_s
        if computed_s >= 0.9 * seconds or time.monotonic() - start_s >= _LONGEST_WAIT * seconds:
            raise _HangError

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 4)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _limit_memory() -> None:
    """Limit this process's data to its current size plus the limit of a batch."""
    status = Path("/proc/self/status")
    data = re.search(r"VmData:\s*(\d+) kB", status.read_text()) if status.exists() else None
    most = LIMIT_BYTES + (int(data[1]) << 10 if data else 2**30)
    lower_limit("RLIMIT_DATA", most, most)
    lower_limit("RLIMIT_CORE", 0, 0)


# --- in the main process


@dataclass
class Tally:
    """Outcomes of the attacks of one area, and their computing time in seconds."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def attack_count(self) -> int:
        """Number of attacks."""
        return self.outcomes.total()

    @property
    def passed(self) -> bool:
        """Whether no attack failed."""
        return self.outcomes[PASSED] == self.attack_count


def run_batch(batch: Batch) -> Tally:
    """Run a batch in a separate process; return the outcomes, also of an attack that killed or blocked the process."""
    counts: Counter[str] = Counter()
    arguments = [batch.area, batch.package, batch.seed, batch.first, batch.count, batch.failures_folder, batch.limit_s]
    environment = {"QT_QPA_PLATFORM": "offscreen", **ONE_THREAD}
    command = "-m", "tools.fuzz", "--batch", *map(str, arguments)
    process = start_python(*command, stdin=subprocess.DEVNULL, environment=environment, own_session=True)
    assert process.stdout is not None
    stuck = threading.Event()

    def end() -> None:
        stuck.set()
        kill_group(process.pid)

    # An attack that hangs in C code never sees its own alarm, so this timer restarts with each line.
    watch = threading.Timer(4 * _GRACE_PERIOD_S, end)
    watch.start()
    number = ""
    for line in process.stdout:
        watch.cancel()
        watch = threading.Timer(_LONGEST_WAIT * batch.limit_s + _GRACE_PERIOD_S, end)
        watch.start()
        number, _, outcome = line.decode().rstrip().partition(" ")
        if outcome:
            counts[outcome] += 1
            number = ""
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    watch.cancel()
    kill_group(process.pid)  # processes that an attack left running
    if number:
        counts[HANG if stuck.is_set() else CRASHED] += 1
        reason = "It did not return." if stuck.is_set() else f"Its process ended with {code}."
        (batch.failure_folder(int(number)) / "why.txt").write_text(reason, "utf-8")
    elif code:
        raise SystemExit(f"Cannot run the attacks of {batch.area}: their process ended with {code}.")
    return Tally(counts, usage.ru_utime + usage.ru_stime)


def attack_areas(
    chosen: Sequence[str],
    seed: int,
    inputs: int,
    seconds: float,
    failures_folder: Path,
    *,
    package: str = ATTACKS,
    jobs: int = DEFAULT_JOBS,
) -> dict[str, Tally]:
    """Attack every area for the same computing time, until a number of inputs or the time limit is reached.

    Parameters
    ----------
    inputs : int
        No batch starts after this number of inputs, or of an area after its share of them.
    seconds : float
        Limit of the computing time of each job.
    jobs : int
        Simultaneous batches.
    """
    tallies = {area: Tally() for area in chosen}
    next_numbers, running = dict.fromkeys(chosen, 0), dict.fromkeys(chosen, 0)
    share = max(inputs * _AREA_SHARE, inputs / len(chosen))
    lock = threading.Lock()

    def choose_area() -> str | None:
        open_areas = [area for area in chosen if tallies[area].attack_count < share]
        started_s = sum(tally.seconds for tally in tallies.values()) + sum(running.values()) * _BATCH_S
        done = sum(tally.attack_count for tally in tallies.values())
        if not open_areas or started_s >= jobs * seconds or done >= inputs:
            return None
        return min(open_areas, key=lambda each: tallies[each].seconds + running[each] * _BATCH_S)

    def work() -> None:
        while True:
            with lock:
                area = choose_area()
                if area is None:
                    return
                running[area] += 1
                first, next_numbers[area] = next_numbers[area], next_numbers[area] + _BATCH
            tally = run_batch(Batch(area, package, seed, first, min(_BATCH, inputs), failures_folder))
            with lock:
                tallies[area].outcomes.update(tally.outcomes)
                tallies[area].seconds += tally.seconds
                running[area] -= 1
                print(f"{area}: {dict(tally.outcomes)} in {tally.seconds:.1f} s", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(work) for _ in range(jobs)]:
            future.result()
    return tallies


# --- the page


def format_table(tallies: dict[str, Tally]) -> str:
    """Return the outcomes as a table with one row per area."""
    rows = [("area", "inputs", *OUTCOMES), ("---", *["---:"] * (1 + len(OUTCOMES)))]
    for area, tally in sorted(tallies.items()):
        rows.append((area.replace("_", " "), *(f"{count:,}" for count in _table_counts(tally))))
    total = Tally(sum((tally.outcomes for tally in tallies.values()), Counter()))
    rows.append(("**all**", *(f"**{count:,}**" for count in _table_counts(total))))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _table_counts(tally: Tally) -> list[int]:
    return [tally.attack_count, *(tally.outcomes[outcome] for outcome in OUTCOMES)]


def write_page(path: Path, processor: str, method: str, tallies: dict[str, Tally]) -> None:
    """Replace the page's section by the table; keep the rest of the page.

    Parameters
    ----------
    path : Path
        The page, which has a section with this heading.
    processor : str
        The processor's name and number of cores, for the heading.
    method : str
        The paragraph before the table.
    tallies : dict of str to Tally
        The outcomes by area.

    Raises
    ------
    SystemExit
        The page has no such section.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = path.read_text("utf-8")
    before, heading, rest = text.partition(f"{_HEADING}:")
    if not heading:
        raise SystemExit(f"{path} has no section that begins with {_HEADING}.")
    after = re.search(r"^## ", rest, re.MULTILINE)
    section = f"{_HEADING}: {processor}, {today}\n\n{method}\n\n{format_table(tallies)}\n"
    path.write_text(before + section + ("\n" + rest[after.start() :] if after else ""), "utf-8")


def main() -> int:
    """Attack, write the page, and return 0 if no attack failed."""
    parser = argparse.ArgumentParser(
        prog="make fuzz", description="Fuzzes everything that reads; set ARGS for options."
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="limit of each job's computing time (default: 10)")
    parser.add_argument(
        "--inputs", type=int, default=50_000, help="number of inputs after which no batch starts (default: 50000)"
    )
    parser.add_argument("--seed", type=int, help="seed of the inputs (default: a new one each time)")
    parser.add_argument(
        "--jobs", type=int, default=DEFAULT_JOBS, help=f"simultaneous batches (default: {DEFAULT_JOBS})"
    )
    parser.add_argument(
        "--area", choices=list_areas(), action="append", help="attack only this area; do not write the page"
    )
    parser.add_argument("--kept", type=Path, help="folder for failures, each with why.txt (default: a new folder)")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    kept = options.kept or Path(tempfile.mkdtemp(prefix="lockstep-fuzz-"))
    chosen = options.area or list_areas()
    tallies = attack_areas(chosen, seed, options.inputs, 60 * options.minutes, kept, jobs=options.jobs)
    used_s = sum(tally.seconds for tally in tallies.values())
    print(format_table(tallies))
    if not options.area:
        from gpu.base.devices.processor import count_cores, processor_name

        method = f"Seed {seed}, {used_s:.0f} s of computing, {options.jobs} processes at a time."
        write_page(PAGE, f"{processor_name()}, {count_cores()} cores", method, tallies)
    if all(tally.passed for tally in tallies.values()):
        with contextlib.suppress(OSError):
            kept.rmdir()
        return 0
    print(f"The failures are in {kept}.")
    return 1


def _parse_batch(arguments: Sequence[str]) -> Batch:
    area, package, seed, first, count, kept, limit_s = arguments
    return Batch(area, package, int(seed), int(first), int(count), Path(kept), float(limit_s))


def _run_batch_process(arguments: Sequence[str]) -> None:
    """Run a batch in this process; write its outcomes where the code under attack cannot write."""
    outcomes: Any = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with outcomes:
        run_attacks(_parse_batch(arguments), outcomes)
        sys.stdout.flush()
        outcomes.flush()
        os._exit(0)  # without waiting for threads that an attack left running


if __name__ == "__main__":
    if sys.argv[1:2] == ["--batch"]:
        _run_batch_process(sys.argv[2:])
    sys.exit(main())
