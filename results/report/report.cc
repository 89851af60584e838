// SPDX-License-Identifier: Apache-2.0
#include "results/report/report.h"

#include <zlib.h>

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/assets.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "results/report/document.h"
#include "results/report/sections.h"
#include "results/validate.h"

namespace weir::results {
namespace {

// Where the template takes the data.
constexpr char kDataMarker[] = "@WEIR_REPORT_DATA@";
constexpr char kDoctype[] = "<!doctype html>";

size_t SlicesOf(const Result& result) {
  const Timeline& timeline = result.timeline();
  return static_cast<size_t>(timeline.actions().gpu_size()) +
         2 * static_cast<size_t>(timeline.transfers().from_gpu_size()) +
         static_cast<size_t>(timeline.collectives().gpu_size());
}

// Selects the pipelines that are shown, and says which ones are not.
class Selection {
 public:
  explicit Selection(size_t max_slices) : max_slices_(max_slices) {}

  absl::Status Add(size_t run, const std::string& name, const Result& result) {
    if (result.timeline().actions().gpu_size() == 0) {
      notes_.push_back(absl::StrCat(
          name, ": the result has no timeline, expected one written by --out"));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ValidateTimeline(name, result));
    size_t num_left_out = 0;
    bool first = true;
    for (const PipelineGroup& group : GroupPipelines(result)) {
      ASSIGN_OR_RETURN(Result pipeline, PipelineOf(result, group));
      const size_t num_slices = SlicesOf(pipeline);
      if (!first && num_slices_ + num_slices > max_slices_) {
        num_left_out += group.num_pipelines;
        continue;
      }
      AddPipeline(run, name, group, std::move(pipeline), first);
      num_slices_ += num_slices;
      first = false;
    }
    if (num_left_out > 0) {
      notes_.push_back(absl::StrCat(
          name, ": ", num_left_out,
          " pipelines that differ from those shown are left out, since their "
          "timelines are too large"));
    }
    return absl::OkStatus();
  }

