// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/profile_base.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"

namespace weir::calibrate {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kProfilePresets[] = "calibrate/profile/presets";
constexpr char kRuntimePresets[] = "calibrate/profile/runtimes";
constexpr size_t kMaxProfiles = 8;  // in a chain

// Returns true for messages that consist of figures only, such as GemmModel.
// Others are replaced as a whole: a figure keeps its value and source together,
// and a bool of proto3 could not be overridden by false.
bool IsGroupOfFigures(const Descriptor* type) {
  if (type == Figure::descriptor()) return false;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated() ||
        field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return false;
    }
    if (field->message_type() != Figure::descriptor() &&
        !IsGroupOfFigures(field->message_type())) {
      return false;
    }
  }
  return true;
}

// Clears the fields of `base` that `variant` replaces.
void ClearReplaced(const Message& variant, Message* base) {
  std::vector<const FieldDescriptor*> fields;
  variant.GetReflection()->ListFields(variant, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!field->is_repeated() &&
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        IsGroupOfFigures(field->message_type())) {
      ClearReplaced(variant.GetReflection()->GetMessage(variant, field),
                    base->GetReflection()->MutableMessage(base, field));
    } else {
      base->GetReflection()->ClearField(base, field);
    }
  }
}

// Turns what was measured on the base into assumptions about another GPU.
void AssumeFigures(double spread, DeviceProfile* base) {
  const std::string device =
      base->gemms_of().empty() ? base->name() : base->gemms_of();
  for (const NamedFigure& named : FiguresOf(base)) {
    Figure& figure = *named.figure;
    if (figure.kind() != Figure::MEASURED && figure.kind() != Figure::FITTED) {
      continue;
    }
    const double error = RelativeError(figure);
    if (error > 0) figure.set_relative_error(std::max(error, spread));
    figure.set_kind(Figure::ASSUMED);
    figure.set_source(
        absl::StrCat("that of the ", base->name(), ": ", figure.source()));
  }
  base->set_gemms_of(device);
}

absl::Status BaseError(const Asset& asset, absl::string_view what) {
  Problems problems(asset.label);
  problems.Add("base", what);
  return problems.ToStatus();
}

absl::StatusOr<Asset> LoadBase(const char* folder, const Asset& asset,
                               const std::string& base) {
  const std::vector<std::string> known = ListAssets(folder);
  if (std::find(known.begin(), known.end(), base) != known.end()) {
    return *FindPreset(folder, base);
  }
  const std::string presets =
      absl::StrCat("one of the presets ", absl::StrJoin(known, ", "));
  if (asset.is_preset) {
    return BaseError(asset,
                     absl::StrCat("is \"", base, "\", expected ", presets));
  }
  const std::filesystem::path path =
      (std::filesystem::path(asset.label).parent_path() / base)
          .lexically_normal();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return BaseError(asset,
                     absl::StrCat("is \"", base, "\", expected ", presets,
                                  ", or an existing file; ", path.string(),
                                  " does not exist", DidYouMean(base, known)));
  }
  absl::StatusOr<std::string> contents = ReadFile(path.string());
  if (!contents.ok()) {
    return BaseError(
        asset, absl::StrCat("cannot be read: ", contents.status().message()));
  }
  return Asset{path.string(), *std::move(contents)};
}

std::string Normal(const std::string& label) {
  return std::filesystem::path(label).lexically_normal().string();
}

// `T` is DeviceProfile or Runtime, with presets in `folder`. `chain` contains
// the normalized labels of the files that lead to `asset`.
template <typename T>
absl::StatusOr<T> Resolve(const char* folder, const Asset& asset,
                          std::vector<std::string> chain) {
  T variant;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &variant));
  if (variant.base().empty()) return variant;
  chain.push_back(Normal(asset.label));
  ASSIGN_OR_RETURN(const Asset base, LoadBase(folder, asset, variant.base()));
  if (std::find(chain.begin(), chain.end(), Normal(base.label)) !=
      chain.end()) {
    return BaseError(asset, absl::StrCat("is \"", variant.base(),
                                         "\", which inherits from this file"));
  }
  if (chain.size() == kMaxProfiles) {
    return BaseError(
        asset, absl::StrCat("is \"", variant.base(), "\", expected at most ",
                            kMaxProfiles, " profiles in a chain: ",
                            absl::StrJoin(chain, ", ")));
  }
  ASSIGN_OR_RETURN(T inherited, Resolve<T>(folder, base, std::move(chain)));
  return Inherit(std::move(inherited), variant);
}

// Adds the GEMMs of the base's formats to rates without a rate of their own
// GEMMs; figures that such a rate states replace those of the base.
void InheritGemms(const DeviceProfile& base, DeviceProfile* variant) {
  for (MatrixRate& rate : *variant->mutable_matrix_rates()) {
    const MatrixRate* of_base = FindRate(base, rate.format());
    if (of_base == nullptr || !of_base->has_gemm() ||
        rate.gemm().has_matrix_rate()) {
      continue;
    }
    GemmModel gemm = of_base->gemm();
    ClearReplaced(rate.gemm(), &gemm);
    gemm.MergeFrom(rate.gemm());
    *rate.mutable_gemm() = std::move(gemm);
    rate.set_transposed_copies(of_base->transposed_copies());
    if (of_base->has_gemm_residual() && !rate.has_gemm_residual()) {
      *rate.mutable_gemm_residual() = of_base->gemm_residual();
    }
  }
}

}  // namespace

DeviceProfile Inherit(DeviceProfile base, const DeviceProfile& variant) {
  if (variant.inherited_spread() > 0) {
    AssumeFigures(variant.inherited_spread(), &base);
  }
  if (variant.gemm().has_matrix_rate()) base.clear_gemms_of();
  base.clear_name();
  base.clear_gpu_names();
  base.clear_purpose();
  base.clear_provenance();
  base.clear_kernels();
  base.clear_stages();
  base.clear_memory();
  base.clear_links();
  DeviceProfile complete = variant;
  InheritGemms(base, &complete);
  ClearReplaced(complete, &base);
  base.MergeFrom(complete);
  base.clear_base();
  base.clear_inherited_spread();
  return base;
}

Runtime Inherit(Runtime base, const Runtime& variant) {
  base.clear_name();
  ClearReplaced(variant, &base);
  base.MergeFrom(variant);
  base.clear_base();
  return base;
}

absl::StatusOr<DeviceProfile> ResolveBase(const Asset& asset) {
  return Resolve<DeviceProfile>(kProfilePresets, asset, {});
}

absl::StatusOr<Runtime> ResolveRuntimeBase(const Asset& asset) {
  return Resolve<Runtime>(kRuntimePresets, asset, {});
}

}  // namespace weir::calibrate
