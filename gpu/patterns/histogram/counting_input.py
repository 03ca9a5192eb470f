"""Inputs of the histogram: the levels of an image, the letters of a text, or numbers in ranges."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.images import to_planes
from gpu.declaration.pattern import Array, CountedText, Inputs, Params
from gpu.declaration.presentation import InputKind
from gpu.declaration.roles import FROM_FILE

LEVELS, LETTERS, RANGES, NUMBERS = "levels", "letters", "ranges", "numbers"
KINDS: Mapping[str, InputKind] = {LEVELS: "image", LETTERS: "text", RANGES: "values", NUMBERS: "values"}

DISTRIBUTIONS = ("normal", "uniform", "skewed", "constant", FROM_FILE)
TYPES = {"uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "float32": "float"}
"""Types of numbers for equal ranges: NumPy's names and CUDA C++'s."""

ALPHABET = 26
_FLOAT_LEVELS = 65536

SAMPLE_TEXT = (
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or "
    "twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it, and "
    "what is the use of a book, thought Alice, without pictures or conversations?"
)


@dataclass(frozen=True)
class CountingInput:
    """The input of the kernels and their macros.

    Parameters
    ----------
    planes : array of shape (channels, n)
        Pixels (uint8 or uint16), characters (uint8; characters outside Latin-1 become question marks), or numbers
        (float32; for equal ranges any of `TYPES`).
    bins : int
        Number of bins; for texts and custom ranges, the last bin counts everything else.
    levels : int
        Number of different values of an element.
    macros : mapping
        Macros for the kernel file, including `PIXEL` and `LEVELS`.
    edges : array or None
        float32 bin edges, for custom ranges.
    """

    planes: Array
    bins: int
    levels: int
    macros: Mapping[str, int | str] = field(default_factory=dict)
    edges: Array | None = None


def prepare_counting_input(inputs: Inputs, params: Params) -> CountingInput:
    """Return the elements to count, with their bins and macros."""
    match params["of"]:
        case "letters":
            macros: dict[str, int | str] = {"PIXEL": "unsigned char", "LEVELS": 256, "LETTERS": params["letters"]}
            return CountingInput(inputs["text"].reshape(1, -1), -(-ALPHABET // params["letters"]) + 1, 256, macros)
        case "ranges":
            edges = np.array(params["edges"], np.float32)
            ranges, levels = edges.size - 1, _FLOAT_LEVELS
            macros = {"PIXEL": "float", "LEVELS": levels, "RANGES": ranges}
            return CountingInput(inputs["values"].astype(np.float32).reshape(1, -1), ranges + 1, levels, macros, edges)
        case "numbers":
            dtype = np.dtype(params["dtype"])
            is_integer = dtype.kind == "u"
            levels = 2 ** (8 * dtype.itemsize) if is_integer else _FLOAT_LEVELS
            macros = {
                "PIXEL": TYPES[dtype.name],
                "LEVELS": levels if levels <= 2**16 else f"{levels}ull",
                **({} if is_integer else {"FRACTIONS": 1}),
            }
            return CountingInput(inputs["values"].astype(dtype).reshape(1, -1), params["bins"], levels, macros)
    image, levels = inputs["image"], int(inputs["maxval"]) + 1
    macros = {"PIXEL": TYPES[image.dtype.name], "LEVELS": levels}
    planes = to_planes(image, image.dtype)
    return CountingInput(planes.reshape(planes.shape[0], -1), params["bins"], levels, macros)


def make_input(params: Params, seed: int) -> Inputs:
    """Return the characters of the text, or random numbers of the chosen distribution.

    Raises
    ------
    InputError
        The input is an image or a file, which cannot be generated.
    """
    match params["of"]:
        case "letters":
            return {"text": np.frombuffer(params["text"].encode("latin-1", "replace"), np.uint8)}
        case "ranges" | "numbers":
            if params["numbers"] == FROM_FILE:
                raise InputError("No file of numbers is open.", advice="Open one, or choose a distribution.")
            return {"values": _make_numbers(params, np.random.default_rng(seed))}
    raise InputError("Histogram of levels needs an image; none is open.")


def _make_numbers(params: Params, rng: np.random.Generator) -> Array:
    """Return random numbers from 0 to 1; normal ones are around 0, or around 0.5 for equal ranges.

    Unsigned integers are distributed in the same way over the range of their type.
    """
    n, has_equal_ranges = int(params["n"]), params["of"] == NUMBERS
    dtype = np.dtype(params["dtype"] if has_equal_ranges else np.float32)
    if dtype.kind == "u" and params["numbers"] == "uniform":
        return rng.integers(0, 2 ** (8 * dtype.itemsize), n, dtype)
    values: Array
    match params["numbers"]:
        case "normal":
            values = rng.standard_normal(n, np.float32)
            if has_equal_ranges:
                values = values / 8 + np.float32(0.5)
        case "skewed":
            values = rng.random(n, np.float32) ** 4
        case "constant":
            values = np.full(n, rng.random(dtype=np.float32))
        case _:
            values = rng.random(n, np.float32)
    if dtype.kind == "u":
        largest = np.iinfo(dtype).max
        values = np.minimum(np.maximum(values, 0).astype(np.float64) * (largest + 1.0), largest).astype(dtype)
    return values


def bin_names(params: Params) -> tuple[str, ...]:
    """Return the names of the bins of texts and custom ranges; empty for levels and equal ranges."""
    match params["of"]:
        case "letters":
            step = params["letters"]
            firsts = range(0, ALPHABET, step)
            spans = [(first, min(first + step, ALPHABET) - 1) for first in firsts]
            letters = [tuple(chr(ord("a") + letter_index) for letter_index in span) for span in spans]
            return (*(low if low == high else f"{low}–{high}" for low, high in letters), "other")
        case "ranges":
            edges = params["edges"]
            return (*(f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)), "outside")
    return ()


def describe_text(params: Params) -> CountedText | None:
    """Return the names of the kernels' arrays of characters and bins; None if no text is counted."""
    return (
        CountedText("image", ("bins", "block_bins", "partial"), bin_names(params)) if params["of"] == LETTERS else None
    )


