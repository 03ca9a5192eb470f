"""`cupy.ElementwiseKernel`: a loop over the elements of arrays, in a generated kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray, from_result
from gpu.hosts.cupy.kernels.compilation import compile_module
from gpu.hosts.cupy.kernels.parameters import (
    HEADERS,
    DeclaredKernel,
    DeclaredParameter,
    Type,
    c_type,
    convert_arguments,
    declare_array,
    declare_indexer,
    format_typedefs,
    resolve_types,
    to_scalar,
)

_BLOCK = 128


class ElementwiseKernel(DeclaredKernel):
    """A kernel that computes each element of its outputs from the elements of its inputs.

    Parameters
    ----------
    in_params, out_params : str
        Declarations: "T x, raw float32 y".
    operation : str
        CUDA C++ statements; `i` is the element's number and `_ind` the index space.
    reduce_dims : bool
        Ignored: the axes are not merged.
    preamble : str
        Text before the kernel.
    no_return : bool
        Return None.
    return_tuple : bool
        Return a tuple for one output too.
    options : sequence of str
        Options of the compiler.
    loop_prep, after_loop : str
        Statements of each thread before and after its elements.

    Raises
    ------
    ValueError
        If the name or a declaration is invalid.
    """

    __module__ = "cupy"

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(name, in_params, out_params)
        self.params = self.in_params + self.out_params
        self.nargs = len(self.params)
        self.operation, self.preamble, self.no_return, self.return_tuple = operation, preamble, no_return, return_tuple
        self.reduce_dims = reduce_dims
        self._loop_prep, self._after_loop = options.pop("loop_prep", ""), options.pop("after_loop", "")
        self.options = tuple(options.pop("options", ()))
        self.kwargs = options

    @property
    def cached_code(self) -> str:
        """The generated source, if there is one."""
        if len(self._codes) != 1:
            raise RuntimeError(f"{len(self._codes)} sources were generated; see cached_codes")
        return next(iter(self._codes.values()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel on inputs, or on inputs and outputs.

        Parameters
        ----------
        args : DeviceArray or number
        size : int
            Elements of the loop, if all arrays are raw.
        block_size : int
            Threads of a block.

        Raises
        ------
        TypeError
            If the number of arguments or a type is wrong.
        ValueError
            If the shapes do not match.
        """
        size, block = kwargs.pop("size", None), kwargs.pop("block_size", _BLOCK)
        stream = kwargs.pop("stream", None)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if block < 1:
            raise ValueError(f"block_size should be greater than or equal to 1 (got {block})")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name}: {len(args)}, not {self.nin} or {self.nargs}")
        arguments = convert_arguments(args)
        for parameter, argument in zip(self.out_params, arguments[self.nin :], strict=False):
            if not isinstance(argument, DeviceArray):
                raise TypeError(f"The output {parameter.name} must be an array, not {type(argument).__name__}")
        types = resolve_types(self.params, arguments)
        shape = self._find_shape(arguments, size)
        arguments = self._broadcast(arguments, shape)
        outputs = arguments[self.nin :]
        for parameter in self.out_params[len(outputs) :]:
            if parameter.is_raw and size is None and not shape:
                raise ValueError("Output array size is Undecided")
            outputs.append(DeviceArray(shape, types[parameter.name]))
        if np.prod(shape, dtype=np.int64):
            self._launch(arguments[: self.nin] + outputs, types, shape, block, stream)
        if self.no_return or not outputs:
            return () if self.return_tuple and not self.no_return else None
        returned = args[self.nin :] or outputs
        return returned[0] if len(outputs) == 1 and not self.return_tuple else tuple(returned)

    def _find_shape(self, arguments: Sequence[Any], size: int | None) -> tuple[int, ...]:
        """Return the shape of the loop: that of all arrays that are not raw, broadcast."""
        arrays = [
            argument.shape
            for parameter, argument in zip(self.params, arguments, strict=False)
            if isinstance(argument, DeviceArray) and not parameter.is_raw
        ]
        if size is None or size == -1:
            if not arrays:
                raise ValueError("Loop size is undecided.")
            return np.broadcast_shapes(*arrays)
        if arrays:
            raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
        return (int(size),)

    def _broadcast(self, arguments: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
        broadcast = []
        for parameter, argument in zip(self.params, arguments, strict=False):
            if not isinstance(argument, DeviceArray) or parameter.is_raw or argument.shape == shape:
                broadcast.append(argument)
            elif parameter.is_output:
                raise ValueError(f"Out shape is mismatched: {argument.shape}, not {shape}")
            else:
                broadcast.append(from_result(np.broadcast_to(argument.view_host(), shape)))
        return broadcast

    def _launch(
        self, arguments: Sequence[Any], types: dict[str, Type], shape: tuple[int, ...], block: int, stream: Any
    ) -> None:
        declarations, values, loads = [], [], []
        for parameter, argument in zip(self.params, arguments, strict=True):
            type_ = types[parameter.name]
            if isinstance(argument, DeviceArray):
                declaration, value = declare_array(parameter, type_, argument)
                loads += [] if parameter.is_raw else [_format_element(parameter, type_)]
            else:
                declaration, value = f"const {c_type(type_)} {parameter.name}", to_scalar(argument, type_)
            declarations.append(declaration)
            values.append(value)
        indexer, indices = declare_indexer("_ind", shape)
        code = self._format_code(types, [*declarations, indexer], "\n".join(loads))
        self._codes[tuple(str(types[parameter.name]) for parameter in self.params)] = code
        function = compile_module(code, self.options).get_function(self.name)
        size = int(np.prod(shape, dtype=np.int64))
        function((-(-size // block),), (block,), (*values, indices), stream=stream)

    def _format_code(self, types: dict[str, Type], declarations: Sequence[str], loads: str) -> str:
        letters = [parameter.type_name for parameter in self.params if parameter.is_variable]
        select = "_ind.set(i);" if "_ind" in self.operation else ""
        return f"""{HEADERS}{format_typedefs(types, letters)}{self.preamble}
extern "C" __global__ void {self.name}({", ".join(declarations)}) {{
    {self._loop_prep};
    for (ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; i < _ind.size();
         i += (ptrdiff_t)blockDim.x * gridDim.x) {{
        {select}
        {loads}
        {self.operation};
    }}
    {self._after_loop};
}}
"""


def _format_element(parameter: DeclaredParameter, type_: Type) -> str:
    element = f"{c_type(type_)} &{parameter.name} = _raw_{parameter.name}[i];"
    return element if parameter.is_output else f"const {c_type(type_)} {parameter.name} = _raw_{parameter.name}[i];"
