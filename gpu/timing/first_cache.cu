// The L1 cache of one multiprocessor: for a sequence of sector requests, which of them hit. Lines have four sectors;
// the least recently used line of a set is evicted.
extern "C" __global__ void first_cache(const long long *sectors, const unsigned char *kinds, long long count,
                                       long long sets, long long ways, long long *tags, long long *used,
                                       unsigned char *present, unsigned char *hits) {
    for (long long i = 0; i < sets * ways; ++i) {
        tags[i] = -1;
        used[i] = 0;
        present[i] = 0;
    }
    for (long long i = 0; i < count; ++i) {
        long long line = sectors[i] >> 2, place = (line ^ (line >> 7) ^ (line >> 15)) & (sets - 1);
        int sector = (int)(sectors[i] & 3);
        long long first = place * ways, oldest = first, found = -1;
        for (long long k = first; k < first + ways; ++k) {
            if (tags[k] == line) {
                found = k;
                break;
            }
            if (used[k] < used[oldest]) oldest = k;
        }
        hits[i] = 0;
        if (kinds[i] == 2) continue;          // bypasses the cache
        if (kinds[i] == 1) {                  // a store writes through, and does not change the line
            continue;
        }
        if (found < 0) {
            tags[oldest] = line;
            used[oldest] = i + 1;
            present[oldest] = (unsigned char)(1 << sector);
            continue;
        }
        used[found] = i + 1;
        if (present[found] >> sector & 1)
            hits[i] = 1;
        else
            present[found] = (unsigned char)(present[found] | 1 << sector);
    }
}
