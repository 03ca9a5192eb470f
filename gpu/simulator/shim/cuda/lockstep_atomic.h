// cuda::atomic and cuda::atomic_ref: in device code by the simulator's accesses with a scope and a memory order, in host
// code by the compiler's.
#pragma once
#include <cuda/lockstep_scopes.h>

namespace cuda {

template <size_t Size>
struct lockstep_word;
template <>
struct lockstep_word<1> {
    using type = unsigned char;
};
template <>
struct lockstep_word<2> {
    using type = unsigned short;
};
template <>
struct lockstep_word<4> {
    using type = unsigned int;
    using integer = int;
};
template <>
struct lockstep_word<8> {
    using type = unsigned long long;
    using integer = long long;
};

// A value as the bits that memory has of it.
template <typename LockstepT>
struct lockstep_bits {
    static_assert(sizeof(LockstepT) <= 8 && (sizeof(LockstepT) & (sizeof(LockstepT) - 1)) == 0,
                  "the simulator has atomics of 1, 2, 4 and 8 bytes");
    using Word = typename lockstep_word<sizeof(LockstepT)>::type;
    union Both {
        Word bits;
        LockstepT value;
        LOCKSTEP_API Both(Word bits) : bits(bits) {}
    };
    LOCKSTEP_API static Word of(LockstepT value) {
        Both both((Word)0);
        both.value = value;
        return both.bits;
    }
    LOCKSTEP_API static LockstepT value(Word bits) { return Both(bits).value; }
};

#ifdef __CUDA_ARCH__
// Strong accesses of block, device or system scope with a memory order.
#define LOCKSTEP_ORDERED_ATOMIC(name)                                                                                  \
    template <typename Word>                                                                                           \
    __device__ Word __lockstep_##name(Word *place, Word value, memory_order order);                                    \
    template <typename Word>                                                                                           \
    __device__ Word __lockstep_##name##_block(Word *place, Word value, memory_order order);                            \
    template <typename Word>                                                                                           \
    __device__ Word __lockstep_##name##_system(Word *place, Word value, memory_order order);
LOCKSTEP_ORDERED_ATOMIC(atomicAdd)
LOCKSTEP_ORDERED_ATOMIC(atomicAnd)
LOCKSTEP_ORDERED_ATOMIC(atomicOr)
LOCKSTEP_ORDERED_ATOMIC(atomicXor)
LOCKSTEP_ORDERED_ATOMIC(atomicMin)
LOCKSTEP_ORDERED_ATOMIC(atomicMax)
LOCKSTEP_ORDERED_ATOMIC(atomicExch)
#undef LOCKSTEP_ORDERED_ATOMIC
#define LOCKSTEP_ORDERED_ACCESSES(suffix)                                                                              \
    template <typename Word>                                                                                           \
    __device__ Word __lockstep_atomicCAS##suffix(Word *place, Word expected, Word desired, memory_order order);        \
    template <typename Word>                                                                                           \
    __device__ Word __lockstep_load##suffix(const Word *place, memory_order order);                                    \
    template <typename Word>                                                                                           \
    __device__ void __lockstep_store##suffix(Word *place, Word value, memory_order order);
LOCKSTEP_ORDERED_ACCESSES()
LOCKSTEP_ORDERED_ACCESSES(_block)
LOCKSTEP_ORDERED_ACCESSES(_system)
#undef LOCKSTEP_ORDERED_ACCESSES
#endif

template <thread_scope Scope>
LOCKSTEP_API inline void lockstep_fence(memory_order order) {
#ifdef __CUDA_ARCH__
    if (Scope == thread_scope_thread || order == memory_order_relaxed) return;
    if (order == memory_order_release) {
        if constexpr (Scope == thread_scope_block) {
            asm volatile("fence.release.cta;" ::: "memory");
        } else if constexpr (Scope == thread_scope_device) {
            asm volatile("fence.release.gpu;" ::: "memory");
        } else {
            asm volatile("fence.release.sys;" ::: "memory");
        }
    } else if (order < memory_order_release) {
        if constexpr (Scope == thread_scope_block) {
            asm volatile("fence.acquire.cta;" ::: "memory");
        } else if constexpr (Scope == thread_scope_device) {
            asm volatile("fence.acquire.gpu;" ::: "memory");
        } else {
            asm volatile("fence.acquire.sys;" ::: "memory");
        }
    } else if (order == memory_order_acq_rel) {
        if constexpr (Scope == thread_scope_block) {
            asm volatile("fence.acq_rel.cta;" ::: "memory");
        } else if constexpr (Scope == thread_scope_device) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory");
        } else {
            asm volatile("fence.acq_rel.sys;" ::: "memory");
        }
    } else if constexpr (Scope == thread_scope_block) {
        __threadfence_block();
    } else if constexpr (Scope == thread_scope_device) {
        __threadfence();
    } else {
        __threadfence_system();
    }
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
// As in PTX, a sequentially consistent access is a fence before one that acquires and releases.
template <thread_scope Scope>
LOCKSTEP_API inline void lockstep_before(memory_order order) {
    if (order == memory_order_seq_cst) lockstep_fence<Scope>(order);
}
// As in PTX, a compare-and-swap has one order for success and failure.
LOCKSTEP_API inline memory_order lockstep_stronger(memory_order order, memory_order failure) {
    if (order == memory_order_release && failure != memory_order_relaxed) return memory_order_acq_rel;
    return order < failure ? failure : order;
}

// The operation of the scope of a block, of the system, or of the device.
#define LOCKSTEP_SCOPED(name, ...)                                                                                     \
    (Scope == thread_scope_block    ? __lockstep_##name##_block(__VA_ARGS__)                                           \
     : Scope == thread_scope_system ? __lockstep_##name##_system(__VA_ARGS__)                                          \
                                    : __lockstep_##name(__VA_ARGS__))

// Returns what was there, which is `expected` where it was replaced.
template <thread_scope Scope, typename Word>
LOCKSTEP_API inline Word lockstep_compare_exchange(Word *place, Word expected, Word desired, memory_order order) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Word) == 1) {
        // The word that the byte is in; another byte of it may change meanwhile.
        unsigned int byte = (size_t)place & 3, shift = 8 * byte;
        unsigned int *word = (unsigned int *)(place - byte), mask = 0xffu << shift;
        unsigned int known = LOCKSTEP_SCOPED(load, word, order);
        while ((known & mask) >> shift == expected) {
            unsigned int changed = (known & ~mask) | (unsigned int)desired << shift;
            unsigned int found = LOCKSTEP_SCOPED(atomicCAS, word, known, changed, order);
            if (found == known) break;
            known = found;
        }
        return (Word)((known & mask) >> shift);
    } else {
        return LOCKSTEP_SCOPED(atomicCAS, place, expected, desired, order);
    }
