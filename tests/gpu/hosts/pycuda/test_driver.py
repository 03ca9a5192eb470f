"""What stands in for PyCUDA's compiled module, without PyCUDA on top of it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from gpu.hosts.driver import attributes
from gpu.hosts.pycuda import compiler, packing, random_numbers
from gpu.hosts.pycuda.names import NAMES

FAULTS = NAMES["LogicError"], NAMES["MemoryError"]


@pytest.mark.parametrize("codes", ["P", "bP", "ifd", "BhiqQ?", "3sP", "12si", "f8sd", "ccH"])
def test_arguments_are_packed_as_the_struct_module_packs_them(codes):
    values = [
        {"s": b"abc", "c": b"x", "f": 0.5, "d": 0.25, "?": True}.get(letter, 7)
        for letter in codes
        if not letter.isdigit()
    ]
    assert packing.pack(codes, *values) == struct.pack(f"@{codes}", *values)
    assert packing.calcsize(codes) == struct.calcsize(f"@{codes}")


class Address:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


def test_numbers_of_numpy_are_packed_too():
    assert packing.pack("iF", np.int32(5), np.complex64(1 + 2j)) == struct.pack("@iff", 5, 1, 2)
    assert packing.pack("8s", np.arange(2, dtype=np.int32)) == struct.pack("@ii", 0, 1)
    with pytest.raises(struct.error, match="must be a bytes object"):
        packing.pack("8s", 2**40)
    with pytest.raises(struct.error, match="must be a bytes object"):
        packing.pack("8s", Address(2**40))
    with pytest.raises(struct.error, match="exactly 2 arguments, not 1"):
        packing.pack("ii", 1)
    with pytest.raises(struct.error, match="bad char"):
        packing.pack("iy", 1, 2)


def test_memory_is_copied_filled_and_bounded(context):
    memory = NAMES["mem_alloc"](64)
    values = np.arange(16, dtype=np.int32)
    NAMES["memcpy_htod"](memory, values)
    back = np.zeros((4, 2), np.int32, order="F")
    NAMES["memcpy_dtoh"](back, int(memory) + 16)
    assert back.ravel("K").tolist() == list(range(4, 12))
    NAMES["memset_d16"](int(memory) + 2, 0x1234, 3)
    NAMES["memcpy_dtod"](int(memory) + 32, memory, 16)
    NAMES["memcpy_dtoh"](values, memory)
    assert values.view(np.uint16)[:5].tolist() == [0, 0x1234, 0x1234, 0x1234, 2]
    assert values[8:12].tolist() == values[:4].tolist()
    with pytest.raises(NAMES["LogicError"], match="bytes 60 to 68 of an allocation, which has 64"):
        NAMES["memset_d32"](int(memory) + 60, 0, 2)
    with pytest.raises(NAMES["LogicError"], match="there is no memory at 0x10"):
        NAMES["memcpy_htod"](16, values)
    with pytest.raises(ValueError, match="not contiguous"):
        NAMES["memcpy_htod"](memory, values[::2])
    assert NAMES["mem_get_address_range"](int(memory) + 5) == (int(memory), 64)
    memory.free()
    with pytest.raises(NAMES["LogicError"], match="already freed"):
        memory.free()
    with pytest.raises(NAMES["LogicError"], match="freed"):
        NAMES["memcpy_dtoh"](values, memory)


def test_what_is_free_is_counted_and_too_much_is_refused(context):
    free, total = NAMES["mem_get_info"]()
    memory, pitch = NAMES["mem_alloc_pitch"](100, 7, 4)
    assert pitch >= 100
    assert free - NAMES["mem_get_info"]()[0] == 7 * pitch
    del memory
    assert NAMES["mem_get_info"]() == (free, total)
    with pytest.raises(NAMES["MemoryError"], match="out of memory"):
        NAMES["mem_alloc"](total + 1)
    with pytest.raises(NAMES["LogicError"], match="0 bytes"):
        NAMES["mem_alloc"](0)


def test_what_no_machine_has_is_refused_in_the_drivers_words(context):
    for routine in ("pagelocked_empty", "aligned_empty"):
        with pytest.raises(NAMES["MemoryError"], match="out of memory"):
            NAMES[routine](10**15, np.float64)
        with pytest.raises(TypeError):
            NAMES[routine](float("nan"), np.float64)
    with pytest.raises(TypeError):
        NAMES["module_from_buffer"](2**40)


def test_contexts_are_a_stack(context):
    Context, device = NAMES["Context"], NAMES["Device"](0)
    assert Context.get_current() is context
    other = device.make_context()
    assert Context.get_current() is other
    Context.pop()
    assert Context.get_current() is context
    other.push()
    other.detach()
    assert Context.get_current() is context
    with pytest.raises(NAMES["LogicError"], match="detached"):
        other.push()
    Context.pop()
    for call in (Context.pop, Context.synchronize, Context.get_device, lambda: NAMES["mem_alloc"](4)):
        with pytest.raises(NAMES["LogicError"], match="invalid device context"):
            call()
    context.push()
    with pytest.raises(NAMES["LogicError"], match="invalid device ordinal"):
        NAMES["Device"](1)


def test_who_detaches_the_primary_context_leaves_it_to_others(context):
    first, second = (NAMES["Device"](0).retain_primary_context() for _ in range(2))
    first.push()
    second.push()
    second.pop()
    second.detach()
    assert NAMES["Context"].get_current() is first
    first.pop()
    first.detach()
    assert NAMES["Context"].get_current() is context


def test_every_attribute_has_a_number_and_a_value(context):
    device = NAMES["Device"](0)
    for attribute in NAMES["device_attribute"]:
        assert device.get_attribute(attribute) == attributes.VALUE_BY_NUMBER[attribute]
    assert device.compute_capability() == (9, 0)
    names = NAMES["device_attribute"]
    assert f"{names.WARP_SIZE} {names.WARP_SIZE!s}" == "WARP_SIZE WARP_SIZE", "as PyCUDA's print"


def test_boxes_are_copied_between_host_device_and_arrays(context):
    descriptor = NAMES["ArrayDescriptor3D"]()
    descriptor.width, descriptor.height, descriptor.depth = 4, 3, 2
    descriptor.format = NAMES["array_format"].SIGNED_INT32
    array = NAMES["Array"](descriptor)
    box = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    copy = NAMES["Memcpy3D"]()
    copy.set_src_host(box)
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = 16
    copy.height = copy.src_height = 3
    copy.depth = 2
    copy()
    part = np.zeros((2, 2, 3), np.int32)
    back = NAMES["Memcpy3D"]()
    back.set_src_array(array)
    back.src_x_in_bytes, back.src_y = 4, 1
    back.set_dst_host(part)
    back.width_in_bytes = back.dst_pitch = 12
    back.height = back.dst_height = 2
    back.depth = 2
    back()
    assert (part == box[:, 1:, 1:]).all()
    back.height = 3
    with pytest.raises(NAMES["LogicError"], match="does not fit the array"):
        back()
    memory = NAMES["mem_alloc"](96)
    plane = NAMES["Memcpy2D"]()
    plane.set_src_host(box[0])
    plane.set_dst_device(memory)
    plane.src_pitch = plane.width_in_bytes = 16
    plane.dst_pitch, plane.height = 32, 3
    plane(aligned=True)
    rows = np.zeros((3, 8), np.int32)
    NAMES["memcpy_dtoh"](rows, memory)
    assert (rows[:, :4] == box[0]).all()


def test_bins_of_a_pool_hold_what_is_asked_of_them():
    pool = NAMES["DeviceMemoryPool"]()
    for size in (1, 7, 31, 32, 33, 1000, 4096, 123_456_789):
        bytes_of_bin = pool.alloc_size(pool.bin_number(size))
        assert size <= bytes_of_bin <= max(size * 9 / 8, 1)
        assert pool.bin_number(bytes_of_bin) == pool.bin_number(size)


def test_the_compiler_takes_nvccs_options(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "of.h").write_text("#define OF_HEADER 3\n")
    (tmp_path / "kernel.cu").write_text('#include "of.h"\n__global__ void k(int *a) { *a = N + OF_HEADER; }\n')
    options = [
        "--cubin",
        "-arch",
        "sm_90",
        "-Iinclude",
        "-D",
        "N=4",
        "-O3",
        "-std=c++17",
        "--ptxas-options=-v",
        "-e",
        "k",
    ]
    assert compiler.run_nvcc([*options, "kernel.cu"], tmp_path) == (0, b"", b"")
    image = compiler.SourceImage.load((tmp_path / "kernel.cubin").read_bytes())
    assert image is not None
    assert image.defines == {"N": "4"}
    assert compiler.load_module(image).kernels == ("k",)
    status, _, said = compiler.run_nvcc(["--ptx", "kernel.cu"], tmp_path)
    assert status == 1
    assert b"undeclared identifier" in said
    assert compiler.SourceImage.load(b"\x7fELF...") is None
    assert compiler.run_nvcc(["--version"], tmp_path)[1].startswith(b"nvcc: Lockstep")


def test_a_launch_takes_its_arguments_out_of_bytes(context, tmp_path):
    (tmp_path / "kernel.cu").write_text("""
