// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as documented: column-major, a bias along the rows of d, and aux
// with its own leading dimension.
#include <cublasLt.h>

#include <cmath>
#include <cstring>

#include "calibrate/gpu/host/host_tensor.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace {

using weir::calibrate::ElementFormat;
using weir::calibrate::Gpu;
using weir::calibrate::GpuMutex;

constexpr int64_t kHandleBytes = 5 << 20;

struct Desc {
  std::map<int, std::vector<uint8_t>> attributes;

  template <typename T>
  T Get(cublasLtMatmulDescAttributes_t attribute) const {
    T value{};
    const auto found = attributes.find(attribute);
    if (found != attributes.end()) {
      std::memcpy(&value, found->second.data(), sizeof value);
    }
    return value;
  }
};

struct Layout {
  ElementFormat format;
  int64_t rows, columns, leading, batches = 1, batch_stride = 0;
};

Desc* Of(cublasLtMatmulDesc_t desc) { return reinterpret_cast<Desc*>(desc); }
Layout* Of(cublasLtMatrixLayout_t layout) {
  return reinterpret_cast<Layout*>(layout);
}

ElementFormat FormatOf(cudaDataType type) {
  return type == CUDA_R_16BF  ? ElementFormat::kBf16
         : type == CUDA_R_16F ? ElementFormat::kFp16
                              : ElementFormat::kFp32;
}

double Gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluGradient(double x) {
  const double h = 1e-5;
  return (Gelu(x + h) - Gelu(x - h)) / (2 * h);
}

double Read(const Layout& layout, const void* data, int64_t batch, int64_t row,
            int64_t column) {
  return weir::calibrate::ReadElement(
      layout.format,
      static_cast<const uint8_t*>(data) +
          (batch * layout.batch_stride + column * layout.leading + row) *
              BytesOf(layout.format));
}
void Write(const Layout& layout, void* data, int64_t batch, int64_t row,
           int64_t column, double value) {
  weir::calibrate::WriteElement(
      layout.format, value,
      static_cast<uint8_t*>(data) +
          (batch * layout.batch_stride + column * layout.leading + row) *
              BytesOf(layout.format));
}

struct Matmul {
  Desc desc;
  float beta;
  const void *a, *b;
  void* d;
  Layout la, lb, ld;

  void Run() const {
    const bool ta =
        desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
    const bool tb =
        desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
    const int64_t k = ta ? la.rows : la.columns;
    std::vector<double> first(ld.rows * k), second(ld.columns * k);
    for (int64_t batch = 0; batch < ld.batches; ++batch) {
      for (int64_t i = 0; i < ld.rows; ++i) {
        for (int64_t x = 0; x < k; ++x) {
          first[i * k + x] =
              ta ? Read(la, a, batch, x, i) : Read(la, a, batch, i, x);
        }
      }
      for (int64_t j = 0; j < ld.columns; ++j) {
        for (int64_t x = 0; x < k; ++x) {
          second[j * k + x] =
              tb ? Read(lb, b, batch, j, x) : Read(lb, b, batch, x, j);
        }
      }
      for (int64_t j = 0; j < ld.columns; ++j) {
        for (int64_t i = 0; i < ld.rows; ++i) {
          double sum = 0;
          for (int64_t x = 0; x < k; ++x) {
            sum += first[i * k + x] * second[j * k + x];
          }
          if (beta != 0) sum += beta * Read(ld, d, batch, i, j);
          Write(ld, d, batch, i, j, Finish(sum, i, j));
        }
      }
    }
  }

  static int64_t SpanOf(const Layout& layout) {
    return ((layout.batches - 1) * layout.batch_stride +
            (layout.columns - 1) * layout.leading + layout.rows) *
           BytesOf(layout.format);
  }
  weir::fake::Accesses Touches() const {
    const auto epilogue = desc.Get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
    weir::fake::Accesses accesses = {weir::fake::Reads(a, SpanOf(la)),
                                     weir::fake::Reads(b, SpanOf(lb)),
                                     weir::fake::Writes(d, SpanOf(ld))};
    if ((epilogue & (32 | 64)) != 0) {  // GELU
      const int64_t stride =
          desc.Get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
      accesses.push_back(
          {desc.Get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
           ((ld.columns - 1) * stride + ld.rows) * 2,
           epilogue != CUBLASLT_EPILOGUE_DGELU});
    }
    return accesses;
  }

