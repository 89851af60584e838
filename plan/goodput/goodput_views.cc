// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/goodput_views.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDay = 86400;

// Returns 4 significant digits with separators: "29.17", "161,300".
std::string FourDigits(double number) {
  if (!(number >= 1000) || number > 1e15)
    return absl::StrFormat("%.4g", number);
  const double unit = std::pow(10, std::floor(std::log10(number)) - 3);
  std::string text = absl::StrFormat("%.0f", std::round(number / unit) * unit);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) {
    text.insert(i, ",");
  }
  return text;
}

// Returns "3.09 h", "12.5 min" or "41.2 days".
std::string Duration(double seconds) {
  if (seconds < 300) return FormatSeconds(seconds);
  if (seconds < 3600) return absl::StrFormat("%.3g min", seconds / 60);
  if (seconds < 2 * kDay) return absl::StrFormat("%.3g h", seconds / 3600);
  return absl::StrCat(FourDigits(seconds / kDay), " days");
}

std::string Percent(double part) {
  return absl::StrFormat("%.2f %%", 100 * part);
}

absl::string_view ModeName(CheckpointMode mode) {
  switch (mode) {
    case CheckpointMode::kSync:
      return "sync";
    case CheckpointMode::kAsync:
      return "async";
    case CheckpointMode::kInMemory:
      return "in-memory";
  }
  return "";
}

double Price(const GoodputRequest& request, double wall_seconds) {
  const int spares = request.num_spares > 0
                         ? request.num_spares * request.job.gpus_per_node()
                         : 0;
  return wall_seconds / 3600 * (request.job.num_gpus + spares) *
         request.price_per_gpu_hour;
}

// Returns "12.3 (12.0 to 12.9)".
template <typename Print>
std::string Range(const Interval90& interval, const Print& print) {
  return absl::StrCat(print(interval.mean), " (", print(interval.low), " to ",
                      print(interval.high), ")");
}

std::string StepText(const StepTime& step) {
  if (!(step.low_seconds > 0)) return FormatSeconds(step.seconds);
  return absl::StrCat(FormatSeconds(step.seconds), " (",
                      FormatSeconds(step.low_seconds), " to ",
                      FormatSeconds(step.high_seconds), ")");
}

// Returns "every 29.17 steps, 5.1 min".
std::string IntervalText(double seconds, double step_seconds) {
  return absl::StrCat("every ", FourDigits(seconds / step_seconds), " steps, ",
                      Duration(seconds));
}

