// SPDX-License-Identifier: Apache-2.0
// Parsed arguments of weir-calibrate.
#ifndef WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_FLAGS_H_
#define WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fabric/command.h"
#include "calibrate/measure/measurement_plan.h"
#include "cli/options/flags.h"

namespace weir::cli {

struct RunFlags {
  std::string model;   // preset or file
  std::string out;     // profile to write
  std::string start;   // profile to start from; empty: chosen by the GPU's name
  std::string report;  // CSV; empty: none
  calibrate::PlanOptions plan;  // the format is the GPU's
  int device = 0;
  int num_candidates = 8;  // algorithms tried for a GEMM
  std::string only;        // workloads whose key contains this; empty: all
  double timeout_seconds = 120;  // without any progress
  int num_partitions = 1;        // 1: the whole GPU is measured
  // Absent: frameworks; on a partition, replays.
  std::optional<DeviceProfile::Purpose> purpose;
  bool list = false;   // print the plan, measure nothing
  bool fresh = false;  // ignore an earlier OUT.partial
  bool force = false;  // replace files that weir did not write
  bool quiet = false;
  std::string command;  // as typed
};

// Reports written by --report; empty, or no such file: not run.
struct JudgeFlags {
  std::string check;     // of `check`
  std::string run;       // of `run`
  std::string repeated;  // of the same run again
  std::string best;      // of a run of GEMMs with many candidates
  std::string out;       // CSV; empty: none
  bool all = false;      // print the worst rows of all checks
  bool force = false;
};

struct DoctorFlags {
  int device = 0;
  bool json = false;
};

// Defaults without a scenario.
inline constexpr char kCpuScenario[] = "replay-cpu";
inline constexpr char kGpuScenario[] = "replay-gpu";

struct ReplayFlags {
  Flags weir;  // scenario and output, as in `weir simulate`
  // The options of the scenario as typed ("--seq=1024"), without the schedule.
  std::vector<std::string> scenario_options;
  bool plan = false;            // print what fits, execute nothing
  double memory_bytes = 0;      // of the GPU to plan for; 0: this machine's
  int num_multiprocessors = 0;  // likewise
  bool cpu = false;             // threads and double precision
  // True: one rank at a time, with logical clocks; false: all ranks
  // concurrently. Absent: false with `cpu`; on a GPU, true unless it is divided
  // into partitions.
  std::optional<bool> serial;
  int num_partitions = 0;  // of the GPU, one per rank; 0: the whole GPU
  int num_steps = 5;
  uint64_t seed = 1;
  double learning_rate = 0;  // 0: that of the optimizer
  bool check = true;
  int device = 0;
  double timeout_seconds = 120;  // limit of any wait
};

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_FLAGS_H_
