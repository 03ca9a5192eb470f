from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import Qt

from gpu.declaration.pattern import Choice, Integer, Matrix, Real
from gpu.patterns import all_patterns
from gui.widgets.folding import FoldingForm
from gui.widgets.forms import IntegerField, ParameterForm, summarize_parameters

PARAMETERS = (
    Choice(name="filter", label="Filter", options=("box", "custom"), default="box"),
    Integer(name="size", label="Size", default=5, minimum=3, maximum=31, step=2, only_if=("filter", ("box",))),
    Matrix(
        name="weights", label="Weights", default=((0, 0, 0), (0, 1, 0), (0, 0, 0)), maximum=5,
        only_if=("filter", ("custom",)),
    ),
)  # fmt: skip


def test_a_summary_names_choices_as_their_field_does():
    tile = Choice(name="tile", label="Tile", options=("32x8", "8x8"), default="8x8", titles=("32 × 8", "8 × 8"))
    assert [words for _, words in summarize_parameters((tile,), {"tile": "32x8"})] == ["32 × 8"]


@pytest.fixture
def form(qtbot):
    made = ParameterForm(PARAMETERS)
    qtbot.addWidget(made)
    made.show()
    made.seen = []
    made.changed.connect(made.seen.append)
    return made


@pytest.mark.parametrize("name", all_patterns())
def test_every_declared_pattern_has_a_form_that_starts_with_its_defaults(qtbot, name):
    pattern = all_patterns()[name]
    form = ParameterForm(pattern.parameters)
    qtbot.addWidget(form)
    checked = pattern.check(form.values)
    for key, value in pattern.check({}).items():
        assert np.array_equal(checked[key], value)


def test_what_does_not_count_is_hidden(form):
    assert form.fields["size"].isVisible()
    form.change_values(filter="custom")
    assert not form.fields["size"].isVisible()
    form.change_values(filter="box")
    assert form.fields["size"].isVisible()


def test_choosing_with_the_keyboard_tells_the_checked_values(qtbot, form):
    box = form.fields["filter"].box
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Down)
    assert form.seen[-1]["filter"] == "custom"
    assert form.seen[-1]["size"] == 5


def test_a_bad_number_is_refused_in_the_form_and_nothing_is_told(qtbot, form):
    box = form.fields["size"].box
    box.selectAll()
    qtbot.keyClicks(box, "8")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert not form.seen
    assert form.error.isVisible()
    assert "in steps of 2" in form.error.text()
    assert form.error.text().startswith("Size ")
    assert box.property("bad") is True
    box.selectAll()
    qtbot.keyClicks(box, "9")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert form.seen[-1]["size"] == 9
    assert not form.error.isVisible()
    assert box.property("bad") is False


def test_a_bad_number_is_dropped_with_its_field(form):
    """The error stayed, of a field that was no longer there to correct it."""
    form.change_values(size=4)
    assert form.error.isVisible()
    form.change_values(filter="custom")
    assert not form.error.isVisible()
    assert (form.seen[-1]["filter"], form.seen[-1]["size"]) == ("custom", 5)
    form.change_values(filter="box")
    assert (form.fields["size"].value, form.seen[-1]["size"]) == (5, 5)


def test_a_long_error_needs_no_more_width_than_the_fields(qtbot, form):
    before = form.minimumSizeHint().width()
    form.show_error("Size is a whole number from 3 to 31 in steps of 2, not 4. " * 3)
    assert form.minimumSizeHint().width() <= before
    form.setFixedWidth(400)
    qtbot.waitUntil(lambda: form.error.height() >= form.error.heightForWidth(form.error.width()) > 20)


@pytest.mark.parametrize(
    ("typed", "told"), [("4096", [4, 40, 409, 16]), ("0", []), ("-5", []), ("99999999", [9, 99, 999, 16])]
)
def test_a_number_out_of_range_stays_as_it_is_typed_and_what_was_told_of_its_digits_is_taken_back(qtbot, typed, told):
    form = ParameterForm((Integer(name="n", label="Elements", default=16, minimum=1, maximum=1024),))
    qtbot.addWidget(form)
    form.show()
    seen = []
    form.changed.connect(lambda values: seen.append(values["n"]))
    box = form.fields["n"].box
    box.selectAll()
    qtbot.keyClicks(box, typed)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == typed
    assert seen == told
    assert form.accepted == {"n": 16}
    assert form.error.text() == f"Elements is a whole number from 1 to 1024, not {typed}. Still using 16."
    assert box.property("bad") is True
    qtbot.keyClick(box, Qt.Key.Key_Down if told else Qt.Key.Key_Up)
    assert box.value() == (1024 if told else 1), "an arrow comes back to what is allowed"
    assert not form.error.isVisible()
    assert seen[-1] == box.value()


