// SPDX-License-Identifier: Apache-2.0
// Compares the collectives of every device in the published tables with the
// preset and, as SET_left_out.csv, with fits that have not seen a row's
// collective and number of GPUs:
//
//   accuracy_rows_collectives DATA FOLDER
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/fit/collective_table.h"
#include "calibrate/fit/fit_collectives.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

constexpr double kLeastBytes = 1024;

struct Device {
  const char* set;
  const char* preset;
  calibrate::NcclGeneration generation;
  const char* table;  // below DATA; empty: vTrain's all-reduces of a DGX-1
};

constexpr Device kDevices[] = {
    {"nccl_a100", "a100-sxm-80gb", calibrate::NcclGeneration::kAmpere,
     "aiconfigurator/a100_sxm_comm_nccl_2.27.3_nccl_perf.csv"},
    {"nccl_h100", "h100-sxm", calibrate::NcclGeneration::kHopper,
     "aiconfigurator/h100_sxm_comm_nccl_2.29.2_nccl_perf.csv"},
    {"nccl_h200", "h200-sxm", calibrate::NcclGeneration::kHopper,
     "aiconfigurator/h200_sxm_comm_nccl_2.29.2_nccl_perf.csv"},
    {"nccl_v100", "v100-sxm2-16gb", calibrate::NcclGeneration::kVolta, ""},
};

using Samples = std::vector<calibrate::CollectiveSample>;

absl::StatusOr<Samples> ReadTable(const Device& device,
                                  const std::string& data) {
  const CollectiveModel nccl = calibrate::NcclDefaults(device.generation);
  calibrate::CollectiveGroup node;
  node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
  node.nvls = nccl.has_nvls_efficiency();
  const std::string path = absl::StrCat(data, "/", device.table);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return calibrate::ReadCollectiveTable(path, text, "half", kLeastBytes, node);
}

// In a DGX-1, one link joins two GPUs; rings of four GPUs have two links in
// each direction, and rings of eight have three.
absl::StatusOr<Samples> ReadMesh(const std::string& data) {
  Samples samples;
  const double links[] = {25e9, 100e9, 150e9};
  for (int i = 0; i < 3; ++i) {
    calibrate::CollectiveGroup group;
    group.num_ranks = group.ranks_per_node = 2 << i;
    group.intra_bytes_per_second = links[i];
    const std::string path =
        absl::StrCat(data, "/nccl/v100_AR_GPU", 2 << i, "_pow2.csv");
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    ASSIGN_OR_RETURN(const Samples part, calibrate::ReadAllReduceTable(path, text, group));
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

std::vector<MeasuredSeconds> RowsOf(const Samples& samples) {
  std::vector<MeasuredSeconds> rows;
  for (const calibrate::CollectiveSample& sample : samples) {
    rows.push_back(
        {static_cast<int>(rows.size()) + 1,
         absl::StrFormat("%s of %.0f bytes on %d", calibrate::NameOf(sample.kind),
                         sample.bytes, sample.group.num_ranks),
         sample.seconds});
  }
  return rows;
}

absl::Status Write(const Device& device, const std::string& data,
                   const std::string& folder) {
  const bool mesh = device.table[0] == '\0';
  ASSIGN_OR_RETURN(const Samples samples,
                   mesh ? ReadMesh(data) : ReadTable(device, data));
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(device.preset));
  const std::vector<MeasuredSeconds> rows = RowsOf(samples);
  const std::string path = absl::StrCat(folder, "/", device.set);
  RETURN_IF_ERROR(WriteRows(
      path + ".csv", rows, calibrate::PredictCollectives(profile.collectives(), samples)));
  ASSIGN_OR_RETURN(
      const std::vector<double> left_out,
      calibrate::CrossValidateCollectives(calibrate::CollectiveStart(device.generation), samples));
  return WriteRows(path + "_left_out.csv", rows, left_out);
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DATA FOLDER\n", argv[0]);
    return 2;
  }
  for (const Device& device : kDevices) {
    const absl::Status status = Write(device, argv[1], argv[2]);
    if (status.ok()) continue;
    std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
