// A block's items out of memory, side by side in each thread, or striped. What is transposed is read in order first.
#pragma once
#include <cub/block/block_exchange.cuh>

namespace cub {

enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockLoad {
    typedef BlockExchange<T, X, Items, false, Y, Z> Exchange;
    static constexpr bool transposes = Algorithm >= BLOCK_LOAD_TRANSPOSE;
    static constexpr bool strides = transposes || Algorithm == BLOCK_LOAD_STRIPED;

  public:
    typedef typename Exchange::TempStorage TempStorage;
    LOCKSTEP_COLLECTIVE(BlockLoad)

    template <typename Iterator>
    __device__ void Load(Iterator from, T (&values)[Items]) {
        Load(from, values, X * Y * Z * Items);
    }
    template <typename Iterator>
    __device__ void Load(Iterator from, T (&values)[Items], int valid) {
        for (int i = 0; i < Items; ++i) {
            int place = strides ? i * X * Y * Z + rank : rank * Items + i;
            if (place < valid) values[i] = from[place];
        }
        if (transposes) Exchange(kept).StripedToBlocked(values);
    }
    template <typename Iterator, typename Default>
    __device__ void Load(Iterator from, T (&values)[Items], int valid, Default otherwise) {
        for (int i = 0; i < Items; ++i) values[i] = otherwise;
        Load(from, values, valid);
    }
};

} // namespace cub
