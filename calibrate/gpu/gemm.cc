// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/gemm.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

cudaDataType_t TypeOf(ElementFormat format) {
  switch (format) {
    case ElementFormat::kBf16:
      return CUDA_R_16BF;
    case ElementFormat::kFp16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

cublasLtEpilogue_t EpilogueOf(const GemmSpec& spec) {
  switch (spec.epilogue) {
    case Epilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasGelu:
      return spec.has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                           : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool UsesBias(const GemmSpec& spec) {
  return spec.epilogue == Epilogue::kBias ||
         (spec.epilogue == Epilogue::kBiasGelu && spec.has_bias);
}

bool UsesAux(const GemmSpec& spec) {
  return spec.epilogue == Epilogue::kBiasGelu ||
         spec.epilogue == Epilogue::kGeluGradient;
}

template <typename Value>
absl::Status Set(const MatmulDesc& desc,
                 cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  return CublasStatus(cublasLtMatmulDescSetAttribute(desc.get(), attribute,
                                                     &value, sizeof value),
                      "describing a GEMM");
}

absl::Status SetLayout(const ColumnMajorMatrix& matrix, ElementFormat format,
                       int64_t num_batches, MatrixLayout* layout) {
  RETURN_IF_ERROR(CublasStatus(
      cublasLtMatrixLayoutCreate(layout->receive(), TypeOf(format), matrix.rows,
                                 matrix.columns, matrix.leading),
      "describing a matrix"));
  if (num_batches == 1) return absl::OkStatus();
  const auto count = static_cast<int32_t>(num_batches);
  RETURN_IF_ERROR(CublasStatus(
      cublasLtMatrixLayoutSetAttribute(layout->get(),
                                       CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                       &count, sizeof count),
      "describing a batch"));
  return CublasStatus(
      cublasLtMatrixLayoutSetAttribute(
          layout->get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
          &matrix.batch_stride, sizeof matrix.batch_stride),
      "describing a batch");
}

}  // namespace

absl::Status Gemm::Describe(const GemmSpec& spec) {
  spec_ = spec;
  RETURN_IF_ERROR(CublasStatus(
      cublasLtMatmulDescCreate(desc_.receive(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "describing a GEMM"));
  const ColumnMajorGemm gemm = InColumnMajor(spec.shape);
  const auto transposition = [](const ColumnMajorMatrix& matrix) {
    return static_cast<int32_t>(matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  RETURN_IF_ERROR(
      Set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, transposition(gemm.first)));
  RETURN_IF_ERROR(
      Set(desc_, CUBLASLT_MATMUL_DESC_TRANSB, transposition(gemm.second)));
  RETURN_IF_ERROR(Set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE,
                      static_cast<uint32_t>(EpilogueOf(spec))));
  const auto type = static_cast<int32_t>(TypeOf(spec.operands));
  if (UsesBias(spec)) {
    RETURN_IF_ERROR(Set(desc_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
  }
  if (UsesAux(spec)) {
    RETURN_IF_ERROR(
        Set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec.stride_aux));
    RETURN_IF_ERROR(
        Set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type));
  }
  if (spec.num_multiprocessors > 0) {
    RETURN_IF_ERROR(Set(desc_, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                        static_cast<int32_t>(spec.num_multiprocessors)));
  }
  const int64_t batches = spec.shape.num_batches;
  RETURN_IF_ERROR(SetLayout(gemm.first, spec.operands, batches, &first_));
  RETURN_IF_ERROR(SetLayout(gemm.second, spec.operands, batches, &second_));
  return SetLayout(gemm.result, spec.result, batches, &result_);
}

absl::Status Gemm::SetPointers(const void* bias, const void* aux) const {
  if (UsesBias(spec_)) {
    RETURN_IF_ERROR(Set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  }
  if (UsesAux(spec_)) {
    RETURN_IF_ERROR(Set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux));
  }
  return absl::OkStatus();
}

absl::Status Gemm::RunAlgorithm(const GemmOperands& operands,
                                const cublasLtMatmulAlgo_t& algorithm,
                                const Workspace& workspace,
                                cudaStream_t stream) const {
  RETURN_IF_ERROR(SetPointers(operands.bias, operands.aux));
  const float alpha = 1, beta = spec_.shape.accumulate ? 1 : 0;
  // The library is column-major, so its a is our b.
  return CublasStatus(
      cublasLtMatmul(handle_, desc_.get(), &alpha, operands.b, first_.get(),
                     operands.a, second_.get(), &beta, operands.d,
                     result_.get(), operands.d, result_.get(), &algorithm,
                     workspace.data, workspace.num_bytes, stream),
      "multiplying matrices");
}

absl::Status Gemm::Run(const GemmOperands& operands, const Workspace& workspace,
                       cudaStream_t stream) const {
  return RunAlgorithm(operands, chosen_, workspace, stream);
}

}  // namespace weir::calibrate
