"""How the results of a pattern are presented, and what it takes; a window has a view for each of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["image", "text", "values", "bodies"]
"""What a pattern takes: `image` and `maxval`; `text`; `values`; or `bodies` of shape (n, 7)."""

ATOMICS = "atomics"
"""The lesson of what atomics cost, and of what is lost without them."""


@dataclass(frozen=True)
class Filter:
    """What an image goes through; a parameter holds coefficients of the user's own.

    Parameters
    ----------
    weights : callable
        params -> a square matrix.
    words : callable
        params -> what is said of it.
    why_not_separable : callable
        The matrix -> why it is no row times a column, as a sentence; empty where it is.
    beside : callable
        params -> which filter the image goes through too, besides these weights; empty where it is this one alone.
    """

    weights: Callable[[Mapping[str, Any]], npt.NDArray[np.float32]]
    words: Callable[[Mapping[str, Any]], str]
    why_not_separable: Callable[[npt.NDArray[np.float32]], str]
    beside: Callable[[Mapping[str, Any]], str] = lambda params: ""


@dataclass(frozen=True)
class ImagePresentation:
    """An image that has become another one, through a filter where there is one."""

    filter: Filter | None = None
    kind: ClassVar[Kind] = "image"
    dimensions: ClassVar[int] = 0


@dataclass(frozen=True)
class CountsPresentation:
    """Counts, by the levels of an image or by bins that have names.

    Parameters
    ----------
    kinds : mapping of str to Kind
        By the options of the parameter that is the subject: what is taken with each; nothing where it is images alone.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    kind: ClassVar[Kind] = "image"
    dimensions: ClassVar[int] = 1


def _nothing(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Say nothing of a result beside its variant."""
    return ()


@dataclass(frozen=True)
class ArrayPresentation:
    """An array that has become another one, or one value.

    Parameters
    ----------
    folds : bool
        Whether one value comes of all elements.
    words : callable
        params -> what is said of a result; nothing of one that has kept some elements and not others, which is told.
    """

    folds: bool = False
    words: Callable[[Mapping[str, Any]], tuple[str, ...]] = _nothing
    kind: ClassVar[Kind] = "values"
    dimensions: ClassVar[int] = 1


@dataclass(frozen=True)
class Product:
    """A matrix product, by the names that its matrices are presented under."""

    left: str
    right: str
    result: str


@dataclass(frozen=True)
class MatrixPresentation:
    """Matrices that have become a matrix.

    Parameters
    ----------
    product : Product or None
        Which of them is the product of which, where one is.
    turned : bool
        Whether an element's row is its column in the result.
    """

    product: Product | None = None
    turned: bool = False
    kind: ClassVar[Kind] = "values"
    dimensions: ClassVar[int] = 2


@dataclass(frozen=True)
class BodiesPresentation:
    """Bodies that move, from step to step, for as long as somebody looks on.

    Parameters
    ----------
    forces : str
        The output that has a row for each body: what it is moved by.
    """

    forces: str
    kind: ClassVar[Kind] = "bodies"
    dimensions: ClassVar[int] = 0


Presentation = ImagePresentation | CountsPresentation | ArrayPresentation | MatrixPresentation | BodiesPresentation
