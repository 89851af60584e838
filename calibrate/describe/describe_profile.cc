// SPDX-License-Identifier: Apache-2.0
#include "calibrate/describe/describe_profile.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/partition_slowdown.h"
#include "calibrate/profile/software.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxSource = 60;

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string Percent(double part) {
  return absl::StrFormat("%+.1f %%", 100 * part);
}

std::string ProvenanceText(const DeviceProfile& profile) {
  if (!profile.has_provenance()) {
    return "fitted to public data, not yet measured by weir-calibrate\n";
  }
  const Provenance& p = profile.provenance();
  std::string text = absl::StrCat(
      "measured", p.measured_on().empty() ? "" : " on ", Ascii(p.measured_on()),
      p.gpu_name().empty() ? "" : " with ", Ascii(p.gpu_name()),
      p.gpu_hash().empty() ? "" : absl::StrCat(" ", Ascii(p.gpu_hash())), "\n");
  const auto add = [&](absl::string_view name, absl::string_view value) {
    if (value.empty()) return;
    absl::StrAppend(&text, "  ", name, ": ", Ascii(value), "\n");
  };
  add("software", SoftwareText(p.software()));
  add("clocks", p.clocks());
  add("command", p.command());
  add("weir", p.weir_version());
  if (p.num_ranks() > 1) {
    add("network",
        absl::StrCat(p.num_ranks(), " ranks, nodes: ", p.num_nodes()));
  }
  for (const std::string& remark : p.remarks()) add("remark", remark);
  return text;
}

std::string FiguresTable(const DeviceProfile& profile) {
  TextTable table;
  table.header = {"parameter", "value", "unit", "kind", "source"};
  table.left = {true, false, true, true, true};
  table.optional = {0, 0, 0, 0, 1};
  DeviceProfile copy = profile;
  for (const NamedFigure& named : FiguresOf(&copy)) {
    table.rows.push_back(
        {absl::EndsWith(named.path, "].peak_flops")
             ? absl::StrCat(named.path, " (", Ascii(named.format), ")")
             : named.path,
         Number(named.figure->value()), std::string(UnitOf(named.path)),
         std::string(NameOf(named.figure->kind())),
         Shortened(named.figure->source(), kMaxSource)});
  }
  return PrintTable(table);
}

std::string KernelsTable(const DeviceProfile& profile) {
  TextTable table;
  table.header = {"kernels",     "format", "shapes", "m",
                  "over fitted", "least",  "most",   "throttled"};
  table.left = {true, true};
  table.optional = {0, 0, 2, 0, 0, 0, 0, 1};
  for (const KernelSummary& summary : SummarizeKernels(profile)) {
    table.rows.push_back(
        {summary.part, Ascii(summary.format), absl::StrCat(summary.count),
         summary.most_m > 0 ? absl::StrCat(Number(summary.least_m), " to ",
                                           Number(summary.most_m))
                            : "-",
         absl::StrFormat("%.3f", summary.median),
         absl::StrFormat("%.3f", summary.least),
         absl::StrFormat("%.3f", summary.most),
         absl::StrCat(summary.num_throttled)});
  }
  return PrintTable(table);
}

// Returns, for example, "embedding + 2 + head".
template <typename Entry>
std::string BlocksText(const Entry& entry) {
  return absl::StrCat(entry.has_embedding() ? "embedding + " : "",
                      entry.num_blocks(), entry.has_head() ? " + head" : "");
}

std::string StagesTable(const DeviceProfile& profile) {
  TextTable table;
  table.header = {"stage", "pass",    "blocks",   "mbs",        "seq",
                  "tp",    "kernels", "measured", "kernel sum", "beyond"};
  table.left = {true, true};
  table.optional = {0, 0, 0, 1, 2, 3, 4, 0, 0, 0};
  for (const MeasuredStage& stage : profile.stages()) {
    const double seconds = stage.seconds().p50();
    const double sum = stage.sum_of_kernels_seconds();
    table.rows.push_back({Ascii(stage.model()), stage.pass(), BlocksText(stage),
                          absl::StrCat(stage.microbatch_size()),
                          absl::StrCat(stage.sequence_length()),
                          absl::StrCat(stage.tensor_parallel()),
                          absl::StrCat(stage.num_kernels()),
                          FormatSeconds(seconds), FormatSeconds(sum),
                          sum > 0 ? Percent(seconds / sum - 1) : "-"});
  }
  return PrintTable(table);
}

