// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/find_cuda.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/device.h"
#include "calibrate/gpu/host/nvml.h"

namespace weir::calibrate {
namespace {

MachineFinding FindDriver() {
  MachineFinding finding = {
      "driver", "",
      "install NVIDIA's driver (nvidia-smi shows whether it works)", true};
  int version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0) {
    finding.found = absl::StrCat("for CUDA ", CudaVersion(version));
  }
  return finding;
}

MachineFinding FindRuntime() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return {"CUDA", CudaVersion(version), "", true};
}

MachineFinding FindNvml(const std::string& bus_id) {
  MachineFinding finding = {"NVML", "", "", false};
  const auto nvml = Nvml::Open(CudaBenchOptions().nvml, bus_id);
  if (!nvml.ok()) {
    finding.advice = absl::StrCat(nvml.status().message(),
                                  "; clocks and power stay unknown");
    return finding;
  }
  finding.found = absl::StrCat("driver ", (*nvml)->driver_version(), ", ",
                               (*nvml)->clocks(), " clocks");
  if ((*nvml)->power_limit_watts() > 0) {
    absl::StrAppendFormat(&finding.found, ", power limit %.0f W",
                          (*nvml)->power_limit_watts());
  }
  return finding;
}

MachineFinding FindNccl() {
  MachineFinding finding = {"NCCL", "", "libnccl.so.2 does not answer", true};
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess) {
    finding.found = absl::StrCat(version / 10000, ".", version / 100 % 100, ".",
                                 version % 100);
  }
  return finding;
}

MachineFinding FindCublas() {
  const auto version = static_cast<int>(cublasLtGetVersion());
  return {"cuBLASLt",
          absl::StrCat(version / 10000, ".", version / 100 % 100, ".",
                       version % 100),
          "", true};
}

}  // namespace

std::vector<MachineFinding> FindCuda(int device) {
  std::vector<MachineFinding> findings = {FindDriver(), FindRuntime()};
  MachineFinding gpu = {"GPU", "", "", true};
  const auto facts = FindDevice(device);
  if (facts.ok()) {
    gpu.found =
        absl::StrFormat("%s, sm_%d%d, %d multiprocessors, %s", facts->name,
                        facts->major, facts->minor, facts->num_multiprocessors,
                        FormatBytes(double(facts->memory_bytes)));
  } else {
    gpu.advice = std::string(facts.status().message());
  }
  findings.push_back(gpu);
  findings.push_back(
      facts.ok() ? FindNvml(facts->bus_id)
                 : MachineFinding{"NVML", "", "comes with the driver", false});
  findings.push_back(FindCublas());
  findings.push_back(FindNccl());
  return findings;
}

}  // namespace weir::calibrate
