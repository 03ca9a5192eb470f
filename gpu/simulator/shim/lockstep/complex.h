// Complex numbers as Thrust, libcu++ and CuPy have them: the formulas of Thrust's operators and functions.
#pragma once

namespace lockstep {

template <typename T>
struct IsNumber {
    static constexpr bool value = false;
};
#define LOCKSTEP_NUMBER(T)                                                                                             \
    template <>                                                                                                        \
    struct IsNumber<T> {                                                                                               \
        static constexpr bool value = true;                                                                            \
    };
LOCKSTEP_NUMBER(bool)
LOCKSTEP_NUMBER(char)
LOCKSTEP_NUMBER(signed char)
LOCKSTEP_NUMBER(unsigned char)
LOCKSTEP_NUMBER(short)
LOCKSTEP_NUMBER(unsigned short)
LOCKSTEP_NUMBER(int)
LOCKSTEP_NUMBER(unsigned int)
LOCKSTEP_NUMBER(long)
LOCKSTEP_NUMBER(unsigned long)
LOCKSTEP_NUMBER(long long)
LOCKSTEP_NUMBER(unsigned long long)
LOCKSTEP_NUMBER(float)
LOCKSTEP_NUMBER(double)
#undef LOCKSTEP_NUMBER

template <typename T, bool Chosen>
struct OnlyIf {};
template <typename T>
struct OnlyIf<T, true> {
    typedef T type;
};

// The type of an expression of two numbers: an integer counts as the other's type.
template <typename A, typename B>
struct Promoted {
    typedef A type;
};
template <>
struct Promoted<float, double> {
    typedef double type;
};

template <typename T>
struct __align__(2 * sizeof(T)) complex {
    typedef T value_type;
    T re, im;

