# What `cmake --install` puts where: the command with its man page and completions (component `command`),
# the library with its public headers, and what CMake and pkg-config need to find it (`library`), and
# the documents of both (`documents`). packaging/make makes a Debian package of each of the first two.
include(CMakePackageConfigHelpers)

# --- Headers: what sluice/sluice.hpp includes, and what those include in turn.
function(sluice_public_headers result)
  set(found)
  set(pending sluice/sluice.hpp)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    # A changed header may include others: look again.
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"sluice/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" included "${line}")
      list(APPEND pending ${included})
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

sluice_public_headers(headers)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT library)
endforeach()

# --- The library and the command
set_target_properties(sluice PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(sluice_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
endif()
install(TARGETS sluice EXPORT SluiceTargets COMPONENT library)
install(TARGETS sluice_cli COMPONENT command)

# --- find_package(Sluice)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)
install(EXPORT SluiceTargets NAMESPACE Sluice:: DESTINATION ${cmake_folder} COMPONENT library)
configure_package_config_file(cmake/SluiceConfig.cmake.in SluiceConfig.cmake
  INSTALL_DESTINATION ${cmake_folder})
write_basic_package_version_file(SluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/SluiceConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/SluiceConfigVersion.cmake cmake/SluiceDependencies.cmake
  DESTINATION ${cmake_folder} COMPONENT library)

# --- pkg-config. A static libsluice leaves its libraries to whoever links it, with --static or not.
if(BUILD_SHARED_LIBS)
  set(SLUICE_PC_REQUIRES Requires.private)
  set(SLUICE_PC_LIBS "")
else()
  set(SLUICE_PC_REQUIRES Requires)
  set(SLUICE_PC_LIBS " -lhighwayhash")
endif()
file(RELATIVE_PATH SLUICE_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sluice.pc.in sluice.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sluice.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# --- Man page, completions, licence
install(FILES apps/cli/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
install(FILES apps/cli/completions/sluice.bash RENAME sluice
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
install(FILES apps/cli/completions/_sluice
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
install(FILES apps/cli/completions/sluice.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sluice
  COMPONENT documents)
