"""Comparisons of the timing model with measured GPUs, as data: written by the benchmark, read for error estimates."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files import file_access

FOLDER = ASSETS / "modeled"
OURS, EXTERNAL = "ours", "elsewhere"
"""The origin of a case's kernels."""

_MAXIMUM_BYTES = 2**23
_MINIMUM_CASES = 10
"""The fewest cases from which an error of nine out of ten is stated."""
_SHARE = 0.9


@dataclass(frozen=True)
class ValidatedCase:
    """The measured and the modeled time of a kernel on the same GPU.

    Parameters
    ----------
    group : str
        `OURS` or `EXTERNAL`.
    of, who : str
        The pattern and the variant, or the source and the name of an external kernel.
    work : str
        The input and launch parameters.
    measured_us, modeled_us : float
        In microseconds.
    """

    group: str
    of: str
    who: str
    work: str
    measured_us: float
    modeled_us: float

    @property
    def error(self) -> float:
        """Return the relative error of the modeled time."""
        return abs(self.modeled_us / self.measured_us - 1)


@dataclass(frozen=True)
class ErrorBound:
    """The error that nine out of ten compared cases do not exceed.

    Parameters
    ----------
    relative_error : float
        The relative error.
    cases : int
        The number of compared cases.
    pattern : str
        The pattern of all cases; "" for cases of several patterns.
    date : str
        The date of the comparison.
    includes_variant : bool
        Whether the requested variant is among the compared ones.
    """

    relative_error: float
    cases: int
    pattern: str
    date: str
    includes_variant: bool = True

    @property
    def text(self) -> str:
        """The error as text, shown next to a time."""
        return f"within {self.percent}% for 9 of 10 kernels tried" + ("" if self.includes_variant else ", not this one")

    @property
    def percent(self) -> int:
        """The error in percent, rounded up."""
        return math.ceil(round(100 * self.relative_error, 6))


@dataclass(frozen=True)
class Validation:
    """A comparison of the timing model with one GPU.

    Parameters
    ----------
    gpu : str
        The key of the GPU's description.
    device, date : str
        The measured device, and the date of the comparison.
    source : str
        The origin of the kernels' instructions: "sass" or "ir".
    cases : tuple of ValidatedCase
    measured_date : str
        The date of the measurement; "" if it is the comparison's.
    """

    gpu: str
    device: str
    date: str
    source: str
    cases: tuple[ValidatedCase, ...]
    measured_date: str = ""

    def find_error_bound(self, pattern: str = "", variant: str = "") -> ErrorBound | None:
        """Return the known error for a pattern's variants or, without a pattern, for external kernels.

        `variant` is the modeled variant, which may be newer than the comparison.
        """
        own_cases = [case for case in self.cases if case.group == OURS and case.of == pattern]
        if len(own_cases) < _MINIMUM_CASES:
            pattern = ""
            own_cases = [case for case in self.cases if case.group == EXTERNAL]
        if len(own_cases) < _MINIMUM_CASES:
            return None
        errors = sorted(each.error for each in own_cases)
        is_compared = not (pattern and variant) or any(each.who == variant for each in own_cases)
        return ErrorBound(errors[math.ceil(_SHARE * len(errors)) - 1], len(errors), pattern, self.date, is_compared)


def validation_path(gpu: str, source: str) -> Path:
    """Return the path of a GPU's comparison."""
    return FOLDER / f"{gpu}-{source}.json"


def write_validation(path: Path, validation: Validation) -> None:
    """Write a comparison to a file, with one case per line."""
    header = {name: value for name, value in asdict(validation).items() if name != "cases"}
    lines = ",\n".join("  " + json.dumps(asdict(case), allow_nan=False) for case in validation.cases)
    header_text = json.dumps(header, indent=1).rstrip("\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_access.replace_file(path) as file:
        file.write(f'{header_text},\n "cases": [\n{lines}\n ]\n}}\n'.encode())


def read_validation(path: Path) -> Validation:
    """Read a comparison; raise InputError if the file is invalid."""
    try:
        data = json.loads(file_access.read_bytes(path, _MAXIMUM_BYTES))
        cases = tuple(ValidatedCase(**each) for each in data.pop("cases"))
        if not all(isinstance(value, str) for value in data.values()):
            raise TypeError("a name is not a string")
        if not all(_is_time(case.measured_us) and _is_time(case.modeled_us) for case in cases):
            raise ValueError("a time is not a positive number")
        return Validation(**data, cases=cases)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{file_access.format_path(path.name)} is not a valid comparison of the timing model: "
            f"{file_access.format_path(str(error))}."
        ) from None


def find_validation(gpu: str, source: str) -> Validation | None:
    """Return the comparison with a GPU; None if there is none."""
    path = validation_path(gpu, source)
    return read_validation(path) if path.is_file() else None


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
