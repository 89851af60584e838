// SPDX-License-Identifier: Apache-2.0
#include "results/store.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "results/compare/execution_comparison.h"
#include "results/trace/trace.h"
#include "results/views/views.h"
#include "tests/results/sample.h"

namespace weir::results::store_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;

Results Sample() {
  Results results;
  *results.add_results() = SampleResult();
  *results.add_results() = PipelineTimeline(3, 2);
  return results;
}

std::string MessageOf(const Results& results) {
  return std::string(
      ParseResults("x.pb", results.SerializeAsString()).status().message());
}

TEST(StoreTest, WhatIsSavedIsLoaded) {
  const std::string path = ::testing::TempDir() + "/store_test/results.pb";
  const Results results = Sample();
  std::filesystem::remove(path);  // of an earlier run
  ASSERT_TRUE(SaveResults(path, results).ok());
  EXPECT_TRUE(IsReplaceable(path, ReplaceOptions()));
  const auto loaded = LoadResults(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(*loaded, results));
}

TEST(StoreTest, TextThatCouldNotBeReadBackIsNotWritten) {
  Results results = Sample();
  results.mutable_results(1)->set_name("caf\xe9");
  const std::string path = ::testing::TempDir() + "/store_test/latin1.pb";
  const absl::Status status = SaveResults(path, results);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not UTF-8"));
  EXPECT_FALSE(ReadFile(path).ok());
}

TEST(StoreTest, AMissingFileIsNotFound) {
  EXPECT_EQ(LoadResults("/does/not/exist.pb").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(StoreTest, ForeignFilesAreNamed) {
  const Result single = SampleResult();
  for (const std::string& bytes :
       {std::string(), std::string("not protobuf at all\n"),
        std::string("{\"tool\": \"weir\"}"), single.SerializeAsString(),
        std::string(100, '\0'), std::string(100, '\xff')}) {
    const auto status = ParseResults("some/file.pb", bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                EndsWith("some/file.pb: is not a result file of weir"));
  }
}

TEST(StoreTest, ACutFileIsRefused) {
  const std::string bytes = Sample().SerializeAsString();
  EXPECT_FALSE(ParseResults("x", bytes.substr(0, bytes.size() / 2)).ok());
}

TEST(StoreTest, BrokenTimelinesNameTheColumnAndTheEntry) {
  struct Case {
    std::function<void(Timeline*)> damage;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](Timeline* t) { t->mutable_actions()->add_stage(0); },
       "x.pb: results[1]: timeline.actions.stage has 18 entries, expected 17"},
      {[](Timeline* t) { t->mutable_actions()->set_gpu(5, 3); },
       "timeline.actions.gpu[5] is 3, expected 0 to 2"},
      {[](Timeline* t) { t->mutable_actions()->mutable_op()->Set(2, 7); },
       "timeline.actions.op[2] is 7, expected 0 to 6"},
      {[](Timeline* t) { t->mutable_actions()->set_end_seconds(0, 0.5); }, ""},
      {[](Timeline* t) { t->mutable_actions()->set_end_seconds(3, 0); },
       "timeline.actions.end_seconds[3] is 0, expected at least the start"},
      {[](Timeline* t) {
         t->mutable_actions()->set_start_seconds(1, std::nan(""));
       },
       "timeline.actions.start_seconds[1] is nan, expected a finite number"},
      {[](Timeline* t) { t->mutable_transfers()->set_to_gpu(0, 4000000000u); },
       "timeline.transfers.to_gpu[0] is 4000000000, expected 0 to 2"},
      {[](Timeline* t) { t->mutable_transfers()->set_bytes(0, -1); },
       "timeline.transfers.bytes[0] is -1, expected a finite number"},
      {[](Timeline* t) { t->mutable_transfers()->add_ready_seconds(1); },
       "timeline.transfers.ready_seconds has 1 entries, expected 8"},
      {[](Timeline* t) {
         t->mutable_transfers()->mutable_ready_seconds()->Resize(8, -1);
       },
       "timeline.transfers.ready_seconds[0] is -1, expected a finite number"},
      {[](Timeline* t) {
         t->mutable_actions()->mutable_num_microbatches()->Resize(17, 1 << 30);
       },
       "timeline.actions.num_microbatches[0] is 1073741824, expected 0 to"},
      {[](Timeline* t) { t->mutable_actions()->add_weight_version(0); },
       "timeline.actions.weight_version has 1 entries, expected 17"},
      {[](Timeline* t) { t->mutable_class_memory()->add_gpu(3); },
       "timeline.class_memory.gpu[0] is 3, expected 0 to 2"},
      {[](Timeline* t) {
         t->mutable_class_memory()->add_gpu(2);
         t->mutable_class_memory()->add_kind(MemoryClass::WEIGHTS);
         t->mutable_class_memory()->add_seconds(0);
       },
       "timeline.class_memory.bytes has 0 entries, expected 1"},
      {[](Timeline* t) { t->mutable_collectives()->mutable_kind()->Set(0, 6); },
       "timeline.collectives.kind[0] is 6, expected 0 to 5"},
      {[](Timeline* t) { t->mutable_memory()->clear_bytes(); },
       "timeline.memory.bytes has 0 entries, expected 17"},
  };
  for (const Case& c : cases) {
    Results results = Sample();
    c.damage(results.mutable_results(1)->mutable_timeline());
    EXPECT_THAT(MessageOf(results), HasSubstr(c.message));
    EXPECT_EQ(MessageOf(results).empty(), *c.message == 0) << c.message;
  }
}

