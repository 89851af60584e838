// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/journal.h"

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir {
namespace {

std::string Quoted(absl::string_view text) {
  return text.empty() ? "nothing" : absl::StrCat("\"", text, "\"");
}

}  // namespace

absl::StatusOr<Calibration> LoadJournal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Calibration journal;
  RETURN_IF_ERROR(ParseTextProto(path, text, &journal));
  return journal;
}

absl::Status SaveJournal(const std::string& path, const Calibration& journal) {
  return WriteFile(path, PrintTextProto(journal));
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

}  // namespace weir
