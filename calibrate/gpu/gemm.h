// SPDX-License-Identifier: Apache-2.0
// GEMMs by cuBLASLt with the fastest of the algorithms offered by its
// heuristics, chosen once per shape. Functions return the errors of errors.h.
#ifndef WEIR_CALIBRATE_GPU_GEMM_H_
#define WEIR_CALIBRATE_GPU_GEMM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/gpu/handles.h"
#include "calibrate/gpu/host/gemm_shape.h"

namespace weir::calibrate {

// Everything that determines the choice of an algorithm.
struct GemmSpec {
  GemmShape shape;
  ElementFormat operands = ElementFormat::kBf16;  // a, b, bias, aux
  ElementFormat result = ElementFormat::kBf16;    // d
  Epilogue epilogue = Epilogue::kNone;
  bool has_bias = false;        // for kBiasGelu; kBias always has one
  int64_t stride_aux = 0;       // elements between rows of aux
  int alignment = 16;           // in bytes, of all pointers
  int num_multiprocessors = 0;  // to use; 0: all

  bool operator==(const GemmSpec&) const = default;
};

struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;  // written by kBiasGelu, read by kGeluGradient
  void* d = nullptr;
};

// Scratch shared by GEMMs on one stream.
struct Workspace {
  void* data = nullptr;
  int64_t num_bytes = 0;
};

// One shape with its algorithm. Not thread-safe.
class Gemm {
 public:
  // Runs on `stream` without allocating; can be captured. Requires: the
  // workspace is at least as large as at planning.
  absl::Status Run(const GemmOperands& operands, const Workspace& workspace,
                   cudaStream_t stream) const;
  // "cuBLASLt 66 tile 20 stages 36 split 1 workspace 0".
  const std::string& algorithm() const { return algorithm_; }

 private:
  friend class GemmLibrary;
  absl::Status Describe(const GemmSpec& spec);
  absl::Status SetPointers(const void* bias, const void* aux) const;
  absl::Status RunAlgorithm(const GemmOperands& operands,
                            const cublasLtMatmulAlgo_t& algorithm,
                            const Workspace& workspace,
                            cudaStream_t stream) const;

  cublasLtHandle_t handle_ = nullptr;
  GemmSpec spec_;
  MatmulDesc desc_;
  MatrixLayout first_, second_, result_;
  cublasLtMatmulAlgo_t chosen_{};
  std::string algorithm_;
};

class GemmLibrary {
 public:
  static absl::StatusOr<std::unique_ptr<GemmLibrary>> Create(
      int num_candidates, double timeout_seconds);

  // Returns the GEMM of this shape, planned at the first call. With operands in
  // `tune_on` the candidates are timed on them in turn (d is overwritten);
  // without, the first candidate of the heuristics is used. Returns
  // Unimplemented if the library offers none. The GEMM lives as long as the
  // library.
  absl::StatusOr<const Gemm*> Plan(const GemmSpec& spec,
                                   absl::Span<const GemmOperands> tune_on,
                                   const Workspace& workspace,
                                   cudaStream_t stream);

 private:
  struct Planned {
    GemmSpec spec;
    bool tuned = false;
    std::unique_ptr<Gemm> gemm;
  };
  GemmLibrary() = default;
  absl::Status Choose(Gemm* gemm, absl::Span<const GemmOperands> tune_on,
                      const Workspace& workspace, cudaStream_t stream) const;
  // Returns the median time of a few graphs.
  absl::StatusOr<double> Time(const Gemm& gemm,
                              const cublasLtMatmulAlgo_t& algorithm,
                              absl::Span<const GemmOperands> operands,
                              const Workspace& workspace,
                              cudaStream_t stream) const;

  int num_candidates_ = 8;
  double timeout_seconds_ = 120;
  LtHandle handle_;
  std::vector<Planned> planned_;  // tens of entries: searched linearly
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_GEMM_H_
