// SPDX-License-Identifier: Apache-2.0
#include "models/recompute.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/describe.h"

namespace weir::models {
namespace {

constexpr uint32_t BitOf(RecomputeModule module) { return 1u << module; }

constexpr RecomputeModule kModules[] = {
    CORE_ATTN, MLP, MOE, LAYERNORM, MOE_ACT, MLA_UP_PROJ, SHARED_EXPERTS};
constexpr RecomputeMethod kMethods[] = {RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK,
                                        RECOMPUTE_EVERY};
constexpr RecomputeMode kModes[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE,
                                    RECOMPUTE_OPERATORS, RECOMPUTE_FULL};

// Returns the value with this name, or std::nullopt.
template <typename Values, typename NameOf>
auto ValueNamed(absl::string_view name, const Values& values,
                const NameOf& name_of)
    -> std::optional<std::decay_t<decltype(values[0])>> {
  for (const auto value : values) {
    if (name == name_of(value)) return value;
  }
  return {};
}

}  // namespace

Recompute::Recompute(const Recomputation& given)
    : mode_(std::max(given.mode(), RECOMPUTE_NONE)) {
  if (mode_ == RECOMPUTE_SELECTIVE) {
    for (const int module : given.modules()) {
      modules_ |= BitOf(static_cast<RecomputeModule>(module));
    }
    if (modules_ == BitOf(CORE_ATTN)) modules_ = 0;
  }
  if (mode_ != RECOMPUTE_FULL) return;
  const bool all = given.method() == RECOMPUTE_METHOD_UNSPECIFIED ||
                   given.method() == RECOMPUTE_UNIFORM ||
                   given.method() == RECOMPUTE_EVERY;
  const int n = std::max(static_cast<int>(given.num_layers()), 1);
  if (all && n == 1) return;
  method_ = std::max(given.method(), RECOMPUTE_UNIFORM);
  num_layers_ = n;
}

bool Recompute::Has(RecomputeModule module) const {
  if (mode_ != RECOMPUTE_SELECTIVE) return false;
  return modules_ == 0 ? module == CORE_ATTN : (modules_ & BitOf(module)) != 0;
}

Recomputation Recompute::ToProto() const {
  Recomputation proto;
  proto.set_mode(mode_);
  for (const RecomputeModule module : kModules) {
    if ((modules_ & BitOf(module)) != 0) proto.add_modules(module);
  }
  proto.set_method(method_);
  proto.set_num_layers(num_layers_);
  return proto;
}

const char* Name(RecomputeModule module) {
  switch (module) {
    case MLP:
      return "mlp";
    case MOE:
      return "moe";
    case LAYERNORM:
      return "layernorm";
    case MOE_ACT:
      return "moe_act";
    case MLA_UP_PROJ:
      return "mla_up_proj";
    case SHARED_EXPERTS:
      return "shared_experts";
    default:
      return "core_attn";
  }
}

const char* Name(RecomputeMethod method) {
  switch (method) {
    case RECOMPUTE_BLOCK:
      return "block";
    case RECOMPUTE_EVERY:
      return "every";
    default:
      return "uniform";
  }
}

std::string RecomputeText(const Recompute& recompute) {
  std::string text = RecomputeName(recompute.mode());
  const Recomputation proto = recompute.ToProto();
  for (int i = 0; i < proto.modules_size(); ++i) {
    absl::StrAppend(&text, i == 0 ? ":" : "+", Name(proto.modules(i)));
  }
  if (recompute.by_stage()) {
    absl::StrAppend(&text, ":", Name(recompute.method()), "=",
                    recompute.num_layers());
  }
  return text;
}

bool ParseRecomputation(absl::string_view text, Recomputation* parsed) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const auto mode = ValueNamed(parts[0], kModes, RecomputeName);
  if (!mode.has_value()) return false;
  parsed->Clear();
  parsed->set_mode(*mode);
  if (parts.size() == 1) return true;
  if (*mode == RECOMPUTE_SELECTIVE) {
    for (const absl::string_view name : absl::StrSplit(parts[1], '+')) {
      const auto module =
          ValueNamed(name, kModules, [](RecomputeModule m) { return Name(m); });
      if (!module.has_value()) return false;
      parsed->add_modules(*module);
    }
    return true;
  }
  if (*mode != RECOMPUTE_FULL) return false;
  const std::vector<absl::string_view> method = absl::StrSplit(parts[1], '=');
  const auto known = ValueNamed(method[0], kMethods,
                                [](RecomputeMethod m) { return Name(m); });
  uint32_t n = 0;
  if (!known.has_value() || method.size() != 2 ||
      !absl::SimpleAtoi(method[1], &n) || n == 0 || n > 100000) {
    return false;
  }
  parsed->set_method(*known);
  parsed->set_num_layers(n);
  return true;
}

}  // namespace weir::models
