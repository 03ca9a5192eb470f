// Copies to shared memory that go on while threads do: their bytes are there when the thread has waited for them.
#pragma once

// Host code only declares them.
LOCKSTEP_API void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0);
LOCKSTEP_API void __pipeline_commit();
LOCKSTEP_API void __pipeline_wait_prior(size_t groups);

#ifdef __CUDA_ARCH__
LOCKSTEP_API inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros) {
    if (zeros == 0) {
        __lockstep_async_copy(to, from, bytes);
    } else {
        __lockstep_async_copy(to, from, bytes, bytes - zeros);
    }
}
LOCKSTEP_API inline void __pipeline_commit() { __lockstep_async_commit(); }
LOCKSTEP_API inline void __pipeline_wait_prior(size_t groups) { __lockstep_async_wait(groups); }
#endif
