// Cooperative groups, as far as thread blocks, tiles of a warp and coalesced threads, in terms of CUDA's intrinsics.
#pragma once
#include "lockstep/aligned_size.h"

namespace cooperative_groups {

// One of the four shuffles of a warp, by its number: of a struct word by word.
template <int Kind, typename LockstepT>
__device__ inline LockstepT shuffle(unsigned int lanes, LockstepT value, int by, int width = 32) {
    if constexpr (__is_class(LockstepT)) {
        static_assert(sizeof(LockstepT) % 4 == 0, "a struct that is shuffled has words of 4 bytes");
        unsigned int *words = (unsigned int *)&value;
        for (int i = 0; i < sizeof(LockstepT) / 4; ++i) words[i] = shuffle<Kind>(lanes, words[i], by, width);
        return value;
    } else if constexpr (Kind == 0) {
        return __shfl_sync(lanes, value, by, width);
    } else if constexpr (Kind == 1) {
        return __shfl_up_sync(lanes, value, by, width);
    } else if constexpr (Kind == 2) {
        return __shfl_down_sync(lanes, value, by, width);
    } else {
        return __shfl_xor_sync(lanes, value, by, width);
    }
}

// Any group: a whole block, which has no lanes, or lanes of a warp.
struct thread_group {
    unsigned int threads, rank, lanes;
    __device__ unsigned int size() const { return threads; }
    __device__ unsigned int num_threads() const { return threads; }
    __device__ unsigned int thread_rank() const { return rank; }
    __device__ bool is_valid() const { return true; }
    __device__ void sync() const {
        if (lanes == 0) {
            __syncthreads();
        } else {
            __syncwarp(lanes);
        }
    }
};

struct thread_block {
    __device__ static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ static unsigned int num_threads() { return size(); }
    __device__ static unsigned int thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    __device__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __device__ static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    __device__ static dim3 dim_threads() { return group_dim(); }
    __device__ static void sync() { __syncthreads(); }
    // A barrier in two parts waits at the second one.
    struct arrival_token {};
    __device__ static arrival_token barrier_arrive() { return arrival_token(); }
    __device__ static void barrier_wait() { __syncthreads(); }
    __device__ static void barrier_wait(arrival_token &&) { __syncthreads(); }
    __device__ operator thread_group() const { return thread_group{size(), thread_rank(), 0}; }
};
__device__ inline thread_block this_thread_block() { return thread_block(); }

// One thread alone.
__device__ inline thread_group this_thread() {
    return thread_group{1, 0, 1u << ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32};
}

template <unsigned int MaxBlockSize = 1024>
struct block_tile_memory {
    char unused;
};
template <unsigned int MaxBlockSize>
__device__ inline thread_block this_thread_block(block_tile_memory<MaxBlockSize> &) {
    return thread_block();
}

__device__ void __lockstep_grid_sync();
struct grid_group {
    __device__ static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    __device__ static unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    __device__ static unsigned long long size() { return num_blocks() * thread_block::size(); }
    __device__ static unsigned long long num_threads() { return size(); }
    __device__ static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    __device__ static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    __device__ static dim3 dim_blocks() { return group_dim(); }
    __device__ static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ static bool is_valid() { return true; }
    __device__ static void sync() { __lockstep_grid_sync(); }
};
__device__ inline grid_group this_grid() { return grid_group(); }

struct cluster_group {
    struct arrival_token {};
    __device__ static dim3 dim_blocks() {
        return dim3(__lockstep_clusterDim.x, __lockstep_clusterDim.y, __lockstep_clusterDim.z);
    }
    __device__ static dim3 dim_threads() {
        return dim3(__lockstep_clusterDim.x * blockDim.x, __lockstep_clusterDim.y * blockDim.y,
                    __lockstep_clusterDim.z * blockDim.z);
    }
    __device__ static dim3 block_index() {
        return dim3(__lockstep_ptx_cluster_ctaid_x(), __lockstep_ptx_cluster_ctaid_y(),
                    __lockstep_ptx_cluster_ctaid_z());
    }
    __device__ static dim3 thread_index() {
        return dim3(__lockstep_ptx_cluster_ctaid_x() * blockDim.x + threadIdx.x,
                    __lockstep_ptx_cluster_ctaid_y() * blockDim.y + threadIdx.y,
                    __lockstep_ptx_cluster_ctaid_z() * blockDim.z + threadIdx.z);
    }
    __device__ static unsigned int num_blocks() { return __lockstep_ptx_cluster_nctarank(); }
    __device__ static unsigned int block_rank() { return __lockstep_ptx_cluster_ctarank(); }
    __device__ static unsigned int num_threads() { return num_blocks() * thread_block::size(); }
    __device__ static unsigned int size() { return num_threads(); }
    __device__ static unsigned int thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    __device__ static void sync() {
        __lockstep_cluster_arrive();
        __lockstep_cluster_wait();
    }
    __device__ static arrival_token barrier_arrive() {
        __lockstep_cluster_arrive();
        return arrival_token();
    }
    __device__ static void barrier_wait() { __lockstep_cluster_wait(); }
    __device__ static void barrier_wait(arrival_token &&) { __lockstep_cluster_wait(); }
    template <typename LockstepT>
    __device__ static LockstepT *map_shared_rank(LockstepT *pointer, int rank) {
        return (LockstepT *)__lockstep_cluster_map((void *)pointer, (unsigned int)rank);
    }
};
__device__ inline cluster_group this_cluster() { return cluster_group(); }

template <unsigned int Size, typename Parent = void>
struct thread_block_tile;
// What a tile is counted in: a tile that it is a part of, or else the block.
template <typename Parent>
struct __lockstep_around {
    typedef thread_block type;
};
template <unsigned int Size, typename Parent>
struct __lockstep_around<thread_block_tile<Size, Parent>> {
    typedef thread_block_tile<Size, Parent> type;
};

template <unsigned int Size, typename Parent>
struct thread_block_tile {
    typedef typename __lockstep_around<Parent>::type Around;
    // What it is a part of may be left open.
    template <typename Other>
    __device__ operator thread_block_tile<Size, Other>() const {
        return thread_block_tile<Size, Other>();
    }
    __device__ static unsigned int size() { return Size; }
    __device__ static unsigned int num_threads() { return Size; }
    __device__ static unsigned int thread_rank() { return thread_block::thread_rank() % Size; }
    __device__ static unsigned int meta_group_rank() { return Around::thread_rank() / Size; }
    __device__ static unsigned int meta_group_size() { return (Around::size() + Size - 1) / Size; }
    __device__ static unsigned int first_lane() { return thread_block::thread_rank() % 32 / Size * Size; }
    __device__ static unsigned int mask() { return (Size == 32 ? 0xffffffffu : (1u << Size) - 1) << first_lane(); }
    __device__ static void sync() { __syncwarp(mask()); }
    __device__ operator thread_group() const { return thread_group{Size, thread_rank(), mask()}; }
    template <typename LockstepT>
    __device__ LockstepT shfl(LockstepT value, int lane) const {
        return shuffle<0>(mask(), value, lane, Size);
    }
    template <typename LockstepT>
    __device__ LockstepT shfl_up(LockstepT value, unsigned int delta) const {
        return shuffle<1>(mask(), value, delta, Size);
    }
    template <typename LockstepT>
    __device__ LockstepT shfl_down(LockstepT value, unsigned int delta) const {
        return shuffle<2>(mask(), value, delta, Size);
    }
    template <typename LockstepT>
    __device__ LockstepT shfl_xor(LockstepT value, unsigned int lanes) const {
        return shuffle<3>(mask(), value, lanes, Size);
    }
    __device__ unsigned int ballot(int predicate) const {
        return (__ballot_sync(mask(), predicate) & mask()) >> first_lane();
    }
    __device__ int any(int predicate) const { return __any_sync(mask(), predicate); }
    __device__ int all(int predicate) const { return __all_sync(mask(), predicate); }
    template <typename LockstepT>
    __device__ unsigned int match_any(LockstepT value) const {
        return (__match_any_sync(mask(), value) & mask()) >> first_lane();
    }
};

// A tile of several warps has a barrier of its own, and a word for each of its warps: on a GPU these are in the shared
// memory that every block has reserved.
template <unsigned int Size>
struct lockstep_tile_memory {
    unsigned long long barriers[1024 / Size], words[32];
};
template <unsigned int Size>
__device__ inline lockstep_tile_memory<Size> *lockstep_memory_of_tiles() {
    __shared__ lockstep_tile_memory<Size> held;
    return &held;
}
template <unsigned int Size, typename Parent>
struct lockstep_tile_of_warps {
    typedef typename __lockstep_around<Parent>::type Around;
    __device__ static unsigned int size() { return Size; }
    __device__ static unsigned int num_threads() { return Size; }
    __device__ static unsigned int thread_rank() { return thread_block::thread_rank() % Size; }
    __device__ static unsigned int meta_group_rank() { return Around::thread_rank() / Size; }
    __device__ static unsigned int meta_group_size() { return Around::size() / Size; }
    __device__ static unsigned int first_warp() { return thread_block::thread_rank() / Size * (Size / 32); }
    __device__ static void sync() {
        auto *barrier = &lockstep_memory_of_tiles<Size>()->barriers[thread_block::thread_rank() / Size];
        unsigned long long phase = __lockstep_phase_arrive(barrier, 1);
        while (!__lockstep_phase_test(barrier, phase)) {
        }
    }
    template <typename LockstepT>
    __device__ LockstepT shfl(LockstepT value, unsigned int rank) const {
        LockstepT *word = word_of<LockstepT>(first_warp());
        if (thread_rank() == rank) *word = value;
        sync();
        LockstepT found = *word;
        sync();
        return found;
    }
    // Each warp's value, those of the tile's warps put together: what every thread gets.
    template <typename LockstepT, typename Operator>
    __device__ LockstepT lockstep_over_warps(LockstepT value, Operator combine) const {
        unsigned int rank = thread_rank(), first = first_warp();
        if (rank % 32 == 0) *word_of<LockstepT>(first + rank / 32) = value;
        sync();
        LockstepT found = *word_of<LockstepT>(first);
        for (unsigned int warp = 1; warp < Size / 32; ++warp) found = combine(found, *word_of<LockstepT>(first + warp));
        sync();
        return found;
    }
    __device__ int any(int predicate) const;
    __device__ int all(int predicate) const;
    // Its barriers are there when all threads of what it is a part of have come here.
    __device__ void lockstep_begin(const Around &around) const {
        assert(thread_block::size() % Size == 0); // a block of tiles of several warps consists of whole ones
        around.sync();
        if (thread_rank() == 0) {
            __lockstep_phase_init(&lockstep_memory_of_tiles<Size>()->barriers[thread_block::thread_rank() / Size],
                                  Size);
        }
        around.sync();
    }

