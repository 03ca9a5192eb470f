"""Kill Lockstep at random moments, and check what remains: python -m tools.kills.

The command line, the window, its engine, both or all processes get a signal at a random moment. Afterwards no process
and no temporary file of theirs may remain, and no file next to an output; the output is unchanged or complete, and the
next run succeeds. `--jobs N` runs N kills at the same time, in separate environments.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu.base.paths import ROOT
from gpu.files.scratch import MEMORY_FOLDER

VICTIMS = ("command", "window", "engine", "engine and window", "all")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")

_TIMEOUT_S = 60.0
_WINDOW_S = 5.0
"""Time in which a window is killed, longer on a busy machine: it opens, runs, and builds its pages."""
_MARK_VARIABLE = "LOCKSTEP_KILLS"
COMMANDS = (
    ("run", "convolution", "--engine", "simulator", "--output", "image.png"),
    ("run", "scan", "--engine", "simulator", "--n", "100000", "--output", "sums.npy"),
    ("run", "reduction", "--engine", "simulator", "--n", "1000", "--output", "sum.csv"),
)
_NEXT_COMMAND = ("run", "reduction", "--engine", "simulator", "--n", "1000", "--json")
_OLD_CONTENT = b"what was there before"


@dataclass(frozen=True)
class KillResult:
    """Result of one kill.

    Parameters
    ----------
    after_s : float
        Seconds from the start to the signal.
    remains : tuple of str
        Remains and other faults; empty if there are none.
    """

    victim: str
    signal_name: str
    after_s: float
    remains: tuple[str, ...]


class KillEnvironment:
    """Folders and an environment for kills, and checks of what remains in them.

    Parameters
    ----------
    folder : Path
        An empty folder.
    memory : Path
        An empty folder in memory.
    commands : sequence of tuple of str
        Commands to kill; each ends with the name of its output.
    """

    def __init__(self, folder: Path, memory: Path, commands: Sequence[tuple[str, ...]]) -> None:
        self.commands = commands
        self.mark = uuid.uuid4().hex
        self.temporary, self.outputs, self.memory = folder / "temporary", folder / "outputs", memory
        for new_folder in (self.temporary, self.outputs):
            new_folder.mkdir()
        self._environment = {
            **os.environ,
            _MARK_VARIABLE: self.mark,
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "LOCKSTEP_CACHE": str(folder / "cache"),
            "LOCKSTEP_MEMORY": str(memory),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.temporary)),
            **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder / "settings")),
        }
        self.complete_outputs: dict[str, bytes] = {}
        """Complete output of each command, by file name."""
        self.slowest_s = 0.0
        """Duration of the slowest command."""
        for command in commands:
            start = time.monotonic()
            self.start(*command).communicate()
            self.slowest_s = max(self.slowest_s, time.monotonic() - start)
            self.complete_outputs[command[-1]] = (self.outputs / command[-1]).read_bytes()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start `main.py` in the output folder, in a separate process group that our Ctrl+C does not reach."""
        return subprocess.Popen(
            [sys.executable, str(ROOT / "main.py"), *arguments],
            cwd=self.outputs,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def processes(self) -> list[Any]:
        """Return the live processes that were started here."""
        import psutil

        processes = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                is_ours = process.environ().get(_MARK_VARIABLE) == self.mark
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    processes.append(process)
        return processes

    def engines(self) -> list[Any]:
        """Return the engine processes among them."""
        import psutil

        engines = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                engines += [process] if any("spawn_main" in word for word in words) else []
        return engines

    def orphans(self) -> list[str]:
        """Return the remaining processes."""
        return [f"process {process.pid}" for process in self.processes()]

    def files(self) -> list[str]:
        """Return the remaining files and folders."""
        remains = [str(path) for where in (self.temporary, self.memory) for path in where.iterdir()]
        return remains + [str(path) for path in self.outputs.iterdir() if path.name not in self.complete_outputs]

    def find_damaged_outputs(self) -> list[str]:
        """Return the outputs that are neither unchanged nor complete; delete all outputs."""
        faults = []
        for path in self.outputs.iterdir():
            if path.read_bytes() not in (_OLD_CONTENT, self.complete_outputs.get(path.name)):
                faults.append(f"{path.name} is damaged")
            path.unlink()
        return faults

    def check_next_run(self) -> list[str]:
        """Return the faults of the next run."""
        process = self.start(*_NEXT_COMMAND)
        output, _ = process.communicate()
        with contextlib.suppress(ValueError):
            if process.returncode == 0 and json.loads(output)["verified"] is True:
                return []
        return [f"the next run ended with {process.returncode}: {output.decode(errors='replace')[-300:]}"]


def _restore_signals() -> None:
    """Restore the default signal handlers, which child processes inherit: a shell's background jobs ignore some."""
    for name in SIGNALS[1:]:
        number = getattr(signal, name)
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def kill(environment: KillEnvironment, victim: str, signal_name: str, fraction: float, *, run_next: bool) -> KillResult:
    """Start a victim, kill it, and check what remains.

    Parameters
    ----------
    environment : KillEnvironment
        The folders and commands.
    victim : str
        One of `VICTIMS`.
    signal_name : str
        One of `SIGNALS`, which is sent to the command or the window.
    fraction : float
        The moment of the signal as a fraction of the victim's life, from 0 to 1.
    run_next : bool
        Whether to check also that a run afterward succeeds.
    """
    number = getattr(signal, signal_name)
    if victim == "command":
        after = fraction * 1.1 * environment.slowest_s
        command = random.Random(f"{fraction}").choice(environment.commands)
        if fraction < 0.5:
            (environment.outputs / command[-1]).write_bytes(_OLD_CONTENT)
        process = environment.start(*command)
        time.sleep(after)
        process.send_signal(number)
    else:
        after = fraction * max(_WINDOW_S, 3 * environment.slowest_s)
        process = environment.start()
        time.sleep(after)
        _kill_window(environment, process, victim, number)
    left = _wait_for_end(process) + _wait_until_none(environment.orphans)
    if victim != "all":  # if the guard process was killed too, the next start removes the remains
        left += _wait_until_none(environment.files)
    left += environment.find_damaged_outputs()
    if run_next:
        left += environment.check_next_run() + _wait_until_none(environment.files)
    return KillResult(victim, signal_name, after, tuple(left))


def _kill_window(ground: KillEnvironment, process: subprocess.Popen[bytes], victim: str, number: int) -> None:
    import psutil

    targets = {"engine": ground.engines, "engine and window": ground.engines, "all": ground.processes}
    with contextlib.suppress(psutil.Error):
        for each in targets.get(victim, list)():
            each.kill()
    if victim == "engine":
        time.sleep(0.5)  # the window starts another engine
        number = signal.SIGTERM
    process.send_signal(number)


def _wait_for_end(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ["it did not end"]
    return []


def _wait_until_none(find_remains: Callable[[], list[str]]) -> list[str]:
    """Wait until nothing remains; return what remains after the time limit."""
    end = time.monotonic() + _TIMEOUT_S
    while (remains := find_remains()) and time.monotonic() < end:
        time.sleep(0.05)
    return remains


@contextlib.contextmanager
def _memory_folder() -> Iterator[Path]:
    where = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lockstep-kills-", dir=where) as folder:
        yield Path(folder)


def run_kills(
    folder: Path,
    victims: Sequence[str],
    seed: int,
    commands: Sequence[tuple[str, ...]] = COMMANDS,
    check_interval: int = 1,
    jobs: int = 1,
) -> Iterator[KillResult]:
    """Kill each of the victims, and yield the results as they come.

    Parameters
    ----------
    folder : Path
        An empty folder.
    victims : sequence of str
        Names from `VICTIMS`.
    seed : int
        Seed of the signals and the moments, which do not depend on the number of jobs.
    commands : sequence of tuple of str
        Commands to kill for the victim "command".
    check_interval : int
        Number of kills between checks of the next run.
    jobs : int
        Kills at the same time, each with separate folders and a separate environment.
    """
    _restore_signals()
    chance = random.Random(seed)
    waiting: queue.SimpleQueue[tuple[str, str, float, bool]] = queue.SimpleQueue()
    for number, victim in enumerate(victims, 1):
        waiting.put((victim, chance.choice(SIGNALS), chance.random(), number % check_interval == 0))
    results: queue.SimpleQueue[KillResult | Exception] = queue.SimpleQueue()

    def work(job_folder: Path) -> None:
        try:
            job_folder.mkdir()
            with _memory_folder() as memory, contextlib.suppress(queue.Empty):
                ground = KillEnvironment(job_folder, memory, commands)
                while True:
                    victim, by, moment, run_next = waiting.get_nowait()
                    results.put(kill(ground, victim, by, moment, run_next=run_next))
        except Exception as error:
            results.put(error)

    threads = [threading.Thread(target=work, args=(folder / str(job),)) for job in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for _ in victims:
            result = results.get()
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for thread in threads:
            thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, and return 0 if no kill left anything behind."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=200, help="number of kills (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments and the signals (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="kills at the same time (default: 1)")
    options = parser.parse_args(arguments)
    bad: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        victims = list(itertools.islice(itertools.cycle(VICTIMS), options.times))
        for number, killed in enumerate(run_kills(Path(folder), victims, options.seed, jobs=options.jobs), 1):
            event = f"{number}: {killed.victim} by {killed.signal_name} after {killed.after_s:.2f} s"
            print(f"{event}: {'; '.join(killed.remains) or 'nothing left'}", flush=True)
            bad[killed.victim] += bool(killed.remains)
    print(", ".join(f"{victim}: {bad[victim]} bad" for victim in VICTIMS))
    return 1 if sum(bad.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
