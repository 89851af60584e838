// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/versions.h"

#include <google/protobuf/stubs/common.h>

#include <nlohmann/json.hpp>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/version.h"
#include "sim/engine/engine.h"

namespace weir::cli {

std::string ProtobufVersion() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

std::string AbseilVersion() {
#ifdef ABSL_LTS_RELEASE_VERSION
  return absl::StrCat(ABSL_LTS_RELEASE_VERSION);
#else
  return "head";
#endif
}

std::string VersionText() {
  return absl::StrCat("weir ", WeirVersion(), " (git ", GitRevision(), ")");
}

std::string VersionJson() {
  nlohmann::ordered_json json;
  json["weir"] = std::string(WeirVersion());
  json["git"] = std::string(GitRevision());
  json["simgrid"] = std::string(sim::SimGridVersion());
  json["protobuf"] = ProtobufVersion();
  json["abseil"] = AbseilVersion();
  return DumpJson(json);
}

}  // namespace weir::cli
