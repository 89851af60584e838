// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/jitter_source.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/quantiles.h"
#include "base/split_mix.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "plan/stragglers/run_costs.h"
#include "scenarios/packed_sequences.h"

namespace weir::plan {
namespace {

using Kind = JitterSource::Kind;
using Target = JitterSource::Target;

constexpr double kMaxFactor = 1000;
// Larger deviations of a time are no jitter.
constexpr double kMaxDeviation = 3;
constexpr double kMaxDelaySeconds = 1e6;
// Microbatches of which documents are drawn, and documents of all of them.
constexpr int kDrawnMicrobatches = 1 << 14;
constexpr int64_t kDrawnDocuments = 1 << 24;

// Returns the error of a source, or of the part of it that is wrong.
absl::Status Bad(absl::string_view text, absl::string_view part,
                 absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text),
      part == text || part.empty() ? ""
                                   : absl::StrCat(", with ", EscapeLine(part)),
      ", expected ", expected));
}

bool ParseTarget(absl::string_view text, JitterSource* source) {
  if (absl::ConsumePrefix(&text, "link:")) {
    source->target = Target::kLink;
    source->link = std::string(text);
    return !text.empty();
  }
  const std::pair<absl::string_view, Target> kWhole[] = {
      {"link", Target::kLink},
      {"sequences", Target::kSequences},
      {"step", Target::kStep}};
  for (const auto& [name, target] : kWhole) {
    if (text != name) continue;
    source->target = target;
    return true;
  }
  const std::pair<absl::string_view, Target> kNames[] = {
      {"pass", Target::kPass},
      {"gpu", Target::kGpu},
      {"stage", Target::kStage}};
  for (const auto& [name, target] : kNames) {
    absl::string_view number = text;
    if (!absl::ConsumePrefix(&number, name)) continue;
    source->target = target;
    if (number.empty()) return true;
    return target != Target::kPass && absl::SimpleAtoi(number, &source->only) &&
           source->only >= 0;
  }
  return false;
}

bool ParseNumber(absl::string_view text, double high, double* number) {
  return absl::SimpleAtod(text, number) && *number >= 0 && *number <= high;
}

// Returns whether the target has such a distribution.
bool Fits(const JitterSource& source) {
  const Target target = source.target;
  switch (source.kind) {
    case Kind::kDocuments:
      return target == Target::kSequences;
    case Kind::kEmpirical:
      return target != Target::kSequences;
    case Kind::kRecorded:
      return target == Target::kPass;
    case Kind::kDelay:
      return target == Target::kPass || target == Target::kLink ||
             target == Target::kStep;
    default:
      return target != Target::kStep && target != Target::kSequences;
  }
}

// Forms of distributions with numbers, by their first word.
struct DistributionForm {
  absl::string_view name;
  Kind kind;
  absl::string_view expected;
};
constexpr DistributionForm kForms[] = {
    {"constant", Kind::kConstant,
     "constant:FACTOR, with a factor of 0 to 1000"},
    {"periodic", Kind::kPeriodic,
     "periodic:PERIOD:FACTOR, with a period of at least 1 and a factor of 0 to "
     "1000"},
    {"normal", Kind::kNormal, "normal:DEVIATION, with a deviation of 0 to 3"},
    {"lognormal", Kind::kLognormal,
     "lognormal:DEVIATION, with a deviation of 0 to 3"},
    {"exponential", Kind::kExponential,
     "exponential:MEAN, with a mean of 0 to 3"},
    {"delay", Kind::kDelay,
     "delay:PROBABILITY:SECONDS, with a probability of 0 to 1 and 0 to 1e6 "
     "seconds"},
};

// Returns whether the numbers after the name of the distribution are valid.
bool ParseNumbers(const std::vector<std::string>& parts, JitterSource* source) {
  if (source->kind == Kind::kPeriodic) {
    return parts.size() == 3 && absl::SimpleAtoi(parts[1], &source->period) &&
           source->period > 0 &&
           ParseNumber(parts[2], kMaxFactor, &source->parameter);
  }
  if (source->kind == Kind::kDelay) {
    return parts.size() == 3 &&
           ParseNumber(parts[1], 1, &source->probability) &&
           ParseNumber(parts[2], kMaxDelaySeconds, &source->parameter);
  }
  const double high =
      source->kind == Kind::kConstant ? kMaxFactor : kMaxDeviation;
  return parts.size() == 2 && ParseNumber(parts[1], high, &source->parameter);
}

