// SPDX-License-Identifier: Apache-2.0
// Checks importers with small traces, also damaged and incomplete ones.
#include "results/import/import_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "results/import/messages.h"
#include "results/import/operation_names.h"
#include "results/import/run_result.h"
#include "results/pipeline_events.h"
#include "results/validate.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::import_trace_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

void ExpectEqualOperations(const RecordedRun& a, const RecordedRun& b) {
  ASSERT_EQ(a.operations.size(), b.operations.size());
  for (size_t i = 0; i < a.operations.size(); ++i) {
    const RecordedOperation& x = a.operations[i];
    const RecordedOperation& y = b.operations[i];
    EXPECT_EQ(x.step, y.step);
    EXPECT_EQ(x.replica, y.replica);
    EXPECT_EQ(x.rank, y.rank);
    EXPECT_EQ(x.stage, y.stage) << NameOf(x.kind);
    EXPECT_EQ(x.microbatch, y.microbatch);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_NEAR(x.start_seconds, y.start_seconds, 1e-12);
    EXPECT_NEAR(x.end_seconds, y.end_seconds, 1e-12);
  }
}

TEST(ImportTraceTest, JsonAndTableAndTheirCompressedFormsAreTheSameRun) {
  const auto operations = SampleOperations({});
  const auto json = ImportTraceText("a.json", SampleJson(operations));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->num_replicas, 2);
  EXPECT_EQ(json->num_ranks, 2);
  EXPECT_EQ(json->num_stages, 2);
  EXPECT_EQ(json->operations.size(), operations.size());
  EXPECT_THAT(json->notes, IsEmpty());
  EXPECT_EQ(StepsOf(*json).size(), 3);
  for (const RecordedStep& step : StepsOf(*json)) {
    EXPECT_NEAR(step.seconds(), SampleStepSeconds({}, step.step), 1e-12);
  }
  const std::string csv = SampleCsv(operations);
  for (const std::string& text :
       {csv, Gzip(csv), Gzip(SampleJson(operations)),
        absl::StrCat("{\"schemaVersion\":1,\"traceEvents\":",
                     SampleJson(operations), "}"),
        // Two members in a row.
        Gzip(csv.substr(0, 1000)) + Gzip(csv.substr(1000))}) {
    const auto same = ImportTraceText("b", text);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_THAT(same->notes, IsEmpty());
    ExpectEqualOperations(*json, *same);
  }
}

TEST(ImportTraceTest, MessagesGetTheMicrobatchesOfTheirPasses) {
  const auto run = ImportTraceText("a", SampleCsv(SampleOperations({})));
  ASSERT_TRUE(run.ok()) << run.status();
  for (const RecordedStep& step : StepsOf(*run)) {
    int num_pairs = 0;
    for (const auto& members : GroupsOf(step).members) {
      if (!IsMessage(step.begin[members[0]].kind)) continue;
      ASSERT_EQ(members.size(), 2);
      const RecordedOperation& a = step.begin[members[0]];
      const RecordedOperation& b = step.begin[members[1]];
      EXPECT_EQ(a.microbatch, b.microbatch);
      EXPECT_EQ(std::abs(a.stage - b.stage), 1);
      ++num_pairs;
    }
    EXPECT_EQ(num_pairs, 2 * 2 * 2);  // replicas, microbatches, directions
  }
}

