# SPDX-License-Identifier: Apache-2.0
# cpp-httplib with its compiled library (Debian's libcpp-httplib-dev has no CMake files). Defines Httplib::Httplib. Its
# header must be compiled with the options that the library was compiled with, which its pkg-config file names.
find_path(Httplib_INCLUDE_DIR httplib.h)
find_library(Httplib_LIBRARY cpp-httplib)
get_filename_component(httplib_folder "${Httplib_LIBRARY}" DIRECTORY)
find_file(Httplib_PC cpp-httplib.pc HINTS "${httplib_folder}/pkgconfig" NO_DEFAULT_PATH)
if(Httplib_PC)
  file(STRINGS "${Httplib_PC}" httplib_flags REGEX "^Cflags:")
  string(REGEX MATCHALL "-D[A-Za-z0-9_=]+" httplib_definitions "${httplib_flags}")
  list(TRANSFORM httplib_definitions REPLACE "^-D" "")
  file(STRINGS "${Httplib_PC}" httplib_version REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" Httplib_VERSION "${httplib_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS Httplib_LIBRARY Httplib_INCLUDE_DIR Httplib_PC
                                  VERSION_VAR Httplib_VERSION)
if(Httplib_FOUND AND NOT TARGET Httplib::Httplib)
  find_package(Threads REQUIRED)
  set(httplib_libraries Threads::Threads)
  if("CPPHTTPLIB_OPENSSL_SUPPORT" IN_LIST httplib_definitions)
    # Functions in the header of newer versions call OpenSSL.
    find_package(OpenSSL REQUIRED COMPONENTS Crypto)
    list(APPEND httplib_libraries OpenSSL::Crypto)
  endif()
  add_library(Httplib::Httplib UNKNOWN IMPORTED)
  set_target_properties(Httplib::Httplib PROPERTIES
    IMPORTED_LOCATION "${Httplib_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Httplib_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "${httplib_definitions}" INTERFACE_LINK_LIBRARIES "${httplib_libraries}")
endif()
mark_as_advanced(Httplib_INCLUDE_DIR Httplib_LIBRARY Httplib_PC)
