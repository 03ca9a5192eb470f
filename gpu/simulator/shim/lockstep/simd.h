// Two halfwords or four bytes of a word at once, and the steps of dynamic programming (DPX).
#pragma once

// `found` says what becomes of x and y, the parts of two words.
#define LOCKSTEP_PARTS(name, Part, bits, result_of, found)                                                             \
    LOCKSTEP_FUNCTION unsigned int name(unsigned int a, unsigned int b) {                                              \
        const int least = -(1 << (bits - 1)), most = (1 << (bits - 1)) - 1, all = (1 << bits) - 1;                     \
        unsigned int result = 0;                                                                                       \
        for (int at = 0; at < 32; at += bits) {                                                                        \
            int x = (Part)(a >> at), y = (Part)(b >> at);                                                              \
            result = result_of(found);                                                                                 \
        }                                                                                                              \
        return result;                                                                                                 \
    }
#define LOCKSTEP_PART(found) result | (unsigned int)((found) & all) << at
#define LOCKSTEP_SUM(found) result + (unsigned int)(found)
#define LOCKSTEP_SIGNED(name, found)                                                                                   \
    LOCKSTEP_PARTS(name##2, short, 16, LOCKSTEP_PART, found)                                                           \
    LOCKSTEP_PARTS(name##4, signed char, 8, LOCKSTEP_PART, found)
#define LOCKSTEP_UNSIGNED(name, found)                                                                                 \
    LOCKSTEP_PARTS(name##2, unsigned short, 16, LOCKSTEP_PART, found)                                                  \
    LOCKSTEP_PARTS(name##4, unsigned char, 8, LOCKSTEP_PART, found)
LOCKSTEP_SIGNED(__vadd, x + y)
LOCKSTEP_SIGNED(__vaddss, max(least, min(most, x + y)))
LOCKSTEP_UNSIGNED(__vaddus, min(all, x + y))
LOCKSTEP_SIGNED(__vsub, x - y)
LOCKSTEP_SIGNED(__vsubss, max(least, min(most, x - y)))
LOCKSTEP_UNSIGNED(__vsubus, max(0, x - y))
LOCKSTEP_SIGNED(__vabsdiffs, abs(x - y))
LOCKSTEP_UNSIGNED(__vabsdiffu, abs(x - y))
LOCKSTEP_SIGNED(__vmaxs, max(x, y))
LOCKSTEP_UNSIGNED(__vmaxu, max(x, y))
LOCKSTEP_SIGNED(__vmins, min(x, y))
LOCKSTEP_UNSIGNED(__vminu, min(x, y))
// Of two that are as near, averages take the one away from zero.
LOCKSTEP_SIGNED(__vavgs, (x + y + (x + y >= 0)) >> 1)
LOCKSTEP_UNSIGNED(__vavgu, (x + y + 1) >> 1)
LOCKSTEP_UNSIGNED(__vhaddu, (x + y) >> 1)
#define LOCKSTEP_COMPARISON(kind, name, sign) kind(__vcmp##name, x sign y ? all : 0) kind(__vset##name, x sign y)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, eq, ==)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, ne, !=)
LOCKSTEP_COMPARISON(LOCKSTEP_SIGNED, ges, >=)
LOCKSTEP_COMPARISON(LOCKSTEP_SIGNED, gts, >)
LOCKSTEP_COMPARISON(LOCKSTEP_SIGNED, les, <=)
LOCKSTEP_COMPARISON(LOCKSTEP_SIGNED, lts, <)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, geu, >=)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, gtu, >)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, leu, <=)
LOCKSTEP_COMPARISON(LOCKSTEP_UNSIGNED, ltu, <)
LOCKSTEP_PARTS(__vsads2, short, 16, LOCKSTEP_SUM, abs(x - y))
LOCKSTEP_PARTS(__vsads4, signed char, 8, LOCKSTEP_SUM, abs(x - y))
LOCKSTEP_PARTS(__vsadu2, unsigned short, 16, LOCKSTEP_SUM, abs(x - y))
LOCKSTEP_PARTS(__vsadu4, unsigned char, 8, LOCKSTEP_SUM, abs(x - y))
#undef LOCKSTEP_COMPARISON
#undef LOCKSTEP_UNSIGNED
#undef LOCKSTEP_SIGNED
#undef LOCKSTEP_SUM
#undef LOCKSTEP_PART
#undef LOCKSTEP_PARTS

#define LOCKSTEP_OF_ONE(size)                                                                                          \
    LOCKSTEP_FUNCTION unsigned int __vneg##size(unsigned int a) { return __vsub##size(0, a); }                         \
    LOCKSTEP_FUNCTION unsigned int __vnegss##size(unsigned int a) { return __vsubss##size(0, a); }                     \
    LOCKSTEP_FUNCTION unsigned int __vabs##size(unsigned int a) { return __vabsdiffs##size(a, 0); }                    \
    LOCKSTEP_FUNCTION unsigned int __vabsss##size(unsigned int a) { return __vmaxs##size(a, __vnegss##size(a)); }
LOCKSTEP_OF_ONE(2)
LOCKSTEP_OF_ONE(4)
#undef LOCKSTEP_OF_ONE

#define LOCKSTEP_DPX(type, Word, add, most, least)                                                                     \
    LOCKSTEP_FUNCTION Word __vimax3_##type(Word a, Word b, Word c) { return most(most(a, b), c); }                     \
    LOCKSTEP_FUNCTION Word __vimin3_##type(Word a, Word b, Word c) { return least(least(a, b), c); }                   \
    LOCKSTEP_FUNCTION Word __viaddmax_##type(Word a, Word b, Word c) { return most(add(a, b), c); }                    \
    LOCKSTEP_FUNCTION Word __viaddmin_##type(Word a, Word b, Word c) { return least(add(a, b), c); }
#define LOCKSTEP_DPX_RELU(type, Word, add, most, least)                                                                \
    LOCKSTEP_DPX(type, Word, add, most, least)                                                                         \
    LOCKSTEP_FUNCTION Word __vimax_##type##_relu(Word a, Word b) { return most(most(a, b), 0); }                       \
    LOCKSTEP_FUNCTION Word __vimin_##type##_relu(Word a, Word b) { return most(least(a, b), 0); }                      \
    LOCKSTEP_FUNCTION Word __vimax3_##type##_relu(Word a, Word b, Word c) { return most(most(most(a, b), c), 0); }     \
    LOCKSTEP_FUNCTION Word __vimin3_##type##_relu(Word a, Word b, Word c) { return most(least(least(a, b), c), 0); }   \
    LOCKSTEP_FUNCTION Word __viaddmax_##type##_relu(Word a, Word b, Word c) { return most(most(add(a, b), c), 0); }    \
    LOCKSTEP_FUNCTION Word __viaddmin_##type##_relu(Word a, Word b, Word c) { return most(least(add(a, b), c), 0); }
LOCKSTEP_FUNCTION int __lockstep_sum(int a, int b) { return (int)((unsigned int)a + (unsigned int)b); }
LOCKSTEP_FUNCTION unsigned int __lockstep_sum(unsigned int a, unsigned int b) { return a + b; }
LOCKSTEP_DPX_RELU(s32, int, __lockstep_sum, max, min)
LOCKSTEP_DPX(u32, unsigned int, __lockstep_sum, max, min)
LOCKSTEP_DPX_RELU(s16x2, unsigned int, __vadd2, __vmaxs2, __vmins2)
LOCKSTEP_DPX(u16x2, unsigned int, __vadd2, __vmaxu2, __vminu2)
#undef LOCKSTEP_DPX_RELU
#undef LOCKSTEP_DPX

// Which of the two it is, is told too: the first where both are the same.
#define LOCKSTEP_DPX_TOLD(name, T, sign)                                                                               \
    LOCKSTEP_FUNCTION T name(T a, T b, bool *first) {                                                                  \
        *first = a sign b;                                                                                             \
        return *first ? a : b;                                                                                         \
    }
LOCKSTEP_DPX_TOLD(__vibmax_s32, int, >=)
LOCKSTEP_DPX_TOLD(__vibmax_u32, unsigned int, >=)
LOCKSTEP_DPX_TOLD(__vibmin_s32, int, <=)
LOCKSTEP_DPX_TOLD(__vibmin_u32, unsigned int, <=)
#undef LOCKSTEP_DPX_TOLD
#define LOCKSTEP_DPX_TOLD(name, chosen, set)                                                                           \
    LOCKSTEP_FUNCTION unsigned int name(unsigned int a, unsigned int b, bool *high, bool *low) {                       \
        unsigned int first = set(a, b);                                                                                \
        *high = first >> 16;                                                                                           \
        *low = first & 1;                                                                                              \
        return chosen(a, b);                                                                                           \
    }
LOCKSTEP_DPX_TOLD(__vibmax_s16x2, __vmaxs2, __vsetges2)
LOCKSTEP_DPX_TOLD(__vibmax_u16x2, __vmaxu2, __vsetgeu2)
LOCKSTEP_DPX_TOLD(__vibmin_s16x2, __vmins2, __vsetles2)
LOCKSTEP_DPX_TOLD(__vibmin_u16x2, __vminu2, __vsetleu2)
#undef LOCKSTEP_DPX_TOLD
