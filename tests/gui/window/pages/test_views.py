"""A view asks of a pattern no more than its presentation says."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from gpu.declaration.pattern import Integer
from gpu.declaration.presentation import CountsPresentation, ImagePresentation, MatrixPresentation, Presentation
from gpu.declaration.roles import Role
from gpu.patterns import find_pattern
from gui.model.request_queue import RequestQueue
from gui.widgets.forms import ParameterForm
from gui.window.pages.views import _VIEWS, create_view, list_form_parameters


def test_every_presentation_has_a_view():
    assert {*_VIEWS} == {*get_args(Presentation)}


@pytest.mark.parametrize("presentation", [ImagePresentation(), CountsPresentation(), MatrixPresentation()])
def test_a_pattern_without_a_filter_a_text_or_a_product_has_its_view(qtbot, presentation):
    pattern = replace(find_pattern("convolution"), presentation=presentation, parameters=())
    view = create_view(pattern, ParameterForm(()), RequestQueue())
    qtbot.addWidget(view)
    view.show_params({})
    assert pattern.input_kind({}) == ("values" if isinstance(presentation, MatrixPresentation) else "image")


def test_the_steps_of_bodies_are_not_set_where_they_are_played():
    names = {parameter.role for parameter in list_form_parameters(find_pattern("nbody"))}
    assert not names & {Role.STEPS, Role.BLOCK}
    steps = Integer(name="any", label="Any", default=1, minimum=1, maximum=2, role=Role.STEPS)
    other = replace(find_pattern("scan"), parameters=(steps,))
    assert list_form_parameters(other) == (steps,)
