// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/result_invariants.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/textproto.h"
#include "results/pipeline_events.h"
#include "results/trace/trace.h"
#include "results/validate.h"
#include "results/views/views.h"
#include "tests/fuzz/target.h"
#include "tests/results/trace/trace_stats.h"

namespace weir::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr double kInvariantRounding = 1e-9;
// Traces count nanoseconds in 64 bits.
constexpr double kLongestTraceSeconds = 9e9;

std::string Describe(const Result& result) {
  return PrintTextProto(results::WithoutTimeline(result));
}

// Returns true for gaps between kernels, which are negative if the next kernel
// starts while the last one drains.
bool MayBeNegative(const Message& message) {
  const auto* part = dynamic_cast<const PartSeconds*>(&message);
  return part != nullptr && part->name() == "kernel_gaps";
}

// Returns the path of the first quantity that is negative or not finite.
std::string BadQuantity(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int size =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const std::string path = absl::StrCat(prefix, ".", field->name(), i);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        std::string bad =
            BadQuantity(field->is_repeated()
                            ? reflection.GetRepeatedMessage(message, field, i)
                            : reflection.GetMessage(message, field),
                        path);
        if (!bad.empty()) return bad;
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
        const double value =
            field->is_repeated()
                ? reflection.GetRepeatedDouble(message, field, i)
                : reflection.GetDouble(message, field);
        if (std::isfinite(value) && (value >= 0 || MayBeNegative(message))) {
          continue;
        }
        return absl::StrCat(path, " is ", value);
      }
    }
  }
  return "";
}

bool Near(double a, double b) {
  return std::fabs(a - b) <=
         kInvariantRounding * std::max(std::fabs(a), std::fabs(b)) + 1e-300;
}

void CheckRank(const Result& result, const RankResult& rank) {
  const double makespan = result.makespan_seconds();
  const double slack = kInvariantRounding * makespan;
  REQUIRE_THAT(Near(rank.busy_seconds() + rank.idle_seconds(), makespan),
               rank.DebugString() + Describe(result));
  REQUIRE_THAT(rank.span_seconds() <= makespan + slack, Describe(result));
  REQUIRE_THAT(rank.exposed_communication_seconds() <= makespan + slack,
               Describe(result));
  REQUIRE_THAT(rank.peak_memory_at_seconds() <= makespan + slack,
               Describe(result));
  double bytes = 0;
  for (const MemoryClass& memory : rank.peak_memory_classes()) {
    bytes += memory.bytes();
  }
  REQUIRE_THAT(Near(bytes, rank.peak_memory_bytes()), rank.DebugString());
  REQUIRE(rank.weight_versions() <= result.weight_versions());
  REQUIRE(rank.staleness_updates() <= result.staleness_updates());
}

void CheckSums(const Result& result) {
  double parts = 0;
  for (const PartSeconds& part : result.parts()) parts += part.seconds();
  REQUIRE_THAT(Near(parts, result.batch_seconds()), Describe(result));
  const StepBreakdown& mean = result.breakdown();
  REQUIRE_THAT(
      Near(mean.compute_seconds() + mean.tensor_communication_seconds() +
               mean.expert_communication_seconds() +
               mean.context_communication_seconds() +
               mean.pipeline_transfer_seconds() +
               mean.data_communication_seconds() + mean.optimizer_seconds() +
               mean.bubble_seconds() + mean.rollback_seconds(),
           result.batch_seconds()),
      Describe(result));
  if (result.has_seconds_by_evidence()) {
    const SecondsByEvidence& by = result.seconds_by_evidence();
    REQUIRE_THAT(Near(by.measured() + by.interpolated() + by.fitted() +
                          by.datasheet() + by.assumed() + by.given(),
                      result.batch_seconds()),
                 Describe(result));
  }
  if (result.has_batch_seconds_low()) {
    REQUIRE_THAT(result.batch_seconds_low() <= result.batch_seconds() &&
                     result.batch_seconds() <= result.batch_seconds_high(),
                 Describe(result));
  }
}

