# SPDX-License-Identifier: Apache-2.0
# Runs each test suite of a GoogleTest program in a process of its own, as ctest does: some need a process that has not
# simulated before.
#
# cmake -D program=<path> -D filter=<GoogleTest filter> -P RunTestSuites.cmake

include("${CMAKE_CURRENT_LIST_DIR}/ListTestSuites.cmake")
list_test_suites("${program}" "${filter}" suites)
set(failed)
foreach(suite IN LISTS suites)
  execute_process(COMMAND "${program}" --gtest_brief=1 "--gtest_filter=${suite}*${filter}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(APPEND failed "${suite}")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "failed: ${failed}")
endif()
