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

enum { MAX_KEY_NBYTES = 16 };

/* One key may be in any order that a code can have; several are compared bit by bit. */
static bool is_encodable(const struct key *key, uint32_t n_keys)
{
	return key_is_encodable(key) && (n_keys == 1 || !key->numeric);
}

bool key_encoding_covers(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes)
{
	uint32_t byte_mask = 0;
	uint64_t nbytes = 0;

	if (record_nbytes < 1 || record_nbytes > MAX_KEY_NBYTES)
		return false;
	for (uint32_t i = 0; i < n_keys && nbytes <= record_nbytes; i++) {
		if (keys[i].nbytes > record_nbytes ||
		    keys[i].offset > record_nbytes - keys[i].nbytes ||
		    !is_encodable(&keys[i], n_keys))
			return false;
		byte_mask |= ((UINT32_C(1) << keys[i].nbytes) - 1) << keys[i].offset;
		nbytes += keys[i].nbytes;
	}
	return nbytes == record_nbytes && byte_mask == (UINT32_C(1) << record_nbytes) - 1;
}

static struct mask128 split_mask(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

/* Keys, by the places of their bytes: places[i], of byte i of the bits, in the record. */
static void find_byte_positions(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes,
				uint8_t *positions)
{
	uint32_t end = (uint32_t)record_nbytes;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];

		end -= key->nbytes;
		for (uint32_t j = 0; j < key->nbytes; j++)
			positions[end + j] = (uint8_t)(key->offset +
						       (key->big_endian ? key->nbytes - 1 - j : j));
	}
}

/* Is each byte where it should be, or, if swapped, all of them in the opposite order? */
static bool is_in_place(const uint8_t *positions, uint32_t n, bool swapped)
{
	for (uint32_t i = 0; i < n; i++)
		if (positions[i] != (swapped ? n - 1 - i : i))
			return false;
	return true;
}

/* The move that takes a byte of the value to a byte of the other one, and no others yet. */
static struct byte_move move_byte(uint32_t from, uint32_t to, uint32_t word_nbytes, bool swap)
{
	const uint32_t from_byte = from % word_nbytes, to_byte = to % word_nbytes;
	const uint32_t swapped_byte = swap ? word_nbytes - 1 - from_byte : from_byte;

	return (struct byte_move){
		.mask = UINT64_C(0xff) << 8 * to_byte,
		.from = (uint8_t)(from / word_nbytes),
		.swap = swap,
		.rotate = (uint8_t)(8 * ((to_byte + word_nbytes - swapped_byte) % word_nbytes)),
		.to = (uint8_t)(to / word_nbytes),
	};
}

static bool is_same_move(const struct byte_move *move, const struct byte_move *other_move)
{
	return move->from == other_move->from && move->to == other_move->to &&
	       move->swap == other_move->swap && move->rotate == other_move->rotate;
}

static uint8_t add_move(struct byte_move *moves, uint8_t n, struct byte_move move)
{
	for (uint8_t i = 0; i < n; i++) {
		if (is_same_move(&moves[i], &move)) {
			moves[i].mask |= move.mask;
			return n;
		}
	}
	assert(n < KEY_ENCODING_MAX_MOVES);
	moves[n] = move;
	return (uint8_t)(n + 1);
}

/* Bytes of a key that stands most significant byte first go turned around, and so in one move. */
static void make_moves(struct key_encoding *encoding, const struct key *keys, uint32_t n_keys,
		       const uint8_t *positions)
{
	const uint32_t word_nbytes = encoding->element_nbytes < 8 ? encoding->element_nbytes : 8;
	uint32_t end = encoding->record_nbytes;
	uint8_t n_inverse = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		end -= keys[i].nbytes;
		for (uint32_t byte = end; byte < end + keys[i].nbytes; byte++) {
			const bool swap = keys[i].big_endian;

			encoding->n_moves =
				add_move(encoding->moves, encoding->n_moves,
					 move_byte(positions[byte], byte, word_nbytes, swap));
			n_inverse = add_move(encoding->back, n_inverse,
					     move_byte(byte, positions[byte], word_nbytes, swap));
		}
	}
	assert(n_inverse == encoding->n_moves);
}

static void add_float(struct key_encoding *encoding, uint128_t sign, uint32_t nbytes)
{
	const uint8_t n_magnitude_bits = (uint8_t)(8 * nbytes - 1);
	uint8_t i = 0;

	while (i < encoding->n_floats && encoding->floats[i].n_magnitude_bits != n_magnitude_bits)
		i++;
	if (i == encoding->n_floats)
		encoding->floats[encoding->n_floats++].n_magnitude_bits = n_magnitude_bits;
	encoding->floats[i].signs.lo |= (uint64_t)sign;
	encoding->floats[i].signs.hi |= (uint64_t)(sign >> 64);
}

/* Signs and directions: what is done to the bits. */
static void make_masks(struct key_encoding *encoding, const struct key *keys, uint32_t n_keys)
{
	uint32_t end = encoding->record_nbytes;
	uint128_t xor_mask = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];
		const uint128_t sign = (uint128_t)1 << (8 * end - 1);

		end -= key->nbytes;
		if (key_has_sign(key))
			xor_mask ^= sign;
		if (key->descending)
			xor_mask ^= sign | (sign - ((uint128_t)1 << 8 * end));
		if (key_is_float(key))
			add_float(encoding, sign, key->nbytes);
	}
	encoding->xor_mask = split_mask(xor_mask);
}

struct key_encoding key_encoding_make(const struct key *keys, uint32_t n_keys,
				      uint64_t record_nbytes)
{
	const uint32_t n = (uint32_t)record_nbytes;
	struct key_encoding encoding = {
		.record_nbytes = (uint8_t)n,
		.element_nbytes = n <= 4 ? 4 :
				  n <= 8 ? 8 :
					   16,
	};
	uint8_t positions[MAX_KEY_NBYTES];

	if (n_keys == 1)
		return key_get_encoding(&keys[0]);

	find_byte_positions(keys, n_keys, record_nbytes, positions);
	encoding.swap = n > 1 && is_in_place(positions, n, true);
	if (!encoding.swap && !is_in_place(positions, n, false))
		make_moves(&encoding, keys, n_keys, positions);
	make_masks(&encoding, keys, n_keys);
	return encoding;
}
