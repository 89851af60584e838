// SPDX-License-Identifier: Apache-2.0
// What makes passes, transfers and steps take longer or shorter than predicted.
#ifndef WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_
#define WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.pb.h"
#include "schedules/action.h"

namespace weir::plan {

// Multiplies times by a factor, or adds a delay to them.
struct JitterSource {
  // A value is drawn for each pass, each GPU, each stage of the model (on all
  // its GPUs), each transfer over links, each microbatch of a replica
  // (kSequences), or once for the step.
  enum class Target { kPass, kGpu, kStage, kLink, kSequences, kStep };
  enum class Kind {
    kConstant,  // `parameter`
    // `parameter` for every `period`-th pass of a GPU (kStage: of a stage on a
    // GPU), or every `period`-th transfer over `link` or, if that is empty,
    // from one GPU to another; else 1.
    kPeriodic,
    kNormal,       // 1 + parameter x a standard normal number, at least 0
    kLognormal,    // exp(parameter x normal - parameter^2 / 2), of mean 1
    kExponential,  // 1 + parameter x an exponential number of mean 1
    // With a probability, adds exponential seconds of mean `parameter`. Of
    // passes, transfers and steps.
    kDelay,
    // `values`, all equally probable. For steps: seconds that are added.
    kEmpirical,
    // The attention of the documents that a microbatch packs, over its mean:
    // `values`, which the caller sets (SetDocuments). Multiplies the part of a
    // pass that is attention. Only kSequences.
    kDocuments,
    // Recorded times of the pass's stage and kind, `recorded`, which the caller
    // sets (SetRecorded). Only kPass.
    kRecorded,
  };
  Target target = Target::kPass;
  Kind kind = Kind::kConstant;
  double parameter = 1;
  uint32_t period = 1;
  double probability = 1;
  // Only of this GPU or stage; -1: of all.
  int32_t only = -1;
  std::string link;  // only of transfers over this link; empty: of all
  std::vector<double> values;  // ascending, not empty for kEmpirical
  std::string file;            // of kEmpirical
  // Factors of kRecorded by stage and operation, ascending and equally
  // probable. Passes without an entry take their own time.
  std::map<std::pair<int, schedules::Op>, std::vector<double>> recorded;
  int recorded_stages = 0;  // entries of the costs; 1: for all stages
  std::string text;         // as it was given
};

// Parses "pass=lognormal:0.05", "gpu=normal:0.02", "stage3=constant:1.2",
// "gpu17=constant:1.25", "pass=periodic:16:1.5", "gpu=exponential:0.1",
// "link:node3.nic2=lognormal:0.3", "link=periodic:2:1.5",
// "step=delay:0.2:0.08", "pass=file:log.csv", "pass=recorded" or
// "sequences=packed". Returns InvalidArgument "is x, expected y". Does not read
// files: their path is in `file`.
absl::StatusOr<JitterSource> ParseJitterSource(absl::string_view text);

// Fits an empirical source to the column "seconds" (or "step_seconds", or the
// only column) of a CSV: factors are times over their median, delays of steps
// are times minus the median, at least 0. Requires: source->file is not empty.
// Returns NotFound if the file does not exist, InvalidArgument if it has no
// such column or its median is not above 0.
absl::Status ReadEmpiricalTimes(JitterSource* source);

// Draws the attention of microbatches of the batch's packed sequences, which
// documents of random lengths fill; the last document of a sequence is cut.
// `priced_imbalance`: by which the attention of passes is longer than its mean
// (models::PackedDocuments). Deterministic. Requires: batch.packed_sequences is
// valid, sequence_length and microbatch_size are set.
void SetDocuments(const Batch& batch, double priced_imbalance,
                  JitterSource* source);

// Takes the factors of costs (GivenCosts.Stage). A whole backward of which only
// the parts were recorded has their factors of the same probability, each with
// its part of the time. Returns InvalidArgument if the costs have no factors.
absl::Status SetRecorded(const GivenCosts& costs, JitterSource* source);

// Returns true if the source adds seconds instead of multiplying them.
bool AddsSeconds(const JitterSource& source);

// The factor, or the seconds that are added, at equally probable quantiles
// (i + 1/2) / size of a distribution. Requires: the source is random.
std::vector<double> FactorQuantiles(const JitterSource& source, size_t size);

// Returns the standard normal quantile.
double NormalQuantile(double probability);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_
