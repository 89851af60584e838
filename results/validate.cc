// SPDX-License-Identifier: Apache-2.0
#include "results/validate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/problems.h"
#include "schedules/action.h"

namespace weir::results {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Returns true if CheckTimeline checks messages of this type.
bool IsOfTimeline(const google::protobuf::Descriptor* type) {
  return type == Timeline::descriptor() || type == HostCopies::descriptor() ||
         type == LinkUse::descriptor() || type == RunSlack::descriptor();
}

void CollectNonFinite(const Message& message, const std::string& prefix,
                      std::vector<std::string>* pointers) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string pointer =
        absl::StrCat(prefix, "/", std::string(field->name()));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      if (!field->is_repeated()) {
        if (!std::isfinite(reflection->GetDouble(message, field))) {
          pointers->push_back(pointer);
        }
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        if (!std::isfinite(reflection->GetRepeatedDouble(message, field, i))) {
          pointers->push_back(absl::StrCat(pointer, "/", i));
        }
      }
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
               IsOfTimeline(field->message_type())) {
      continue;
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        CollectNonFinite(reflection->GetRepeatedMessage(message, field, i),
                         absl::StrCat(pointer, "/", i), pointers);
      }
    } else {
      CollectNonFinite(reflection->GetMessage(message, field), pointer,
                       pointers);
    }
  }
}

// Checks columns; adds one message per column, naming the first bad entry.
class ColumnChecker {
 public:
  ColumnChecker(absl::string_view field, int size, Problems* problems)
      : field_(field), size_(size), problems_(problems) {}

  // Adds a problem for a column of another length; the checks below skip it.
  template <typename Column>
  bool HasSize(absl::string_view name, const Column& column) {
    if (column.size() == size_) return true;
    problems_->Add(absl::StrCat(field_, ".", name),
                   absl::StrCat("has ", column.size(), " entries, expected ",
                                size_, " as in the first column"));
    return false;
  }

  template <typename Column>
  void CheckAtMost(absl::string_view name, const Column& column,
                   int64_t highest) {
    if (!HasSize(name, column)) return;
    for (int i = 0; i < size_; ++i) {
      const int64_t value = column.Get(i);
      if (value >= 0 && value <= highest) continue;
      problems_->Add(absl::StrCat(field_, ".", name, "[", i, "]"),
                     absl::StrCat("is ", value, ", expected 0 to ", highest));
      return;
    }
  }

  template <typename Column>
  void CheckFinite(absl::string_view name, const Column& column) {
    if (!HasSize(name, column)) return;
    for (int i = 0; i < size_; ++i) {
      if (std::isfinite(column.Get(i)) && column.Get(i) >= 0) continue;
      problems_->Add(absl::StrCat(field_, ".", name, "[", i, "]"),
                     absl::StrCat("is ", column.Get(i),
                                  ", expected a finite number of at least 0"));
      return;
    }
  }

  template <typename Columns>
  void CheckTimes(const Columns& columns) {
    CheckFinite("start_seconds", columns.start_seconds());
    CheckFinite("end_seconds", columns.end_seconds());
    if (columns.start_seconds_size() != size_ ||
        columns.end_seconds_size() != size_) {
      return;
    }
    for (int i = 0; i < size_; ++i) {
      if (!(columns.end_seconds(i) < columns.start_seconds(i))) continue;
      problems_->Add(absl::StrCat(field_, ".end_seconds[", i, "]"),
                     absl::StrCat("is ", columns.end_seconds(i),
                                  ", expected at least the start at ",
                                  columns.start_seconds(i)));
      return;
    }
  }

 private:
  std::string field_;
  int size_;
  Problems* problems_;
};

void CheckHostCopies(const Result& result, Problems* problems) {
  const HostCopies& copies = result.host_copies();
  ColumnChecker check("host_copies", copies.gpu_size(), problems);
  check.CheckAtMost("gpu", copies.gpu(), int64_t{result.ranks_size()} - 1);
  check.CheckAtMost("op", copies.op(), Timeline::Actions::Op_MAX);
  check.HasSize("stage", copies.stage());
  check.HasSize("microbatch", copies.microbatch());
  check.HasSize("block", copies.block());
  check.CheckFinite("bytes", copies.bytes());
  check.CheckTimes(copies);
}

void CheckSharedLinks(const Result& result, Problems* problems) {
  const LinkUse& shared = result.link_use();
  const auto check = [&](absl::string_view field, double value) {
    if (std::isfinite(value) && value >= 0) return;
    problems->Add(
        absl::StrCat("link_use.", field),
        absl::StrCat("is ", value, ", expected a finite number of at least 0"));
  };
  check("interval_seconds", shared.interval_seconds());
  for (int i = 0; i < shared.links_size(); ++i) {
    const LinkUse::Link& link = shared.links(i);
    const std::string field = absl::StrCat("links[", i, "]");
    for (const double value : {link.bytes_per_second(), link.transfer_bytes(),
                               link.collective_bytes(), link.host_bytes()}) {
      check(field, value);
    }
    ColumnChecker(absl::StrCat("link_use.", field),
                  shared.links(0).utilization_size(), problems)
        .CheckFinite("utilization", link.utilization());
  }
}

void CheckSlack(const Result& result, Problems* problems) {
  const auto& rows = result.run_slack().rows();
  for (int i = 0; i < rows.size(); ++i) {
    for (const double seconds :
         {rows[i].median_seconds(), rows[i].largest_seconds()}) {
      if (std::isfinite(seconds) && seconds >= 0) continue;
      problems->Add(absl::StrCat("run_slack.rows[", i, "]"),
                    absl::StrCat("has ", seconds,
                                 " seconds, expected a finite number of at "
                                 "least 0"));
    }
  }
}

