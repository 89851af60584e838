// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/torchtitan_schedule.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/frameworks/torchtitan_stages.h"

namespace weir::plan {
namespace {

class ScheduleReader {
 public:
  ScheduleReader(const std::string& label, int64_t pipeline,
                 SettingValues* values, Problems* problems, Scenario* scenario)
      : label_(label),
        pipeline_(pipeline),
        values_(*values),
        problems_(*problems),
        scenario_(*scenario) {}

  void Take() {
    Parallelism& parallelism = *scenario_.mutable_parallelism();
    if (pipeline_ == 1) {
      scenario_.set_schedule("1f1b");
      parallelism.set_chunks(1);
      return;
    }
    const std::string key = "parallelism.pipeline_parallel_schedule";
    const std::string name = values_.Text(key, "1F1B");
    const std::string csv =
        values_.Text("parallelism.pipeline_parallel_schedule_csv", "");
    bool has_chunks = name != "PipelineScheduleSingle";
    if (!csv.empty()) {
      scenario_.set_schedule(
          (std::filesystem::path(label_).parent_path() / csv).string());
      if (scenario_.schedule().find('/') == std::string::npos) {
        scenario_.set_schedule("./" + scenario_.schedule());
      }
    } else {
      const auto& all = TorchSchedules();
      const auto found = std::find_if(
          all.begin(), all.end(),
          [&](const TorchSchedule& one) { return one.torch_name == name; });
      if (found == all.end()) {
        values_.Report(key,
                       absl::StrJoin(all, ", ", [](auto* out, const auto& one) {
                         absl::StrAppend(out, one.torch_name);
                       }));
        return;
      }
      scenario_.set_schedule(std::string(found->name));
      has_chunks = found->has_chunks;
    }
    TakeStages(has_chunks);
  }

 private:
  void TakeStages(bool has_chunks) {
    Parallelism& parallelism = *scenario_.mutable_parallelism();
    const std::string modules = "parallelism.module_fqns_per_model_part";
    const bool lists_modules =
        values_.Has(modules) && values_.Text(modules, "") != "[]";
    if (scenario_.transformer().num_layers() == 0) {  // a model of the flags
      parallelism.set_chunks(has_chunks ? 2 : 1);
      return;
    }
    const std::vector<uint32_t> blocks =
        lists_modules ? ListedBlocks(modules) : DividedBlocks(has_chunks);
    if (blocks.empty()) return;
    if (std::count(blocks.begin(), blocks.end(), 0u) > 0) {
      problems_.Add("parallelism",
                    "has a stage without layers, which is not simulated");
      return;
    }
    parallelism.set_chunks(static_cast<uint32_t>(blocks.size() / pipeline_));
    if (std::adjacent_find(blocks.begin(), blocks.end(),
                           std::not_equal_to<>()) != blocks.end()) {
      parallelism.mutable_blocks_per_stage()->Assign(blocks.begin(),
                                                     blocks.end());
    }
  }

  // Returns the blocks of each stage; empty after a problem.
  std::vector<uint32_t> ListedBlocks(const std::string& key) {
    const auto blocks = BlocksOfModules(values_.Text(key, ""),
                                        scenario_.transformer().num_layers());
    if (!blocks.ok()) {
      values_.Report(key, blocks.status().message());
      return {};
    }
    if (blocks->size() % pipeline_ != 0) {
      values_.Report(key, absl::StrCat("a multiple of ", pipeline_, " stages"));
      return {};
    }
    return *blocks;
  }

  std::vector<uint32_t> DividedBlocks(bool has_chunks) {
    const uint32_t layers = scenario_.transformer().num_layers();
    const auto less = [this](const char* key) {
      return static_cast<uint32_t>(values_.Whole(key, 1, 0));
    };
    const uint32_t first =
        less("parallelism.pipeline_parallel_first_stage_less_layers");
    const uint32_t last =
        less("parallelism.pipeline_parallel_last_stage_less_layers");
    const std::string key = "parallelism.pipeline_parallel_layers_per_stage";
    const int64_t each = values_.Whole(key, 0);
    int64_t num_stages = pipeline_ * (has_chunks ? 2 : 1);
    if (each > 0) {
      num_stages = (int64_t{layers} + first + last + each - 1) / each;
      if (num_stages % pipeline_ != 0 ||
          (num_stages > pipeline_) != has_chunks) {
        values_.Report(
            key, absl::StrCat("a number that gives ",
                              has_chunks ? "two or more stages" : "one stage",
                              " per pipeline rank, not ", num_stages,
                              " stages on ", pipeline_, " ranks"));
        return {};
      }
    }
    std::vector<uint32_t> blocks;
    if (num_stages <= kMaxSettingCount) {
      blocks = TorchtitanBlocks(static_cast<uint32_t>(num_stages), layers,
                                first, last);
    }
    if (blocks.empty()) {
      problems_.Add("parallelism",
                    absl::StrCat("asks for ", num_stages,
                                 " stages, into which torchtitan cannot "
                                 "divide ",
                                 layers, " layers"));
    }
    return blocks;
  }

  const std::string& label_;
  const int64_t pipeline_;
  SettingValues& values_;
  Problems& problems_;
  Scenario& scenario_;
};

}  // namespace

void TakeTorchtitanSchedule(const std::string& label, int64_t pipeline,
                            SettingValues* values, Problems* problems,
                            Scenario* scenario) {
  ScheduleReader(label, pipeline, values, problems, scenario).Take();
}

}  // namespace weir::plan
