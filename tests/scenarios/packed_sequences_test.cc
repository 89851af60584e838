// SPDX-License-Identifier: Apache-2.0
#include "scenarios/packed_sequences.h"

#include <cmath>

#include "gmock/gmock.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::packed_sequences_test {

using testing::HasSubstr;

SequenceLengths Lengths(absl::string_view text) {
  const auto lengths = ParseSequenceLengths(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  return lengths.value_or(SequenceLengths());
}

TEST(PackedSequencesTest, ReadsDistributions) {
  EXPECT_EQ(Lengths("2048").fixed(), 2048);
  EXPECT_EQ(Lengths("uniform:100-4000").uniform().longest(), 4000);
  EXPECT_EQ(Lengths("lognormal:800,1200").log_normal().deviation(), 1200);
  const SequenceLengths histogram = Lengths("512*3,4096*1");
  ASSERT_EQ(histogram.histogram().lengths_size(), 2);
  EXPECT_EQ(histogram.histogram().lengths(1).tokens(), 4096);
  EXPECT_EQ(Lengths("2k").fixed(), 2048);
  EXPECT_EQ(Lengths("uniform:1k-4K").uniform().shortest(), 1024);
  EXPECT_EQ(Lengths("1k*2,1M*1").histogram().lengths(1).tokens(), 1048576);
  EXPECT_TRUE(Lengths("none").one_document());
  for (const char* text : {"", "x", "2kk", "k", "512*3,4096", "uniform:1",
                           "lognormal:5", "1*", "1*2,3"}) {
    EXPECT_THAT(std::string(ParseSequenceLengths(text).status().message()),
                HasSubstr("expected tokens per document"));
  }
}

// The mean over midpoints of equal intervals of [0, 1) of what `length` maps
// them to.
template <typename Length>
double MeanOf(Length length, int power, double longest) {
  constexpr int kIntervals = 200'000;
  double sum = 0;
  for (int i = 0; i < kIntervals; ++i) {
    sum += std::pow(std::min(length((i + 0.5) / kIntervals), longest), power);
  }
  return sum / kIntervals;
}

TEST(PackedSequencesTest, MomentsOfDistributions) {
  for (const double longest : {50.0, 1500.0, 8192.0}) {
    for (const int power : {1, 2, 3, 4}) {
      EXPECT_EQ(LengthMoment(Lengths("1024"), power, longest),
                std::pow(std::min(1024.0, longest), power));
      const double histogram = (3 * std::pow(std::min(512.0, longest), power) +
                                std::pow(std::min(4096.0, longest), power)) /
                               4;
      EXPECT_DOUBLE_EQ(LengthMoment(Lengths("512*3,4096*1"), power, longest),
                       histogram);
      const auto uniform = [](double u) { return 100 + u * 3900; };
      EXPECT_NEAR(LengthMoment(Lengths("uniform:100-4000"), power, longest) /
                      MeanOf(uniform, power, longest),
                  1, 1e-8);
    }
  }
  // Without truncation: e^(k mu + k^2 sigma^2 / 2).
  const SequenceLengths wide = Lengths("lognormal:800,1200");
  EXPECT_NEAR(LengthMoment(wide, 1, 1e15), 800, 1e-9);
  EXPECT_NEAR(LengthMoment(wide, 2, 1e15) / (800.0 * 800 + 1200.0 * 1200), 1,
              1e-12);
  EXPECT_EQ(LengthMoment(Lengths("lognormal:800,0"), 2, 1e15), 640'000);
}

// The derivative of E[min(l, s)^k] by s is k s^(k-1) P(l > s).
TEST(PackedSequencesTest, LogNormalLengthsAreCut) {
  const SequenceLengths lengths = Lengths("lognormal:800,1200");
  const double variance = std::log1p(2.25);
  const double mu = std::log(800) - variance / 2;
  for (const double s : {100.0, 1000.0, 5000.0}) {
    const double above =
        std::erfc((std::log(s) - mu) / std::sqrt(2 * variance)) / 2;
    for (const int k : {1, 2, 4}) {
      const double h = 1e-3 * s;
      const double slope =
          (LengthMoment(lengths, k, s + h) - LengthMoment(lengths, k, s - h)) /
          (2 * h);
      EXPECT_NEAR(slope / (k * std::pow(s, k - 1) * above), 1, 1e-5);
    }
  }
}

TEST(PackedSequencesTest, ProblemsNameTheField) {
  const auto message = [](absl::string_view text) {
    Scenario scenario = Small();
    *scenario.mutable_batch()->mutable_packed_sequences() = Lengths(text);
    return MessageOf(scenario);
  };
  EXPECT_THAT(message("0"), HasSubstr("batch.packed_sequences.fixed is 0"));
  EXPECT_THAT(message("100.5"), HasSubstr("is 100.5, expected a whole number"));
  Scenario fractions = Small();
  *fractions.mutable_batch()->mutable_packed_sequences() =
      Lengths("lognormal:100.5,20.5");
  fractions.mutable_training()->set_flash_attention(true);
  EXPECT_TRUE(ResolveScenario("s", fractions).ok());
  EXPECT_THAT(message("uniform:500-100"),
              HasSubstr("uniform.longest is 100, expected at least shortest"));
  EXPECT_THAT(message("512*0"), HasSubstr("have counts that add up to 0"));
  EXPECT_THAT(message("nan*1"), HasSubstr("histogram.lengths[0].tokens"));
  Scenario empty = Small();
  empty.mutable_batch()->mutable_packed_sequences();
  EXPECT_THAT(MessageOf(empty),
              HasSubstr("batch.packed_sequences has no lengths"));
  Scenario unfused = Small();
  unfused.mutable_batch()->mutable_packed_sequences()->set_fixed(100);
  unfused.mutable_training()->set_flash_attention(false);
  EXPECT_THAT(MessageOf(unfused),
              HasSubstr("packed sequences need fused attention"));
}

}  // namespace weir::scenarios::packed_sequences_test