  private:
    template <typename LockstepT>
    __device__ static LockstepT *word_of(unsigned int warp) {
        static_assert(sizeof(LockstepT) <= 8, "what threads of a tile of several warps exchange has at most 8 bytes");
        return (LockstepT *)&lockstep_memory_of_tiles<Size>()->words[warp];
    }
};
#define LOCKSTEP_TILE_OF_WARPS(Size)                                                                                   \
    template <typename Parent>                                                                                         \
    struct thread_block_tile<Size, Parent> : lockstep_tile_of_warps<Size, Parent> {                                    \
        template <typename Other>                                                                                      \
        __device__ operator thread_block_tile<Size, Other>() const {                                                   \
            return thread_block_tile<Size, Other>();                                                                   \
        }                                                                                                              \
    };
LOCKSTEP_TILE_OF_WARPS(64)
LOCKSTEP_TILE_OF_WARPS(128)
LOCKSTEP_TILE_OF_WARPS(256)
LOCKSTEP_TILE_OF_WARPS(512)
#undef LOCKSTEP_TILE_OF_WARPS

template <unsigned int Size, typename Parent>
__device__ inline thread_block_tile<Size, Parent> tiled_partition(const Parent &parent) {
    static_assert(Size <= 512 && (Size & (Size - 1)) == 0, "a tile has a power of two threads, at most 512");
    thread_block_tile<Size, Parent> tile;
    if constexpr (Size > 32) tile.lockstep_begin(parent);
    return tile;
}

__device__ inline thread_group tiled_partition(const thread_group &parent, unsigned int size) {
    assert(size <= 32); // the simulator has no tiles of several warps
    unsigned int first = thread_block::thread_rank() % 32 / size * size;
    unsigned int lanes = (size == 32 ? 0xffffffffu : (1u << size) - 1) << first;
    return thread_group{size, parent.rank % size, lanes};
}

struct coalesced_group {
    unsigned int members;
    __device__ unsigned int lane() const { return thread_block::thread_rank() % 32; }
    __device__ unsigned int size() const { return __popc(members); }
    __device__ unsigned int num_threads() const { return __popc(members); }
    __device__ unsigned int thread_rank() const { return __popc(members & ((1u << lane()) - 1)); }
    __device__ void sync() const { __syncwarp(members); }
    __device__ operator thread_group() const { return thread_group{size(), thread_rank(), members}; }
    // The lane that holds a rank is the one below which so many members lie.
    __device__ int lane_of(unsigned int rank) const {
        unsigned int rest = members;
        for (unsigned int i = 0; i < rank; ++i) rest &= rest - 1;
        return __ffs(rest) - 1;
    }
    template <typename LockstepT>
    __device__ LockstepT shfl(LockstepT value, unsigned int rank) const {
        return shuffle<0>(members, value, lane_of(rank));
    }
    template <typename LockstepT>
    __device__ LockstepT shfl_down(LockstepT value, unsigned int delta) const {
        unsigned int rank = thread_rank() + delta;
        return shuffle<0>(members, value, lane_of(rank < size() ? rank : thread_rank()));
    }
    template <typename LockstepT>
    __device__ LockstepT shfl_up(LockstepT value, unsigned int delta) const {
        return shuffle<0>(members, value, lane_of(thread_rank() >= delta ? thread_rank() - delta : thread_rank()));
    }
    __device__ int any(int predicate) const { return __any_sync(members, predicate); }
    __device__ int all(int predicate) const { return __all_sync(members, predicate); }
    __device__ unsigned int ballot(int predicate) const {
        unsigned int lanes = __ballot_sync(members, predicate) & members, packed = 0;
        for (unsigned int rank = 0; rank < size(); ++rank) packed |= ((lanes >> lane_of(rank)) & 1u) << rank;
        return packed;
    }
};
__device__ inline coalesced_group coalesced_threads() { return coalesced_group{__activemask()}; }

__device__ inline unsigned int lanes_of(const coalesced_group &group) { return group.members; }
template <unsigned int Size, typename Parent>
__device__ inline unsigned int lanes_of(const thread_block_tile<Size, Parent> &) {
    return thread_block_tile<Size, Parent>::mask();
}
// The lanes of a group in parts: those with the same label, or with the same predicate.
template <typename Group, typename Label>
__device__ inline coalesced_group labeled_partition(const Group &group, Label label) {
    return coalesced_group{__match_any_sync(lanes_of(group), label) & lanes_of(group)};
}
template <typename Group>
__device__ inline coalesced_group binary_partition(const Group &group, bool predicate) {
    unsigned int chosen = __ballot_sync(lanes_of(group), predicate) & lanes_of(group);
    return coalesced_group{predicate ? chosen : lanes_of(group) & ~chosen};
}

template <typename Group>
__device__ inline void sync(const Group &group) {
    group.sync();
}

template <typename LockstepT>
struct plus {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return a + b; }
};
template <typename LockstepT>
struct less {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return b < a ? b : a; }
};
template <typename LockstepT>
struct greater {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return a < b ? b : a; }
};
template <typename LockstepT>
struct bit_and {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return a & b; }
};
template <typename LockstepT>
struct bit_or {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return a | b; }
};
template <typename LockstepT>
struct bit_xor {
    __device__ LockstepT operator()(LockstepT a, LockstepT b) const { return a ^ b; }
};
template <unsigned int Size, typename Parent>
__device__ inline int lockstep_tile_of_warps<Size, Parent>::any(int predicate) const {
    return lockstep_over_warps((int)__any_sync(0xffffffffu, predicate), bit_or<int>());
}
template <unsigned int Size, typename Parent>
__device__ inline int lockstep_tile_of_warps<Size, Parent>::all(int predicate) const {
    return lockstep_over_warps((int)__all_sync(0xffffffffu, predicate), bit_and<int>());
}
template <typename Group>
struct lockstep_has_warps {
    static const bool value = false;
};
template <unsigned int Size, typename Parent>
struct lockstep_has_warps<thread_block_tile<Size, Parent>> {
    static const bool value = Size > 32;
};
template <typename Group, typename LockstepT, typename Operator>
__device__ inline LockstepT reduce(const Group &group, LockstepT value, Operator combine) {
    if constexpr (lockstep_has_warps<Group>::value) {
        return group.lockstep_over_warps(reduce(thread_block_tile<32>(), value, combine), combine);
    } else {
        LockstepT result = group.shfl(value, 0);
        for (unsigned int rank = 1; rank < group.size(); ++rank) result = combine(result, group.shfl(value, rank));
        return result;
    }
}
template <typename Group, typename LockstepT, typename Operator = plus<LockstepT>>
__device__ inline LockstepT inclusive_scan(const Group &group, LockstepT value, Operator combine = Operator()) {
    for (unsigned int delta = 1; delta < group.size(); delta *= 2) {
        LockstepT other = group.shfl_up(value, delta);
        if (group.thread_rank() >= delta) value = combine(other, value);
    }
    return value;
}
template <typename Group, typename LockstepT, typename Operator = plus<LockstepT>>
__device__ inline LockstepT exclusive_scan(const Group &group, LockstepT value, Operator combine = Operator()) {
    LockstepT before = group.shfl_up(inclusive_scan(group, value, combine), 1);
    return group.thread_rank() == 0 ? LockstepT() : before;
}

