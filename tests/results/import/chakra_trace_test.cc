// SPDX-License-Identifier: Apache-2.0
// Execution traces of Chakra, also damaged ones.
#include "results/import/chakra_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "results/import/chakra.pb.h"
#include "results/import/import_trace.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::chakra_trace_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string Delimited(const std::string& message) {
  std::string text;
  for (size_t length = message.size(); true; length >>= 7) {
    text += static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
    if (length <= 0x7f) break;
  }
  return text + message;
}

std::string Metadata(int rank) {
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  chakra::Attribute* attribute = metadata.add_attr();
  attribute->set_name("rank");
  attribute->set_int64_val(rank);
  return Delimited(metadata.SerializeAsString());
}

struct Operation {
  std::string name;
  uint64_t start = 0, duration = 0;  // microseconds
  bool on_host = false;
};

std::string Trace(int rank, const std::vector<Operation>& operations) {
  std::string text = Metadata(rank);
  uint64_t id = 0;
  for (const Operation& operation : operations) {
    chakra::Node node;
    node.set_id(id++);
    node.set_name(operation.name);
    node.set_start_time_micros(operation.start);
    node.set_duration_micros(operation.duration);
    chakra::Attribute* attribute = node.add_attr();
    attribute->set_name("is_cpu_op");
    attribute->set_bool_val(operation.on_host);
    text += Delimited(node.SerializeAsString());
  }
  return text;
}

const std::vector<Operation> kPasses = {
    {"aten::mm", 1000, 50}, {"PP:0F0", 1000, 100}, {"PP:0F1", 1100, 110},
    {"PP:0B0", 1300, 200},  {"PP:0B1", 1500, 210}, {"ncclKernel", 1800, 0}};

TEST(ChakraTraceTest, PassesAreRead) {
  for (const bool compressed : {false, true}) {
    const std::string text = Trace(0, kPasses);
    const auto run = ImportTraceText("a.et", compressed ? Gzip(text) : text);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->notes, IsEmpty());
    ASSERT_EQ(run->operations.size(), 4u);
    EXPECT_EQ(run->num_stages, 1);
    EXPECT_NEAR(run->operations[1].start_seconds, 100e-6, 1e-12);
    EXPECT_NEAR(run->operations[1].seconds(), 110e-6, 1e-12);
    EXPECT_EQ(run->operations[3].microbatch, 1);
    EXPECT_EQ(run->operations[3].kind, RecordedKind::kBackward);
  }
}

TEST(ChakraTraceTest, RangesOfTheHostAreNoted) {
  std::vector<Operation> on_host = kPasses;
  for (Operation& operation : on_host) operation.on_host = true;
  const auto run = ImportTraceText("a.et", Trace(0, on_host));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->notes.size(), 1u);
  EXPECT_THAT(run->notes[0], HasSubstr("host"));
}

TEST(ChakraTraceTest, CutTracesKeepCompleteOperations) {
  const std::string text = Trace(0, kPasses);
  // Within the last message, which has no time.
  const auto run = ImportTraceText("a.et", text.substr(0, text.size() - 3));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->operations.size(), 4u);
  EXPECT_THAT(run->notes[0], HasSubstr("a.et: ends within event 6"));
}

TEST(ChakraTraceTest, DamagedTracesAreRefused) {
  const auto message = [](const std::string& text) {
    return std::string(ImportTraceText("a.et", text).status().message());
  };
  EXPECT_THAT(message(Metadata(0)), HasSubstr("none of 0 events"));
  EXPECT_THAT(message(Trace(0, {{"aten::mm", 0, 5}})),
              HasSubstr("none of 1 events names a pass"));
  // A length of 200 MB.
  EXPECT_THAT(message(Metadata(0) + "\x80\x84\xaf\x5f"),
              HasSubstr("message 2 has 200000000 bytes, expected at most"));
  EXPECT_THAT(message(Metadata(0) + Delimited("\xff\xff\xff")),
              HasSubstr("message 2 is damaged"));
  EXPECT_THAT(message(Trace(0, {{"PP:0F0", uint64_t{1} << 62, 5}})),
              HasSubstr("expected at most 1e+16"));
}

TEST(ChakraTraceTest, OtherFilesAreNotTakenForIt) {
  EXPECT_TRUE(IsChakra(Metadata(3)));
  for (const char* text : {"", "{", "[{}]", "step,rank\n", "\n\n\n", "\x0a"}) {
    EXPECT_FALSE(IsChakra(text)) << text;
  }
}

}  // namespace
}  // namespace weir::results::chakra_trace_test
