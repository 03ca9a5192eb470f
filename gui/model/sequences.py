"""Sequences of prepared moments for a lecture: a TOML file that people can edit, validated as untrusted input."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files.file_access import format_path, read_bytes, replace_file
from gpu.files.toml import TomlError, format_value, parse

SUFFIX = ".sequence"
BUILTIN_FOLDER = ASSETS / "sequences"
"""Lockstep's own sequences."""
MAX_FILE_BYTES = 2**20
MAX_MOMENTS = 500
_MAX_LINE_LENGTH = 200
"""Maximum number of characters of a title or name."""
_MAX_NOTE_LENGTH = 10_000
_MAX_VALUES = 4096
"""Maximum number of values of an array among the settings."""
_MAX_STEP = 2**31 - 1
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPED_CHARACTERS = re.compile(r'["\\\x00-\x1f\x7f]')


@dataclass(frozen=True)
class Moment:
    """A state of the window that a lecturer prepared.

    Parameters
    ----------
    pattern, variant : str
        Their names, as on the command line.
    tab : str
        Title of the page's tab.
    picture : str
        Name of the Step tab's picture; "" for the recording's default.
    step : int
        Step of the recording, from 0.
    settings : mapping of str to int, float, str or list
        Parameters of the recording in the Step tab, of the run in other tabs; the others have their defaults.
    seed : int
        Which of the generated inputs is recorded.
    schedule : str
        Schedule of the recording, such as "shuffle:3"; "" for the default.
    image : str
        An image: the name of a sample, or a file next to the sequence; "" for the open one.
    note : str
        What the lecturer wants to say; one or more lines.
    """

    title: str
    pattern: str
    variant: str
    tab: str = "Step"
    picture: str = ""
    step: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    schedule: str = ""
    image: str = ""
    note: str = ""


@dataclass(frozen=True)
class MomentSequence:
    """A sequence of moments.

    Parameters
    ----------
    errors : tuple of str
        A sentence for each moment of the file that could not be read.
    """

    title: str
    moments: tuple[Moment, ...] = ()
    errors: tuple[str, ...] = ()


