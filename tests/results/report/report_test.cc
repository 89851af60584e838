// SPDX-License-Identifier: Apache-2.0
#include "results/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/assets.h"
#include "base/output_file.h"
#include "results/compare/idle_causes.h"
#include "results/report/data_block.h"
#include "results/report/pipelines.h"
#include "results/views/views.h"
#include "tests/hostile_names.h"
#include "tests/results/sample.h"

namespace weir::results::report_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A data block, read again.
struct Data {
  json header;
  std::string columns;

  const json& Section(const std::string& type) const {
    static const json& none = *new json();
    for (const json& section : header["sections"]) {
      if (section["type"] == type) return section;
    }
    return none;
  }

  std::vector<double> Column(size_t index) const {
    const json& column = header["columns"][index];
    const std::string type = column["type"];
    const size_t width = type == "f64"   ? 8
                         : type == "u32" ? 4
                         : type == "u16" ? 2
                                         : 1;
    std::vector<double> values;
    for (size_t i = 0; i < column["length"]; ++i) {
      const char* at =
          columns.data() + column["offset"].get<size_t>() + i * width;
      uint64_t bits = 0;
      std::memcpy(&bits, at, width);
      values.push_back(width == 8 ? std::bit_cast<double>(bits)
                                  : static_cast<double>(bits));
    }
    return values;
  }
};

Data Read(absl::string_view block) {
  uint32_t length = 0;
  std::memcpy(&length, block.data(), sizeof(length));
  Data data;
  data.header = json::parse(block.substr(4, length).begin(),
                            block.substr(4, length).end());
  data.columns = std::string(block.substr((4 + length + 7) / 8 * 8));
  return data;
}

Data DataOf(std::vector<Result> results, const ReportOptions& options = {}) {
  const auto block = ReportData(results, options);
  EXPECT_TRUE(block.ok()) << block.status();
  return block.ok() ? Read(*block) : Data();
}

