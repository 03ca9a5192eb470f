// Thrust's engines of random numbers and their distributions, as kernels use them: the same numbers as Thrust's.
#pragma once

namespace thrust {
namespace random {

// x becomes a x mod m.
template <typename T, T A, T C, T M>
class linear_congruential_engine {
  public:
    typedef T result_type;
    static constexpr T multiplier = A;
    static constexpr T increment = C;
    static constexpr T modulus = M;
    static constexpr T min = C == 0 ? 1 : 0;
    static constexpr T max = M - 1;
    static constexpr T default_seed = 1;
    LOCKSTEP_API explicit linear_congruential_engine(T value = 1) { seed(value); }
    LOCKSTEP_API void seed(T value = 1) { x = C % M == 0 && value % M == 0 ? 1 : value % M; }
    LOCKSTEP_API T operator()() { return x = (T)(((unsigned long long)A * x + C) % M); }
    // By squares of the step from one number to the next, so that it takes as many rounds as the count has bits.
    LOCKSTEP_API void discard(unsigned long long count) {
        unsigned long long by = A, plus = C;
        for (; count > 0; count >>= 1) {
            if (count & 1) x = (T)((by * x + plus) % M);
            plus = (by * plus + plus) % M;
            by = by * by % M;
        }
    }

  private:
    T x;
};
typedef linear_congruential_engine<unsigned int, 16807, 0, 2147483647> minstd_rand0;
typedef linear_congruential_engine<unsigned int, 48271, 0, 2147483647> minstd_rand;
typedef minstd_rand default_random_engine;

template <typename Real = double>
class uniform_real_distribution {
  public:
    typedef Real result_type;
    LOCKSTEP_API explicit uniform_real_distribution(Real low = 0, Real high = 1) : low(low), high(high) {}
    template <typename Engine>
    LOCKSTEP_API Real operator()(Engine &engine) {
        Real part = (Real)(engine() - Engine::min) / ((Real)1 + (Real)(Engine::max - Engine::min));
        return part * (high - low) + low;
    }
    LOCKSTEP_API void reset() {}

  private:
    Real low, high;
};

template <typename Integer = int>
class uniform_int_distribution {
  public:
    typedef Integer result_type;
    LOCKSTEP_API explicit uniform_int_distribution(Integer low = 0, Integer high = 2147483647) : low(low), high(high) {}
    template <typename Engine>
    LOCKSTEP_API Integer operator()(Engine &engine) {
        uniform_real_distribution<double> among((double)low, (double)high + 1.0);
        return (Integer)among(engine);
    }
    LOCKSTEP_API void reset() {}

  private:
    Integer low, high;
};

template <typename Real = double>
class normal_distribution {
  public:
    typedef Real result_type;
    LOCKSTEP_API explicit normal_distribution(Real mean = 0, Real deviation = 1) : mean(mean), deviation(deviation) {}
    template <typename Engine>
    __device__ Real operator()(Engine &engine) {
        typedef typename Engine::result_type Number;
        Number range = Engine::max - Engine::min, number = engine() - Engine::min;
        Real scale = (Real)(1.0 / (double)range), root = (Real)-1.4142135623730950488;
        if (number > range / 2) {
            number = range - number;
            root = -root;
        }
        Real part = (Real)number * scale + scale / 2;
        return mean + deviation * root * erfcinv(2 * part);
    }
    LOCKSTEP_API void reset() {}

  private:
    Real mean, deviation;
};

} // namespace random
using random::default_random_engine;
using random::linear_congruential_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;
} // namespace thrust
