"""`cupy.testing`: assertions, arrays for tests, and decorators that run a test for types, orders and modules."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import unittest
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray, asnumpy, from_host

_FLOATS = (np.float64, np.float32, np.float16)
_COMPLEX = (np.complex64, np.complex128)
_SIGNED, _UNSIGNED = tuple(np.dtype(each).type for each in "bhil"), tuple(np.dtype(each).type for each in "BHIL")
_OWN_OPTIONS = ("strides_check", "contiguous_check", "type_check")


def _compare(name: str) -> Callable[..., None]:
    """Return an assertion of `numpy.testing` that takes arrays of the device and of the host."""
    function = getattr(np.testing, name)

    @functools.wraps(function)
    def assertion(*arguments: Any, **options: Any) -> None:
        for option in _OWN_OPTIONS:
            options.pop(option, None)
        function(*(asnumpy(each) if isinstance(each, DeviceArray) else each for each in arguments), **options)

    return assertion


def _assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0.0, **options: Any) -> None:
    _compare("assert_allclose")(actual, desired, rtol, atol, **{k: v for k, v in options.items() if k != "verbose"})


def _assert_array_list_equal(xlist: Sequence[Any], ylist: Sequence[Any], **options: Any) -> None:
    assert len(xlist) == len(ylist), f"Lengths of lists: {len(xlist)} and {len(ylist)}"
    for x, y in zip(xlist, ylist, strict=True):
        _compare("assert_array_equal")(x, y, **options)


_ASSERTIONS: dict[str, Callable[..., None]] = {
    **{
        f"assert_{name}": _compare(f"assert_{name}")
        for name in ("array_equal", "array_almost_equal", "array_less", "array_max_ulp", "array_almost_equal_nulp")
    },
    "assert_allclose": _assert_allclose,
    "assert_array_list_equal": _assert_array_list_equal,
}


def _shaped(values: Any, shape: Sequence[int], module: Any, dtype: Any, order: str = "C") -> Any:
    host = np.asarray(values).reshape(shape).astype(dtype, order=order)  # type: ignore[call-overload]
    return host if module is np else from_host(host)


def _shaped_arange(shape: Sequence[int], xp: Any = None, dtype: Any = np.float32, order: str = "C") -> Any:
    return _shaped(np.arange(1, int(np.prod(shape)) + 1), shape, xp, dtype, order)


def _shaped_reverse_arange(shape: Sequence[int], xp: Any = None, dtype: Any = np.float32) -> Any:
    return _shaped(np.arange(int(np.prod(shape)), 0, -1), shape, xp, dtype)


def _shaped_linspace(start: float, stop: float, shape: Sequence[int], xp: Any = None, dtype: Any = np.float32) -> Any:
    return _shaped(np.linspace(start, stop, int(np.prod(shape))), shape, xp, dtype)


def _shaped_random(
    shape: Sequence[int], xp: Any = None, dtype: Any = np.float32, scale: float = 10, seed: int = 0, order: str = "C"
) -> Any:
    generator = np.random.RandomState(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        values: Any = generator.randint(2, size=shape)
    elif kind in "iu":
        values = generator.randint(0, int(scale), size=shape)
    else:
        values = generator.rand(*shape) * scale
        values = values + 1j * generator.rand(*shape) * scale if kind == "c" else values
    return _shaped(values, shape, xp, dtype, order)


def product(parameter: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the values of each name."""
    names = sorted(parameter)
    return [dict(zip(names, each, strict=True)) for each in itertools.product(*(parameter[name] for name in names))]


