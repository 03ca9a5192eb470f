"""Reader of lesson files: `lesson.md` in Markdown, with TOML at the top and in a fenced block of each step."""

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
"""Default sizes of a task."""
ORDERS = 4
LIMITS = (
    "requests", "sectors", "sectors_per_request", "shared_requests", "wavefronts", "conflicts", "warp_statements",
    "lane_statements", "branches", "divergent_branches", "operations", "barriers", "atomics", "hottest_atomics",
)  # fmt: skip
"""Counters that a task can limit, as in `gpu.messages.counted.RunCounts`; `barriers` is summed over all blocks."""

MARKED = re.compile(
    r"^(?P<indent>[ \t]*)// (?P<kind>gap|lines): *(?P<says>[^\n]*)\n(?P<body>.*?)^[ \t]*// end[ \t]*\n",
    re.MULTILINE | re.DOTALL,
)
"""Comments in a solution that mark the lines that a student writes or orders."""

_FENCE = re.compile(r"^```toml[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## +(?P<title>.+?)[ \t]*$", re.MULTILINE)
_HEAD = re.compile(r"\A\+\+\+[ \t]*\n(?P<body>.*?)^\+\+\+[ \t]*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_MAX_SCHEDULES = 100
_LONGEST_REASON = 1000
_LONGEST_NAME = 500
_TOO_LARGE = 1e300


def lesson_folders(folder: Path = LIBRARY) -> tuple[Path, ...]:
    """Return the folders of the lessons in a folder, or the folder itself if it is a lesson."""
    if (folder / FILE).is_file():
        return (folder,)
    return tuple(path.parent for path in sorted(folder.glob(f"*/{FILE}")))


def all_lessons(folder: Path = LIBRARY) -> tuple[Lesson, ...]:
    """Return the lessons in a folder in order; raise InputError as `read_lesson`, and if there are none."""
    folders = lesson_folders(folder)
    if not folders:
        raise InputError(f"There is no lesson in {folder}: each lesson is a folder with a {FILE}.")
    return tuple(sorted(map(read_lesson, folders), key=lambda lesson: (lesson.order, lesson.name)))


def read_lesson(folder: Path) -> Lesson:
    """Read a lesson.

    Raises
    ------
    InputError
        If the lesson has an error; the message has file, line and reason.
    """
    folder = Path(os.path.realpath(folder))
    file = folder / FILE
    if not file.is_file():
        raise InputError(f"{name_of(folder)} is not a lesson: it has no {FILE}.")
    return _Reader(folder, read_text(file).replace("\r\n", "\n")).lesson()


def solution_text(lesson: Lesson, stage: str) -> str:
    """Return the text of a lesson's kernel file, which is a task's reference solution."""
    file = lesson.stage(stage).file
    return lesson.texts[file] if file in lesson.texts else kernel_file(lesson.folder, file)


def plain_text(lesson: Lesson, stage: str) -> str:
    """Return the text of a lesson's kernel file without task marks."""
    return unmarked(solution_text(lesson, stage))


def unmarked(text: str) -> str:
    """Remove the comments that mark a task's lines from a kernel file's text."""
    return MARKED.sub(lambda found: found["body"], text)


def preloaded(lesson: Lesson) -> Lesson:
    """Load the lesson's kernel files, for a process that cannot open files later."""
    names = [stage.file for stage in lesson.stages.values()]
    return replace(lesson, texts={name: kernel_file(lesson.folder, name) for name in names})


def kernel_file(folder: Path, name: str) -> str:
    """Return the text of a kernel file in the lesson's folder; raise InputError if it is elsewhere or unreadable."""
    # Resolve links, including circular ones, before checking the folder.
    path = Path(os.path.realpath(folder / name.replace("\0", "/")))
    if path.parent != Path(os.path.realpath(folder)) or path.suffix != ".cu":
        raise InputError(f"{shown(name)} is not a kernel file in the lesson's folder: its name must end in .cu.")
    return read_text(path)


@dataclass(frozen=True)
class _Block:
    """A TOML text, with the number of its first line in the file."""

    text: str
    line: int
    file: str

    def error(self, reason: str, key: str = "") -> InputError:
        """Return an error at the line of a key, or at the block's first line."""
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
            raise InputError(f"{self.file}:{self.line + error.line - 1}: Invalid TOML: {error.reason}.") from None


class _Reader:
    """Reader of one lesson that locates errors by file and line."""

    def __init__(self, folder: Path, text: str) -> None:
        self._folder, self._text = folder, text
        self._file = f"{name_of(folder.name)}/{FILE}"
        self._stages: dict[str, Stage] = {}
        self._tasks: set[str] = set()

    def lesson(self) -> Lesson:
        head = _HEAD.match(self._text)
        if head is None:
            raise InputError(f"{self._file}:1: A lesson must begin with +++, lines of TOML such as a title, and +++.")
        block = _Block(head["body"], 2, self._file)
        about = block.read()
        _check_keys(block, about, ("title", "order", "needs", "minutes", "lifts", "kernels"), "the lesson's head")
        for name, values in _table(block, about, "kernels").items():
            self._stages[name] = self._stage(block, name, values)
        begins = [*_HEADING.finditer(self._text, head.end())]
        text = self._text[head.end() : begins[0].start() if begins else len(self._text)].strip()
        if not begins:
            where = self._line(head.end())
            raise InputError(f"{self._file}:{where}: A lesson must have steps: headings that begin with ##.")
        if "```toml" in text:
            where = self._line(self._text.index("```toml", head.end()))
            raise InputError(f"{self._file}:{where}: A TOML block must be in a step: put a heading with ## before it.")
        steps: list[LessonStep] = []
        for heading, following in zip(begins, [*begins[1:], None], strict=True):
            end = following.start() if following else len(self._text)
            steps.append(self._step(heading, end, steps[-1].scene if steps else None))
        return Lesson(
            self._folder,
            _typed(block, about, "title", str),
            _integer(block, about, "order"),
            tuple(_texts(block, about, "needs")),
            _integer(block, about, "minutes"),
            text,
            self._stages,
            tuple(steps),
            lifts=tuple(_variant(block, text) for text in _texts(block, about, "lifts")),
        )

    def _line(self, offset: int) -> int:
        return 1 + self._text.count("\n", 0, offset)

    # The lesson's kernels.

    def _stage(self, block: _Block, name: str, values: Any) -> Stage:
        if not isinstance(values, dict):
            raise block.error(f"The kernel {shown(name)} must be a table, such as [kernels.{name}].", name)
        keys = ("file", "kernel", "grid", "block", "shared", "arguments", "arrays", "launches", "constants", "let",
                 "expects", "tolerance")  # fmt: skip
        _check_keys(block, values, keys, f"the kernel {shown(name)}")
        arrays = {key: self._array(block, key, text) for key, text in _table(block, values, "arrays").items()}
        if "launches" in values:
            launches = tuple(self._launch(block, each) for each in _tables(block, values, "launches"))
        else:
            arguments = dict(_table(block, values, "arguments"))
            for key, text in arguments.items():
                if isinstance(text, str) and (array := StageArray.of(text)) is not None:
                    arrays[key] = array
                    arguments[key] = key
            launches = (self._launch(block, {**values, "arguments": list(arguments.values())}),)
        expects = _expressions(block, values, "expects")
        for key in expects:
            if key not in arrays:
                raise block.error(f"expects has the name {shown(key)}, but there is no such array.", "expects")
        file = _typed(block, values, "file", str)
        try:
            kernel_file(self._folder, file)
        except InputError as error:
            raise block.error(error.message, "file") from None
        return Stage(
            file=file,
            arrays=arrays,
            launches=launches,
            constants={key: str(text) for key, text in _expressions(block, values, "constants").items()},
            lets=_expressions(block, values, "let"),
            expects={key: str(text) for key, text in expects.items()},
            tolerance=_real_number(block, values, "tolerance", 1e-5),
        )

    def _array(self, block: _Block, name: str, text: Any) -> StageArray:
        array = StageArray.of(text) if isinstance(text, str) else None
        if array is None:
            raise block.error(f'{shown(text)} is not an array: write "in SIZE", "out SIZE" or "inout SIZE".', name)
        return array

    def _launch(self, block: _Block, values: Mapping[str, Any]) -> StageLaunch:
        arguments = values.get("arguments")
        if not isinstance(arguments, list):
            raise block.error("A launch needs arguments: names of arrays, numbers and expressions.", "arguments")
        kernel = _typed(block, values, "kernel", str)
        if len(kernel) > _LONGEST_NAME:
            raise block.error(f"A kernel's name can have at most {_LONGEST_NAME} characters.", "kernel")
        return StageLaunch(
            kernel,
            _extents(block, values, "grid"),
            _extents(block, values, "block"),
            tuple(_expression(block, each, "arguments") for each in arguments),
            _expression(block, values.get("shared", 0), "shared"),
        )

    # Steps.

    def _step(self, heading: re.Match[str], end: int, before: Scene | None) -> LessonStep:
        line = self._line(heading.start())
        body = self._text[heading.end() : end]
        blocks = [*_FENCE.finditer(body)]
        if len(blocks) > 1:
            second = self._line(heading.end() + blocks[1].start())
            raise InputError(f"{self._file}:{second}: A step can have only one TOML block; this is the second.")
        text = _FENCE.sub("", body).strip()
        if not blocks:
            if "```toml" in body:
                where = self._line(heading.end() + body.index("```toml"))
                raise InputError(f"{self._file}:{where}: This TOML block is not closed: end it with ```.")
            return LessonStep(heading["title"], text, line, before)
        (fence,) = blocks
        block = _Block(fence["body"], self._line(heading.end() + fence.start("body")), self._file)
        values = block.read()
        _check_keys(block, values, ("show", "question", "task"), "a step")
        if "question" in values and "task" in values:
            raise block.error("A step can have a question or a task, not both: move one to another step.", "task")
        scene = self._scene(block, _table(block, values, "show"), before) if "show" in values else before
        question = self._question(block, _table(block, values, "question"), scene) if "question" in values else None
        task = self._task(block, _table(block, values, "task")) if "task" in values else None
        return LessonStep(heading["title"], text, line, scene, question, task)

    def _scene(self, block: _Block, values: Mapping[str, Any], before: Scene | None) -> Scene:
        keys = ("pattern", "variant", "parameters", "kernel", "n", "tab", "at")
        _check_keys(block, values, keys, "[show]")
        place = _place(block, _table(block, values, "at"), "at") if "at" in values else None
        tab = values.get("tab", "step")
        if tab not in TABS:
            raise block.error(f"There is no tab {shown(tab)}; available: {', '.join(TABS)}.", "tab")
        if "pattern" in values:
            patterns = all_patterns()
            name = values["pattern"]
            if not isinstance(name, str) or name not in patterns:
                raise block.error(f"There is no pattern {shown(name)}; available: {', '.join(patterns)}.", "pattern")
            pattern = patterns[name]
            variant = values.get("variant", pattern.default_variant)
            if variant not in (each.name for each in pattern.variants):
                names = ", ".join(each.name for each in pattern.variants)
                raise block.error(f"{pattern.title} has no variant {shown(variant)}; it has {names}.", "variant")
            parameters = _table(block, values, "parameters")
            for key in parameters:
                if key not in (each.name for each in pattern.parameters):
                    names = ", ".join(each.name for each in pattern.parameters)
                    raise block.error(f"{pattern.title} has no parameter {key!r}; it has {names}.", key)
            return Scene(pattern.name, variant, parameters, tab=tab, place=place)
        if "kernel" in values:
            if not isinstance(values["kernel"], str) or values["kernel"] not in self._stages:
                names = ", ".join(self._stages) or "none"
                raise block.error(
                    f"The lesson's head has no kernel {shown(values['kernel'])}; it has {names}.", "kernel"
                )
            sizes = _sizes(block, values, "n")
            if not sizes:
                raise block.error("n is missing: a number, or a list to select from.", "kernel")
            return Scene(stage=values["kernel"], sizes=sizes, tab=tab, place=place)
        if before is None:
            raise block.error("[show] needs a pattern, or a kernel of the lesson's head.", "show")
        return Scene(
            before.pattern, before.variant, before.parameters, before.stage,
            _sizes(block, values, "n") or before.sizes, tab, place,
        )  # fmt: skip

    def _question(self, block: _Block, values: Mapping[str, Any], scene: Scene | None) -> Question:
        ask = _typed(block, values, "ask", str)
        if ask not in QUESTIONS:
            raise block.error(f"{ask!r} is not a kind of question; available: {', '.join(QUESTIONS)}.", "ask")
        if scene is None:
            raise block.error("A question needs a scene: add [show] here or in an earlier step.", "question")
        kind = QUESTIONS[ask]
        _check_keys(block, values, ("ask", "prompt", "hints", *kind.options), f"a question of the kind {ask!r}")
        for name in kind.needs:
            if name not in values:
                raise block.error(f"A question of the kind {ask!r} needs {name!r}.", "ask")
        for name, allowed in kind.choices.items():
            if name in values and values[name] not in allowed:
                raise block.error(f"{name} must be one of {', '.join(allowed)}, not {shown(values[name])}.", name)
        options = {name: _option(block, values, name) for name in kind.options if name in values}
        prompt = _typed(block, values, "prompt", str) if "prompt" in values else ""
        return Question(ask, prompt, tuple(_texts(block, values, "hints")), options, block.line)

    def _task(self, block: _Block, values: Mapping[str, Any]) -> Task:
        keys = ("name", "kind", "prompt", "kernel", "start", "sizes", "kinds", "limits", "orders", "modeled",
                "mistakes", "hints")  # fmt: skip
        _check_keys(block, values, keys, "a task")
        name = _typed(block, values, "name", str)
        if not _NAME.fullmatch(name):
            raise block.error(f"{name!r} is not a task name: use small letters, digits and hyphens.", "name")
        if name in self._tasks:
            raise block.error(f"The task name {name!r} is used twice.", "name")
        self._tasks.add(name)
        kind = _typed(block, values, "kind", str)
        if kind not in TASK_KINDS:
            raise block.error(f"{kind!r} is not a kind of task; available: {', '.join(TASK_KINDS)}.", "kind")
        stage = _typed(block, values, "kernel", str)
        if stage not in self._stages:
            names = ", ".join(self._stages) or "none"
            raise block.error(f"The lesson's head has no kernel {stage!r}; it has {names}.", "kernel")
        limits = _expressions(block, values, "limits")
        for limit in limits:
            if limit not in LIMITS:
                raise block.error(f"{limit!r} is not a counter; available: {', '.join(LIMITS)}.", limit)
        kinds = tuple(_texts(block, values, "kinds")) or KINDS
        for input_kind in kinds:
            if input_kind not in KINDS:
                raise block.error(f"{input_kind!r} is not a kind of input; available: {', '.join(KINDS)}.", "kinds")
        mistakes = tuple(self._mistake(block, each) for each in _tables(block, values, "mistakes"))
        if kind == "repair" and not mistakes:
            raise block.error("A repair task needs mistakes: [[task.mistakes]]; the first is the one to repair.")
        if kind == "rewrite":
            try:
                kernel_file(self._folder, _typed(block, values, "start", str))
            except InputError as error:
                raise block.error(error.message.removeprefix(f"{self._file}:{block.line}: "), "start") from None
        return Task(
            name, kind, _typed(block, values, "prompt", str), stage,
            start=_typed(block, values, "start", str) if "start" in values else "",
            sizes=tuple(sorted(_sizes(block, values, "sizes"))) or SIZES,
            kinds=kinds,
            limits=limits,
            orders=_integer(block, values, "orders", ORDERS, _MAX_SCHEDULES),
            modeled=_modeled(block, values),
            mistakes=mistakes,
            hints=tuple(_texts(block, values, "hints")),
            line=block.line,
        )  # fmt: skip

    def _mistake(self, block: _Block, values: Mapping[str, Any]) -> PlannedMistake:
        try:
            return PlannedMistake(**{name: _typed(block, values, name, str) for name in values})
        except TypeError:
            raise block.error("A mistake needs says (its explanation), replace (the old text) and by (the new text).",
                              "mistakes") from None  # fmt: skip


def _check_keys(block: _Block, values: Mapping[str, Any], keys: Sequence[str], what: str) -> None:
    for key in values:
        if key not in keys:
            raise block.error(f"{key!r} is not a key of {what}; available: {', '.join(keys)}.", key)


def _table(block: _Block, values: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise block.error(f"{key} must be a table of names and values.", key)
    return value


def _typed(block: _Block, values: Mapping[str, Any], key: str, type: type) -> Any:
    value = values.get(key)
    if not isinstance(value, type) or isinstance(value, bool):
        raise block.error(f"{key} is missing, or not {'a string' if type is str else 'an integer'}.", key)
    return value


def _texts(block: _Block, values: Mapping[str, Any], key: str) -> list[str]:
    value = values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise block.error(f"{key} must be a list of strings.", key)
    return value


def _tables(block: _Block, values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise block.error(f"{key} must be a list of tables.", key)
    return value


def _expression(block: _Block, value: Any, key: str) -> Any:
    """Return an expression's text, or a number."""
    if not isinstance(value, str | int | float) or (isinstance(value, int | float) and not abs(value) < _TOO_LARGE):
        raise block.error(f"{key} has {shown(value)} instead of an expression or a number.", key)
    return value


def _expressions(block: _Block, values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: _expression(block, each, name) for name, each in _table(block, values, key).items()}


def _integer(
    block: _Block, values: Mapping[str, Any], key: str, default: int | None = None, most: int = MOST_ELEMENTS
) -> int:
    """Return a non-negative integer; if it is missing, the default, if any."""
    value: int = _typed(block, values, key, int) if default is None or key in values else default
    if not 0 <= value <= most:
        raise block.error(f"{key} must be an integer from 0 to {most}, not {shown(value)}.", key)
    return value


def _real_number(block: _Block, values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _TOO_LARGE:
        raise block.error(f"{key} must be a non-negative number, not {shown(value)}.", key)
    return float(value)


def _option(block: _Block, values: Mapping[str, Any], name: str) -> Any:
    """Return an option of a question."""
    match name:
        case "block":
            return _integer(block, values, name)
        case "n":
            return _sizes(block, values, name)
        case "gpu":
            return tuple(_texts(block, values, name)) if isinstance(values[name], list) else (values[name],)
        case "until":
            return _place(block, _table(block, values, name), name)
        case "element":
            return _expression(block, values[name], name)
    return _typed(block, values, name, str)


def _modeled(block: _Block, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's limit of the modeled time; empty if there is none."""
    table = _table(block, values, "modeled")
    if not table:
        return {}
    _check_keys(block, table, ("gpu", "n", "times"), "[task.modeled]")
    limit = {"n": _integer(block, table, "n"), "times": _real_number(block, table, "times", 1.2)}
    return {**limit, **({"gpu": _typed(block, table, "gpu", str)} if "gpu" in table else {})}


def _variant(block: _Block, text: str) -> tuple[str, str]:
    """Return the pattern and variant of a name such as "scan/brent-kung"."""
    name, _, variant = text.partition("/")
    pattern = all_patterns().get(name)
    if pattern is None or variant not in (each.name for each in pattern.variants):
        raise block.error(
            f"There is no variant {text!r}; write PATTERN/VARIANT, such as reduction/neighbored.", "lifts"
        )
    return name, variant


def _sizes(block: _Block, values: Mapping[str, Any], key: str) -> tuple[int, ...]:
    value = values.get(key, [])
    sizes = value if isinstance(value, list) else [value]
    if not all(isinstance(each, int) and 0 < each <= MOST_ELEMENTS for each in sizes):
        raise block.error(f"{key} must be an integer from 1 to {MOST_ELEMENTS}, or a list of such integers.", key)
    return tuple(sizes)


def _extents(block: _Block, values: Mapping[str, Any], key: str) -> tuple[str | int, ...]:
    value = values.get(key, 1)
    extents = value if isinstance(value, list) else [value]
    if not 1 <= len(extents) <= 3 or not all(isinstance(each, str | int) for each in extents):
        raise block.error(f"The {key} must be one to three numbers or expressions.", key)
    return tuple(_expression(block, each, key) for each in extents)


def _place(block: _Block, values: Mapping[str, Any], key: str) -> Place:
    _check_keys(block, values, [each.name for each in fields(Place)], "a place")
    time = values.get("time", 1)
    is_list = isinstance(time, list)
    times = time if is_list else [time]
    if not times or not all(isinstance(each, int) and 0 < abs(each) <= MOST_ELEMENTS for each in times):
        raise block.error(
            "time must be a number from 1, or from -1 to count from the end, or a list of such numbers.", "time"
        )
    line = values.get("line", 0)
    place = Place(
        line=line if isinstance(line, str) else _integer(block, values, "line", 0),
        time=tuple(time) if is_list else time,
        phase=_typed(block, values, "phase", str) if "phase" in values else "",
        barrier=_integer(block, values, "barrier", 0),
        launch=_integer(block, values, "launch", 0),
        end=values.get("end", False) is True,
    )
    if not (place.line or place.phase or place.barrier or place.launch or place.end):
        raise block.error("A place needs a line, a phase, a barrier, a launch, or end = true.", key)
    return place
