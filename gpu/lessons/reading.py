"""A lesson's folder read: `lesson.md`, in Markdown, with TOML at its head and in fenced blocks of its steps."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpu.errors import InputError
from gpu.files.opening import name_of
from gpu.files.text import read_text
from gpu.files.toml import TomlError, parse, shown
from gpu.lessons.expressions import MOST_ELEMENTS
from gpu.lessons.lesson import TABS, Lesson, LessonStep, Place, PlannedMistake, Question, Scene, Task
from gpu.lessons.question_kinds import KINDS as QUESTIONS
from gpu.lessons.stage import KINDS, Stage, StageArray, StageLaunch
from gpu.patterns import all_patterns

FILE = "lesson.md"
LIBRARY = Path(__file__).resolve().parents[2] / "assets" / "lessons"

TASK_KINDS = ("gap", "repair", "order", "rewrite")
SIZES = (1, 2, 5, 31, 32, 33, 64, 100, 255, 256, 257, 1000, 1024)
"""On which sizes a task is judged where it says nothing."""
ORDERS = 4
LIMITS = (
    "requests", "sectors", "sectors_per_request", "shared_requests", "wavefronts", "conflicts", "warp_statements",
    "lane_statements", "branches", "divergent_branches", "operations", "barriers", "atomics", "hottest_atomics",
)  # fmt: skip
"""Counters that a task may limit: see `gpu.messages.counted.RunCounts`; `barriers` are those of all blocks."""

MARKED = re.compile(
    r"^(?P<indent>[ \t]*)// (?P<kind>gap|lines): *(?P<says>[^\n]*)\n(?P<body>.*?)^[ \t]*// end[ \t]*\n",
    re.MULTILINE | re.DOTALL,
)
"""What a solution says by comments of its own: which lines a student writes, or puts into order."""

_FENCE = re.compile(r"^```toml[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## +(?P<title>.+?)[ \t]*$", re.MULTILINE)
_HEAD = re.compile(r"\A\+\+\+[ \t]*\n(?P<body>.*?)^\+\+\+[ \t]*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_MOST_ORDERS = 100
_LONGEST_REASON = 1000
_LONGEST_NAME = 500
_TOO_LARGE = 1e300


def lesson_folders(folder: Path = LIBRARY) -> tuple[Path, ...]:
    """Return the lessons' folders in a folder, or the folder itself where it is a lesson's."""
    if (folder / FILE).is_file():
        return (folder,)
    return tuple(path.parent for path in sorted(folder.glob(f"*/{FILE}")))


def all_lessons(folder: Path = LIBRARY) -> tuple[Lesson, ...]:
    """Return the lessons in a folder, in their order; InputError as of `read_lesson`, and where there are none."""
    found = lesson_folders(folder)
    if not found:
        raise InputError(f"There is no lesson in {folder}: a lesson is a folder with a {FILE}.")
    return tuple(sorted(map(read_lesson, found), key=lambda lesson: (lesson.order, lesson.name)))


def read_lesson(folder: Path) -> Lesson:
    """Read a lesson.

    Raises
    ------
    InputError
        With the file, the line and the reason, where something is wrong with it.
    """
    folder = Path(os.path.realpath(folder))
    file = folder / FILE
    if not file.is_file():
        raise InputError(f"{name_of(folder)} is no lesson: it has no {FILE}.")
    return _Reader(folder, read_text(file).replace("\r\n", "\n")).lesson()


def solution_text(lesson: Lesson, stage: str) -> str:
    """Return the file of a lesson's kernel: a task's reference solution."""
    file = lesson.stage(stage).file
    return lesson.texts[file] if file in lesson.texts else kernel_file(lesson.folder, file)


def plain_text(lesson: Lesson, stage: str) -> str:
    """Return the file of a lesson's kernel without the comments that say what a task leaves out of it."""
    return unmarked(solution_text(lesson, stage))


