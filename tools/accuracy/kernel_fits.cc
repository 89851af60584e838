// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/kernel_fits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/pricing/expert_exchange.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/linear_recurrence.h"
#include "models/shape.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

constexpr int kNumFolds = 10;

std::vector<double> SecondsOf(const std::vector<MeasuredSeconds>& rows) {
  std::vector<double> seconds;
  for (const MeasuredSeconds& row : rows) seconds.push_back(row.seconds);
  return seconds;
}

// Fits positive parameters to rows by coordinate descent on the mean absolute
// logarithm of predicted over measured.
template <typename Predict>
std::vector<double> FitPositive(std::vector<double> values,
                                absl::Span<const int> rows,
                                const std::vector<double>& measured,
                                const Predict& predict) {
  const auto cost = [&](const std::vector<double>& at) {
    double sum = 0;
    for (const int row : rows) {
      sum += std::abs(std::log(predict(at, row) / measured[row]));
    }
    return sum;
  };
  double least = cost(values);
  for (double step = 1; step > 1e-3; step /= 2) {
    for (bool better = true; better;) {
      better = false;
      for (double& value : values) {
        for (const double factor : {std::exp(step), std::exp(-step)}) {
          const double before = value;
          value *= factor;
          const double now = cost(values);
          if (now < least * (1 - 1e-9)) {
            least = now;
            better = true;
          } else {
            value = before;
          }
        }
      }
    }
  }
  return values;
}

template <typename Predict>
absl::StatusOr<std::vector<double>> LeftOut(const std::vector<double>& start,
                                            const std::vector<int>& groups,
                                            const std::vector<double>& measured,
                                            const Predict& predict) {
  std::vector<int> folds = groups;
  for (int& fold : folds) fold %= kNumFolds;
  return calibrate::CrossValidate(
      folds,
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        const std::vector<double> values =
            FitPositive(start, fitted, measured, predict);
        std::vector<double> seconds;
        for (const int row : left_out) seconds.push_back(predict(values, row));
        return seconds;
      });
}

// Writes the rows predicted without their group, and the values of a fit to all
// rows. Returns these predictions.
template <typename Predict>
absl::StatusOr<std::vector<double>> FitAndWrite(
    const std::string& path, const std::vector<std::string>& parameters,
    const std::vector<double>& start, const std::vector<int>& groups,
    const std::vector<MeasuredSeconds>& names, const Predict& predict) {
  const std::vector<double> measured = SecondsOf(names);
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   LeftOut(start, groups, measured, predict));
  RETURN_IF_ERROR(WriteRows(path + "_left_out.csv", names, left_out));
  std::vector<int> all(names.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const std::vector<double> values = FitPositive(start, all, measured, predict);
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&text, parameters[i], " ", values[i], "\n");
  }
  RETURN_IF_ERROR(WriteFile(path + "_fit.txt", text));
  return left_out;
}

template <typename Predict>
absl::Status WriteFit(const std::string& path,
                      const std::vector<std::string>& parameters,
                      const std::vector<double>& start,
                      const std::vector<int>& groups,
                      const std::vector<MeasuredSeconds>& names,
                      const Predict& predict) {
  return FitAndWrite(path, parameters, start, groups, names, predict).status();
}

// Returns the forward of causal attention (models/attention.cc).
models::Kernel KernelOf(const AttentionRow& row, bool latent) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.variant = latent ? models::Kernel::Variant::kLatent
                          : models::Kernel::Variant::kPlain;
  kernel.batch = row.batch * row.heads;
  kernel.m = kernel.n = row.sequence_length;
  kernel.k = row.head_size;
  kernel.num_gemms = 2;
  kernel.flops =
      2 * kernel.batch * kernel.m * kernel.n * (row.head_size + row.value_size);
  kernel.performed_flops = kernel.flops / 2;
  return kernel;
}

}  // namespace

double NumTiles(const AttentionRow& row) {
  constexpr double kRowsPerTile = 128;
  return row.batch * row.heads * row.sequence_length / kRowsPerTile;
}

