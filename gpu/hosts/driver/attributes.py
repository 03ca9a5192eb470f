"""Attributes of the simulated device: the simulator's limits, or those of a described GPU.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0; numbers as in CUDA's cuda.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu.base.devices.processor import processor_name
from gpu.base.warp import WARP
from gpu.simulator.limits import LIMITS, RESIDENCY

if TYPE_CHECKING:
    from gpu.timing.gpus import GpuDescription

COMPUTE_CAPABILITY = (9, 0)
MULTIPROCESSORS = 16
"""Enough that grids sized by it fill a batch, and few enough that grid-stride loops have several iterations."""

DEVICE_ATTRIBUTES: dict[str, tuple[int, int]] = {
    "MAX_THREADS_PER_BLOCK": (1, LIMITS.threads),
    "MAX_BLOCK_DIM_X": (2, LIMITS.block[0]),
    "MAX_BLOCK_DIM_Y": (3, LIMITS.block[1]),
    "MAX_BLOCK_DIM_Z": (4, LIMITS.block[2]),
    "MAX_GRID_DIM_X": (5, LIMITS.grid[0]),
    "MAX_GRID_DIM_Y": (6, LIMITS.grid[1]),
    "MAX_GRID_DIM_Z": (7, LIMITS.grid[2]),
    "MAX_SHARED_MEMORY_PER_BLOCK": (8, LIMITS.shared_bytes),
    "SHARED_MEMORY_PER_BLOCK": (8, LIMITS.shared_bytes),
    "TOTAL_CONSTANT_MEMORY": (9, LIMITS.constant_bytes),
    "WARP_SIZE": (10, WARP),
    "MAX_PITCH": (11, 2**31 - 1),
    "MAX_REGISTERS_PER_BLOCK": (12, 65_536),
    "REGISTERS_PER_BLOCK": (12, 65_536),
    "CLOCK_RATE": (13, 1_000_000),
    "TEXTURE_ALIGNMENT": (14, 512),
    "GPU_OVERLAP": (15, 1),
    "MULTIPROCESSOR_COUNT": (16, MULTIPROCESSORS),
    "KERNEL_EXEC_TIMEOUT": (17, 0),
    "INTEGRATED": (18, 0),
    "CAN_MAP_HOST_MEMORY": (19, 1),
    "COMPUTE_MODE": (20, 0),
    "MAXIMUM_TEXTURE1D_WIDTH": (21, 131_072),
    "MAXIMUM_TEXTURE2D_WIDTH": (22, 131_072),
    "MAXIMUM_TEXTURE2D_HEIGHT": (23, 65_536),
    "MAXIMUM_TEXTURE3D_WIDTH": (24, 16_384),
    "MAXIMUM_TEXTURE3D_HEIGHT": (25, 16_384),
    "MAXIMUM_TEXTURE3D_DEPTH": (26, 16_384),
    "MAXIMUM_TEXTURE2D_ARRAY_WIDTH": (27, 32_768),
    "MAXIMUM_TEXTURE2D_LAYERED_WIDTH": (27, 32_768),
    "MAXIMUM_TEXTURE2D_ARRAY_HEIGHT": (28, 32_768),
    "MAXIMUM_TEXTURE2D_LAYERED_HEIGHT": (28, 32_768),
    "MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES": (29, 2_048),
    "MAXIMUM_TEXTURE2D_LAYERED_LAYERS": (29, 2_048),
    "SURFACE_ALIGNMENT": (30, 512),
    "CONCURRENT_KERNELS": (31, 1),
    "ECC_ENABLED": (32, 0),
    "PCI_BUS_ID": (33, 0),
    "PCI_DEVICE_ID": (34, 0),
    "TCC_DRIVER": (35, 0),
    "MEMORY_CLOCK_RATE": (36, 1_000_000),
    "GLOBAL_MEMORY_BUS_WIDTH": (37, 512),
    "L2_CACHE_SIZE": (38, 0),
    "MAX_THREADS_PER_MULTIPROCESSOR": (39, 2_048),
    "ASYNC_ENGINE_COUNT": (40, 1),
    "UNIFIED_ADDRESSING": (41, 1),
    "MAXIMUM_TEXTURE1D_LAYERED_WIDTH": (42, 32_768),
    "MAXIMUM_TEXTURE1D_LAYERED_LAYERS": (43, 2_048),
    "MAXIMUM_TEXTURE2D_GATHER_WIDTH": (45, 32_768),
    "MAXIMUM_TEXTURE2D_GATHER_HEIGHT": (46, 32_768),
    "MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE": (47, 8_192),
    "MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE": (48, 8_192),
    "MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE": (49, 32_768),
    "PCI_DOMAIN_ID": (50, 0),
    "TEXTURE_PITCH_ALIGNMENT": (51, 32),
    "MAXIMUM_TEXTURECUBEMAP_WIDTH": (52, 32_768),
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH": (53, 32_768),
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS": (54, 2_046),
    "MAXIMUM_SURFACE1D_WIDTH": (55, 32_768),
    "MAXIMUM_SURFACE2D_WIDTH": (56, 131_072),
    "MAXIMUM_SURFACE2D_HEIGHT": (57, 65_536),
    "MAXIMUM_SURFACE3D_WIDTH": (58, 16_384),
    "MAXIMUM_SURFACE3D_HEIGHT": (59, 16_384),
    "MAXIMUM_SURFACE3D_DEPTH": (60, 16_384),
    "MAXIMUM_SURFACE1D_LAYERED_WIDTH": (61, 32_768),
    "MAXIMUM_SURFACE1D_LAYERED_LAYERS": (62, 2_048),
    "MAXIMUM_SURFACE2D_LAYERED_WIDTH": (63, 32_768),
    "MAXIMUM_SURFACE2D_LAYERED_HEIGHT": (64, 32_768),
    "MAXIMUM_SURFACE2D_LAYERED_LAYERS": (65, 2_048),
    "MAXIMUM_SURFACECUBEMAP_WIDTH": (66, 32_768),
    "MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH": (67, 32_768),
    "MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS": (68, 2_046),
    "MAXIMUM_TEXTURE1D_LINEAR_WIDTH": (69, 1 << 28),
    "MAXIMUM_TEXTURE2D_LINEAR_WIDTH": (70, 131_072),
    "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT": (71, 65_000),
    "MAXIMUM_TEXTURE2D_LINEAR_PITCH": (72, 2_097_120),
    "MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH": (73, 32_768),
    "MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT": (74, 32_768),
    "COMPUTE_CAPABILITY_MAJOR": (75, COMPUTE_CAPABILITY[0]),
    "COMPUTE_CAPABILITY_MINOR": (76, COMPUTE_CAPABILITY[1]),
    "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH": (77, 32_768),
    "STREAM_PRIORITIES_SUPPORTED": (78, 1),
    "GLOBAL_L1_CACHE_SUPPORTED": (79, 1),
    "LOCAL_L1_CACHE_SUPPORTED": (80, 1),
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": (81, 228 << 10),
    "MAX_REGISTERS_PER_MULTIPROCESSOR": (82, 65_536),
    "MANAGED_MEMORY": (83, 1),
    "MULTI_GPU_BOARD": (84, 0),
    "MULTI_GPU_BOARD_GROUP_ID": (85, 0),
    "HOST_NATIVE_ATOMIC_SUPPORTED": (86, 0),
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": (87, 2),
    "PAGEABLE_MEMORY_ACCESS": (88, 0),
    "CONCURRENT_MANAGED_ACCESS": (89, 1),
    "COMPUTE_PREEMPTION_SUPPORTED": (90, 1),
    "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM": (91, 0),
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (97, LIMITS.optin_shared_bytes),
    "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES": (100, 0),
    "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST": (101, 0),
    "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": (103, 0),
    "HANDLE_TYPE_WIN32_HANDLE_SUPPORTED": (104, 0),
    "HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED": (105, 0),
    "MAX_BLOCKS_PER_MULTIPROCESSOR": (106, 32),
    "GENERIC_COMPRESSION_SUPPORTED": (107, 0),
    "MAX_PERSISTING_L2_CACHE_SIZE": (108, 0),
    "RESERVED_SHARED_MEMORY_PER_BLOCK": (111, 1_024),
    "READ_ONLY_HOST_REGISTER_SUPPORTED": (113, 0),
    "MEMORY_POOLS_SUPPORTED": (115, 1),
}
"""Number and value of each attribute, by PyCUDA's name."""