// Runtimes record receives of the first stage and sends of the last, which
// transfer nothing, and one more receive at the end of a step.
TEST(ImportTraceTest, MessagesThatTransferNothingAreLeftOut) {
  auto operations = SampleOperations({});
  const size_t count = operations.size();
  for (const RecordedOperation& o : SampleOperations({})) {
    RecordedOperation extra = o;
    extra.microbatch = -1;
    if (o.kind == RecordedKind::kForward && o.rank == 0) {
      extra.kind = RecordedKind::kReceiveForward;
    } else if (o.kind == RecordedKind::kOptimizerStep && o.rank == 0) {
      extra.kind = RecordedKind::kReceiveBackward;
    } else {
      continue;
    }
    operations.push_back(extra);
  }
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->operations.size(), count);
  EXPECT_THAT(
      run->notes,
      ElementsAre(HasSubstr(absl::StrCat(
          operations.size() - count, " sends and receives transfer nothing"))));

  SampleShape shape;
  shape.num_steps = 1;
  operations = SampleOperations(shape);
  operations.push_back(operations[0]);
  operations.back().kind = RecordedKind::kSendForward;
  operations.back().start_seconds = 2;
  operations.back().end_seconds = 3;
  const auto refused = ImportTraceText("a", SampleCsv(operations));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("step 10, replica 0, pipeline rank 0: has 3 forward "
                        "sends for 2 passes, expected one for each"));
}

TEST(ImportTraceTest, TheResultHasTheTimesOfTheStep) {
  const auto run = ImportTraceText("d/a.csv", SampleCsv(SampleOperations({})));
  ASSERT_TRUE(run.ok()) << run.status();
  const Result result = ResultOfStep(*run, MedianStep(StepsOf(*run)));
  EXPECT_TRUE(ValidateResult("a", result).ok()) << ValidateResult("a", result);
  EXPECT_EQ(result.name(), "a");
  EXPECT_EQ(result.ranks_size(), 4);
  EXPECT_EQ(result.num_microbatches(), 2);
  EXPECT_NEAR(result.batch_seconds(), SampleStepSeconds({}, 10), 1e-12);
  for (const RankResult& rank : result.ranks()) {
    // Two forwards, two backwards, the optimizer step.
    EXPECT_NEAR(rank.busy_seconds(), 2 * 1 + 2 * 2 + 0.5, 1e-12);
    EXPECT_NEAR(rank.busy_seconds() + rank.idle_seconds(),
                result.makespan_seconds(), 1e-12);
    EXPECT_GE(rank.exposed_communication_seconds(), 0.5 + 0.75 + 0.125 - 1e-12);
  }
  const auto events = PipelineEventsOf("a", result);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ(events->transfers.size(), 4);
  for (const TimelineTransfer& transfer : events->transfers) {
    EXPECT_NEAR(transfer.end_seconds - transfer.start_seconds, 0.25, 1e-12);
  }
}

// Every prefix is an error or a run with a note, and never ends the program.
TEST(ImportTraceTest, TruncatedFilesAreRepairedOrRefused) {
  const auto operations = SampleOperations({});
  const auto whole = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(whole.ok());
  for (const std::string& text : {SampleJson(operations), SampleCsv(operations),
                                  Gzip(SampleJson(operations))}) {
    int num_repaired = 0;
    for (size_t size = 0; size < text.size(); size += 97) {
      const auto run = ImportTraceText("a", text.substr(0, size));
      if (!run.ok()) {
        EXPECT_THAT(std::string(run.status().message()), HasSubstr("a:"));
        continue;
      }
      ++num_repaired;
      EXPECT_LE(run->operations.size(), whole->operations.size());
      // Nothing tells that rows are missing after the end of a line.
      if (text[size - 1] == '\n') continue;
      EXPECT_THAT(run->notes, Not(IsEmpty()));
    }
    EXPECT_GT(num_repaired, 0);
  }
}

// ByteDance's files have the names of threads at the end.
TEST(ImportTraceTest, AFileThatEndsBeforeItsThreadsAreNamedIsCutOff) {
  std::string text = SampleJson(SampleOperations({}));
  text = absl::StrReplaceAll(text, {{"thread_name", "thread_nick"}});
  const auto unnamed = ImportTraceText("a", text);
  EXPECT_THAT(std::string(unnamed.status().message()),
              HasSubstr("thread 0 of process 0 has no name"));
  const auto cut = ImportTraceText("a", text.substr(0, text.size() - 20));
  EXPECT_THAT(std::string(cut.status().message()),
              HasSubstr("a: is cut off before the names of its threads"));
}

