# SPDX-License-Identifier: Apache-2.0
# The ways to declare a target. Folders never glob: a file that is not listed does not exist.

option(WEIR_UNITY "Compile several sources at once, with precompiled headers" ON)
# So that the same objects are linked into programs and into Python's extension module. Programs bind calls among the
# sources of a library directly, as without it.
option(WEIR_PIC "Compile position-independent libraries" ON)
function(weir_position_independent name)
  if(WEIR_PIC)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
  endif()
endfunction()
set(WEIR_UNITY_BATCH 32 CACHE STRING "Sources that are compiled at once")
set(WEIR_COLD_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)

# weir_fast_build(<target> <precompiled header target>)
function(weir_fast_build name pch)
  if(WEIR_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${WEIR_UNITY_BATCH})
    target_precompile_headers(${name} REUSE_FROM ${pch})
  endif()
endfunction()

if(WEIR_UNITY)
  # ccache keeps objects of precompiled headers only with these.
  # Types in anonymous namespaces are not in the main file then.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  # GCC 14 sets this with -O2, and refuses precompiled headers in libraries that are compiled with -O1 without it.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-munroll-only-small-loops WEIR_HAS_UNROLL_OPTION)
  if(WEIR_HAS_UNROLL_OPTION)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-munroll-only-small-loops>)
  endif()
  # The same for -mvzeroupper, which -Og leaves out.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    check_cxx_compiler_flag(-mvzeroupper WEIR_HAS_VZEROUPPER_OPTION)
    if(WEIR_HAS_VZEROUPPER_OPTION)
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-mvzeroupper>)
    endif()
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cc" CONTENT "")
  add_library(weir_precompiled STATIC "${PROJECT_BINARY_DIR}/precompiled.cc")
  target_link_libraries(weir_precompiled PRIVATE absl::flat_hash_map absl::flat_hash_set absl::statusor absl::str_format absl::span protobuf::libprotobuf)
  target_precompile_headers(weir_precompiled PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.h")
  weir_position_independent(weir_precompiled)
endif()

# weir_library(<name> SRCS <file>... [DEPS <target>...] [COLD])
# COLD is for code outside the inner loops of simulations and searches: it compiles faster and may run slower.
function(weir_library name)
  cmake_parse_arguments(ARG "COLD" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE weir_warnings)
  weir_position_independent(${name})
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE ${WEIR_COLD_OPTIONS})
  endif()
  weir_fast_build(${name} weir_precompiled)
endfunction()

# weir_program(<name> SRCS <file>... [DEPS <target>...]) is for programs with little code of their own, which is COLD.
function(weir_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} weir_warnings)
  target_compile_options(${name} PRIVATE ${WEIR_COLD_OPTIONS})
  if(WEIR_PIC)
    # As libraries, for the precompiled header. POSITION_INDEPENDENT_CODE would be -fPIE for a program.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>
                                           $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
  endif()
  weir_fast_build(${name} weir_precompiled)
endfunction()

