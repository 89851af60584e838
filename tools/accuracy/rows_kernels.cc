// SPDX-License-Identifier: Apache-2.0
// Compares attention, experts, collectives inside a node and the all-to-alls of
// experts in the published tables with fits that have not seen a row's group:
//
//   accuracy_rows_kernels DATA FOLDER
//
// Writes KIND_DEVICE_left_out.csv for each kind and device, and KIND_DEVICE.csv
// with the predictions of the preset where a profile has all figures of the
// kind. Groups: sequence lengths of attention, model shapes of experts and
// all-to-alls, collectives with their number of GPUs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error_statistics.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "tools/accuracy/kernel_tables.h"
#include "tools/accuracy/write_rows.h"

namespace weir {
namespace {

struct Device {
  const char* name;     // in file names
  const char* preset;
  const char* system;   // in the tables
  const char* attention_kernel;
  calibrate::NcclGeneration generation;
  const char* nccl;  // version of the collectives; empty: another program's
};

constexpr Device kDevices[] = {
    {"a100", "a100-sxm-80gb", "a100_sxm", "flash_attention",
     calibrate::NcclGeneration::kAmpere, ""},
    {"h100", "h100-sxm", "h100_sxm", "fa3",
     calibrate::NcclGeneration::kHopper, ""},
    {"h200", "h200-sxm", "h200_sxm", "fa3",
     calibrate::NcclGeneration::kHopper, ""},
    {"b200", "b200-sxm", "b200_sxm", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"gb200", "gb200", "gb200", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"b300", "b300-sxm", "b300_sxm", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
    {"gb300", "gb300", "gb300", "trtllm_mha",
     calibrate::NcclGeneration::kBlackwell, "2.29.2"},
};

constexpr double kRowsPerTile = 128;
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
absl::StatusOr<std::vector<double>> LeftOut(
    const std::vector<double>& start, const std::vector<int>& groups,
    const std::vector<double>& measured, const Predict& predict) {
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

// Attention with efficiency, ramp and the relative efficiency of each head
// size, as in calibrate/pricing/kernel_seconds.cc. With count_tiles, tiles of
// 128 queries also take as long as full waves of all multiprocessors do, and
// part of a last wave counts as a whole one; weir does not predict so.
absl::Status WriteAttention(const std::string& path,
                            const DeviceProfile& profile,
                            const std::vector<AttentionRow>& rows,
                            bool count_tiles = false) {
  if (rows.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(profile, "bf16"));
  const double launch = profile.kernel_seconds().value();
  std::map<double, size_t> sizes;  // parameter of each head size
  std::vector<int> lengths;
  std::vector<MeasuredSeconds> names;
  for (const AttentionRow& row : rows) {
    sizes.emplace(row.head_size, 0);
    lengths.push_back(static_cast<int>(row.sequence_length));
    names.push_back(
        {row.line,
         absl::StrFormat("%.0f x %.0f tokens, %.0f heads of %.0f", row.batch,
                         row.sequence_length, row.heads, row.head_size),
         row.seconds});
  }
  size_t next = 1;
  for (auto& [size, parameter] : sizes) parameter = next++;
  std::vector<double> start(next, 0.5);
  start[0] = 400;
  start.push_back(0.5);
  const double processors = profile.num_multiprocessors().value();
  const auto predict = [&](const std::vector<double>& at, int i) {
    const AttentionRow& row = rows[i];
    const double width = row.head_size + row.value_size;
    const double queries = row.batch * row.heads * row.sequence_length;
    const double flops =
        2 * queries * width * (row.sequence_length / 2 + at[0]);
    double waves = 1;
    if (count_tiles) {
      const double x = row.batch * row.heads *
                       std::ceil(row.sequence_length / kRowsPerTile) /
                       processors;
      waves = x <= 1 ? 1 / x : 1 + at[next] * (std::ceil(x) / x - 1);
    }
    return launch + waves * flops / (peak * at[sizes.at(row.head_size)]);
  };
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   LeftOut(start, calibrate::GroupsOf(lengths),
                           SecondsOf(names), predict));
  return WriteRows(path + "_left_out.csv", names, left_out);
}

// Experts of one GPU: two grouped GEMMs at the rates of the profile's GEMMs
// times a factor, activation and permutation at the memory bandwidth times
// another, and a fixed time.
absl::Status WriteExperts(const std::string& path, const DeviceProfile& profile,
                          const std::vector<ExpertRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double peak, calibrate::PeakFlops(profile, "bf16"));
  const double bandwidth = profile.memory_bytes_per_second().value();
  const calibrate::GemmMachine machine = {
      peak, profile.num_multiprocessors().value(), bandwidth};
  const calibrate::GemmTerms<double> terms =
      calibrate::TermsOf(profile.gemm(), calibrate::Clock::kBurst);
  std::vector<MeasuredSeconds> names;
  std::vector<std::tuple<double, double, double, double>> shapes;
  std::vector<double> gemms, bytes, routed;
  for (const ExpertRow& row : rows) {
    const double matrices = row.gated ? 2 : 1;
    const double width = row.width / row.tensor_parallel;
    const double experts = row.experts / row.expert_parallel;
    const double pairs = row.tokens * row.topk / row.expert_parallel;
    const auto grouped = [&](double n, double k) {
      calibrate::GemmSize size =
          calibrate::MakeGemmSize(pairs / experts, n, k);
      size.batch = experts;
      size.bytes *= experts;
      return calibrate::FastestGemm(machine, terms, size).seconds;
    };
    gemms.push_back(grouped(matrices * width, row.hidden) +
                    grouped(row.hidden, width));
    bytes.push_back(2 * pairs * ((matrices + 1) * width + 3 * row.hidden));
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
    return at[0] + gemms[i] * at[1] + bytes[i] / (bandwidth * at[2]) +
           routed[i] / (bandwidth * at[3]);
  };
  ASSIGN_OR_RETURN(
      const std::vector<double> left_out,
      LeftOut({4e-5, 1.1, 0.5, 0.5}, calibrate::GroupsOf(shapes), SecondsOf(names),
              predict));
  return WriteRows(path + "_left_out.csv", names, left_out);
}

absl::Status WriteCollectives(
    const std::string& path, const Device& device, const DeviceProfile& profile,
    const std::vector<calibrate::CollectiveSample>& samples) {
  if (samples.empty()) return absl::OkStatus();
  std::vector<MeasuredSeconds> names;
  for (const calibrate::CollectiveSample& sample : samples) {
    names.push_back({static_cast<int>(names.size()) + 1,
                     absl::StrFormat("%s of %.0f bytes on %d",
                                     Name(sample.kind), sample.bytes,
                                     sample.group.num_ranks),
                     sample.seconds});
  }
  RETURN_IF_ERROR(
      WriteRows(path + ".csv", names,
                calibrate::PredictCollectives(profile.collectives(), samples)));
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   calibrate::CrossValidateCollectives(
                       calibrate::CollectiveStart(device.generation), samples));
  return WriteRows(path + "_left_out.csv", names, left_out);
}

// All-to-alls of experts, each direction: a fixed time, a time per peer, per
// token and per copy of a token, and the bytes of all copies over a rate. Every
// token is copied once to each GPU that has one of its experts.
absl::Status WriteExchanges(const std::string& path,
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
           row.tokens * (at[2] + reached * (at[3] + row.hidden *
                                                        row.element_bytes /
                                                        at[4]));
  };
  std::vector<int> groups = calibrate::GroupsOf(shapes);
  if (*std::max_element(groups.begin(), groups.end()) == 0) {
    // A single model shape: by number of GPUs.
    std::vector<double> gpus;
    for (const ExchangeRow& row : rows) gpus.push_back(row.gpus);
    groups = calibrate::GroupsOf(gpus);
  }
  ASSIGN_OR_RETURN(const std::vector<double> left_out,
                   LeftOut({2e-5, 1e-7, 1e-9, 1e-9, 3e11}, groups,
                           SecondsOf(names), predict));
  return WriteRows(path + "_left_out.csv", names, left_out);
}