    complex() = default;
    LOCKSTEP_API constexpr complex(const T &re) : re(re), im(T()) {}
    LOCKSTEP_API constexpr complex(const T &re, const T &im) : re(re), im(im) {}
    template <typename U>
    LOCKSTEP_API complex(const complex<U> &z) : re(T(z.re)), im(T(z.im)) {}
    LOCKSTEP_API complex &operator=(const T &value) {
        re = value;
        im = T();
        return *this;
    }
    LOCKSTEP_API constexpr T real() const { return re; }
    LOCKSTEP_API constexpr T imag() const { return im; }
    LOCKSTEP_API void real(T value) { re = value; }
    LOCKSTEP_API void imag(T value) { im = value; }
    template <typename U>
    LOCKSTEP_API complex &operator+=(const U &other) {
        return *this = *this + other;
    }
    template <typename U>
    LOCKSTEP_API complex &operator-=(const U &other) {
        return *this = *this - other;
    }
    template <typename U>
    LOCKSTEP_API complex &operator*=(const U &other) {
        return *this = *this * other;
    }
    template <typename U>
    LOCKSTEP_API complex &operator/=(const U &other) {
        return *this = *this / other;
    }
};

template <typename T>
LOCKSTEP_API complex<T> operator+(const complex<T> &z) {
    return z;
}
template <typename T>
LOCKSTEP_API complex<T> operator-(const complex<T> &z) {
    return complex<T>(-z.re, -z.im);
}

// An operator of two complex numbers, and of a complex and a real number in both orders.
#define LOCKSTEP_OPERATOR(sign, both, right, left)                                                                     \
    template <typename A, typename B>                                                                                  \
    LOCKSTEP_API complex<typename Promoted<A, B>::type> operator sign(const complex<A> &p, const complex<B> &q) {      \
        typedef typename Promoted<A, B>::type T;                                                                       \
        complex<T> a(p), b(q);                                                                                         \
        both                                                                                                           \
    }                                                                                                                  \
    template <typename A, typename B>                                                                                  \
    LOCKSTEP_API typename OnlyIf<complex<typename Promoted<A, B>::type>, IsNumber<B>::value>::type operator sign(      \
        const complex<A> &p, const B &q) {                                                                             \
        typedef typename Promoted<A, B>::type T;                                                                       \
        complex<T> a(p);                                                                                               \
        T b = T(q);                                                                                                    \
        right                                                                                                          \
    }                                                                                                                  \
    template <typename A, typename B>                                                                                  \
    LOCKSTEP_API typename OnlyIf<complex<typename Promoted<A, B>::type>, IsNumber<B>::value>::type operator sign(      \
        const B &p, const complex<A> &q) {                                                                             \
        typedef typename Promoted<A, B>::type T;                                                                       \
        T a = T(p);                                                                                                    \
        complex<T> b(q);                                                                                               \
        left                                                                                                           \
    }
// clang-format off
LOCKSTEP_OPERATOR(+, return complex<T>(a.re + b.re, a.im + b.im);, return complex<T>(a.re + b, a.im);
                  , return complex<T>(a + b.re, b.im);)
LOCKSTEP_OPERATOR(-, return complex<T>(a.re - b.re, a.im - b.im);, return complex<T>(a.re - b, a.im);
                  , return complex<T>(a - b.re, -b.im);)
LOCKSTEP_OPERATOR(*, return complex<T>(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
                  , return complex<T>(a.re * b, a.im * b);, return complex<T>(a * b.re, a * b.im);)
LOCKSTEP_OPERATOR(/, T size = (b.re < 0 ? -b.re : b.re) + (b.im < 0 ? -b.im : b.im); T once = T(1) / size;
                  T ax = a.re * once; T ay = a.im * once; T bx = b.re * once; T by = b.im * once;
                  T below = T(1) / (bx * bx + by * by);
                  return complex<T>((ax * bx + ay * by) * below, (ay * bx - ax * by) * below);
                  , return complex<T>(a.re / b, a.im / b);, return complex<T>(a) / b;)
// clang-format on
#undef LOCKSTEP_OPERATOR

template <typename A, typename B>
LOCKSTEP_API bool operator==(const complex<A> &a, const complex<B> &b) {
    return a.re == b.re && a.im == b.im;
}
template <typename A, typename B>
LOCKSTEP_API bool operator!=(const complex<A> &a, const complex<B> &b) {
    return !(a == b);
}
template <typename T>
LOCKSTEP_API bool operator==(const complex<T> &a, const T &b) {
    return a.re == b && a.im == T();
}
template <typename T>
LOCKSTEP_API bool operator!=(const complex<T> &a, const T &b) {
    return !(a == b);
}

template <typename T>
LOCKSTEP_API T real(const complex<T> &z) {
    return z.re;
}
template <typename T>
LOCKSTEP_API T imag(const complex<T> &z) {
    return z.im;
}
template <typename T>
LOCKSTEP_API T abs(const complex<T> &z) {
    return ::hypot(z.re, z.im);
}
template <typename T>
LOCKSTEP_API T arg(const complex<T> &z) {
    return ::atan2(z.im, z.re);
}
template <typename T>
LOCKSTEP_API T norm(const complex<T> &z) {
    return z.re * z.re + z.im * z.im;
}
template <typename T>
LOCKSTEP_API complex<T> conj(const complex<T> &z) {
    return complex<T>(z.re, -z.im);
}
template <typename T>
LOCKSTEP_API complex<T> polar(const T &size, const T &angle = T()) {
    return complex<T>(size * ::cos(angle), size * ::sin(angle));
}
template <typename T>
LOCKSTEP_API complex<T> exp(const complex<T> &z) {
    return polar(T(::exp(z.re)), z.im);
}
template <typename T>
LOCKSTEP_API complex<T> log(const complex<T> &z) {
    return complex<T>(::log(abs(z)), arg(z));
}
template <typename T>
LOCKSTEP_API complex<T> log10(const complex<T> &z) {
    return log(z) / T(2.30258509299404568402);
}
template <typename T>
LOCKSTEP_API complex<T> sqrt(const complex<T> &z) {
    T size = abs(z);
    if (size == T()) return complex<T>(T(), z.im);
    T root = ::sqrt((size + (z.re < 0 ? -z.re : z.re)) / T(2)), other = z.im / (T(2) * root);
    if (z.re >= 0) return complex<T>(root, other);
    return z.im < 0 ? complex<T>(-other, -root) : complex<T>(other, root);
}
template <typename T>
LOCKSTEP_API complex<T> pow(const complex<T> &z, const complex<T> &exponent) {
    return exp(log(z) * exponent);
}
template <typename T, typename U>
LOCKSTEP_API typename OnlyIf<complex<T>, IsNumber<U>::value>::type pow(const complex<T> &z, const U &exponent) {
    return exp(log(z) * T(exponent));
}
template <typename T>
LOCKSTEP_API complex<T> sin(const complex<T> &z) {
    return complex<T>(::sin(z.re) * ::cosh(z.im), ::cos(z.re) * ::sinh(z.im));
}
template <typename T>
LOCKSTEP_API complex<T> cos(const complex<T> &z) {
    return complex<T>(::cos(z.re) * ::cosh(z.im), -::sin(z.re) * ::sinh(z.im));
}
template <typename T>
LOCKSTEP_API complex<T> tan(const complex<T> &z) {
    return sin(z) / cos(z);
}
template <typename T>
LOCKSTEP_API complex<T> sinh(const complex<T> &z) {
    return complex<T>(::sinh(z.re) * ::cos(z.im), ::cosh(z.re) * ::sin(z.im));
}
template <typename T>
LOCKSTEP_API complex<T> cosh(const complex<T> &z) {
    return complex<T>(::cosh(z.re) * ::cos(z.im), ::sinh(z.re) * ::sin(z.im));
}
template <typename T>
LOCKSTEP_API complex<T> tanh(const complex<T> &z) {
    return sinh(z) / cosh(z);
}
}  // namespace lockstep

// The names in another library's namespace; calls find the functions by their arguments too.
#define LOCKSTEP_COMPLEX_NAMES                                                                                         \
    using lockstep::complex;                                                                                           \
    using lockstep::abs;                                                                                               \
    using lockstep::arg;                                                                                               \
    using lockstep::conj;                                                                                              \
    using lockstep::cos;                                                                                               \
    using lockstep::cosh;                                                                                              \
    using lockstep::exp;                                                                                               \
    using lockstep::imag;                                                                                              \
    using lockstep::log;                                                                                               \
    using lockstep::log10;                                                                                             \
    using lockstep::norm;                                                                                              \
    using lockstep::polar;                                                                                             \
    using lockstep::pow;                                                                                               \
    using lockstep::real;                                                                                              \
    using lockstep::sin;                                                                                               \
    using lockstep::sinh;                                                                                              \
    using lockstep::sqrt;                                                                                              \
    using lockstep::tan;                                                                                               \
    using lockstep::tanh;
