// The first cache of one multiprocessor: which of the sectors that are asked for, in order, are there. Lines of four
// sectors, the least recently used one of a set makes room.
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
        if (kinds[i] == 2) continue;          // past the cache
        if (kinds[i] == 1) {                  // a store goes through, and leaves the line as it is
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
