"""Create the view of a pattern's results according to its presentation."""

from __future__ import annotations

from collections.abc import Callable

from gpu.declaration.pattern import Parameter, Pattern
from gpu.declaration.presentation import (
    ArrayPresentation,
    BodiesPresentation,
    CountsPresentation,
    ImagePresentation,
    MatrixPresentation,
    Presentation,
)
from gpu.declaration.roles import Role
from gui.model.request_queue import RequestQueue
from gui.run_view.array import ArrayView
from gui.run_view.bodies.view import BodiesView
from gui.run_view.filtered_image import FilteredImageView
from gui.run_view.image_counts import ImageCountsView
from gui.run_view.matrices import MatricesView
from gui.run_view.view import RunView
from gui.widgets.forms import ParameterForm

_VIEWS: dict[type[Presentation], Callable[[Pattern, ParameterForm, RequestQueue], RunView]] = {
    ArrayPresentation: lambda pattern, form, engine: ArrayView(pattern),
    BodiesPresentation: lambda pattern, form, engine: BodiesView(pattern, engine),
    CountsPresentation: lambda pattern, form, engine: ImageCountsView(pattern, form),
    ImagePresentation: lambda pattern, form, engine: FilteredImageView(pattern, form),
    MatrixPresentation: lambda pattern, form, engine: MatricesView(pattern),
}

_HIDDEN: dict[type[Presentation], tuple[Role, ...]] = {BodiesPresentation: (Role.STEPS, Role.BLOCK)}
"""Parameters that the Run tab does not offer; a live N-body simulation has no number of steps."""


def list_form_parameters(pattern: Pattern) -> tuple[Parameter, ...]:
    """Return the parameters that are set on the Run tab."""
    hidden = _HIDDEN.get(type(pattern.presentation), ())
    return tuple(parameter for parameter in pattern.parameters if parameter.role not in hidden)


def create_view(pattern: Pattern, form: ParameterForm, engine: RequestQueue) -> RunView:
    """Create a view for a pattern's results; `engine` is the queue of the selected engine."""
    return _VIEWS[type(pattern.presentation)](pattern, form, engine)
