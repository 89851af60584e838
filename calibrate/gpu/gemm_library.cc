// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/gemm.h"
#include "calibrate/gpu/graph.h"

namespace weir::calibrate {
namespace {

// The heuristics return duplicates and algorithms that do not run, so twice as
// many as needed are requested.
constexpr int kAskedPerCandidate = 2;
constexpr int kSamples = 5;
constexpr double kSampleSeconds = 5e-4;

template <typename Value>
Value ConfigOf(const cublasLtMatmulAlgo_t& algorithm,
               cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value,
                                       sizeof value, &written);
  return value;
}

std::string Words(const cublasLtMatmulHeuristicResult_t& result) {
  const cublasLtMatmulAlgo_t& algorithm = result.algo;
  return absl::StrFormat(
      "cuBLASLt %d tile %u stages %u split %d cluster %u workspace %u",
      ConfigOf<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
      ConfigOf<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      ConfigOf<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      ConfigOf<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      ConfigOf<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
      result.workspaceSize);
}

std::string Words(const GemmSpec& spec) {
  const GemmShape& shape = spec.shape;
  return absl::StrCat("a GEMM of ", Name(spec.operands), ", m = ", shape.m,
                      ", n = ", shape.n, ", k = ", shape.k,
                      shape.num_batches > 1
                          ? absl::StrCat(", ", shape.num_batches, " times")
                          : "");
}

absl::StatusOr<MatmulPreference> Preference(const GemmSpec& spec,
                                            int64_t workspace_bytes) {
  MatmulPreference preference;
  RETURN_IF_ERROR(
      CublasStatus(cublasLtMatmulPreferenceCreate(preference.receive()),
                   "setting the preferences of a GEMM"));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                       auto value) {
    return CublasStatus(cublasLtMatmulPreferenceSetAttribute(
                            preference.get(), attribute, &value, sizeof value),
                        "setting the preferences of a GEMM");
  };
  RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                      static_cast<uint64_t>(workspace_bytes)));
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    RETURN_IF_ERROR(set(attribute, static_cast<uint32_t>(spec.alignment)));
  }
  return preference;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GemmLibrary>> GemmLibrary::Create(
    int num_candidates, double timeout_seconds) {
  std::unique_ptr<GemmLibrary> library(new GemmLibrary);
  library->num_candidates_ = std::max(num_candidates, 1);
  library->timeout_seconds_ = timeout_seconds;
  RETURN_IF_ERROR(CublasStatus(cublasLtCreate(library->handle_.receive()),
                               "starting cuBLASLt"));
  return library;
}

absl::StatusOr<const Gemm*> GemmLibrary::Plan(
    const GemmSpec& spec, absl::Span<const GemmOperands> tune_on,
    const Workspace& workspace, cudaStream_t stream) {
  auto planned =
      std::find_if(planned_.begin(), planned_.end(),
                   [&](const Planned& known) { return known.spec == spec; });
  if (planned != planned_.end() && (planned->tuned || tune_on.empty())) {
    return planned->gemm.get();
  }
  if (planned == planned_.end()) {
    auto gemm = std::make_unique<Gemm>();
    gemm->handle_ = handle_.get();
    RETURN_IF_ERROR(gemm->Describe(spec));
    RETURN_IF_ERROR(Choose(gemm.get(), tune_on, workspace, stream));
    planned_.push_back({spec, !tune_on.empty(), std::move(gemm)});
    return planned_.back().gemm.get();
  }
  // It was planned without tuning, and callers may hold the GEMM, so its
  // algorithm is changed in place.
  RETURN_IF_ERROR(Choose(planned->gemm.get(), tune_on, workspace, stream));
  planned->tuned = true;
  return planned->gemm.get();
}