std::string Plural(int count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Returns "-" unless the elasticity exceeds its standard error.
std::string ElasticityText(const Investment& investment) {
  if (!investment.elasticity.has_value() ||
      !(std::abs(*investment.elasticity) > investment.elasticity_error)) {
    return "-";
  }
  return absl::StrFormat("%.2g +- %.1g", *investment.elasticity,
                         investment.elasticity_error);
}

class TableOfReport {
 public:
  explicit TableOfReport(const GoodputReport& report)
      : report_(report), request_(report.request) {}

  std::string Print() {
    table_.left = {true, true};
    table_.header = {"job", Ascii(request_.name)};
    AddJob();
    AddIntervals();
    AddEstimate();
    return absl::StrCat(PrintTable(table_), "\n", PrintTable(Shares()), "\n",
                        PrintTable(Investments()));
  }

 private:
  void Add(std::string name, std::string value) {
    table_.rows.push_back({std::move(name), std::move(value)});
  }

  void AddJob() {
    Add("size", absl::StrCat(Plural(request_.job.num_gpus, "GPU"), ", ",
                             Plural(request_.job.num_nodes, "node")));
    Add("step time", StepText(request_.step));
    Add("failures of", Ascii(request_.reliability.name()));
    Add("time between failures",
        Duration(report_.mean_seconds_between_failures));
    for (const JobFailures& each : report_.failures) {
      Add(absl::StrCat("  ", Ascii(each.name)),
          Duration(each.mean_seconds_between));
    }
    const CheckpointTimes& times = report_.checkpoint;
    Add("checkpoint",
        absl::StrCat(ModeName(request_.checkpoint.mode), ", ",
                     FormatBytes(request_.checkpoint.bytes), ": stall ",
                     Duration(times.stall_seconds), ", safe after ",
                     Duration(times.safe_seconds), ", load ",
                     Duration(times.load_seconds)));
    Add("recovery",
        absl::StrCat(
            "detection ", Duration(request_.reliability.detection_seconds()),
            ", restart ", Duration(request_.reliability.restart_seconds())));
  }

  void AddIntervals() {
    const double step = request_.step.seconds;
    Add("interval (Young)", IntervalText(report_.young_seconds, step));
    Add("interval (Daly)", IntervalText(report_.daly_seconds, step));
    Add("interval (exact)", IntervalText(report_.exact_seconds, step));
    Add("interval (simulated)",
        absl::StrCat(IntervalText(report_.estimate.interval_steps * step, step),
                     "; ", FourDigits(report_.flat_from_steps), " to ",
                     FourDigits(report_.flat_to_steps), " are within 0.1 %"));
    if (request_.interval_steps > 0) {
      table_.rows.back()[0] = "interval (given)";
    }
  }

  void AddEstimate() {
    Add("goodput", Percent(report_.goodput()));
    if (report_.expected_goodput.has_value()) {
      Add("goodput (Daly)", Percent(*report_.expected_goodput));
    }
    Add("days", Range(report_.estimate.wall_seconds, [](double seconds) {
          return absl::StrFormat("%.4g", seconds / kDay);
        }));
    Add("failures", Range(report_.estimate.num_failures, [](double number) {
          return absl::StrFormat("%.4g", number);
        }));
    if (request_.price_per_gpu_hour > 0) {
      Add("cost", Range(report_.estimate.wall_seconds, [&](double seconds) {
            return FormatCount(Price(request_, seconds));
          }));
    }
    Add("work lost by one failure",
        absl::StrCat("at most ", Duration(report_.most_lost_seconds)));
    Add("time lost per failure, with stalls and recovery",
        absl::StrCat("mean ", Duration(report_.mean_loss_seconds)));
    if (report_.largest_loss_seconds.has_value()) {
      Add("goodput to reach",
          absl::StrCat(Percent(request_.target_goodput), ": at most ",
                       Duration(*report_.largest_loss_seconds),
                       " lost per failure"));
    }
  }

  TextTable Shares() const {
    TextTable table;
    table.header = {"share of the time", "%"};
    const TimeShares& shares = report_.estimate.shares;
    for (const auto& [name, share] :
         {std::pair("training", shares.useful),
          std::pair("checkpoint stalls", shares.stalls),
          std::pair("lost work", shares.lost),
          std::pair("detection, restart, load", shares.recovery),
          std::pair("waiting for repairs", shares.waiting),
          std::pair("fewer replicas", shares.degraded)}) {
      if (share > 0) {
        table.rows.push_back({name, absl::StrFormat("%.2f", 100 * share)});
      }
    }
    return table;
  }

  TextTable Investments() const {
    TextTable table;
    table.header = {"investment", "change", "saved", "goodput", "elasticity"};
    table.left = {true, true};
    for (const Investment& each : report_.investments) {
      const double part =
          each.saved_seconds / report_.estimate.wall_seconds.mean;
      table.rows.push_back({Ascii(each.what), each.change, Percent(part),
                            Percent(report_.goodput() / (1 - part)),
                            ElasticityText(each)});
    }
    if (table.rows.empty()) table.rows.push_back({"none saves time"});
    return table;
  }

  const GoodputReport& report_;
  const GoodputRequest& request_;
  TextTable table_;
};

Json JsonOf(const Interval90& interval, double factor = 1) {
  return {{"mean", interval.mean * factor},
          {"low", interval.low * factor},
          {"high", interval.high * factor}};
}

Json FailuresJson(const GoodputReport& report) {
  Json failures = Json::array();
  for (const JobFailures& each : report.failures) {
    failures.push_back({{"name", each.name},
                        {"mean_seconds_between", each.mean_seconds_between},
                        {"replaces_node", each.replaces_node},
                        {"repair_seconds", each.repair_seconds}});
  }
  return failures;
}

Json TriedIntervalsJson(const GoodputReport& report) {
  Json tried = Json::array();
  for (const TriedInterval& each : report.tried_intervals) {
    tried.push_back(
        {{"interval_steps", each.steps},
         {"interval_seconds", each.steps * report.request.step.seconds},
         {"wall_seconds", each.wall_seconds},
         {"goodput", each.goodput}});
  }
  return tried;
}

Json InvestmentsJson(const GoodputReport& report) {
  Json investments = Json::array();
  for (const Investment& each : report.investments) {
    Json& json =
        investments.emplace_back(Json{{"what", each.what},
                                      {"change", each.change},
                                      {"saved_seconds", each.saved_seconds}});
    if (each.elasticity.has_value()) {
      json["elasticity"] = *each.elasticity;
      json["elasticity_standard_error"] = each.elasticity_error;
    }
  }
  return investments;
}

}  // namespace

