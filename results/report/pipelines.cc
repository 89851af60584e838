// SPDX-License-Identifier: Apache-2.0
#include "results/report/pipelines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "results/trace/select_gpus.h"

namespace weir::results {
namespace {

constexpr double kTolerance = 1e-6;

// What a pipeline does: integers that must be equal, times that must be near.
struct Fingerprint {
  std::vector<int64_t> events;
  std::vector<double> seconds;
  std::vector<double> peak_bytes;
};

bool AreNear(const std::vector<double>& a, const std::vector<double>& b,
             double relative, double absolute) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
        return std::abs(x - y) <= absolute + relative * std::max(x, y);
      });
}

class Reader {
 public:
  explicit Reader(const Result& result) : in_(result) {
    for (const RankResult& gpu : result.ranks()) {
      const auto pipeline =
          index_
              .emplace(std::pair(gpu.replica(), gpu.tensor_rank()),
                       prints_.size())
              .first->second;
      if (pipeline == prints_.size()) prints_.emplace_back();
      pipeline_of_.push_back(pipeline);
      prints_[pipeline].events.push_back(gpu.rank());
      prints_[pipeline].peak_bytes.push_back(gpu.peak_memory_bytes());
    }
    ReadActions();
    ReadTransfers();
    ReadCollectives();
  }

  std::vector<PipelineGroup> Groups() const {
    std::vector<PipelineGroup> groups;
    std::vector<const Fingerprint*> firsts;
    const double tolerance_seconds = kTolerance * in_.makespan_seconds();
    for (const auto& [key, pipeline] : index_) {
      const Fingerprint& print = prints_[pipeline];
      const auto found = std::find_if(
          firsts.begin(), firsts.end(), [&](const Fingerprint* first) {
            return first->events == print.events &&
                   AreNear(first->seconds, print.seconds, 0,
                           tolerance_seconds) &&
                   AreNear(first->peak_bytes, print.peak_bytes, kTolerance, 0);
          });
      if (found != firsts.end()) {
        ++groups[found - firsts.begin()].num_pipelines;
        continue;
      }
      firsts.push_back(&print);
      groups.push_back({key.first, key.second, 1});
    }
    return groups;
  }

 private:
  template <typename Columns>
  void Add(uint32_t gpu, int kind, const Columns& columns, int i) {
    Fingerprint& print = prints_[pipeline_of_[gpu]];
    for (const int64_t value :
         {int64_t{in_.ranks(static_cast<int>(gpu)).rank()}, int64_t{kind},
          int64_t{columns.stage(i)}, int64_t{columns.microbatch(i)}}) {
      print.events.push_back(value);
    }
    print.seconds.push_back(columns.start_seconds(i));
    print.seconds.push_back(columns.end_seconds(i));
  }

  void ReadActions() {
    const auto& columns = in_.timeline().actions();
    for (int i = 0; i < columns.gpu_size(); ++i) {
      Add(columns.gpu(i), columns.op(i), columns, i);
    }
  }

  void ReadTransfers() {
    const auto& columns = in_.timeline().transfers();
    for (int i = 0; i < columns.from_gpu_size(); ++i) {
      Add(columns.from_gpu(i), columns.kind(i), columns, i);
    }
  }

  void ReadCollectives() {
    const auto& columns = in_.timeline().collectives();
    for (int i = 0; i < columns.gpu_size(); ++i) {
      Add(columns.gpu(i), columns.kind(i), columns, i);
    }
  }

  const Result& in_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> index_;
  std::vector<Fingerprint> prints_;
  std::vector<size_t> pipeline_of_;  // [gpu]
};

}  // namespace

std::vector<PipelineGroup> GroupPipelines(const Result& result) {
  return Reader(result).Groups();
}

absl::StatusOr<Result> PipelineOf(const Result& result,
                                  const PipelineGroup& group) {
  GpuSelection selection;
  selection.replica = group.replica;
  selection.tensor_rank = group.tensor_rank;
  ASSIGN_OR_RETURN(Result pipeline, SelectGpus(result, selection));
  for (RankResult& gpu : *pipeline.mutable_ranks()) {
    gpu.set_replica(0);
    gpu.set_tensor_rank(0);
  }
  return pipeline;
}

}  // namespace weir::results
