"""Classes of NumPy and SciPy, such as sparse matrices and interpolators, whose objects exchange device arrays."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gpu.hosts.cupy.forwarding import (
    ForwardedFunction,
    call_on_host,
    reject_host_arrays,
    set_object_conversion,
    to_device,
    to_host,
)

_OWN = frozenset(
    f"__{name}__"
    for name in (
        *("class", "new", "init", "getattribute", "getattr", "setattr", "delattr", "init_subclass", "subclasshook"),
        *(
            "reduce",
            "reduce_ex",
            "getstate",
            "setstate",
            "copy",
            "deepcopy",
            "dir",
            "sizeof",
            "format",
            "class_getitem",
        ),
        *("array", "array_ufunc", "array_function", "array_wrap", "array_namespace"),
    )
)
"""Special methods that are not forwarded."""
_METHODS = (types.MethodType, types.BuiltinMethodType, types.FunctionType)


class _ForwardedType(type):
    """The type of these classes: static and class methods of the host's class are forwarded."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        value = getattr(cls.__dict__["host_class"], name)
        return ForwardedFunction(f"{cls.__name__}.{name}", value) if callable(value) else to_device(value)


class ForwardedObject(metaclass=_ForwardedType):
    """An object of NumPy or SciPy that takes and returns device arrays.

    Parameters
    ----------
    *arguments, **options
        The arguments of the host's class.
    """

    __array_ufunc__ = None  # operators of arrays leave the operation to this object
    host_class: type = object
    _host: Any

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        made = call_on_host(cls.__name__, cls.host_class, arguments, options)
        if cls is type(made) or not isinstance(made, ForwardedObject):
            return made
        return _wrap(cls, made.view_host())

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def view_host(self) -> Any:
        """Return the host's object, over the same memory."""
        return self._host

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        host = self._host
        if name == "get" and not hasattr(host, "get"):
            return lambda stream=None: copy.deepcopy(host)
        value = getattr(host, name)
        if isinstance(value, _METHODS):
            return ForwardedFunction(f"{type(self).__name__}.{name}", value)
        found = to_device(value)
        if isinstance(value, np.ndarray) and name in getattr(host, "__dict__", ()):
            vars(host)[name] = found.view_host()  # both work on the same memory from now on
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._host, name, to_host(value))

    def __dir__(self) -> list[str]:
        return dir(self._host)

    def __reduce__(self) -> Any:
        return _wrap, (type(self), self._host)


def _wrap(cls: type[ForwardedObject], host: Any) -> ForwardedObject:
    self = object.__new__(cls)
    object.__setattr__(self, "_host", host)
    return self


def _forward_special(name: str) -> Callable[..., Any]:
    def method(self: ForwardedObject, *arguments: Any, **options: Any) -> Any:
        reject_host_arrays(arguments)
        host = self.view_host()
        return to_device(getattr(host, name)(*map(to_host, arguments), **to_host(options)))

    return method


def _iterate(self: ForwardedObject) -> Iterator[Any]:
    return map(to_device, iter(self.view_host()))


_classes: dict[type, type[ForwardedObject]] = {}


def forward_class(host: type) -> type[ForwardedObject]:
    """Return the class, always the same one, of a class of NumPy or SciPy; its bases are those of the host's bases.

    Parameters
    ----------
    host : type
        Such as `scipy.sparse.csr_matrix`.
    """
    if host not in _classes:
        bases = tuple(forward_class(each) for each in host.__bases__ if _is_library_class(each))
        special = {
            name: _forward_special(name)
            for name in dir(host)
            if name.startswith("__") and name not in _OWN and _is_special(host, name)
        }
        if "__iter__" in special:
            special["__iter__"] = _iterate
        public = ".".join(each for each in host.__module__.split(".") if not each.startswith("_"))
        module = public.replace("scipy", "cupyx.scipy", 1) if public.startswith("scipy") else "cupy"
        attributes = {"__module__": module, "__doc__": host.__doc__, "host_class": host, **special}
        made: Any = _ForwardedType(host.__name__, bases or (ForwardedObject,), attributes)
        _classes[host] = made
    return _classes[host]


def _is_library_class(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("numpy", "scipy") and not issubclass(cls, np.ndarray | tuple | dict)


def _is_special(host: type, name: str) -> bool:
    """Return whether a class has a special method that not each object has."""
    method = getattr(host, name)
    return callable(method) and method is not getattr(object, name, None)


def wrap_object(value: Any) -> Any:
    """Return an object of SciPy, or of a class that a script has used, as one that exchanges device arrays."""
    cls = type(value)
    if cls in _classes or (
        cls.__module__.startswith("scipy.") and _is_library_class(cls) and not isinstance(value, type | ModuleType)
    ):
        return _wrap(forward_class(cls), value)
    return value


set_object_conversion(wrap_object)