#else
    __atomic_compare_exchange_n(place, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
#endif
}
#ifdef __CUDA_ARCH__
// Threads of a block may wait for what others of it do, so that each warp goes on by itself.
__device__ void __lockstep_warps_in_turn();
#endif
template <thread_scope Scope, typename LockstepT>
LOCKSTEP_API inline LockstepT lockstep_load(const LockstepT *place, memory_order order) {
    using Bits = lockstep_bits<LockstepT>;
#ifdef __CUDA_ARCH__
    if constexpr (Scope == thread_scope_block) __lockstep_warps_in_turn();
    return Bits::value(LOCKSTEP_SCOPED(load, (const typename Bits::Word *)place, order));
#else
    return Bits::value(*(const volatile typename Bits::Word *)place);
#endif
}
// The operations by their signs: < and > have the lesser and the greater, = has the new value.
template <char Op, typename LockstepT, typename LockstepU>
LOCKSTEP_API inline LockstepT lockstep_combined(LockstepT old, LockstepU value) {
    if constexpr (Op == '+') {
        return (LockstepT)(old + value);
    } else if constexpr (Op == '&') {
        return (LockstepT)(old & value);
    } else if constexpr (Op == '|') {
        return (LockstepT)(old | value);
    } else if constexpr (Op == '^') {
        return (LockstepT)(old ^ value);
    } else if constexpr (Op == '<') {
        return value < old ? value : old;
    } else if constexpr (Op == '>') {
        return old < value ? value : old;
    } else {
        return value;
    }
}
// What CUDA has no atomic for, and all in host code: tried until nobody else has changed it.
template <char Op, thread_scope Scope, typename LockstepT, typename LockstepU>
LOCKSTEP_API inline LockstepT lockstep_tried(LockstepT *place, LockstepU value, memory_order order) {
    using Bits = lockstep_bits<LockstepT>;
    using Word = typename Bits::Word;
    Word known = 0;
    while (true) {
        Word wanted = Bits::of(lockstep_combined<Op>(Bits::value(known), value));
        Word found = lockstep_compare_exchange<Scope>((Word *)place, known, wanted, order);
        if (found == known) return Bits::value(known);
        known = found;
    }
}
#ifdef __CUDA_ARCH__
template <char Op, thread_scope Scope, typename Word>
__device__ inline Word lockstep_counted(Word *place, Word value, memory_order order) {
    if constexpr (Op == '+') {
        return LOCKSTEP_SCOPED(atomicAdd, place, value, order);
    } else if constexpr (Op == '&') {
        return LOCKSTEP_SCOPED(atomicAnd, place, value, order);
    } else if constexpr (Op == '|') {
        return LOCKSTEP_SCOPED(atomicOr, place, value, order);
    } else if constexpr (Op == '^') {
        return LOCKSTEP_SCOPED(atomicXor, place, value, order);
    } else if constexpr (Op == '<') {
        return LOCKSTEP_SCOPED(atomicMin, place, value, order);
    } else {
        return LOCKSTEP_SCOPED(atomicMax, place, value, order);
    }
}
template <char Op, thread_scope Scope, typename LockstepT, typename LockstepU>
__device__ inline LockstepT lockstep_fetch(LockstepT *place, LockstepU value, memory_order order) {
    using Bits = lockstep_bits<LockstepT>;
    using Word = typename Bits::Word;
    if constexpr (Op == '=' && sizeof(LockstepT) >= 4) {
        return Bits::value(LOCKSTEP_SCOPED(atomicExch, (Word *)place, Bits::of(value), order));
    } else if constexpr (Op == '+' && (::std::is_same_v<LockstepT, float> || ::std::is_same_v<LockstepT, double>)) {
        return LOCKSTEP_SCOPED(atomicAdd, place, value, order);
    } else if constexpr (Op == '+' && ::std::is_pointer_v<LockstepT>) {
        return (LockstepT)LOCKSTEP_SCOPED(atomicAdd, (Word *)place, (Word)(value * (ptrdiff_t)sizeof(**place)), order);
    } else if constexpr (::std::is_integral_v<LockstepT> && Op != '=' && sizeof(LockstepT) >= 4) {
        if constexpr ((Op == '<' || Op == '>') && ::std::is_signed_v<LockstepT>) {
            using Integer = typename lockstep_word<sizeof(LockstepT)>::integer;
            return (LockstepT)lockstep_counted<Op, Scope>((Integer *)place, (Integer)value, order);
        } else {
            return (LockstepT)lockstep_counted<Op, Scope>((Word *)place, (Word)value, order);
        }
    } else {
        return lockstep_tried<Op, Scope>(place, value, order);
    }
}
// A store is not an exchange: it ends the release sequence at its place.
template <thread_scope Scope, typename LockstepT>
__device__ inline void lockstep_store(LockstepT *place, LockstepT value, memory_order order) {
    using Bits = lockstep_bits<LockstepT>;
    LOCKSTEP_SCOPED(store, (typename Bits::Word *)place, Bits::of(value), order);
}
#else
template <char Op, thread_scope Scope, typename LockstepT, typename LockstepU>
inline LockstepT lockstep_fetch(LockstepT *place, LockstepU value, memory_order order) {
    return lockstep_tried<Op, Scope>(place, value, order);
}
template <thread_scope Scope, typename LockstepT>
inline void lockstep_store(LockstepT *place, LockstepT value, memory_order order) {
    lockstep_tried<'=', Scope>(place, value, order);
}
#endif