def test_slider_and_box_go_together(qtbot, form):
    field = form.fields["size"]
    qtbot.keyClick(field.slider, Qt.Key.Key_Right)
    assert field.box.value() == 7
    assert form.seen[-1]["size"] == 7
    field.box.setValue(31)
    assert field.slider.value() == field.slider.maximum()


def test_a_slider_over_a_wide_range_moves_in_ratios_and_reaches_both_ends(qtbot):
    field = IntegerField(Integer(name="bins", label="Bins", default=256, minimum=1, maximum=8192))
    qtbot.addWidget(field)
    field.slider.setValue(field.slider.maximum())
    assert field.value == 8192
    field.slider.setValue(0)
    assert field.value == 1
    field.set_value(256)
    middle = field.slider.value()
    assert field.slider.maximum() * 0.5 < middle < field.slider.maximum() * 0.7
    field.slider.setValue(middle - 1)
    field.slider.setValue(middle)
    assert field.value == 256


def test_a_slider_over_a_wide_range_from_zero_has_zero_at_its_end(qtbot):
    field = IntegerField(Integer(name="n", label="Elements", default=2**20, minimum=0, maximum=2**30))
    qtbot.addWidget(field)
    field.slider.setValue(0)
    assert field.value == 0
    field.slider.setValue(field.slider.maximum())
    assert field.value == 2**30
    field.set_value(2**15)
    assert field.slider.value() == field.slider.maximum() // 2
    for value in (0, 1):
        field.box.setValue(value)
        assert field.slider.value() == 0


def test_a_number_is_taken_as_it_is_typed(qtbot):
    form = ParameterForm((Real(name="than", label="Than", default=0.5, minimum=-10, maximum=10),))
    qtbot.addWidget(form)
    form.show()
    seen, refused = [], []
    form.changed.connect(seen.append)
    form.invalid.connect(refused.append)
    box = form.fields["than"].box
    assert box.text() == "0.5"
    box.selectAll()
    qtbot.keyClicks(box, "-2.5")
    assert seen[-1] == {"than": -2.5}
    assert refused  # the minus sign alone was no number
    qtbot.keyClicks(box, "x")
    assert form.error.text().startswith("Than is a number from -10 to 10")
    assert box.property("bad") is True
    form.set_values({"than": 7.0})
    assert box.text() == "7"
    assert not form.error.isVisible()


def test_set_values_is_silent(form):
    form.set_values({"filter": "custom", "size": 31, "weights": np.ones((5, 5))})
    assert not form.seen
    assert form.values["filter"] == "custom"
    assert form.values["size"] == 31
    assert form.values["weights"].shape == (5, 5)


@pytest.fixture
def editor(qtbot, form):
    form.change_values(filter="custom")
    form.seen.clear()
    editor = form.fields["weights"].editor
    qtbot.addWidget(editor)
    editor.resize(300, 200)
    editor.show()
    return editor


def type_into(qtbot, editor, row, column, text):
    from PyQt6.QtWidgets import QLineEdit

    editor.setCurrentIndex(editor.model().index(row, column))
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    line = next(found for found in editor.findChildren(QLineEdit) if found.isVisible())
    line.selectAll()
    qtbot.keyClick(line, Qt.Key.Key_Delete)
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)
    qtbot.wait(1)


@pytest.mark.parametrize(("text", "value"), [("0.25", 0.25), ("-1", -1), ("1/9", 1 / 9), ("2,5", 2.5), ("1e-3", 1e-3)])
def test_a_coefficient_is_typed_into_its_cell(qtbot, form, editor, text, value):
    type_into(qtbot, editor, 0, 2, text)
    assert form.seen[-1]["weights"][0, 2] == np.float32(value)


@pytest.mark.parametrize("text", ["two", "", "1/0", "nan", "inf", "1e99"])
def test_what_is_not_a_number_is_refused_and_the_old_value_stays(qtbot, form, editor, text):
    refused = []
    editor.refused.connect(refused.append)
    type_into(qtbot, editor, 1, 1, text)
    assert refused
    assert not form.seen
    assert form.values["weights"][1, 1] == 1


