// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/nccl_transport.h"
#include "calibrate/gpu/watchdog.h"
#include "calibrate/program/calibrate_main.h"
#include "calibrate/program/find_cuda.h"

int main(int argc, char** argv) {
  weir::Factories factories;
  factories.open_bench = [](const weir::BenchRequest& request) {
    weir::CudaBenchOptions options;
    options.device = request.device;
    options.num_candidates = request.num_candidates;
    options.timeout_seconds = request.timeout_seconds;
    options.num_partitions = request.num_partitions;
    return weir::OpenCudaBench(options);
  };
  factories.make_transport = weir::MakeNcclTransport;
  factories.find = weir::FindCuda;
  const int code = weir::CalibrateMain(argc, argv, factories);
  if (weir::DeviceIsHung()) {
    // The driver's own exit handlers would wait for it.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
