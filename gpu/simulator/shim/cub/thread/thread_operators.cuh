// What CUB's collectives combine values by.
#pragma once

namespace cub {

struct Equality {
    template <typename T>
    LOCKSTEP_API bool operator()(const T &a, const T &b) const {
        return a == b;
    }
};
struct Inequality {
    template <typename T>
    LOCKSTEP_API bool operator()(const T &a, const T &b) const {
        return !(a == b);
    }
};
struct Difference {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return a - b;
    }
};
struct Sum {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return a + b;
    }
};
struct Max {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return b > a ? b : a;
    }
};
struct Min {
    template <typename T>
    LOCKSTEP_API T operator()(const T &a, const T &b) const {
        return b < a ? b : a;
    }
};
template <typename Key, typename Value>
struct KeyValuePair {
    typedef Key KeyType;
    typedef Value ValueType;
    Key key;
    Value value;
    KeyValuePair() = default;
    LOCKSTEP_API KeyValuePair(Key key, Value value) : key(key), value(value) {}
};

// Of two pairs the one with the larger, or the smaller, value; of equal ones the one with the smaller key.
struct ArgMax {
    template <typename Key, typename Value>
    LOCKSTEP_API KeyValuePair<Key, Value> operator()(const KeyValuePair<Key, Value> &a,
                                                     const KeyValuePair<Key, Value> &b) const {
        return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <typename Key, typename Value>
    LOCKSTEP_API KeyValuePair<Key, Value> operator()(const KeyValuePair<Key, Value> &a,
                                                     const KeyValuePair<Key, Value> &b) const {
        return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};

} // namespace cub
