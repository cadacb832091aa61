/*
 * header_in_c - gsort.h compiles as C99
 */
#include "tests/library/header.h"

int main(void)
{
	return use_header();
}