absl::Status ParseDistribution(absl::string_view whole, absl::string_view text,
                               JitterSource* source) {
  absl::string_view rest = text;
  if (text == "packed") {
    source->kind = Kind::kDocuments;
    return absl::OkStatus();
  }
  if (text == "recorded") {
    source->kind = Kind::kRecorded;
    return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&rest, "file:")) {
    source->kind = Kind::kEmpirical;
    source->file = std::string(rest);
    return rest.empty() ? Bad(whole, text, "file:TIMES.csv") : absl::OkStatus();
  }
  // A view without data would have no parts.
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ':');
  for (const DistributionForm& form : kForms) {
    if (parts[0] != form.name) continue;
    source->kind = form.kind;
    return ParseNumbers(parts, source) ? absl::OkStatus()
                                       : Bad(whole, text, form.expected);
  }
  return Bad(whole, text,
             "constant:FACTOR, periodic:PERIOD:FACTOR, normal:DEVIATION, "
             "lognormal:DEVIATION, exponential:MEAN, delay:PROBABILITY:SECONDS "
             "or file:TIMES.csv; or recorded for pass, packed for sequences");
}

// Lengths of documents by probability.
class DocumentLengths {
 public:
  DocumentLengths(const SequenceLengths& lengths, double longest)
      : lengths_(lengths), longest_(longest) {
    for (const auto& length : lengths.histogram().lengths()) {
      count_ += length.count();
    }
    if (lengths.has_log_normal() && lengths.log_normal().deviation() > 0) {
      const double ratio =
          lengths.log_normal().deviation() / lengths.log_normal().mean();
      variance_ = std::log1p(ratio * ratio);
    }
  }

  // At least 1 token, at most a sequence.
  double At(double probability) const {
    return std::clamp(Uncut(probability), 1.0, longest_);
  }

 private:
  double Uncut(double p) const {
    switch (lengths_.distribution_case()) {
      case SequenceLengths::kUniform:
        return lengths_.uniform().shortest() +
               p * (lengths_.uniform().longest() -
                    lengths_.uniform().shortest());
      case SequenceLengths::kLogNormal: {
        p = std::clamp(p, 1e-12, 1 - 1e-12);
        return lengths_.log_normal().mean() *
               std::exp(std::sqrt(variance_) * NormalQuantile(p) -
                        variance_ / 2);
      }
      case SequenceLengths::kHistogram: {
        double left = p * count_;
        for (const auto& length : lengths_.histogram().lengths()) {
          left -= length.count();
          if (left < 0) return length.tokens();
        }
        return lengths_.histogram().lengths().rbegin()->tokens();
      }
      default:
        return lengths_.fixed();
    }
  }

  const SequenceLengths& lengths_;
  const double longest_;
  double count_ = 0, variance_ = 0;
};

}  // namespace

absl::StatusOr<JitterSource> ParseJitterSource(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  JitterSource source;
  source.text = std::string(text);
  if (!ParseTarget(parts.first, &source)) {
    return Bad(text, parts.first,
               "pass, gpu, gpuN, stage, stageN, link, link:NAME, step or "
               "sequences before \"=\"");
  }
  RETURN_IF_ERROR(ParseDistribution(text, parts.second, &source));
  if (!Fits(source)) {
    return Bad(text, text,
               "a delay or a file for step; packed for sequences; recorded "
               "only for pass, and a delay only for pass, link and step");
  }
  return source;
}

double NormalQuantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

bool AddsSeconds(const JitterSource& source) {
  return source.kind == Kind::kDelay || source.target == Target::kStep;
}

absl::Status ReadEmpiricalTimes(JitterSource* source) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(source->file));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(source->file, text));
  // The only column may have any name.
  std::string name =
      table.header().size() == 1 ? table.header().front() : "seconds";
  if (table.HasColumn("step_seconds")) name = "step_seconds";
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  ASSIGN_OR_RETURN(std::vector<double> seconds, column.Numbers(0, 1e9));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds.empty() ? 0 : QuantileOfSorted(seconds, 0.5);
  if (!(median > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source->file, ": ", name, " has ", seconds.size(),
        " times with the median ", median, ", expected a median above 0"));
  }
  for (double& each : seconds) {
    each = source->target == Target::kStep ? std::max(each - median, 0.0)
                                           : each / median;
  }
  source->values = std::move(seconds);
  return absl::OkStatus();
}