absl::Status WriteAttention(const std::string& path,
                            const std::string& waves_path,
                            const DeviceProfile& profile,
                            const std::vector<AttentionRow>& rows,
                            AttentionForm form) {
  if (rows.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(profile, "bf16"));
  const bool latent = form == AttentionForm::kLatent;
  DeviceProfile fitted = profile;
  fitted.clear_attention_head_sizes();
  fitted.clear_attention_libraries();
  fitted.mutable_kernel_seconds()->set_value(0);
  Figure& efficiency =
      latent ? *fitted.mutable_latent_attention()->mutable_efficiency()
             : *fitted.mutable_attention_efficiency();
  Figure& ramp = latent
                     ? *fitted.mutable_latent_attention()->mutable_ramp_keys()
                     : *fitted.mutable_attention_ramp_keys();
  Figure& tail = latent ? *fitted.mutable_latent_attention()->mutable_tail()
                        : *fitted.mutable_attention_tail();
  std::map<double, size_t> sizes;  // parameter of each head size
  std::vector<int> lengths;
  std::vector<MeasuredSeconds> names;
  std::vector<models::Kernel> kernels;
  for (const AttentionRow& row : rows) {
    sizes.emplace(row.head_size, 0);
    lengths.push_back(static_cast<int>(row.sequence_length));
    kernels.push_back(KernelOf(row, latent));
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f x %.0f tokens, %.0f heads of %.0f", row.batch,
                         row.sequence_length, row.heads, row.head_size),
         row.seconds});
  }
  std::vector<std::string> parameters = {"fixed_seconds", "ramp_keys", "tail"};
  // Starts at the profile's figures; a tail of 0 remains 0.
  std::vector<double> start = {profile.kernel_seconds().value(), ramp.value(),
                               form == AttentionForm::kWithoutTail ? 0
                               : tail.value() > 0 ? tail.value()
                                                  : 0.5};
  for (auto& [size, parameter] : sizes) {
    parameter = parameters.size();
    parameters.push_back(absl::StrFormat("efficiency of %.0f", size));
    start.push_back(
        efficiency.value() *
        (latent ? 1 : calibrate::HeadSizeEfficiency(profile, size)));
  }
  const auto predict = [&](const std::vector<double>& at, int i) {
    ramp.set_value(at[1]);
    tail.set_value(at[2]);
    efficiency.set_value(at[sizes.at(rows[i].head_size)]);
    return at[0] + calibrate::KernelSeconds(fitted, peak, kernels[i]);
  };
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   FitAndWrite(path, parameters, start,
                               calibrate::GroupsOf(lengths), names, predict));
  if (waves_path.empty()) return absl::OkStatus();
  std::vector<MeasuredSeconds> waves;
  std::vector<double> seconds;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double per_multiprocessor =
        NumTiles(rows[i]) / profile.num_multiprocessors().value();
    if (per_multiprocessor < 1 || per_multiprocessor >= kManyTiles) continue;
    waves.push_back(names[i]);
    seconds.push_back(left_out[i]);
  }
  return WriteRows(waves_path + "_left_out.csv", waves, seconds);
}

absl::Status WriteExperts(const std::string& path, const DeviceProfile& profile,
                          const std::vector<ExpertRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(profile, "bf16"));
  const double bandwidth = profile.memory_bytes_per_second().value();
  const double streams = bandwidth * (profile.has_elementwise_efficiency()
                                          ? profile.elementwise_efficiency()
                                          : profile.memory_efficiency())
                                         .value();
  const calibrate::GemmMachine machine = {
      peak, profile.num_multiprocessors().value(), bandwidth};
  const calibrate::GemmTerms<double> terms =
      calibrate::TermsOf(profile.gemm(), calibrate::Clock::kBurst);
  std::vector<MeasuredSeconds> names;
  std::vector<std::tuple<double, double, double, double>> shapes;
  std::vector<double> gemms, memory, permuted, routed;
  for (const ExpertRow& row : rows) {
    const double matrices = row.gated ? 2 : 1;
    const double width = row.width / row.tensor_parallel;
    const double experts = row.experts / row.expert_parallel;
    const double pairs = row.tokens * row.topk / row.expert_parallel;
    const auto grouped = [&](double n, double k) {
      calibrate::GemmSize size =
          calibrate::MakeGemmSize(pairs / experts, n, k, 2);
      size.batch = experts;
      size.bytes *= experts;
      return calibrate::FastestGemm(machine, terms, size).seconds;
    };
    gemms.push_back(grouped(matrices * width, row.hidden) +
                    grouped(row.hidden, width));
    memory.push_back(2 * pairs * (matrices + 1) * width / streams);
    // Reads each token, writes its copies; reads these, writes their sum.
    permuted.push_back(2 * row.hidden * 2 *
                       (pairs + row.tokens / row.expert_parallel));
    // Every GPU selects experts for, and writes the sums of, all tokens.
    routed.push_back(row.tokens *
                     (2 * row.hidden + 4 * row.experts + 16 * row.topk));
    shapes.emplace_back(row.hidden, row.width, row.topk, row.experts);
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f tokens, top %.0f of %.0f experts, %.0f x %.0f, "
                         "tp %.0f, ep %.0f",
                         row.tokens, row.topk, row.experts, row.hidden,
                         row.width, row.tensor_parallel, row.expert_parallel),
         row.seconds});
  }
  const auto predict = [&](const std::vector<double>& at, int i) {
    return at[0] + gemms[i] * at[1] + memory[i] +
           routed[i] / (bandwidth * at[2]) + permuted[i] / (bandwidth * at[3]);
  };
  return WriteFit(
      path, {"fixed_seconds", "grouped_gemm_time", "routing", "permutation"},
      {4e-5, 1, 0.5, 0.3}, calibrate::GroupsOf(shapes), names, predict);
}

