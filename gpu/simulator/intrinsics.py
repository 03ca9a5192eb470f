"""CUDA's device functions, by the names that the shim declares, as functions on NumPy values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any


def _minimum(left: Value, right: Value) -> Value:
    return np.fmin(left, right) if left.dtype.kind == "f" else np.minimum(left, right)


def _maximum(left: Value, right: Value) -> Value:
    return np.fmax(left, right) if left.dtype.kind == "f" else np.maximum(left, right)


def _fused_multiply_add(x: Value, y: Value, z: Value) -> Value:
    """Round once: the product of two float32 values is exact in float64."""
    if x.dtype == np.float64:
        return x * y + z
    return (x.astype(np.float64) * y + z).astype(np.float32)


def _reciprocal_root(x: Value) -> Value:
    return x.dtype.type(1) / np.sqrt(x)


def _round_away(x: Value) -> Value:
    """Round halves away from zero, as C's `round`; exact also where adding 0.5 would not be."""
    integral = np.trunc(x)
    return np.where(np.abs(x - integral) >= 0.5, integral + np.copysign(x.dtype.type(1), x), integral).astype(x.dtype)[
        ()
    ]


def _bit_length(x: Value) -> Value:
    return np.frexp(x.astype(np.float64))[1]


def _population_count(x: Value) -> Value:
    return np.bitwise_count(x).astype(np.int32)


def _leading_zeros(x: Value) -> Value:
    return (32 - _bit_length(x.view(np.uint32))).astype(np.int32)


def _first_set(x: Value) -> Value:
    bits = x.view(np.uint32)
    return _bit_length(bits & np.negative(bits)).astype(np.int32)


def _reversed_bits(x: Value) -> Value:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        kept_bits, distance = np.uint32(mask), np.uint32(shift)
        x = ((x >> distance) & kept_bits) | ((x & kept_bits) << distance)
    return x


def _bit_length_64(x: Value) -> Value:
    """Return the bit length, from 32-bit halves because a float64 holds only 53 bits."""
    high, low = (x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32)
    return np.where(high != 0, _bit_length(high) + 32, _bit_length(low))


def _population_count_64(x: Value) -> Value:
    return np.bitwise_count(x).astype(np.int32)


def _first_set_64(x: Value) -> Value:
    bits = x.view(np.uint64)
    return _bit_length_64(bits & np.negative(bits)).astype(np.int32)


def _leading_zeros_64(x: Value) -> Value:
    return (64 - _bit_length_64(x.view(np.uint64))).astype(np.int32)


def _low_24(x: Value) -> Value:
    """Sign-extend the low 24 bits of a signed number, or zero-extend those of an unsigned one."""
    if x.dtype.kind == "u":
        return x & np.uint32(0xFFFFFF)
    return (x << np.int32(8)) >> np.int32(8)


def _multiply_24(x: Value, y: Value) -> Value:
    return _low_24(x) * _low_24(y)


def _multiply_high(x: Value, y: Value) -> Value:
    wide = np.int64 if x.dtype.kind == "i" else np.uint64
    return ((x.astype(wide) * y.astype(wide)) >> wide(32)).astype(x.dtype)


def _reinterpret_bits(dtype: type) -> Callable[[Value], Value]:
    return lambda x: x.view(dtype)


def _saturate_to_one(x: Value) -> Value:
    return np.fmin(np.fmax(np.nan_to_num(x, nan=0.0), np.float32(0)), np.float32(1))


def _special_function(name: str) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        from scipy import special  # slow to import, and few kernels need it

        return getattr(special, name)(x).astype(x.dtype)

    return function


