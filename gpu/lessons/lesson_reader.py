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

    def read(self) -> dict[str, Any]:
        try:
            return parse(self.text)
        except TomlError as error:
            raise InputError(f"{self.file}:{self.line + error.line - 1}: Invalid TOML: {error.reason}.") from None


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
        block = _TomlBlock(head["body"], 2, self._file)
        about = block.read()
        _check_keys(block, about, ("title", "order", "needs", "minutes", "lifts", "kernels"), "the lesson's head")
        for name, values in _read_table(block, about, "kernels").items():
            self._stages[name] = self._read_stage(block, name, values)
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
            _read_typed(block, about, "title", str),
            _read_integer(block, about, "order"),
            tuple(_read_texts(block, about, "needs")),
            _read_integer(block, about, "minutes"),
            text,
            self._stages,
            tuple(steps),
            unlocked_variants=tuple(_read_variant(block, text) for text in _read_texts(block, about, "lifts")),
        )

    def _find_line(self, offset: int) -> int:
        return 1 + self._text.count("\n", 0, offset)

    # The lesson's kernels.

    def _read_stage(self, block: _TomlBlock, name: str, values: Any) -> Stage:
        if not isinstance(values, dict):
            raise block.error(f"The kernel {format_value(name)} must be a table, such as [kernels.{name}].", name)
        keys = ("file", "kernel", "grid", "block", "shared", "arguments", "arrays", "launches", "constants", "let",
                 "expects", "tolerance", "program", "type", "status", "streams", "failure_status")  # fmt: skip
        _check_keys(block, values, keys, f"the kernel {format_value(name)}")
        program: ProgramInterface | None = None
        arrays = {key: self._read_array(block, key, text) for key, text in _read_table(block, values, "arrays").items()}
        if "launches" in values and values.get("program") is not True:
            launches = tuple(self._read_launch(block, table) for table in _read_tables(block, values, "launches"))
        else:
            arguments = dict(_read_table(block, values, "arguments"))
            for key, text in arguments.items():
                if isinstance(text, str) and (array := _parse_array(block, key, text)) is not None:
                    arrays[key] = array
                    arguments[key] = key
            if values.get("program") is True:
                launches, program = (), self._read_program(block, values, arguments)
            else:
                launches = (self._read_launch(block, {**values, "arguments": list(arguments.values())}),)
        expects = _read_expressions(block, values, "expects")
        for key in expects:
            if key not in arrays:
                raise block.error(f"expects has the name {format_value(key)}, but there is no such array.", "expects")
        file = _read_typed(block, values, "file", str)
        try:
            read_kernel_file(self._folder, file)
        except InputError as error:
            raise block.error(error.message, "file") from None
        return Stage(
            file=file,
            arrays=arrays,
            launches=launches,
            constants={key: str(text) for key, text in _read_expressions(block, values, "constants").items()},
            named_expressions=_read_expressions(block, values, "let"),
            expectations={key: str(text) for key, text in expects.items()},
            tolerance=_read_real_number(block, values, "tolerance", 1e-5),
            program=program,
        )

    def _read_program(
        self, block: _TomlBlock, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> ProgramInterface:
        for key in ("kernel", "grid", "shared", "constants"):
            if key in values:
                raise block.error(f"A program launches its kernels itself: remove {key}.", key)
        if not values.get("expects"):
            raise block.error("A program needs expects: the expected contents of its arrays.", "program")
        type = values.get("type", "float")
        if type not in _ELEMENT_TYPES:
            raise block.error(f"{format_value(type)} is not a type; available: {', '.join(_ELEMENT_TYPES)}.", "type")
        return ProgramInterface(
            tuple(_read_expression(block, argument, "arguments") for argument in arguments.values()),
            _ELEMENT_TYPES[type],
            _read_expression(block, values.get("status", 0), "status"),
            _read_integer(block, values, "streams", 0),
            _read_expression(block, values.get("block", 0), "block"),
            _read_expression(block, values.get("launches", 0), "launches"),
            _read_integer(block, values, "failure_status", 0),
        )

    def _read_array(self, block: _TomlBlock, name: str, text: Any) -> StageArray:
        array = _parse_array(block, name, text) if isinstance(text, str) else None
        if array is None:
            raise block.error(
                f'{format_value(text)} is not an array: write "in SIZE", "out SIZE" or "inout SIZE".', name
            )
        return array

    def _read_launch(self, block: _TomlBlock, values: Mapping[str, Any]) -> StageLaunch:
        arguments = values.get("arguments")
        if not isinstance(arguments, list):
            raise block.error("A launch needs arguments: names of arrays, numbers and expressions.", "arguments")
        kernel = _read_typed(block, values, "kernel", str)
        if len(kernel) > _MAX_NAME_LENGTH:
            raise block.error(f"A kernel's name can have at most {_MAX_NAME_LENGTH} characters.", "kernel")
        return StageLaunch(
            kernel,
            _read_extents(block, values, "grid"),
            _read_extents(block, values, "block"),
            tuple(_read_expression(block, argument, "arguments") for argument in arguments),
            _read_expression(block, values.get("shared", 0), "shared"),
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
        block = _TomlBlock(fence["body"], self._find_line(heading.end() + fence.start("body")), self._file)
        values = block.read()
        _check_keys(block, values, ("show", "question", "task"), "a step")
        if "question" in values and "task" in values:
            raise block.error("A step can have a question or a task, not both: move one to another step.", "task")
        scene = (
            self._read_scene(block, _read_table(block, values, "show"), previous_scene)
            if "show" in values
            else previous_scene
        )
        question = (
            self._read_question(block, _read_table(block, values, "question"), scene) if "question" in values else None
        )
        task = self._read_task(block, _read_table(block, values, "task")) if "task" in values else None
        return LessonStep(heading["title"], text, line, scene, question, task)

    def _read_scene(self, block: _TomlBlock, values: Mapping[str, Any], previous_scene: Scene | None) -> Scene:
        keys = ("pattern", "variant", "parameters", "kernel", "n", "tab", "at")
        _check_keys(block, values, keys, "[show]")
        place = _read_place(block, _read_table(block, values, "at"), "at") if "at" in values else None
        tab = values.get("tab", "step")
        if tab not in TABS:
            raise block.error(f"There is no tab {format_value(tab)}; available: {', '.join(TABS)}.", "tab")
        if "pattern" in values:
            patterns = all_patterns()
            name = values["pattern"]
            if not isinstance(name, str) or name not in patterns:
                raise block.error(
                    f"There is no pattern {format_value(name)}; available: {', '.join(patterns)}.", "pattern"
                )
            pattern = patterns[name]
            variant = values.get("variant", pattern.default_variant)
            if variant not in (each.name for each in pattern.variants):
                names = ", ".join(each.name for each in pattern.variants)
                raise block.error(f"{pattern.title} has no variant {format_value(variant)}; it has {names}.", "variant")
            parameters = _read_table(block, values, "parameters")
            for key in parameters:
                if key not in (parameter.name for parameter in pattern.parameters):
                    names = ", ".join(parameter.name for parameter in pattern.parameters)
                    raise block.error(f"{pattern.title} has no parameter {key!r}; it has {names}.", key)
            return Scene(pattern.name, variant, parameters, tab=tab, place=place)
        if "kernel" in values:
            if isinstance(values["kernel"], str) and getattr(self._stages.get(values["kernel"]), "program", None):
                raise block.error("A scene shows a kernel, not a whole program.", "kernel")
            if not isinstance(values["kernel"], str) or values["kernel"] not in self._stages:
                names = ", ".join(self._stages) or "none"
                raise block.error(
                    f"The lesson's head has no kernel {format_value(values['kernel'])}; it has {names}.", "kernel"
                )
            sizes = _read_sizes(block, values, "n")
            if not sizes:
                raise block.error("n is missing: a number, or a list to select from.", "kernel")
            return Scene(stage=values["kernel"], sizes=sizes, tab=tab, place=place)
        if previous_scene is None:
            raise block.error("[show] needs a pattern, or a kernel of the lesson's head.", "show")
        return Scene(
            previous_scene.pattern, previous_scene.variant, previous_scene.parameters, previous_scene.stage,
            _read_sizes(block, values, "n") or previous_scene.sizes, tab, place,
        )  # fmt: skip

    def _read_question(self, block: _TomlBlock, values: Mapping[str, Any], scene: Scene | None) -> Question:
        ask = _read_typed(block, values, "ask", str)
        if ask not in QUESTIONS:
            raise block.error(f"{ask!r} is not a kind of question; available: {', '.join(QUESTIONS)}.", "ask")
        if scene is None:
            raise block.error("A question needs a scene: add [show] here or in an earlier step.", "question")
        kind = QUESTIONS[ask]
        _check_keys(
            block, values, ("ask", "prompt", "hints", *kind.optional_options), f"a question of the kind {ask!r}"
        )
        for name in kind.required_options:
            if name not in values:
                raise block.error(f"A question of the kind {ask!r} needs {name!r}.", "ask")
        for name, allowed in kind.choices.items():
            if name in values and values[name] not in allowed:
                raise block.error(
                    f"{name} must be one of {', '.join(allowed)}, not {format_value(values[name])}.", name
                )
        options = {name: _read_option(block, values, name) for name in kind.optional_options if name in values}
        prompt = _read_typed(block, values, "prompt", str) if "prompt" in values else ""
        return Question(ask, prompt, tuple(_read_texts(block, values, "hints")), options, block.line)

    def _read_task(self, block: _TomlBlock, values: Mapping[str, Any]) -> Task:
        keys = ("name", "kind", "prompt", "kernel", "start", "sizes", "hidden", "kinds", "limits", "requires", "orders",
                "modeled", "mistakes", "hints")  # fmt: skip
        _check_keys(block, values, keys, "a task")
        name = _read_typed(block, values, "name", str)
        if not _NAME.fullmatch(name):
            raise block.error(f"{name!r} is not a task name: use small letters, digits and hyphens.", "name")
        if name in self._tasks:
            raise block.error(f"The task name {name!r} is used twice.", "name")
        self._tasks.add(name)
        kind = _read_typed(block, values, "kind", str)
        if kind not in TASK_KINDS:
            raise block.error(f"{kind!r} is not a kind of task; available: {', '.join(TASK_KINDS)}.", "kind")
        stage = _read_typed(block, values, "kernel", str)
        if stage not in self._stages:
            names = ", ".join(self._stages) or "none"
            raise block.error(f"The lesson's head has no kernel {stage!r}; it has {names}.", "kernel")
        limits, requirements = (_read_expressions(block, values, key) for key in ("limits", "requires"))
        for limit in (*limits, *requirements):
            if limit not in LIMIT_COUNTERS:
                raise block.error(f"{limit!r} is not a counter; available: {', '.join(LIMIT_COUNTERS)}.", limit)
        if self._stages[stage].program is not None and ({"limits", "requires", "modeled"} & values.keys()):
            raise block.error("A task whose submission is a whole program has no limits.", "limits")
        kinds = tuple(_read_texts(block, values, "kinds")) or INPUT_KINDS
        for input_kind in kinds:
            if input_kind not in INPUT_KINDS:
                raise block.error(
                    f"{input_kind!r} is not a kind of input; available: {', '.join(INPUT_KINDS)}.", "kinds"
                )
        hidden_sizes = _read_sizes(block, values, "hidden")
        if hidden_sizes and (len(hidden_sizes) != 2 or hidden_sizes[0] > hidden_sizes[1]):
            raise block.error("hidden must be the least and the greatest hidden size: [66000, 70000].", "hidden")
        if not hidden_sizes and not values.get("sizes"):
            hidden_sizes = DEFAULT_HIDDEN_SIZES
        mistakes = tuple(self._read_mistake(block, table) for table in _read_tables(block, values, "mistakes"))
        if kind == "repair" and not mistakes:
            raise block.error("A repair task needs mistakes: [[task.mistakes]]; the first is the one to repair.")
        if kind == "rewrite":
            try:
                read_kernel_file(self._folder, _read_typed(block, values, "start", str))
            except InputError as error:
                raise block.error(error.message.removeprefix(f"{self._file}:{block.line}: "), "start") from None
        return Task(
            name, kind, _read_typed(block, values, "prompt", str), stage,
            start=_read_typed(block, values, "start", str) if "start" in values else "",
            sizes=tuple(sorted(_read_sizes(block, values, "sizes"))) or DEFAULT_SIZES,
            hidden_sizes=hidden_sizes,
            kinds=kinds,
            limits=limits,
            requirements=requirements,
            schedule_count=_read_integer(block, values, "orders", DEFAULT_SCHEDULE_COUNT, _MAX_SCHEDULES),
            modeled_limit=_read_modeled_limit(block, values),
            mistakes=mistakes,
            hints=tuple(_read_texts(block, values, "hints")),
            line=block.line,
        )  # fmt: skip

    def _read_mistake(self, block: _TomlBlock, values: Mapping[str, Any]) -> PlannedMistake:
        try:
            return PlannedMistake(**{name: _read_typed(block, values, name, str) for name in values})
        except TypeError:
            raise block.error("A mistake needs says (its explanation), replace (the old text) and by (the new text).",
                              "mistakes") from None  # fmt: skip


def _check_keys(block: _TomlBlock, values: Mapping[str, Any], keys: Sequence[str], description: str) -> None:
    for key in values:
        if key not in keys:
            raise block.error(f"{key!r} is not a key of {description}; available: {', '.join(keys)}.", key)


def _read_table(block: _TomlBlock, values: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise block.error(f"{key} must be a table of names and values.", key)
    return value


def _read_typed(block: _TomlBlock, values: Mapping[str, Any], key: str, type: type) -> Any:
    value = values.get(key)
    if not isinstance(value, type) or isinstance(value, bool):
        raise block.error(f"{key} is missing, or not {'a string' if type is str else 'an integer'}.", key)
    return value


def _read_texts(block: _TomlBlock, values: Mapping[str, Any], key: str) -> list[str]:
    value = values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise block.error(f"{key} must be a list of strings.", key)
    return value


def _read_tables(block: _TomlBlock, values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise block.error(f"{key} must be a list of tables.", key)
    return value


def _parse_array(block: _TomlBlock, key: str, text: str) -> StageArray | None:
    try:
        return StageArray.parse(text)
    except InputError as error:
        raise block.error(error.message, key) from None


def _read_expression(block: _TomlBlock, value: Any, key: str) -> Any:
    """Return an expression's text, or a number."""
    if not isinstance(value, str | int | float) or (isinstance(value, int | float) and not abs(value) < _NUMBER_LIMIT):
        raise block.error(f"{key} has {format_value(value)} instead of an expression or a number.", key)
    return value


def _read_expressions(block: _TomlBlock, values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: _read_expression(block, each, name) for name, each in _read_table(block, values, key).items()}


def _read_integer(
    block: _TomlBlock, values: Mapping[str, Any], key: str, default: int | None = None, maximum: int = MAX_ELEMENTS
) -> int:
    """Return a non-negative integer; if it is missing, the default, if any."""
    value: int = _read_typed(block, values, key, int) if default is None or key in values else default
    if not 0 <= value <= maximum:
        raise block.error(f"{key} must be an integer from 0 to {maximum}, not {format_value(value)}.", key)
    return value


def _read_real_number(block: _TomlBlock, values: Mapping[str, Any], key: str, default: float) -> float:
    value = values.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _NUMBER_LIMIT:
        raise block.error(f"{key} must be a non-negative number, not {format_value(value)}.", key)
    return float(value)


def _read_option(block: _TomlBlock, values: Mapping[str, Any], name: str) -> Any:
    """Return an option of a question."""
    match name:
        case "block":
            return _read_integer(block, values, name)
        case "n":
            return _read_sizes(block, values, name)
        case "gpu":
            return tuple(_read_texts(block, values, name)) if isinstance(values[name], list) else (values[name],)
        case "until":
            return _read_place(block, _read_table(block, values, name), name)
        case "element":
            return _read_expression(block, values[name], name)
    return _read_typed(block, values, name, str)


def _read_modeled_limit(block: _TomlBlock, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's limit of the modeled time; empty if there is none."""
    table = _read_table(block, values, "modeled")
    if not table:
        return {}
    _check_keys(block, table, ("gpu", "n", "times"), "[task.modeled]")
    limit = {"n": _read_integer(block, table, "n"), "times": _read_real_number(block, table, "times", 1.2)}
    return {**limit, **({"gpu": _read_typed(block, table, "gpu", str)} if "gpu" in table else {})}


def _read_variant(block: _TomlBlock, text: str) -> tuple[str, str]:
    """Return the pattern and variant of a name such as "scan/brent-kung"."""
    name, _, variant = text.partition("/")
    pattern = all_patterns().get(name)
    if pattern is None or variant not in (each.name for each in pattern.variants):
        raise block.error(
            f"There is no variant {text!r}; write PATTERN/VARIANT, such as reduction/neighbored.", "lifts"
        )
    return name, variant


def _read_sizes(block: _TomlBlock, values: Mapping[str, Any], key: str) -> tuple[int, ...]:
    value = values.get(key, [])
    sizes = value if isinstance(value, list) else [value]
    if not all(isinstance(size, int) and 0 < size <= MAX_ELEMENTS for size in sizes):
        raise block.error(f"{key} must be an integer from 1 to {MAX_ELEMENTS}, or a list of such integers.", key)
    return tuple(sizes)


def _read_extents(block: _TomlBlock, values: Mapping[str, Any], key: str) -> tuple[str | int, ...]:
    value = values.get(key, 1)
    extents = value if isinstance(value, list) else [value]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, str | int) for extent in extents):
        raise block.error(f"The {key} must be one to three numbers or expressions.", key)
    return tuple(_read_expression(block, extent, key) for extent in extents)


def _read_place(block: _TomlBlock, values: Mapping[str, Any], key: str) -> Place:
    _check_keys(block, values, [field.name for field in fields(Place)], "a place")
    time = values.get("time", 1)
    is_list = isinstance(time, list)
    times = time if is_list else [time]
    if not times or not all(isinstance(each, int) and 0 < abs(each) <= MAX_ELEMENTS for each in times):
        raise block.error(
            "time must be a number from 1, or from -1 to count from the end, or a list of such numbers.", "time"
        )
    line = values.get("line", 0)
    place = Place(
        line=line if isinstance(line, str) else _read_integer(block, values, "line", 0),
        time=tuple(time) if is_list else time,
        phase=_read_typed(block, values, "phase", str) if "phase" in values else "",
        barrier=_read_integer(block, values, "barrier", 0),
        launch=_read_integer(block, values, "launch", 0),
        end=values.get("end", False) is True,
    )
    if not (place.line or place.phase or place.barrier or place.launch or place.end):
        raise block.error("A place needs a line, a phase, a barrier, a launch, or end = true.", key)
    return place
