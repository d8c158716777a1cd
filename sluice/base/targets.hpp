// Included before Highway by every kernel source: which of its targets we build. Three on x86-64
// keep the build short; SSSE3 and SSE4 gain little over plain C++ here, and the sets beyond
// AVX-512's first (VBMI2 and the like) have nothing that the kernels use.
#pragma once

// Also builds the target without vectors if the baseline has some (arm64): `portable` always
// exists.
#define HWY_COMPILE_ALL_ATTAINABLE

// A build may leave out more of them (see cmake/SluiceFlags.cmake).
#ifndef SLUICE_OMITTED_TARGETS
#define SLUICE_OMITTED_TARGETS 0
#endif

#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   SLUICE_OMITTED_TARGETS)

// True while compiling the target without vectors, where kernels call their portable form.
#define SLUICE_PORTABLE_TARGET (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128)