template <typename LockstepT>
struct lockstep_difference {
    using type = LockstepT;
};
template <typename LockstepT>
struct lockstep_difference<LockstepT *> {
    using type = ptrdiff_t;
};

// What both have; `Own` says by `place()` where the value is.
template <typename Own, typename LockstepT, thread_scope Scope>
class lockstep_atomic {
    LOCKSTEP_API LockstepT *at() const { return ((const Own *)this)->place(); }

  public:
    using value_type = LockstepT;
    using difference_type = typename lockstep_difference<LockstepT>::type;
    static constexpr bool is_always_lock_free = true;
    LOCKSTEP_API bool is_lock_free() const { return true; }

    LOCKSTEP_API LockstepT load(memory_order order = memory_order_seq_cst) const {
        lockstep_before<Scope>(order);
        return lockstep_load<Scope>(at(), order);
    }
    LOCKSTEP_API void store(LockstepT value, memory_order order = memory_order_seq_cst) const {
        lockstep_before<Scope>(order);
        lockstep_store<Scope>(at(), value, order);
    }
    LOCKSTEP_API bool compare_exchange_strong(LockstepT &expected, LockstepT desired, memory_order order,
                                              memory_order failure) const {
        using Bits = lockstep_bits<LockstepT>;
        order = lockstep_stronger(order, failure);
        auto wanted = Bits::of(expected);
        lockstep_before<Scope>(order);
        auto found = lockstep_compare_exchange<Scope>((typename Bits::Word *)at(), wanted, Bits::of(desired), order);
        if (found == wanted) return true;
        expected = Bits::value(found);
        return false;
    }
    LOCKSTEP_API bool compare_exchange_strong(LockstepT &expected, LockstepT desired,
                                              memory_order order = memory_order_seq_cst) const {
        return compare_exchange_strong(expected, desired, order, order);
    }
    LOCKSTEP_API bool compare_exchange_weak(LockstepT &expected, LockstepT desired, memory_order order,
                                            memory_order failure) const {
        return compare_exchange_strong(expected, desired, order, failure);
    }
    LOCKSTEP_API bool compare_exchange_weak(LockstepT &expected, LockstepT desired,
                                            memory_order order = memory_order_seq_cst) const {
        return compare_exchange_strong(expected, desired, order, order);
    }
#define LOCKSTEP_ATOMIC_MEMBER(name, LockstepU, ...)                                                                   \
    LOCKSTEP_API LockstepT name(LockstepU value, memory_order order = memory_order_seq_cst) const {                    \
        lockstep_before<Scope>(order);                                                                                 \
        return __VA_ARGS__;                                                                                            \
    }
    LOCKSTEP_ATOMIC_MEMBER(exchange, LockstepT, lockstep_fetch<'=', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_add, difference_type, lockstep_fetch<'+', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_sub, difference_type, lockstep_fetch<'+', Scope>(at(), (difference_type)-value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_and, LockstepT, lockstep_fetch<'&', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_or, LockstepT, lockstep_fetch<'|', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_xor, LockstepT, lockstep_fetch<'^', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_min, LockstepT, lockstep_fetch<'<', Scope>(at(), value, order))
    LOCKSTEP_ATOMIC_MEMBER(fetch_max, LockstepT, lockstep_fetch<'>', Scope>(at(), value, order))
#undef LOCKSTEP_ATOMIC_MEMBER

    LOCKSTEP_API operator LockstepT() const { return load(); }
    LOCKSTEP_API LockstepT operator++() const { return fetch_add(1) + 1; }
    LOCKSTEP_API LockstepT operator--() const { return fetch_sub(1) - 1; }
    LOCKSTEP_API LockstepT operator++(int) const { return fetch_add(1); }
    LOCKSTEP_API LockstepT operator--(int) const { return fetch_sub(1); }
    LOCKSTEP_API LockstepT operator+=(difference_type value) const { return fetch_add(value) + value; }
    LOCKSTEP_API LockstepT operator-=(difference_type value) const { return fetch_sub(value) - value; }
    LOCKSTEP_API LockstepT operator&=(LockstepT value) const { return fetch_and(value) & value; }
    LOCKSTEP_API LockstepT operator|=(LockstepT value) const { return fetch_or(value) | value; }
    LOCKSTEP_API LockstepT operator^=(LockstepT value) const { return fetch_xor(value) ^ value; }

    LOCKSTEP_API void wait(LockstepT old, memory_order order = memory_order_seq_cst) const {
#ifdef __CUDA_ARCH__
        __lockstep_warps_in_turn();
#endif
        while (lockstep_bits<LockstepT>::of(load(order)) == lockstep_bits<LockstepT>::of(old)) {
        }
    }
    LOCKSTEP_API void notify_one() const {}
    LOCKSTEP_API void notify_all() const {}
};

template <typename LockstepT, thread_scope Scope = thread_scope_system>
class atomic : public lockstep_atomic<atomic<LockstepT, Scope>, LockstepT, Scope> {
    alignas(sizeof(LockstepT)) mutable LockstepT held;