TEST(StoreTest, AllProblemsOfAResultComeTogether) {
  Results results = Sample();
  Result* result = results.mutable_results(0);
  result->clear_schedule();
  result->set_idle_ratio(std::nan(""));
  for (RankResult& rank : *result->mutable_ranks()) {
    rank.set_busy_seconds(INFINITY);
  }
  const std::string message = MessageOf(results);
  EXPECT_THAT(message, HasSubstr("x.pb: results[0]: schedule is empty"));
  EXPECT_THAT(message, HasSubstr("results[0]: idle_ratio is not a finite"));
  EXPECT_THAT(message, HasSubstr("results[0]: ranks.8.busy_seconds is not"));
  EXPECT_THAT(message, HasSubstr("results[0]: 7 more numbers are not finite"));
}

// The loss of diverging training is NaN.
TEST(StoreTest, AReplaysNumbersAreCheckedButForItsLosses) {
  Results results = Sample();
  Replay* replay = results.mutable_results(1)->mutable_replay();
  replay->add_losses(std::nan(""));
  replay->set_weights_difference(INFINITY);
  EXPECT_EQ(MessageOf(results), "");
  EXPECT_THAT(ResultJson("show", results.results(1)),
              HasSubstr("/replay/losses/0 is not a finite number"));
  replay->add_step_seconds(1);
  replay->add_step_seconds(std::nan(""));
  replay->add_allocator_peak_bytes(5);
  const std::string message = MessageOf(results);
  EXPECT_THAT(message, HasSubstr("results[1]: replay.step_seconds.1 is not a "
                                 "finite number"));
  EXPECT_THAT(message, HasSubstr("results[1]: replay.allocator_peak_bytes has "
                                 "1 entries, expected 3, one per rank"));
}

void ShowAll(const Results& results) {
  const std::vector<Result> all(results.results().begin(),
                                results.results().end());
  CompareTable(all);
  CompareJson("fuzz", all);
  CompareCsv(all);
  for (const Result& result : all) {
    ResultTable(result);
    ResultJson("fuzz", result);
    RanksCsv(result);
    if (!result.has_timeline()) continue;
    PerfettoTrace(result).IgnoreError();
    ChromeTrace(result).IgnoreError();
    const auto compared = CompareExecution("a", result, "b", result);
    if (compared.ok()) ExecutionTable(*compared, true);
  }
}

// Any bytes give an error or a result that every view can show.
TEST(StoreTest, DamagedBytesNeverCrashAView) {
  const std::string original = Sample().SerializeAsString();
  std::mt19937 random(20260101);
  int num_accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = original;
    for (int i = 1 + static_cast<int>(random() % 4); i > 0; --i) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), 9));
      }
      if (bytes.empty()) bytes.push_back(0);
    }
    const auto results = ParseResults("damaged", bytes);
    if (!results.ok()) continue;
    ++num_accepted;
    ShowAll(*results);
  }
  EXPECT_GT(num_accepted, 300);  // the views did show damaged results
}

}  // namespace weir::results::store_test
