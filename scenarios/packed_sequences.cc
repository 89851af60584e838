// SPDX-License-Identifier: Apache-2.0
#include "scenarios/packed_sequences.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"

namespace weir::scenarios {
namespace {

constexpr double kMostTokens = 1 << 24;
constexpr double kMostCount = 1e12;

// Parses tokens, also as "2k" (2048) and "1M", as lengths of sequences are
// written.
bool ParseTokens(absl::string_view text, double* tokens) {
  double factor = 1;
  if (absl::ConsumeSuffix(&text, "k") || absl::ConsumeSuffix(&text, "K")) {
    factor = 1024;
  } else if (absl::ConsumeSuffix(&text, "M")) {
    factor = 1048576;
  }
  if (!absl::SimpleAtod(text, tokens)) return false;
  *tokens *= factor;
  return true;
}

// Returns the lengths around `separator`.
absl::StatusOr<std::pair<double, double>> TwoLengths(absl::string_view text,
                                                     char separator) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(separator, 1));
  double first = 0, second = 0;
  if (parts.size() == 2 && ParseTokens(parts[0], &first) &&
      ParseTokens(parts[1], &second)) {
    return std::make_pair(first, second);
  }
  return absl::InvalidArgumentError("");
}

// Returns E[min(l, s)^k] of l uniform in [a, b].
double UniformMoment(double a, double b, int k, double s) {
  if (s <= a || a == b) return std::pow(std::min(a, s), k);
  const double end = std::min(b, s);
  const double inside = (std::pow(end, k + 1) - std::pow(a, k + 1)) / (k + 1);
  return (inside + std::pow(s, k) * std::max(b - s, 0.0)) / (b - a);
}

// Returns the probability that a standard normal variable is below x.
double NormalBelow(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }

double LogNormalMoment(double mean, double deviation, int k, double s) {
  if (deviation == 0) return std::pow(std::min(mean, s), k);
  const double variance = std::log1p(std::pow(deviation / mean, 2));
  const double sigma = std::sqrt(variance);
  const double mu = std::log(mean) - variance / 2;
  const double cut = (std::log(s) - mu) / sigma;
  return std::exp(k * mu + k * k * variance / 2) *
             NormalBelow(cut - k * sigma) +
         std::pow(s, k) * NormalBelow(-cut);
}

}  // namespace

absl::StatusOr<SequenceLengths> ParseSequenceLengths(absl::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text),
      ", expected tokens per document (2048 or 2k), uniform:SHORTEST-LONGEST, "
      "lognormal:MEAN,DEVIATION, TOKENS*COUNT,... or none"));
  SequenceLengths lengths;
  if (text == "none") {
    lengths.set_one_document(true);
    return lengths;
  }
  double tokens = 0;
  if (ParseTokens(text, &tokens)) {
    lengths.set_fixed(tokens);
    return lengths;
  }
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "uniform:")) {
    const auto both = TwoLengths(rest, '-');
    if (!both.ok()) return error;
    lengths.mutable_uniform()->set_shortest(both->first);
    lengths.mutable_uniform()->set_longest(both->second);
    return lengths;
  }
  if (absl::ConsumePrefix(&rest, "lognormal:")) {
    const auto both = TwoLengths(rest, ',');
    if (!both.ok()) return error;
    lengths.mutable_log_normal()->set_mean(both->first);
    lengths.mutable_log_normal()->set_deviation(both->second);
    return lengths;
  }
  for (absl::string_view one : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(one, absl::MaxSplits('*', 1));
    double count = 0;
    if (!ParseTokens(parts.first, &tokens) ||
        !absl::SimpleAtod(parts.second, &count)) {
      return error;
    }
    auto* length = lengths.mutable_histogram()->add_lengths();
    length->set_tokens(tokens);
    length->set_count(count);
  }
  return lengths;
}

void CheckSequenceLengths(Problems& problems, const Batch& batch) {
  if (!batch.has_packed_sequences()) return;
  const SequenceLengths& lengths = batch.packed_sequences();
  const std::string path = "batch.packed_sequences.";
  const auto tokens = [&](const std::string& field, double value) {
    problems.CheckRange(path + field, value, 1, kMostTokens);
  };
  // Means may have fractions, lengths of documents may not.
  const auto length = [&](const std::string& field, double value) {
    tokens(field, value);
    if (value >= 1 && value <= kMostTokens && value != std::floor(value)) {
      problems.Add(path + field, absl::StrCat("is ", value,
                                              ", expected a whole number of "
                                              "tokens"));
    }
  };
  switch (lengths.distribution_case()) {
    case SequenceLengths::kFixed:
      length("fixed", lengths.fixed());
      break;
    case SequenceLengths::kUniform: {
      const auto& uniform = lengths.uniform();
      length("uniform.shortest", uniform.shortest());
      length("uniform.longest", uniform.longest());
      if (uniform.longest() < uniform.shortest()) {
        problems.Add(
            path + "uniform.longest",
            absl::StrCat("is ", uniform.longest(),
                         ", expected at least shortest, ", uniform.shortest()));
      }
      break;
    }
    case SequenceLengths::kLogNormal:
      tokens("log_normal.mean", lengths.log_normal().mean());
      problems.CheckRange(path + "log_normal.deviation",
                          lengths.log_normal().deviation(), 0, kMostTokens);
      break;
    case SequenceLengths::kHistogram: {
      const auto& all = lengths.histogram().lengths();
      double count = 0;
      for (int i = 0; i < all.size(); ++i) {
        const std::string field = absl::StrCat("histogram.lengths[", i, "].");
        length(field + "tokens", all[i].tokens());
        problems.CheckRange(path + field + "count", all[i].count(), 0,
                            kMostCount);
        count += all[i].count();
      }
      if (!(count > 0)) {
        problems.Add(path + "histogram.lengths",
                     "have counts that add up to 0, expected a positive sum");
      }
      break;
    }
    case SequenceLengths::kOneDocument:
    case SequenceLengths::DISTRIBUTION_NOT_SET:
      problems.Add("batch.packed_sequences",
                   "has no lengths, expected fixed, uniform, log_normal or "
                   "histogram");
      break;
  }
}

double LengthMoment(const SequenceLengths& lengths, int power, double longest) {
  switch (lengths.distribution_case()) {
    case SequenceLengths::kUniform:
      return UniformMoment(lengths.uniform().shortest(),
                           lengths.uniform().longest(), power, longest);
    case SequenceLengths::kLogNormal:
      return LogNormalMoment(lengths.log_normal().mean(),
                             lengths.log_normal().deviation(), power, longest);
    case SequenceLengths::kHistogram: {
      double sum = 0, count = 0;
      for (const auto& length : lengths.histogram().lengths()) {
        sum += length.count() *
               std::pow(std::min(length.tokens(), longest), power);
        count += length.count();
      }
      return sum / count;
    }
    default:
      return std::pow(std::min(lengths.fixed(), longest), power);
  }
}

}  // namespace weir::scenarios
