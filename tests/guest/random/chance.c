// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "random.h"

struct chance chance_of(uint64_t seed, uint64_t stream)
{
	struct chance chance = { seed * 0x9e3779b97f4a7c15u + stream * 0xd1342543de82ef95u };

	draw(&chance);
	return chance;
}

uint64_t draw(struct chance *chance)
{
	uint64_t z = chance->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t below(struct chance *chance, uint32_t n)
{
	return n ? draw(chance) % n : 0;
}

bool one_in(struct chance *chance, uint32_t n)
{
	return !below(chance, n);
}

uint64_t odd_number(struct chance *chance)
{
	uint64_t number;

	switch (below(chance, 6)) {
	case 0:
		return 0;
	case 1:
		return below(chance, 64);
	case 2:
		return draw(chance);
	case 3:
		return -(uint64_t)below(chance, 64);
	default:
		number = 1ull << below(chance, 64);
		return number + below(chance, 3) - 1;
	}
}

uint32_t mostly_below(struct chance *chance, uint32_t n)
{
	return one_in(chance, 12) ? (uint32_t)odd_number(chance) : below(chance, n);
}
