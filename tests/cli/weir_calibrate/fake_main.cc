// SPDX-License-Identifier: Apache-2.0
// weir-calibrate with a fake GPU. WEIR_FAKE selects failures and
// disturbances: "noise=0.02;sleep=0.01;hangs=norm;wrong=gelu;gpu=NVIDIA
// A100-SXM4-80GB".
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "calibrate/execute/host_device.h"
#include "cli/weir_calibrate/calibrate_main.h"
#include "tests/calibrate/measure/fake_bench.h"

namespace weir::cli {
namespace {

double Number(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) std::abort();
  return value;
}

struct FakeOptions {
  calibrate::FakeBenchOptions options = calibrate::FakeH200();
  std::string gpu, cublas, missing;
};

FakeOptions ReadFakeOptions() {
  FakeOptions fake;
  calibrate::FakeBenchOptions& options = fake.options;
  const char* text = std::getenv("WEIR_FAKE");
  for (absl::string_view entry :
       absl::StrSplit(text ? text : "", ';', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const auto& [name, value] = pair;
    if (name == "noise") options.noise = Number(value);
    if (name == "seed") options.seed = static_cast<uint64_t>(Number(value));
    if (name == "sleep") options.sleep_seconds = Number(value);
    if (name == "wrong") options.wrong.push_back(value);
    if (name == "breaks") options.breaks.push_back(value);
    if (name == "hangs") options.hangs.push_back(value);
    if (name == "too_large") options.too_large.push_back(value);
    // Kernels as efficient as copies; presets have the values of eager
    // frameworks.
    if (name == "efficient") {
      options.truth.mutable_norm_efficiency()->set_value(0.8);
      options.truth.mutable_elementwise_efficiency()->set_value(0.8);
    }
    if (name == "hot_from") {
      options.episodes.push_back({Number(value), 1e9, 1.1, true, true});
    }
    if (name == "gpu") fake.gpu = value;
    if (name == "cublas") fake.cublas = value;
    if (name == "missing") fake.missing = value;
  }
  return fake;
}

Factories FakeFactories() {
  Factories factories;
  factories.open_bench = [](const BenchRequest& request)
      -> absl::StatusOr<std::unique_ptr<calibrate::Bench>> {
    FakeOptions fake = ReadFakeOptions();
    if (request.num_partitions > 0) {
      fake.options =
          calibrate::FakePart(std::move(fake.options), request.num_partitions);
    }
    if (!fake.missing.empty()) {
      return absl::FailedPreconditionError(fake.missing);
    }
    auto bench = std::make_unique<calibrate::FakeBench>(fake.options);
    if (!fake.gpu.empty()) {
      bench->mutable_provenance()->set_gpu_name(fake.gpu);
    }
    if (!fake.cublas.empty()) {
      bench->mutable_provenance()->mutable_software()->set_cublas(fake.cublas);
    }
    return bench;
  };
  factories.make_transport = [](const calibrate::TransportRequest&) {
    return absl::UnavailableError("the fake has no network");
  };
  // Replays compute on the host instead of the GPU.
  factories.open_replay = [](const calibrate::ExecutionPlan& plan,
                             const ReplayDeviceRequest& request)
      -> absl::StatusOr<std::unique_ptr<calibrate::ExecutionDevice>> {
    const std::string missing = ReadFakeOptions().missing;
    if (!missing.empty()) return absl::FailedPreconditionError(missing);
    calibrate::HostDeviceOptions options;
    options.concurrent = request.num_partitions > 0;
    return calibrate::MakeHostDevice(plan, options);
  };
  factories.find = [](int) {
    const std::string missing = ReadFakeOptions().missing;
    return std::vector<calibrate::MachineFinding>{
        {"driver", "580.95.05", "", true},
        {"GPU", missing.empty() ? "NVIDIA H200" : "", missing, true},
        {"NVML", "", "clocks and power stay unknown", false}};
  };
  factories.identify = [](int) -> absl::StatusOr<Provenance> {
    const FakeOptions fake = ReadFakeOptions();
    if (!fake.missing.empty()) {
      return absl::FailedPreconditionError(fake.missing);
    }
    Provenance gpu = calibrate::FakeBench(fake.options).provenance();
    if (!fake.gpu.empty()) gpu.set_gpu_name(fake.gpu);
    return gpu;
  };
  return factories;
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::cli::CalibrateMain(argc, argv, weir::cli::FakeFactories());
}
