# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, which registers FILES (below ROOT) with base/asset_registration.h.
set(text "#include \"base/asset_registration.h\"\nnamespace weir {\nnamespace {\n")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ "${file}" contents)
  file(RELATIVE_PATH path "${ROOT}" "${file}")
  string(APPEND text "const AssetRegistration asset_${index}(\"${path}\", R\"weir_asset(${contents})weir_asset\");\n")
  math(EXPR index "${index} + 1")
endforeach()
# Something to refer to, for programs that link the registration from an archive.
string(APPEND text "}  // namespace\nnamespace assets {\nvoid Keep_${NAME}();\nvoid Keep_${NAME}() {}\n}  // namespace assets\n}  // namespace weir\n")
file(WRITE "${OUTPUT}" "${text}")
