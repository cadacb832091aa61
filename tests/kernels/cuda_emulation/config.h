/*
 * config.h - the configuration of the build, with a CUDA back end
 */
#pragma once

#include_next "config.h"

#undef HAVE_CUDA
#define HAVE_CUDA 1
