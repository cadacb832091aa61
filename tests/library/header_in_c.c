/*
 * header_in_c - gsort.h is C99
 */
#include "tests/library/header.h"

int main(void)
{
	return use_header();
}
