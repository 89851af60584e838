# SPDX-License-Identifier: Apache-2.0
# list_test_suites(<program> <GoogleTest filter> <variable>) sets the variable to the test suites of a program:
# "Suite." or "Instance/Suite.".
function(list_test_suites program filter variable)
  execute_process(COMMAND "${program}" --gtest_list_tests "--gtest_filter=${filter}" TIMEOUT 60
                  OUTPUT_VARIABLE listing RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE "${program}")  # so that the next build tries again
    message(FATAL_ERROR "${program} --gtest_list_tests: ${status}\n${listing}")
  endif()
  # Lines without indentation are suites: "Suite." or "Instance/Suite.  # TypeParam = ...".
  string(REGEX MATCHALL "(^|\n)[A-Za-z_][^ \n]*\\." lines "${listing}")
  list(TRANSFORM lines STRIP)
  set(${variable} ${lines} PARENT_SCOPE)
endfunction()
