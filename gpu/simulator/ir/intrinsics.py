"""CUDA's device functions, a row each, by the names that the shim declares; and names of other built-in functions.

`python -m tools.intrinsic_headers` writes the headers that declare them to kernels and to host code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu.simulator.ir import numpy_functions as functions
from gpu.simulator.ir.forms import Function, Missing, Operation

TEXTURE_INTERPOLATION = "__lockstep_between"
"""Linear interpolation between two texels; the texture unit computes it, so it is not an operation of the kernel."""

_FLOATS = ("float", "double")
_NUMBERS = ("int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", *_FLOATS)
_IN_C_LIBRARY = Missing("is a function of the host's C library")
_ONLY_ON_DEVICES = Missing("is not a function of the host")
_NOT_IN_C_LIBRARY = Missing("is not a function of every C library")
_NOT_ON_GPUS = Missing("is a library function on GPUs, which only NVIDIA's compiler has")
_SEVERAL_INSTRUCTIONS = Missing("consists of several instructions")
_INFINITY = "0x7FF0000000000000"


def _math(
    name: str,
    numpy: Function,
    llvm: str | Missing,
    nvptx: str | Missing | Mapping[str, str | Missing] = _NOT_ON_GPUS,
    *,
    ptx: str | Missing = _SEVERAL_INSTRUCTIONS,
    host: str | Missing = _IN_C_LIBRARY,
    signature: str = "T(T)",
) -> Operation:
    """Return the row of a function of float and double."""
    return Operation(name, signature, _FLOATS, numpy, llvm, nvptx, ptx, host, has_float_name=True)


def _library(name: str, numpy: Function, signature: str = "T(T)") -> Operation:
    """Return the row of a function of the C library."""
    operands = "$x, $y" if "," in signature else "$x"
    return _math(name, numpy, f"libm {name} {operands}", signature=signature)


def _rare(name: str) -> Operation:
    """Return the row of a function that SciPy has, but not every C library."""
    scipy_names = {"normcdf": "ndtr", "normcdfinv": "ndtri", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1"}
    scipy_name = scipy_names.get(name, name)
    return _math(name, functions.special_function(scipy_name), _NOT_IN_C_LIBRARY, host=_NOT_IN_C_LIBRARY)


def _rounding(name: str, numpy: Function, signature: str = "T(T)", llvm: str = "") -> Operation:
    """Return the row of a function that LLVM has for CPUs and GPUs."""
    form = llvm or f"@{name} {'$x, $y' if ',' in signature else '$x'}"
    return _math(name, numpy, form, form, ptx=Missing("is a modifier of another instruction"), signature=signature)


def _approximate(text: str) -> dict[str, str | Missing]:
    """Return NVPTX forms: for float the text, which calls an approximate instruction."""
    return {"f4": text.replace("@", "@nvvm."), "f8": _NOT_ON_GPUS}


def _device(
    name: str,
    signature: str,
    numpy: Function | Mapping[str, Function],
    llvm: str | Missing | Mapping[str, str | Missing],
    nvptx: str | Missing | Mapping[str, str | Missing] | None = None,
    **fields: Any,
) -> Operation:
    """Return the row of a function of CUDA alone; its form for GPUs is that for CPUs unless it is given."""
    nvptx = llvm if nvptx is None else nvptx
    defaults: dict[str, Any] = {"types": (), "ptx": _SEVERAL_INSTRUCTIONS, "host": _ONLY_ON_DEVICES}
    return Operation(name, signature, numpy=numpy, llvm=llvm, nvptx=nvptx, **defaults | fields)


def _fast(name: str, numpy: Function, nvptx: str = "") -> Operation:
    """Return the row of an approximate function, such as `__expf`."""
    base = MATH[name]
    operands, parameters = ("x, y", "float, float") if name == "pow" else ("x", "float")
    ptx = Missing(f"is the instruction of {name}f")
    host = f"pow(10, {operands})" if name == "exp10" else f"{name}f({operands})"
    return _device(f"__{name}f", f"float({parameters})", numpy, base.llvm, nvptx or base.nvptx, ptx=ptx, host=host)


def _rounded(name: str, numpy: Function, instruction: str, operator: str, type: str = "float") -> Operation:
    """Return the row of an operation that is never fused with another."""
    ptx = Missing(f"is the instruction of {operator}")
    llvm = f"{instruction} {type} $x, $y"
    return _device(name, f"{type}({type}, {type})", numpy, llvm, ptx=ptx, host=f"x {operator} y")


def _bits(name: str, source: str, target: str, dtype: type, instruction: str) -> Operation:
    """Return the row of a function that interprets the same bits as another type."""
    return _device(
        name,
        f"{target}({source})",
        functions.reinterpret_bits(dtype),
        instruction,
        ptx=Missing("is a mov, which keeps the bits"),
        host=f"__lockstep_bits<{target}>(x)",
        is_conversion=True,
    )


_LOG2_E, _LOG2_10 = "0x3FF7154760000000", "0x400A934F00000000"
_FAST_TANH = """scaled = fmul float $x, 0x4007154760000000
power = @nvvm.ex2.approx.f $scaled
above = fadd float $power, 1.0
part = @nvvm.div.approx.f 2.0, $above
fsub float 1.0, $part"""
_LN_2, _LOG10_2 = "0x3FE62E4300000000", "0x3FD3441360000000"

MATH: dict[str, Operation] = {
    each.name: each
    for each in (
        _math("sqrt", np.sqrt, "@sqrt $x", "@sqrt $x", ptx="sqrt"),
        _math("rsqrt", functions.reciprocal_root, "root = @sqrt $x\nfdiv $T 1.0, $root",
            {"f4": "@nvvm.rsqrt.approx.f $x", "f8": "root = @sqrt $x\nfdiv $T 1.0, $root"}, ptx="rsqrt",
            host="1 / sqrt(x)"),
        _library("cbrt", functions.via_float64(np.cbrt)),
        _math("exp", functions.via_float64(np.exp), "@exp $x",
            _approximate(f"scaled = fmul float $x, {_LOG2_E}\n@ex2.approx.f $scaled")),
        _math("exp2", np.exp2, "@exp2 $x", _approximate("@ex2.approx.f $x"), ptx="ex2"),
        _math("exp10", functions.power_of_ten, "@pow 10.0, $x",
            _approximate(f"scaled = fmul float $x, {_LOG2_10}\n@ex2.approx.f $scaled"),
            host=_NOT_IN_C_LIBRARY),
        _library("expm1", functions.via_float64(np.expm1)),
        _math("log", functions.via_float64(np.log), "@log $x",
            _approximate(f"binary = @lg2.approx.f $x\nfmul float $binary, {_LN_2}")),
        _math("log2", functions.via_float64(np.log2), "@log2 $x", _approximate("@lg2.approx.f $x"), ptx="lg2"),
        _math("log10", functions.via_float64(np.log10), "@log10 $x",
            _approximate(f"binary = @lg2.approx.f $x\nfmul float $binary, {_LOG10_2}")),
        _library("log1p", functions.via_float64(np.log1p)),
        _math("sin", np.sin, "@sin $x", _approximate("@sin.approx.f $x"), ptx="sin"),
        _math("cos", np.cos, "@cos $x", _approximate("@cos.approx.f $x"), ptx="cos"),
        _math("tan", functions.via_float64(np.tan), "libm tan $x",
            _approximate("sine = @sin.approx.f $x\ncosine = @cos.approx.f $x\nfdiv float $sine, $cosine")),
        _library("asin", functions.via_float64(np.arcsin)),
        _library("acos", functions.via_float64(np.arccos)),
        _library("atan", np.arctan),
        _library("sinh", functions.via_float64(np.sinh)),
        _library("cosh", functions.via_float64(np.cosh)),
        _math("tanh", np.tanh, "libm tanh $x", ptx="tanh"),
        _library("erf", functions.special_function("erf")),
        _library("erfc", functions.special_function("erfc")),
        *map(_rare, ("erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv")),
        *map(_rare, ("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1")),
        _library("lgamma", functions.log_gamma),
        _library("tgamma", functions.special_function("gamma")),
        _library("asinh", np.arcsinh),
        _library("acosh", np.arccosh),
        _library("atanh", np.arctanh),
        _rounding("fabs", np.fabs),
        _rounding("floor", np.floor),
        _rounding("ceil", np.ceil),
        _rounding("trunc", np.trunc),
        _rounding("round", functions.round_away),
        _rounding("rint", np.rint),
        _rounding("nearbyint", np.rint),
        _rounding("fmin", np.fmin, "T(T, T)", "@minnum $x, $y"),
        _rounding("fmax", np.fmax, "T(T, T)", "@maxnum $x, $y"),
        _rounding("copysign", np.copysign, "T(T, T)"),
        _math("pow", np.power, "@pow $x, $y",
            _approximate("binary = @lg2.approx.f $x\nscaled = fmul float $binary, $y\n@ex2.approx.f $scaled"),
            signature="T(T, T)"),
        _library("fmod", np.fmod, "T(T, T)"),
        _library("atan2", np.arctan2, "T(T, T)"),
        _library("hypot", np.hypot, "T(T, T)"),
        _rounding("fdim", functions.positive_difference, "T(T, T)",
            "smaller = fcmp ole $T $x, $y\ndifference = fsub $T $x, $y\nselect i1 $smaller, $T 0.0, $T $difference"),
        _math("fma", functions.fused_multiply_add, "@fma $x, $y, $z", "@fma $x, $y, $z",
            ptx=Missing("rounds twice in the timing model, which is faster"), signature="T(T, T, T)"),
        _math("ldexp", np.ldexp, "call $T @llvm.ldexp.$S.i32($T $x, i32 $y)", signature="T(T, int)"),
    )
}  # fmt: skip

_COUNT = "count = {}\ntrunc i64 $count to i32"
_FIRST_SET = """zeros = @cttz $x, i1 false
first = add $T $zeros, 1
none = icmp eq $T $x, 0
{}select i1 $none, $T 0, $T $first"""
_MULTIPLY_24 = "a = and i32 $x, 16777215\nb = and i32 $y, 16777215\nmul i32 $a, $b"
_SIGNED_MULTIPLY_24 = """left = shl i32 $x, 8
a = ashr i32 $left, 8
right = shl i32 $y, 8
b = ashr i32 $right, 8
mul i32 $a, $b"""
_MULTIPLY_HIGH = """a = {0} i32 $x to i64
b = {0} i32 $y to i64
product = mul i64 $a, $b
high = lshr i64 $product, 32
trunc i64 $high to i32"""
_PERMUTE_BYTES = (
    """low = zext i32 $x to i64