#include <pycuda-complex.hpp>
struct Row { char first; double *values; };
extern "C" __global__ void fill(Row row, float2 by, float shift) {
    float s, c;
    sincos(shift, &s, &c);
    row.values[threadIdx.x] = by.x * threadIdx.x + by.y + s + pow(2, 3u) + pow((short)2, 0.5f) - pow(2.0f, 0.5);
}
""")
    assert compiler.run_nvcc(["--cubin", "kernel.cu"], tmp_path)[0] == 0
    module = NAMES["module_from_buffer"]((tmp_path / "kernel.cubin").read_bytes())
    function, memory = module.get_function("fill"), NAMES["mem_alloc"](32)
    packed = struct.pack("@bPfff", 1, int(memory), 3, 1, 0)
    function._launch_kernel((1, 1), (4, 1, 1), packed, 0, None)
    values = np.empty(4)
    NAMES["memcpy_dtoh"](values, memory)
    assert values == pytest.approx([9, 12, 15, 18])
    with pytest.raises(NAMES["LogicError"], match=r"fill needs 28 bytes of arguments \(Row row, float2 by"):
        function._launch_kernel((1, 1), (4, 1, 1), packed[:16], 0, None)


def test_machine_code_is_refused(context):
    with pytest.raises(NAMES["RuntimeError"], match="machine code or PTX"):
        NAMES["module_from_buffer"](b"\x7fELF")


def marsaglia(seed: int, steps: int) -> list[int]:
    """Return the first numbers of XORWOW, by its recurrence, from a seed below 2^32."""
    mask = 0xFFFFFFFF
    t0, t1 = 1099087573 * (seed ^ 0xAAD26B49) & mask, 2591861531 * 0xF7DCEFDD & mask
    d = (6615241 + t1 + t0) & mask
    v = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
    x, y, z, w, last = (each & mask for each in v)
    found = []
    for _ in range(steps):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, last
        last = (last ^ (last << 4) ^ t ^ (t << 1)) & mask
        d = (d + 362437) & mask
        found.append((last + d) & mask)
    return found


def test_random_numbers_are_those_of_their_recurrences(context, tmp_path):
    (tmp_path / "kernel.cu").write_text("""
