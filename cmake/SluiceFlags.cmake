# Warnings are errors, releases are hardened, and nothing is tuned to the building machine: wider
# instruction sets are chosen at run time.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(sluice_flags INTERFACE
    -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection>)
  target_link_options(sluice_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE
    -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
  # Kernels are one source for every instruction set, and take longest to compile. The address
  # sanitizer sees them with AVX2 and without vectors; threads never meet inside them.
  if(SLUICE_SANITIZE STREQUAL "thread")
    target_compile_definitions(sluice_flags INTERFACE "SLUICE_OMITTED_TARGETS=(HWY_AVX2|HWY_AVX3)")
  else()
    target_compile_definitions(sluice_flags INTERFACE SLUICE_OMITTED_TARGETS=HWY_AVX3)
  endif()
endif()