absl::Status WriteRecurrences(const std::string& path,
                              const DeviceProfile& profile,
                              const std::vector<RecurrenceRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(profile, "bf16"));
  std::vector<MeasuredSeconds> names;
  std::vector<std::tuple<double, double, double>> shapes;
  std::vector<double> flops, memory;
  for (const RecurrenceRow& row : rows) {
    models::Shape shape;
    shape.tokens = row.batch * row.sequence_length;
    shape.sequence_length = row.sequence_length;
    models::LayerWork work;
    if (row.mamba) {
      models::AddDecayRecurrence(shape,
                                 {.heads = row.value_heads,
                                  .groups = row.key_heads,
                                  .key_size = row.key_size,
                                  .value_size = row.value_size,
                                  .chunk = row.chunk},
                                 &work);
    } else {
      models::AddDeltaRecurrence(shape,
                                 {.heads = row.value_heads,
                                  .key_size = row.key_size,
                                  .value_size = row.value_size},
                                 &work);
    }
    flops.push_back(0);
    memory.push_back(0);
    for (const models::Kernel& kernel : work.forward) {
      if (kernel.kind == models::Kernel::Kind::kGemm) {
        flops.back() += kernel.flops;
      } else {
        memory.back() += calibrate::KernelSeconds(profile, peak, kernel);
      }
    }
    shapes.emplace_back(row.key_heads, row.value_heads, row.value_size);
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f x %.0f tokens, %.0f heads of %.0f", row.batch,
                         row.sequence_length, row.value_heads, row.value_size),
         row.seconds});
  }
  const auto predict = [&](const std::vector<double>& at, int i) {
    return at[0] + memory[i] + flops[i] / (peak * at[1]);
  };
  return WriteFit(path, {"fixed_seconds", "efficiency"}, {2e-5, 0.05},
                  calibrate::GroupsOf(shapes), names, predict);
}

absl::Status WriteConvolutions(const std::string& path,
                               const DeviceProfile& profile,
                               const std::vector<RecurrenceRow>& rows) {
  constexpr double kCachedBytes = 5e8;  // twice the largest cache
  const double bandwidth = profile.memory_bytes_per_second().value();
  std::vector<MeasuredSeconds> names;
  std::vector<double> widths, bytes;
  for (const RecurrenceRow& row : rows) {
    // Some rows of the delta rule are faster than memory: their channels are
    // not what the table says.
    if (!row.mamba) continue;
    // Input, B and C.
    const double width =
        row.value_heads * row.value_size + 2 * row.key_heads * row.key_size;
    const double moved = 4 * row.batch * row.sequence_length * width;
    if (moved < kCachedBytes) continue;
    bytes.push_back(moved);
    widths.push_back(width);
    names.push_back({row.line,
                     absl::StrFormat("%.0f x %.0f tokens, %.0f channels",
                                     row.batch, row.sequence_length, width),
                     row.seconds});
  }
  if (names.empty()) return absl::OkStatus();
  const auto predict = [&](const std::vector<double>& at, int i) {
    return at[0] + bytes[i] / (bandwidth * at[1]);
  };
  return WriteFit(path, {"fixed_seconds", "efficiency"}, {5e-6, 0.5},
                  calibrate::GroupsOf(widths), names, predict);
}