  const std::vector<ShownPipeline>& pipelines() const { return pipelines_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void AddPipeline(size_t run, const std::string& name,
                   const PipelineGroup& group, Result pipeline, bool first) {
    auto events = PipelineEventsOf(name, pipeline);
    if (!events.ok() && first) {
      notes_.push_back(absl::StrCat("no causes of idle time: ",
                                    std::string(events.status().message())));
    }
    ShownPipeline shown;
    shown.run = run;
    shown.group = group;
    shown.result = std::move(pipeline);
    if (events.ok()) shown.events = *std::move(events);
    pipelines_.push_back(std::move(shown));
  }

  const size_t max_slices_;
  size_t num_slices_ = 0;
  std::vector<ShownPipeline> pipelines_;
  std::vector<std::string> notes_;
};

std::string Gzip(absl::string_view text) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  constexpr int kMemoryLevel = 8;
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel,
               Z_DEFAULT_STRATEGY);
  std::string compressed;
  std::string buffer(size_t{1} << 18, '\0');
  // The input is passed in parts because zlib counts in 32 bits.
  constexpr size_t kPart = size_t{1} << 30;
  do {
    const absl::string_view part = text.substr(0, kPart);
    text.remove_prefix(part.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    stream.avail_in = static_cast<uInt>(part.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
      compressed.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (!text.empty());
  deflateEnd(&stream);
  return compressed;
}

// Adds the sections of runs. Returns what the page says about them.
absl::StatusOr<std::vector<std::string>> AddRuns(
    std::span<const Result> results, const std::vector<std::string>& names,
    const ReportOptions& options, DataBlock* data, Json* sections) {
  Selection selection(options.max_slices);
  for (size_t run = 0; run < results.size(); ++run) {
    RETURN_IF_ERROR(selection.Add(run, names[run], results[run]));
  }
  sections->push_back(FiguresSection(results));
  if (!selection.pipelines().empty()) {
    ASSIGN_OR_RETURN(Json timeline,
                     TimelineSection(selection.pipelines(), data));
    sections->push_back(std::move(timeline));
  }
  sections->push_back(BreakdownSection(results));
  sections->push_back(IdleSection(results, selection.pipelines()));
  sections->push_back(SlackSection(results));
  sections->push_back(LinksSection(results, selection.pipelines()));
  if (!options.resources.empty()) {
    sections->push_back(SharedLinksSection(options.resources));
    sections->push_back(RooflineSection(options.resources));
  }
  sections->push_back(MemorySection(results, selection.pipelines(), data));
  sections->push_back(RanksSection(results));
  sections->push_back(ConfigurationSection(results));
  return selection.notes();
}

Json RunsOf(std::span<const Result> results,
            const std::vector<std::string>& names) {
  Json runs = Json::array();
  for (size_t run = 0; run < results.size(); ++run) {
    runs.push_back({{"name", names[run]}, {"scenario", results[run].name()}});
  }
  return runs;
}

}  // namespace

absl::StatusOr<std::string> ReportData(std::span<const Result> results,
                                       const ReportOptions& options) {
  if (results.empty()) {
    return absl::InvalidArgumentError(
        "report: there is no result, expected at least one");
  }
  const std::vector<std::string> names = RunNames(results);
  DataBlock data;
  Json sections = Json::array();
  ASSIGN_OR_RETURN(const std::vector<std::string> notes,
                   AddRuns(results, names, options, &data, &sections));
  Json header;
  header["tool"] = "weir";
  header["weir_version"] = results.front().provenance().weir_version();
  header["title"] = results.front().name();
  header["runs"] = RunsOf(results, names);
  header["notes"] = notes;
  header["sections"] = std::move(sections);
  return data.Finish(std::move(header));
}

absl::StatusOr<std::string> DocumentData(absl::string_view label,
                                         absl::string_view document,
                                         std::span<const Result> results,
                                         const ReportOptions& options) {
  ASSIGN_OR_RETURN(Document read, ReadDocument(label, document));
  const std::vector<std::string> names = RunNames(results);
  DataBlock data;
  Json sections = Json::array({std::move(read.section)});
  std::vector<std::string> notes;
  if (!results.empty()) {
    ASSIGN_OR_RETURN(notes, AddRuns(results, names, options, &data, &sections));
  }
  Json header;
  header["tool"] = "weir";
  header["weir_version"] = read.version;
  header["title"] = read.title;
  header["runs"] = RunsOf(results, names);
  header["notes"] = notes;
  header["sections"] = std::move(sections);
  return data.Finish(std::move(header));
}

std::string ReportPage(absl::string_view data) {
  const std::string page =
      FindPreset("results/report", "template.html")->contents;
  const size_t at = page.find(kDataMarker);
  const size_t begin = page.find(kDoctype) + sizeof(kDoctype) - 1;
  return absl::StrCat(page.substr(0, begin), "\n<!-- ", kOutputMark, " -->",
                      page.substr(begin, at - begin),
                      absl::Base64Escape(Gzip(data)),
                      page.substr(at + sizeof(kDataMarker) - 1));
}

std::string LivePage(absl::string_view controls) {
  Json section = Json::parse(controls);
  Json header;
  header["tool"] = "weir";
  header["weir_version"] = std::string(WeirVersion());
  header["title"] = section["name"];
  header["runs"] = Json::array();
  header["notes"] = Json::array();
  header["sections"] = Json::array({std::move(section)});
  const std::string page = ReportPage(DataBlock().Finish(std::move(header)));
  return absl::StrReplaceAll(
      page,
      {{"default-src 'none';", "default-src 'none'; connect-src 'self';"}});
}

absl::StatusOr<std::string> ReportHtml(std::span<const Result> results,
                                       const ReportOptions& options) {
  ASSIGN_OR_RETURN(const std::string data, ReportData(results, options));
  return ReportPage(data);
}

absl::StatusOr<std::string> DocumentHtml(absl::string_view label,
                                         absl::string_view document,
                                         std::span<const Result> results,
                                         const ReportOptions& options) {
  ASSIGN_OR_RETURN(const std::string data,
                   DocumentData(label, document, results, options));
  return ReportPage(data);
}

}  // namespace weir::results
