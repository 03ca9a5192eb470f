// Lost update: two threads increment one counter in steps that may interleave.
//
// update_racy      read, add one, write: correct only if one thread finishes before the other begins
// update_atomic    one indivisible operation: correct in every order

extern "C" __global__ void update_racy(unsigned int *counter) {
    unsigned int value = *counter;
    value = value + 1;
    *counter = value;
}

extern "C" __global__ void update_atomic(unsigned int *counter) { atomicAdd(counter, 1u); }