absl::Status WriteDeepEp(const std::string& path, const DeviceProfile& profile,
                         const std::vector<ExchangeRow>& rows, bool dispatch) {
  if (rows.empty()) return absl::OkStatus();
  std::vector<MeasuredSeconds> names;
  std::vector<std::tuple<double, double, double>> shapes;
  std::vector<std::pair<double, double>> sizes;
  const bool between_nodes = rows.front().nodes > 1;
  for (const ExchangeRow& row : rows) {
    shapes.emplace_back(row.hidden, row.topk, row.experts);
    sizes.emplace_back(row.nodes, row.tokens);
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f tokens of %.0f, top %.0f of %.0f on %.0f GPUs, "
                         "%.0f multiprocessors",
                         row.tokens, row.hidden, row.topk, row.experts,
                         row.gpus, row.multiprocessors),
         row.seconds});
  }
  CollectiveModel model = profile.collectives();
  TokenExchange& figures =
      dispatch ? *model.mutable_dispatch() : *model.mutable_combine();
  std::vector<std::pair<const char*, Figure*>> fitted;
  if (between_nodes) {
    fitted = {{"forward_bytes_per_second",
               figures.mutable_forward_bytes_per_second()},
              {"net_base_seconds", figures.mutable_net_base_seconds()}};
  } else {
    fitted = {{"base_seconds", figures.mutable_base_seconds()},
              {"token_seconds", figures.mutable_token_seconds()},
              {"copy_seconds", figures.mutable_copy_seconds()},
              {"multiprocessor_bytes_per_second",
               figures.mutable_multiprocessor_bytes_per_second()}};
  }
  std::vector<std::string> parameters;
  std::vector<double> start;
  for (const auto& [name, figure] : fitted) {
    parameters.emplace_back(name);
    start.push_back(figure->value() > 0 ? figure->value() : 1e-8);
  }
  const auto predict = [&](const std::vector<double>& at, int i) {
    for (size_t p = 0; p < fitted.size(); ++p)
      fitted[p].second->set_value(at[p]);
    const ExchangeRow& row = rows[i];
    calibrate::CollectiveGroup group;
    group.num_ranks = static_cast<int>(row.gpus);
    group.ranks_per_node = static_cast<int>(row.gpus / row.nodes);
    group.intra_bytes_per_second = model.link_bytes_per_second().value();
    group.inter_bytes_per_second = 50e9;  // ConnectX-7
    return calibrate::ExchangeCost(
               model,
               {.tokens = row.tokens,
                .token_bytes = row.hidden * row.element_bytes,
                .experts = row.experts,
                .experts_per_token = row.topk,
                .multiprocessors = static_cast<int>(row.multiprocessors),
                .combine = !dispatch},
               group)
        .Seconds();
  };
  return WriteFit(
      path, parameters, start,
      between_nodes ? calibrate::GroupsOf(sizes) : calibrate::GroupsOf(shapes),
      names, predict);
}

absl::Status WriteRackExchanges(const std::string& path,
                                const std::vector<ExchangeRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  std::vector<MeasuredSeconds> names;
  std::vector<std::tuple<double, double, double>> shapes;
  for (const ExchangeRow& row : rows) {
    shapes.emplace_back(row.hidden, row.topk, row.experts);
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f tokens of %.0f, top %.0f of %.0f on %.0f GPUs",
                         row.tokens, row.hidden, row.topk, row.experts,
                         row.gpus),
         row.seconds});
  }
  const auto predict = [&](const std::vector<double>& at, int i) {
    const ExchangeRow& row = rows[i];
    const double peers = row.gpus - 1;
    // GPUs that have one of a token's experts, this one included.
    const double reached =
        row.gpus * (1 - std::pow(1 - 1 / row.gpus, row.topk));
    return at[0] + at[1] * peers +
           row.tokens *
               (at[2] +
                reached * (at[3] + row.hidden * row.element_bytes / at[4]));
  };
  std::vector<int> groups = calibrate::GroupsOf(shapes);
  if (*std::max_element(groups.begin(), groups.end()) == 0) {
    // A single model shape: by number of GPUs.
    std::vector<double> gpus;
    for (const ExchangeRow& row : rows) gpus.push_back(row.gpus);
    groups = calibrate::GroupsOf(gpus);
  }
  return WriteFit(path,
                  {"base_seconds", "peer_seconds", "token_seconds",
                   "copy_seconds", "bytes_per_second"},
                  {2e-5, 1e-7, 1e-9, 1e-9, 3e11}, groups, names, predict);
}

}  // namespace weir
