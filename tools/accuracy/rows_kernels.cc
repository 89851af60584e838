// SPDX-License-Identifier: Apache-2.0
// Compares attention, experts, collectives inside a node and the all-to-alls of
// experts in the published tables with fits that have not seen a row's group:
//
//   accuracy_rows_kernels DATA FOLDER
//
// Writes KIND_DEVICE_left_out.csv for each kind and device, and KIND_DEVICE.csv
// with the predictions of the preset where a profile has all figures of the
// kind. Groups: sequence lengths of attention, model shapes of experts and
// all-to-alls, collectives with their number of GPUs.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error_statistics.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/profile/device_profile.h"
#include "tools/accuracy/kernel_fits.h"
#include "tools/accuracy/kernel_tables.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

struct Device {
  const char* name;  // in file names
  const char* preset;
  const char* system;  // in the tables
  const char* attention_kernel;
  calibrate::NcclGeneration generation;
  const char* nccl;  // version of the collectives; empty: another program's
};

constexpr Device kDevices[] = {
    {"a100", "a100-sxm-80gb", "a100_sxm", "flash_attention",
     calibrate::NcclGeneration::kAmpere, ""},
    {"h100", "h100-sxm", "h100_sxm", "fa3", calibrate::NcclGeneration::kHopper,
     ""},
    {"h200", "h200-sxm", "h200_sxm", "fa3", calibrate::NcclGeneration::kHopper,
     ""},
    {"b200", "b200-sxm", "b200_sxm", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"gb200", "gb200", "gb200", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"b300", "b300-sxm", "b300_sxm", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"gb300", "gb300", "gb300", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
};

// A device, and the folders of the tables and of what is written.
struct DeviceFiles {
  const Device& device;
  const DeviceProfile& profile;
  const std::string& tables;
  const std::string& folder;

  std::string Path(absl::string_view kind) const {
    return absl::StrCat(folder, "/", kind, "_", device.name);
  }
};

absl::Status WriteCollectives(
    const std::string& path, const Device& device, const DeviceProfile& profile,
    const std::vector<calibrate::CollectiveSample>& samples) {
  if (samples.empty()) return absl::OkStatus();
  std::vector<MeasuredSeconds> names;
  for (const calibrate::CollectiveSample& sample : samples) {
    names.push_back(
        {static_cast<int>(names.size()) + 1,
         absl::StrFormat("%s of %.0f bytes on %d", Name(sample.kind),
                         sample.bytes, sample.group.num_ranks),
         sample.seconds});
  }
  RETURN_IF_ERROR(
      WriteRows(path + ".csv", names,
                calibrate::PredictCollectives(profile.collectives(), samples)));
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   calibrate::CrossValidateCollectives(
                       calibrate::CollectiveStart(device.generation), samples));
  return WriteRows(path + "_left_out.csv", names, left_out);
}

// Writes the collectives of NCCL in a node.
absl::Status WriteNccl(const DeviceFiles& files) {
  const Device& device = files.device;
  const CollectiveModel nccl = calibrate::NcclDefaults(device.generation);
  calibrate::CollectiveGroup node;
  node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
  node.nvls = nccl.has_nvls_efficiency();
  ASSIGN_OR_RETURN(
      const std::vector<calibrate::CollectiveSample> samples,
      ReadNcclRows(files.tables, device.system, device.nccl, node));
  return WriteCollectives(files.Path("nccl_node"), device, files.profile,
                          samples);
}

// Returns the least number of tiles of a large attention.
double LeastTiles(const DeviceProfile& profile) {
  return kManyTiles * profile.num_multiprocessors().value();
}

absl::Status WritePlainAttention(const DeviceFiles& files) {
  const DeviceProfile& profile = files.profile;
  ASSIGN_OR_RETURN(const std::vector<AttentionRow> attention,
                   ReadAttentionRows(files.tables, files.device.system,
                                     files.device.attention_kernel));
  RETURN_IF_ERROR(WriteAttention(files.Path("attention"),
                                 files.Path("attention_waves"), profile,
                                 attention, AttentionForm::kWithoutTail));
  RETURN_IF_ERROR(WriteAttention(files.Path("attention_tail"),
                                 files.Path("attention_tail_waves"), profile,
                                 attention, AttentionForm::kWithTail));
  std::vector<AttentionRow> large;
  for (const AttentionRow& row : attention) {
    if (NumTiles(row) >= LeastTiles(profile) &&
        row.heads >= 4 * row.key_heads) {
      large.push_back(row);
    }
  }
  return WriteAttention(files.Path("attention_large"), "", profile, large,
                        AttentionForm::kWithoutTail);
}

