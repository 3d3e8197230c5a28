/* How many deliveries took how long: steps of 1 us to 1 s, more counts as 1 s. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <stdint.h>
#include <string.h>

#define LATENCY_STEPS 1000000

struct latency {
    uint32_t steps[LATENCY_STEPS];
    uint64_t samples;
};

static inline void latency_add(struct latency *all, uint64_t ns)
{
    uint64_t us = ns / 1000;
    all->steps[us < LATENCY_STEPS ? us : LATENCY_STEPS - 1]++;
    all->samples++;
}

/* The smallest time that `share` of the deliveries did not exceed, in us. */
static inline uint64_t latency_at(const struct latency *all, double share)
{
    uint64_t wanted = (uint64_t)((double)all->samples * share), seen = 0;
    for (uint64_t us = 0; us < LATENCY_STEPS; us++)
        if ((seen += all->steps[us]) > wanted)
            return us;
    return LATENCY_STEPS;
}

static inline void latency_clear(struct latency *all)
{
    memset(all, 0, sizeof *all);
}

#endif