TEST(ImportTraceTest, AStepThatEndsEarlyIsNoRun) {
  SampleShape shape;
  shape.num_steps = 1;
  auto operations = SampleOperations(shape);
  const auto is_last = [](const RecordedOperation& o) {
    return o.kind == RecordedKind::kBackward && o.rank == 0 &&
           o.microbatch == 1;
  };
  std::erase_if(operations, is_last);
  const auto run = ImportTraceText("a", SampleCsv(operations));
  EXPECT_THAT(
      std::string(run.status().message()),
      HasSubstr("no step is complete; step 10 has 2 forward passes but 1 "
                "backward passes in stage 0 of replica 0"));
}

TEST(ImportTraceTest, StepsThatLackOperationsAreLeftOut) {
  auto operations = SampleOperations({});
  operations.pop_back();  // an optimizer step of the last step
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(StepsOf(*run).size(), 2);
  EXPECT_THAT(
      run->notes,
      ElementsAre(HasSubstr("step 30 (1 of 3) left out as incomplete")));
}

TEST(ImportTraceTest, DuplicatesAreDroppedOrRefused) {
  auto operations = SampleOperations({});
  operations.push_back(operations[4]);
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->operations.size(), operations.size() - 1);
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr("recorded twice")));

  SampleShape shape;
  shape.num_steps = 1;
  operations = SampleOperations(shape);
  for (auto& o : SampleOperations(shape)) {
    if (!IsPass(o.kind)) continue;
    o.end_seconds += 0.125;
    operations.push_back(o);
    break;
  }
  const auto refused = ImportTraceText("a", SampleCsv(operations));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("a: no step is complete; step 10 has two forward "
                        "passes of microbatch 0 with different times in stage "
                        "0 of replica 0"));
}

TEST(ImportTraceTest, MissingRanksAreNamed) {
  auto operations = SampleOperations({});
  std::erase_if(operations, [](const RecordedOperation& o) {
    return o.replica == 1 && o.rank == 0;
  });
  const auto run = ImportTraceText("a", SampleCsv(operations));
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("has no operations of pipeline rank 0 of replica 1, "
                        "expected all workers of 2 replicas x 2"));
}

TEST(ImportTraceTest, NumbersThatATableLacksAreNoted) {
  // Sets the number of each worker.
  int tensor_ranks = 0;
  const auto notes = [&](int first, int second, int third, int fourth) {
    const std::string csv = absl::StrReplaceAll(
        SampleCsv(SampleOperations({})),
        {{"0,0,0,0,", absl::StrCat("0,", first, ",0,0,")},
         {"0,0,1,0,", absl::StrCat("0,", second, ",1,0,")},
         {"0,0,0,1,", absl::StrCat("0,", third, ",0,1,")},
         {"0,0,1,1,", absl::StrCat("0,", fourth, ",1,1,")}});
    const auto run = ImportTraceText("a", csv);
    EXPECT_TRUE(run.ok()) << run.status();
    tensor_ranks = run.ok() ? run->num_tensor_ranks : 0;
    return run.ok() ? run->notes : std::vector<std::string>();
  };
  EXPECT_THAT(notes(0, 1, 2, 3), IsEmpty());
  EXPECT_EQ(tensor_ranks, 1);
  EXPECT_THAT(notes(0, 4, 8, 12),
              ElementsAre(HasSubstr("taken to have 4 tensor-parallel ranks")));
  EXPECT_EQ(tensor_ranks, 4);
  EXPECT_THAT(notes(0, 1, 4, 5),
              ElementsAre(HasSubstr("column rank lacks 2, 3 of 0 to 5: workers "
                                    "are missing")));
  // Without the first worker.
  EXPECT_THAT(notes(1, 2, 3, 4),
              ElementsAre(HasSubstr("column rank lacks 0 of 0 to 4")));
}

