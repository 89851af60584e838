// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/gemm_model.h"

namespace weir::calibrate {

const std::vector<GemmFigure>& GemmFigures() {
  using M = GemmModel;
  static const auto& figures = *new std::vector<GemmFigure>{
      {"launch_seconds", &M::launch_seconds, &M::mutable_launch_seconds, 0,
       1e-3, 1e-6},
      {"wave_seconds", &M::wave_seconds, &M::mutable_wave_seconds, 0, 1e-3,
       1e-6},
      {"matrix_rate", &M::matrix_rate, &M::mutable_matrix_rate, 1e-2, 1, 0},
      {"cache_bytes_per_second", &M::cache_bytes_per_second,
       &M::mutable_cache_bytes_per_second, 1e9, 1e16, 0},
      {"cache_shares", &M::cache_shares, &M::mutable_cache_shares, 1, 1e4, 0},
      {"output_bytes_per_second", &M::output_bytes_per_second,
       &M::mutable_output_bytes_per_second, 1e9, 1e16, 0},
      {"memory_rate", &M::memory_rate, &M::mutable_memory_rate, 1e-2, 1, 0},
      {"cache_bytes", &M::cache_bytes, &M::mutable_cache_bytes, 0, 1e12, 1e6},
      {"wave_quantization", &M::wave_quantization,
       &M::mutable_wave_quantization, 0, 1, 0.5},
      {"throttling", &M::throttling, &M::mutable_throttling, 0, 1, 0.1},
      {"sustained_rate", &M::sustained_rate, &M::mutable_sustained_rate, 1e-2,
       1, 0},
  };
  return figures;
}

const std::vector<GemmFigure>& AlignmentFigures() {
  using M = GemmModel;
  static const auto& figures = *new std::vector<GemmFigure>{
      {"rate_aligned_to_8_bytes", &M::rate_aligned_to_8_bytes,
       &M::mutable_rate_aligned_to_8_bytes, 1e-2, 1, 0},
      {"rate_aligned_to_4_bytes", &M::rate_aligned_to_4_bytes,
       &M::mutable_rate_aligned_to_4_bytes, 1e-2, 1, 0},
      {"rate_aligned_to_2_bytes", &M::rate_aligned_to_2_bytes,
       &M::mutable_rate_aligned_to_2_bytes, 1e-2, 1, 0},
  };
  return figures;
}

}  // namespace weir::calibrate