  public:
    atomic() = default;
    LOCKSTEP_API constexpr atomic(LockstepT value) : held(value) {}
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
    LOCKSTEP_API LockstepT *place() const { return &held; }
    LOCKSTEP_API LockstepT operator=(LockstepT value) {
        this->store(value);
        return value;
    }
};

template <typename LockstepT, thread_scope Scope = thread_scope_system>
class atomic_ref : public lockstep_atomic<atomic_ref<LockstepT, Scope>, LockstepT, Scope> {
    LockstepT *referred;

  public:
    static constexpr size_t required_alignment = sizeof(LockstepT);
    LOCKSTEP_API explicit atomic_ref(LockstepT &object) : referred(&object) {}
    atomic_ref(const atomic_ref &) = default;
    atomic_ref &operator=(const atomic_ref &) = delete;
    LOCKSTEP_API LockstepT *place() const { return referred; }
    LOCKSTEP_API LockstepT operator=(LockstepT value) const {
        this->store(value);
        return value;
    }
};

LOCKSTEP_API inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
    if (scope == thread_scope_block) {
        lockstep_fence<thread_scope_block>(order);
    } else if (scope == thread_scope_device) {
        lockstep_fence<thread_scope_device>(order);
    } else if (scope == thread_scope_system) {
        lockstep_fence<thread_scope_system>(order);
    }
}
LOCKSTEP_API inline void atomic_signal_fence(memory_order) {}

