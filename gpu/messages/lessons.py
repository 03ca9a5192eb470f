"""Lessons as they cross between the processes: what there is, what a step shows and asks, what is to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu.messages.judgments import Judgment


@dataclass(frozen=True)
class AskedQuestion:
    """A question, asked of one recording.

    Parameters
    ----------
    kind, prompt : str
    form : {"cells", "threads", "number", "thread", "choice"}
        What an answer is: a set of elements of `array`, a set of threads of `block`, a number, a pair (block, thread),
        or one of `choices`.
    answer : frozenset of int, int, float, (int, int) or str
    why : str
        What happened, in a sentence.
    choices : tuple of str
    array : str
        The array that is meant; "" for none.
    block : int
        The block that is meant, or whose shared array it is.
    moment : int
        The moment at which what is asked for is seen.
    line : int
        The line that does it; 0 for none.
    source : str
        That line's text.
    hints : tuple of str
        One after the other; the last names the line.
    size : int
        How many elements, or threads, there are to choose from.
    """

    kind: str
    prompt: str
    form: str
    answer: Any
    why: str
    choices: tuple[str, ...] = ()
    array: str = ""
    block: int = 0
    moment: int = 0
    line: int = 0
    source: str = ""
    hints: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True)
class AnswerMark:
    """What is said of an answer.

    Parameters
    ----------
    right : bool
    words : str
        Of a wrong one what happened instead, and which line does it.
    missing, extra : frozenset of int
        Of a set what was left out, and what does not belong.
    moment, line : int
        Where it is seen.
    """

    right: bool
    words: str
    missing: frozenset[int] = frozenset()
    extra: frozenset[int] = frozenset()
    moment: int = 0
    line: int = 0


@dataclass(frozen=True)
class LineFrame:
    """The text around the lines that a task has put into order.

    Parameters
    ----------
    before, after : str
    indent : str
        What each of the lines begins with, besides its own indent.
    """

    before: str
    indent: str
    after: str

    def filled(self, lines: tuple[str, ...]) -> str:
        """Return the whole text with the lines in an order."""
        return self.before + "".join(f"{self.indent}{line}\n" for line in lines) + self.after


@dataclass(frozen=True)
class TaskOutline:
    """A task as a student sees it.

    Parameters
    ----------
    name, kind, prompt : str
        As of a lesson's `Task`.
    file : str
        The name of the kernel file that is to be written.
    start : str
        What a student begins with.
    pieces : tuple of str
        The shuffled lines, where they are to be put into order.
    frame : LineFrame or None
        What is around them.
    limits : tuple of str
        What may be taken at most, in words.
    hints : tuple of str
    """

    name: str
    kind: str
    prompt: str
    file: str
    start: str
    pieces: tuple[str, ...] = ()
    frame: LineFrame | None = None
    limits: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepOutline:
    """A step as a student sees it before it is opened.

    Parameters
    ----------
    title, text : str
        The text is Markdown.
    asks : str
        The kind of its question; "" for none.
    task : TaskOutline or None
    shows : bool
        Whether there is anything to be shown.
    """

    title: str
    text: str
    asks: str = ""
    task: TaskOutline | None = None
    shows: bool = False


@dataclass(frozen=True)
class LessonOutline:
    """A lesson as a student sees it.

    Parameters
    ----------
    folder : str
    name, title : str
        The folder's name, and the lesson's.
    minutes : int
    needs : tuple of str
        The names of lessons that come before.
    text : str
        What comes before the first step, in Markdown.
    steps : tuple of StepOutline
    lifts : tuple of (str, str)
        Patterns and variants whose limits it lifts.
    """

    folder: str
    name: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    text: str
    steps: tuple[StepOutline, ...]
    lifts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class LessonShelf:
    """The lessons of a folder, in their order, and what is wrong with those that cannot be read: file, line, reason."""

    folder: str
    lessons: tuple[LessonOutline, ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownScene:
    """What a step shows, as the seed chose it.

    Parameters
    ----------
    tab : str
        run, step, compare or atomics.
    pattern, variant : str
        "" where it is a kernel of the lesson's own.
    parameters : mapping
        The pattern's; of a kernel of the lesson's own `n`.
    title : str
        What is shown, in words.
    file, kernel : str
        The name of the kernel file, and the kernel that is launched first.
    moment : int
        Where the place is, in the recording.
    asked : AskedQuestion or None
    """

    tab: str
    pattern: str
    variant: str
    parameters: Mapping[str, Any]
    title: str
    file: str = ""
    kernel: str = ""
    moment: int = 0
    asked: AskedQuestion | None = None


@dataclass(frozen=True)
class ReadLessons:
    """Read the lessons in a folder, or the one that it is: the Result's `shelf`.

    `folder` is "" for Lockstep's own.
    """

    folder: str = ""


@dataclass(frozen=True)
class ShowStep:
    """Record what a step of a lesson shows, and ask its question: the Result's `scene`, and `path` as of a StepPattern.

    Parameters
    ----------
    folder : str
        The lesson's.
    step : int
        From 0.
    seed : int
        What inputs and questions grow from: another one asks another question.
    """

    folder: str
    step: int
    seed: int = 0


@dataclass(frozen=True)
class JudgeTask:
    """Judge what was written for a task: the Result's `judgment`.

    Parameters
    ----------
    folder, task : str
        The lesson's, and the task's name.
    text : str
        A whole kernel file.
    """

    folder: str
    task: str
    text: str


@dataclass(frozen=True)
class StepJudged:
    """Record the smallest input on which a text fails: the Result's `path` and, as its `scene`, where it goes wrong."""

    task: JudgeTask
    judgment: Judgment


LessonRequest = ReadLessons | ShowStep | JudgeTask | StepJudged
