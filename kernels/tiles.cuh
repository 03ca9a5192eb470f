// One launch in which each tile asks those before it: decoupled look-back (Merrill and Garland, Single-pass Parallel
// Prefix Scan with Decoupled Look-back, NVIDIA 2016). What a tile comes to is a word of 32 bits.
//
// states[0] counts: its lower half how many tiles of this launch are drawn, its upper half how many launches have been.
// states[1 + tile] says of which launch it is, so nobody clears states between launches: all begin as 0, once.

// A tile's state is one word, so that whoever sees its kind also sees the value that belongs to it: what the tile comes
// to alone, or with all before it.
#define TILE_ALONE 0u
#define TILE_AND_BEFORE 1u

// Draw the number of a tile in the order in which blocks start, so that nobody waits for a block that has no
// multiprocessor yet. `launch` becomes the number of the launch, from 1 on; the last to draw begins the next one's.
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

// Whether a state is one of this launch, and not of an earlier one.
__device__ bool is_of(unsigned long long state, unsigned int launch) { return (unsigned int)(state >> 33) == launch; }

__device__ bool knows_all_before(unsigned long long state) { return (state >> 32 & 1) == TILE_AND_BEFORE; }