upper = zext i32 $y to i64
high = shl i64 $upper, 32
both = or i64 $low, $high
"""
    + "\n".join(
        f"""choice{place} = lshr i32 $z, {4 * place}
number{place} = and i32 $choice{place}, 7
wide{place} = zext i32 $number{place} to i64
bits{place} = shl i64 $wide{place}, 3
word{place} = lshr i64 $both, $bits{place}
byte{place} = trunc i64 $word{place} to i8
sign{place} = ashr i8 $byte{place}, 7
flag{place} = and i32 $choice{place}, 8
is_sign{place} = icmp ne i32 $flag{place}, 0
chosen{place} = select i1 $is_sign{place}, i8 $sign{place}, i8 $byte{place}
value{place} = zext i8 $chosen{place} to i32
shifted{place} = shl i32 $value{place}, {8 * place}"""
        for place in range(4)
    )
    + """
first = or i32 $shifted0, $shifted1
second = or i32 $shifted2, $shifted3
or i32 $first, $second"""
)
_INTERPOLATE = """rest = fsub $T 1.0, $z
a = fmul $T $rest, $x
b = fmul $T $z, $y
fadd $T $a, $b"""

_EXPONENT = f"""parts = call {{ $T, i32 }} @llvm.frexp.$S.i32($T $x)
exponent = extractvalue {{ $T, i32 }} $parts, 1
size = @fabs $x
finite = fcmp one $T $size, {_INFINITY}
select i1 $finite, i32 $exponent, i32 0"""

INTRINSICS: dict[str, Operation] = {
    **MATH,
    **{f"{name}f": row for name, row in MATH.items()},
    **{
        each.name: each
        for each in (
            _fast("exp", np.exp),
            _fast("exp10", functions.power_of_ten),
            _fast("log", np.log),
            _fast("log2", np.log2),
            _fast("log10", np.log10),
            _fast("sin", np.sin),
            _fast("cos", np.cos),
            _fast("tan", np.tan),
            _fast("tanh", np.tanh, _FAST_TANH),
            _fast("pow", np.power),
            _device("__fdividef", "float(float, float)", np.true_divide, "fdiv float $x, $y",
                "@nvvm.div.approx.f $x, $y", ptx=Missing("is the instruction of /"), host="x / y"),
            _rounded("__fadd_rn", np.add, "fadd", "+"),
            _rounded("__fsub_rn", np.subtract, "fsub", "-"),
            _rounded("__fmul_rn", np.multiply, "fmul", "*"),
            _rounded("__fdiv_rn", np.true_divide, "fdiv", "/"),
            _rounded("__dadd_rn", np.add, "fadd", "+", "double"),
            _rounded("__dsub_rn", np.subtract, "fsub", "-", "double"),
            _rounded("__dmul_rn", np.multiply, "fmul", "*", "double"),
            _device("__frcp_rn", "float(float)", np.reciprocal, "fdiv float 1.0, $x", ptx="rcp", host="1 / x"),
            _device("__fsqrt_rn", "float(float)", np.sqrt, "@sqrt $x", ptx=Missing("is that of sqrt"), host="sqrtf(x)"),
            _device("__frsqrt_rn", "float(float)", functions.reciprocal_root, MATH["rsqrt"].llvm, MATH["rsqrt"].nvptx,
                ptx=Missing("is that of rsqrt"), host="1 / sqrtf(x)"),
            _device("__fmaf_rn", "float(float, float, float)", functions.fused_multiply_add, "@fma $x, $y, $z",
                ptx=Missing("is that of fma"), host="fmaf(x, y, z)"),
            _device("__saturatef", "float(float)", functions.saturate_to_one,
                "positive = @maxnum $x, 0.0\n@minnum $positive, 1.0", ptx=Missing("is the modifier sat"),
                host="x > 0 ? (x < 1 ? x : 1) : 0"),
            _device(TEXTURE_INTERPOLATION, "float(float, float, float)", functions.interpolate, _INTERPOLATE,
                ptx=Missing("is computed by texture units")),
            _device("isnan", "bool(T)", np.isnan, "fcmp uno $T $x, 0.0", types=_FLOATS,
                ptx=Missing("is setp.nan, of two operands"), host=_IN_C_LIBRARY),
            _device("isinf", "bool(T)", np.isinf, f"size = @fabs $x\nfcmp oeq $T $size, {_INFINITY}", types=_FLOATS,
                host=_IN_C_LIBRARY),
            _device("isfinite", "bool(T)", np.isfinite, f"size = @fabs $x\nfcmp one $T $size, {_INFINITY}",
                types=_FLOATS, host=_IN_C_LIBRARY),
            _device("min", "T(T, T)", functions.minimum,
                {"f": "@minnum $x, $y", "i": "@smin $x, $y", "u": "@umin $x, $y"}, types=_NUMBERS, ptx="min",
                host={"f": "fmin(x, y)", "": "y < x ? y : x"}, header="math.h"),
            _device("max", "T(T, T)", functions.maximum,
                {"f": "@maxnum $x, $y", "i": "@smax $x, $y", "u": "@umax $x, $y"}, types=_NUMBERS, ptx="max",
                host={"f": "fmax(x, y)", "": "x < y ? y : x"}, header="math.h"),
            _device("abs", "T(T)", np.abs, {"f": "@fabs $x", "": "@abs $x, i1 false"},
                types=("int", "long", "long long", *_FLOATS), ptx="abs", host=_IN_C_LIBRARY),
            _device("llabs", "long long(long long)", np.abs, "@abs $x, i1 false", ptx=Missing("is that of abs"),
                host=_IN_C_LIBRARY),
            _device("__popc", "int(unsigned int)", functions.count_bits, "@ctpop $x", ptx="popc",
                host="__builtin_popcount(x)"),
            _device("__popcll", "int(unsigned long long)", functions.count_bits, _COUNT.format("@ctpop $x"),
                ptx=Missing("is that of __popc"), host="__builtin_popcountll(x)"),
            _device("__clz", "int(int)", functions.count_leading_zeros, "@ctlz $x, i1 false", ptx="clz",
                host="x ? __builtin_clz(x) : 32"),
            _device("__clzll", "int(long long)", functions.count_leading_zeros, _COUNT.format("@ctlz $x, i1 false"),
                ptx=Missing("is that of __clz"), host="x ? __builtin_clzll(x) : 64"),
            _device("__ffs", "int(int)", functions.find_first_set, _FIRST_SET.format(""), host="__builtin_ffs(x)"),
            _device("__ffsll", "int(long long)", functions.find_first_set,
                f"{_FIRST_SET.format('position = ')}\ntrunc i64 $position to i32", host="__builtin_ffsll(x)"),
            _device("__brev", "unsigned int(unsigned int)", functions.reverse_bits, "@bitreverse $x", ptx="brev",
                host="__lockstep_reverse_bits(x)"),
            _device("__mul24", "int(int, int)", functions.multiply_24, _SIGNED_MULTIPLY_24, ptx="mul24",
                host="(int)((long long)__lockstep_low_24(x) * __lockstep_low_24(y))"),
            _device("__umul24", "unsigned int(unsigned int, unsigned int)", functions.multiply_24, _MULTIPLY_24,
                ptx=Missing("is that of __mul24"), host="(x & 0xffffff) * (y & 0xffffff)"),
            _device("__mulhi", "int(int, int)", functions.multiply_high, _MULTIPLY_HIGH.format("sext"), ptx="mul.hi",
                host="(int)((long long)x * y >> 32)"),
            _device("__umulhi", "unsigned int(unsigned int, unsigned int)", functions.multiply_high,
                _MULTIPLY_HIGH.format("zext"), ptx=Missing("is that of __mulhi"),
                host="(unsigned int)((unsigned long long)x * y >> 32)"),
            _device("__byte_perm", "unsigned int(unsigned int, unsigned int, unsigned int)", functions.permute_bytes,
                _PERMUTE_BYTES, "@nvvm.prmt $x, $y, $z", ptx="prmt", host="__lockstep_permute_bytes(x, y, z)"),
            _bits("__float_as_int", "float", "int", np.int32, "bitcast float $x to i32"),
            _bits("__float_as_uint", "float", "unsigned int", np.uint32, "bitcast float $x to i32"),
            _bits("__int_as_float", "int", "float", np.float32, "bitcast i32 $x to float"),
            _bits("__uint_as_float", "unsigned int", "float", np.float32, "bitcast i32 $x to float"),
            _bits("__double_as_longlong", "double", "long long", np.int64, "bitcast double $x to i64"),
            _bits("__longlong_as_double", "long long", "double", np.float64, "bitcast i64 $x to double"),
            _device("__lockstep_mantissa", "T(T)", functions.find_mantissa,
                "parts = call { $T, i32 } @llvm.frexp.$S.i32($T $x)\nextractvalue { $T, i32 } $parts, 0",
                _NOT_ON_GPUS, types=_FLOATS),
            _device("__lockstep_exponent", "int(T)", functions.find_exponent,
                _EXPONENT,
                _NOT_ON_GPUS, types=_FLOATS),
            _device("__lockstep_from_half", "float(unsigned short)", functions.from_half,
                "half = bitcast i16 $x to half\nfpext half $half to float", ptx=Missing("is a cvt"),
                host=Missing("is written in host_functions.h"), is_conversion=True),
            _device("__lockstep_to_half", "unsigned short(float)", functions.to_half,
                "half = fptrunc float $x to half\nbitcast half $half to i16", ptx=Missing("is a cvt"),
                host=Missing("is written in host_functions.h"), is_conversion=True),
        )
    },
}  # fmt: skip

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

CONVERSIONS = frozenset(name for name, row in INTRINSICS.items() if row.is_conversion)

BLOCK_VOTES = frozenset({"__syncthreads_count", "__syncthreads_and", "__syncthreads_or"})

# Functions that order memory between threads. The lanes of a batch run in lockstep, so no order is left to enforce.
FENCES = frozenset({"__threadfence", "__threadfence_block", "__threadfence_system", "__syncwarp", "__nanosleep"})
