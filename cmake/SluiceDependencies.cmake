# The libraries that libsluice is linked with. Read by our own build and, where libsluice is static,
# by find_package(Sluice) in the builds of others: what is found here must be found the same there.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
find_dependency(fmt)
find_dependency(simdjson)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

# HighwayHash brings neither a CMake package nor a pkg-config file.
if(NOT TARGET Sluice::highwayhash)
  find_library(SLUICE_HIGHWAYHASH_LIBRARY highwayhash REQUIRED)
  mark_as_advanced(SLUICE_HIGHWAYHASH_LIBRARY)
  add_library(Sluice::highwayhash UNKNOWN IMPORTED)
  set_target_properties(Sluice::highwayhash PROPERTIES
    IMPORTED_LOCATION "${SLUICE_HIGHWAYHASH_LIBRARY}")
endif()

# RE2 is linked only: its -pthread is not for every source.
set(SLUICE_LIBRARIES PkgConfig::HWY PkgConfig::XXHASH PkgConfig::ZSTD PkgConfig::ZLIB Sluice::highwayhash
  simdjson::simdjson fmt::fmt $<LINK_ONLY:PkgConfig::RE2>)
