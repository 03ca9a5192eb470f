"""Machine code in a process whose address space is busy, as CUDA's reservations and large arrays leave it."""

from __future__ import annotations

import subprocess
import sys

from tests import needs

_BUSY = '''
import ctypes

from gpu.simulator.compiled import native_code

# As many constants as fill several pages, which lie apart from the code that reads them.
constants = ", ".join(f"double {each}.5" for each in range(3000))
code = native_code.compile_text(f"""
@table = private constant [3000 x double] [{constants}]
define void @kernel(ptr %out, ptr %0, ptr %1, i64 %at, i64 %2, i32 %3, i32 %4, i32 %5) {{
  %from = getelementptr [3000 x double], ptr @table, i64 0, i64 %at
  %value = load double, ptr %from
  store double %value, ptr %out
  ret void
}}
""")

system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE, PRIVATE_WITHOUT_SWAP = 4096, 0x4022


def reserve(size):
    return system.mmap(None, size, 0, PRIVATE_WITHOUT_SWAP, -1, 0)


# High up only single pages stay free, room for more is 64 GB below them.
pages = reserve(200 * PAGE)
low = reserve(64 << 30)
for size in (1 << 30, 1 << 24, 1 << 20, 1 << 16, 1 << 13, PAGE):
    while (at := reserve(size)) > low:
        pass
    system.munmap(at, size)
for page in range(0, 200, 2):
    system.munmap(pages + page * PAGE, PAGE)

kernel, out = native_code.NativeCode(code), ctypes.c_double()
kernel.run(ctypes.addressof(out), None, None, 2718, 0, 0, 0, 0)
print(out.value)
'''


@needs.linux
def test_code_is_linked_where_only_far_pieces_of_memory_are_free() -> None:
    done = subprocess.run([sys.executable, "-c", _BUSY], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "2718.5\n"), done.stderr[-2000:]
