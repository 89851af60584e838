// SPDX-License-Identifier: Apache-2.0
// What a run uses of its devices and links, for two sections of a report.
#ifndef WEIR_RESULTS_REPORT_RESOURCES_H_
#define WEIR_RESULTS_REPORT_RESOURCES_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace weir::results {

struct RunResources {
  struct Peak {
    std::string format;  // "bf16"
    double flops_per_second = 0;
  };
  // Kernels that are alike. `flops`, `bytes` (of device memory) and `seconds`
  // are those of one kernel.
  struct Kernel {
    std::string part;  // "feed_forward_gemm"
    double flops = 0, bytes = 0, seconds = 0;
    double count = 0;  // in one microbatch, over all stages
  };
  // LinkUse.Link
  struct Link {
    std::string name;  // "node3.nic0.tx"
    double bytes_per_second = 0;
    size_t num_pairs = 0;
    double transfer_bytes = 0, collective_bytes = 0, host_bytes = 0;
    // Mean utilization in each interval of the run.
    std::vector<double> utilization;
  };

  // Empty without kernels, as with given costs.
  std::string device;
  std::vector<Peak> peaks;
  double memory_bytes_per_second = 0;
  std::vector<Kernel> kernels;
  // Empty without a timeline or shared links. Busiest first.
  std::vector<Link> links;
  double from_seconds = 0, interval_seconds = 0;  // of the utilizations
  size_t num_links_left_out = 0;
};

// Returns the rates of the kernels of each run by part, against the limits of
// the device (Williams et al. 2009): FLOP per second against the highest peak,
// bytes per second against the memory bandwidth, and FLOP per second against
// the lower of the peak and (FLOP per byte) x bandwidth.
nlohmann::ordered_json RooflineSection(std::span<const RunResources> runs);

// Returns the utilization of the shared links of each run over time.
nlohmann::ordered_json SharedLinksSection(std::span<const RunResources> runs);

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_RESOURCES_H_
