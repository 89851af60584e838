// SPDX-License-Identifier: Apache-2.0
// Compares kernels other than GEMMs with published times. Each test prints the
// mean and the largest error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/attention.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/shape.h"
#include "tests/models/gpt.h"

namespace weir::calibrate::memory_kernels_test {

struct Errors {
  std::vector<double> all;

  void Add(double predicted, double published) {
    all.push_back(std::fabs(predicted / published - 1));
  }
  double Mean() const {
    double sum = 0;
    for (double error : all) sum += error;
    return sum / all.size();
  }
  double Worst() const { return *std::max_element(all.begin(), all.end()); }
  void Print(const char* set) const {
    std::printf("%s: %zu rows, mean %.1f %%, worst %.1f %%\n", set, all.size(),
                100 * Mean(), 100 * Worst());
  }
};

struct Row {
  double a, b, forward_ms, backward_ms;
};

// cuDNN 9.19 on H200, bf16, one sequence, 64 query heads of size 128, 8
// key-value heads. Rows: length, causal, ms. Source:
// github.com/NVIDIA/cudnn-frontend 1.23, commit 3929da2e, benchmark results of
// Llama 3.1.
TEST(MemoryKernelsTest, FusedAttentionOnH200) {
  const DeviceProfile h200 = *LoadDeviceProfile("h200-sxm");
  const double peak = *PeakFlops(h200, "bf16");
  Errors errors;
  for (const auto& [length, causal, forward_ms, backward_ms] :
       std::vector<Row>{{2048, 0, 0.217, 0.681},
                        {2048, 1, 0.142, 0.464},
                        {4096, 0, 0.819, 2.453},
                        {4096, 1, 0.465, 1.45},
                        {8192, 0, 3.182, 9.262},
                        {8192, 1, 1.708, 5.083},
                        {16384, 0, 12.524, 35.947},
                        {16384, 1, 6.531, 19.002},
                        {32768, 0, 50.769, 153.841},
                        {32768, 1, 25.566, 75.688}}) {
    Transformer transformer;
    transformer.set_num_layers(1);
    transformer.set_hidden_size(8192);
    transformer.set_num_heads(64);
    transformer.set_num_kv_heads(8);
    transformer.set_head_size(128);
    transformer.set_causal(causal != 0);
    models::WorkSpec spec;
    spec.sequence_length = static_cast<int>(length);
    spec.flash_attention = true;
    const models::AttentionCore core = models::AttentionCoreOf(
        transformer, spec, models::ShapeOf(transformer, spec));
    errors.Add(KernelSeconds(h200, peak, core.forward), forward_ms / 1e3);
    errors.Add(KernelSeconds(h200, peak, core.backward), backward_ms / 1e3);
  }
  errors.Print("cuDNN attention, H200");
  EXPECT_LT(errors.Mean(), 0.035);
  EXPECT_LT(errors.Worst(), 0.09);
}

// PyTorch's RMSNorm and LayerNorm from the same source, bf16. Rows: rows,
// width, ms.
TEST(MemoryKernelsTest, EagerNormsOnH200) {
  const DeviceProfile h200 = *LoadDeviceProfile("h200-sxm");
  const double peak = *PeakFlops(h200, "bf16");
  Errors errors;
  for (const auto& [rows, width, forward_ms, backward_ms] :
       std::vector<Row>{{16384, 4096, 0.080, 0.223},
                        {8192, 8192, 0.102, 0.260},
                        {4096, 16384, 0.112, 0.261},
                        {8192, 5120, 0.054, 0.172},
                        {1024, 12288, 0.031, 0.061},
                        {8192, 4096, 0.043, 0.114},
                        {4096, 6144, 0.036, 0.104},
                        {4096, 8192, 0.053, 0.132},
                        {2048, 4096, 0.012, 0.030},
                        {8192, 5120, 0.054, 0.172},
                        {4096, 2048, 0.013, 0.035}}) {
    const double bytes = 2 * rows * width;
    errors.Add(KernelSeconds(h200, peak,
                             models::MemoryKernel(
                                 2 * bytes, models::KernelPart::kNorm, 1)),
               forward_ms / 1e3);
    errors.Add(KernelSeconds(h200, peak,
                             models::MemoryKernel(
                                 5 * bytes, models::KernelPart::kNorm, 3)),
               backward_ms / 1e3);
  }
  errors.Print("PyTorch norms, H200");
  EXPECT_LT(errors.Mean(), 0.15);
}

// Time that head and embedding add to a stage of 4 blocks on A100. Source:
// artifact of Vocabulary Parallelism (Yeung et al. 2024), exp_one_host.csv,
// 1F1B, columns 26 and 27: last stage minus the one before, and backward of the
// first stage minus the second; s = 2048, h = 3072, fp16, microseconds.
TEST(MemoryKernelsTest, EndsOfVocabularyParallelismOnA100) {
  const DeviceProfile a100 = *LoadDeviceProfile("a100-sxm-80gb");
  const double peak = *PeakFlops(a100, "fp16");
  Errors errors, gradients;
  for (const auto& [vocabulary, embedding, forward, backward] :
       std::vector<Row>{{256000, 25185 - 21108, 36818 - 10381, 52363 - 20827},
                        {128000, 23338 - 20978, 24152 - 10470, 37615 - 21067},
                        {64000, 22614 - 21304, 17748 - 10450, 29803 - 21016},
                        {32000, 21993 - 21497, 14603 - 10612, 25997 - 21364}}) {
    models::Gpt gpt = {
        .a = 24, .h = 3072, .l = 32, .V = vocabulary, .s = 2048, .b = 1};
    models::WorkSpec spec = models::SpecOf(gpt);
    spec.fused_gradient_accumulation = false;
    spec.flash_attention = true;
    spec.dropout = true;
    const std::vector<models::LayerWork> layers =
        models::LayersOf(models::ModelOf(gpt), spec);
    const models::LayerWork& head = layers.back();
    const auto us = [&](const std::vector<models::Kernel>& kernels) {
      return 1e6 * KernelSeconds(a100, peak, kernels);
    };
    errors.Add(us(head.forward), forward);
    errors.Add(us(head.backward_input) + us(head.backward_weight), backward);
    const models::LayerWork& table = layers.front();
    gradients.Add(us(table.backward_input) + us(table.backward_weight),
                  embedding);
  }
  gradients.Print("embedding gradients, A100");
  EXPECT_LT(gradients.Mean(), 0.15);
  errors.Print("heads, A100");
  EXPECT_LT(errors.Mean(), 0.1);
}

}  // namespace weir::calibrate::memory_kernels_test