TEST(ImportTraceTest, MessagesOfTheLastStageToAnotherAreNoted) {
  auto operations = SampleOperations({});
  for (const RecordedOperation& o : SampleOperations({})) {
    if (o.kind != RecordedKind::kForward || o.rank != 1) continue;
    RecordedOperation extra = o;
    extra.microbatch = -1;
    extra.kind = RecordedKind::kSendForward;
    extra.start_seconds = o.end_seconds;
    extra.end_seconds = o.end_seconds + 0.25;
    operations.push_back(extra);
  }
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr("All are with a stage after "
                                                "the last one")));
}

TEST(ImportTraceTest, ClocksThatDifferAreRepaired) {
  auto operations = SampleOperations({});
  for (RecordedOperation& o : operations) {
    if (o.rank == 0) continue;
    o.start_seconds += 5;  // seconds ahead
    o.end_seconds += 5;
  }
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes,
              ElementsAre(AllOf(HasSubstr("messages arrive up to 4.75 s before "
                                          "they are sent (12 of 24 messages"),
                                HasSubstr("by -5 s (pipeline rank 1 of"))));
  for (const RecordedStep& step : StepsOf(*run)) {
    EXPECT_NEAR(step.seconds(), SampleStepSeconds({}, step.step), 1e-9);
    const std::vector<double> seconds = TransferSeconds(step, GroupsOf(step));
    EXPECT_GE(*std::min_element(seconds.begin(), seconds.end()), 0.125 - 1e-9);
  }
}

TEST(ImportTraceTest, MessagesWithoutTheirCounterpartAreNoted) {
  auto operations = SampleOperations({});
  std::erase_if(operations, [](const RecordedOperation& o) {
    return o.kind == RecordedKind::kSendForward;
  });
  const auto run = ImportTraceText("a", SampleCsv(operations));
  ASSERT_TRUE(run.ok()) << run.status();
  // 3 steps, 2 replicas and 2 microbatches; as many messages backward.
  EXPECT_THAT(run->notes,
              ElementsAre(HasSubstr("12 receives have no send, of 36 sends and "
                                    "receives")));
}

TEST(ImportTraceTest, TimesBeyondAllClocksAreRefused) {
  const auto trace = [](const std::string& start, const std::string& base) {
    return absl::StrCat(
        "{\"baseTimeNanoseconds\":", base,
        ",\"traceEvents\":[{\"ph\":\"X\",\"name\":\"PP:0F0\",\"ts\":", start,
        ",\"dur\":1},{\"ph\":\"X\",\"name\":\"PP:0B0\",\"ts\":5,\"dur\":5}]}");
  };
  EXPECT_TRUE(ImportTraceText("a", trace("0", "1.7e18")).ok());
  EXPECT_EQ(ImportTraceText("a", trace("0", "1e30")).status().message(),
            "a: baseTimeNanoseconds is 1e+30, expected nanoseconds from -1e+19 "
            "to 1e+19");
  EXPECT_EQ(ImportTraceText("a", trace("-1e17", "0")).status().message(),
            "a: event 1: ts is -1e+17, expected microseconds from -1e+16 to "
            "1e+16");
  EXPECT_THAT(
      std::string(ImportTraceText("a", trace("null", "0")).status().message()),
      HasSubstr("event 1: ts is null, expected microseconds"));
}

// Both could be traces of the same rank.
TEST(ImportTraceTest, FilesOfSeveralFormatsAreRefused) {
  const std::string ranges =
      "[{\"ph\":\"X\",\"name\":\"PP:0F0\",\"ts\":0,\"dur\":1}]";
  EXPECT_EQ(
      ImportTraceTexts({{"a.json", ranges}, {"b.sqlite", "SQLite format 3"}})
          .status()
          .message(),
      "b.sqlite: is an export of Nsight Systems, but a.json is Chrome "
      "JSON with ranges of passes, expected files of one format");
  const std::string timeline = SampleJson(SampleOperations({}));
  EXPECT_EQ(ImportTraceTexts({{"a.json", ranges}, {"b.json", timeline}})
                .status()
                .message(),
            "b.json: is a timeline of ByteDance, but a.json is Chrome JSON "
            "with ranges of passes, expected files of one format");
}

