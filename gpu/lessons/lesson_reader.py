"""Reader of lesson files: `lesson.md` in Markdown, with TOML at the top and in a fenced block of each step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files.file_access import format_path
from gpu.files.text import read_text
from gpu.files.toml import TomlError, format_value, parse
from gpu.lessons.expressions import MAX_ELEMENTS
from gpu.lessons.lesson import TABS, Lesson, LessonStep, Place, PlannedMistake, Question, Scene, Task
from gpu.lessons.question_kinds import QUESTION_KINDS as QUESTIONS
from gpu.lessons.stage import ProgramInterface, Stage, StageLaunch
from gpu.lessons.stage_arrays import INPUT_KINDS, StageArray
from gpu.patterns import all_patterns

LESSON_FILE = "lesson.md"
LIBRARY = ASSETS / "lessons"

TASK_KINDS = ("gap", "repair", "order", "rewrite")
DEFAULT_SIZES = (1, 2, 5, 31, 32, 33, 64, 100, 255, 256, 257, 1000, 1024, 2050)
"""Default sizes of a task."""
DEFAULT_HIDDEN_SIZES = (66_000, 70_000)
"""Default range of a task's hidden size: indices of 16 bits and counts of 8 bits are too narrow for it."""
DEFAULT_SCHEDULE_COUNT = 4
LIMIT_COUNTERS = (
    "requests", "sectors", "sectors_per_request", "shared_requests", "wavefronts", "conflicts", "warp_statements",
    "lane_statements", "branches", "divergent_branches", "operations", "barriers", "atomics", "hottest_atomics",
    "shared_bytes", "exchanges", "returned_atomics",
)  # fmt: skip
"""Counters that a task can limit or require, as in `gpu.messages.run_counts.RunCounts`.

`barriers` is summed over all blocks. `shared_bytes` is the shared memory of a block, static and dynamic. `exchanges`
are shuffles, votes and reductions of warps. `returned_atomics` are requests of atomic operations on global memory whose
results are used.
"""

MARKED_LINES = re.compile(
    r"^(?P<indent>[ \t]*)// (?P<kind>gap|lines): *(?P<says>[^\n]*)\n(?P<body>.*?)^[ \t]*// end[ \t]*\n",
    re.MULTILINE | re.DOTALL,
)
"""Comments in a solution that mark the lines that a student writes or orders."""

_FENCE = re.compile(r"^```toml[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## +(?P<title>.+?)[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\+\+\+[ \t]*\n(?P<body>.*?)^\+\+\+[ \t]*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_MAX_SCHEDULES = 100
_MAX_REASON_LENGTH = 1000
_MAX_NAME_LENGTH = 500
_NUMBER_LIMIT = 1e300
_ELEMENT_TYPES = {"float": "float32", "int": "int32"}
"""Types of the arrays of programs."""


def find_lesson_folders(folder: Path = LIBRARY) -> tuple[Path, ...]:
    """Return the folders of the lessons in a folder, or the folder itself if it is a lesson."""
    if (folder / LESSON_FILE).is_file():
        return (folder,)
    return tuple(path.parent for path in sorted(folder.glob(f"*/{LESSON_FILE}")))


def read_all_lessons(folder: Path = LIBRARY) -> tuple[Lesson, ...]:
    """Return the lessons in a folder in order; raise InputError as `read_lesson`, and if there are none."""
    lessons, errors = read_lessons(folder)
    if errors:
        raise errors[0]
    return lessons


def read_lessons(folder: Path) -> tuple[tuple[Lesson, ...], tuple[InputError, ...]]:
    """Return the readable lessons in a folder, in order, and the errors of the others.

    Raises
    ------
    InputError
        If the folder contains no lesson.
    """
    folders = find_lesson_folders(folder)
    if not folders:
        raise InputError(f"There is no lesson in {folder}: each lesson is a folder with a {LESSON_FILE}.")
    lessons: list[Lesson] = []
    errors: list[InputError] = []
    for each in folders:
        try:
            lessons.append(read_lesson(each))
        except InputError as error:
            errors.append(error)
    return tuple(sorted(lessons, key=lambda lesson: (lesson.order, lesson.name))), tuple(errors)


def read_lesson(folder: Path) -> Lesson:
    """Read a lesson.

    Raises
    ------
    InputError
        If the lesson has an error; the message has file, line and reason.
    """
    folder = Path(os.path.realpath(folder))
    file = folder / LESSON_FILE
    if not file.is_file():
        raise InputError(f"{format_path(folder)} is not a lesson: it has no {LESSON_FILE}.")
    return _LessonReader(folder, read_text(file).replace("\r\n", "\n")).read_lesson()


def solution_text(lesson: Lesson, stage: str) -> str:
    """Return the text of a lesson's kernel file, which is a task's reference solution."""
    file = lesson.stage(stage).file
    return lesson.texts[file] if file in lesson.texts else read_kernel_file(lesson.folder, file)


def plain_text(lesson: Lesson, stage: str) -> str:
    """Return the text of a lesson's kernel file without task marks."""
    return remove_marks(solution_text(lesson, stage))


def remove_marks(text: str) -> str:
    """Remove the comments that mark a task's lines from a kernel file's text."""
    return MARKED_LINES.sub(lambda found: found["body"], text)


def preload_kernels(lesson: Lesson) -> Lesson:
    """Load the lesson's kernel files, for a process that cannot open files later."""
    names = [stage.file for stage in lesson.stages.values()]
    return replace(lesson, texts={name: read_kernel_file(lesson.folder, name) for name in names})


def read_kernel_file(folder: Path, name: str) -> str:
    """Return the text of a kernel file in the lesson's folder; raise InputError if it is elsewhere or unreadable."""
    # Resolve links, including circular ones, before checking the folder.
    path = Path(os.path.realpath(folder / name.replace("\0", "/")))
    if path.parent != Path(os.path.realpath(folder)) or path.suffix != ".cu":
        raise InputError(f"{format_value(name)} is not a kernel file in the lesson's folder: its name must end in .cu.")
    return read_text(path)


@dataclass(frozen=True)
class _TomlBlock:
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
        half = _MAX_REASON_LENGTH // 2
        short = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[:half]}…{reason[-half:]}"
        return InputError(f"{self.file}:{line}: {short}")

    def read(self) -> _Table:
        try:
            return _Table(self, parse(self.text))
        except TomlError as error:
            raise InputError(f"{self.file}:{self.line + error.line - 1}: Invalid TOML: {error.reason}.") from None


