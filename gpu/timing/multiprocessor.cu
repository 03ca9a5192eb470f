// Simulate one multiprocessor in one thread: its warps issue instructions and stall. The simulation always runs on the
// CPU, never on a GPU. Times are in cycles.

#define WARPS 64
#define MOST_BLOCKS 32
#define SCHEDULERS 8
#define PIPES 9

// Kinds of operations, as in `costs.py`.
#define ALIAS 0
#define COMPUTE 1
#define MEMORY 2
#define BARRIER 3
#define JUMP 4

// States of a warp, as `WarpState` in `timeline.py`.
#define ISSUES 0
#define ELIGIBLE 1
#define ON_RESULT 2
#define ON_MEMORY 3
#define ON_SHARED 4
#define ON_PIPE 5
#define AT_BARRIER 6

// numbers: sizes and counts. See multiprocessor.py.
#define N_SCHEDULERS numbers[0]
#define N_SLOTS numbers[1]
#define WARPS_PER_BLOCK numbers[2]
#define BLOCKS_TO_RUN numbers[3]
#define SAMPLED_BLOCKS numbers[4]
#define STEPS numbers[5]
#define REGISTERS numbers[6]
#define SAMPLED_WARPS numbers[7]
#define MOST_SPANS numbers[8]
#define WARPS_OF_ROUND numbers[9]
#define OPERATIONS numbers[10]

// Spaces of requests: global memory, shared memory, atomic operations in global memory, and atomic operations in shared
// memory that are loops.
#define IS_SHARED(o) (request_space[o] % 2 == 1)
#define IS_SHARED_LOOP(o) (request_space[o] == 3)

// rates: in cycles.
#define LATENCY_FIRST rates[0]
#define LATENCY_LAST rates[1]
#define LATENCY_MEMORY rates[2]
#define LATENCY_SHARED rates[3]
#define PER_LAST_SECTOR rates[4]
#define PER_MEMORY_SECTOR rates[5]
#define BARRIER_COST rates[6]
#define BLOCK_START rates[7]
#define QUEUE rates[8]
#define JUMP_COST rates[9]
#define PER_STORE_LINE rates[10]
#define LATENCY_ATOMIC rates[11]
#define START_GAP rates[12]
#define PER_OWN_PASS rates[13]
#define PER_ACCESS rates[14]
#define CROWDING rates[15]
#define PER_LINK_SECTOR rates[16]

// The warps of a block start one after the other.
#define WARP_START 2.0
// Multiprocessors start together and drift apart, so that a burst of one may exceed its share of DRAM's rate: the cycles
// by which data comes earlier, per cycle since the start, and at most.
#define DRIFT 0.5
#define MOST_DRIFT 800.0
#define GOLDEN_RATIO 0.6180339887498949

// Account for a warp's cycles up to `end`. A span that begins before the cut, which is set once there are `most` spans,
// is also recorded. A continued wait extends its span.
__device__ void account(double *since, int *row_of, int warp, double end, int state, int operation, long long block,
                        double *cycles_in, long long most, double *cut, long long *counts, double *times, int *marks) {
    double begin = since[warp];
    if (end <= begin) return;
    since[warp] = end;
    cycles_in[state] += end - begin;
    if (begin >= cut[0]) return;
    int open = row_of[warp];
    if (open >= 0 && state != ISSUES && marks[4 * open + 1] == state && marks[4 * open + 2] == operation &&
        times[2 * open + 1] == begin) {
        times[2 * open + 1] = end;
        return;
    }
    long long row = counts[1];
    if (row >= most + 8 * WARPS) return;
    times[2 * row] = begin;
    times[2 * row + 1] = end;
    marks[4 * row] = warp;
    marks[4 * row + 1] = state;
    marks[4 * row + 2] = operation;
    marks[4 * row + 3] = (int)block;
    counts[1] = row + 1;
    row_of[warp] = (int)row;
}

#define ACCOUNT(warp, end, state, operation)                                                                           \
    account(since, row_of, warp, end, state, operation, number[block_of[warp]], cycles_in, MOST_SPANS, cut, counts,    \
            times, marks)

