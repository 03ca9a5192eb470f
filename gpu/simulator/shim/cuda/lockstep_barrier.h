// cuda::barrier of a block: an mbarrier in shared memory.
#pragma once
#include <cooperative_groups.h>
#include <cuda/lockstep_scopes.h>
#include <lockstep/aligned_size.h>

namespace cuda {
struct lockstep_no_completion {};

// With a completion function, which the last thread that arrives calls before the phase ends.
template <thread_scope Scope, typename Completion = lockstep_no_completion>
class barrier {
  public:
    using arrival_token = unsigned long long;
    barrier() = default;
    __device__ barrier(ptrdiff_t count, Completion completion = Completion())
        : completion(completion), expected((int)count), pending((int)count), phase(0) {
        __lockstep_phase_init(&word, 1);
    }
    __device__ arrival_token arrive(ptrdiff_t count = 1) {
        const int token = add(&phase, 0) & 1;
        if (add(&pending, -(int)count) == (int)count) {
            completion();
            add(&pending, add(&expected, 0));
            add(&phase, 1);
            __lockstep_phase_arrive(&word, 1);
        }
        return token;
    }
    __device__ void wait(arrival_token token) {
        while (!__lockstep_phase_test(&word, token)) {
        }
    }
    __device__ void wait_parity(bool parity) { wait((arrival_token)parity); }
    __device__ void arrive_and_wait() { wait(arrive()); }
    __device__ void arrive_and_drop() {
        add(&expected, -1);
        arrive();
    }

  private:
    unsigned long long word;
    Completion completion;
    int expected, pending, phase;

    __device__ static int add(int *place, int value) {
        int old;
        if constexpr (Scope == thread_scope_block) {
            asm volatile("atom.acq_rel.cta.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(place), "r"(value) : "memory");
        } else {
            asm volatile("atom.acq_rel.gpu.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(place), "r"(value) : "memory");
        }
        return old;
    }
};

template <thread_scope Scope>
class barrier<Scope, lockstep_no_completion> {
  public:
    using arrival_token = unsigned long long;
    barrier() = default;
    __device__ barrier(ptrdiff_t count) { __lockstep_phase_init(this, (unsigned int)count); }
    __device__ arrival_token arrive(ptrdiff_t count = 1) { return __lockstep_phase_arrive(this, (unsigned int)count); }
    __device__ void wait(arrival_token token) {
        while (!__lockstep_phase_test(this, token)) {
        }
    }
    __device__ void wait_parity(bool parity) { wait((arrival_token)parity); }
    __device__ bool try_wait(arrival_token token) { return __lockstep_phase_test(this, token); }
    __device__ bool try_wait_parity(bool parity) { return __lockstep_phase_test(this, parity); }
    __device__ void arrive_and_wait() { wait(arrive()); }
    __device__ void arrive_and_drop() { __lockstep_phase_drop(this, 1); }

  private:
    unsigned long long word;
};
template <thread_scope Scope>
__device__ inline void init(barrier<Scope> *object, ptrdiff_t count) {
    __lockstep_phase_init(object, (unsigned int)count);
}
template <thread_scope Scope, typename Completion>
__device__ inline void init(barrier<Scope, Completion> *object, ptrdiff_t count, Completion completion = Completion()) {
    *object = barrier<Scope, Completion>(count, completion);
}

// Copies at whose end a barrier's phase may be over.
template <typename Group, typename LockstepT, typename LockstepU, typename Size, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, LockstepT *to, const LockstepU *from, const Size &bytes,
                                    barrier<Scope> &object) {
    constexpr size_t known = lockstep_alignment_of<Size>::value, own = alignof(LockstepT);
    constexpr size_t chunk = known > own ? known : own;
    cooperative_groups::lockstep_copy_chunks<(chunk > 16 ? 16 : chunk)>(group.thread_rank(), group.size(), (char *)to,
                                                                        (const char *)from, bytes);
    __lockstep_phase_bind(&object, 1);
}
struct lockstep_alone {
    __device__ static unsigned int size() { return 1; }
    __device__ static unsigned int thread_rank() { return 0; }
};
template <typename LockstepT, typename LockstepU, typename Size, thread_scope Scope>
__device__ inline void memcpy_async(LockstepT *to, const LockstepU *from, const Size &bytes, barrier<Scope> &object) {
    memcpy_async(lockstep_alone(), to, from, bytes, object);
}

namespace device {
template <thread_scope Scope>
__device__ inline unsigned long long *barrier_native_handle(barrier<Scope> &object) {
    return (unsigned long long *)&object;
}
template <thread_scope Scope>
__device__ inline void barrier_expect_tx(barrier<Scope> &object, ptrdiff_t bytes) {
    __lockstep_phase_expect(&object, (unsigned int)bytes);
}
template <thread_scope Scope>
__device__ inline unsigned long long barrier_arrive_tx(barrier<Scope> &object, ptrdiff_t count, ptrdiff_t bytes) {
    __lockstep_phase_expect(&object, (unsigned int)bytes);
    return __lockstep_phase_arrive(&object, (unsigned int)count);
}
template <typename LockstepT, size_t Alignment, thread_scope Scope>
__device__ inline void memcpy_async_tx(LockstepT *to, const LockstepT *from, aligned_size_t<Alignment> bytes,
                                       barrier<Scope> &object) {
    static_assert(Alignment >= 16, "memcpy_async_tx copies to and from multiples of 16 bytes");
    __lockstep_bulk_copy(to, from, (unsigned int)bytes.value, &object);
}
} // namespace device
} // namespace cuda