  double Finish(double sum, int64_t i, int64_t j) const {
    const auto epilogue = desc.Get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
    const auto type =
        desc.Get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE);
    const Layout aux{FormatOf(static_cast<cudaDataType>(type)), ld.rows,
                     ld.columns,
                     desc.Get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)};
    void* aux_data = desc.Get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
    if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
      const Layout bias{FormatOf(static_cast<cudaDataType>(desc.Get<int32_t>(
                            CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE))),
                        ld.rows, 1, ld.rows};
      sum += Read(bias, desc.Get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER), 0,
                  i, 0);
    }
    if ((epilogue & ~CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_GELU_AUX) {
      Write(aux, aux_data, 0, i, j, sum);
      return Gelu(sum);
    }
    if (epilogue == CUBLASLT_EPILOGUE_DGELU) {
      return sum * GeluGradient(Read(aux, aux_data, 0, i, j));
    }
    return sum;
  }
};

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "fake"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "fake"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  Gpu().used_bytes += kHandleBytes;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc,
                                        cublasComputeType_t, cudaDataType_t) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete Of(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
    const void* value, size_t bytes) {
  const auto* begin = static_cast<const uint8_t*>(value);
  Of(desc)->attributes[attribute] = {begin, begin + bytes};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{FormatOf(type), static_cast<int64_t>(rows),
                 static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete Of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
    const void* value, size_t) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
    Of(layout)->batches = *static_cast<const int32_t*>(value);
  } else {
    Of(layout)->batch_stride = *static_cast<const int64_t*>(value);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(
    cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(
    cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<int*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

// Returns three algorithms: one that does not run, a slow one and a fast one.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t first,
    cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t result, cublasLtMatmulPreference_t, int wanted,
    cublasLtMatmulHeuristicResult_t* offers, int* num_offers) {
  const auto epilogue = Of(desc)->Get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
  const bool gelu = (epilogue & (32 | 64)) != 0;
  const auto inner = [](const Layout& layout, bool rows) {
    return rows ? layout.rows : layout.columns;
  };
  const bool ta =
      Of(desc)->Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  const bool tb =
      Of(desc)->Get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  // The dimension checks of the library.
  if (inner(*Of(first), ta) != inner(*Of(second), !tb) ||
      inner(*Of(first), !ta) != Of(result)->rows ||
      inner(*Of(second), tb) != Of(result)->columns ||
      Of(first)->leading < Of(first)->rows ||
      Of(second)->leading < Of(second)->rows ||
      Of(result)->leading < Of(result)->rows) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (gelu && !Gpu().has_gelu_epilogues) return CUBLAS_STATUS_NOT_SUPPORTED;
  *num_offers = std::min(wanted, 3);
  for (int i = 0; i < *num_offers; ++i) {
    offers[i] = {};
    offers[i].algo.data[0] = i;
    offers[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t*) {
  return algorithm->data[0] == 0 ? CUBLAS_STATUS_NOT_SUPPORTED
                                 : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t* algorithm,
    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value, size_t bytes,
    size_t*) {
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) {
    std::memcpy(value, &algorithm->data[0], bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                              const void*, const void* a,
                              cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta,
                              const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algorithm, void*,
                              size_t, cudaStream_t stream) {
  const auto index = algorithm->data[0];
  if (index == 0 || c != d) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Matmul matmul{
      *Of(desc), *static_cast<const float*>(beta), a, b, d, *Of(la), *Of(lb),
      *Of(ld)};
  const std::lock_guard<std::recursive_mutex> lock(GpuMutex());
  ++Gpu().num_gemms;
  Gpu().gemms_fill.insert(
      Of(desc)->Get<int32_t>(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET));
  weir::calibrate::Enqueue(
      stream, Gpu().library_algorithm_seconds[index - 1],
      [matmul] { matmul.Run(); }, matmul.Touches());
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
