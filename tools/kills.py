"""Kill Lockstep at random moments, and look at what is left of it: python -m tools.kills.

The command line, the window, its engine, both or all processes at once get a signal at any moment of their lives. Then
no process of theirs may be there, no temporary file, and beside an output nothing; the output itself is what it was or
what it should be, and the next run is right. `--jobs N` kills in N places at once, none of which sees another.
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

from gpu.files.scratch import MEMORY

ROOT = Path(__file__).resolve().parents[1]
VICTIMS = ("command", "window", "engine", "engine and window", "all")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")

_PATIENCE_S = 60.0
_WINDOW_S = 5.0
"""Within this time, or more on a busy machine, a window is killed: it opens, runs, and makes its pages."""
_MARK = "LOCKSTEP_KILLS"
COMMANDS = (
    ("run", "convolution", "--engine", "simulator", "--output", "image.png"),
    ("run", "scan", "--engine", "simulator", "--n", "100000", "--output", "sums.npy"),
    ("run", "reduction", "--engine", "simulator", "--n", "1000", "--output", "sum.csv"),
)
_NEXT = ("run", "reduction", "--engine", "simulator", "--n", "1000", "--json")
_BEFORE = b"what was there before"


@dataclass(frozen=True)
class Killed:
    """What came of one kill.

    Parameters
    ----------
    victim, by : str
        What was killed, by which signal.
    after_s : float
        How long it had been running.
    left : tuple of str
        What was wrong then; nothing, if all is well.
    """

    victim: str
    by: str
    after_s: float
    left: tuple[str, ...]


class Ground:
    """Folders and an environment of their own, to kill in and to look at afterwards.

    Parameters
    ----------
    folder : Path
        An empty one.
    memory : Path
        An empty one in memory.
    commands : sequence of tuple of str
        What may be killed; each ends with the name of its output.
    """

    def __init__(self, folder: Path, memory: Path, commands: Sequence[tuple[str, ...]]) -> None:
        self.commands = commands
        self.mark = uuid.uuid4().hex
        self.temporary, self.outputs, self.memory = folder / "temporary", folder / "outputs", memory
        for made in (self.temporary, self.outputs):
            made.mkdir()
        self._environment = {
            **os.environ,
            _MARK: self.mark,
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "LOCKSTEP_CACHE": str(folder / "cache"),
            "LOCKSTEP_MEMORY": str(memory),
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.temporary)),
            **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder / "settings")),
        }
        self.whole: dict[str, bytes] = {}
        """What the commands write when they are left alone, by the file's name."""
        self.seconds = 0.0
        """What the slowest of them takes."""
        for command in commands:
            began = time.monotonic()
            self.start(*command).communicate()
            self.seconds = max(self.seconds, time.monotonic() - began)
            self.whole[command[-1]] = (self.outputs / command[-1]).read_bytes()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start `main.py` where its outputs go; its own group hears no Ctrl+C of ours."""
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
        """Return the processes that were started here and live."""
        import psutil

        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.environ().get(_MARK) == self.mark
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def engines(self) -> list[Any]:
        """Return those of them that are engines."""
        import psutil

        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                found += [process] if any("spawn_main" in word for word in words) else []
        return found

    def orphans(self) -> list[str]:
        """Return the processes that are left."""
        return [f"process {process.pid}" for process in self.processes()]

    def files(self) -> list[str]:
        """Return the files and folders that are left."""
        left = [str(path) for where in (self.temporary, self.memory) for path in where.iterdir()]
        return left + [str(path) for path in self.outputs.iterdir() if path.name not in self.whole]

    def damaged(self) -> list[str]:
        """Return the outputs that are neither as they were nor as they should be; then all are gone."""
        found = []
        for path in self.outputs.iterdir():
            if path.read_bytes() not in (_BEFORE, self.whole.get(path.name)):
                found.append(f"{path.name} is damaged")
            path.unlink()
        return found

    def next_run(self) -> list[str]:
        """Return what is wrong with the next run."""
        process = self.start(*_NEXT)
        said, _ = process.communicate()
        with contextlib.suppress(ValueError):
            if process.returncode == 0 and json.loads(said)["verified"] is True:
                return []
        return [f"the next run ended with {process.returncode}: {said.decode(errors='replace')[-300:]}"]


def _hear_all() -> None:
    """Let signals reach what is started here, also from a shell's background: those that are ignored are inherited."""
    for name in SIGNALS[1:]:
        number = getattr(signal, name)
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def kill(ground: Ground, victim: str, by: str, moment: float, *, run_next: bool) -> Killed:
    """Start something, kill it at a moment of its life, from 0 to 1, and look at what is left."""
    number = getattr(signal, by)
    if victim == "command":
        after = moment * 1.1 * ground.seconds
        command = random.Random(f"{moment}").choice(ground.commands)
        if moment < 0.5:
            (ground.outputs / command[-1]).write_bytes(_BEFORE)
        process = ground.start(*command)
        time.sleep(after)
        process.send_signal(number)
    else:
        after = moment * max(_WINDOW_S, 3 * ground.seconds)
        process = ground.start()
        time.sleep(after)
        _kill_window(ground, process, victim, number)
    left = _ended(process) + _until_none(ground.orphans)
    if victim != "all":  # where the guard was killed as well, the next start removes what is left
        left += _until_none(ground.files)
    left += ground.damaged()
    if run_next:
        left += ground.next_run() + _until_none(ground.files)
    return Killed(victim, by, after, tuple(left))


