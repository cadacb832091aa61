/*
 * exit_status.h - exit statuses of the programs
 */
#pragma once

/* Disorder is the result of a check; trouble is any error. */
enum exit_status { EXIT_SORTED = 0, EXIT_DISORDER = 1, EXIT_TROUBLE = 2 };
