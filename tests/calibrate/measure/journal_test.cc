// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"

namespace weir::calibrate::journal_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Calibration Sample() {
  Calibration journal;
  journal.mutable_provenance()->set_gpu_name("GPU");
  journal.set_format("bf16");
  for (const char* key : {"copy", "gemm"}) {
    WorkloadResult* result = journal.add_workloads();
    result->set_key(key);
    result->set_state(WorkloadResult::TIMED);
    result->mutable_seconds()->set_p50(0.25);
  }
  journal.add_stage_memory()->set_key("stage");
  return journal;
}

std::string SavedText() {
  const std::string path = testing::TempDir() + "/journal_test.partial";
  EXPECT_TRUE(SaveJournal(path, Sample()).ok());
  return *ReadFile(path);
}

TEST(JournalTest, WhatIsSavedIsLoaded) {
  std::vector<std::string> damage;
  const auto journal = ParseJournal("j", SavedText(), &damage);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(PrintTextProto(*journal), PrintTextProto(Sample()));
  EXPECT_THAT(damage, IsEmpty());
  EXPECT_TRUE(LoadJournal(testing::TempDir() + "/journal_test.partial").ok());
}

TEST(JournalTest, OnlyTimedAndMeasuredResultsAreComplete) {
  Calibration journal = Sample();
  journal.mutable_workloads(0)->set_state(WorkloadResult::REFUSED);
  StageMemoryResult* measured = journal.add_stage_memory();
  measured->set_key("measured");
  measured->mutable_memory();
  const Calibration completed = CompletedPart(journal);
  ASSERT_EQ(completed.workloads_size(), 1);
  EXPECT_EQ(completed.workloads(0).key(), "gemm");
  ASSERT_EQ(completed.stage_memory_size(), 1);
  EXPECT_EQ(completed.stage_memory(0).key(), "measured");
  EXPECT_EQ(completed.provenance().gpu_name(), "GPU");
  EXPECT_EQ(completed.format(), "bf16");
}

TEST(JournalTest, ADamagedResultIsNamedAndLeftOut) {
  std::string text = SavedText();
  const size_t at = text.find("0.25");
  text[at + 2] = '5';
  const size_t begin = text.find("workloads");
  std::vector<std::string> damage;
  const auto journal = ParseJournal("j", text, &damage);
  ASSERT_TRUE(journal.ok()) << journal.status();
  const std::string what = absl::StrCat(
      "j: record 2 (byte ", begin, ") is damaged: its checksum does not match");
  EXPECT_THAT(damage, ElementsAre(what));
  EXPECT_EQ(FindResult(*journal, "copy"), nullptr);
  EXPECT_NE(FindResult(*journal, "gemm"), nullptr);
  EXPECT_EQ(ParseJournal("j", text, nullptr).status().message(), what);
}

TEST(JournalTest, ADamagedHeadIsAnError) {
  std::string text = SavedText();
  text[text.find("GPU")] = 'C';
  std::vector<std::string> damage;
  EXPECT_THAT(ParseJournal("j", text, &damage).status().message(),
              HasSubstr("j: record 1 (byte 0) is damaged"));
  EXPECT_THAT(ParseJournal("j", "format: 'bf16'\n", &damage).status().message(),
              HasSubstr("j: has no checksums"));
  EXPECT_FALSE(ParseJournal("j", "", &damage).ok());
}

// Returns the records of a journal, each as text.
std::set<std::string> PartsOf(const Calibration& journal) {
  Calibration head = journal;
  head.clear_workloads();
  head.clear_stage_memory();
  std::set<std::string> parts = {PrintTextProto(head)};
  for (const auto& result : journal.workloads()) {
    parts.insert(PrintTextProto(result));
  }
  for (const auto& result : journal.stage_memory()) {
    parts.insert(PrintTextProto(result));
  }
  return parts;
}

TEST(JournalTest, EveryFlippedBitAndEveryCutIsFound) {
  const std::string whole = SavedText();
  const std::set<std::string> right = PartsOf(Sample());
  const auto check = [&](const std::string& text, size_t where) {
    std::vector<std::string> damage;
    const auto journal = ParseJournal("j", text, &damage);
    if (!journal.ok()) return;
    for (const std::string& part : PartsOf(*journal)) {
      EXPECT_EQ(right.count(part), 1) << where << ": " << part;
    }
    EXPECT_THAT(damage, testing::Not(IsEmpty())) << where;
  };
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    check(flipped, bit);
  }
  const size_t end = whole.size();
  for (size_t cut = 0; cut < end; ++cut) {
    // A cut between records gives a valid shorter journal. No crash leaves one,
    // as the file is always replaced as a whole.
    if (cut > 0 && whole[cut - 1] == '\n' &&
        whole.rfind("# crc32: ", cut - 1) == cut - 18) {
      continue;
    }
    check(whole.substr(0, cut), cut);
  }
}

}  // namespace weir::calibrate::journal_test
