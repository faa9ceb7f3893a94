/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Repeatable random numbers (SplitMix64, public domain algorithm of Steele, Lea and Flood). */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_draw(struct sim_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Independent of all others with another @seed or @number. */
static inline struct sim_rng sim_rng_of(uint64_t seed, uint64_t number)
{
	struct sim_rng rng = { seed };

	rng.state = sim_draw(&rng) ^ number * 0xd1342543de82ef95ull;
	return rng;
}

/* Return: 0 to @n - 1; 0 if @n is 0. */
static inline uint32_t sim_below(struct sim_rng *rng, uint32_t n)
{
	return (uint32_t)((sim_draw(rng) >> 32) * n >> 32);
}

/* True in one of @n calls. */
static inline bool sim_one_in(struct sim_rng *rng, uint32_t n)
{
	return !sim_below(rng, n);
}

/* Return: @min to @max; each power of two is as frequent as the next one. @min is not 0. */
static inline uint64_t sim_scale(struct sim_rng *rng, uint64_t min, uint64_t max)
{
	unsigned int low = 63 - (unsigned int)__builtin_clzll(min);
	unsigned int high = 63 - (unsigned int)__builtin_clzll(max);
	uint64_t base = 1ull << (low + sim_below(rng, high - low + 1));
	uint64_t value = base + sim_draw(rng) % base;

	return value < min ? min : value > max ? max : value;
}

/* Return: an index below @num, each as often as its weight says. Not all weights are 0. */
static inline unsigned int sim_draw_index(struct sim_rng *rng, const uint32_t *weights,
					  unsigned int num)
{
	uint32_t sum = 0, at;
	unsigned int i;

	for (i = 0; i < num; i++)
		sum += weights[i];
	at = sim_below(rng, sum);
	for (i = 0; at >= weights[i]; i++)
		at -= weights[i];
	return i;
}

#endif /* SIM_RNG_H */
