"""`cupy.ReductionKernel`: a reduction along axes, with one block for each element of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray, from_result
from gpu.hosts.cupy.kernels.compilation import compile_module
from gpu.hosts.cupy.kernels.parameters import (
    HEADERS,
    DeclaredKernel,
    Type,
    c_type,
    convert_arguments,
    declare_array,
    declare_indexer,
    format_typedefs,
    resolve_types,
    to_scalar,
)

_MAX_BLOCK = 512
_MIN_BLOCK = 32
_MAX_BLOCKS = 65_535


class ReductionKernel(DeclaredKernel):
    """A kernel that combines the elements along axes of its inputs.

    Parameters
    ----------
    in_params, out_params : str
        Declarations: "T x, raw float32 y".
    map_expr : str
        CUDA C++ expression of the elements that are combined.
    reduce_expr : str
        Expression that combines `a` and `b`.
    post_map_expr : str
        Statement that stores the result `a`: "y = sqrt(a)".
    identity : str or number or None
        The start value; None for none.
    reduce_type : str or None
        The type of the combined values; None for that of the first output.
    reduce_dims : bool
        Ignored: the axes are not merged.
    preamble : str
        Text before the kernel.
    options : sequence of str
        Options of the compiler.

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
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(name, in_params, out_params)
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = None if identity is None or identity == "" else str(identity)
        self.reduce_type, self.reduce_dims, self.preamble, self.options = reduce_type, reduce_dims, preamble, options

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> Any:
        """Reduce inputs; outputs may follow them.

        Parameters
        ----------
        args : DeviceArray or number
        out : DeviceArray or None
            The result of one output.
        axis : int or sequence of int or None
            None for all.
        keepdims : bool
            Whether the axes remain, with one element each.

        Raises
        ------
        TypeError
            If the number of arguments or a type is wrong.
        ValueError
            If the shapes do not match, or nothing is combined and there is no start value.
        """
        if out is not None:
            if len(args) > self.nin or self.nout != 1:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            args = (*args, out)
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(f"Wrong number of arguments for {self.name}: {len(args)}, not {self.nin}")
        arguments = convert_arguments(args)
        types = resolve_types(self.in_params + self.out_params, arguments)
        arrays = [
            argument.shape
            for parameter, argument in zip(self.in_params, arguments, strict=False)
            if isinstance(argument, DeviceArray) and not parameter.is_raw
        ]
        if not arrays:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*arrays)
        axes = _normalize_axes(axis, len(shape))
        kept = [index for index in range(len(shape)) if index not in axes]
        out_shape = tuple(shape[index] for index in kept)
        final = tuple(1 if index in axes else extent for index, extent in enumerate(shape)) if keepdims else out_shape
        count = int(np.prod([shape[index] for index in axes], dtype=np.int64))
        if count == 0 and self.identity is None:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        outputs = self._prepare_outputs(arguments[self.nin :], types, final)
        if np.prod(out_shape, dtype=np.int64):
            inputs = self._arrange_inputs(arguments[: self.nin], shape, (*kept, *axes))
            targets = [
                from_result(each.view_host()[(*_select_kept(axes, each.ndim, keepdims), ...)]) for each in outputs
            ]
            self._launch(inputs, targets, types, out_shape, count, stream)
        return outputs[0] if self.nout == 1 else tuple(outputs)

    def _prepare_outputs(self, given: Sequence[Any], types: dict[str, Type], shape: tuple[int, ...]) -> list[Any]:
        for each in given:
            if not isinstance(each, DeviceArray) or each.shape != shape:
                raise ValueError(f"Out shape is mismatched: {getattr(each, 'shape', ())}, not {shape}")
        return list(given) or [DeviceArray(shape, types[parameter.name]) for parameter in self.out_params]

    def _arrange_inputs(self, arguments: Sequence[Any], shape: tuple[int, ...], order: Sequence[int]) -> list[Any]:
        """Return the inputs with the reduced axes at the end."""
        return [
            from_result(np.broadcast_to(argument.view_host(), shape).transpose(order))
            if isinstance(argument, DeviceArray) and not parameter.is_raw
            else argument
            for parameter, argument in zip(self.in_params, arguments, strict=True)
        ]

    def _launch(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        types: dict[str, Type],
        out_shape: tuple[int, ...],
        count: int,
        stream: Any,
    ) -> None:
        declarations, values, loads, stores = [], [], [], []
        for parameter, argument in zip(self.in_params + self.out_params, [*inputs, *outputs], strict=True):
            type_ = types[parameter.name]
            if not isinstance(argument, DeviceArray):
                declaration, value = f"const {c_type(type_)} {parameter.name}", to_scalar(argument, type_)
            else:
                declaration, value = declare_array(parameter, type_, argument)
            declarations.append(declaration)
            values.append(value)
            if not isinstance(argument, DeviceArray) or parameter.is_raw:
                continue
            if parameter.is_output:
                stores.append(f"{c_type(type_)} &{parameter.name} = _raw_{parameter.name}[_i];")
            else:
                loads.append(f"const {c_type(type_)} {parameter.name} = _raw_{parameter.name}[_j];")
        size = int(np.prod(out_shape, dtype=np.int64))
        for name, shape in (("_in_ind", (size * count,)), ("_out_ind", (size,))):
            declaration, value = declare_indexer(name, shape)
            declarations.append(declaration)
            values.append(value)
        block = min(max(1 << max(count - 1, 0).bit_length(), _MIN_BLOCK), _MAX_BLOCK)
        code = self._format_code(types, declarations, loads, stores, block)
        self._codes[tuple(str(types[parameter.name]) for parameter in self.in_params + self.out_params)] = code
        function = compile_module(code, self.options).get_function(self.name)
        function((min(size, _MAX_BLOCKS),), (block,), (*values, np.int64(count)), stream=stream)

    def _format_code(
        self,
        types: dict[str, Type],
        declarations: Sequence[str],
        loads: Sequence[str],
        stores: Sequence[str],
        block: int,
    ) -> str:
        parameters = self.in_params + self.out_params
        letters = [parameter.type_name for parameter in parameters if parameter.is_variable]
        reduce_type = self.reduce_type or c_type(types[self.out_params[0].name])
        if len(reduce_type) > 1 and self.reduce_type is not None:
            reduce_type = _find_reduce_type(reduce_type)
        # The preamble may define the combined type.
        definitions = f"{format_typedefs(types, letters)}{self.preamble}\ntypedef {reduce_type} _type_reduce;"
        start = f"= _type_reduce({self.identity})" if self.identity is not None else ""
        combine = "_s = _combine(_s, _a);"
        if self.identity is None:
            combine = "_s = _J < blockDim.x ? _a : _combine(_s, _a);"
        lines = "\n            "
        return f"""{HEADERS}{definitions}
__device__ _type_reduce _combine(_type_reduce a, _type_reduce b) {{ return _type_reduce({self.reduce_expr}); }}
extern "C" __global__ void {self.name}({", ".join(declarations)}, long long _count) {{
    // Bytes, since variables in shared memory have no constructors.
    __shared__ __align__(16) char _partial_bytes[{block} * sizeof(_type_reduce)];
    _type_reduce *_partial = reinterpret_cast<_type_reduce *>(_partial_bytes);
    for (ptrdiff_t _i = blockIdx.x; _i < _out_ind.size(); _i += gridDim.x) {{
        const ptrdiff_t i = _i;
        _type_reduce _s {start};
        for (ptrdiff_t _J = threadIdx.x; _J < _count; _J += blockDim.x) {{
            const ptrdiff_t _j = _i * _count + _J;
            {lines.join(loads)}
            const _type_reduce _a = _type_reduce({self.map_expr});
            {combine}
        }}
        _partial[threadIdx.x] = _s;
        __syncthreads();
        for (int _offset = {block // 2}; _offset > 0; _offset /= 2) {{
            if (threadIdx.x < _offset && threadIdx.x + _offset < _count)
                _partial[threadIdx.x] = _combine(_partial[threadIdx.x], _partial[threadIdx.x + _offset]);
            __syncthreads();
        }}
        if (threadIdx.x == 0) {{
            _type_reduce a = _partial[0];
            {lines.join(stores)}
            {self.post_map_expr};
        }}
        __syncthreads();
    }}
}}
"""


def _find_reduce_type(name: str) -> str:
    """Return the C++ type of a dtype's name; other names are C++ types already."""
    try:
        return c_type(np.dtype(name))
    except TypeError:
        return name


def _select_kept(axes: Sequence[int], ndim: int, keepdims: bool) -> tuple[Any, ...]:
    """Return the index that removes the reduced axes, of one element each, from a result."""
    if not keepdims:
        return ()
    return tuple(0 if index in axes else slice(None) for index in range(ndim))


def _normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes as a sorted tuple; raise AxisError or ValueError, as NumPy, if there are no such axes."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axes, ndim)))
