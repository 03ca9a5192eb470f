// cuda::pipeline: a thread's groups of copies, or a block's stages, each with a barrier that is full and one that is empty.
#pragma once
#include <cuda/lockstep_barrier.h>

namespace cuda {
enum class pipeline_role { producer, consumer };

template <thread_scope Scope, unsigned char Stages>
struct pipeline_shared_state {
    barrier<Scope> full[Stages], empty[Stages];
    int producers;
};

template <thread_scope Scope>
class pipeline {
  public:
    barrier<Scope> *full = nullptr, *empty = nullptr;
    unsigned int stages = 0, head = 0, tail = 0;
    __device__ void producer_acquire() {
        // A stage that nobody has used is empty.
        if constexpr (Scope != thread_scope_thread) empty[head % stages].wait_parity(head / stages % 2 == 0);
    }
    __device__ void producer_commit() {
        if constexpr (Scope == thread_scope_thread) {
            __lockstep_async_commit();
        } else {
            __lockstep_phase_bind(&full[head % stages], 0);
        }
        ++head;
    }
    __device__ void consumer_wait() {
        if constexpr (Scope == thread_scope_thread) {
            ++tail;
            __lockstep_async_wait(head - tail);
        } else {
            full[tail % stages].wait_parity(tail / stages % 2);
        }
    }
    __device__ void consumer_release() {
        if constexpr (Scope != thread_scope_thread) {
            empty[tail % stages].arrive();
            ++tail;
        }
    }
    __device__ bool quit() { return false; }
};
__device__ inline pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <typename Group, thread_scope Scope, unsigned char Stages>
__device__ inline pipeline<Scope> lockstep_make_pipeline(const Group &group,
                                                         pipeline_shared_state<Scope, Stages> *state, int producers,
                                                         int consumers) {
    if (group.thread_rank() == 0) {
        for (unsigned int i = 0; i < Stages; ++i) init(&state->full[i], producers), init(&state->empty[i], consumers);
    }
    group.sync();
    pipeline<Scope> made;
    made.full = state->full, made.empty = state->empty, made.stages = Stages;
    return made;
}
template <typename Group, thread_scope Scope, unsigned char Stages>
__device__ inline pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state) {
    return lockstep_make_pipeline(group, state, (int)group.size(), (int)group.size());
}
template <typename Group, thread_scope Scope, unsigned char Stages>
__device__ inline pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                                size_t producers) {
    return lockstep_make_pipeline(group, state, (int)producers, (int)(group.size() - producers));
}
template <typename Group, thread_scope Scope, unsigned char Stages>
__device__ inline pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                                pipeline_role role) {
    if (group.thread_rank() == 0) state->producers = 0;
    group.sync();
    if (role == pipeline_role::producer) atomicAdd(&state->producers, 1);
    group.sync();
    return make_pipeline(group, state, (size_t)state->producers);
}
template <unsigned char Prior>
__device__ inline void pipeline_consumer_wait_prior(pipeline<thread_scope_thread> &) {
    __lockstep_async_wait(Prior);
}

template <typename Group, typename LockstepT, typename LockstepU, typename Size, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, LockstepT *to, const LockstepU *from, const Size &bytes,
                                    pipeline<Scope> &) {
    constexpr size_t known = lockstep_alignment_of<Size>::value, own = alignof(LockstepT);
    constexpr size_t chunk = known > own ? known : own;
    cooperative_groups::lockstep_copy_chunks<(chunk > 16 ? 16 : chunk)>(group.thread_rank(), group.size(), (char *)to,
                                                                        (const char *)from, bytes);
}
template <typename LockstepT, typename LockstepU, typename Size, thread_scope Scope>
__device__ inline void memcpy_async(LockstepT *to, const LockstepU *from, const Size &bytes, pipeline<Scope> &stage) {
    memcpy_async(lockstep_alone(), to, from, bytes, stage);
}
}  // namespace cuda