absl::Status WriteLatentAttention(const DeviceFiles& files) {
  const DeviceProfile& profile = files.profile;
  ASSIGN_OR_RETURN(std::vector<AttentionRow> mla,
                   ReadLatentRows(files.tables, files.device.system));
  RETURN_IF_ERROR(WriteAttention(files.Path("mla"), "", profile, mla,
                                 AttentionForm::kLatent));
  mla.erase(std::remove_if(mla.begin(), mla.end(),
                           [&](const AttentionRow& row) {
                             return NumTiles(row) < LeastTiles(profile);
                           }),
            mla.end());
  return WriteAttention(files.Path("mla_large"), "", profile, mla,
                        AttentionForm::kLatent);
}

absl::Status WriteAllExperts(const DeviceFiles& files) {
  ASSIGN_OR_RETURN(
      const std::vector<ExpertRow> experts,
      ReadExpertRows({files.tables, absl::StrCat(files.folder, "/tables")},
                     files.device.system));
  RETURN_IF_ERROR(WriteExperts(files.Path("experts"), files.profile, experts));
  std::vector<ExpertRow> several;
  for (const ExpertRow& row : experts) {
    if (row.topk >= 4) several.push_back(row);
  }
  return WriteExperts(files.Path("experts_top4"), files.profile, several);
}

// Writes recurrences and their convolutions.
absl::Status WriteLinearAttention(const DeviceFiles& files) {
  const char* system = files.device.system;
  const std::string recurrences =
      absl::StrCat(files.folder, "/tables/linear_attention.csv");
  for (const auto& [kind, kernel] :
       {std::pair("mamba2", "mamba_chunk_scan_combined"),
        std::pair("delta", "chunk_gated_delta_rule")}) {
    ASSIGN_OR_RETURN(const std::vector<RecurrenceRow> rows,
                     ReadRecurrenceRows(recurrences, system, kernel));
    RETURN_IF_ERROR(WriteRecurrences(files.Path(kind), files.profile, rows));
  }
  ASSIGN_OR_RETURN(const std::vector<RecurrenceRow> convolutions,
                   ReadRecurrenceRows(recurrences, system, "causal_conv1d_fn"));
  return WriteConvolutions(files.Path("convolution"), files.profile,
                           convolutions);
}

// Writes dispatch and combine of DeepEP, in a node and between nodes.
absl::Status WriteExchanges(const DeviceFiles& files) {
  for (const bool dispatch : {true, false}) {
    ASSIGN_OR_RETURN(
        const std::vector<ExchangeRow> rows,
        ReadDeepEpRows(files.tables, files.device.system, dispatch));
    const char* kind = dispatch ? "dispatch" : "combine";
    std::vector<ExchangeRow> inside, between;
    for (const ExchangeRow& row : rows) {
      if (row.nodes == 1) inside.push_back(row);
      // 8 nodes: congested, the notification alone takes milliseconds.
      if (row.nodes == 2 || row.nodes == 4) between.push_back(row);
    }
    RETURN_IF_ERROR(
        WriteDeepEp(files.Path(kind), files.profile, inside, dispatch));
    RETURN_IF_ERROR(WriteDeepEp(files.Path(absl::StrCat(kind, "_nodes")),
                                files.profile, between, dispatch));
  }
  return absl::OkStatus();
}

absl::Status WriteDevice(const Device& device, const std::string& tables,
                         const std::string& folder) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(device.preset));
  const DeviceFiles files = {device, profile, tables, folder};
  RETURN_IF_ERROR(WritePlainAttention(files));
  RETURN_IF_ERROR(WriteLatentAttention(files));
  RETURN_IF_ERROR(WriteAllExperts(files));
  RETURN_IF_ERROR(WriteLinearAttention(files));
  if (*device.nccl != 0) RETURN_IF_ERROR(WriteNccl(files));
  return WriteExchanges(files);
}

absl::Status WriteRack(const std::string& tables, const std::string& folder) {
  for (const bool dispatch : {true, false}) {
    ASSIGN_OR_RETURN(const std::vector<ExchangeRow> rows,
                     ReadRackRows(tables, dispatch));
    RETURN_IF_ERROR(WriteRackExchanges(
        absl::StrCat(folder, "/", dispatch ? "dispatch" : "combine",
                     "_nvl72_gb200"),
        rows));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DATA FOLDER\n", argv[0]);
    return 2;
  }
  const std::string tables = absl::StrCat(argv[1], "/aiconfigurator2");
  absl::Status status = absl::OkStatus();
  for (const Device& device : kDevices) {
    if (status.ok()) status = WriteDevice(device, tables, argv[2]);
  }
  if (status.ok()) status = WriteRack(tables, argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
