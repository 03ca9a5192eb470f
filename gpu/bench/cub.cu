// CUB as a peer. Prints CUB's version, then the milliseconds of each repetition.
// Arguments: what to do ("histogram-uniform", "histogram-constant", "reduce", "scan", "select", "sort" or "sort-pairs"), elements,
// seed, warm-up rounds, repetitions.
#include <cub/cub.cuh>
#include <string>

#include "timing.cuh"

struct AboveHalf {
    __device__ bool operator()(float value) const { return value > 0.5f; }
};

struct Work {
    std::string name;
    size_t count;
    void *input, *output;
    int *chosen, *carried, *carried_out;

    cudaError_t run(void *scratch, size_t &bytes) const {
        const float *values = (const float *)input;
        if (name == "reduce") return cub::DeviceReduce::Sum(scratch, bytes, values, (float *)output, count);
        if (name == "scan") return cub::DeviceScan::InclusiveSum(scratch, bytes, values, (float *)output, count);
        if (name == "select")
            return cub::DeviceSelect::If(scratch, bytes, values, (float *)output, chosen, count, AboveHalf());
        const unsigned int *keys = (const unsigned int *)input;
        if (name == "sort") return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, (unsigned int *)output, count);
        if (name == "sort-pairs")
            return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, (unsigned int *)output, carried, carried_out,
                                                   count);
        return cub::DeviceHistogram::HistogramEven(scratch, bytes, (const unsigned char *)input, (int *)output, 257, 0,
                                                   256, (int)count);
    }
};

int main(int, char **arguments) {
    Work work = {arguments[1], strtoull(arguments[2], nullptr, 10), nullptr, nullptr, nullptr, nullptr, nullptr};
    unsigned int seed = atoi(arguments[3]);
    int warm_up = atoi(arguments[4]), repetitions = atoi(arguments[5]);
    bool bytes = work.name.rfind("histogram", 0) == 0;
    bool pairs = work.name == "sort-pairs";

    CHECK(cudaMalloc(&work.input, work.count * (bytes ? 1 : sizeof(float))));
    CHECK(cudaMalloc(&work.output, bytes ? 256 * sizeof(int) : work.count * sizeof(float)));
    CHECK(cudaMalloc(&work.chosen, sizeof(int)));
    CHECK(cudaMalloc(&work.carried, pairs ? work.count * sizeof(int) : sizeof(int)));
    CHECK(cudaMalloc(&work.carried_out, pairs ? work.count * sizeof(int) : sizeof(int)));
    if (pairs) fill_words<<<2048, 256>>>((unsigned int *)work.carried, work.count, seed + 1);
    if (work.name == "histogram-constant")
        CHECK(cudaMemset(work.input, seed & 255, work.count));
    else if (bytes)
        fill_words<<<2048, 256>>>((unsigned int *)work.input, work.count / 4, seed);
    else if (work.name == "sort" || pairs)
        fill_words<<<2048, 256>>>((unsigned int *)work.input, work.count, seed);
    else
        fill_fractions<<<2048, 256>>>((float *)work.input, work.count, seed);

    void *scratch = nullptr;
    size_t scratch_bytes = 0;
    CHECK(work.run(nullptr, scratch_bytes));
    CHECK(cudaMalloc(&scratch, scratch_bytes));
    printf("%d.%d.%d\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    time_rounds(warm_up, repetitions, [&] { CHECK(work.run(scratch, scratch_bytes)); });
    return 0;
}
