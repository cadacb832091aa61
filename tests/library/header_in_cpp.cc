/*
 * header_in_cpp - gsort.h compiles as C++ and its functions have C linkage
 */
#include "tests/library/header.h"

int main()
{
	return use_header();
}