std::string MemoryTable(const DeviceProfile& profile) {
  TextTable table;
  table.header = {"memory", "blocks",    "mbs",  "seq",      "tp",
                  "alive",  "predicted", "used", "reserved", "beyond"};
  table.optional = {0, 0, 1, 2, 4, 0, 0, 0, 3, 0};
  for (const MeasuredMemory& memory : profile.memory()) {
    const double predicted = memory.predicted_bytes();
    table.rows.push_back(
        {Ascii(memory.model()), BlocksText(memory),
         absl::StrCat(memory.microbatch_size()),
         absl::StrCat(memory.sequence_length()),
         absl::StrCat(memory.tensor_parallel()),
         absl::StrCat(memory.num_microbatches()), FormatBytes(predicted),
         FormatBytes(memory.used_high_bytes()),
         FormatBytes(memory.reserved_high_bytes()),
         predicted > 0 ? Percent(memory.used_high_bytes() / predicted - 1)
                       : "-"});
  }
  return PrintTable(table);
}

std::string DistanceText(const LinkClass& link) {
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(LinkClass::Distance_Name(link.distance())),
      {{"_", " "}});
}

std::string LinksTable(const DeviceProfile& profile) {
  TextTable table;
  table.header = {"transfers", "from",   "latency",      "GB/s",
                  "pairs",     "spread", "bidirectional"};
  for (const LinkClass& link : profile.links()) {
    for (int i = 0; i < link.pieces_size(); ++i) {
      const TransferPiece& piece = link.pieces(i);
      std::vector<std::string> row = {i == 0 ? DistanceText(link) : "",
                                      FormatBytes(piece.from_bytes()),
                                      FormatSeconds(piece.latency_seconds()),
                                      Number(piece.bytes_per_second() / 1e9)};
      if (i == 0) {
        row.push_back(absl::StrCat(link.num_pairs()));
        row.push_back(absl::StrFormat("%.2f", link.pair_spread()));
        row.push_back(absl::StrFormat("%.2f", link.bidirectional_slowdown()));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return PrintTable(table);
}

// Returns a table with a row per number of active partitions and a column per
// pass.
std::string PartitionSlowdownText(const PartitionSlowdown& share) {
  TextTable table;
  table.header = {"busy partitions"};
  std::map<uint32_t, std::vector<std::string>> rows;
  for (const absl::string_view pass : kSharedPasses) {
    table.header.emplace_back(pass);
    for (const PartitionSlowdown::Slowdown& slowdown : share.slowdowns()) {
      if (slowdown.pass() != pass) continue;
      std::vector<std::string>& row = rows[slowdown.active()];
      row.resize(table.header.size(), "-");
      row.back() = absl::StrFormat("%.3f", slowdown.factor());
    }
  }
  for (auto& [active, row] : rows) {
    row.front() = absl::StrCat(active);
    row.resize(table.header.size(), "-");
    table.rows.push_back(std::move(row));
  }
  return absl::StrCat("one of ", share.num_partitions(),
                      " partitions of a GPU, ", share.multiprocessors(),
                      " multiprocessors each\n",
                      table.rows.empty() ? "" : PrintTable(table));
}

std::string RangeText(const Range& range) {
  return absl::StrCat(Number(range.low()), " to ", Number(range.high()));
}

std::string CoverageText(const Coverage& coverage) {
  std::string text = "calibrated range\n";
  if (coverage.has_gemm_m()) {
    absl::StrAppend(
        &text, "  GEMMs        m ", RangeText(coverage.gemm_m()), ", n ",
        RangeText(coverage.gemm_n()), ", k ", RangeText(coverage.gemm_k()),
        coverage.batched_gemms() ? ", also batched" : ", not batched", "\n");
  }
  if (coverage.has_collective_bytes()) {
    absl::StrAppend(
        &text, "  collectives  ",
        FormatBytes(coverage.collective_bytes().low()), " to ",
        FormatBytes(coverage.collective_bytes().high()), ", ",
        RangeText(coverage.collective_ranks()), " GPUs",
        coverage.between_nodes() ? ", also between nodes" : ", within a node",
        "\n");
  }
  return WrapText(text, 13);
}

Json MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? Json::parse(text, nullptr, false) : Json();
}

template <typename Entries>
Json MessagesJson(const Entries& entries) {
  Json json = Json::array();
  for (const auto& entry : entries) json.push_back(MessageJson(entry));
  return json;
}

}  // namespace

absl::string_view UnitOf(absl::string_view path) {
  const std::pair<const char*, const char*> units[] = {
      {"bytes_per_second", "B/s"},
      {"peak_flops", "FLOP/s"},
      {"seconds", "s"},
      {"bytes", "B"},
      {"hertz", "Hz"},
      {"watts", "W"},
      {".figure", "B/s"}};
  // The fraction gemm.rate_aligned_to_8_bytes is no size.
  if (absl::StrContains(path, "rate_aligned_to_")) return "";
  for (const auto& [ending, unit] : units) {
    if (absl::EndsWith(path, ending)) return unit;
  }
  return "";
}

std::vector<KernelSummary> SummarizeKernels(const DeviceProfile& profile) {
  struct Rows {
    KernelSummary summary;
    std::vector<double> ratios;
  };
  std::map<std::pair<models::KernelPart, std::string>, Rows> parts;
  for (const MeasuredKernel& measured : profile.kernels()) {
    const models::Kernel kernel = ShapeOf(measured);
    auto& [summary, ratios] = parts[{kernel.part, measured.format()}];
    ++summary.count;
    summary.num_throttled += measured.throttled();
    if (kernel.kind != models::Kernel::Kind::kMemory) {
      summary.least_m =
          summary.most_m == 0 ? kernel.m : std::min(summary.least_m, kernel.m);
      summary.most_m = std::max(summary.most_m, kernel.m);
    }
    const auto peak = PeakFlops(profile, measured.format());
    if (!peak.ok() && kernel.kind != models::Kernel::Kind::kMemory) continue;
    ratios.push_back(measured.seconds().p50() /
                     KernelSeconds(profile, peak.value_or(1), kernel));
  }
  std::vector<KernelSummary> summaries;
  for (auto& [key, rows] : parts) {
    KernelSummary& summary = rows.summary;
    summary.part = models::Name(key.first);
    summary.format = key.second;
    std::sort(rows.ratios.begin(), rows.ratios.end());
    if (!rows.ratios.empty()) {
      summary.least = rows.ratios.front();
      summary.median = rows.ratios[rows.ratios.size() / 2];
      summary.most = rows.ratios.back();
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::string DescribeProfile(const DeviceProfile& profile) {
  std::string text =
      absl::StrCat(Ascii(profile.name()), ": ", ProvenanceText(profile), "\n",
                   FiguresTable(profile));
  if (!profile.gemms_of().empty()) {
    absl::StrAppend(&text, "\nGEMMs: assumed from the ",
                    Ascii(profile.gemms_of()),
                    "; none of this device in 16 bits are on record\n");
  }
  if (profile.kernels_size() > 0) {
    absl::StrAppend(&text, "\n", KernelsTable(profile));
  }
  if (profile.stages_size() > 0) {
    absl::StrAppend(&text, "\n", StagesTable(profile));
  }
  if (profile.memory_size() > 0) {
    absl::StrAppend(&text, "\n", MemoryTable(profile));
  }
  if (profile.links_size() > 0) {
    absl::StrAppend(&text, "\n", LinksTable(profile));
  }
  if (profile.has_partition_slowdown()) {
    absl::StrAppend(&text, "\n",
                    PartitionSlowdownText(profile.partition_slowdown()));
  }
  if (profile.has_coverage()) {
    absl::StrAppend(&text, "\n", CoverageText(profile.coverage()));
  }
  return text;
}

nlohmann::ordered_json ProfileJson(const DeviceProfile& profile) {
  Json figures = Json::array();
  DeviceProfile copy = profile;
  for (const NamedFigure& named : FiguresOf(&copy)) {
    figures.push_back({{"path", named.path},
                       {"value", named.figure->value()},
                       {"unit", std::string(UnitOf(named.path))},
                       {"kind", std::string(NameOf(named.figure->kind()))},
                       {"source", named.figure->source()},
                       {"relative_error", RelativeError(*named.figure)}});
  }
  Json kernels = Json::array();
  for (const KernelSummary& summary : SummarizeKernels(profile)) {
    kernels.push_back({{"part", summary.part},
                       {"format", summary.format},
                       {"num_shapes", summary.count},
                       {"num_throttled", summary.num_throttled},
                       {"least_m", summary.least_m},
                       {"most_m", summary.most_m},
                       {"least_over_figures", summary.least},
                       {"median_over_figures", summary.median},
                       {"most_over_figures", summary.most}});
  }
  Json json = {
      {"name", profile.name()},
      {"provenance",
       profile.has_provenance() ? MessageJson(profile.provenance()) : Json()},
      {"parameters", std::move(figures)},
      {"kernels", std::move(kernels)},
      {"stages", MessagesJson(profile.stages())},
      {"memory", MessagesJson(profile.memory())},
      {"links", MessagesJson(profile.links())}};
  json["partition_slowdown"] = profile.has_partition_slowdown()
                                   ? MessageJson(profile.partition_slowdown())
                                   : Json();
  json["coverage"] =
      profile.has_coverage() ? MessageJson(profile.coverage()) : Json();
  return json;
}

}  // namespace weir::calibrate