TEST(ImportTraceTest, BadFieldsAreNamed) {
  const std::string csv = SampleCsv(SampleOperations({}));
  const std::pair<std::string, std::string> kCases[] = {
      {absl::StrReplaceAll(csv, {{"optype", "op"}}), "has no column optype"},
      {absl::StrReplaceAll(csv, {{"optimizer-clip-main-grad", "clip"}}),
       "optype is \"clip\", expected forward-compute"},
      {csv + "10,0,0,x,optimizer,0,-1,-1,-1,0,1\n",
       "stage is \"x\", expected an integer"},
      {csv + "10,0,0,0,optimizer,0,-1,-1,-1,0,-1\n",
       "duration is \"-1\", expected seconds"},
      {csv + "10,0,0,0\n", "has 4 fields, expected 11"},
      {"[{\"ph\":\"X\",\"ts\":\"now\"}]", "event 1: ts is \"now\", expected"},
      {"[{\"ph\":\"X\",\"name\":\"a\"}]", "has no ts"},
      {"[{\"ph\":\"X\",\"ts\":1,\"dur\":-1}]", "event 1: dur is -1, expected"},
      {"[{\"a\":1,}, 7]", "is not JSON"},
      {"{\"a\":1}", "has no events"},
      {"[]", "none of 0 events names a pass"},
      {"[{\"ph\":\"X\",\"ts\":1,\"name\":\"gemm\"}]",
       "none of 1 events names a pass"},
      {std::string(5000, '['), "nests deeper than 100"},
      {"", "is no trace, expected JSON, or a table with"},
      {Gzip("[]").substr(0, 12) + "????????", "a:"},
  };
  for (const auto& [text, expected] : kCases) {
    const auto run = ImportTraceText("a", text);
    EXPECT_THAT(std::string(run.status().message()),
                AllOf(HasSubstr("a:"), HasSubstr(expected)));
  }
}

// 32 MiB of one string, from 32 kB.
TEST(ImportTraceTest, ALongStringIsRefusedBeforeItFillsTheMemory) {
  const std::string text =
      absl::StrCat("[{\"name\":\"", std::string(32 << 20, 'a'));
  const auto run = ImportTraceText("a", Gzip(text));
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("a name, value or line is longer than 16 MiB"));
}

TEST(ImportTraceTest, MissingFilesAndFoldersAreErrors) {
  EXPECT_TRUE(absl::IsNotFound(ImportTrace({"/nowhere"}).status()));
  EXPECT_FALSE(ImportTrace({"/"}).ok());
}

std::string RangeEvents(int rank, bool on_gpu) {
  const char* category = on_gpu ? "gpu_user_annotation" : "user_annotation";
  std::string text = absl::StrCat("{\"distributedInfo\":{\"rank\":", rank,
                                  "},\"traceEvents\":[");
  double time = 1.7e15 + 100 * rank;
  for (int step = 0; step < 2; ++step) {
    for (const char* op : {"F0", "F1", "B0", "B1"}) {
      // The gradients come from rank 1.
      if (rank == 0 && op == std::string("B0")) time += 200;
      absl::StrAppendFormat(
          &text,
          R"({"ph":"X","cat":"%s","name":"PP:%d%s","pid":9,"tid":7,)"
          R"("ts":%.0f,"dur":50},)",
          category, rank, op, time);
      time += 200;
    }
    if (rank == 1) time += 200;
  }
  return text + R"({"ph":"M","name":"process_name","pid":9}]})";
}

