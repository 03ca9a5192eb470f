// Single-launch decoupled look-back among tiles (Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled
// Look-back, NVIDIA 2016). A tile's total is a word of 32 bits.
//
// states[0] has two counts: the lower half the tiles drawn in this launch, the upper half the launches so far. states[1
// + tile] includes the number of its launch, so that states need not be cleared between launches: they are zeroed once.

// A tile's state is one word, so that its kind and value are visible together: the total of the tile alone, or the
// prefix including all tiles before.
#define TILE_ALONE 0u
#define TILE_AND_BEFORE 1u

// Draw a tile number in the order in which blocks start, so that no block waits for one that is not resident yet.
// `launch` becomes the number of the launch, from 1 on; the last tile drawn starts the next launch's counts.
__device__ int draw_tile(unsigned long long *states, int tiles, unsigned int *launch) {
    unsigned long long drawn = atomicAdd(&states[0], 1ull);
    int tile = (int)(unsigned int)drawn;
    if (tile == tiles - 1) atomicAdd(&states[0], (1ull << 32) - tiles);
    *launch = (unsigned int)(drawn >> 32) + 1;
    return tile;
}

__device__ void publish(unsigned long long *state, unsigned int launch, unsigned int kind, unsigned int bits) {
    atomicExch(state, (unsigned long long)(2 * launch + kind) << 32 | bits);
}

// Return whether a state belongs to this launch, and not to an earlier one.
__device__ bool is_of(unsigned long long state, unsigned int launch) { return (unsigned int)(state >> 33) == launch; }

__device__ bool knows_all_before(unsigned long long state) { return (state >> 32 & 1) == TILE_AND_BEFORE; }
