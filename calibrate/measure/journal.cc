// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/record_log.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir::calibrate {
namespace {

std::string Quoted(absl::string_view text) {
  return text.empty() ? "nothing" : absl::StrCat("\"", text, "\"");
}

constexpr absl::string_view kChecksum = "# crc32: ";

std::string Sealed(absl::string_view record) {
  return absl::StrCat(record, kChecksum, Crc32(record), "\n");
}

// Splits the text into records. Text after the last checksum becomes a record
// that is not intact.
std::vector<Record> RecordsOf(absl::string_view text) {
  std::vector<Record> records;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    absl::string_view line = text.substr(at, end - at);
    const bool is_checksum = absl::ConsumePrefix(&line, kChecksum);
    if (is_checksum || end == text.size()) {
      Record record;
      record.number = static_cast<int>(records.size()) + 1;
      record.offset = static_cast<off_t>(begin);
      record.text =
          std::string(text.substr(begin, (is_checksum ? at : end) - begin));
      record.is_intact =
          is_checksum && line == absl::StrCat(Crc32(record.text), "\n");
      records.push_back(std::move(record));
      begin = end;
    }
    at = end;
  }
  return records;
}

}  // namespace

absl::StatusOr<Calibration> LoadJournal(const std::string& path,
                                        std::vector<std::string>* damage) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseJournal(path, text, damage);
}

absl::StatusOr<Calibration> ParseJournal(const std::string& label,
                                         absl::string_view text,
                                         std::vector<std::string>* damage) {
  if (!absl::StrContains(text, kChecksum)) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has no checksums, expected the journal of a calibration"));
  }
  Calibration journal;
  for (const Record& record : RecordsOf(text)) {
    if (record.is_intact) {
      Calibration part;
      RETURN_IF_ERROR(ParseTextProto(label, record.text, &part));
      journal.MergeFrom(part);
      continue;
    }
    const std::string what = absl::StrCat(label, ": ", DescribeDamage(record));
    if (damage == nullptr || record.number == 1) {
      return absl::InvalidArgumentError(what);
    }
    damage->push_back(what);
  }
  return journal;
}

absl::Status SaveJournal(const std::string& path, const Calibration& journal) {
  Calibration head = journal;
  head.clear_workloads();
  head.clear_stage_memory();
  std::string text = Sealed(MarkText(PrintTextProto(head)));
  for (const WorkloadResult& result : journal.workloads()) {
    Calibration part;
    *part.add_workloads() = result;
    absl::StrAppend(&text, Sealed(PrintTextProto(part)));
  }
  for (const StageMemoryResult& result : journal.stage_memory()) {
    Calibration part;
    *part.add_stage_memory() = result;
    absl::StrAppend(&text, Sealed(PrintTextProto(part)));
  }
  return WriteFile(path, text);
}

absl::Status CheckSameMachine(absl::string_view path,
                              const Calibration& journal,
                              const Calibration& this_run) {
  Problems problems(path);
  const auto check = [&](absl::string_view field, absl::string_view then,
                         absl::string_view found) {
    if (then == found) return;
    problems.Add(
        absl::StrCat("provenance.", field),
        absl::StrCat("is ", Quoted(then), ", this run has ", Quoted(found)));
  };
  const Provenance& then = journal.provenance();
  const Provenance& now = this_run.provenance();
  check("gpu_name", then.gpu_name(), now.gpu_name());
  check("gpu_hash", then.gpu_hash(), now.gpu_hash());
  check("software.driver", then.software().driver(), now.software().driver());
  check("software.cuda", then.software().cuda(), now.software().cuda());
  check("software.cublas", then.software().cublas(), now.software().cublas());
  check("software.cudnn", then.software().cudnn(), now.software().cudnn());
  check("software.nccl", then.software().nccl(), now.software().nccl());
  check("weir_version", then.weir_version(), now.weir_version());
  const auto check_number = [&](const char* field, uint32_t then,
                                uint32_t found) {
    if (then == found) return;
    problems.Add(field, absl::StrCat("is ", then, ", this run has ", found));
  };
  check_number("num_partitions", journal.num_partitions(),
               this_run.num_partitions());
  check_number("part_multiprocessors", journal.part_multiprocessors(),
               this_run.part_multiprocessors());
  return problems.ToStatus();
}

Calibration CompletedPart(const Calibration& journal) {
  Calibration completed = journal;
  completed.clear_workloads();
  completed.clear_stage_memory();
  for (const StageMemoryResult& result : journal.stage_memory()) {
    if (result.has_memory()) *completed.add_stage_memory() = result;
  }
  for (const WorkloadResult& result : journal.workloads()) {
    if (result.state() == WorkloadResult::TIMED) {
      *completed.add_workloads() = result;
    }
  }
  return completed;
}

const WorkloadResult* FindResult(const Calibration& journal,
                                 absl::string_view key) {
  for (const WorkloadResult& result : journal.workloads()) {
    if (result.key() == key) return &result;
  }
  return nullptr;
}

const StageMemoryResult* FindMemory(const Calibration& journal,
                                    absl::string_view key) {
  for (const StageMemoryResult& result : journal.stage_memory()) {
    if (result.key() == key) return &result;
  }
  return nullptr;
}

}  // namespace weir::calibrate