def read_sequence(path: Path) -> tuple[MomentSequence, bytes]:
    """Return the sequence in a file, and the file's bytes; raise InputError if there is none."""
    data = read_bytes(path, MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{format_path(path.name)} is not a sequence: it is not UTF-8 text.") from None
    return parse_sequence(text, format_path(path.name)), data


@functools.cache
def list_builtin_sequences() -> tuple[tuple[str, Path], ...]:
    """Return title and path of each of Lockstep's own sequences, in the order of their file names."""
    return tuple((read_sequence(path)[0].title, path) for path in sorted(BUILTIN_FOLDER.glob(f"*{SUFFIX}")))


def write_sequence(path: Path, sequence: MomentSequence) -> bytes:
    """Write a sequence, completely or not at all, and return the bytes; raise InputError if that fails."""
    data = format_sequence(sequence).encode("utf-8")
    if len(data) > MAX_FILE_BYTES or len(sequence.moments) > MAX_MOMENTS:
        raise InputError(f"It is too large: the limits are {MAX_MOMENTS} moments and {MAX_FILE_BYTES >> 20} MB.")
    with replace_file(path) as file:
        file.write(data)
    return data


def parse_sequence(text: str, name: str) -> MomentSequence:
    """Return the sequence in a text; moments with errors are omitted and reported in `errors`.

    Raises
    ------
    InputError
        If the text is not TOML, or has no title or list of moments.
    """
    try:
        table = parse(text.removeprefix("\ufeff"))
    except TomlError as error:
        raise InputError(f"{name}, line {error.line}: {error.reason}.") from None
    unknown = next((key for key in table if key not in ("title", "moment")), None)
    if unknown is not None:
        raise InputError(f"{name}: {format_value(unknown)} is unknown. A sequence has `title` and [[moment]] tables.")
    moments = table.get("moment", [])
    if not isinstance(moments, list):
        raise InputError(f"{name}: `moment` is not a list. Each moment begins with a line [[moment]].")
    if len(moments) > MAX_MOMENTS:
        raise InputError(f"{name} has {len(moments)} moments; the limit is {MAX_MOMENTS}.")
    try:
        title = _read_text(table, "title", _MAX_LINE_LENGTH)
    except InputError as error:
        raise InputError(f"{name}: {error.message}") from None
    valid, errors = [], []
    for number, moment in enumerate(moments, 1):
        try:
            valid.append(_read_moment(moment))
        except InputError as error:
            errors.append(f"{name}, moment {number}: {error.message}")
    return MomentSequence(title, tuple(valid), tuple(errors))


def _read_moment(table: object) -> Moment:
    if not isinstance(table, dict):
        raise InputError(f"{format_value(table)} is not a table.")
    names = [each.name for each in fields(Moment)]
    unknown = next((key for key in table if key not in names), None)
    if unknown is not None:
        raise InputError(f"{format_value(unknown)} is unknown. A moment has {', '.join(names)}.")
    texts = {
        name: _read_text(table, name, _MAX_NOTE_LENGTH if name == "note" else _MAX_LINE_LENGTH)
        for name in ("title", "pattern", "variant", *("tab", "picture", "schedule", "image", "note"))
        if name in table or name in ("title", "pattern", "variant")
    }
    numbers = {name: _read_number(table, name) for name in ("step", "seed") if name in table}
    return Moment(**texts, **numbers, settings=_read_settings(table.get("settings", {})))  # type: ignore[arg-type]


def _read_text(table: Mapping[str, Any], name: str, max_length: int) -> str:
    value = table.get(name)
    if value is None:
        raise InputError(f"`{name}` is missing.")
    if not isinstance(value, str):
        raise InputError(f"`{name}` is {format_value(value)}, not a text in quotes.")
    if len(value) > max_length:
        raise InputError(f"`{name}` has {len(value)} characters; the limit is {max_length}.")
    if _CONTROL_CHARACTER.search(value) or (name != "note" and ("\n" in value or "\t" in value)):
        raise InputError(f"`{name}` contains a control character.")
    if name != "note" and name in ("title", "pattern", "variant", "tab") and not value.strip():
        raise InputError(f"`{name}` is empty.")
    return value.strip() if name != "note" else value.strip("\n")


def _read_number(table: Mapping[str, Any], name: str) -> int:
    value = table[name]
    if type(value) is not int or not 0 <= value <= _MAX_STEP:
        raise InputError(f"`{name}` is {format_value(value)}, not a whole number from 0 to {_MAX_STEP}.")
    return value


def _read_settings(table: object) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise InputError(f"`settings` is {format_value(table)}, not a table such as {{ n = 16 }}.")
    for name, value in table.items():
        values = [each for row in (value if isinstance(value, list) else [value]) for each in _flatten_row(row)]
        if len(values) > _MAX_VALUES or any(type(each) not in (bool, int, float, str) for each in values):
            raise InputError(f"The setting {format_value(name)} is {format_value(value)}, not a number, text or array.")
    return table


def _flatten_row(row: Any) -> list[Any]:
    return row if isinstance(row, list) else [row]


def clean_note(text: str) -> str:
    """Return a typed note without control characters, and cut to the limit of the file."""
    return _CONTROL_CHARACTER.sub("", text)[:_MAX_NOTE_LENGTH].strip("\n")


def clean_title(text: str) -> str:
    """Return a typed title in one line without control characters, and cut to the limit of the file."""
    return _CONTROL_CHARACTER.sub("", " ".join(text.split()))[:_MAX_LINE_LENGTH].strip()


# --- formatting


def format_sequence(sequence: MomentSequence) -> str:
    """Return the text of a sequence's file, from which `parse_sequence` restores the same moments."""
    blocks = [f"title = {_format_string(sequence.title)}\n"]
    for moment in sequence.moments:
        lines = ["[[moment]]"]
        for each in fields(Moment):
            value = getattr(moment, each.name)
            if each.name == "note":
                lines += [f"note = {_format_note(value)}"] if value else []
            elif value != each.default and value != {}:
                lines.append(f"{each.name} = {_format_value(value)}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return _format_string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_format_key(key)} = {_format_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    return repr(value)


def _format_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _format_string(key)


def _format_string(text: str) -> str:
    return '"' + _ESCAPED_CHARACTERS.sub(lambda found: _escape(found[0]), text) + '"'


def _format_note(text: str) -> str:
    """Return a note as a string of several lines, which is easy to edit and to compare."""
    escaped = "\n".join(_ESCAPED_CHARACTERS.sub(lambda found: _escape(found[0]), line) for line in text.split("\n"))
    return f'"""\n{escaped}\n"""'


def _escape(character: str) -> str:
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"
