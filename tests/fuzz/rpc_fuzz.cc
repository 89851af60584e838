// SPDX-License-Identifier: Apache-2.0
// Checks that any bytes, in any parts, are lines that are requests or have an
// error as response.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/json_text.h"
#include "cli/serve/json_rpc.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cli = weir::cli;
  using Json = nlohmann::ordered_json;
  constexpr size_t kMostBytes = 256;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  // The first byte says how long the parts are.
  const size_t step = 1 + (size > 0 ? data[0] : 0);
  cli::LineReader reader(kMostBytes);
  for (size_t begin = 0; begin < size + step; begin += step) {
    if (begin < size) {
      reader.Add(text.substr(begin, step));
    } else {
      reader.End();
    }
    while (const auto line = reader.Next()) {
      if (line->text.size() > kMostBytes) std::abort();
      if (line->is_too_long) continue;
      const auto parsed = cli::ParseRpc(line->text);
      if (const auto* request = std::get_if<cli::RpcRequest>(&parsed)) {
        if (!request->params.is_object()) std::abort();
        const Json response = cli::RpcResult(request->id.value_or(nullptr), {});
        if (weir::DumpJson(response).empty()) std::abort();
      } else if (!std::get<Json>(parsed).at("error").at("code").is_number()) {
        std::abort();
      }
    }
  }
  return 0;
}