VALUE_BY_NUMBER = dict(DEVICE_ATTRIBUTES.values())
"""Value of each attribute by number, including changes by `emulate_gpu_attributes`."""

_emulated_names: list[str] = []


def emulate_gpu_attributes(gpu: GpuDescription) -> None:
    """Make the device report a GPU's attributes, and hold as many blocks; launches still run in the simulator."""
    RESIDENCY.multiprocessors, RESIDENCY.threads, RESIDENCY.blocks = gpu.multiprocessors, WARP * gpu.warps, gpu.blocks
    RESIDENCY.shared_bytes, RESIDENCY.reserved_bytes = gpu.shared_bytes, gpu.shared_reserved_bytes
    major, _, minor = gpu.capability.partition(".")
    values = {
        "MULTIPROCESSOR_COUNT": gpu.multiprocessors,
        "CLOCK_RATE": round(1e6 * gpu.clock_ghz),
        "L2_CACHE_SIZE": gpu.last_cache_bytes,
        "MAX_THREADS_PER_MULTIPROCESSOR": WARP * gpu.warps,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": gpu.blocks,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": gpu.registers,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": gpu.shared_bytes,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": gpu.shared_reserved_bytes,
        "COMPUTE_CAPABILITY_MAJOR": int(major),
        "COMPUTE_CAPABILITY_MINOR": int(minor or 0),
    }
    VALUE_BY_NUMBER.update({DEVICE_ATTRIBUTES[name][0]: value for name, value in values.items()})
    _emulated_names[:] = [gpu.name]


def device_name() -> str:
    """Return the device's name."""
    simulator = f"Lockstep's simulator of an {_emulated_names[0]}" if _emulated_names else "Lockstep's simulator"
    return f"{simulator} on {processor_name()}"
