// SPDX-License-Identifier: Apache-2.0
#include "base/record_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::record_log_test {

// The standard check value of CRC-32 catalogs.
TEST(RecordLogTest, TheChecksumIsThatOfZlibAndEthernet) {
  EXPECT_EQ(Crc32("123456789"), "cbf43926");
  EXPECT_EQ(Crc32(""), "00000000");
}

TEST(RecordLogTest, ASealedRecordIsJsonAndIsReadAgain) {
  const std::string line = SealRecord("{\"point\":3,\"text\":\"a\\nb\"}");
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["point"], 3);
  EXPECT_EQ(json["crc32"], Crc32("{\"point\":3,\"text\":\"a\\nb\"}"));
  const RecordLog log = ParseRecordLog(line);
  ASSERT_EQ(log.records.size(), 1);
  EXPECT_TRUE(log.records[0].is_intact);
  EXPECT_EQ(log.records[0].text, "{\"point\":3,\"text\":\"a\\nb\"}");
}

TEST(RecordLogTest, AnEmptyObjectIsSealedToo) {
  for (const std::string text : {"{}", "{ }"}) {
    const std::string line = SealRecord(text);
    EXPECT_EQ(nlohmann::json::parse(line)["crc32"], Crc32(text));
    const RecordLog log = ParseRecordLog(line);
    ASSERT_EQ(log.records.size(), 1);
    EXPECT_TRUE(log.records[0].is_intact);
    EXPECT_EQ(log.records[0].text, text);
  }
}

TEST(RecordLogTest, DamageIsTold) {
  const std::string one = SealRecord("{\"a\":1}");
  const std::string two = SealRecord("{\"a\":2}");
  const RecordLog log = ParseRecordLog(one + "{\"a\":1}\n" + two + "{\"crc");
  ASSERT_EQ(log.records.size(), 3);
  EXPECT_TRUE(log.records[0].is_intact);
  EXPECT_FALSE(log.records[1].is_intact);
  EXPECT_TRUE(log.records[2].is_intact);
  EXPECT_EQ(DescribeDamage(log.records[1]),
            absl::StrCat("record 2 (byte ", one.size(),
                         ") is damaged: its checksum does not match"));
  EXPECT_EQ(log.num_bytes, static_cast<off_t>(2 * one.size() + 8));
}

TEST(RecordLogTest, EveryFlippedBitIsFound) {
  const std::vector<std::string> texts = {
      "{\"sweep\":\"name: \\\"a\\\"\"}",
      "{\"point\":0,\"kind\":\"SWEEP_DONE\"}",
      "{\"point\":1,\"batch_seconds\":0.30000000000000004}"};
  std::string bytes;
  for (const std::string& text : texts) bytes += SealRecord(text);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const RecordLog log = ParseRecordLog(flipped);
    size_t num_intact = 0;
    for (const Record& record : log.records) {
      if (!record.is_intact) continue;
      ++num_intact;
      EXPECT_NE(std::find(texts.begin(), texts.end(), record.text), texts.end())
          << bit << ": " << record.text;
    }
    EXPECT_LT(num_intact, texts.size()) << bit;
    EXPECT_TRUE(num_intact < log.records.size() ||
                log.num_bytes < static_cast<off_t>(flipped.size()))
        << bit;
  }
}

TEST(RecordLogTest, TheBeginningOfALogIsKnown) {
  EXPECT_TRUE(IsBeginningOfRecordLog(""));
  EXPECT_TRUE(IsBeginningOfRecordLog("{\"cr"));
  EXPECT_TRUE(IsBeginningOfRecordLog(SealRecord("{\"a\":1}").substr(0, 15)));
  EXPECT_FALSE(IsBeginningOfRecordLog("a letter"));
  EXPECT_FALSE(IsBeginningOfRecordLog("{\"a\":1"));
}

}  // namespace weir::record_log_test
