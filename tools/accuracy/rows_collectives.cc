// SPDX-License-Identifier: Apache-2.0
// Compares the collectives of every device in the published tables with the
// preset and, as SET_left_out.csv, with fits that have not seen a row's
// collective and number of GPUs:
//
//   accuracy_rows_collectives results/published/kernels FOLDER
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/fit/collective_table.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/profile/device_profile.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in table order.
struct Device {
  const char* set;
  const char* preset;
  calibrate::NcclGeneration generation;
  const char* table;
  bool mesh;  // a DGX-1, whose GPUs have links to some neighbors only
};

constexpr Device kDevices[] = {
    {"nccl_a100", "a100-sxm-80gb", calibrate::NcclGeneration::kAmpere,
     "nccl_a100.csv", false},
    {"nccl_h100", "h100-sxm", calibrate::NcclGeneration::kHopper,
     "nccl_h100.csv", false},
    {"nccl_h200", "h200-sxm", calibrate::NcclGeneration::kHopper,
     "nccl_h200.csv", false},
    {"nccl_v100", "v100-sxm2-16gb", calibrate::NcclGeneration::kVolta,
     "nccl_vtrain_v100.csv", true},
};

using Samples = std::vector<calibrate::CollectiveSample>;

// In a DGX-1, one link joins two GPUs; rings of four GPUs have two links in
// each direction, and rings of eight have three.
double MeshBytesPerSecond(int num_ranks) {
  return num_ranks == 2 ? 25e9 : num_ranks == 4 ? 100e9 : 150e9;
}

absl::StatusOr<Samples> ReadTable(const Device& device,
                                  const std::string& folder) {
  const CollectiveModel nccl = calibrate::NcclDefaults(device.generation);
  calibrate::CollectiveGroup node;
  node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
  node.nvls = nccl.has_nvls_efficiency();
  const std::string path = absl::StrCat(folder, "/", device.table);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(Samples samples,
                   calibrate::ReadCollectiveTable(
                       path, text, device.mesh ? "float" : "half", node));
  if (!device.mesh) return samples;
  for (calibrate::CollectiveSample& sample : samples) {
    sample.group.intra_bytes_per_second =
        MeshBytesPerSecond(sample.group.num_ranks);
  }
  return samples;
}

std::vector<MeasuredSeconds> RowsOf(const Samples& samples) {
  std::vector<MeasuredSeconds> rows;
  for (const calibrate::CollectiveSample& sample : samples) {
    rows.push_back({static_cast<int>(rows.size()) + 1,
                    absl::StrFormat("%s of %.0f bytes on %d", Name(sample.kind),
                                    sample.bytes, sample.group.num_ranks),
                    sample.seconds});
  }
  return rows;
}

absl::Status Write(const Device& device, const std::string& tables,
                   const std::string& folder) {
  ASSIGN_OR_RETURN(const Samples samples, ReadTable(device, tables));
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(device.preset));
  const std::vector<MeasuredSeconds> rows = RowsOf(samples);
  const std::string path = absl::StrCat(folder, "/", device.set);
  RETURN_IF_ERROR(
      WriteRows(path + ".csv", rows,
                calibrate::PredictCollectives(profile.collectives(), samples)));
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   calibrate::CrossValidateCollectives(
                       calibrate::CollectiveStart(device.generation), samples));
  return WriteRows(path + "_left_out.csv", rows, left_out);
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TABLES FOLDER\n", argv[0]);
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