def unmarked(text: str) -> str:
    """Return a kernel file's text without the comments that say what a task leaves out of it."""
    return MARKED.sub(lambda found: found["body"], text)


def preloaded(lesson: Lesson) -> Lesson:
    """Return a lesson with the texts of its kernels, for a process that will not open its files any more."""
    names = [stage.file for stage in lesson.stages.values()]
    return replace(lesson, texts={name: kernel_file(lesson.folder, name) for name in names})


def kernel_file(folder: Path, name: str) -> str:
    """Return a kernel file beside a lesson; InputError where it cannot be read, or lies elsewhere."""
    # What a link leads to; one in a circle leads to itself.
    path = Path(os.path.realpath(folder / name.replace("\0", "/")))
    if path.parent != Path(os.path.realpath(folder)) or path.suffix != ".cu":
        raise InputError(f"{shown(name)} is no kernel file beside the lesson: it is a name that ends with .cu.")
    return read_text(path)


@dataclass(frozen=True)
class _Block:
    """A TOML text and its place in the file; `line` is that of its first line."""

    text: str
    line: int
    file: str

    def error(self, reason: str, key: str = "") -> InputError:
        """Return what is said of something wrong at a key, or of the block as a whole."""
        line = self.line
        for number, text in enumerate(self.text.split("\n")):
            if key and re.match(rf"\s*\[*{re.escape(key)}\s*[\]=.]|\s*\[+[^\]]*\b{re.escape(key)}\]|.*[{{,]\s*{re.escape(key)}\s*=", text):  # fmt: skip  # noqa: E501
                line = self.line + number
                break
        half = _LONGEST_REASON // 2
        short = reason if len(reason) <= _LONGEST_REASON else f"{reason[:half]}…{reason[-half:]}"
        return InputError(f"{self.file}:{line}: {short}")

    def read(self) -> dict[str, Any]:
        try:
            return parse(self.text)
        except TomlError as error:
            raise InputError(f"{self.file}:{self.line + error.line - 1}: This is no TOML: {error.reason}.") from None