void SetDocuments(const Batch& batch, double priced_imbalance,
                  JitterSource* source) {
  const SequenceLengths& lengths = batch.packed_sequences();
  const double sequence_length = batch.sequence_length();
  const uint32_t microbatch_size = std::max(batch.microbatch_size(), 1U);
  const DocumentLengths quantiles(lengths, sequence_length);
  const double keys = scenarios::LengthMoment(lengths, 2, sequence_length) /
                      scenarios::LengthMoment(lengths, 1, sequence_length);
  const double documents =
      std::max(microbatch_size * sequence_length /
                   scenarios::LengthMoment(lengths, 1, sequence_length),
               1.0);
  const int num_microbatches = static_cast<int>(
      std::clamp<double>(static_cast<double>(kDrawnDocuments) / documents, 256,
                         kDrawnMicrobatches));
  uint64_t state = 0;
  source->values.clear();
  for (int i = 0; i < num_microbatches; ++i) {
    double scores = 0;
    for (uint32_t s = 0; s < microbatch_size; ++s) {
      for (double left = sequence_length; left > 0;) {
        const double length = std::min(
            left, quantiles.At(SplitMix(state += kSplitMixStep) * 0x1p-64));
        scores += length * length;
        left -= length;
      }
    }
    source->values.push_back(
        scores / (microbatch_size * sequence_length * keys * priced_imbalance));
  }
  std::sort(source->values.begin(), source->values.end());
}

absl::Status SetRecorded(const GivenCosts& costs, JitterSource* source) {
  source->recorded.clear();
  source->recorded_stages = costs.stages_size();
  for (int stage = 0; stage < costs.stages_size(); ++stage) {
    const GivenCosts::Stage& own = costs.stages(stage);
    const auto set = [&](schedules::Op op, const auto& factors) {
      if (factors.empty()) return;
      source->recorded[{stage, op}] = {factors.begin(), factors.end()};
    };
    set(schedules::Op::kForward, own.forward_factors());
    set(schedules::Op::kBackward, own.backward_factors());
    set(schedules::Op::kBackwardInput, own.backward_input_factors());
    set(schedules::Op::kBackwardWeight, own.backward_weight_factors());
    const double input_seconds = own.backward_input_seconds();
    const double weight_seconds = own.backward_weight_seconds();
    const bool has_parts = !own.backward_input_factors().empty() ||
                           !own.backward_weight_factors().empty();
    if (own.has_backward_seconds() || !has_parts ||
        !(input_seconds + weight_seconds > 0)) {
      continue;
    }
    const auto parts = [&](const auto& factors) {
      if (factors.empty()) {
        return std::vector<double>(kMostRecordedFactors, 1.0);
      }
      return MeansOfParts({factors.begin(), factors.end()},
                          kMostRecordedFactors);
    };
    const std::vector<double> input = parts(own.backward_input_factors());
    const std::vector<double> weight = parts(own.backward_weight_factors());
    std::vector<double>& whole =
        source->recorded[{stage, schedules::Op::kBackward}];
    for (int i = 0; i < kMostRecordedFactors; ++i) {
      whole.push_back((input_seconds * input[i] + weight_seconds * weight[i]) /
                      (input_seconds + weight_seconds));
    }
  }
  if (!source->recorded.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "command line: --jitter is ", source->text,
      ", but the costs have no factors of passes, expected --costs with a file "
      "of weir import --costs whose passes vary"));
}

std::vector<double> FactorQuantiles(const JitterSource& source, size_t size) {
  std::vector<double> factors(size);
  for (size_t i = 0; i < size; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(size);
    const double deviation = source.parameter;
    switch (source.kind) {
      case Kind::kNormal:
        factors[i] = std::max(1 + deviation * NormalQuantile(p), 0.0);
        break;
      case Kind::kLognormal:
        factors[i] =
            std::exp(deviation * NormalQuantile(p) - deviation * deviation / 2);
        break;
      case Kind::kExponential:
        factors[i] = 1 - deviation * std::log1p(-p);
        break;
      case Kind::kDelay: {
        const double above = (1 - p) / source.probability;
        factors[i] = above < 1 ? -deviation * std::log(above) : 0;
        break;
      }
      case Kind::kEmpirical:
      case Kind::kDocuments:
        factors[i] = QuantileOfSorted(source.values, p);
        break;
      default:
        factors[i] = 1;
    }
  }
  return factors;
}

}  // namespace weir::plan