absl::Status WriteDevice(const Device& device, const std::string& tables,
                         const std::string& folder) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(device.preset));
  const auto path = [&](const char* kind) {
    return absl::StrCat(folder, "/", kind, "_", device.name);
  };
  ASSIGN_OR_RETURN(
      const std::vector<AttentionRow> attention,
      ReadAttentionRows(tables, device.system, device.attention_kernel));
  RETURN_IF_ERROR(WriteAttention(path("attention"), profile, attention));
  RETURN_IF_ERROR(
      WriteAttention(path("attention_tiles"), profile, attention, true));
  const double least_tiles = 4 * profile.num_multiprocessors().value();
  std::vector<AttentionRow> large;
  for (const AttentionRow& row : attention) {
    if (row.batch * row.heads * row.sequence_length / kRowsPerTile >=
            least_tiles &&
        row.heads >= 4 * row.key_heads) {
      large.push_back(row);
    }
  }
  RETURN_IF_ERROR(WriteAttention(path("attention_large"), profile, large));
  ASSIGN_OR_RETURN(std::vector<AttentionRow> mla,
                   ReadLatentRows(tables, device.system));
  RETURN_IF_ERROR(WriteAttention(path("mla"), profile, mla));
  RETURN_IF_ERROR(WriteAttention(path("mla_tiles"), profile, mla, true));
  mla.erase(std::remove_if(mla.begin(), mla.end(),
                           [&](const AttentionRow& row) {
                             return row.batch * row.heads *
                                        row.sequence_length / kRowsPerTile <
                                    least_tiles;
                           }),
            mla.end());
  RETURN_IF_ERROR(WriteAttention(path("mla_large"), profile, mla));
  ASSIGN_OR_RETURN(const std::vector<ExpertRow> experts,
                   ReadExpertRows({tables, absl::StrCat(folder, "/tables")},
                                  device.system));
  RETURN_IF_ERROR(WriteExperts(path("experts"), profile, experts));
  std::vector<ExpertRow> several;
  for (const ExpertRow& row : experts) {
    if (row.topk >= 4) several.push_back(row);
  }
  RETURN_IF_ERROR(WriteExperts(path("experts_top4"), profile, several));
  if (*device.nccl != 0) {
    const CollectiveModel nccl = calibrate::NcclDefaults(device.generation);
    calibrate::CollectiveGroup node;
    node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
    node.nvls = nccl.has_nvls_efficiency();
    ASSIGN_OR_RETURN(
        const std::vector<calibrate::CollectiveSample> samples,
        ReadNcclRows(tables, device.system, device.nccl, node));
    RETURN_IF_ERROR(
        WriteCollectives(path("nccl_node"), device, profile, samples));
  }
  for (const bool dispatch : {true, false}) {
    ASSIGN_OR_RETURN(const std::vector<ExchangeRow> rows,
                     ReadDeepEpRows(tables, device.system, dispatch));
    RETURN_IF_ERROR(
        WriteExchanges(path(dispatch ? "dispatch" : "combine"), rows));
  }
  return absl::OkStatus();
}

absl::Status WriteRack(const std::string& tables, const std::string& folder) {
  for (const bool dispatch : {true, false}) {
    ASSIGN_OR_RETURN(const std::vector<ExchangeRow> rows,
                     ReadRackRows(tables, dispatch));
    RETURN_IF_ERROR(WriteExchanges(
        absl::StrCat(folder, "/", dispatch ? "dispatch" : "combine",
                     "_nvl72_gb200"),
        rows));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DATA FOLDER\n", argv[0]);
    return 2;
  }
  const std::string tables = absl::StrCat(argv[1], "/aiconfigurator2");
  absl::Status status = absl::OkStatus();
  for (const Device& device : kDevices) {
    if (status.ok()) status = WriteDevice(device, tables, argv[2]);
  }
  if (status.ok()) status = WriteRack(tables, argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