# weir_proto(<name> SRCS <file.proto>... [DEPS <proto target>...]) generates C++ below the build folder,
# so that "scenarios/scenario.pb.h" resolves (FindProtobuf's own function drops the folder).
function(weir_proto name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  set(generated)
  foreach(proto IN LISTS ARG_SRCS)
    file(RELATIVE_PATH relative "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
    string(REGEX REPLACE "\\.proto$" ".pb" stem "${PROJECT_BINARY_DIR}/${relative}")
    add_custom_command(
      OUTPUT "${stem}.cc" "${stem}.h"
      COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}"
              "--cpp_out=${PROJECT_BINARY_DIR}" "${relative}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      VERBATIM)
    list(APPEND generated "${stem}.cc" "${stem}.h")
  endforeach()
  set(compiled ${generated})
  list(LENGTH ARG_SRCS num_sources)
  if(WEIR_UNITY AND num_sources GREATER 1 AND Protobuf_VERSION VERSION_LESS 4)
    # protoc's sources define these names, so CMake's unity builds do not work. Other versions of protoc may define more.
    set(text)
    foreach(source IN LISTS generated)
      if(source MATCHES "\\.h$")
        continue()
      endif()
      get_filename_component(stem "${source}" NAME_WE)
      foreach(word schemas file_default_instances)
        string(APPEND text "#define ${word} ${word}_${stem}\n")
      endforeach()
      string(APPEND text "#include \"${source}\"\n#undef schemas\n#undef file_default_instances\n")
    endforeach()
    set(compiled "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
    file(CONFIGURE OUTPUT "${compiled}" CONTENT "${text}" @ONLY)
    # CMake does not know yet what the source includes.
    set_source_files_properties("${compiled}" PROPERTIES OBJECT_DEPENDS "${generated}")
    set_source_files_properties(${generated} PROPERTIES HEADER_FILE_ONLY ON)
    list(APPEND compiled ${generated})
  endif()
  add_library(${name} STATIC ${compiled})
  target_include_directories(${name} SYSTEM PUBLIC "${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  weir_position_independent(${name})
  target_compile_options(${name} PRIVATE ${WEIR_COLD_OPTIONS})
  if(WEIR_UNITY)
    target_precompile_headers(${name} REUSE_FROM weir_precompiled)
  endif()
endfunction()

# weir_label(<target> <label>...) makes "tests_<label>" build the target.
function(weir_label name)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()

# weir_check_folders(<target>) makes "check_<folder>" (check_sim_graph, check_sim) run the tests of a folder below
# tests/, of which "check_<target>" are some.
function(weir_check_folders name)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  while(folder)
    string(REPLACE "/" "_" target "check_${folder}")
    if(NOT TARGET ${target})
      add_custom_target(${target})
    endif()
    add_dependencies(${target} check_${name})
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
endfunction()

set(WEIR_TEST_TIMEOUT 900 CACHE STRING "Seconds after which a test counts as hung")

# weir_add_suites(<target> <filter> <prefix> <timeout> <labels>) adds a ctest entry per test suite of the target, without
# the tests that the filter selects.
function(weir_add_suites name others prefix timeout labels)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake")
  add_custom_command(
    TARGET ${name} POST_BUILD BYPRODUCTS "${file}"
    COMMAND "${CMAKE_COMMAND}" -D "program=$<TARGET_FILE:${name}>" -D "filter=-${others}"
            -D "directory=${CMAKE_CURRENT_BINARY_DIR}" -D "prefix=${prefix}" -D "timeout=${timeout}"
            -D "labels=${labels}" -D "out=${file}" -P "${PROJECT_SOURCE_DIR}/cmake/AddTestSuites.cmake"
    VERBATIM)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake"
       CONTENT "if(EXISTS [=[${file}]=])\n  include([=[${file}]=])\nelse()\n  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n"
       @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake")
endfunction()

# weir_join_test(<target> <program> SRCS <file>... [DEPS <target>...]) compiles tests into another program, which the
# target builds and "check_<target>" runs.
function(weir_join_test name program)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  list(TRANSFORM ARG_SRCS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  target_sources(${program} PRIVATE ${ARG_SRCS})
  target_link_libraries(${program} PRIVATE ${ARG_DEPS})
  add_custom_target(${name})
  add_dependencies(${name} ${program})
  add_custom_target(check_${name})
  add_dependencies(check_${name} check_${program})
  weir_check_folders(${name})
endfunction()

# weir_test(<name> SRCS <file>... [DEPS <target>...] [IN <name>] [LABELS <label>...] [SLOW <filter>] [CASES <filter>]
#           [PREFIX <text>] [TIMEOUT <seconds>])
# runs each test suite in a process of its own, by default for WEIR_TEST_TIMEOUT seconds at most. With IN, tests are
# compiled into the program of an earlier weir_test if WEIR_UNITY is on, since each program costs seconds to compile and
# to link; that program's options apply, and it needs no SRCS of its own. Filters are those of GoogleTest. The tests that
# SLOW selects, which take 4 s or more, get the label "slow" and a process each. So do, without the label, the tests that
# CASES selects: those that may be skipped, which fail in the process of their suite, and those that need a process of
# their own. PREFIX comes before the names in ctest.
function(weir_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CASES;IN;PREFIX;SLOW;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(ARG_IN AND WEIR_UNITY)
    weir_join_test(${name} ${ARG_IN} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS})
    return()
  elseif(NOT ARG_SRCS AND NOT WEIR_UNITY)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${WEIR_TEST_TIMEOUT})
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE WEIR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} weir_warnings ${WEIR_TEST_WARNINGS} GTest::gmock GTest::gtest_main)
  weir_fast_build(${name} weir_precompiled_tests)
  target_compile_options(${name} PRIVATE ${WEIR_TEST_OPTIONS})
  weir_label(${name} ${ARG_LABELS})
  if(WEIR_UNITY)
    set(run "${CMAKE_COMMAND}" -D "program=$<TARGET_FILE:${name}>" -D "filter=-${ARG_SLOW}" -P
            "${PROJECT_SOURCE_DIR}/cmake/RunTestSuites.cmake")
  else()
    set(run ${name} --gtest_brief=1 "--gtest_filter=-${ARG_SLOW}")
  endif()
  add_custom_target(check_${name} COMMAND ${run} WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" VERBATIM)
  add_dependencies(check_${name} ${name})
  weir_check_folders(${name})
  set(options TEST_PREFIX "${ARG_PREFIX}" DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABELS)
    set(labels LABELS "${ARG_LABELS}")
  endif()
  if(ARG_CASES)
    gtest_discover_tests(${name} TEST_FILTER "${ARG_CASES}-${ARG_SLOW}" ${options} ${labels})
  endif()
  if(NOT ARG_CASES STREQUAL "*")
    string(JOIN ":" others ${ARG_CASES} ${ARG_SLOW})
    weir_add_suites(${name} "${others}" "${ARG_PREFIX}" ${ARG_TIMEOUT} "${ARG_LABELS}")
  endif()
  if(ARG_SLOW)
    # ctest starts the tests of the highest cost first.
    gtest_discover_tests(${name} TEST_FILTER "${ARG_SLOW}" TEST_LIST ${name}_slow ${options} COST 10
                         LABELS "slow;${ARG_LABELS}")
  endif()
endfunction()