def product_dict(*parameters: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return all combinations of dictionaries, one of each list, merged."""
    return [{k: v for each in group for k, v in each.items()} for group in itertools.product(*parameters)]


def parameterize(*params: Mapping[str, Any], _ids: bool = True) -> Callable[[type], Any]:
    """Return a decorator that runs a test class once for each dictionary of attributes.

    Parameters
    ----------
    params : mapping
    """

    def decorate(cls: type) -> Any:
        if issubclass(cls, unittest.TestCase):
            module = sys.modules[cls.__module__]
            for number, values in enumerate(params):
                text = ", ".join(f"{name}={value!r}" for name, value in sorted(values.items()))
                name = f"{cls.__name__}_param_{number}_{{{text}}}"
                setattr(module, name, type(name, (cls,), {**values, "__module__": cls.__module__}))
            return None  # only the classes with attributes remain, as in CuPy
        import pytest

        def set_attributes(self: Any, _cupy_testing_param: Mapping[str, Any]) -> None:
            vars(self).update(_cupy_testing_param)

        methods = {"_set_parameters": pytest.fixture(autouse=True)(set_attributes), "__module__": cls.__module__}
        return pytest.mark.parametrize("_cupy_testing_param", params)(type(cls.__name__, (cls,), methods))

    return decorate


def _hide(test: Callable[..., Any], names: Iterable[str], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with a test's name, whose signature lacks arguments that the decorator passes."""
    functools.update_wrapper(run, test)
    signature = inspect.signature(test)
    hidden = set(names)
    kept = [each for name, each in signature.parameters.items() if name not in hidden]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run


def _repeat(combinations: Iterable[Mapping[str, Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that calls a test with each combination of arguments."""
    every = list(combinations)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> None:
            for values in every:
                try:
                    test(*arguments, **options, **values)
                except unittest.SkipTest:
                    continue
                except BaseException as error:
                    error.add_note(f"with {', '.join(f'{name} = {value}' for name, value in values.items())}")
                    raise

        return _hide(test, every[0] if every else (), run)

    return decorate


def _for_values(values: Iterable[Any], name: str) -> Callable[..., Any]:
    return _repeat({name: value} for value in values)


def _for_dtypes(dtypes: Iterable[Any], name: str = "dtype") -> Callable[..., Any]:
    return _for_values([np.dtype(each).type for each in dtypes], name)


def _list_dtypes(no_float16: bool = False, no_bool: bool = False, no_complex: bool = False) -> tuple[Any, ...]:
    floats = _FLOATS[: -1 if no_float16 else None]
    booleans = () if no_bool else (np.bool_,)
    return (*floats, *_SIGNED, *_UNSIGNED, *booleans, *(() if no_complex else _COMPLEX))


def _for_all_dtypes(name: str = "dtype", **exclusions: bool) -> Callable[..., Any]:
    return _for_dtypes(_list_dtypes(**exclusions), name)


def _for_combination(types: Iterable[Any], names: Sequence[str] = ("dtype",), full: bool | None = None) -> Any:
    dtypes = [np.dtype(each).type for each in types]
    if full:
        return _repeat(product(dict.fromkeys(names, dtypes)))
    rotations = (dtypes[shift:] + dtypes[:shift] for shift in range(len(names)))
    return _repeat(dict(zip(names, each, strict=True)) for each in zip(*rotations, strict=True))


def _for_types(default: Sequence[Any]) -> Callable[..., Any]:
    return lambda name="dtype", no_float16=False, no_bool=True: _for_dtypes(
        [*(each for each in default if not (no_float16 and each is np.float16)), *(() if no_bool else (np.bool_,))],
        name,
    )


def _for_type_combinations(default: Sequence[Any]) -> Callable[..., Any]:
    return lambda names=("dtype",), full=None, no_bool=True: _for_combination(
        [*default, *(() if no_bool else (np.bool_,))], names, full
    )


def _modules(names: Mapping[str, str | None]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keyword arguments with the modules of the device, and those with the host's."""
    import cupy
    import cupyx.scipy
    import scipy

    pairs = {"name": (cupy, np), "scipy_name": (cupyx.scipy, scipy)}
    if names.get("sp_name"):
        import cupyx.scipy.sparse
        import scipy.sparse

        pairs["sp_name"] = (cupyx.scipy.sparse, scipy.sparse)
    used = {name: pairs[key] for key, name in names.items() if name}
    return {name: pair[0] for name, pair in used.items()}, {name: pair[1] for name, pair in used.items()}


def _call(test: Callable[..., Any], arguments: Any, options: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
    try:
        return test(*arguments, **options), None
    except Exception as error:
        return None, error


def _compare_modules(
    check: Callable[..., None], *, on_arrays: bool = True, must_raise: bool = False
) -> Callable[..., Any]:
    """Return a decorator factory that runs a test with CuPy and with NumPy, and compares the results.

    Parameters
    ----------
    check : callable
        Raises AssertionError if CuPy's result is not NumPy's.
    on_arrays : bool
        Whether the results' types are compared too.
    must_raise : bool
        Whether both runs are to raise the same error.
    """

    def factory(
        *arguments: Any,
        name: str = "xp",
        sp_name: str | None = None,
        scipy_name: str | None = None,
        type_check: bool = True,
        accept_error: Any = must_raise,
        **options: Any,
    ) -> Any:
        names = {"name": name, "sp_name": sp_name, "scipy_name": scipy_name}
        options = {k: v for k, v in options.items() if k not in _OWN_OPTIONS and not k.startswith("_")}
        accepted = Exception if accept_error is True else accept_error or ()

        def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> None:
                device, host = _modules(names)
                found, error = _call(test, args, {**kwargs, **device})
                expected, host_error = _call(test, args, {**kwargs, **host})
                for each in (error, host_error):
                    if each is not None and (isinstance(each, unittest.SkipTest) or not isinstance(each, accepted)):
                        raise each
                if (error is None) != (host_error is None):
                    raise AssertionError(f"CuPy raises {error!r}, NumPy {host_error!r}")
                if must_raise and error is None:
                    raise AssertionError("No exceptions are raised")
                if error is not None or must_raise:
                    return
                for x, y in zip(*_list_results(found, expected), strict=True):
                    if on_arrays and type_check:
                        assert getattr(x, "dtype", None) == getattr(y, "dtype", None), (x, y)
                    check(x, y, *arguments, **options)

            return _hide(test, (each for each in names.values() if each), run)

        return decorate

    return factory


def _list_results(found: Any, expected: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    if isinstance(expected, tuple | list):
        return found, expected
    return [_to_dense(found)], [_to_dense(expected)]


def _to_dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else value


def _assert_equal(x: Any, y: Any) -> None:
    assert x == y, f"CuPy's result is {x!r}, NumPy's {y!r}"


def _check_closeness(x: Any, y: Any, rtol: Any = 1e-7, atol: Any = 0.0, **options: Any) -> None:
    """Compare with tolerances that may depend on the type."""
    dtype = np.dtype(getattr(y, "dtype", float)).type
    limits: Any = [each.get(dtype, each.get("default")) if isinstance(each, dict) else each for each in (rtol, atol)]
    _assert_allclose(x, y, *limits, **options)


def _mark(name: str) -> Callable[[Any], Any]:
    def mark(test: Any) -> Any:
        import pytest

        return getattr(pytest.mark, name)(test)

    return mark


def _multi_gpu(gpu_num: int) -> Callable[[Any], Any]:
    return unittest.skipIf(gpu_num > 1, f"{gpu_num} GPUs required; the simulator is one")


def _fix_random() -> Callable[[Any], Any]:
    return lambda test: test


def _with_requires(*requirements: str) -> Callable[[Any], Any]:
    return unittest.skipUnless(_installed(*requirements), f"requires: {','.join(requirements)}")


def _installed(*requirements: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import Requirement  # pytest depends on it

    for each in map(Requirement, requirements):
        try:
            if not each.specifier.contains(version(each.name)):
                return False
        except PackageNotFoundError:
            return False
    return True


NAMES: dict[str, Any] = {
    **_ASSERTIONS,
    "shaped_arange": _shaped_arange,
    "shaped_reverse_arange": _shaped_reverse_arange,
    "shaped_linspace": _shaped_linspace,
    "shaped_random": _shaped_random,
    "product": product,
    "product_dict": product_dict,
    "parameterize": parameterize,
    "for_dtypes": _for_dtypes,
    "for_all_dtypes": _for_all_dtypes,
    "for_float_dtypes": _for_types(_FLOATS),
    "for_signed_dtypes": _for_types(_SIGNED),
    "for_unsigned_dtypes": _for_types(_UNSIGNED),
    "for_int_dtypes": lambda name="dtype", no_bool=False: _for_types(_SIGNED + _UNSIGNED)(name, no_bool=no_bool),
    "for_complex_dtypes": _for_types(_COMPLEX),
    "for_dtypes_combination": _for_combination,
    "for_all_dtypes_combination": lambda names=("dtype",), full=None, **exclusions: _for_combination(
        _list_dtypes(**exclusions), names, full
    ),
    "for_signed_dtypes_combination": _for_type_combinations(_SIGNED),
    "for_unsigned_dtypes_combination": _for_type_combinations(_UNSIGNED),
    "for_int_dtypes_combination": lambda names=("dtype",), no_bool=False, full=None: _for_type_combinations(
        _SIGNED + _UNSIGNED
    )(names, full, no_bool),
    "for_orders": lambda orders, name="order": _for_values(orders, name),
    "for_CF_orders": lambda name="order": _for_values((None, "C", "F", "c", "f"), name),
    "numpy_cupy_allclose": _compare_modules(_check_closeness),
    "numpy_cupy_equal": _compare_modules(_assert_equal, on_arrays=False),
    "numpy_cupy_raises": _compare_modules(_assert_equal, must_raise=True),
    "numpy_cupy_array_list_equal": _compare_modules(_ASSERTIONS["assert_array_equal"]),
    **{
        f"numpy_cupy_{name}": _compare_modules(_ASSERTIONS[f"assert_{name}"])
        for name in ("array_equal", "array_almost_equal", "array_less", "array_max_ulp", "array_almost_equal_nulp")
    },
    "slow": _mark("slow"),
    "multi_gpu": _multi_gpu,
    "fix_random": _fix_random,
    "with_requires": _with_requires,
    "installed": _installed,
}
"""The names of the module cupy.testing."""
