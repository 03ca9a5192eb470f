// A block's items into memory, from side by side in each thread, or striped. What is transposed is written in order.
#pragma once
#include <cub/block/block_exchange.cuh>

namespace cub {

enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockStore {
    typedef BlockExchange<T, X, Items, false, Y, Z> Exchange;
    static constexpr bool transposes = Algorithm >= BLOCK_STORE_TRANSPOSE;
    static constexpr bool strides = transposes || Algorithm == BLOCK_STORE_STRIPED;

  public:
    typedef typename Exchange::TempStorage TempStorage;
    LOCKSTEP_COLLECTIVE(BlockStore)

    template <typename Iterator>
    __device__ void Store(Iterator to, T (&values)[Items]) {
        Store(to, values, X * Y * Z * Items);
    }
    template <typename Iterator>
    __device__ void Store(Iterator to, T (&values)[Items], int valid) {
        if (transposes) Exchange(kept).BlockedToStriped(values);
        for (int i = 0; i < Items; ++i) {
            int place = strides ? i * X * Y * Z + rank : rank * Items + i;
            if (place < valid) to[place] = values[i];
        }
    }
};

} // namespace cub