TEST(ImportTraceTest, RangesOfTorchtitanNameStageAndMicrobatch) {
  const std::string folder = testing::TempDir();
  std::vector<std::string> paths;
  for (const int rank : {1, 0}) {
    paths.push_back(absl::StrCat(folder, "/rank", rank, ".json.gz"));
    std::ofstream(paths.back(), std::ios::binary)
        << Gzip(RangeEvents(rank, true));
  }
  double done = 0;
  const auto run = ImportTrace(paths, [&](double part) {
    EXPECT_GE(part, done);
    done = part;
  });
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(run->num_ranks, 2);
  EXPECT_EQ(run->num_stages, 2);
  EXPECT_EQ(run->num_replicas, 1);
  EXPECT_THAT(run->notes, IsEmpty());
  ASSERT_EQ(StepsOf(*run).size(), 2);
  // Four starts of 200 us each before the last pass of rank 0.
  EXPECT_NEAR(StepsOf(*run)[0].seconds(), (4 * 200 + 50) * 1e-6, 1e-12);
  const auto twice = ImportTrace({paths[0], folder + "/./rank1.json.gz"});
  EXPECT_THAT(std::string(twice.status().message()),
              HasSubstr("is the same file as"));

  // The same pass on another stream, 10 us later.
  std::string streams = RangeEvents(0, true);
  streams.insert(streams.find("{\"ph\":\"M\""),
                 R"({"ph":"X","cat":"gpu_user_annotation","name":"PP:0F0",)"
                 R"("pid":9,"tid":20,"ts":1700000000000010,"dur":60},)");
  const auto merged = ImportTraceText("a", streams);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(StepsOf(*merged).size(), 2);
  EXPECT_NEAR(merged->operations[0].seconds(), 70e-6, 1e-12);

  const auto host = ImportTraceText("a", RangeEvents(0, false));
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_THAT(host->notes, ElementsAre(HasSubstr("ranges on the host")));
}

// A file of a rank without distributedInfo, and a copy of it.
TEST(ImportTraceTest, CopiesOfAFileAreNoReplicas) {
  const std::string text = absl::StrReplaceAll(
      RangeEvents(0, true), {{"distributedInfo", "otherInfo"}});
  const std::string folder = testing::TempDir();
  std::vector<std::string> paths;
  for (const char* name : {"/original.json", "/copy.json"}) {
    paths.push_back(folder + name);
    std::ofstream(paths.back(), std::ios::binary) << text;
  }
  const auto run = ImportTrace(paths);
  EXPECT_THAT(std::string(run.status().message()),
              AllOf(HasSubstr("copy.json: has the same ranges at the same "
                              "times as "),
                    HasSubstr("original.json, expected one file")));
}

TEST(ImportTraceTest, NamesOfAllRuntimesAreParsed) {
  const auto parsed = [](const char* name) {
    const auto o = ParseOperationName(name);
    return o.has_value() ? absl::StrCat(NameOf(o->kind), " ", o->stage, " ",
                                        o->chunk, " ", o->microbatch)
                         : "none";
  };
  EXPECT_EQ(parsed("forward-compute"), "forward -1 -1 -1");
  EXPECT_EQ(parsed("PP:2F3"), "forward 2 -1 3");
  EXPECT_EQ(parsed("PP:2I3"), "backward-input 2 -1 3");
  EXPECT_EQ(parsed("PP:1SEND_B0"), "backward send 1 -1 0");
  EXPECT_EQ(parsed("PP:1UNSHARD"), "weight gather 1 -1 -1");
  EXPECT_EQ(parsed("Forward 4"), "forward -1 -1 4");
  EXPECT_EQ(parsed("Backward 4"), "backward -1 -1 4");
  EXPECT_EQ(parsed("F3.1.0"), "forward -1 1 3");
  EXPECT_EQ(parsed("W3.1"), "backward-weight -1 1 3");
  for (const char* name :
       {"", "F", "F3", "F3.", "F3.1.2.3", "F-3.1", "PP:", "PP:2X3", "Forward",
        "Forward -1", "aten::mm", "B.1.2"}) {
    EXPECT_EQ(parsed(name), "none") << name;
  }
}

