// SPDX-License-Identifier: Apache-2.0
// Journals. Appended records are read back, and after any cut or damage the
// read records are a subsequence of the appended ones, or reading fails.
#include <fcntl.h>
#include <google/protobuf/util/message_differencer.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/measure/journal.h"
#include "plan/sweep/shard.h"
#include "tests/fuzz/generate_message.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

using google::protobuf::util::MessageDifferencer;

// Returns a folder of this process, in memory if there is such a file system.
const std::string& Folder() {
  static const auto& folder = *[] {
    std::string name = access("/dev/shm", W_OK) == 0
                           ? "/dev/shm/weir_fuzz_XXXXXX"
                           : "/tmp/weir_fuzz_XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    return new std::string(name);
  }();
  static const bool registered =
      std::atexit([] {
        for (const char* name : {"/shard-0-of-1.jsonl", "/journal"}) {
          unlink((Folder() + name).c_str());
        }
        rmdir(Folder().c_str());
      }) == 0;
  (void)registered;
  return folder;
}

struct Written {
  SweepHead head;
  std::vector<SweepOutcome> outcomes;
};

SweepOutcome GenerateOutcome(Choices* choices) {
  SweepOutcome outcome;
  FillMessage(&outcome, choices);
  if (outcome.kind() == SWEEP_OUTCOME_UNSPECIFIED) outcome.set_kind(SWEEP_DONE);
  return outcome;
}

void Append(const std::string& path, int num_outcomes, Written* written,
            Choices* choices) {
  auto writer = plan::ShardWriter::Open(path);
  REQUIRE_OK(writer);
  if (!writer->contents().has_head) {
    FillMessage(&written->head, choices);
    written->head.set_sweep("name: 'fuzz'");
    written->outcomes.clear();
    REQUIRE_OK(writer->Append(written->head));
  }
  for (; num_outcomes > 0; --num_outcomes) {
    written->outcomes.push_back(GenerateOutcome(choices));
    REQUIRE_OK(writer->Append(written->outcomes.back()));
  }
}

void CheckWhole(const std::string& path, const Written& written) {
  const auto read = plan::ReadShardFile(path);
  REQUIRE_OK(read);
  REQUIRE(read->has_head);
  REQUIRE(MessageDifferencer::Equals(read->head, written.head));
  REQUIRE(read->outcomes.size() == written.outcomes.size());
  for (size_t i = 0; i < written.outcomes.size(); ++i) {
    REQUIRE_THAT(
        MessageDifferencer::Equals(read->outcomes[i], written.outcomes[i]),
        read->outcomes[i].DebugString() + written.outcomes[i].DebugString());
  }
}

// Checks that damage may lose outcomes but never adds any.
void CheckPart(const plan::ShardContents& read, const Written& written) {
  if (read.has_head) {
    REQUIRE(MessageDifferencer::Equals(read.head, written.head));
  }
  size_t next = 0;
  for (const SweepOutcome& outcome : read.outcomes) {
    while (next < written.outcomes.size() &&
           !MessageDifferencer::Equals(outcome, written.outcomes[next])) {
      ++next;
    }
    REQUIRE_THAT(next < written.outcomes.size(), outcome.DebugString());
    ++next;
  }
}

// Returns the beginning of the file, as a crash leaves it.
std::string CutAnywhere(const std::string& bytes, Choices* choices) {
  return bytes.substr(0, choices->Int(0, static_cast<int>(bytes.size())));
}

void Overwrite(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(write(fd, bytes.data(), bytes.size()) == std::ssize(bytes));
  close(fd);
}

bool CheckShard(Choices* choices) {
  const std::string path = Folder() + "/shard-0-of-1.jsonl";
  unlink(path.c_str());
  Written written;
  Append(path, choices->Int(0, 5), &written, choices);
  CheckWhole(path, written);
  const auto bytes = ReadFile(path);
  REQUIRE_OK(bytes);
  const bool cut = choices->OneIn(2);
  const std::string after =
      cut ? CutAnywhere(*bytes, choices) : Damage(*bytes, choices);
  Overwrite(path, after);
  const auto read = plan::ReadShardFile(path);
  REQUIRE(read.ok() || !cut);
  if (read.ok()) CheckPart(*read, written);
  auto writer = plan::ShardWriter::Open(path);
  REQUIRE(writer.ok() || !cut);
  if (!writer.ok()) return false;
  CheckPart(writer->contents(), written);
  if (!cut) return true;
  // A run that resumes after a crash appends the remaining outcomes.
  written.outcomes.resize(writer->contents().outcomes.size());
  { const plan::ShardWriter closed = *std::move(writer); }
  Append(path, 2, &written, choices);
  CheckWhole(path, written);
  return true;
}

// Removes the leading results of `part` that are in `whole`, in its order.
template <typename Results>
void RemoveEqual(const Results& whole, Results* part) {
  int next = 0;
  for (const auto& result : whole) {
    if (next < part->size() &&
        MessageDifferencer::Equals(result, (*part)[next]))
      ++next;
  }
  part->DeleteSubrange(0, next);
}

// Checks that a damaged journal has only records of the original.
void CheckPart(Calibration part, Calibration whole) {
  RemoveEqual(whole.workloads(), part.mutable_workloads());
  RemoveEqual(whole.stage_memory(), part.mutable_stage_memory());
  whole.clear_workloads();
  whole.clear_stage_memory();
  REQUIRE_THAT(MessageDifferencer::Equals(part, whole),
               part.DebugString() + whole.DebugString());
}

bool CheckCalibration(Choices* choices) {
  const std::string path = Folder() + "/journal";
  Calibration journal;
  FillMessage(&journal, choices);
  REQUIRE_OK(calibrate::SaveJournal(path, journal));
  const auto read = calibrate::LoadJournal(path);
  REQUIRE_OK(read);
  REQUIRE_THAT(MessageDifferencer::Equals(*read, journal),
               journal.DebugString());
  for (const WorkloadResult& workload : journal.workloads()) {
    REQUIRE(calibrate::FindResult(*read, workload.key()) != nullptr);
  }
  REQUIRE_OK(calibrate::CheckSameMachine(path, *read, journal));
  const auto bytes = ReadFile(path);
  REQUIRE_OK(bytes);
  Overwrite(path, Damage(*bytes, choices));
  const auto damaged = calibrate::LoadJournal(path);
  if (damaged.ok()) CheckPart(*damaged, journal);
  REQUIRE(damaged.ok() || !damaged.status().message().empty());
  return true;
}

}  // namespace

bool RunInput(Choices* choices) {
  return choices->OneIn(3) ? CheckCalibration(choices) : CheckShard(choices);
}

}  // namespace weir::fuzz