def _kill_window(ground: Ground, process: subprocess.Popen[bytes], victim: str, number: int) -> None:
    import psutil

    killed = {"engine": ground.engines, "engine and window": ground.engines, "all": ground.processes}
    with contextlib.suppress(psutil.Error):
        for each in killed.get(victim, list)():
            each.kill()
    if victim == "engine":
        time.sleep(0.5)  # it starts another
        number = signal.SIGTERM
    process.send_signal(number)


def _ended(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ["it went on"]
    return []


def _until_none(find: Callable[[], list[str]]) -> list[str]:
    """Wait until there is nothing left; return what there still is after a long time."""
    end = time.monotonic() + _PATIENCE_S
    while (found := find()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def _folder_in_memory() -> Iterator[Path]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lockstep-kills-", dir=where) as folder:
        yield Path(folder)


def kills(
    folder: Path,
    victims: Sequence[str],
    seed: int,
    commands: Sequence[tuple[str, ...]] = COMMANDS,
    every: int = 1,
    jobs: int = 1,
) -> Iterator[Killed]:
    """Kill each of the victims, and yield what came of it, as it comes.

    Parameters
    ----------
    folder : Path
        An empty one.
    victims : sequence of str
        Of `VICTIMS`.
    seed : int
        Of the signals and the moments, which are the same for any number of jobs.
    commands : sequence of tuple of str
        What may be killed as a command.
    every : int
        After so many kills the next run is looked at.
    jobs : int
        How many are killed at the same time, each where it has folders and an environment of its own.
    """
    _hear_all()
    chance = random.Random(seed)
    waiting: queue.SimpleQueue[tuple[str, str, float, bool]] = queue.SimpleQueue()
    for number, victim in enumerate(victims, 1):
        waiting.put((victim, chance.choice(SIGNALS), chance.random(), number % every == 0))
    come: queue.SimpleQueue[Killed | Exception] = queue.SimpleQueue()

    def work(own: Path) -> None:
        try:
            own.mkdir()
            with _folder_in_memory() as memory, contextlib.suppress(queue.Empty):
                ground = Ground(own, memory, commands)
                while True:
                    victim, by, moment, run_next = waiting.get_nowait()
                    come.put(kill(ground, victim, by, moment, run_next=run_next))
        except Exception as error:
            come.put(error)

    threads = [threading.Thread(target=work, args=(folder / str(job),)) for job in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for _ in victims:
            killed = come.get()
            if isinstance(killed, Exception):
                raise killed
            yield killed
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for thread in threads:
            thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill; return 0 where nothing was left ever."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=200, help="how many times (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the signals (1)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time (1)")
    options = parser.parse_args(arguments)
    bad: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        victims = list(itertools.islice(itertools.cycle(VICTIMS), options.times))
        for number, killed in enumerate(kills(Path(folder), victims, options.seed, jobs=options.jobs), 1):
            what = f"{number}: {killed.victim} by {killed.by} after {killed.after_s:.2f} s"
            print(f"{what}: {'; '.join(killed.left) or 'nothing left'}", flush=True)
            bad[killed.victim] += bool(killed.left)
    print(", ".join(f"{victim}: {bad[victim]} bad" for victim in VICTIMS))
    return 1 if sum(bad.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