std::string GoodputTable(const GoodputReport& report) {
  return TableOfReport(report).Print();
}

std::string GoodputConfigJson(const GoodputReport& report) {
  const GoodputRequest& request = report.request;
  const CheckpointSpec& checkpoint = request.checkpoint;
  Json json = {{"job", request.name},
               {"num_gpus", request.job.num_gpus},
               {"num_nodes", request.job.num_nodes},
               {"reliability", request.reliability.name()},
               {"reliability_source", request.reliability.source()},
               {"step_seconds", request.step.seconds}};
  // Leaves out what is unknown or unlimited.
  const auto add = [&](const char* key, double value) {
    if (value > 0) json[key] = value;
  };
  add("step_seconds_low", request.step.low_seconds);
  add("step_seconds_high", request.step.high_seconds);
  add("tokens_per_step", request.tokens_per_step);
  add("tokens", request.tokens);
  json["checkpoint"] = std::string(ModeName(checkpoint.mode));
  json["checkpoint_bytes"] = checkpoint.bytes;
  add("storage_bytes_per_second", checkpoint.storage_bytes_per_second);
  json["snapshot_bytes_per_second"] = checkpoint.snapshot_bytes_per_second;
  json["peer_bytes_per_second"] = checkpoint.peer_bytes_per_second;
  json["detection_seconds"] = request.reliability.detection_seconds();
  json["restart_seconds"] = request.reliability.restart_seconds();
  if (request.num_spares >= 0) json["num_spares"] = request.num_spares;
  if (request.num_elastic_replicas > 1) {
    json["num_elastic_replicas"] = request.num_elastic_replicas;
  }
  add("price_per_gpu_hour", request.price_per_gpu_hour);
  json["num_runs"] = request.num_runs;
  json["seed"] = request.seed;
  return DumpJson(json);
}

std::string GoodputJson(const GoodputReport& report) {
  const GoodputRequest& request = report.request;
  const GoodputEstimate& estimate = report.estimate;
  const TimeShares& shares = estimate.shares;
  Json json = {
      {"mean_seconds_between_failures", report.mean_seconds_between_failures},
      {"failures", FailuresJson(report)},
      {"checkpoint_stall_seconds", report.checkpoint.stall_seconds},
      {"checkpoint_safe_seconds", report.checkpoint.safe_seconds},
      {"checkpoint_load_seconds", report.checkpoint.load_seconds},
      {"work_seconds", report.work_seconds},
      {"young_interval_seconds", report.young_seconds},
      {"daly_interval_seconds", report.daly_seconds},
      {"exact_interval_seconds", report.exact_seconds},
      {"interval_steps", estimate.interval_steps},
      {"interval_seconds", estimate.interval_steps * request.step.seconds},
      {"flat_interval_steps", {report.flat_from_steps, report.flat_to_steps}},
      {"tried_intervals", TriedIntervalsJson(report)},
      {"goodput", report.goodput()}};
  if (report.expected_goodput.has_value()) {
    json["daly_goodput"] = *report.expected_goodput;
  }
  json["wall_seconds"] = JsonOf(estimate.wall_seconds);
  json["wall_standard_error"] = estimate.standard_error;
  json["days"] = JsonOf(estimate.wall_seconds, 1 / kDay);
  if (request.price_per_gpu_hour > 0) {
    json["cost"] = JsonOf(estimate.wall_seconds, Price(request, 1));
  }
  json["num_failures"] = JsonOf(estimate.num_failures);
  json["shares"] = {
      {"training", shares.useful}, {"checkpoint_stalls", shares.stalls},
      {"lost_work", shares.lost},  {"recovery", shares.recovery},
      {"waiting", shares.waiting}, {"fewer_replicas", shares.degraded}};
  json["most_lost_seconds"] = report.most_lost_seconds;
  json["mean_loss_seconds"] = report.mean_loss_seconds;
  if (report.largest_loss_seconds.has_value()) {
    json["target_goodput"] = request.target_goodput;
    json["largest_loss_seconds"] = *report.largest_loss_seconds;
  }
  json["investments"] = InvestmentsJson(report);
  return DumpJson(json);
}

}  // namespace weir::plan