def _via_float64(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return a function that computes in float64 and rounds: NumPy's float32 result is less exact than a GPU's."""

    def via_float64(x: Value) -> Value:
        return function(x.astype(np.float64)).astype(x.dtype)

    return via_float64


def _power_of_ten(x: Value) -> Value:
    return np.power(x.dtype.type(10), x)


def _positive_difference(x: Value, y: Value) -> Value:
    return np.where(x > y, x - y, x.dtype.type(0))


TEXTURE_INTERPOLATION = "__lockstep_between"
"""Linear interpolation between two texels; the texture unit computes it, so it is not an operation of the kernel."""


def _interpolate(first: Value, second: Value, weight: Value) -> Value:
    return (1 - weight) * first + weight * second


_FLOAT_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
    "cbrt": _via_float64(np.cbrt),
    "exp": _via_float64(np.exp),
    "exp2": np.exp2,
    "exp10": _power_of_ten,
    "expm1": _via_float64(np.expm1),
    "log": _via_float64(np.log),
    "log2": _via_float64(np.log2),
    "log10": _via_float64(np.log10),
    "log1p": _via_float64(np.log1p),
    "sin": np.sin,
    "cos": np.cos,
    "tan": _via_float64(np.tan),
    "asin": _via_float64(np.arcsin),
    "acos": _via_float64(np.arccos),
    "atan": np.arctan,
    "sinh": _via_float64(np.sinh),
    "cosh": _via_float64(np.cosh),
    "tanh": np.tanh,
    "erf": _special_function("erf"),
    "erfc": _special_function("erfc"),
    "erfinv": _special_function("erfinv"),
    "erfcinv": _special_function("erfcinv"),
    "erfcx": _special_function("erfcx"),
    "lgamma": _special_function("gammaln"),
    "tgamma": _special_function("gamma"),
    "normcdf": _special_function("ndtr"),
    "normcdfinv": _special_function("ndtri"),
    "j0": _special_function("j0"),
    "j1": _special_function("j1"),
    "y0": _special_function("y0"),
    "y1": _special_function("y1"),
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "fabs": np.fabs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _round_away,
    "rint": np.rint,
    "nearbyint": np.rint,
    "pow": np.power,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "fmod": np.fmod,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "fdim": _positive_difference,
    "fma": _fused_multiply_add,
}

INTRINSICS: dict[str, Callable[..., Value]] = {
    **_FLOAT_FUNCTIONS,
    **{f"{name}f": function for name, function in _FLOAT_FUNCTIONS.items()},
    "__expf": np.exp,
    "__exp10f": _power_of_ten,
    "__logf": np.log,
    "__log2f": np.log2,
    "__log10f": np.log10,
    "__sinf": np.sin,
    "__cosf": np.cos,
    "__tanf": np.tan,
    "__powf": np.power,
    "__fdividef": np.true_divide,
    "__frcp_rn": np.reciprocal,
    "__fsqrt_rn": np.sqrt,
    "__frsqrt_rn": _reciprocal_root,
    "__fadd_rn": np.add,
    "__fsub_rn": np.subtract,
    "__fmul_rn": np.multiply,
    "__fdiv_rn": np.true_divide,
    "__fmaf_rn": _fused_multiply_add,
    "__saturatef": _saturate_to_one,
    TEXTURE_INTERPOLATION: _interpolate,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "min": _minimum,
    "max": _maximum,
    "abs": np.abs,
    "llabs": np.abs,
    "__popc": _population_count,
    "__popcll": _population_count_64,
    "__clz": _leading_zeros,
    "__clzll": _leading_zeros_64,
    "__ffs": _first_set,
    "__ffsll": _first_set_64,
    "__brev": _reversed_bits,
    "__mul24": _multiply_24,
    "__umul24": _multiply_24,
    "__mulhi": _multiply_high,
    "__umulhi": _multiply_high,
    "__float_as_int": _reinterpret_bits(np.int32),
    "__float_as_uint": _reinterpret_bits(np.uint32),
    "__int_as_float": _reinterpret_bits(np.float32),
    "__uint_as_float": _reinterpret_bits(np.float32),
    "__double_as_longlong": _reinterpret_bits(np.int64),
    "__longlong_as_double": _reinterpret_bits(np.float64),
    "__lockstep_mantissa": lambda x: np.frexp(x)[0],
    "__lockstep_exponent": lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0),
    "ldexp": np.ldexp,
    "ldexpf": np.ldexp,
    "__lockstep_from_half": lambda bits: bits.view(np.float16).astype(np.float32),
    "__lockstep_to_half": lambda value: value.astype(np.float16).view(np.uint16),
}

ATOMICS = {
    "atomicAdd": "add",
    "atomicSub": "sub",
    "atomicMin": "min",
    "atomicMax": "max",
    "atomicAnd": "and",
    "atomicOr": "or",
    "atomicXor": "xor",
    "atomicExch": "exch",
    "atomicCAS": "cas",
    "atomicInc": "inc",
    "atomicDec": "dec",
}

FULL_WARP_SYNC = "__lockstep_whole_warp"
"""Fails unless all lanes of a warp are active; has no other effect."""

MATRIX_PRODUCT = "__lockstep_mma"
"""One result of a warp's product of tiles; see `shim/lockstep/tensor.h`."""

WARPGROUP_PRODUCT = "__lockstep_wgmma"
"""One result of a warpgroup's product of tiles, in one of its four warps."""

MATRIX_PRODUCTS = (MATRIX_PRODUCT, WARPGROUP_PRODUCT)

WARP_OPERATIONS = frozenset(
    {
        "__activemask",
        FULL_WARP_SYNC,
        *MATRIX_PRODUCTS,
        *(f"__shfl{kind}_sync" for kind in ("", "_up", "_down", "_xor")),
        *(f"__{vote}_sync" for vote in ("ballot", "any", "all", "match_any")),
        *(f"__reduce_{combine}_sync" for combine in ("add", "min", "max", "and", "or", "xor")),
    }
)

# Functions that return the same bits, or the same number, in another type.
CONVERSIONS = frozenset(
    {
        "__float_as_int",
        "__float_as_uint",
        "__int_as_float",
        "__uint_as_float",
        "__double_as_longlong",
        "__longlong_as_double",
        "__lockstep_from_half",
        "__lockstep_to_half",
    }
)

BLOCK_VOTES = frozenset({"__syncthreads_count", "__syncthreads_and", "__syncthreads_or"})

# Functions that order memory between threads. The lanes of a batch run in lockstep, so no order is left to enforce.
FENCES = frozenset({"__threadfence", "__threadfence_block", "__threadfence_system", "__syncwarp", "__nanosleep"})
