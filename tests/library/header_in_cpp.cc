/*
 * header_in_cpp - gsort.h is C++, and its functions are C's
 */
#include "tests/library/header.h"

int main()
{
	return use_header();
}