std::string Gunzip(absl::string_view compressed) {
  z_stream stream{};
  inflateInit2(&stream, 16 + MAX_WBITS);
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string text, buffer(1 << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  inflateEnd(&stream);
  return text;
}

// The page in front of the data, the data, and the rest.
std::vector<std::string> Split(const std::string& page) {
  const std::string begin = "id=\"report-data\">";
  const size_t at = page.find(begin) + begin.size();
  const size_t end = page.find("</script>", at);
  return {page.substr(0, at), page.substr(at, end - at), page.substr(end)};
}

// `copies` replicas of a pipeline.
Result Replicated(const Result& pipeline, int copies) {
  Result result = pipeline;
  for (int copy = 1; copy < copies; ++copy) {
    const uint32_t offset = copy * pipeline.ranks_size();
    for (RankResult rank : pipeline.ranks()) {
      rank.set_replica(copy);
      rank.set_gpu(rank.gpu() + offset);
      *result.add_ranks() = rank;
    }
    Timeline more = pipeline.timeline();
    for (auto& gpu : *more.mutable_actions()->mutable_gpu()) gpu += offset;
    for (auto& gpu : *more.mutable_transfers()->mutable_from_gpu()) {
      gpu += offset;
    }
    for (auto& gpu : *more.mutable_transfers()->mutable_to_gpu()) gpu += offset;
    for (auto& gpu : *more.mutable_collectives()->mutable_gpu()) gpu += offset;
    for (auto& gpu : *more.mutable_memory()->mutable_gpu()) gpu += offset;
    more.clear_from_seconds();
    result.mutable_timeline()->MergeFrom(more);
  }
  return result;
}

Result Pipeline(int num_ranks, int num_microbatches) {
  Result result = PipelineTimeline(num_ranks, num_microbatches);
  result.set_makespan_seconds(PipelineEventsOf("x", result)->makespan_seconds);
  result.set_weight_versions(1);
  return result;
}

TEST(ReportTest, WeightsOfARecordedRunAreUnknown) {
  Result result = Pipeline(4, 6);
  const auto has_weights = [&] {
    const Data data = DataOf({result});
    const json& rows = data.Section("figures")["rows"];
    return std::any_of(rows.begin(), rows.end(), [](const json& row) {
      return row["json"] == "weight_versions" ||
             row["json"] == "staleness_updates";
    });
  };
  EXPECT_TRUE(has_weights());
  result.clear_weight_versions();
  EXPECT_FALSE(has_weights());
}

TEST(ReportTest, FiguresAreThoseOfTheJsonOutput) {
  for (const Result& result :
       {SampleResult(), GivenCostsResult(), Pipeline(4, 6)}) {
    const json expected = json::parse(ResultJson("x", result))["result"];
    const Data data = DataOf({result});
    int num_compared = 0;
    for (const json& row : data.Section("figures")["rows"]) {
      const std::string field = row["json"];
      if (field.empty()) continue;
      ASSERT_TRUE(expected.contains(field)) << field;
      EXPECT_EQ(row["cells"][0]["value"], expected[field]) << field;
      ++num_compared;
    }
    EXPECT_GE(num_compared, 4);
    const json& parts = data.Section("breakdown")["parts"];
    for (size_t i = 0; i < parts.size() && result.has_breakdown(); ++i) {
      const std::string name = parts[i]["json"];
      if (!expected["breakdown"].contains(name)) continue;
      EXPECT_EQ(data.Section("breakdown")["runs"][0]["seconds"][i],
                expected["breakdown"][name]);
    }
  }
}

TEST(ReportTest, TheFirstRowOfEachRankCoversTheRunWithPassesAndIdleTime) {
  const Result result = Pipeline(4, 6);
  const Data data = DataOf({result});
  const json& timeline = data.Section("timeline");
  const json& columns = timeline["columns"];
  const auto gap = data.Column(columns["gap"]);
  const auto duration = data.Column(columns["duration"]);
  const auto kind = data.Column(columns["kind"]);
  const double tick = timeline["tick_seconds"];
  const auto idle = FindIdleCauses(*PipelineEventsOf("x", result));

  ASSERT_EQ(timeline["panels"].size(), 1u);
  const json& panel = timeline["panels"][0];
  size_t at = panel["first"];
  uint32_t num_rows_of_passes = 0;
  for (const json& row : panel["rows"]) {
    const size_t end = at + row["size"].get<size_t>();
    if (row["lane"] != "compute") {
      at = end;
      continue;
    }
    const uint32_t rank = row["rank"];
    EXPECT_EQ(rank, num_rows_of_passes++);
    double seconds = 0, busy = 0, drain = 0;
    std::vector<double> by_cause(kNumIdleCauses, 0);
    for (; at < end; ++at) {
      EXPECT_EQ(gap[at], 0) << "rank " << rank;
      const double length = duration[at] * tick;
      seconds += length;
      if (kind[at] < 30) busy += length;
      if (kind[at] == 36) drain += length;
      if (kind[at] >= 30 && kind[at] < 36) {
        by_cause[static_cast<size_t>(kind[at]) - 30] += length;
      }
    }
    EXPECT_NEAR(seconds, result.makespan_seconds(), 1e-6);
    EXPECT_NEAR(busy, idle[rank].busy_seconds, 1e-6);
    EXPECT_NEAR(drain, idle[rank].drain_seconds, 1e-6);
    for (int cause = 0; cause < kNumIdleCauses; ++cause) {
      EXPECT_NEAR(by_cause[cause], idle[rank].of(static_cast<IdleCause>(cause)),
                  1e-6);
    }
  }
  EXPECT_EQ(num_rows_of_passes, 4u);
}

TEST(ReportTest, InputsAreThePassesThatComputedThem) {
  const Data data = DataOf({Pipeline(3, 2)});
  const json& columns = data.Section("timeline")["columns"];
  const auto kind = data.Column(columns["kind"]);
  const auto stage = data.Column(columns["stage"]);
  const auto microbatch = data.Column(columns["microbatch"]);
  const auto input = data.Column(columns["input"]);
  int num_inputs = 0;
  for (size_t i = 0; i < kind.size(); ++i) {
    if (input[i] == 0) continue;
    const auto from =
        static_cast<uint32_t>(i) - static_cast<uint32_t>(input[i]);
    ASSERT_LT(from, kind.size());
    EXPECT_EQ(microbatch[from], microbatch[i]);
    EXPECT_EQ(stage[from], kind[i] == 0 ? stage[i] - 1 : stage[i] + 1);
    ++num_inputs;
  }
  EXPECT_EQ(num_inputs, 2 * 2 * 2);  // both directions, 2 hops, 2 microbatches
}

TEST(ReportTest, CopiesOfBlocksHaveRows) {
  Result result = Pipeline(2, 2);
  HostCopies* copies = result.mutable_host_copies();
  for (const auto& [op, start] : {std::pair(Timeline::Actions::OFFLOAD, 0.5),
                                  std::pair(Timeline::Actions::RELOAD, 3.0)}) {
    copies->add_gpu(1);
    copies->add_op(op);
    copies->add_stage(1);
    copies->add_microbatch(0);
    copies->add_block(2);
    copies->add_bytes(4096);
    copies->add_start_seconds(start);
    copies->add_end_seconds(start + 0.25);
  }
  const Data data = DataOf({result});
  const json& timeline = data.Section("timeline");
  const json& columns = timeline["columns"];
  const auto kind = data.Column(columns["kind"]);
  const auto gap = data.Column(columns["gap"]);
  const auto duration = data.Column(columns["duration"]);
  const double tick = timeline["tick_seconds"];
  int num_found = 0;
  size_t at = timeline["panels"][0]["first"];
  for (const json& row : timeline["panels"][0]["rows"]) {
    const bool out = row["lane"] == "layers to host";
    if (out || row["lane"] == "layers from host") {
      ++num_found;
      EXPECT_EQ(row["rank"], 1);
      ASSERT_EQ(row["size"], 1);
      EXPECT_EQ(kind[at], out ? 14 : 15);
      EXPECT_NEAR(gap[at] * tick, out ? 0.5 : 3.0, 1e-6);
      EXPECT_NEAR(duration[at] * tick, 0.25, 1e-6);
    }
    at += row["size"].get<size_t>();
  }
  EXPECT_EQ(num_found, 2);
}

TEST(ReportTest, IdenticalPipelinesAreShownOnce) {
  Result result = Replicated(Pipeline(3, 4), 4);
  std::vector<PipelineGroup> groups = GroupPipelines(result);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].num_pipelines, 4u);
  EXPECT_EQ(DataOf({result}).Section("timeline")["panels"][0]["pipelines"], 4);

  // The last event of the last replica is later.
  auto* ends =
      result.mutable_timeline()->mutable_actions()->mutable_end_seconds();
  ends->Set(ends->size() - 1, ends->Get(ends->size() - 1) + 0.5);
  groups = GroupPipelines(result);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].num_pipelines, 3u);
  EXPECT_EQ(groups[1].replica, 3u);

  ReportOptions few;
  few.max_slices = 1;
  const Data data = DataOf({result}, few);
  EXPECT_EQ(data.Section("timeline")["panels"].size(), 1u);
  EXPECT_THAT(data.header["notes"].dump(),
              HasSubstr("1 pipelines that differ"));
}