class _Table(dict[str, Any]):
    """A table of a block. Its methods raise InputError, at the line of the key, if a value has another type."""

    def __init__(self, block: _TomlBlock, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.block = block
        self.error = block.error

    def check_keys(self, keys: Sequence[str], description: str) -> None:
        for key in self:
            if key not in keys:
                raise self.error(f"{key!r} is not a key of {description}; available: {', '.join(keys)}.", key)

    def check_expression(self, value: Any, key: str) -> Any:
        """Return a value, which has to be an expression's text or a number."""
        if not isinstance(value, str | int | float) or (
            isinstance(value, int | float) and not abs(value) < _NUMBER_LIMIT
        ):
            raise self.error(f"{key} has {format_value(value)} instead of an expression or a number.", key)
        return value

    def read_typed(self, key: str, type: type) -> Any:
        value = self.get(key)
        if not isinstance(value, type) or isinstance(value, bool):
            raise self.error(f"{key} is missing, or not {'a string' if type is str else 'an integer'}.", key)
        return value

    def read_text(self, key: str) -> str:
        text: str = self.read_typed(key, str) if key in self else ""
        return text

    def read_texts(self, key: str) -> list[str]:
        return self._read_list(key, str, "strings")

    def read_table(self, key: str) -> _Table:
        value = self.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a table of names and values.", key)
        return _Table(self.block, value)

    def read_tables(self, key: str) -> list[_Table]:
        return [_Table(self.block, table) for table in self._read_list(key, dict, "tables")]

    def _read_list(self, key: str, type: type, description: str) -> list[Any]:
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, type) for each in value):
            raise self.error(f"{key} must be a list of {description}.", key)
        return value

    def read_expression(self, key: str) -> Any:
        """Return an expression's text or a number; 0 if it is missing."""
        return self.check_expression(self.get(key, 0), key)

    def read_expressions(self, key: str) -> dict[str, Any]:
        return {name: self.check_expression(each, name) for name, each in self.read_table(key).items()}

    def read_integer(self, key: str, default: int | None = None, maximum: int = MAX_ELEMENTS) -> int:
        """Return a non-negative integer; if it is missing, the default, if any."""
        value: int = self.read_typed(key, int) if default is None or key in self else default
        if not 0 <= value <= maximum:
            raise self.error(f"{key} must be an integer from 0 to {maximum}, not {format_value(value)}.", key)
        return value

    def read_real_number(self, key: str, default: float) -> float:
        value = self.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _NUMBER_LIMIT:
            raise self.error(f"{key} must be a non-negative number, not {format_value(value)}.", key)
        return float(value)

    def read_sizes(self, key: str) -> tuple[int, ...]:
        """Return a size, or the sizes of a list; none if it is missing."""
        value = self.get(key, [])
        sizes = value if isinstance(value, list) else [value]
        if not all(isinstance(size, int) and 0 < size <= MAX_ELEMENTS for size in sizes):
            raise self.error(f"{key} must be an integer from 1 to {MAX_ELEMENTS}, or a list of such integers.", key)
        return tuple(sizes)

    def read_extents(self, key: str) -> tuple[str | int, ...]:
        """Return the one to three extents of a grid or block; (1,) if they are missing."""
        value = self.get(key, 1)
        extents = value if isinstance(value, list) else [value]
        if not 1 <= len(extents) <= 3 or not all(isinstance(extent, str | int) for extent in extents):
            raise self.error(f"The {key} must be one to three numbers or expressions.", key)
        return tuple(self.check_expression(extent, key) for extent in extents)

    def parse_array(self, key: str, text: Any) -> StageArray | None:
        """Return the array that a text describes; None for another value. An invalid size raises InputError."""
        try:
            return StageArray.parse(text) if isinstance(text, str) else None
        except InputError as error:
            raise self.error(error.message, key) from None

    def read_place(self, key: str) -> Place:
        table = self.read_table(key)
        table.check_keys([field.name for field in fields(Place)], "a place")
        time = table.get("time", 1)
        is_list = isinstance(time, list)
        times = time if is_list else [time]
        if not times or not all(isinstance(each, int) and 0 < abs(each) <= MAX_ELEMENTS for each in times):
            raise table.error(
                "time must be a number from 1, or from -1 to count from the end, or a list of such numbers.", "time"
            )
        line = table.get("line", 0)
        place = Place(
            line=line if isinstance(line, str) else table.read_integer("line", 0),
            time=tuple(time) if is_list else time,
            phase=table.read_text("phase"),
            barrier=table.read_integer("barrier", 0),
            launch=table.read_integer("launch", 0),
            end=table.get("end", False) is True,
        )
        if not (place.line or place.phase or place.barrier or place.launch or place.end):
            raise table.error("A place needs a line, a phase, a barrier, a launch, or end = true.", key)
        return place


