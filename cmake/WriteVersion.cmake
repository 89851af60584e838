# Writes OUTPUT from TEMPLATE with the git revision of SOURCE; touches it only when something changed. Without git, or
# in a tree that is not a clone of its own (a tarball), the revision is "unknown".
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
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