template <thread_scope Scope = thread_scope_system>
class lockstep_flag {
    atomic<int, Scope> held;

  public:
    lockstep_flag() = default;
    LOCKSTEP_API constexpr lockstep_flag(bool set) : held(set) {}
    LOCKSTEP_API bool test(memory_order order = memory_order_seq_cst) const { return held.load(order) != 0; }
    LOCKSTEP_API bool test_and_set(memory_order order = memory_order_seq_cst) { return held.exchange(1, order) != 0; }
    LOCKSTEP_API void clear(memory_order order = memory_order_seq_cst) { held.store(0, order); }
};
#ifndef ATOMIC_FLAG_INIT
#define ATOMIC_FLAG_INIT {0}
#endif

namespace std {
template <typename LockstepT>
using atomic = ::cuda::atomic<LockstepT, thread_scope_system>;
template <typename LockstepT>
using atomic_ref = ::cuda::atomic_ref<LockstepT, thread_scope_system>;
using atomic_flag = lockstep_flag<>;
using atomic_bool = atomic<bool>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<unsigned int>;
using atomic_long = atomic<long>;
using atomic_ulong = atomic<unsigned long>;
using atomic_llong = atomic<long long>;
using atomic_ullong = atomic<unsigned long long>;
using ::cuda::atomic_signal_fence;
using ::cuda::atomic_thread_fence;
}  // namespace std
}  // namespace cuda
