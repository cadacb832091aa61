/*
 * key_encoding_plan - how keys that are all of a record become a code (see key_encoding_plan.h)
 *
 * The places of the bytes are worked out one by one. What that amounts to is then looked at: bytes
 * that stay where they are, or stand in the opposite order, need no moves; others go the same way
 * as one before them, if they can.
 */
#include "src/record/key_encoding_plan.h"

#include <assert.h>

#include "src/record/layout_ops.h"

enum { MOST_NBYTES = 16 };

/* One key may be in any order that a code can have; several are compared bit by bit. */
static bool has_code(const struct key *key, uint32_t n_keys)
{
	return key_has_code(key) && (n_keys == 1 || !key->numeric);
}

bool code_map_covers(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes)
{
	uint32_t seen = 0;
	uint64_t nbytes = 0;

	if (record_nbytes < 1 || record_nbytes > MOST_NBYTES)
		return false;
	for (uint32_t i = 0; i < n_keys && nbytes <= record_nbytes; i++) {
		if (keys[i].nbytes > record_nbytes ||
		    keys[i].offset > record_nbytes - keys[i].nbytes || !has_code(&keys[i], n_keys))
			return false;
		seen |= ((UINT32_C(1) << keys[i].nbytes) - 1) << keys[i].offset;
		nbytes += keys[i].nbytes;
	}
	return nbytes == record_nbytes && seen == (UINT32_C(1) << record_nbytes) - 1;
}

static struct mask128 split(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

/* Keys, by the places of their bytes: places[i], of byte i of the bits, in the record. */
static void find_places(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes,
			uint8_t *places)
{
	uint32_t end = (uint32_t)record_nbytes;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];

		end -= key->nbytes;
		for (uint32_t j = 0; j < key->nbytes; j++)
			places[end + j] = (uint8_t)(key->offset +
						    (key->big_endian ? key->nbytes - 1 - j : j));
	}
}

/* Is each byte where it should be, or, if swapped, all of them in the opposite order? */
static bool stands(const uint8_t *places, uint32_t n, bool swapped)
{
	for (uint32_t i = 0; i < n; i++)
		if (places[i] != (swapped ? n - 1 - i : i))
			return false;
	return true;
}

/* The move that takes a byte of the value to a byte of the other one, and no others yet. */
static struct code_move move_byte(uint32_t from, uint32_t to, uint32_t word_nbytes, bool swap)
{
	const uint32_t at = from % word_nbytes, to_at = to % word_nbytes;
	const uint32_t turned = swap ? word_nbytes - 1 - at : at;

	return (struct code_move){
		.mask = UINT64_C(0xff) << 8 * to_at,
		.from = (uint8_t)(from / word_nbytes),
		.swap = swap,
		.rotate = (uint8_t)(8 * ((to_at + word_nbytes - turned) % word_nbytes)),
		.to = (uint8_t)(to / word_nbytes),
	};
}

static bool goes_along(const struct code_move *move, const struct code_move *other)
{
	return move->from == other->from && move->to == other->to && move->swap == other->swap &&
	       move->rotate == other->rotate;
}

static uint8_t add_move(struct code_move *moves, uint8_t n, struct code_move move)
{
	for (uint8_t i = 0; i < n; i++) {
		if (goes_along(&moves[i], &move)) {
			moves[i].mask |= move.mask;
			return n;
		}
	}
	assert(n < CODE_MOST_MOVES);
	moves[n] = move;
	return (uint8_t)(n + 1);
}

/* Bytes of a key that stands most significant byte first go turned around, and so in one move. */
static void make_moves(struct code_map *map, const struct key *keys, uint32_t n_keys,
		       const uint8_t *places)
{
	const uint32_t word_nbytes = map->element_nbytes < 8 ? map->element_nbytes : 8;
	uint32_t end = map->record_nbytes;
	uint8_t n_back = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		end -= keys[i].nbytes;
		for (uint32_t at = end; at < end + keys[i].nbytes; at++) {
			const bool swap = keys[i].big_endian;

			map->n_moves = add_move(map->moves, map->n_moves,
						move_byte(places[at], at, word_nbytes, swap));
			n_back = add_move(map->back, n_back,
					  move_byte(at, places[at], word_nbytes, swap));
		}
	}
	assert(n_back == map->n_moves);
}

static void add_fold(struct code_map *map, uint128_t sign, uint32_t nbytes)
{
	const uint8_t n_below = (uint8_t)(8 * nbytes - 1);
	uint8_t i = 0;

	while (i < map->n_folds && map->folds[i].n_below != n_below)
		i++;
	if (i == map->n_folds)
		map->folds[map->n_folds++].n_below = n_below;
	map->folds[i].signs.lo |= (uint64_t)sign;
	map->folds[i].signs.hi |= (uint64_t)(sign >> 64);
}

/* Signs and directions: what is done to the bits. */
static void make_bits(struct code_map *map, const struct key *keys, uint32_t n_keys)
{
	uint32_t end = map->record_nbytes;
	uint128_t flip = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];
		const uint128_t sign = (uint128_t)1 << (8 * end - 1);

		end -= key->nbytes;
		if (key_has_sign(key))
			flip ^= sign;
		if (key->descending)
			flip ^= sign | (sign - ((uint128_t)1 << 8 * end));
		if (key_is_float(key))
			add_fold(map, sign, key->nbytes);
	}
	map->flip = split(flip);
}

struct code_map code_map_make(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes)
{
	const uint32_t n = (uint32_t)record_nbytes;
	struct code_map map = {
		.record_nbytes = (uint8_t)n,
		.element_nbytes = n <= 4 ? 4 :
				  n <= 8 ? 8 :
					   16,
	};
	uint8_t places[MOST_NBYTES];

	if (n_keys == 1)
		return key_code_map(&keys[0]);

	find_places(keys, n_keys, record_nbytes, places);
	map.swap = n > 1 && stands(places, n, true);
	if (!map.swap && !stands(places, n, false))
		make_moves(&map, keys, n_keys, places);
	make_bits(&map, keys, n_keys);
	return map;
}