// Two layers' ranges; the exchange runs beside the second attention, which
// hides half of it.
std::string ProfileEvents() {
  std::string text = "[";
  int correlation = 0;
  const auto add = [&](const char* range, double host, double gpu,
                       double microseconds, int stream) {
    ++correlation;
    absl::StrAppendFormat(
        &text,
        R"({"ph":"X","cat":"user_annotation","name":"%s","ts":%g,"dur":10},)"
        R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":%g,)"
        R"("dur":1,"args":{"correlation":%d}},)"
        R"({"ph":"X","cat":"kernel","name":"k","tid":%d,"ts":%g,"dur":%g,)"
        R"("args":{"correlation":%d}},)",
        range, host, host + 5, correlation, stream, gpu, microseconds,
        correlation);
  };
  add("attn(F)", 0, 1000, 100, 7);
  add("dispatch(F)", 20, 1100, 200, 20);
  add("attn(B)", 40, 1200, 100, 7);
  add("mlp(W)", 60, 1300, 50, 7);
  return text + R"({"ph":"M","name":"process_name"}])";
}

TEST(ImportTraceTest, ProfilesOfOneGpuShowWhatHidesTheExchanges) {
  const auto run = ImportTraceText("a", ProfileEvents());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->operations.size(), 4);
  EXPECT_NEAR(StepsOf(*run)[0].seconds(), 350e-6, 1e-12);
  EXPECT_EQ(run->operations[1].kind, RecordedKind::kDispatch);
  EXPECT_NEAR(run->operations[1].seconds(), 200e-6, 1e-12);
  EXPECT_EQ(run->operations[2].kind, RecordedKind::kBackwardInput);
  EXPECT_THAT(run->summary,
              HasSubstr("dispatch and combine: 0.200 ms, of which computation "
                        "hides 0.100 ms (50.0 %)"));
  const Result result = ResultOfStep(*run, 0);
  EXPECT_TRUE(ValidateResult("a", result).ok());
  EXPECT_NEAR(result.ranks(0).exposed_communication_seconds(), 100e-6, 1e-12);
}

// github.com/deepseek-ai/profile-data, train.json: one overlapped forward and
// backward chunk of four layers. The expected figures were computed with other
// code.
TEST(ImportTraceTest, TheProfileOfDeepSeekV3) {
  const char* data = std::getenv("WEIR_DATA");
  const std::string path = absl::StrCat(data == nullptr ? "" : data,
                                        "/kineto/deepseek_v3_train.json.gz");
  if (data == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "needs the folder kineto in $WEIR_DATA";
  }
  const auto run = ImportTrace({path});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, IsEmpty());
  // attn and mlp in F, B and W, dispatch and combine in F and B.
  EXPECT_EQ(run->operations.size(), 4 * (2 * 3 + 2 * 2));
  EXPECT_EQ(run->num_stages, 4);
  EXPECT_NEAR(StepsOf(*run)[0].seconds(), 129.012e-3, 1e-9);
  std::string summary = run->summary;
  absl::RemoveExtraAsciiWhitespace(&summary);
  for (const char* row :
       {"attn(B) 4 404 37.363 ms", "attn(F) 4 276 17.479 ms",
        "attn(W) 4 20 9.554 ms", "combine(B) 4 12 23.077 ms",
        "combine(F) 4 8 34.736 ms", "dispatch(B) 4 8 29.947 ms",
        "dispatch(F) 4 12 26.761 ms", "mlp(B) 4 116 21.224 ms",
        "mlp(F) 4 79 18.415 ms", "mlp(W) 4 48 25.513 ms",
        "129.012 ms from the first kernel to the last, 128.515 ms busy",
        "dispatch and combine: 114.521 ms, of which computation hides 110.292 "
        "ms (96.3 %)"}) {
    EXPECT_THAT(summary, HasSubstr(row));
  }
  const Result result = ResultOfStep(*run, 0);
  EXPECT_TRUE(ValidateResult("a", result).ok());
}

}  // namespace
}  // namespace weir::results::import_trace_test
