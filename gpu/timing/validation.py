"""How far the model was from GPUs that were measured, as data: written by the benchmark, read by whoever says it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu.errors import InputError
from gpu.files import opening

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "modeled"
OURS, ELSEWHERE = "ours", "elsewhere"
"""Where a case's kernels are from."""

_MOST_BYTES = 2**23
_FEWEST = 10
"""Cases of which one can say what holds for nine of ten."""
_SHARE = 0.9


@dataclass(frozen=True)
class ValidatedCase:
    """A variant, or a kernel from elsewhere, on some work: measured, and modeled for the same GPU, in microseconds."""

    group: str
    of: str
    who: str
    work: str
    measured_us: float
    modeled_us: float

    @property
    def error(self) -> float:
        """Return how far the modeled time is from the measured one, as a share of that."""
        return abs(self.modeled_us / self.measured_us - 1)


@dataclass(frozen=True)
class KnownError:
    """What nine of ten cases that were tried are within.

    Parameters
    ----------
    within : float
        As a share of the measured time.
    cases : int
        How many were tried.
    of : str
        The pattern that they are all of; "" where they are of several.
    date : str
        Of the comparison.
    among : bool
        Whether the variant that was asked for is among those of its pattern.
    """

    within: float
    cases: int
    of: str
    date: str
    among: bool = True

    @property
    def words(self) -> str:
        """Return it as it stands beside a time."""
        return f"within {self.percent} % for 9 of 10 kernels tried" + ("" if self.among else ", not this one")

    @property
    def percent(self) -> int:
        """Return it in percent, rounded up."""
        return math.ceil(round(100 * self.within, 6))


@dataclass(frozen=True)
class Validation:
    """The model beside one GPU.

    Parameters
    ----------
    gpu : str
        The key of its description.
    device, date : str
        What was measured, and when it was compared.
    source : str
        What said the kernels' instructions: "sass" or "ir".
    cases : tuple of ValidatedCase
    """

    gpu: str
    device: str
    date: str
    source: str
    cases: tuple[ValidatedCase, ...]

    def error(self, pattern: str = "", variant: str = "") -> KnownError | None:
        """Return what is known of a pattern's variants, or, without one, of kernels that are not ours.

        `variant` is the one that was modeled, which may be newer than the comparison.
        """
        own = [each for each in self.cases if each.group == OURS and each.of == pattern]
        if len(own) < _FEWEST:
            pattern = ""
            own = [each for each in self.cases if each.group == ELSEWHERE]
        if len(own) < _FEWEST:
            return None
        errors = sorted(each.error for each in own)
        among = not (pattern and variant) or any(each.who == variant for each in own)
        return KnownError(errors[math.ceil(_SHARE * len(errors)) - 1], len(errors), pattern, self.date, among)


def path_of(gpu: str, source: str) -> Path:
    """Return the file of a GPU's comparison."""
    return FOLDER / f"{gpu}-{source}.json"


def write(path: Path, validation: Validation) -> None:
    """Write a comparison to a file, a case a line."""
    about = {name: value for name, value in asdict(validation).items() if name != "cases"}
    lines = ",\n".join("  " + json.dumps(asdict(each), allow_nan=False) for each in validation.cases)
    head = json.dumps(about, indent=1).rstrip("\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with opening.replacing(path) as file:
        file.write(f'{head},\n "cases": [\n{lines}\n ]\n}}\n'.encode())


def read(path: Path) -> Validation:
    """Read a comparison; InputError where the file holds none."""
    try:
        data = json.loads(opening.read_bytes(path, _MOST_BYTES))
        cases = tuple(ValidatedCase(**each) for each in data.pop("cases"))
        if not all(isinstance(value, str) for value in data.values()):
            raise TypeError("a name is none")
        if not all(_is_time(each.measured_us) and _is_time(each.modeled_us) for each in cases):
            raise ValueError("a time is none")
        return Validation(**data, cases=cases)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{opening.name_of(path.name)} holds no comparison of the model: {opening.name_of(str(error))}."
        ) from None


def find(gpu: str, source: str) -> Validation | None:
    """Return the comparison with a GPU; None where there was none."""
    path = path_of(gpu, source)
    return read(path) if path.is_file() else None


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
