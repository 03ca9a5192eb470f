// Host memory from `new` and `malloc`, linked to each program: the runtime asks how far a copy may go behind an address.
// The linker replaces the program's calls of `malloc` by `__wrap_malloc`, and those of `__real_malloc` by `malloc`.
#include <cstdlib>

#ifdef __GLIBC__
#include <atomic>
#include <cstdint>
#include <malloc.h>
#include <new>

extern "C" {
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
}

namespace {

struct Block {
    char *begin;
    size_t size, usable;
};
constexpr size_t slots = 1 << 14, probes = 32;
Block blocks[slots];
std::atomic_flag busy = ATOMIC_FLAG_INIT;

struct Lock {
    Lock() {
        while (busy.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~Lock() { busy.clear(std::memory_order_release); }
};

// Return the slot of a block, or a free one for null; null if there is none.
Block *find_slot(const char *address, const char *wanted) {
    size_t first = (uintptr_t)address / 16 * 0x9E3779B97F4A7C15u >> 32;
    for (size_t k = 0; k < probes; ++k) {
        Block *slot = &blocks[(first + k) % slots];
        if (slot->begin == wanted) return slot;
    }
    return nullptr;
}

void *add_block(void *memory, size_t size) {
    if (!memory) return nullptr;
    Lock lock;
    Block *slot = find_slot((char *)memory, (char *)memory); // one that a library has freed
    if (!slot) slot = find_slot((char *)memory, nullptr);
    if (slot) *slot = {(char *)memory, size, malloc_usable_size(memory)};
    return memory;
}

void remove_block(void *memory) {
    if (!memory) return;
    Lock lock;
    if (Block *slot = find_slot((char *)memory, (char *)memory)) slot->begin = nullptr;
}

void *allocate(size_t size) {
    void *memory = __real_malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return add_block(memory, size);
}

void release(void *memory) {
    remove_block(memory);
    __real_free(memory);
}

} // namespace

#define LOCKSTEP_WEAK __attribute__((weak))
LOCKSTEP_WEAK void *operator new(size_t size) { return allocate(size); }
LOCKSTEP_WEAK void *operator new[](size_t size) { return allocate(size); }
LOCKSTEP_WEAK void operator delete(void *memory) noexcept { release(memory); }
LOCKSTEP_WEAK void operator delete[](void *memory) noexcept { release(memory); }
LOCKSTEP_WEAK void operator delete(void *memory, size_t) noexcept { release(memory); }
LOCKSTEP_WEAK void operator delete[](void *memory, size_t) noexcept { release(memory); }

extern "C" {
void *__wrap_malloc(size_t size) { return add_block(__real_malloc(size), size); }
void *__wrap_calloc(size_t count, size_t size) { return add_block(__real_calloc(count, size), count * size); }
void *__wrap_realloc(void *memory, size_t size) {
    remove_block(memory);
    void *other = __real_realloc(memory, size);
    return add_block(other, size);
}
void __wrap_free(void *memory) { release(memory); }
}

// Return the bytes from an address to the end of its block, or -1 if the address is in no known block.
extern "C" long long lockstep_block_bytes(const char *address) {
    Lock lock;
    for (const Block &block : blocks) {
        if (!block.begin || address < block.begin || address >= block.begin + block.size) continue;
        // Another usable size: a library has freed the block, and the memory has another use.
        if (malloc_usable_size(block.begin) == block.usable) return block.begin + block.size - address;
    }
    return -1;
}
#else
extern "C" long long lockstep_block_bytes(const char *) { return -1; }
#endif