def test_a_preview_cannot_be_edited_and_leaves_the_value_alone(qtbot, form, editor):
    field = form.fields["weights"]
    field.preview(np.full((5, 5), 0.04, np.float32))
    assert editor.read_only
    assert not editor.model().flags(editor.model().index(0, 0)) & Qt.ItemFlag.ItemIsEditable
    assert field.value.shape == (3, 3)
    field.show_own_value()
    assert editor.values.shape == (3, 3)


def test_fields_take_as_many_lines_as_the_width_asks_for(qtbot):
    many = tuple(Real(name=name, label=name, default=1, minimum=0, maximum=9) for name in "abcdef")
    form = ParameterForm(many)
    qtbot.addWidget(form)
    form.show()
    lines = {}
    for width in (2000, 420, 150):
        form.resize(width, form.heightForWidth(width))
        places = [form.fields[name].geometry() for name in "abcdef"]
        lines[width] = len({place.y() for place in places})
        assert not any(one.intersects(other) for one in places for other in places if one is not other)
        assert all(form.rect().contains(place) for place in places)
    assert lines[2000] == 1
    assert 1 < lines[420] < lines[150] == 6


def test_in_columns_a_hidden_field_leaves_no_hole(qtbot):
    form = ParameterForm(
        (*PARAMETERS[:2], *(Real(name=name, label=name, default=1, minimum=0, maximum=9) for name in "ab")), columns=2
    )
    qtbot.addWidget(form)
    form.show()
    for chosen, seen in (("box", ["filter", "size", "a", "b"]), ("custom", ["filter", "a", "b"]), ("box", None)):
        form.change_values(filter=chosen)
        form.layout().activate()
        names = seen or ["filter", "size", "a", "b"]
        places = sorted((form.fields[name].y(), form.fields[name].x(), name) for name in names)
        assert [name for _, _, name in places] == names
        assert len({y for y, _, _ in places}) == 2
        assert len({x for _, x, _ in places}) == 2


def test_a_folded_form_says_its_values_in_a_line_that_opens_it(qtbot):
    folding = FoldingForm(ParameterForm(PARAMETERS))
    qtbot.addWidget(folding)
    folding.show_values({"filter": "box", "size": 5, "weights": ((0.0,),)})
    folding.show()
    assert not folding.summary_button.isVisible()
    folding.set_foldable(True)
    assert (folding.form.isVisible(), folding.summary_button.text()) == (False, "box · size 5  ▾")
    qtbot.mouseClick(folding.summary_button, Qt.MouseButton.LeftButton)
    assert (folding.form.isVisible(), folding.summary_button.text()) == (True, "Settings  ▴")
    folding.set_foldable(True)
    assert folding.form.isVisible(), "what was opened stays open"
    folding.summary_button.click()
    folding.form.show_error("Too many.", "size")
    assert folding.form.error.isVisible(), "what is wrong is never folded"
    folding.set_foldable(False)
    assert folding.form.isVisible()
    assert not folding.summary_button.isVisible()


def test_the_least_of_a_number_says_what_it_means(qtbot):
    form = ParameterForm((Integer(name="m", label="m", default=0, minimum=0, maximum=9, minimum_label="as n"),))
    qtbot.addWidget(form)
    assert form.fields["m"].box.text() == "as n"
    assert form.values == {"m": 0}


def test_sliders_give_way_where_that_saves_a_line(qtbot):
    whole = tuple(Integer(name=name, label=name, default=5, minimum=3, maximum=31) for name in ("rows", "columns"))
    form = ParameterForm((*whole, Choice(name="block", label="Block", options=("1", "2"), default="1")))
    qtbot.addWidget(form)
    form.show()
    fields = list(form.fields.values())
    wanted = [field.sizeHint().width() for field in fields]
    all_wide = sum(wanted) + 2 * 20

    def lines(width):
        form.resize(width, 200)
        return len({field.y() for field in fields}), [field.width() for field in fields]

    assert lines(all_wide) == (1, wanted)
    count, widths = lines(all_wide - 20)
    assert count == 1
    assert fields[-1].geometry().right() < all_wide - 20
    assert widths[0] == widths[1] == wanted[0] - 10
    assert widths[2] == wanted[2]
    # No narrower than they may be: then the last has a line of its own, and the others all they want.
    assert lines(all_wide - 120) == (2, wanted)
