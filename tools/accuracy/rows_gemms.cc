// SPDX-License-Identifier: Apache-2.0
// Compares the GEMMs of every device in the published tables with the preset,
// as gemm_assumed_DEVICE_left_out.csv with the parameters of a similar device,
// and, as SET_left_out.csv, with fits that have not seen a row's weight shape
// (n, k), nor those of a tenth of all others:
//
//   accuracy_rows_gemms DATA FOLDER
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/fit/fit_gemms.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/fit/new_device.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

struct Device {
  const char* set;
  const char* preset;
  const char* table;  // below DATA/aiconfigurator2
  // A device whose parameters predict this one, and the name of those rows.
  const char* similar;
  const char* assumed;
};

constexpr int kNumFolds = 10;

constexpr Device kDevices[] = {
    {"gemm_a100", "a100-sxm-80gb", "gemm_a100_sxm_bf16.csv", "h100-sxm",
     "gemm_assumed_a100"},
    {"gemm_h100", "h100-sxm", "gemm_h100_sxm_bf16.csv", "a100-sxm-80gb",
     "gemm_assumed_h100"},
    {"gemm_h200", "h200-sxm", "gemm_h200_sxm_bf16.csv", "h100-sxm",
     "gemm_assumed_h200"},
    {"gemm_b200", "b200-sxm", "gemm_b200_sxm_bf16.csv", "h200-sxm",
     "gemm_assumed_b200"},
    {"gemm_gb200", "gb200", "gemm_gb200_bf16.csv", "b200-sxm",
     "gemm_assumed_gb200"},
};

absl::Status Write(const Device& device, const std::string& data,
                   const std::string& folder) {
  const std::string table =
      absl::StrCat(data, "/aiconfigurator2/", device.table);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(table));
  ASSIGN_OR_RETURN(const calibrate::MeasuredGemms gemms,
                   calibrate::ReadGemms(table, text));
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(device.preset));
  ASSIGN_OR_RETURN(const calibrate::GemmMachine machine,
                   calibrate::MachineOf(profile, "bf16"));
  std::vector<MeasuredSeconds> rows;
  for (size_t i = 0; i < gemms.samples.size(); ++i) {
    const calibrate::GemmSample& sample = gemms.samples[i];
    rows.push_back({gemms.lines[i],
                    absl::StrFormat("%.0f x %.0f x %.0f", sample.shape.m,
                                    sample.shape.n, sample.shape.k),
                    sample.seconds});
  }
  const std::string path = absl::StrCat(folder, "/", device.set);
  RETURN_IF_ERROR(WriteRows(
      path + ".csv", rows,
      calibrate::PredictGemms(machine, profile.gemm(), gemms.samples)));
  ASSIGN_OR_RETURN(DeviceProfile similar,
                   calibrate::LoadDeviceProfile(device.similar));
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(similar, "bf16"));
  calibrate::ScaleRates(machine.flops_per_second / peak,
                        similar.mutable_gemm());
  RETURN_IF_ERROR(WriteRows(
      absl::StrCat(folder, "/", device.assumed, "_left_out.csv"), rows,
      calibrate::PredictGemms(machine, similar.gemm(), gemms.samples)));
  // Leaves out a tenth of the weight shapes at a time, each with all of its
  // rows, and starts from generic parameters, since the preset's were fitted to
  // every row.
  std::vector<int> groups = calibrate::WeightShapes(gemms.samples);
  for (int& group : groups) group %= kNumFolds;
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   calibrate::CrossValidateGemms(
                       machine, calibrate::GenericGemms(machine, 0.5),
                       gemms.samples, groups));
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
