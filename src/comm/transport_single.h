/*
 * transport_single - a job of one process, and whether that is what was meant
 */
#pragma once

struct transport;

/* A transport_open_fn (comm.h). argument: not looked at. */
int transport_single_open(void *argument, struct transport **ret_transport);

/*
 * Ranks that were started by something else than what their transport knows all take themselves
 * for rank 0 of 1, and each would sort everything. What starts ranks tells them in the environment
 * how many there are: if that is more than `size`, it is said, with the remedy, and -EINVAL is
 * returned. get: as getenv does; a front end's.
 */
int transport_single_check_launcher(unsigned size, char *(*get_env)(const char *name));