absl::Status GemmLibrary::Choose(Gemm* gemm,
                                 absl::Span<const GemmOperands> tune_on,
                                 const Workspace& workspace,
                                 cudaStream_t stream) const {
  const std::string what = Words(gemm->spec_);
  ASSIGN_OR_RETURN(const MatmulPreference preference,
                   Preference(gemm->spec_, workspace.num_bytes));
  std::vector<cublasLtMatmulHeuristicResult_t> offered(
      static_cast<size_t>(kAskedPerCandidate) * num_candidates_);
  int num_offered = 0;
  // The heuristics infer the alignment of bias and aux from these pointers;
  // with a better alignment than the real one they would offer algorithms that
  // do not run.
  const void* aligned =
      static_cast<const char*>(workspace.data) + gemm->spec_.alignment;
  RETURN_IF_ERROR(gemm->SetPointers(aligned, aligned));
  cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), gemm->desc_.get(), gemm->first_.get(), gemm->second_.get(),
      gemm->result_.get(), gemm->result_.get(), preference.get(),
      static_cast<int>(offered.size()), offered.data(), &num_offered);
  // Some versions return "invalid" for unsupported operations.
  if (asked == CUBLAS_STATUS_INVALID_VALUE) asked = CUBLAS_STATUS_NOT_SUPPORTED;
  RETURN_IF_ERROR(
      CublasStatus(asked, absl::StrCat("querying cuBLASLt for ", what)));
  double best = std::numeric_limits<double>::infinity();
  int num_timed = 0;
  for (int i = 0; i < num_offered && num_timed < num_candidates_; ++i) {
    if (offered[i].state != CUBLAS_STATUS_SUCCESS) continue;
    absl::StatusOr<double> seconds = 0.0;
    if (tune_on.empty()) {
      cublasLtMatmulHeuristicResult_t checked;
      if (cublasLtMatmulAlgoCheck(
              handle_.get(), gemm->desc_.get(), gemm->first_.get(),
              gemm->second_.get(), gemm->result_.get(), gemm->result_.get(),
              &offered[i].algo, &checked) != CUBLAS_STATUS_SUCCESS) {
        continue;
      }
    } else {
      seconds = Time(*gemm, offered[i].algo, tune_on, workspace, stream);
      if (absl::IsDeadlineExceeded(seconds.status())) return seconds.status();
      if (!seconds.ok()) continue;  // offered, but does not run
    }
    ++num_timed;
    if (*seconds < best) {
      best = *seconds;
      gemm->chosen_ = offered[i].algo;
      gemm->algorithm_ = Words(offered[i]);
    }
    if (tune_on.empty()) break;
  }
  if (num_timed > 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("cuBLASLt offers no algorithm that runs for ", what));
}

absl::StatusOr<double> GemmLibrary::Time(
    const Gemm& gemm, const cublasLtMatmulAlgo_t& algorithm,
    absl::Span<const GemmOperands> operands, const Workspace& workspace,
    cudaStream_t stream) const {
  const std::string what = Words(gemm.spec_);
  ASSIGN_OR_RETURN(Stopwatch watch, Stopwatch::Create());
  const auto run = [&](int first, int count) -> absl::Status {
    for (int i = first; i < first + count; ++i) {
      RETURN_IF_ERROR(gemm.RunAlgorithm(operands[i % operands.size()],
                                        algorithm, workspace, stream));
    }
    return absl::OkStatus();
  };
  // The first run loads the kernel.
  RETURN_IF_ERROR(run(0, 1));
  RETURN_IF_ERROR(watch.Start(stream));
  RETURN_IF_ERROR(run(1, 2));
  RETURN_IF_ERROR(watch.Stop(stream));
  ASSIGN_OR_RETURN(const double two, watch.Seconds(timeout_seconds_, what));
  const int count = static_cast<int>(
      std::clamp(kSampleSeconds / std::max(two / 2, 1e-6), 3.0, 100.0));
  ASSIGN_OR_RETURN(const GraphExec graph,
                   CaptureGraph(stream, [&] { return run(0, count); }));
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    RETURN_IF_ERROR(watch.Start(stream));
    RETURN_IF_ERROR(
        CudaStatus(cudaGraphLaunch(graph.get(), stream), "launching a graph"));
    RETURN_IF_ERROR(watch.Stop(stream));
    ASSIGN_OR_RETURN(const double seconds,
                     watch.Seconds(timeout_seconds_, what));
    samples.push_back(seconds / count);
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2,
                   samples.end());
  return samples[kSamples / 2];
}

}  // namespace weir::calibrate