// One thread of a group does it.
template <typename Group, typename Function, typename... Arguments>
__device__ inline void invoke_one(const Group &group, Function &&function, Arguments... arguments) {
    if (group.thread_rank() == 0) function(arguments...);
}

template <typename Group>
__device__ inline unsigned int thread_rank(const Group &group) {
    return group.thread_rank();
}
template <typename Group>
__device__ inline unsigned int group_size(const Group &group) {
    return group.size();
}

// A group's threads start copies in turns, of as many bytes as the alignment has, 4 to 16; what is less, or no whole
// number of these, is copied at once. Each call is a stage that can be waited for.
template <size_t Chunk>
__device__ inline void lockstep_copy_chunks(size_t rank, size_t size, char *to, const char *from, size_t bytes) {
    if constexpr (Chunk >= 4) {
        for (size_t at = rank * Chunk; at < bytes / Chunk * Chunk; at += size * Chunk) {
            __lockstep_async_copy(to + at, from + at, Chunk);
        }
    }
    for (size_t at = (Chunk >= 4 ? bytes / Chunk * Chunk : 0) + rank; at < bytes; at += size) to[at] = from[at];
}
template <typename Group, typename LockstepT, typename LockstepU, typename Size>
__device__ inline void memcpy_async(const Group &group, LockstepT *to, const LockstepU *from, const Size &bytes) {
    constexpr size_t known = cuda::lockstep_alignment_of<Size>::value, own = alignof(LockstepT);
    constexpr size_t chunk = known > own ? known : own;
    lockstep_copy_chunks<(chunk > 16 ? 16 : chunk)>(group.thread_rank(), group.size(), (char *)to, (const char *)from,
                                                    bytes);
    __lockstep_async_commit();
}
template <typename Group, typename LockstepT, typename ToSize, typename FromSize>
__device__ inline void memcpy_async(const Group &group, LockstepT *to, const ToSize &room, const LockstepT *from,
                                    const FromSize &count) {
    memcpy_async(group, to, from, sizeof(LockstepT) * ((size_t)room < (size_t)count ? (size_t)room : (size_t)count));
}
template <typename Group>
__device__ inline void wait(const Group &group) {
    __lockstep_async_wait();
    group.sync();
}
template <unsigned int Stages, typename Group>
__device__ inline void wait_prior(const Group &group) {
    __lockstep_async_wait(Stages);
    group.sync();
}

} // namespace cooperative_groups
