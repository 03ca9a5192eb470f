// Copies that a GPU makes while threads go on; here they are made at once.
#pragma once

LOCKSTEP_API inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0) {
    if (bytes == 16) {
        *(uint4 *)to = zeros == 16 ? uint4() : *(const uint4 *)from;
    } else if (bytes == 8) {
        *(uint2 *)to = zeros == 8 ? uint2() : *(const uint2 *)from;
    } else {
        *(unsigned int *)to = zeros == 4 ? 0u : *(const unsigned int *)from;
    }
}
LOCKSTEP_API inline void __pipeline_commit() {}
LOCKSTEP_API inline void __pipeline_wait_prior(size_t) {}
