# SPDX-License-Identifier: Apache-2.0
# weir_assets(<name> <file>...) embeds preset files, so that the program is one file that can be copied anywhere.
# base/assets.h finds them by their path in the source tree ("models/presets/gpt2.json").
function(weir_assets name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
  set(files)
  foreach(file IN LISTS ARGN)
    list(APPEND files "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${source}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DNAME=${name}"
            "-DFILES=${files}" -P "${PROJECT_SOURCE_DIR}/cmake/EmbedAssets.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/EmbedAssets.cmake"
    VERBATIM)
  # An object library: nothing refers to the registration, a static library would drop it.
  add_library(${name} OBJECT "${source}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  weir_position_independent(${name})
endfunction()
