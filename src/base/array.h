/*
 * array.h - arrays that grow
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Make room for n elements in the array that *array_pointer points to, which may be NULL. Grows by
 * more than is needed, so that n calls copy O(n) elements. Returns false if memory is short; then
 * the array is unchanged.
 */
static inline bool array_reserve(void *array_pointer, size_t *capacity, size_t n,
				 size_t element_nbytes)
{
	const size_t new_capacity = n + n / 2 + 64;
	void *array;

	if (n <= *capacity)
		return true;
	memcpy(&array, array_pointer, sizeof array);
	array = reallocarray(array, new_capacity, element_nbytes);
	if (!array)
		return false;
	memcpy(array_pointer, &array, sizeof array);
	*capacity = new_capacity;
	return true;
}