extern "C" __global__ void multiprocessor(
    const long long *numbers, const double *rates,
    // operations: kind, pipe, issue slots, times, and the range of its registers
    const int *kinds, const int *pipes, const double *slots, const double *busy, const double *latencies,
    const double *blocked, const int *written, const int *first_read, const int *reads, const int *request_of,
    const double *memory_share,
    // basic blocks: their first operations
    const int *first_operation,
    // the path: the visit of each step
    const int *path,
    // visits: basic block, first request, and active warps
    const int *visit_block, const long long *visit_request, const unsigned char *active,
    // requests, one per sampled warp: wavefronts, and sectors from L2
    const float *passes, const float *from_last, const unsigned char *request_space,
    // outputs and work space: when registers are available, and the reason for a delay; fractions of sectors still to
    // be loaded from DRAM; when a block's words are free for an atomic operation that is a loop; ends of blocks; warps'
    // cycles by state; numbers of operations and spans; the spans
    double *ready, unsigned char *late, double *owed, double *turns, double *ended, double *cycles_in,
    long long *counts, double *cut, double *times, int *marks) {
    double next[WARPS];  // when a warp can issue its next operation, apart from its scheduler
    double since[WARPS];  // the cycle up to which its cycles are accounted for
    long long at_step[WARPS];  // its position in the path
    int at_operation[WARPS];
    int issued[WARPS];  // its latest operation
    int row_of[WARPS];  // its latest span
    int state[WARPS];  // 0 done or empty, 1 running, 2 at a barrier
    int sampled[WARPS];  // the sampled warp whose path it follows
    int block_of[WARPS];
    int scheduler_of[WARPS];
    long long number[MOST_BLOCKS];  // per slot: the number of its block
    int running[MOST_BLOCKS];  // per slot: the number of running warps
    int arrived[MOST_BLOCKS];
    double free_at[MOST_BLOCKS];  // per empty slot: when a block can start there
    double scheduler_free[SCHEDULERS], pipe_free[SCHEDULERS * PIPES];
    double shared_free[SCHEDULERS];  // when a scheduler's warps can access shared memory again
    double memory_busy = 0, store_free = 0;
    double load_store_free = 0, last_free = 0, memory_free = 0, link_free = 0, atomic_free = 0;
    long long schedulers = N_SCHEDULERS, width = WARPS_PER_BLOCK, warps = N_SLOTS * width, registers = REGISTERS;
    double stored[MOST_BLOCKS];  // per slot: when the stores of its block have been sent
    double dispatch_free = 0, turn = 0;
    long long started = 0, finished = 0, count = 0;
    for (int s = 0; s < schedulers; ++s) {
        scheduler_free[s] = 0;
        shared_free[s] = 0;
    }
    for (int p = 0; p < SCHEDULERS * PIPES; ++p) pipe_free[p] = 0;
    for (int w = 0; w < warps; ++w) {
        state[w] = 0;
        // The first warps of blocks, which often have more work, are distributed over the schedulers.
        scheduler_of[w] = (w + w / (int)WARPS_OF_ROUND) % (int)schedulers;
    }
    for (int b = 0; b < N_SLOTS; ++b) {
        running[b] = 0;
        arrived[b] = 0;
        free_at[b] = 0;
    }
    int vacant = (int)N_SLOTS, slot = 0;
    double now = 0;
    while (finished < BLOCKS_TO_RUN) {
        // Blocks start one after the other.
        for (int empty = 0; empty < N_SLOTS && vacant > 0 && started < BLOCKS_TO_RUN; ++empty) {
            if (running[empty] > 0) continue;
            double begin = free_at[empty] > dispatch_free ? free_at[empty] : dispatch_free;
            dispatch_free = begin + START_GAP;
            for (int i = 0; i < width; ++i) {
                int w = empty * (int)width + i;
                block_of[w] = empty;
                sampled[w] = (int)(started % SAMPLED_BLOCKS * width) + i;
                state[w] = 1;
                next[w] = begin + i * WARP_START;
                since[w] = next[w];
                row_of[w] = -1;
                at_step[w] = 0;
                at_operation[w] = -1;
                for (int r = 0; r < registers; ++r) ready[w * registers + r] = 0;
            }
            running[empty] = (int)width;
            stored[empty] = begin;
            number[empty] = started;
            ++started;
            --vacant;
        }
        // Warps at a barrier continue when all running warps of their block have arrived.
        if (arrived[slot] > 0 && arrived[slot] == running[slot]) {
            arrived[slot] = 0;
            for (int i = 0; i < width; ++i) {
                int other = slot * (int)width + i;
                if (state[other] == 2) {
                    state[other] = 1;
                    next[other] = now + BARRIER_COST;
                    ACCOUNT(other, next[other], AT_BARRIER, issued[other]);
                }
            }
        }
        // Choose the warp that can issue first.
        int chosen = -1;
        double when = 1e300;
        for (int w = 0; w < warps; ++w) {
            if (state[w] != 1) continue;
            double can = next[w], free = scheduler_free[scheduler_of[w]];
            if (free > can) can = free;
            if (can < when) {
                when = can;
                chosen = w;
            }
        }
        if (chosen < 0) break;
        int w = chosen, s = scheduler_of[w];
        now = when;
        slot = block_of[w];
        if (counts[1] >= MOST_SPANS && cut[0] > 1e299) cut[0] = now;
        // Find the warp's next operation; steps in which it is inactive are skipped.
        if (at_operation[w] < 0) {
            while (at_step[w] < STEPS && !active[path[at_step[w]] * SAMPLED_WARPS + sampled[w]]) ++at_step[w];
            if (at_step[w] >= STEPS) {
                state[w] = 0;
                --running[slot];
                if (running[slot] == 0) {
                    ended[finished] = now > stored[slot] ? now : stored[slot];
                    ACCOUNT(w, ended[finished], ON_MEMORY, issued[w]);
                    free_at[slot] = ended[finished] + BLOCK_START;
                    ++finished;
                    ++vacant;
                }
                continue;
            }
            at_operation[w] = first_operation[visit_block[path[at_step[w]]]];
        }
        int visit = path[at_step[w]], block = visit_block[visit], end = first_operation[block + 1], o = at_operation[w];
        double *own = ready + w * registers;
        unsigned char *own_late = late + w * registers;
        // After divergence, results of the other lanes may be pending: a later reader waits for both.
        bool parted = active[path[at_step[w]] * SAMPLED_WARPS + sampled[w]] > 1;
        // Free operations forward the times of their operands.
        while (o < end && kinds[o] == ALIAS) {
            double latest = 0;
            unsigned char reason = ON_RESULT;
            for (int r = first_read[o]; r < first_read[o + 1]; ++r) {
                if (own[reads[r]] > latest) {
                    latest = own[reads[r]];
                    reason = own_late[reads[r]];
                }
            }
            if (written[o] >= 0 && (!parted || latest > own[written[o]])) {
                own[written[o]] = latest;
                own_late[written[o]] = reason;
            }
            ++o;
        }
        if (o >= end) {
            ++at_step[w];
            at_operation[w] = -1;
            continue;
        }
        at_operation[w] = o;
        double operands = 0;
        int reason = ON_RESULT;
        for (int r = first_read[o]; r < first_read[o + 1]; ++r) {
            if (own[reads[r]] > operands) {
                operands = own[reads[r]];
                reason = own_late[reads[r]];
            }
        }
        // A pending load into the destination register must complete before the register is written.
        if (written[o] >= 0 && !parted && own_late[written[o]] >= ON_MEMORY && own[written[o]] > operands) {
            operands = own[written[o]];
            reason = own_late[written[o]];
        }
        if (operands > now) {
            next[w] = operands;
            continue;
        }
        ACCOUNT(w, operands, reason, o);
        int pipe = pipes[o];
        double pipe_time = pipe_free[s * PIPES + pipe];
        if (pipe_time > now && kinds[o] != MEMORY) {
            next[w] = pipe_time;
            ACCOUNT(w, next[w], ON_PIPE, o);
            continue;
        }
        if (kinds[o] == MEMORY) {
            double behind = load_store_free - now;
            if (IS_SHARED(o) && shared_free[s] - now > behind) behind = shared_free[s] - now;
            if (store_free - now > 40 * QUEUE) {
                next[w] = store_free - 40 * QUEUE;
                ACCOUNT(w, next[w], ON_MEMORY, o);
                continue;
            }
            if (behind > QUEUE) {
                next[w] = now + behind - QUEUE;
                ACCOUNT(w, next[w], ON_PIPE, o);
                continue;
            }
            if (request_space[o] == 2 && atomic_free - now > 40 * QUEUE) {
                next[w] = atomic_free - 40 * QUEUE;
                ACCOUNT(w, next[w], ON_MEMORY, o);
                continue;
            }
        }
        // Issue: from when everything was ready until now, the warp was eligible.
        ACCOUNT(w, now, ELIGIBLE, o);
        count += 1;
        issued[w] = o;
        scheduler_free[s] = now + slots[o];
        next[w] = now + slots[o];
        ACCOUNT(w, next[w], ISSUES, o);
        if (blocked[o] > slots[o]) {
            next[w] = now + blocked[o];
            ACCOUNT(w, next[w], ON_RESULT, o);
        }
        double result = 0;
        if (kinds[o] == COMPUTE) {
            pipe_free[s * PIPES + pipe] = now + busy[o];
            result = now + latencies[o];
        } else if (kinds[o] == JUMP) {
            next[w] = now + JUMP_COST;
            ACCOUNT(w, next[w], ON_RESULT, o);
        } else if (kinds[o] == MEMORY) {
            long long place = (visit_request[visit] + request_of[o]) * SAMPLED_WARPS + sampled[w];
            double own_passes = passes[place], last = from_last[place], rounds = 0;
            if (IS_SHARED_LOOP(o)) {
                // A loop of comparisons with an exchange: `from_last` is the number of the warp's lanes on one word, of
                // which one succeeds in each round. Warps of a block that use the same words take turns; one that waits
                // repeats its attempts, each of which loads and stores.
                double begin = now, *turn = turns + slot * OPERATIONS + o;
                if (own_passes > 2 * last && *turn > begin) begin = *turn;
                *turn = begin + last * latencies[o];
                rounds = (*turn - now) / latencies[o];
                own_passes = 2 * rounds * PER_ACCESS;
            }
            double start = now > load_store_free ? now : load_store_free;
            load_store_free = start + own_passes;
            double done;
            if (IS_SHARED(o)) {
                // The warps of one scheduler get only a part of the wavefronts of shared memory.
                double own_start = now > shared_free[s] ? now : shared_free[s];
                shared_free[s] = own_start + own_passes * PER_OWN_PASS;
                double last_pass = load_store_free > shared_free[s] ? load_store_free : shared_free[s];
                done = last_pass - 1 + latencies[o];
                if (IS_SHARED_LOOP(o)) {
                    double begin = pipe_free[s * PIPES + pipe] > now ? pipe_free[s * PIPES + pipe] : now;
                    pipe_free[s * PIPES + pipe] = begin + rounds * busy[o];
                    if (pipe_free[s * PIPES + pipe] > done) done = pipe_free[s * PIPES + pipe];
                    if (now + rounds * latencies[o] > done) done = now + rounds * latencies[o];
                    scheduler_free[s] += (rounds - 1) * slots[o];
                    next[w] = done;
                    ACCOUNT(w, next[w], ON_SHARED, o);
                }
            } else if (request_space[o] == 2) {
                // Atomic operations in global memory are serialized: `from_last` is their time in cycles.
                double begin = start > atomic_free ? start : atomic_free;
                atomic_free = begin + last;
                done = begin + last + LATENCY_ATOMIC;
            } else {
                done = start + own_passes - 1 + LATENCY_FIRST;
                if (last > 0) {
                    double begin = start > last_free ? start : last_free;
                    if (written[o] < 0) {
                        // Stores are sent line by line.
                        if (store_free > begin) begin = store_free;
                        store_free = begin + own_passes * PER_STORE_LINE;
                        stored[slot] = store_free;
                    }
                    last_free = begin + last * PER_LAST_SECTOR;
                    double there = last_free + LATENCY_LAST;
                    if (there > done) done = there;
                    // A share of an instruction's sectors comes from DRAM; fractions accumulate to whole sectors.
                    double owes = owed[o] + last * memory_share[o];
                    double memory = (double)(long long)owes;
                    owed[o] = owes - memory;
                    if (memory > 0) {
                        begin = now > memory_free ? now : memory_free;
                        memory_free = begin + memory * PER_MEMORY_SECTOR;
                        memory_busy += memory * PER_MEMORY_SECTOR;
                        link_free = (last_free > link_free ? last_free : link_free) + memory * PER_LINK_SECTOR;
                        double drift = DRIFT * now < MOST_DRIFT ? DRIFT * now : MOST_DRIFT;
                        double sent = memory_free - drift > link_free ? memory_free - drift : link_free;
                        // The higher the load of DRAM, the longer requests wait for each other, each for another time.
                        double load = memory_busy / (memory_free + LATENCY_MEMORY);
                        turn += GOLDEN_RATIO;
                        turn -= (double)(long long)turn;
                        double wait = CROWDING * load / (1 - load / 2) * (0.5 - 0.5 * log(1 - turn));
                        there = sent + LATENCY_MEMORY + wait;
                        if (there > done) done = there;
                    }
                }
            }
            result = done;
        } else if (kinds[o] == BARRIER) {
            state[w] = 2;
            ++arrived[slot];
        }
        if (written[o] >= 0 && (!parted || result > own[written[o]])) {
            own[written[o]] = result;
            own_late[written[o]] = kinds[o] != MEMORY ? ON_RESULT : IS_SHARED(o) ? ON_SHARED : ON_MEMORY;
        }
        at_operation[w] = o + 1;
        if (o + 1 >= end) {
            ++at_step[w];
            at_operation[w] = -1;
        }
    }
    counts[0] = count;
}
