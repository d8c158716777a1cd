// The server's own header, as the sources of the module see it. module.cpp defines what it declares.
#pragma once

#ifndef SLUICE_DEFINES_MODULE_API
#define REDISMODULE_API extern
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wconversion"
#include <redismodule.h>
#pragma GCC diagnostic pop
