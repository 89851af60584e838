# SPDX-License-Identifier: Apache-2.0
# Finds CUDA (12.4 or later) and NCCL (2.18 or later) for weir-calibrate, or says in one line why it does without.
# Sets WEIR_HAS_CUDA, or WEIR_WITHOUT_CUDA to the reason. Include at the top level: it enables the language.
set(WEIR_CUDA AUTO CACHE STRING "weir-calibrate on GPUs: AUTO (where CUDA and NCCL are found), ON (or fail), OFF")
set(WEIR_HAS_CUDA OFF)

macro(weir_without_cuda why)
  if(WEIR_CUDA STREQUAL "ON")
    message(FATAL_ERROR "weir-calibrate: ${why}")
  endif()
  message(STATUS "weir-calibrate without GPUs: ${why}")
  set(WEIR_WITHOUT_CUDA "${why}")
  return()
endmacro()

if(WEIR_CUDA STREQUAL "OFF")
  weir_without_cuda("WEIR_CUDA is OFF")
endif()
find_package(CUDAToolkit 12.4 QUIET)  # finds nvcc that is not on PATH
if(NOT CUDAToolkit_FOUND)
  weir_without_cuda("no CUDA toolkit 12.4 or later (set CUDAToolkit_ROOT where it is elsewhere)")
endif()
find_package(NCCL 2.18 QUIET)
if(NOT NCCL_FOUND)
  weir_without_cuda("no NCCL 2.18 or later (set NCCL_ROOT where it is elsewhere)")
endif()
if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
# T4, A100, H100 and later; V100 needs CUDA 12 and -DCMAKE_CUDA_ARCHITECTURES=70.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  weir_without_cuda("the CUDA compiler does not work")
endif()
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_DEPEND=1;CCACHE_INODECACHE=1;${CCACHE_PROGRAM}")
endif()
enable_language(CUDA)
# CMake 3.25.1 does not know nvcc's C++20 yet (3.25.2 does).
if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)  # only after enable_language
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime for kernels and host code
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(WEIR_HAS_CUDA ON)
message(STATUS "weir-calibrate: CUDA ${CUDAToolkit_VERSION}, NCCL ${NCCL_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")

# weir_cuda_sources(<variable> <file.cu>...) sets the variable to one source that includes all of them if WEIR_UNITY is
# on. nvcc parses the CUDA headers five times for each source. CMake has unity builds of CUDA only since 3.31.
function(weir_cuda_sources variable)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  if(WEIR_UNITY)
    list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
    list(JOIN includes "" includes)
    set(ARGN "${CMAKE_CURRENT_BINARY_DIR}/${variable}.cu")
    file(CONFIGURE OUTPUT "${ARGN}" CONTENT "${includes}" @ONLY)
  endif()
  set(${variable} ${ARGN} PARENT_SCOPE)
endfunction()
