"""Module `cupy.random`: NumPy's generators, so the numbers differ from cuRAND's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import from_result
from gpu.hosts.cupy.forwarding import call_on_host, to_device

_OWN_DTYPE = ("randint", "integers")


def _call(generator: Any, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    method = getattr(generator, name)
    dtype = options.pop("dtype", None) if name not in _OWN_DTYPE else None
    if name == "randint" and options.get("dtype") in (int, None):
        options["dtype"] = np.int64
    result = call_on_host(f"random.{name}", method, arguments, options)
    if isinstance(result, bool | int | float):
        result = to_device(np.asarray(result))
    return result.astype(dtype) if dtype is not None else result


class _Methods:
    """The methods of a generator of NumPy, with device arrays."""

    __module__ = "cupy.random"

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(getattr(self.__dict__.get("_generator"), name, None)):
            raise AttributeError(f"Lockstep's CuPy does not have cupy.random.{name}.")
        return lambda *arguments, **options: _call(self._generator, name, arguments, options)


class RandomState(_Methods):
    """Generator with the methods of `numpy.random.RandomState`."""

    def __init__(self, seed: Any = None, method: Any = None) -> None:
        super().__init__(np.random.RandomState(seed))

    def rand(self, *size: int, dtype: Any = float) -> Any:
        """Return uniform numbers."""
        return from_result(self._generator.rand(*size)).astype(dtype)

    def randn(self, *size: int, dtype: Any = float) -> Any:
        """Return normally distributed numbers."""
        return from_result(self._generator.randn(*size)).astype(dtype)

    def random_integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        """Return integers from `low` to `high`, both included; from 1 to `low` without `high`."""
        first, last = (1, low) if high is None else (low, high)
        return _call(self._generator, "randint", (first, last + 1, size), {})


class Generator(_Methods):
    """Generator with the methods of `numpy.random.Generator`."""

    def __init__(self, bit_generator: Any = None) -> None:
        super().__init__(np.random.default_rng(bit_generator))


_states = [RandomState()]


def _seed(seed: Any = None) -> None:
    """Seed the module's generator."""
    _states[0] = RandomState(seed)


def _forward(name: str) -> Any:
    """Return a function that calls a method of the current generator."""
    return lambda *arguments, **options: getattr(_states[0], name)(*arguments, **options)


NAMES: dict[str, Any] = {
    "RandomState": RandomState,
    "Generator": Generator,
    "default_rng": Generator,
    "seed": _seed,
    "get_random_state": lambda: _states[0],
    "set_random_state": lambda state: _states.__setitem__(0, state),
    **dict.fromkeys(("XORWOW", "MRG32k3a", "Philox4x3210"), np.random.PCG64),
    **{
        name: _forward(name)
        for name in dir(np.random.RandomState)
        if name[0] != "_" and name not in ("seed", "get_state", "set_state")
    },
    "random_integers": _forward("random_integers"),
    **dict.fromkeys(("ranf", "sample"), _forward("random_sample")),
    "BitGenerator": np.random.BitGenerator,
}
"""The module's names."""