class _LessonReader:
    """Reader of one lesson that locates errors by file and line."""

    def __init__(self, folder: Path, text: str) -> None:
        self._folder, self._text = folder, text
        self._file = f"{format_path(folder.name)}/{LESSON_FILE}"
        self._stages: dict[str, Stage] = {}
        self._tasks: set[str] = set()

    def read_lesson(self) -> Lesson:
        head = _FRONT_MATTER.match(self._text)
        if head is None:
            raise InputError(f"{self._file}:1: A lesson must begin with +++, lines of TOML such as a title, and +++.")
        about = _TomlBlock(head["body"], 2, self._file).read()
        about.check_keys(("title", "order", "needs", "minutes", "lifts", "kernels"), "the lesson's head")
        kernels = about.read_table("kernels")
        for name, values in kernels.items():
            if not isinstance(values, dict):
                raise about.error(f"The kernel {format_value(name)} must be a table, such as [kernels.{name}].", name)
            self._stages[name] = self._read_stage(name, kernels.read_table(name))
        begins = [*_HEADING.finditer(self._text, head.end())]
        text = self._text[head.end() : begins[0].start() if begins else len(self._text)].strip()
        if not begins:
            where = self._find_line(head.end())
            raise InputError(f"{self._file}:{where}: A lesson must have steps: headings that begin with ##.")
        if "```toml" in text:
            where = self._find_line(self._text.index("```toml", head.end()))
            raise InputError(f"{self._file}:{where}: A TOML block must be in a step: put a heading with ## before it.")
        steps: list[LessonStep] = []
        for heading, following in zip(begins, [*begins[1:], None], strict=True):
            end = following.start() if following else len(self._text)
            steps.append(self._read_step(heading, end, steps[-1].scene if steps else None))
        return Lesson(
            self._folder,
            about.read_typed("title", str),
            about.read_integer("order"),
            tuple(about.read_texts("needs")),
            about.read_integer("minutes"),
            text,
            self._stages,
            tuple(steps),
            unlocked_variants=tuple(_read_variant(about, text) for text in about.read_texts("lifts")),
        )

    def _find_line(self, offset: int) -> int:
        return 1 + self._text.count("\n", 0, offset)

    # The lesson's kernels.

    def _read_stage(self, name: str, values: _Table) -> Stage:
        keys = ("file", "kernel", "grid", "block", "shared", "arguments", "arrays", "launches", "constants", "let",
                 "expects", "tolerance", "program", "type", "status", "streams", "failure_status")  # fmt: skip
        values.check_keys(keys, f"the kernel {format_value(name)}")
        program: ProgramInterface | None = None
        arrays = {key: self._read_array(values, key, text) for key, text in values.read_table("arrays").items()}
        if "launches" in values and values.get("program") is not True:
            launches = tuple(self._read_launch(each, each.get("arguments")) for each in values.read_tables("launches"))
        else:
            arguments = dict(values.read_table("arguments"))
            for key, text in arguments.items():
                if (array := values.parse_array(key, text)) is not None:
                    arrays[key] = array
                    arguments[key] = key
            if values.get("program") is True:
                launches, program = (), self._read_program(values, arguments)
            else:
                launches = (self._read_launch(values, [*arguments.values()]),)
        expects = values.read_expressions("expects")
        for key in expects:
            if key not in arrays:
                raise values.error(f"expects has the name {format_value(key)}, but there is no such array.", "expects")
        file = values.read_typed("file", str)
        try:
            read_kernel_file(self._folder, file)
        except InputError as error:
            raise values.error(error.message, "file") from None
        return Stage(
            file=file,
            arrays=arrays,
            launches=launches,
            constants={key: str(text) for key, text in values.read_expressions("constants").items()},
            named_expressions=values.read_expressions("let"),
            expectations={key: str(text) for key, text in expects.items()},
            tolerance=values.read_real_number("tolerance", 1e-5),
            program=program,
        )

    def _read_program(self, values: _Table, arguments: Mapping[str, Any]) -> ProgramInterface:
        for key in ("kernel", "grid", "shared", "constants"):
            if key in values:
                raise values.error(f"A program launches its kernels itself: remove {key}.", key)
        if not values.get("expects"):
            raise values.error("A program needs expects: the expected contents of its arrays.", "program")
        type = values.get("type", "float")
        if type not in _ELEMENT_TYPES:
            raise values.error(f"{format_value(type)} is not a type; available: {', '.join(_ELEMENT_TYPES)}.", "type")
        return ProgramInterface(
            tuple(values.check_expression(argument, "arguments") for argument in arguments.values()),
            _ELEMENT_TYPES[type],
            values.read_expression("status"),
            values.read_integer("streams", 0),
            values.read_expression("block"),
            values.read_expression("launches"),
            values.read_integer("failure_status", 0),
        )

    def _read_array(self, values: _Table, name: str, text: Any) -> StageArray:
        array = values.parse_array(name, text)
        if array is None:
            raise values.error(
                f'{format_value(text)} is not an array: write "in SIZE", "out SIZE" or "inout SIZE".', name
            )
        return array

    def _read_launch(self, values: _Table, arguments: Any) -> StageLaunch:
        if not isinstance(arguments, list):
            raise values.error("A launch needs arguments: names of arrays, numbers and expressions.", "arguments")
        kernel = values.read_typed("kernel", str)
        if len(kernel) > _MAX_NAME_LENGTH:
            raise values.error(f"A kernel's name can have at most {_MAX_NAME_LENGTH} characters.", "kernel")
        return StageLaunch(
            kernel,
            values.read_extents("grid"),
            values.read_extents("block"),
            tuple(values.check_expression(argument, "arguments") for argument in arguments),
            values.read_expression("shared"),
        )

    # Steps.

    def _read_step(self, heading: re.Match[str], end: int, previous_scene: Scene | None) -> LessonStep:
        line = self._find_line(heading.start())
        body = self._text[heading.end() : end]
        blocks = [*_FENCE.finditer(body)]
        if len(blocks) > 1:
            second = self._find_line(heading.end() + blocks[1].start())
            raise InputError(f"{self._file}:{second}: A step can have only one TOML block; this is the second.")
        text = _FENCE.sub("", body).strip()
        if not blocks:
            if "```toml" in body:
                where = self._find_line(heading.end() + body.index("```toml"))
                raise InputError(f"{self._file}:{where}: This TOML block is not closed: end it with ```.")
            return LessonStep(heading["title"], text, line, previous_scene)
        (fence,) = blocks
        values = _TomlBlock(fence["body"], self._find_line(heading.end() + fence.start("body")), self._file).read()
        values.check_keys(("show", "question", "task"), "a step")
        if "question" in values and "task" in values:
            raise values.error("A step can have a question or a task, not both: move one to another step.", "task")
        scene = self._read_scene(values.read_table("show"), previous_scene) if "show" in values else previous_scene
        question = self._read_question(values.read_table("question"), scene) if "question" in values else None
        task = self._read_task(values.read_table("task")) if "task" in values else None
        return LessonStep(heading["title"], text, line, scene, question, task)

    def _read_scene(self, values: _Table, previous_scene: Scene | None) -> Scene:
        keys = ("pattern", "variant", "parameters", "kernel", "n", "tab", "at")
        values.check_keys(keys, "[show]")
        place = values.read_place("at") if "at" in values else None
        tab = values.get("tab", "step")
        if tab not in TABS:
            raise values.error(f"There is no tab {format_value(tab)}; available: {', '.join(TABS)}.", "tab")
        if "pattern" in values:
            patterns = all_patterns()
            name = values["pattern"]
            if not isinstance(name, str) or name not in patterns:
                raise values.error(
                    f"There is no pattern {format_value(name)}; available: {', '.join(patterns)}.", "pattern"
                )
            pattern = patterns[name]
            variant = values.get("variant", pattern.default_variant)
            if variant not in (each.name for each in pattern.variants):
                names = ", ".join(each.name for each in pattern.variants)
                raise values.error(
                    f"{pattern.title} has no variant {format_value(variant)}; it has {names}.", "variant"
                )
            parameters = dict(values.read_table("parameters"))
            for key in parameters:
                if key not in (parameter.name for parameter in pattern.parameters):
                    names = ", ".join(parameter.name for parameter in pattern.parameters)
                    raise values.error(f"{pattern.title} has no parameter {key!r}; it has {names}.", key)
            return Scene(pattern.name, variant, parameters, tab=tab, place=place)
        if "kernel" in values:
            if isinstance(values["kernel"], str) and getattr(self._stages.get(values["kernel"]), "program", None):
                raise values.error("A scene shows a kernel, not a whole program.", "kernel")
            if not isinstance(values["kernel"], str) or values["kernel"] not in self._stages:
                names = ", ".join(self._stages) or "none"
                raise values.error(
                    f"The lesson's head has no kernel {format_value(values['kernel'])}; it has {names}.", "kernel"
                )
            sizes = values.read_sizes("n")
            if not sizes:
                raise values.error("n is missing: a number, or a list to select from.", "kernel")
            return Scene(stage=values["kernel"], sizes=sizes, tab=tab, place=place)
        if previous_scene is None:
            raise values.error("[show] needs a pattern, or a kernel of the lesson's head.", "show")
        return Scene(
            previous_scene.pattern, previous_scene.variant, previous_scene.parameters, previous_scene.stage,
            values.read_sizes("n") or previous_scene.sizes, tab, place,
        )  # fmt: skip

    def _read_question(self, values: _Table, scene: Scene | None) -> Question:
        ask = values.read_typed("ask", str)
        if ask not in QUESTIONS:
            raise values.error(f"{ask!r} is not a kind of question; available: {', '.join(QUESTIONS)}.", "ask")
        if scene is None:
            raise values.error("A question needs a scene: add [show] here or in an earlier step.", "question")
        kind = QUESTIONS[ask]
        values.check_keys(("ask", "prompt", "hints", *kind.optional_options), f"a question of the kind {ask!r}")
        for name in kind.required_options:
            if name not in values:
                raise values.error(f"A question of the kind {ask!r} needs {name!r}.", "ask")
        for name, allowed in kind.choices.items():
            if name in values and values[name] not in allowed:
                raise values.error(
                    f"{name} must be one of {', '.join(allowed)}, not {format_value(values[name])}.", name
                )
        options = {name: _read_option(values, name) for name in kind.optional_options if name in values}
        prompt = values.read_text("prompt")
        return Question(ask, prompt, tuple(values.read_texts("hints")), options, values.block.line)

    def _read_task(self, values: _Table) -> Task:
        keys = ("name", "kind", "prompt", "kernel", "start", "sizes", "hidden", "kinds", "limits", "requires", "orders",
                "modeled", "mistakes", "hints")  # fmt: skip
        values.check_keys(keys, "a task")
        name = values.read_typed("name", str)
        if not _NAME.fullmatch(name):
            raise values.error(f"{name!r} is not a task name: use small letters, digits and hyphens.", "name")
        if name in self._tasks:
            raise values.error(f"The task name {name!r} is used twice.", "name")
        self._tasks.add(name)
        kind = values.read_typed("kind", str)
        if kind not in TASK_KINDS:
            raise values.error(f"{kind!r} is not a kind of task; available: {', '.join(TASK_KINDS)}.", "kind")
        stage = values.read_typed("kernel", str)
        if stage not in self._stages:
            names = ", ".join(self._stages) or "none"
            raise values.error(f"The lesson's head has no kernel {stage!r}; it has {names}.", "kernel")
        limits, requirements = (values.read_expressions(key) for key in ("limits", "requires"))
        for limit in (*limits, *requirements):
            if limit not in LIMIT_COUNTERS:
                raise values.error(f"{limit!r} is not a counter; available: {', '.join(LIMIT_COUNTERS)}.", limit)
        if self._stages[stage].program is not None and ({"limits", "requires", "modeled"} & values.keys()):
            raise values.error("A task whose submission is a whole program has no limits.", "limits")
        kinds = tuple(values.read_texts("kinds")) or INPUT_KINDS
        for input_kind in kinds:
            if input_kind not in INPUT_KINDS:
                raise values.error(
                    f"{input_kind!r} is not a kind of input; available: {', '.join(INPUT_KINDS)}.", "kinds"
                )
        hidden_sizes = values.read_sizes("hidden")
        if hidden_sizes and (len(hidden_sizes) != 2 or hidden_sizes[0] > hidden_sizes[1]):
            raise values.error("hidden must be the least and the greatest hidden size: [66000, 70000].", "hidden")
        if not hidden_sizes and not values.get("sizes"):
            hidden_sizes = DEFAULT_HIDDEN_SIZES
        mistakes = tuple(self._read_mistake(table) for table in values.read_tables("mistakes"))
        if kind == "repair" and not mistakes:
            raise values.error("A repair task needs mistakes: [[task.mistakes]]; the first is the one to repair.")
        if kind == "rewrite":
            try:
                read_kernel_file(self._folder, values.read_typed("start", str))
            except InputError as error:
                raise values.error(error.message.removeprefix(f"{self._file}:{values.block.line}: "), "start") from None
        return Task(
            name, kind, values.read_typed("prompt", str), stage,
            start=values.read_text("start"),
            sizes=tuple(sorted(values.read_sizes("sizes"))) or DEFAULT_SIZES,
            hidden_sizes=hidden_sizes,
            kinds=kinds,
            limits=limits,
            requirements=requirements,
            schedule_count=values.read_integer("orders", DEFAULT_SCHEDULE_COUNT, _MAX_SCHEDULES),
            modeled_limit=_read_modeled_limit(values),
            mistakes=mistakes,
            hints=tuple(values.read_texts("hints")),
            line=values.block.line,
        )  # fmt: skip

    def _read_mistake(self, values: _Table) -> PlannedMistake:
        try:
            return PlannedMistake(**{name: values.read_typed(name, str) for name in values})
        except TypeError:
            raise values.error("A mistake needs says (its explanation), replace (the old text) and by (the new text).",
                              "mistakes") from None  # fmt: skip


