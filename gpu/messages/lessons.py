"""Messages about lessons: outlines, recorded scenes with questions, and tasks to grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu.messages.judgments import Judgment
from gpu.messages.requests import Request
from gpu.messages.runs.recordings import RecordingFile


@dataclass(frozen=True)
class RecordingQuestion:
    """Question about one recording.

    Parameters
    ----------
    answer_type : {"cells", "threads", "number", "thread", "choice"}
        Type of the answer: a set of elements of `array`, a set of threads of `block`, a number, a pair (block,
        thread), or one of `choices`.
    answer : frozenset of int, int, float, (int, int) or str
    explanation : str
        Explanation of the answer, in a sentence.
    array : str
        The array that the question is about; "" if none.
    block : int
        The block that the question is about, or the block of its shared array.
    moment : int
        The moment that shows the answer.
    line : int
        The source line that causes the answer; 0 if none.
    source : str
        Text of that line.
    hints : tuple of str
        Hints in order; the last names the line.
    size : int
        Number of elements or threads to choose from.
    """

    kind: str
    prompt: str
    answer_type: str
    answer: Any
    explanation: str
    choices: tuple[str, ...] = ()
    array: str = ""
    block: int = 0
    moment: int = 0
    line: int = 0
    source: str = ""
    hints: tuple[str, ...] = ()
    size: int = 0

    @property
    def is_about_kernel(self) -> bool:
        """Whether it asks about the kernel itself, so that another input gives the same question."""
        return self.kind in ("order", "mistake")


@dataclass(frozen=True)
class AnswerMark:
    """Evaluation of an answer.

    Parameters
    ----------
    feedback : str
        Feedback; for a wrong answer, what happened instead and on which line.
    missing, extra : frozenset of int
        For a set, elements that the answer lacks, and elements that do not belong to it.
    moment, line : int
        Where the recording shows it.
    """

    is_correct: bool
    feedback: str
    missing: frozenset[int] = frozenset()
    extra: frozenset[int] = frozenset()
    moment: int = 0
    line: int = 0


@dataclass(frozen=True)
class LineFrame:
    """Text around the lines that a task has shuffled.

    Parameters
    ----------
    indent : str
        Common indentation of the lines, before their own.
    """

    before: str
    indent: str
    after: str

    def fill(self, lines: tuple[str, ...]) -> str:
        """Return the whole text with the lines in the given order."""
        return self.before + "".join(f"{self.indent}{line}\n" for line in lines) + self.after


@dataclass(frozen=True)
class TaskOutline:
    """Task as shown to a student.

    Parameters
    ----------
    name, kind, prompt : str
        As in a lesson's `Task`.
    file : str
        Name of the kernel file to write.
    start : str
        Initial text.
    pieces : tuple of str
        Shuffled lines, if the task is to order them.
    frame : LineFrame or None
        Text around them.
    limits : tuple of str
        Limits on counters, as sentences.
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
    """Step as shown to a student before it is opened.

    Parameters
    ----------
    title, text : str
        The text is Markdown.
    question_kind : str
        Kind of its question; "" if none.
    has_scene : bool
        Whether it has a scene to show.
    """

    title: str
    text: str
    question_kind: str = ""
    task: TaskOutline | None = None
    has_scene: bool = False


@dataclass(frozen=True)
class LessonOutline:
    """Lesson as shown to a student.

    Parameters
    ----------
    name, title : str
        Name of the folder, and title of the lesson.
    prerequisites : tuple of str
        Names of its prerequisite lessons.
    text : str
        Introduction before the first step, in Markdown.
    unlocked_variants : tuple of (str, str)
        Patterns and variants that it unlocks.
    """

    folder: str
    name: str
    title: str
    minutes: int
    prerequisites: tuple[str, ...]
    text: str
    steps: tuple[StepOutline, ...]
    unlocked_variants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class LessonShelf:
    """Lessons of a folder in order, and errors of unreadable ones with file, line and reason."""

    folder: str
    lessons: tuple[LessonOutline, ...]
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepScene:
    """Scene of a step, as selected by the seed.

    Parameters
    ----------
    tab : str
        Tab that shows it: run, step, compare or atomics.
    pattern, variant : str
        "" for a kernel of the lesson.
    parameters : mapping
        Parameters of the pattern; for a kernel of the lesson, `n`.
    title : str
        Description of the scene.
    file, kernel : str
        Name of the kernel file, and the first kernel to be launched.
    moment : int
        Initial moment in the recording.
    """

    tab: str
    pattern: str
    variant: str
    parameters: Mapping[str, Any]
    title: str
    file: str = ""
    kernel: str = ""
    moment: int = 0
    question: RecordingQuestion | None = None


@dataclass(frozen=True)
class SceneRecording(RecordingFile):
    """A step's scene, and its recording if it has one."""

    scene: StepScene


@dataclass(frozen=True)
class ReadLessons(Request[LessonShelf]):
    """Read the lessons in a folder, or the lesson that the folder is.

    `folder` is "" for Lockstep's own.
    """

    folder: str = ""


@dataclass(frozen=True)
class ShowStep(Request[SceneRecording]):
    """Record a step's scene and ask its question.

    Parameters
    ----------
    folder : str
        The lesson's folder.
    step : int
        Index of the step.
    seed : int
        Random seed of inputs and questions; another seed gives another question.
    """

    folder: str
    step: int
    seed: int = 0


@dataclass(frozen=True)
class JudgeTask(Request[Judgment]):
    """Grade a submission.

    Parameters
    ----------
    folder, task : str
        The lesson's folder, and the task's name.
    text : str
        Complete text of the kernel file.
    """

    folder: str
    task: str
    text: str


@dataclass(frozen=True)
class StepFailure(Request[SceneRecording]):
    """Record the smallest failing input of a submission; the scene is the failure's place."""

    task: JudgeTask
    judgment: Judgment
