# SPDX-License-Identifier: Apache-2.0
# One archive for users of the C++ library, instead of dozens that depend on each other.

# weir_link_closure(<target> <archives> <objects> <externals>) sets the variables to the static libraries of weir that
# the target needs, to their object libraries, and to the libraries of other projects.
function(weir_link_closure root archives_name objects_name externals_name)
  set(queue ${root})
  set(seen)
  set(archives)
  set(objects)
  set(externals)
  while(queue)
    list(POP_FRONT queue item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item IN_LIST seen OR item MATCHES "^::@")
      continue()
    endif()
    list(APPEND seen "${item}")
    if(item MATCHES "^\\$<TARGET_OBJECTS:")
      list(APPEND objects "${item}")
      continue()
    endif()
    if(NOT TARGET "${item}")
      message(FATAL_ERROR "${root} links ${item}, expected a target")
    endif()
    get_target_property(imported "${item}" IMPORTED)
    if(imported)
      list(APPEND externals "${item}")
      continue()
    endif()
    get_target_property(type "${item}" TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives "${item}")
    endif()
    get_target_property(needs "${item}" INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(APPEND queue ${needs})
    endif()
  endwhile()
  list(SORT externals)
  set(${archives_name} ${archives} PARENT_SCOPE)
  set(${objects_name} ${objects} PARENT_SCOPE)
  set(${externals_name} ${externals} PARENT_SCOPE)
endfunction()

# weir_bundle(<target> OUTPUT <archive> ARCHIVES <target>... OBJECTS <expression>...) adds a target that writes an
# archive of all objects.
function(weir_bundle name)
  cmake_parse_arguments(ARG "" "OUTPUT" "ARCHIVES;OBJECTS" ${ARGN})
  set(script "CREATE ${ARG_OUTPUT}\n")
  set(files)
  foreach(archive IN LISTS ARG_ARCHIVES)
    string(APPEND script "ADDLIB $<TARGET_FILE:${archive}>\n")
    list(APPEND files "$<TARGET_FILE:${archive}>")
  endforeach()
  foreach(objects IN LISTS ARG_OBJECTS)
    string(APPEND script "ADDMOD $<JOIN:${objects},\nADDMOD >\n")
    list(APPEND files "${objects}")
  endforeach()
  string(APPEND script "SAVE\nEND\n")
  set(input "${CMAKE_CURRENT_BINARY_DIR}/${name}.mri")
  file(GENERATE OUTPUT "${input}" CONTENT "${script}")
  add_custom_command(
    OUTPUT "${ARG_OUTPUT}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${ARG_OUTPUT}"
    COMMAND "${CMAKE_AR}" -M < "${input}"
    COMMAND "${CMAKE_RANLIB}" "${ARG_OUTPUT}"
    DEPENDS ${ARG_ARCHIVES} ${files} "${input}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${ARG_OUTPUT}")
endfunction()
