/*
 * exit_status.h - what the programs leave with
 */
#pragma once

/* The largest code that they leave with: 1 means "disorder found" to -c, 2 everything else. */
enum exit_status { EXIT_SORTED = 0, EXIT_DISORDER = 1, EXIT_TROUBLE = 2 };
