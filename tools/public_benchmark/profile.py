"""Public measurements of programs, read from a CSV file of Nsight Compute's figures."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.errors import InputError

_PROGRAM_SUFFIX = "-cuda"
_FIELDS = (
    *("Kernel Name", "Grid Size", "Block Size", "targetName", "exeArgs", "xtime", "traffic", "spPerf", "dpPerf"),
    *("intops",),
)
_NAMESPACES = re.compile(r"\(anonymous namespace\)::")
_CASTS = re.compile(r"\((?:unsigned )?(?:int|bool|char|short|long)\)")

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class MeasuredLaunch:
    """A measured launch.

    Parameters
    ----------
    program : str
        Folder of the program.
    arguments : str
        The program's arguments, separated by spaces.
    kernel : str
        The kernel's name with its signature, as the profiler prints it.
    """

    program: str
    arguments: str
    kernel: str
    grid: Extents
    block: Extents
    time_us: float
    dram_bytes: float
    float32_operations: float
    float64_operations: float
    integer_operations: float

    @property
    def is_tuned(self) -> bool:
        """Whether the launch is of a program that may be used to improve the timing model."""
        return is_tuned(self.program)

    @property
    def key(self) -> str:
        """A text that identifies the launch within its program."""
        return f"{format_kernel_name(self.kernel)} {self.grid} {self.block}"


def is_tuned(program: str) -> bool:
    """Return whether a program is in the half that may be used to improve the timing model: by the name's hash."""
    return hashlib.sha256(program.encode()).digest()[0] % 2 == 0


def read_profile(path: Path) -> list[MeasuredLaunch]:
    """Read the measured launches of CUDA programs, the first of each program, kernel, grid and block.

    Raises
    ------
    InputError
        The file cannot be read, or has another format.
    """
    launches: dict[tuple[str, str], MeasuredLaunch] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for launch in _iterate_launches(csv.DictReader(file)):
                launches.setdefault((launch.program, launch.key), launch)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, KeyError, csv.Error) as error:
        raise InputError(f"{path} does not contain profiled launches: {error}.") from None
    if not launches:
        raise InputError(f"{path} does not contain profiled launches of CUDA programs.")
    return list(launches.values())


def group_programs(launches: Sequence[MeasuredLaunch]) -> dict[str, list[MeasuredLaunch]]:
    """Return the launches by program, those of the shortest measured time first."""
    programs: dict[str, list[MeasuredLaunch]] = defaultdict(list)
    for launch in launches:
        programs[launch.program].append(launch)
    return dict(sorted(programs.items(), key=lambda item: sum(launch.time_us for launch in item[1])))


def _iterate_launches(reader: csv.DictReader[str]) -> Iterator[MeasuredLaunch]:
    missing = [name for name in _FIELDS if name not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"there is no column {missing[0]}")
    for row in reader:
        if not row["targetName"].endswith(_PROGRAM_SUFFIX):
            continue
        seconds = float(row["xtime"]) * 1e-9
        yield MeasuredLaunch(
            row["targetName"], row["exeArgs"], row["Kernel Name"],
            _parse_extents(row["Grid Size"]), _parse_extents(row["Block Size"]), seconds * 1e6,
            float(row["traffic"]) * seconds, float(row["spPerf"]) * seconds, float(row["dpPerf"]) * seconds,
            float(row["intops"]),
        )  # fmt: skip


def _parse_extents(text: str) -> Extents:
    x, y, z = (int(word) for word in text.strip("()").split(","))
    return x, y, z


def format_kernel_name(text: str) -> str:
    """Return a kernel's name, with template arguments, without its namespaces, result and parameters.

    Both the profiler's and the simulator's spelling give the same text.
    """
    mangled = re.fullmatch(r"_ZL?(\d+)(\w+)", text)
    if mangled:
        return mangled[2][: int(mangled[1])]
    text = _CASTS.sub("", _NAMESPACES.sub("", text))
    head, arguments = _split_template(text)
    name = re.split(r"::|\s", head.split("(")[0].strip())[-1]
    return re.sub(r"\s", "", f"{name}{arguments}")


def _split_template(text: str) -> tuple[str, str]:
    """Return the text before a name's template arguments, and the arguments with their brackets; "" without."""
    start = text.find("<")
    if start < 0 or "(" in text[:start]:
        return text, ""
    depth = 0
    for index in range(start, len(text)):
        depth += {"<": 1, ">": -1}.get(text[index], 0)
        if depth == 0:
            return text[:start], text[start : index + 1]
    return text[:start], text[start:]
