/*
 * warm_memory - give every program of a benchmark the same free memory to start with
 *
 * A virtual machine hands free pages back to its host after a few seconds (free page reporting).
 * Whoever touches them next waits for the host, several times longer than the page takes to be
 * cleared; whoever comes after that finds them warm. Among programs that take turns the first that
 * needs much memory would always pay for the others.
 */
#pragma once

#include <stdint.h>

/*
 * Touch and free nbytes, but no more than half of what is available. Done by a process of its own,
 * as the kernel charges a program with the largest size of the process that started it. It is a
 * courtesy: what fails is left.
 */
void warm_memory(uint64_t nbytes);
