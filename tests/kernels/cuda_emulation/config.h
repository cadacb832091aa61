/*
 * config - the build's own, but that there is a CUDA back end to choose
 */
#pragma once

#include_next "config.h"

#undef HAVE_CUDA
#define HAVE_CUDA 1
