/*
 * delta_pack - sorted codes as the differences of neighbours, in as few bits as these need
 *
 * n codes of 4, 8 or 16 bytes are cut into miniblocks of 256, the last of which may be shorter.
 * A miniblock has the number of bits of its largest difference, and is independent of all others:
 * it can be encoded and decoded by whoever likes, a thread block of a GPU say, as soon as the sum
 * of the widths before it says where it is.
 *
 *	bases     the first code of each miniblock, as it is
 *	widths    one byte for each: the bits of a difference
 *	          zeros, to a multiple of 32 bytes
 *	packed    miniblock 0: 32 bytes x its width
 *	          miniblock 1, ...
 *	          the last: for each 8 codes that are begun, as many bytes as its width
 *	          16 zeros or more, so that the whole is a multiple of 32 bytes
 *
 * Difference i of a miniblock is code[i] - code[i - 1], difference 0 is 0, and those behind the end
 * of the last miniblock are. Their bits follow each other, the lowest first, in bytes of which the
 * lowest bits are filled first. So 8 differences take as many bytes as a difference has bits, and
 * every eighth begins with a byte; with the zeros at the end, any of up to 56 bits is had with one
 * load of 8 bytes, a shift and a mask, and any of up to 120 bits with one load of 16. Wider ones
 * than that are given all the bits of the code.
 *
 * Everything is little-endian. The format says nothing about order: codes that are not sorted come
 * back as they were, too, since differences wrap, but take all their bits.
 *
 * Why no more than this: for random keys, whose differences are distributed exponentially, the
 * width of the largest of 256 is 2.6 bits more than the mean's, and of these an optimal code (Rice)
 * would save 1.5, a thirtieth of a u64's bits, for a loop over bits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Encode n codes of key_nbytes, an array aligned for them, into at most `capacity`
 * bytes. Returns how many it took, or 0 if that would be more than there are; they then hold
 * anything.
 */
size_t delta_encode(const void *keys, size_t n, uint32_t key_nbytes, void *packed, size_t capacity);

/*
 * Back to n codes. Returns 0, or -EBADMSG when `stored` is not what any n codes are encoded as; the
 * codes may then hold anything. Reads and writes nothing but the two ranges, whatever they hold.
 */
int delta_decode(const void *packed, size_t packed_nbytes, void *keys, size_t n,
		 uint32_t key_nbytes);
