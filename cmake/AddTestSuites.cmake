# SPDX-License-Identifier: Apache-2.0
# Writes the ctest entries of a GoogleTest program, one per test suite, because starting a process takes about
# 40 ms of CPU time.
#
# cmake -D program=<path> -D filter=<GoogleTest filter> -D directory=<working directory> -D prefix=<text>
#       -D timeout=<seconds> -D labels=<list> -D out=<file.cmake> -P AddTestSuites.cmake

include("${CMAKE_CURRENT_LIST_DIR}/ListTestSuites.cmake")
list_test_suites("${program}" "${filter}" suites)
if(filter MATCHES "^-(.*)")
  set(excluded "-${CMAKE_MATCH_1}")
endif()
set(text "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "\\.$" "" name "${suite}")
  # A skipped case would be reported as passed: it belongs to weir_test's CASES.
  string(APPEND text
    "add_test([=[${prefix}${name}]=] [=[${program}]=] [=[--gtest_brief=1]=] [=[--gtest_filter=${suite}*${excluded}]=])\n"
    "set_tests_properties([=[${prefix}${name}]=] PROPERTIES WORKING_DIRECTORY [=[${directory}]=] TIMEOUT ${timeout}"
    " LABELS [=[${labels}]=] FAIL_REGULAR_EXPRESSION [=[\\[  SKIPPED \\]]=])\n")
endforeach()
file(WRITE "${out}" "${text}")
