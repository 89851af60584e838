// SPDX-License-Identifier: Apache-2.0
// Implementation of AssembleProfile(), shared by the assemble*.cc files.
#ifndef WEIR_CALIBRATE_MEASURE_ASSEMBLER_H_
#define WEIR_CALIBRATE_MEASURE_ASSEMBLER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/fit/fit_gemms.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/measurement_plan.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// A timed operation of the plan.
struct TimedOp {
  const StageOp* op;
  const WorkloadResult* result;
  bool of_pass = false;  // otherwise only used for fits

  double seconds() const { return result->seconds().p50(); }
};

class Assembler {
 public:
  Assembler(const MeasuringPlan& plan, const Calibration& journal,
            const DeviceProfile& start);

  // Returns the errors of AssembleProfile().
  absl::StatusOr<DeviceProfile> Assemble();

 private:
  void CollectOps();
  void AddKernels();
  void AddStages();
  void AddMemory();
  absl::Status FitMemoryFigures();
  absl::Status SetStreamResidual(const StreamFigures& start,
                                 absl::Span<const StreamSample> samples,
                                 const std::string& source);
  absl::Status FitAttentionFigures();
  absl::Status FitGemmFigures();
  double SampledPartOfBoost() const;
  void SetSustainedRate();
  absl::Status SetGemmResidual(const GemmMachine& machine,
                               const GemmModel& start,
                               absl::Span<const GemmSample> samples,
                               const std::string& source);
  void FitGap();
  void FitSlowdowns();
  absl::Status FitSelfSends();
  void SetMemoryFigures();
  // assemble_share.cc
  bool of_part() const { return journal_.num_partitions() > 1; }
  bool of_replays() const { return plan_.purpose == DeviceProfile::REPLAYS; }
  void SetPartition();
  void AddPartitionSlowdown();
  void AddProvenance();

  const WorkloadResult* Find(const std::string& key) const {
    const auto found = results_.find(key);
    return found == results_.end() ? nullptr : found->second;
  }
  static void Set(double value, Figure::Kind kind, const std::string& source,
                  Figure* figure);
  std::string FitSource(const char* what, const ErrorStatistics& errors) const;

  const MeasuringPlan& plan_;
  const Calibration& journal_;
  DeviceProfile profile_;
  std::string other_start_;  // result of OtherStart()
  std::string where_;
  double peak_flops_ = 0;
  std::map<std::string, const WorkloadResult*> results_;
  std::vector<TimedOp> ops_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_ASSEMBLER_H_