TEST(ReportTest, NamesAreOnlyInTheData) {
  const std::string empty = ReportPage("");
  std::vector<std::string> names = {std::string(10000, 'x'),
                                    "</script><script>alert(1)</script>"};
  for (const HostileName& hostile : HostileNames()) {
    if (hostile.is_utf8) names.push_back(hostile.text);
  }
  for (const std::string& name : names) {
    Result result = Pipeline(2, 2);
    result.set_name(name);
    result.set_schedule(name);
    result.add_warnings(name);
    result.mutable_provenance()->set_scenario(name);
    const auto page = ReportHtml({&result, 1});
    ASSERT_TRUE(page.ok()) << page.status();
    const std::vector<std::string> parts = Split(*page);
    EXPECT_EQ(parts[0], Split(empty)[0]);
    EXPECT_EQ(parts[2], Split(empty)[2]);
    std::string compressed;
    ASSERT_TRUE(absl::Base64Unescape(parts[1], &compressed));
    const Data data = Read(Gunzip(compressed));
    EXPECT_EQ(data.header["title"], name);
    EXPECT_EQ(data.Section("configuration")["runs"][0]["scenario"], name);
  }
}

TEST(ReportTest, ThePageHasTheMarkOfOwnFilesAndAPlaceForTheData) {
  const std::string page = ReportPage("");
  EXPECT_LT(page.find(std::string(kOutputMark)),
            kMarkBytes - kOutputMark.size());
  EXPECT_TRUE(absl::StartsWith(page, "<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(page.find("@WEIR_REPORT_DATA@"), std::string::npos);
  const std::string source =
      FindPreset("results/report", "template.html")->contents;
  EXPECT_EQ(source.find("@WEIR_REPORT_DATA@"),
            source.rfind("@WEIR_REPORT_DATA@"));
}

TEST(ReportTest, SlackIsThatOfTheResult) {
  Result result = Pipeline(2, 2);
  RunSlack::Row* row = result.mutable_run_slack()->add_rows();
  row->set_rank(1);
  row->set_what("send B");
  row->set_count(4);
  row->set_num_critical(1);
  row->set_median_seconds(0.25);
  row->set_largest_seconds(0.5);
  const Data data = DataOf({result, Pipeline(2, 2)});
  const json& runs = data.Section("slack")["runs"];
  EXPECT_FALSE(runs[0]["is_exact"]);
  EXPECT_EQ(runs[0]["batch_seconds"], result.batch_seconds());
  const json& shown = runs[0]["rows"][0];
  EXPECT_EQ(shown["rank"], 1);
  EXPECT_EQ(shown["what"], "send B");
  EXPECT_EQ(shown["count"], 4);
  EXPECT_EQ(shown["num_critical"], 1);
  EXPECT_EQ(shown["median_seconds"], 0.25);
  EXPECT_EQ(shown["largest_seconds"], 0.5);
  EXPECT_TRUE(runs[1]["rows"].empty());
  row->set_median_seconds(-1);
  EXPECT_THAT(std::string(ReportData({&result, 1}, {}).status().message()),
              HasSubstr("run_slack.rows[0] has -1 seconds"));
}

TEST(ReportTest, ResultsWithoutTimelineHaveTheirFiguresAndANote) {
  const Data data =
      DataOf({SampleRow("gpipe", 2, 1e9), SampleRow("gpipe", 1, 2e9)});
  EXPECT_EQ(data.header["runs"][1]["name"], "gpipe (2)");
  EXPECT_TRUE(data.Section("timeline").is_null());
  EXPECT_EQ(data.header["notes"].size(), 2u);
  EXPECT_EQ(data.Section("figures")["fastest"], 1);
  EXPECT_FALSE(ReportHtml({}).ok());
}

TEST(ReportTest, AnyValidTimelineCanBeShown) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Result result = RandomTimeline(seed, 60);
    const Data data = DataOf({result, result});
    EXPECT_EQ(data.header["version"], kDataBlockVersion);
  }
}

