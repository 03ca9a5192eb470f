// Lost update: what two threads do to one counter, in steps that the other may come between.
//
// update_racy      read, add one, write: right only where one thread is through before the other begins
// update_atomic    the same as one step: right in every order

extern "C" __global__ void update_racy(unsigned int *counter) {
    unsigned int value = *counter;
    value = value + 1;
    *counter = value;
}

extern "C" __global__ void update_atomic(unsigned int *counter) { atomicAdd(counter, 1u); }
