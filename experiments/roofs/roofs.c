/* What one core of this machine can do at most: bytes read in order, cache lines read at random,
 * multiplications. Each function returns the best rate of several rounds, per second. Compiled when
 * the experiment runs, for the processor that it runs on; nothing of it is in the package. */

#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

typedef uint64_t lanes __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(64)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile uint64_t sink;

static uint64_t fold(lanes x) {
    uint64_t sum = 0;
    for (int i = 0; i < 8; ++i) sum ^= x[i];
    return sum;
}

/* Bytes per second of reading `bytes` (a multiple of 512) in order, `repeats` times a round. */
double read_rate(const void *data, size_t bytes, int repeats, int rounds) {
    const lanes *rows = data;
    size_t count = bytes / sizeof(lanes);
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
        lanes sum[8] = {0};
        double start = now();
        for (int repeat = 0; repeat < repeats; ++repeat) {
            for (size_t i = 0; i < count; i += 8) {
#pragma GCC unroll 8
                for (int j = 0; j < 8; ++j) sum[j] ^= rows[i + j];
            }
            __asm__ volatile("" ::: "memory");
        }
        double rate = (double)repeats * bytes / (now() - start);
        for (int j = 0; j < 8; ++j) sink ^= fold(sum[j]);
        if (rate > best) best = rate;
    }
    return best;
}

/* Lines of 64 bytes per second, read in the order of `order`: independent of each other. */
double line_rate(const void *data, const uint32_t *order, size_t count, int rounds) {
    const lanes *rows = data;
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
        lanes sum = {0};
        double start = now();
        for (size_t i = 0; i < count; ++i) sum ^= rows[order[i]];
        double rate = count / (now() - start);
        sink ^= fold(sum);
        if (rate > best) best = rate;
    }
    return best;
}

/* Twelve sums that stay in registers: enough for units of four cycles and three at a time. */
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define SUMS 12

/* A function that repeats STEP on twelve sums of TYPE; LANES results each. */
#define RATE(NAME, TYPE, LANES, X, STEP, LAST)                                  \
    double NAME(int repeats, int rounds) {                                      \
        double best = 0;                                                        \
        TYPE x = X;                                                             \
        TYPE s0 = x, s1 = x, s2 = x, s3 = x, s4 = x, s5 = x;                    \
        TYPE s6 = x, s7 = x, s8 = x, s9 = x, s10 = x, s11 = x;                  \
        for (int round = 0; round < rounds; ++round) {                          \
            double start = now();                                               \
            for (int repeat = 0; repeat < repeats; ++repeat) { EACH(STEP) }     \
            double rate = (double)SUMS * LANES * repeats / (now() - start);     \
            if (rate > best) best = rate;                                       \
        }                                                                       \
        EACH(LAST)                                                              \
        return best;                                                            \
    }

/* The empty statements keep the compiler from leaving a step out, or from fusing it. */
#define KEEP(V) __asm__ volatile("" : "+v"(V));
#define LAST_LANE(J) sink ^= (uint64_t)s##J[0];

/* Products of bytes per second, summed to 32 bits (dpbusd); 0 where the processor has none. */
#if defined(__AVX512VNNI__)
#define BYTE_STEP(J) s##J = _mm512_dpbusd_epi32(s##J, x, x); KEEP(s##J)
RATE(byte_product_rate, __m512i, 64, _mm512_set1_epi8((char)(now() > 0)), BYTE_STEP, LAST_LANE)
#else
double byte_product_rate(int repeats, int rounds) {
    (void)repeats, (void)rounds;
    return 0;
}
#endif

/* Multiplications and additions of float64 per second, not fused, as canonical scores need them. */
#define DOUBLE_STEP(J) { doubles product = x * x; KEEP(product) s##J += product; KEEP(s##J) }
RATE(double_rate, doubles, 8, ((doubles){0} + 1.0 / now()), DOUBLE_STEP, LAST_LANE)

/* Fused multiplications and additions of float32 per second: the roof of a matrix product. */
#define FLOAT_STEP(J) s##J = s##J * x + x; KEEP(s##J)
RATE(float_rate, floats, 16, ((floats){0} + (float)(1.0 / now())), FLOAT_STEP, LAST_LANE)