// Checks that connections divide the transfers, and that each is used for as
// long as a transfer is on it.
TEST(ReportTest, ConnectionsDivideTheTransfers) {
  const Data data = DataOf({Pipeline(4, 6)});
  const json& total = data.Section("idle")["runs"][0]["transfers"];
  const json& links = data.Section("links")["runs"][0];
  ASSERT_EQ(links.size(), 6);  // both directions between neighbors
  double count = 0, bytes = 0, busy = 0;
  for (const json& link : links) {
    EXPECT_EQ(
        std::abs(link["from_rank"].get<int>() - link["to_rank"].get<int>()), 1);
    EXPECT_EQ(link["count"], 6);
    count += link["count"].get<double>();
    bytes += link["bytes"].get<double>();
    busy += link["busy_seconds"].get<double>();
    EXPECT_NEAR(
        link["utilization"].get<double>() *
            data.Section("idle")["runs"][0]["makespan_seconds"].get<double>(),
        link["busy_seconds"].get<double>(), 1e-12);
  }
  EXPECT_EQ(count, total["count"].get<double>());
  EXPECT_NEAR(bytes, total["bytes"].get<double>(), 1e-9 * bytes);
  // No two transfers of a connection are on the wire at the same time here.
  EXPECT_NEAR(busy, total["wire_seconds"].get<double>(), 1e-9 * busy);
}

TEST(TicksTest, AreExactEnoughAndFit32Bits) {
  for (const double end : {1e-9, 3.999, 4.0, 4.1, 33.0, 5e4, 1e9}) {
    const Ticks ticks(end);
    EXPECT_LT(end / ticks.tick_seconds(), 4.1e9) << end;
    EXPECT_GT(end / ticks.tick_seconds(), 3.9e8) << end;
    EXPECT_NEAR(ticks.Of(end) * ticks.tick_seconds(), end,
                ticks.tick_seconds());
  }
  EXPECT_EQ(Ticks(0).Of(0), 0u);
}

TEST(DataBlockTest, ColumnsAreAsNarrowAsPossible) {
  DataBlock block;
  const std::vector<uint32_t> narrow = {1, 255}, middle = {256}, wide = {65536};
  const std::vector<double> doubles = {0.1, -3};
  block.Add(narrow);
  block.Add(middle);
  block.Add(wide);
  block.AddDoubles(doubles);
  const Data data = Read(block.Finish({{"sections", json::array()}}));
  EXPECT_EQ(data.header["columns"][0]["type"], "u8");
  EXPECT_EQ(data.header["columns"][1]["type"], "u16");
  EXPECT_EQ(data.header["columns"][2]["type"], "u32");
  EXPECT_THAT(data.Column(0), ElementsAre(1, 255));
  EXPECT_THAT(data.Column(1), ElementsAre(256));
  EXPECT_THAT(data.Column(2), ElementsAre(65536));
  EXPECT_THAT(data.Column(3), ElementsAre(0.1, -3));
}

}  // namespace weir::results::report_test
