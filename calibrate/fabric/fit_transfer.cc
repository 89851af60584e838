// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/fit_transfer.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr int kMaxBreaks = 3;
// Relative resolution of clocks and counters; smaller errors count as this.
constexpr double kResolution = 1e-4;

struct Candidate {
  std::vector<double> breaks;
  bool latency = true;  // false: through the origin
  Eigen::VectorXd coefficients;
  double bic = std::numeric_limits<double>::infinity();
};

// Columns: 1 (if there is latency), min(bytes, break)..., bytes.
Eigen::VectorXd Basis(const Candidate& candidate, double bytes) {
  Eigen::VectorXd row(candidate.breaks.size() + 1 + candidate.latency);
  int column = 0;
  if (candidate.latency) row[column++] = 1;
  for (const double at : candidate.breaks) {
    row[column++] = std::min(bytes, at);
  }
  row[column] = bytes;
  return row;
}

double LogChoices(int n, int k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// Returns true if every piece contains at least two sizes to determine its
// slope.
bool IsSupported(const std::set<double>& sizes,
                 const std::vector<double>& breaks) {
  double from = 0;
  for (size_t i = 0; i <= breaks.size(); ++i) {
    const double to =
        i < breaks.size() ? breaks[i] : std::numeric_limits<double>::max();
    if (std::distance(sizes.upper_bound(from), sizes.upper_bound(to)) < 2) {
      return false;
    }
    from = to;
  }
  return true;
}

// Solves one choice; its BIC stays infinite if a coefficient is negative.
void Solve(absl::Span<const TransferSample> samples, size_t num_knots,
           Candidate* candidate) {
  const int rows = static_cast<int>(samples.size());
  const int columns =
      static_cast<int>(candidate->breaks.size()) + 1 + candidate->latency;
  Eigen::MatrixXd matrix(rows, columns);
  for (int i = 0; i < rows; ++i) {
    matrix.row(i) = Basis(*candidate, samples[i].bytes) / samples[i].seconds;
  }
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(rows);
  // Scale the columns, since bytes and seconds differ by orders of magnitude.
  const Eigen::VectorXd scale = matrix.colwise().norm();
  const auto qr =
      (matrix * scale.cwiseInverse().asDiagonal()).colPivHouseholderQr();
  if (qr.rank() < columns) return;
  const Eigen::VectorXd scaled = qr.solve(ones);
  candidate->coefficients = scaled.cwiseQuotient(scale);
  if (scaled.minCoeff() < 0 || !(scaled[columns - 1] > 0)) return;
  const double squares =
      (matrix * candidate->coefficients - ones).squaredNorm() / rows +
      kResolution * kResolution;
  const int num_breaks = static_cast<int>(candidate->breaks.size());
  candidate->bic = rows * std::log(squares) + columns * std::log(rows) +
                   2 * LogChoices(static_cast<int>(num_knots), num_breaks);
}

double SquaresOf(const Candidate& candidate,
                 absl::Span<const TransferSample> samples) {
  double squares = 0;
  for (const TransferSample& sample : samples) {
    const double fitted =
        Basis(candidate, sample.bytes).dot(candidate.coefficients);
    squares += std::pow(fitted / sample.seconds - 1, 2);
  }
  return squares;
}

// Returns the squared error of the best constant time.
double SquaresOfConstant(absl::Span<const TransferSample> samples) {
  double sum = 0;
  double sum_of_squares = 0;
  for (const TransferSample& sample : samples) {
    sum += 1 / sample.seconds;
    sum_of_squares += 1 / (sample.seconds * sample.seconds);
  }
  return static_cast<double>(samples.size()) - sum * sum / sum_of_squares;
}

// Searches all choices that add knots from `next` on to `breaks`.
void Search(absl::Span<const TransferSample> samples,
            const std::set<double>& sizes, absl::Span<const double> knots,
            size_t next, const std::vector<double>& breaks, Candidate* best) {
  for (const bool latency : {true, false}) {
    Candidate candidate{breaks, latency, {}, best->bic};
    candidate.bic = std::numeric_limits<double>::infinity();
    Solve(samples, knots.size(), &candidate);
    if (candidate.bic < best->bic) *best = candidate;
  }
  if (breaks.size() == kMaxBreaks) return;
  for (size_t i = next; i < knots.size(); ++i) {
    std::vector<double> more = breaks;
    more.push_back(knots[i]);
    if (!IsSupported(sizes, more)) continue;
    Search(samples, sizes, knots, i + 1, more, best);
  }
}

absl::Status CheckSamples(absl::Span<const TransferSample> samples,
                          std::set<double>* sizes) {
  Problems problems("transfers");
  for (size_t i = 0; i < samples.size(); ++i) {
    problems.CheckPositive(absl::StrCat("samples[", i, "].bytes"),
                           samples[i].bytes);
    problems.CheckPositive(absl::StrCat("samples[", i, "].seconds"),
                           samples[i].seconds);
    if (samples[i].bytes > 0) sizes->insert(samples[i].bytes);
  }
  if (sizes->size() < 2) {
    problems.Add("samples", absl::StrCat("have ", sizes->size(),
                                         " different sizes, expected two or "
                                         "more to fit a line"));
  }
  return problems.ToStatus();
}

std::vector<TransferPiece> PiecesOf(const Candidate& candidate) {
  const Eigen::VectorXd& c = candidate.coefficients;
  const int first = candidate.latency;
  const int num_breaks = static_cast<int>(candidate.breaks.size());
  std::vector<TransferPiece> pieces;
  for (int piece = 0; piece <= num_breaks; ++piece) {
    double latency = candidate.latency ? c[0] : 0;
    double slope = c[c.size() - 1];
    for (int i = 0; i < num_breaks; ++i) {
      if (i < piece) {
        latency += c[first + i] * candidate.breaks[i];
      } else {
        slope += c[first + i];
      }
    }
    TransferPiece& added = pieces.emplace_back();
    added.set_from_bytes(piece == 0 ? 0 : candidate.breaks[piece - 1]);
    added.set_latency_seconds(latency);
    added.set_bytes_per_second(1 / slope);
  }
  return pieces;
}

}  // namespace

double TransferSeconds(absl::Span<const TransferPiece> pieces, double bytes) {
  const TransferPiece* at = &pieces.front();
  for (const TransferPiece& piece : pieces) {
    if (piece.from_bytes() <= bytes) at = &piece;
  }
  return at->latency_seconds() + bytes / at->bytes_per_second();
}

absl::StatusOr<TransferFit> FitTransfer(
    absl::Span<const TransferSample> samples, absl::Span<const double> knots) {
  std::set<double> sizes;
  RETURN_IF_ERROR(CheckSamples(samples, &sizes));
  const std::set<double> sorted(knots.begin(), knots.end());
  const std::vector<double> inner(sorted.upper_bound(*sizes.begin()),
                                  sorted.lower_bound(*sizes.rbegin()));
  Candidate best;
  Search(samples, sizes, inner, 0, {}, &best);
  if (!std::isfinite(best.bic) ||
      SquaresOfConstant(samples) <= SquaresOf(best, samples)) {
    return absl::InvalidArgumentError(
        "transfers: seconds do not grow with bytes, expected larger messages "
        "to take longer");
  }
  TransferFit fit;
  fit.pieces = PiecesOf(best);
  double sum = 0;
  for (const TransferSample& sample : samples) {
    const double error =
        std::log(sample.seconds / TransferSeconds(fit.pieces, sample.bytes));
    sum += error * error;
  }
  fit.residual = std::sqrt(sum / static_cast<double>(samples.size()));
  return fit;
}

}  // namespace weir::calibrate