class _Reader:
    """Reads one lesson, and knows for each error where it is."""

    def __init__(self, folder: Path, text: str) -> None:
        self._folder, self._text = folder, text
        self._file = f"{name_of(folder.name)}/{FILE}"
        self._stages: dict[str, Stage] = {}
        self._tasks: set[str] = set()

    def lesson(self) -> Lesson:
        head = _HEAD.match(self._text)
        if head is None:
            raise InputError(f"{self._file}:1: A lesson begins with +++, lines of TOML such as a title, and +++.")
        block = _Block(head["body"], 2, self._file)
        about = block.read()
        _known(block, about, ("title", "order", "needs", "minutes", "lifts", "kernels"), "a lesson's head")
        for name, given in _table(block, about, "kernels").items():
            self._stages[name] = self._stage(block, name, given)
        begins = [*_HEADING.finditer(self._text, head.end())]
        text = self._text[head.end() : begins[0].start() if begins else len(self._text)].strip()
        if not begins:
            raise InputError(f"{self._file}:{self._line(head.end())}: A lesson has steps: headings that begin with ##.")
        if "```toml" in text:
            where = self._line(self._text.index("```toml", head.end()))
            raise InputError(
                f"{self._file}:{where}: A block of TOML belongs to a step: a heading with ## comes before it."
            )
        steps: list[LessonStep] = []
        for heading, following in zip(begins, [*begins[1:], None], strict=True):
            end = following.start() if following else len(self._text)
            steps.append(self._step(heading, end, steps[-1].scene if steps else None))
        return Lesson(
            self._folder,
            _of_type(block, about, "title", str),
            _whole_number(block, about, "order"),
            tuple(_texts(block, about, "needs")),
            _whole_number(block, about, "minutes"),
            text,
            self._stages,
            tuple(steps),
            lifts=tuple(_rung(block, text) for text in _texts(block, about, "lifts")),
        )

    def _line(self, place: int) -> int:
        return 1 + self._text.count("\n", 0, place)

    # Kernels of the lesson's own.

    def _stage(self, block: _Block, name: str, given: Any) -> Stage:
        if not isinstance(given, dict):
            raise block.error(f"The kernel {shown(name)} is a table, such as [kernels.{name}].", name)
        known = ("file", "kernel", "grid", "block", "shared", "arguments", "arrays", "launches", "constants", "let",
                 "expects", "tolerance")  # fmt: skip
        _known(block, given, known, f"the kernel {shown(name)}")
        arrays = {key: self._array(block, key, text) for key, text in _table(block, given, "arrays").items()}
        if "launches" in given:
            launches = tuple(self._launch(block, each) for each in _tables(block, given, "launches"))
        else:
            arguments = dict(_table(block, given, "arguments"))
            for key, text in arguments.items():
                if isinstance(text, str) and (array := StageArray.of(text)) is not None:
                    arrays[key] = array
                    arguments[key] = key
            launches = (self._launch(block, {**given, "arguments": list(arguments.values())}),)
        expects = _expressions(block, given, "expects")
        for key in expects:
            if key not in arrays:
                raise block.error(f"{shown(key)} is expected of an array that there is none of.", "expects")
        file = _of_type(block, given, "file", str)
        try:
            kernel_file(self._folder, file)
        except InputError as error:
            raise block.error(error.message, "file") from None
        return Stage(
            file=file,
            arrays=arrays,
            launches=launches,
            constants={key: str(text) for key, text in _expressions(block, given, "constants").items()},
            lets=_expressions(block, given, "let"),
            expects={key: str(text) for key, text in expects.items()},
            tolerance=_real_number(block, given, "tolerance", 1e-5),
        )

    def _array(self, block: _Block, name: str, text: Any) -> StageArray:
        found = StageArray.of(text) if isinstance(text, str) else None
        if found is None:
            raise block.error(f'{shown(text)} is no array: it is "in SIZE", "out SIZE" or "inout SIZE".', name)
        return found

    def _launch(self, block: _Block, given: Mapping[str, Any]) -> StageLaunch:
        arguments = given.get("arguments")
        if not isinstance(arguments, list):
            raise block.error("A launch has its arguments: names of arrays, numbers and expressions.", "arguments")
        kernel = _of_type(block, given, "kernel", str)
        if len(kernel) > _LONGEST_NAME:
            raise block.error(f"A kernel's name has at most {_LONGEST_NAME} characters.", "kernel")
        return StageLaunch(
            kernel,
            _extents(block, given, "grid"),
            _extents(block, given, "block"),
            tuple(_expression(block, each, "arguments") for each in arguments),
            _expression(block, given.get("shared", 0), "shared"),
        )

    # Steps.

    def _step(self, heading: re.Match[str], end: int, before: Scene | None) -> LessonStep:
        line = self._line(heading.start())
        body = self._text[heading.end() : end]
        blocks = [*_FENCE.finditer(body)]
        if len(blocks) > 1:
            second = self._line(heading.end() + blocks[1].start())
            raise InputError(f"{self._file}:{second}: A step has one block of TOML; this is the second.")
        text = _FENCE.sub("", body).strip()
        if not blocks:
            if "```toml" in body:
                where = self._line(heading.end() + body.index("```toml"))
                raise InputError(f"{self._file}:{where}: This block of TOML does not end: its last line is ```.")
            return LessonStep(heading["title"], text, line, before)
        (found,) = blocks
        block = _Block(found["body"], self._line(heading.end() + found.start("body")), self._file)
        given = block.read()
        _known(block, given, ("show", "question", "task"), "a step")
        if "question" in given and "task" in given:
            raise block.error("A step has a question or a task: give one of them a step of its own.", "task")
        scene = self._scene(block, _table(block, given, "show"), before) if "show" in given else before
        question = self._question(block, _table(block, given, "question"), scene) if "question" in given else None
        task = self._task(block, _table(block, given, "task")) if "task" in given else None
        return LessonStep(heading["title"], text, line, scene, question, task)

    def _scene(self, block: _Block, given: Mapping[str, Any], before: Scene | None) -> Scene:
        known = ("pattern", "variant", "parameters", "kernel", "n", "tab", "at")
        _known(block, given, known, "what a step shows")
        place = _place(block, _table(block, given, "at"), "at") if "at" in given else None
        tab = given.get("tab", "step")
        if tab not in TABS:
            raise block.error(f"There is no tab {shown(tab)}; there are {', '.join(TABS)}.", "tab")
        if "pattern" in given:
            patterns = all_patterns()
            name = given["pattern"]
            if not isinstance(name, str) or name not in patterns:
                raise block.error(f"There is no pattern {shown(name)}; there are {', '.join(patterns)}.", "pattern")
            pattern = patterns[name]
            variant = given.get("variant", pattern.default_variant)
            if variant not in (each.name for each in pattern.variants):
                names = ", ".join(each.name for each in pattern.variants)
                raise block.error(f"{pattern.title} has no variant {shown(variant)}; it has {names}.", "variant")
            parameters = _table(block, given, "parameters")
            for key in parameters:
                if key not in (each.name for each in pattern.parameters):
                    names = ", ".join(each.name for each in pattern.parameters)
                    raise block.error(f"{pattern.title} has no parameter {key!r}; it has {names}.", key)
            return Scene(pattern.name, variant, parameters, tab=tab, place=place)
        if "kernel" in given:
            if not isinstance(given["kernel"], str) or given["kernel"] not in self._stages:
                has = ", ".join(self._stages) or "none"
                raise block.error(f"The head has no kernel {shown(given['kernel'])}; it has {has}.", "kernel")
            sizes = _sizes(block, given, "n")
            if not sizes:
                raise block.error("It has to be said what n is: a number, or a list to choose from.", "kernel")
            return Scene(stage=given["kernel"], sizes=sizes, tab=tab, place=place)
        if before is None:
            raise block.error("What is shown is a pattern, or a kernel of the lesson's head.", "show")
        return Scene(
            before.pattern, before.variant, before.parameters, before.stage,
            _sizes(block, given, "n") or before.sizes, tab, place,
        )  # fmt: skip

    def _question(self, block: _Block, given: Mapping[str, Any], scene: Scene | None) -> Question:
        ask = _of_type(block, given, "ask", str)
        if ask not in QUESTIONS:
            raise block.error(f"{ask!r} is no kind of question; they are {', '.join(QUESTIONS)}.", "ask")
        if scene is None:
            raise block.error("A question needs something to be shown: [show], here or in a step before.", "question")
        kind = QUESTIONS[ask]
        _known(block, given, ("ask", "prompt", "hints", *kind.options), f"a question of the kind {ask!r}")
        for name in kind.needs:
            if name not in given:
                raise block.error(f"A question of the kind {ask!r} says {name!r}.", "ask")
        for name, allowed in kind.choices.items():
            if name in given and given[name] not in allowed:
                raise block.error(f"{name} is one of {', '.join(allowed)}, not {shown(given[name])}.", name)
        options = {name: _option(block, given, name) for name in kind.options if name in given}
        prompt = _of_type(block, given, "prompt", str) if "prompt" in given else ""
        return Question(ask, prompt, tuple(_texts(block, given, "hints")), options, block.line)

    def _task(self, block: _Block, given: Mapping[str, Any]) -> Task:
        known = ("name", "kind", "prompt", "kernel", "start", "sizes", "kinds", "limits", "orders", "modeled",
                 "mistakes", "hints")  # fmt: skip
        _known(block, given, known, "a task")
        name = _of_type(block, given, "name", str)
        if not _NAME.fullmatch(name):
            raise block.error(f"A task's name has small letters, digits and hyphens; {name!r} is none.", "name")
        if name in self._tasks:
            raise block.error(f"There is a task {name!r} already: each has a name of its own.", "name")
        self._tasks.add(name)
        kind = _of_type(block, given, "kind", str)
        if kind not in TASK_KINDS:
            raise block.error(f"{kind!r} is no kind of task; they are {', '.join(TASK_KINDS)}.", "kind")
        stage = _of_type(block, given, "kernel", str)
        if stage not in self._stages:
            has = ", ".join(self._stages) or "none"
            raise block.error(f"The head has no kernel {stage!r}; it has {has}.", "kernel")
        limits = _expressions(block, given, "limits")
        for limit in limits:
            if limit not in LIMITS:
                raise block.error(f"{limit!r} is no counter; they are {', '.join(LIMITS)}.", limit)
        kinds = tuple(_texts(block, given, "kinds")) or KINDS
        for made in kinds:
            if made not in KINDS:
                raise block.error(f"{made!r} is no kind of input; they are {', '.join(KINDS)}.", "kinds")
        mistakes = tuple(self._mistake(block, each) for each in _tables(block, given, "mistakes"))
        if kind == "repair" and not mistakes:
            raise block.error("A task of repair has mistakes: [[task.mistakes]]; the first is the one to repair.")
        if kind == "rewrite":
            try:
                kernel_file(self._folder, _of_type(block, given, "start", str))
            except InputError as error:
                raise block.error(error.message.removeprefix(f"{self._file}:{block.line}: "), "start") from None
        return Task(
            name, kind, _of_type(block, given, "prompt", str), stage,
            start=_of_type(block, given, "start", str) if "start" in given else "",
            sizes=tuple(sorted(_sizes(block, given, "sizes"))) or SIZES,
            kinds=kinds,
            limits=limits,
            orders=_whole_number(block, given, "orders", ORDERS, _MOST_ORDERS),
            modeled=_modeled(block, given),
            mistakes=mistakes,
            hints=tuple(_texts(block, given, "hints")),
            line=block.line,
        )  # fmt: skip

    def _mistake(self, block: _Block, given: Mapping[str, Any]) -> PlannedMistake:
        try:
            return PlannedMistake(**{name: _of_type(block, given, name, str) for name in given})
        except TypeError:
            raise block.error("A mistake says what it is, what it replaces, and by what: says, replace, by.",
                              "mistakes") from None  # fmt: skip