def accept(inputs: Inputs, params: Params) -> None:
    """Raise InputError if the input is not of the kind to count, or numbers do not fit their type."""
    kind = KINDS[params["of"]]
    if kind not in inputs:
        raise InputError(f"A histogram of {params['of']} needs {kind} as input, but there is none.")
    if params["of"] == NUMBERS and np.dtype(params["dtype"]).kind == "u":
        values, largest = inputs["values"], np.iinfo(params["dtype"]).max
        fits = (values == np.floor(values)) & (values >= 0) & (values <= largest)
        if not fits.all():
            raise InputError(
                f"{params['dtype']} holds whole numbers from 0 to {largest}, but one of these is {values[~fits][0]}.",
                advice="Choose float32, or other numbers.",
            )


def reference(inputs: Inputs, params: Params) -> Array:
    """Return the reference result, computed by NumPy: int64, shape (channels, bins)."""
    counting_input = prepare_counting_input(inputs, params)
    if counting_input.edges is not None:
        return _count_ranges(counting_input.planes[0], counting_input.edges.astype(np.float64))[np.newaxis]
    if params["of"] == NUMBERS:
        return _count_equal_ranges(counting_input.planes[0], counting_input.bins)[np.newaxis]
    bin_of_level = np.arange(counting_input.levels, dtype=np.int64) * counting_input.bins // counting_input.levels
    if params["of"] == LETTERS:
        bin_of_level[:] = counting_input.bins - 1
        for first in (ord("A"), ord("a")):
            bin_of_level[first : first + ALPHABET] = np.arange(ALPHABET) // params["letters"]
    counts = []
    for plane in counting_input.planes:
        per_level = np.zeros(counting_input.levels, np.int64)
        # In pieces, as `bincount` converts to 8-byte integers.
        for start in range(0, plane.size, 2**22):
            per_level += np.bincount(plane[start : start + 2**22], minlength=counting_input.levels)
        counts.append(np.bincount(bin_of_level, weights=per_level, minlength=counting_input.bins).astype(np.int64))
    return np.stack(counts)


def _count_equal_ranges(values: Array, bins: int) -> Array:
    """Count integers over the range of their type, or floats from 0 to 1; the end bins include values outside."""
    counts = np.zeros(bins, np.int64)
    for start in range(0, values.size, 2**22):
        piece = values[start : start + 2**22]
        if piece.dtype.kind == "u":
            indices = (piece.astype(np.uint64) * np.uint64(bins)) >> np.uint64(8 * piece.dtype.itemsize)
        else:
            with np.errstate(over="ignore"):
                indices = np.clip(np.nan_to_num(piece * np.float32(bins), nan=0.0), 0, bins - 1)
        counts += np.bincount(indices.astype(np.int64), minlength=bins)
    return counts


def _count_ranges(values: Array, edges: Array) -> Array:
    inside = values[(values >= edges[0]) & (values <= edges[-1])].astype(np.float64)
    counts = np.histogram(inside, edges)[0]
    return np.append(counts, values.size - inside.size).astype(np.int64)


def truncate_inputs(inputs: Inputs) -> Inputs:
    """Truncate inputs to 64 elements, few enough to follow every step."""
    return {name: values[:64] for name, values in inputs.items()}
