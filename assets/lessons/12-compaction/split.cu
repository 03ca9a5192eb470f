// Split: even numbers first, then odd ones, each in input order. Radix sort repeats this for every bit.
__global__ void split(const int *x, int *y) {
    int t = threadIdx.x;
    int value = x[t];
    unsigned odd = __ballot_sync(0xffffffffu, value % 2 != 0);
    unsigned before = (1u << t) - 1;
    int evens = 32 - __popc(odd);
    // lines: even numbers first, then odd numbers
    int place = __popc(~odd & before);
    if (value % 2 != 0) place = evens + __popc(odd & before);
    y[place] = value;
    // end
}