def _known(block: _Block, given: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in given:
        if key not in known:
            raise block.error(f"{key!r} is nothing that {what} has; it has {', '.join(known)}.", key)


def _table(block: _Block, given: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = given.get(key, {})
    if not isinstance(found, dict):
        raise block.error(f"{key} is a table, of names and values.", key)
    return found


def _of_type(block: _Block, given: Mapping[str, Any], key: str, type: type) -> Any:
    found = given.get(key)
    if not isinstance(found, type) or isinstance(found, bool):
        raise block.error(f"{key} is missing, or not {'a text' if type is str else 'a whole number'}.", key)
    return found


def _texts(block: _Block, given: Mapping[str, Any], key: str) -> list[str]:
    found = given.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise block.error(f"{key} is a list of texts.", key)
    return found


def _tables(block: _Block, given: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = given.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise block.error(f"{key} is a list of tables.", key)
    return found


def _expression(block: _Block, found: Any, key: str) -> Any:
    """Return an expression's text, or the number that stands for itself."""
    if not isinstance(found, str | int | float) or (isinstance(found, int | float) and not abs(found) < _TOO_LARGE):
        raise block.error(f"{key} has {shown(found)}, where an expression or a number is wanted.", key)
    return found


def _expressions(block: _Block, given: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: _expression(block, each, name) for name, each in _table(block, given, key).items()}


def _whole_number(
    block: _Block, given: Mapping[str, Any], key: str, default: int | None = None, most: int = MOST_ELEMENTS
) -> int:
    """Return a number from 0 on; what is missing is the default, where there is one."""
    found: int = _of_type(block, given, key, int) if default is None or key in given else default
    if not 0 <= found <= most:
        raise block.error(f"{key} is a whole number from 0 to {most}, not {shown(found)}.", key)
    return found


def _real_number(block: _Block, given: Mapping[str, Any], key: str, default: float) -> float:
    found = given.get(key, default)
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < _TOO_LARGE:
        raise block.error(f"{key} is a number from 0, not {shown(found)}.", key)
    return float(found)


def _option(block: _Block, given: Mapping[str, Any], name: str) -> Any:
    """Return what a question's author says beside its kind."""
    match name:
        case "block":
            return _whole_number(block, given, name)
        case "n":
            return _sizes(block, given, name)
        case "gpu":
            return tuple(_texts(block, given, name)) if isinstance(given[name], list) else (given[name],)
        case "until":
            return _place(block, _table(block, given, name), name)
        case "element":
            return _expression(block, given[name], name)
    return _of_type(block, given, name, str)


def _modeled(block: _Block, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long a task may take on a modeled GPU; nothing where that is not asked."""
    found = _table(block, given, "modeled")
    if not found:
        return {}
    _known(block, found, ("gpu", "n", "times"), "what a task may take on a modeled GPU")
    asked = {"n": _whole_number(block, found, "n"), "times": _real_number(block, found, "times", 1.2)}
    return {**asked, **({"gpu": _of_type(block, found, "gpu", str)} if "gpu" in found else {})}


def _rung(block: _Block, text: str) -> tuple[str, str]:
    """Return the pattern and the variant of "scan/brent-kung"."""
    name, _, variant = text.partition("/")
    pattern = all_patterns().get(name)
    if pattern is None or variant not in (each.name for each in pattern.variants):
        raise block.error(f"There is no rung {text!r}; one is PATTERN/VARIANT, such as reduction/neighbored.", "lifts")
    return name, variant


def _sizes(block: _Block, given: Mapping[str, Any], key: str) -> tuple[int, ...]:
    found = given.get(key, [])
    sizes = found if isinstance(found, list) else [found]
    if not all(isinstance(each, int) and 0 < each <= MOST_ELEMENTS for each in sizes):
        raise block.error(f"{key} is a whole number from 1 to {MOST_ELEMENTS}, or a list of such.", key)
    return tuple(sizes)


def _extents(block: _Block, given: Mapping[str, Any], key: str) -> tuple[str | int, ...]:
    found = given.get(key, 1)
    extents = found if isinstance(found, list) else [found]
    if not 1 <= len(extents) <= 3 or not all(isinstance(each, str | int) for each in extents):
        raise block.error(f"The {key} is one to three numbers or expressions.", key)
    return tuple(_expression(block, each, key) for each in extents)


def _place(block: _Block, given: Mapping[str, Any], key: str) -> Place:
    _known(block, given, [each.name for each in fields(Place)], "a place")
    times = given.get("time", 1)
    several = isinstance(times, list)
    wanted = times if several else [times]
    if not wanted or not all(isinstance(each, int) and 0 < abs(each) <= MOST_ELEMENTS for each in wanted):
        raise block.error(
            "time says the how many-th time, from 1, or from the end as -1; or it is a list of such.", "time"
        )
    line = given.get("line", 0)
    place = Place(
        line=line if isinstance(line, str) else _whole_number(block, given, "line", 0),
        time=tuple(times) if several else times,
        phase=_of_type(block, given, "phase", str) if "phase" in given else "",
        barrier=_whole_number(block, given, "barrier", 0),
        launch=_whole_number(block, given, "launch", 0),
        end=given.get("end", False) is True,
    )
    if not (place.line or place.phase or place.barrier or place.launch or place.end):
        raise block.error("A place is a line, a phase, a barrier, a launch, or the end.", key)
    return place
