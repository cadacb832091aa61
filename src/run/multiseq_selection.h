/*
 * multiseq_selection - a place in several sorted sequences, as if they were merged
 *
 * Wanted is the last place before which there are at most so many items, in an order in which
 * nobody has put them. One of the places that it can be is drawn by lot; by a binary search in each
 * sequence its owner finds how many come before it, and so which places it then can still be. Some
 * three dozen draws find it among millions (quickselect: Hoare, "Algorithm 65: Find", CACM 1961).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct selection {
	uint32_t n;
	uint64_t *lo, *hi;  /* n each: the place that is wanted is one of these */
	uint64_t *n_before; /* n: places before the one that was drawn, set by whoever drew it */
	uint64_t random_state;
};

/* Of n sequences, all still empty. Returns 0, or -ENOMEM after a message; close in both cases. */
int selection_open(uint32_t n, struct selection *ret_selection);
void selection_close(struct selection *selection);

/* Draw one of the places that are left; false: there is none. */
bool selection_draw(struct selection *selection, uint32_t *ret_sequence, uint64_t *ret_position);

/* The one that is wanted is before the one that was drawn; or it is that one, or behind it. */
void selection_set_upper(struct selection *selection);
void selection_set_lower(struct selection *selection);