#include <curand_kernel.h>
template <typename State>
__device__ void draw(unsigned int *out, unsigned long long seed, int skipped) {
    State state;
    curand_init(seed, 0, skipped, &state);
    for (int i = 0; i < 8; ++i) out[i] = curand(&state);
    skipahead(1001, &state);
    out[8] = curand(&state);
}
extern "C" __global__ void numbers(unsigned int *out) {
    draw<curandState>(out, 1234, 0);
    draw<curandState>(out + 9, 1234, 5);
    draw<curandStatePhilox4_32_10_t>(out + 18, 0, 0);
    curandState a, b;
    curand_init(1, 3, 0, &a);
    curand_init(1, 1, 0, &b);
    skipahead_sequence(2, &b);
    out[27] = curand(&a) == curand(&b);
}
""")
    assert compiler.run_nvcc(["--cubin", "kernel.cu"], tmp_path) == (0, b"", b"")
    function = NAMES["module_from_buffer"]((tmp_path / "kernel.cubin").read_bytes()).get_function("numbers")
    memory, out = NAMES["mem_alloc"](112), np.empty(28, np.uint32)
    function._launch_kernel((1, 1), (1, 1, 1), struct.pack("P", int(memory)), 0, None)
    NAMES["memcpy_dtoh"](out, memory)
    expected = marsaglia(1234, 1100)
    assert out[:9].tolist() == [*expected[:8], expected[1009]]
    assert out[9:18].tolist() == [*expected[5:13], expected[1014]]
    # The known answer of Random123 for a counter and a key of zeros.
    assert [f"{number:08x}" for number in out[18:22]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert out[27] == 1


def test_texture_references_read_arrays_and_memory(context, tmp_path):
    (tmp_path / "kernel.cu").write_text("""
