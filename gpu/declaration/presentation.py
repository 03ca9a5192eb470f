"""Presentations: a pattern's kind of input and how its results are shown; the window has a view for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

InputKind = Literal["image", "text", "values", "bodies"]
"""A pattern's kind of input: `image` and `maxval`; `text`; `values`; or `bodies` of shape (n, 7)."""

ATOMICS = "atomics"
"""The lesson on the cost of atomic operations, and on the updates lost without them."""


@dataclass(frozen=True)
class Filter:
    """An image filter; a parameter holds the user's own coefficients.

    Parameters
    ----------
    weights : callable
        params -> a square matrix.
    describe : callable
        params -> description of the filter.
    separability_obstacle : callable
        The matrix -> sentence why it is not a column times a row; empty if it is.
    second_filter : callable
        params -> filter that the image goes through in addition to these weights; empty without one.
    passes : callable
        params -> the parameters of each filter whose results the host program combines; only `params` if there is one.
    """

    weights: Callable[[Mapping[str, Any]], npt.NDArray[np.float32]]
    describe: Callable[[Mapping[str, Any]], str]
    separability_obstacle: Callable[[npt.NDArray[np.float32]], str]
    second_filter: Callable[[Mapping[str, Any]], str] = lambda params: ""
    passes: Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], ...]] = lambda params: (params,)


@dataclass(frozen=True)
class ImagePresentation:
    """An image as the result of another image, with or without a filter."""

    filter: Filter | None = None
    kind: ClassVar[InputKind] = "image"
    dimensions: ClassVar[int] = 0


@dataclass(frozen=True)
class CountsPresentation:
    """Counts, by the levels of an image or by named bins.

    Parameters
    ----------
    kinds : mapping of str to InputKind
        Kind of input by option of the parameter with the role SUBJECT; empty if the pattern takes images only.
    """

    kinds: Mapping[str, InputKind] = field(default_factory=dict)
    kind: ClassVar[InputKind] = "image"
    dimensions: ClassVar[int] = 1


@dataclass(frozen=True)
class ArrayPresentation:
    """An array or one value as the result of an array.

    Parameters
    ----------
    is_single_value : bool
        Whether the result is one value.
    describe : callable
        params -> words that describe a result; none for stream compaction, which is described by its counts.
    """

    is_single_value: bool = False
    describe: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda params: ()
    kind: ClassVar[InputKind] = "values"
    dimensions: ClassVar[int] = 1


@dataclass(frozen=True)
class Product:
    """A matrix product, by the presented names of its matrices."""

    left: str
    right: str
    result: str


@dataclass(frozen=True)
class MatrixPresentation:
    """A matrix as the result of matrices.

    Parameters
    ----------
    product : Product or None
        The names of factors and product, if the result is a matrix product.
    transposed : bool
        Whether the result is transposed: an element's row is its column in the result.
    """

    product: Product | None = None
    transposed: bool = False
    kind: ClassVar[InputKind] = "values"
    dimensions: ClassVar[int] = 2


@dataclass(frozen=True)
class BodiesPresentation:
    """Moving bodies, simulated step by step while the view is open.

    Parameters
    ----------
    forces_output : str
        The output that has a row with the force or acceleration of each body.
    """

    forces_output: str
    kind: ClassVar[InputKind] = "bodies"
    dimensions: ClassVar[int] = 0


Presentation = ImagePresentation | CountsPresentation | ArrayPresentation | MatrixPresentation | BodiesPresentation
