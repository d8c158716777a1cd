# sluice_static: the command without shared libraries, for any Linux of this architecture. It links the
# objects that the command is made of a second time, but not those that talk to servers: to look up a name,
# libc needs its shared libraries. Where Debian has no static library, it is made from
# Debian's source of the installed version, which needs the network.

# sluice_library_files(RESULT ITEM...): the files of the libraries that these items of
# target_link_libraries bring.
function(sluice_library_files result)
  set(files)
  foreach(item IN LISTS ARGN)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(TARGET "${item}")
      get_target_property(imported ${item} IMPORTED)
      get_target_property(type ${item} TYPE)
      if(imported AND NOT type STREQUAL "INTERFACE_LIBRARY")
        get_target_property(file ${item} LOCATION)
        list(APPEND files ${file})
      endif()
      get_target_property(further ${item} INTERFACE_LINK_LIBRARIES)
      if(imported AND further)
        sluice_library_files(more ${further})
        list(APPEND files ${more})
      endif()
    elseif(IS_ABSOLUTE "${item}")
      list(APPEND files ${item})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES files)
  set(${result} ${files} PARENT_SCOPE)
endfunction()

get_target_property(library_items sluice LINK_LIBRARIES)
get_target_property(command_items sluice_cli LINK_LIBRARIES)
list(REMOVE_ITEM command_items sluice_cli_servers)
list(APPEND command_items sluice_cli_no_servers)
sluice_library_files(library_files ${library_items} ${command_items})
# libX.so.9.1.0 as libX.so, which the development package has.
list(TRANSFORM library_files REPLACE "\\.so[.0-9]*$" ".so")
# Which packages libsluice-dev depends on, and whose notices are to be passed on; and those of the command.
list(JOIN library_files "\n" lines)
file(WRITE ${PROJECT_BINARY_DIR}/libraries.txt "${lines}\n")
list(JOIN SLUICE_CLIENT_LIBRARIES "\n" lines)
file(WRITE ${PROJECT_BINARY_DIR}/client-libraries.txt "${lines}\n")

set(static_folder ${PROJECT_BINARY_DIR}/static-libraries)
add_custom_command(OUTPUT ${static_folder}/made
  COMMAND ${PROJECT_SOURCE_DIR}/packaging/static-libraries ${static_folder} ${library_files}
  COMMAND ${CMAKE_COMMAND} -E touch ${static_folder}/made
  DEPENDS packaging/static-libraries USES_TERMINAL VERBATIM)
add_custom_target(sluice_static_libraries DEPENDS ${static_folder}/made)

add_executable(sluice_static EXCLUDE_FROM_ALL $<TARGET_OBJECTS:sluice_cli>)
set_target_properties(sluice_static PROPERTIES
  OUTPUT_NAME sluice-static LINKER_LANGUAGE CXX LINK_DEPENDS ${static_folder}/made
  # glibc's start of a static program fails if it names a folder of shared libraries.
  SKIP_BUILD_RPATH ON)
add_dependencies(sluice_static sluice_static_libraries)
# The linker warns of functions that need the shared libc all the same, such as getpwnam.
target_link_options(sluice_static PRIVATE
  -static-pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--fatal-warnings)
target_link_directories(sluice_static PRIVATE ${static_folder})
# Our libraries by file: as targets they would bring their shared libraries.
set(parts)
foreach(item IN LISTS command_items)
  if(TARGET "${item}")
    get_target_property(type ${item} TYPE)
    get_target_property(imported ${item} IMPORTED)
    if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
      add_dependencies(sluice_static ${item})
      list(APPEND parts $<TARGET_FILE:${item}>)
      set_property(TARGET sluice_static APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:${item}>)
    endif()
  endif()
endforeach()
foreach(file IN LISTS library_files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^lib" "-l" name ${name})
  list(APPEND parts ${name})
endforeach()
target_link_libraries(sluice_static PRIVATE -Wl,--start-group ${parts} -Wl,--end-group)