texture<float, 2> plane;
texture<float, 1> line;
extern "C" __global__ void read(float *out) {
    out[threadIdx.x] = tex2D(plane, threadIdx.x, 1) + 100 * tex1Dfetch(line, threadIdx.x);
    out[threadIdx.x + 4] = tex2D(plane, threadIdx.x + 1.0f, 0.5f);
}
""")
    assert compiler.run_nvcc(["--cubin", "kernel.cu"], tmp_path) == (0, b"", b"")
    module = NAMES["module_from_buffer"]((tmp_path / "kernel.cubin").read_bytes())
    descriptor = NAMES["ArrayDescriptor"]()
    descriptor.width, descriptor.height, descriptor.format = 4, 2, NAMES["array_format"].FLOAT
    array, values = NAMES["Array"](descriptor), np.arange(8, dtype=np.float32)
    NAMES["memcpy_htoa"](array, 0, values)
    plane, line = module.get_texref("plane"), module.get_texref("line")
    plane.set_array(array)
    memory, out = NAMES["mem_alloc"](32), NAMES["mem_alloc"](32)
    NAMES["memcpy_htod"](memory, values)
    assert line.set_address(memory, 16) == 0
    found = np.empty(8, np.float32)

    def read():
        module.get_function("read")._launch_kernel((1, 1), (4, 1, 1), struct.pack("P", int(out)), 0, None)
        NAMES["memcpy_dtoh"](found, out)
        return found.tolist()

    assert read() == [4, 105, 206, 307, 1, 2, 3, 3]
    plane.set_filter_mode(NAMES["filter_mode"].LINEAR)
    assert read()[4:] == [0.5, 1.5, 2.5, 3]
    plane.set_address_mode(0, NAMES["address_mode"].BORDER)
    assert read()[7] == 1.5
    with pytest.raises(NAMES["LogicError"], match="named symbol not found"):
        module.get_texref("none")


@pytest.mark.parametrize("count", [3, 2**40])
def test_constants_of_random_numbers_take_no_more_memory_than_their_array(count):
    constants = np.zeros(5, np.uint32)
    random_numbers.NAMES["_get_scramble_constants32"](constants, count)
    assert np.count_nonzero(constants) == min(count, 5)