// Checks the timeline and what is stored with it.
void CheckTimeline(const Result& result, Problems* problems) {
  CheckHostCopies(result, problems);
  CheckSharedLinks(result, problems);
  CheckSlack(result, problems);
  const int64_t last_gpu = int64_t{result.ranks_size()} - 1;
  {
    const auto& actions = result.timeline().actions();
    ColumnChecker check("timeline.actions", actions.gpu_size(), problems);
    check.CheckAtMost("gpu", actions.gpu(), last_gpu);
    check.CheckAtMost("op", actions.op(), Timeline::Actions::Op_MAX);
    check.HasSize("stage", actions.stage());
    check.HasSize("microbatch", actions.microbatch());
    if (!actions.num_microbatches().empty()) {
      check.CheckAtMost("num_microbatches", actions.num_microbatches(),
                        schedules::kMaxSpan);
    }
    if (!actions.weight_version().empty()) {
      check.HasSize("weight_version", actions.weight_version());
    }
    check.CheckTimes(actions);
  }
  {
    const auto& transfers = result.timeline().transfers();
    ColumnChecker check("timeline.transfers", transfers.from_gpu_size(),
                        problems);
    check.CheckAtMost("from_gpu", transfers.from_gpu(), last_gpu);
    check.CheckAtMost("to_gpu", transfers.to_gpu(), last_gpu);
    check.CheckAtMost("kind", transfers.kind(), Timeline::Transfers::Kind_MAX);
    check.HasSize("stage", transfers.stage());
    check.HasSize("microbatch", transfers.microbatch());
    check.CheckFinite("bytes", transfers.bytes());
    check.CheckTimes(transfers);
    if (!transfers.ready_seconds().empty()) {
      check.CheckFinite("ready_seconds", transfers.ready_seconds());
    }
  }
  {
    const auto& collectives = result.timeline().collectives();
    ColumnChecker check("timeline.collectives", collectives.gpu_size(),
                        problems);
    check.CheckAtMost("gpu", collectives.gpu(), last_gpu);
    check.CheckAtMost("kind", collectives.kind(),
                      Timeline::Collectives::Kind_MAX);
    check.HasSize("stage", collectives.stage());
    check.HasSize("microbatch", collectives.microbatch());
    check.CheckFinite("bytes", collectives.bytes());
    check.CheckTimes(collectives);
  }
  {
    const auto& memory = result.timeline().memory();
    ColumnChecker check("timeline.memory", memory.gpu_size(), problems);
    check.CheckAtMost("gpu", memory.gpu(), last_gpu);
    check.CheckFinite("seconds", memory.seconds());
    check.CheckFinite("bytes", memory.bytes());
  }
  {
    const auto& classes = result.timeline().class_memory();
    ColumnChecker check("timeline.class_memory", classes.gpu_size(), problems);
    check.CheckAtMost("gpu", classes.gpu(), last_gpu);
    check.CheckAtMost("kind", classes.kind(), MemoryClass::Kind_MAX);
    check.CheckFinite("seconds", classes.seconds());
    check.CheckFinite("bytes", classes.bytes());
  }
}

// Checks an execution. Losses may be anything: diverging training is a result.
void CheckReplay(const Result& result, Problems* problems) {
  const auto check = [&](absl::string_view field, int num_peaks) {
    if (num_peaks == 0 || num_peaks == result.ranks_size()) return;
    problems->Add(absl::StrCat("replay.", field),
                  absl::StrCat("has ", num_peaks, " entries, expected ",
                               result.ranks_size(), ", one per rank"));
  };
  check("allocator_peak_bytes", result.replay().allocator_peak_bytes_size());
  check("taken_peak_bytes", result.replay().taken_peak_bytes_size());
}

bool IsLoss(absl::string_view pointer) {
  return absl::StartsWith(pointer, "/replay/losses") ||
         pointer == "/replay/weights_difference" ||
         pointer == "/replay/change_difference";
}

}  // namespace

absl::Status ValidateResult(absl::string_view label, const Result& result) {
  Problems problems(label);
  if (result.schedule().empty()) {
    problems.Add("schedule", "is empty, expected the schedule's name");
  }
  std::vector<std::string> pointers = NonFinitePointers(result);
  pointers.erase(std::remove_if(pointers.begin(), pointers.end(), IsLoss),
                 pointers.end());
  constexpr size_t kMaxNamed = 10;  // a broken file may have thousands
  for (size_t i = 0; i < pointers.size() && i < kMaxNamed; ++i) {
    problems.Add(absl::StrReplaceAll(pointers[i].substr(1), {{"/", "."}}),
                 "is not a finite number");
  }
  if (pointers.size() > kMaxNamed) {
    problems.Add("", absl::StrCat(pointers.size() - kMaxNamed,
                                  " more numbers are not finite"));
  }
  CheckReplay(result, &problems);
  CheckTimeline(result, &problems);
  return problems.ToStatus();
}

absl::Status ValidateTimeline(absl::string_view label, const Result& result) {
  Problems problems(label);
  CheckTimeline(result, &problems);
  return problems.ToStatus();
}

Result WithoutTimeline(const Result& result) {
  using google::protobuf::util::FieldMaskUtil;
  google::protobuf::FieldMask mask;
  for (int i = 0; i < Result::descriptor()->field_count(); ++i) {
    const std::string name(Result::descriptor()->field(i)->name());
    if (!IsOfTimeline(Result::descriptor()->field(i)->message_type())) {
      mask.add_paths(name);
    }
  }
  Result copy;
  FieldMaskUtil::MergeMessageTo(result, mask, {}, &copy);
  return copy;
}

std::vector<std::string> NonFinitePointers(const Result& result) {
  std::vector<std::string> pointers;
  CollectNonFinite(result, "", &pointers);
  return pointers;
}

}  // namespace weir::results
