"""What is said of something that was written for a lesson's task, and the input on which it fails."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.messages.verdicts import Check, Verdict, lines_in_words

MANY = "random"
"""How most inputs of a task are made."""
_MOST_TOLD = 3
"""Findings that a student is told at once."""


@dataclass(frozen=True)
class StageCase:
    """An input: its size, how it is made, and the seed of what is random; and the order in which threads run."""

    n: int
    kind: str = MANY
    seed: int = 0
    schedule: str = "round-robin"

    def __str__(self) -> str:
        order = "" if self.schedule == "round-robin" else f", threads in the order {self.schedule}"
        return f"n = {self.n}, {self.kind}{order}"


@dataclass(frozen=True)
class WrongElement:
    """The first element that is not what it should be, and whether nobody wrote it."""

    array: str
    index: int
    got: float
    expected: float
    unwritten: bool

    def __str__(self) -> str:
        if self.unwritten:
            return f"nobody writes {self.array}[{self.index}], which should be {self.expected:.6g}"
        return f"{self.array}[{self.index}] is {self.got:.6g}, and should be {self.expected:.6g}"


@dataclass(frozen=True)
class LimitMet:
    """A counter at the size where it was furthest beyond its limit, or nearest to it."""

    counter: str
    n: int
    counted: float
    most: float

    @property
    def met(self) -> bool:
        return self.counted <= self.most

    def __str__(self) -> str:
        counter = self.counter.replace("_", " ")
        counter = counter[:1].upper() + counter[1:]
        return f"{counter}: {self.counted:g} at n = {self.n:,}; at most {self.most:g} are allowed"


@dataclass(frozen=True)
class Judgment:
    """What is said of something that was written for a task.

    Parameters
    ----------
    task : str
    accepted : bool
    verdict : Verdict
        In the words that results have everywhere.
    check : Check
        What the checkers found, with its lines.
    case : StageCase or None
        The smallest input on which it fails; None where it does not, or not on any input.
    wrong : WrongElement or None
        What is wrong there; None where it is not the result.
    limits : tuple of LimitMet
    runs : int
        How often it was run.
    failure : str
        Why it could not be run: it does not compile, or is another kernel; "" where it could.
    """

    task: str
    accepted: bool
    verdict: Verdict
    check: Check
    case: StageCase | None = None
    wrong: WrongElement | None = None
    limits: tuple[LimitMet, ...] = ()
    runs: int = 0
    failure: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a student is told, most important first."""
        said = [f"{_capital(self.verdict.words)}."] if not self.accepted else [f"Accepted, after {self.runs} runs."]
        if self.failure:
            said.append(self.failure)
        if self.case is not None:
            said.append(f"The smallest input that shows it: {self.case}.")
        if self.wrong is not None:
            said.append(f"There {self.wrong}.")
        places: dict[str, list[int]] = {}
        for each in self.check.diagnostics:
            if each.severity == "error":
                places.setdefault(each.message, []).append(each.line)
        for message, lines in [*places.items()][:_MOST_TOLD]:
            said.append(f"{lines_in_words(sorted(set(lines))).capitalize()}: {message}")
        said += [f"{each}." for each in self.limits]
        return tuple(dict.fromkeys(said))


def _capital(words: str) -> str:
    """Return a verdict's words as a sentence begins."""
    mark, words = ("✗ ", words[2:]) if words.startswith("✗ ") else ("", words)
    return f"{mark}{words[:1].upper()}{words[1:]}"