def _read_option(question: _Table, name: str) -> Any:
    match name:
        case "block":
            return question.read_integer(name)
        case "n":
            return question.read_sizes(name)
        case "gpu":
            return tuple(question.read_texts(name)) if isinstance(question[name], list) else (question[name],)
        case "until":
            return question.read_place(name)
        case "element":
            return question.read_expression(name)
    return question.read_typed(name, str)


def _read_modeled_limit(task: _Table) -> dict[str, Any]:
    """Return a task's limit of the modeled time; empty if there is none."""
    table = task.read_table("modeled")
    if not table:
        return {}
    table.check_keys(("gpu", "n", "times"), "[task.modeled]")
    limit = {"n": table.read_integer("n"), "times": table.read_real_number("times", 1.2)}
    return {**limit, **({"gpu": table.read_typed("gpu", str)} if "gpu" in table else {})}


def _read_variant(head: _Table, text: str) -> tuple[str, str]:
    """Return the pattern and variant of a name such as "scan/brent-kung"."""
    name, _, variant = text.partition("/")
    pattern = all_patterns().get(name)
    if pattern is None or variant not in (each.name for each in pattern.variants):
        raise head.error(f"There is no variant {text!r}; write PATTERN/VARIANT, such as reduction/neighbored.", "lifts")
    return name, variant
