# SPDX-License-Identifier: Apache-2.0
# Target "headers" (not part of "all"): compiles every header alone, so that each includes what it needs.
set(sources)
foreach(folder base schedules models calibrate scenarios sim results plan cli api)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.h")
  if(NOT WEIR_HAS_CUDA)
    list(FILTER headers EXCLUDE REGEX "^calibrate/(gpu/[^/]*\\.h|gpu/kernels/|execute/gpu/|fabric/nccl/)")
  endif()
  foreach(header IN LISTS headers)
    set(source "${PROJECT_BINARY_DIR}/headers/${header}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n")
    list(APPEND sources "${source}")
  endforeach()
endforeach()
add_library(headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_include_directories(headers PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(headers PRIVATE weir_warnings)
# Every room's libraries, for their include folders and generated headers.
foreach(target base schedules models scenarios sim_bounds sim_fast results_compare results_trace plan_papers
               synthesis sweep weir_api cli_calibrate calibrate_execute_gpu calibrate_nccl)
  if(TARGET ${target})
    target_link_libraries(headers PRIVATE ${target})
  endif()
endforeach()
