# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT from TEMPLATE with the git revision of SOURCE; touches it only when something changed. Where the git
# program is missing the clone's own files tell; in a tree that is no clone (a tarball) the revision is "unknown".
set(WEIR_REVISION "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE}/.git")
  execute_process(
    COMMAND "${GIT}" -c "safe.directory=${SOURCE}" describe --always --dirty --tags --abbrev=12
    WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(WEIR_REVISION "${revision}")
  endif()
elseif(EXISTS "${SOURCE}/.git/HEAD")
  file(READ "${SOURCE}/.git/HEAD" revision)
  if(revision MATCHES "^ref: (.*)\n$")
    set(reference "${CMAKE_MATCH_1}")
    set(revision)
    if(EXISTS "${SOURCE}/.git/${reference}")
      file(READ "${SOURCE}/.git/${reference}" revision)
    elseif(EXISTS "${SOURCE}/.git/packed-refs")
      file(STRINGS "${SOURCE}/.git/packed-refs" revision REGEX " ${reference}$")
    endif()
  endif()
  if(revision MATCHES "^([0-9a-f]+)")
    string(SUBSTRING "${CMAKE_MATCH_1}" 0 12 WEIR_REVISION)
  endif()
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