// Samples are ordered by GPU and time. All memory allocated in a run is freed
// by its end, so the last sample is the static memory and the smallest sample.
void CheckMemory(const Result& result) {
  const Timeline::Memory& memory = result.timeline().memory();
  struct Level {
    double least = std::numeric_limits<double>::infinity(), last = 0, most = 0;
  };
  std::map<uint32_t, Level> levels;
  for (int i = 0; i < memory.gpu_size(); ++i) {
    Level& level = levels[memory.gpu(i)];
    level.last = memory.bytes(i);
    level.least = std::min(level.least, level.last);
    level.most = std::max(level.most, level.last);
  }
  for (const auto& [gpu, level] : levels) {
    const double peak = result.ranks(static_cast<int>(gpu)).peak_memory_bytes();
    REQUIRE_THAT(Near(level.most, peak), Describe(result));
    REQUIRE_THAT(level.last - level.least <= kInvariantRounding * peak,
                 absl::StrCat("GPU ", gpu, " ends with ", level.last,
                              " bytes, its least are ", level.least, "\n",
                              Describe(result)));
  }
}

// Checks passes and optimizer steps only, as offloads overlap them.
void CheckOrder(const Result& result) {
  const Timeline::Actions& actions = result.timeline().actions();
  std::map<uint32_t, std::vector<std::pair<double, double>>> by_gpu;
  for (int i = 0; i < actions.gpu_size(); ++i) {
    if (actions.op(i) > Timeline::Actions::OPTIMIZER_STEP) continue;
    by_gpu[actions.gpu(i)].push_back(
        {actions.start_seconds(i), actions.end_seconds(i)});
  }
  const double slack = kInvariantRounding * result.makespan_seconds();
  for (auto& [gpu, spans] : by_gpu) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 0; i + 1 < spans.size(); ++i) {
      const bool pair = spans[i] == spans[i + 1];
      REQUIRE_THAT(pair || spans[i].second <= spans[i + 1].first + slack,
                   Describe(result));
    }
    REQUIRE_THAT(spans.back().second <= result.makespan_seconds() + slack,
                 Describe(result));
  }
}

void CheckTrace(const Result& result) {
  if (result.makespan_seconds() >= kLongestTraceSeconds) return;
  const auto perfetto = results::PerfettoTrace(result);
  const auto chrome = results::ChromeTrace(result);
  REQUIRE_OK(perfetto);
  REQUIRE_OK(chrome);
  for (const results::ReadTrace& read :
       {results::ReadPerfetto(*perfetto), results::ReadChrome(*chrome)}) {
    REQUIRE_THAT(read.errors.empty(), read.errors.front() + Describe(result));
    REQUIRE_THAT(static_cast<int>(read.slices.size()) >=
                     result.timeline().actions().gpu_size(),
                 Describe(result));
  }
}

}  // namespace

void CheckQuantities(const Result& result) {
  const std::string bad = BadQuantity(result, "result");
  REQUIRE_THAT(bad.empty(), bad + "\n" + Describe(result));
  REQUIRE_OK(results::ValidateResult("fuzz", result));
  REQUIRE_THAT(
      result.idle_ratio() <= 1 + kInvariantRounding &&
          result.span_idle_ratio() <= 1 + kInvariantRounding &&
          result.exposed_communication_ratio() <= 1 + kInvariantRounding,
      Describe(result));
  double peak = 0;
  for (const RankResult& rank : result.ranks()) {
    CheckRank(result, rank);
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  REQUIRE_THAT(peak == result.peak_memory_bytes(), Describe(result));
  CheckSums(result);
}

void CheckTimeline(const Result& result) {
  REQUIRE_OK(results::ValidateTimeline("fuzz", result));
  CheckOrder(result);
  CheckMemory(result);
}

void CheckViews(const Result& result) {
  REQUIRE(!results::ResultTable(result).empty());
  REQUIRE(!results::CompareTable({&result, 1}).empty());
  REQUIRE_THAT(nlohmann::json::accept(results::ResultJson("fuzz", result)),
               Describe(result));
  REQUIRE_THAT(
      nlohmann::json::accept(results::CompareJson("fuzz", {&result, 1})),
      Describe(result));
  const auto ranks = ReadCsv("ranks", results::RanksCsv(result));
  REQUIRE_OK(ranks);
  REQUIRE(ranks->num_rows() == result.ranks_size());
  REQUIRE_OK(ReadCsv("results", results::CompareCsv({&result, 1})));
  if (result.has_timeline()) CheckTrace(result);
}

}  // namespace weir::fuzz
