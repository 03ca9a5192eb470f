"""The file of a sequence: what is written is read again, and everything else is refused with a sentence."""

from __future__ import annotations

import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gui.model.sequences import (
    MAX_FILE_BYTES,
    MAX_MOMENTS,
    Moment,
    MomentSequence,
    format_sequence,
    parse_sequence,
    read_sequence,
    write_sequence,
)

MINIMAL = 'title = "T"\n[[moment]]\ntitle = "M"\npattern = "scan"\nvariant = "naive"\n'

_PRINTABLE = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
_LINES = st.text(_PRINTABLE, min_size=1, max_size=30).filter(lambda text: text.strip() == text)
_NOTES = st.lists(st.text(st.one_of(_PRINTABLE, st.just("\t")), max_size=30), max_size=4).map(
    lambda lines: "\n".join(lines).strip("\n")
)
_SCALARS = st.one_of(st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.booleans(), _LINES)
_SETTINGS = st.dictionaries(_LINES, st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3)), max_size=3)
_NUMBERS = st.integers(0, 2**31 - 1)
_MOMENTS = st.builds(
    Moment, title=_LINES, pattern=_LINES, variant=_LINES, tab=_LINES, picture=st.one_of(st.just(""), _LINES),
    step=_NUMBERS, settings=_SETTINGS, seed=_NUMBERS, schedule=st.one_of(st.just(""), _LINES),
    image=st.one_of(st.just(""), _LINES), note=_NOTES,
)  # fmt: skip


@given(st.builds(MomentSequence, _LINES, st.lists(_MOMENTS, max_size=3).map(tuple)))
def test_what_is_written_is_read_again(sequence):
    text = format_sequence(sequence)
    assert tomllib.loads(text)["title"] == sequence.title
    assert parse_sequence(text, "a.sequence") == sequence


def test_a_note_has_one_line_of_the_file_for_each_of_its_lines():
    text = format_sequence(MomentSequence("T", (Moment("M", "scan", "naive", note='first "line"\nsecond \\ line'),)))
    assert text.endswith('note = """\nfirst \\"line\\"\nsecond \\\\ line\n"""\n')


def test_defaults_are_not_written():
    assert format_sequence(MomentSequence("T", (Moment("M", "scan", "naive"),))) == MINIMAL.replace("[[", "\n[[")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "a.sequence, line 1: Invalid value."),
        ('title = "T"\n\nmoment = [[[\n', "a.sequence, line 3: Invalid value."),
        ("", "a.sequence: `title` is missing."),
        ("title = 3", "a.sequence: `title` is 3, not a text in quotes."),
        ('title = " "', "a.sequence: `title` is empty."),
        ('title = "T"\nmoment = 3', "a.sequence: `moment` is not a list. Each moment begins with a line [[moment]]."),
        ('titel = "T"', "a.sequence: 'titel' is unknown. A sequence has `title` and [[moment]] tables."),
        ('title = "' + "x" * 201 + '"', "a.sequence: `title` has 201 characters; the limit is 200."),
        ('title = "T"\n' + "[[moment]]\n" * (MAX_MOMENTS + 1), "a.sequence has 501 moments; the limit is 500."),
    ],
)  # fmt: skip
def test_a_file_that_is_no_sequence_is_refused(text, message):
    with pytest.raises(InputError) as raised:
        parse_sequence(text, "a.sequence")
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("step = -1", "`step` is -1, not a whole number from 0 to 2147483647."),
        ("step = true", "`step` is True, not a whole number from 0 to 2147483647."),
        ("seed = 1.5", "`seed` is 1.5, not a whole number from 0 to 2147483647."),
        ("note = 3", "`note` is 3, not a text in quotes."),
        ('note = "a\\u0007"', "`note` contains a control character."),
        ('picture = "a\\nb"', "`picture` contains a control character."),
        ("settings = 3", "`settings` is 3, not a table such as { n = 16 }."),
        ("settings = { n = 2026-11-27 }",
         "The setting 'n' is datetime.date(2026, 11, 27), not a number, text or array."),
        ("settings = { n = [[[1]]] }", "The setting 'n' is [[[1]]], not a number, text or array."),
        ("stpe = 1",
         ("'stpe' is unknown. A moment has title, pattern, variant, tab, picture, step, settings, seed, schedule, "
          "image, note.")),
    ],
)  # fmt: skip
def test_a_moment_with_an_error_is_reported_and_the_others_are_read(line, message):
    text = MINIMAL + line + MINIMAL.partition("\n")[2].join(("\n", "\n"))
    sequence = parse_sequence(text, "a.sequence")
    assert [each.title for each in sequence.moments] == ["M"]
    assert sequence.errors == (f"a.sequence, moment 1: {message}",)


def test_a_missing_variant_is_reported():
    assert parse_sequence('title = "T"\n[[moment]]\ntitle = "M"\npattern = "scan"\n', "a").errors == (
        "a, moment 1: `variant` is missing.",
    )


def test_files_that_are_no_sequences(tmp_path):
    binary, large, pipe = tmp_path / "binary.sequence", tmp_path / "large.sequence", tmp_path / "pipe.sequence"
    binary.write_bytes(b"\xff\xfe\x00")
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(InputError, match=r"binary\.sequence is not a sequence: it is not UTF-8 text\."):
        read_sequence(binary)
    with pytest.raises(InputError, match=r"is too large: 1 MB; the limit is 1 MB\."):
        read_sequence(large)
    with pytest.raises(InputError, match="There is no file"):
        read_sequence(tmp_path / "missing.sequence")
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
        with pytest.raises(InputError, match="is a pipe, not a file"):
            read_sequence(pipe)


def test_a_file_is_replaced_or_left_as_it_was(tmp_path):
    path, sequence = tmp_path / "a.sequence", MomentSequence("T", (Moment("M", "scan", "naive"),))
    data = write_sequence(path, sequence)
    assert path.read_bytes() == data
    assert read_sequence(path) == (sequence, data)
    with pytest.raises(InputError, match="Cannot write"):
        write_sequence(tmp_path / "nowhere" / "a.sequence", sequence)
    assert [each.name for each in tmp_path.iterdir()] == ["a.sequence"]
