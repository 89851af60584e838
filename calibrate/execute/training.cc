// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/training.h"

#include <algorithm>
#include <vector>

#include "base/in_parts.h"
#include "calibrate/execute/stage/dropout_mask.h"
#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {
namespace {

constexpr int kWeightsBuffer = 0;
constexpr double kDeviation = 0.02;  // deviation of initial weights

// Random streams of one seed, by purpose.
enum class Stream : uint64_t { kLanguage, kText, kWeights, kDropout };

Philox4 Draw(const ExecutionPlan& plan, Stream stream, uint64_t index,
             uint64_t within = 0) {
  const uint64_t key = plan.seed * 4 + static_cast<uint64_t>(stream);
  return Philox(
      {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
        static_cast<uint32_t>(within), static_cast<uint32_t>(within >> 32)}},
      key);
}

// Returns the next word of the language. A word is followed by one of four
// others: by the first with probability one half, by the second with one
// quarter, and so on.
uint32_t NextWord(const ExecutionPlan& plan, uint32_t word, uint32_t chance,
                  uint32_t vocabulary) {
  const Philox4 followers = Draw(plan, Stream::kLanguage, word);
  int choice = 0;
  while (choice < 3 && (chance >> (31 - choice) & 1) != 0) ++choice;
  return followers.words[choice] % vocabulary;
}

// Converts 32 random bits to an initial weight: the sum of the four bytes,
// refined between its steps by a hash of all bits. Mean 0, deviation
// kDeviation, at most 3.5 deviations, kurtosis 2.7 (Irwin-Hall; 3 for a normal
// distribution).
double NearlyNormal(uint32_t random) {
  const uint32_t pairs = (random & 0xFF00FF) + (random >> 8 & 0xFF00FF);
  const int sum = static_cast<int>((pairs & 0xFFFF) + (pairs >> 16));
  const int between = static_cast<int>(random * 0x9E3779B9U >> 24);
  // 256 sqrt(4 (2^16 - 1) / 12 + 1 / 12)
  constexpr double kUnit = kDeviation / 37837.0;
  return kUnit * (256 * (sum - 510) + between - 127.5);
}

enum class Fill : uint8_t { kNormal, kOnes, kZeros };

struct Parameter {
  int64_t offset = 0, num_elements = 0;
  Fill fill = Fill::kNormal;
};

// Returns the weights that a forward reads, by offset.
std::vector<Parameter> ParametersOf(const ExecutionPlan& plan,
                                    const StageProgram& program) {
  const Transformer& transformer = plan.model.transformer();
  std::vector<Parameter> parameters;
  for (const StageOp& op : program.ops(ProgramPass::kForward)) {
    for (int i = 0; i < std::ssize(op.inputs); ++i) {
      if (op.inputs[i].buffer != kWeightsBuffer) continue;
      Parameter parameter{op.inputs[i].offset,
                          InputShape(op, i).num_elements()};
      if (op.kind == OpKind::kNormForward) {
        parameter.fill = i == 4 ? Fill::kOnes : Fill::kZeros;
      } else if (op.kind == OpKind::kGemm && i == 2) {
        parameter.fill = Fill::kZeros;
      } else if (op.kind == OpKind::kEmbeddingForward && i == 2) {
        // The table also has rows for longer sequences.
        parameter.num_elements =
            int64_t{transformer.num_positions()} * transformer.hidden_size();
      }
      parameters.push_back(parameter);
    }
  }
  std::sort(parameters.begin(), parameters.end(),
            [](const Parameter& a, const Parameter& b) {
              return a.offset < b.offset;
            });
  return parameters;
}

// `number` identifies the parameter within the model. A draw yields four
// elements.
void Initialize(const ExecutionPlan& plan, uint64_t number,
                const Parameter& parameter, double* begin) {
  const int64_t size = parameter.num_elements;
  if (parameter.fill != Fill::kNormal) {
    std::fill_n(begin, size, parameter.fill == Fill::kOnes ? 1 : 0);
    return;
  }
  InParts((size + 3) / 4, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) {
      const Philox4 random = Draw(plan, Stream::kWeights, number, group);
      const int64_t end = std::min(size - 4 * group, int64_t{4});
      for (int64_t i = 0; i < end; ++i) {
        begin[4 * group + i] = NearlyNormal(random.words[i]);
      }
    }
  });
}

StageProgram ProgramOf(const ExecutionPlan& plan, int first_layer,
                       int last_layer) {
  StageSpec spec = plan.spec;
  spec.first_layer = first_layer;
  spec.last_layer = last_layer;
  // Requires: the plan's own programs were built successfully.
  return BuildStageProgram(plan.model, spec).value();
}

void AppendLayer(const ExecutionPlan& plan, int layer,
                 std::vector<double>* weights) {
  constexpr uint64_t kMostParameters = 64;  // per layer
  const StageProgram program = ProgramOf(plan, layer, layer + 1);
  const size_t before = weights->size();
  weights->resize(before + program.buffers[kWeightsBuffer].num_elements, 0);
  const std::vector<Parameter> parameters = ParametersOf(plan, program);
  for (size_t i = 0; i < parameters.size(); ++i) {
    uint64_t number = layer * kMostParameters + i;
    const bool is_table =
        layer + 1 == plan.num_layers() && i + 1 == parameters.size();
    if (is_table && plan.model.transformer().tied_embeddings()) number = 0;
    Initialize(plan, number, parameters[i],
               weights->data() + before + parameters[i].offset);
  }
}

}  // namespace

MicrobatchData DataOf(const ExecutionPlan& plan, int64_t microbatch) {
  const models::WorkSpec& work = plan.spec.work;
  const uint32_t vocabulary = plan.model.transformer().vocabulary_size();
  MicrobatchData data;
  for (int sequence = 0; sequence < work.microbatch_size; ++sequence) {
    const auto random = [&](int position) {
      const uint64_t within = uint64_t{static_cast<uint32_t>(sequence)} << 32 |
                              static_cast<uint32_t>(position);
      return Draw(plan, Stream::kText, microbatch, within).words[0];
    };
    uint32_t word = random(0) % vocabulary;
    for (int i = 0; i < work.sequence_length; ++i) {
      data.tokens.push_back(word);
      word = NextWord(plan, word, random(i + 1), vocabulary);
      data.targets.push_back(word);
    }
  }
  return data;
}

std::vector<double> InitialWeights(const ExecutionPlan& plan, int first_layer,
                                   int last_layer) {
  std::vector<double> weights;
  int64_t size = 0;
  for (int layer = first_layer; layer < last_layer; ++layer) {
    size +=
        ProgramOf(plan, layer, layer + 1).buffers[kWeightsBuffer].num_elements;
  }
  weights.reserve(size);
  for (int layer = first_layer; layer < last_layer; ++layer) {
    AppendLayer(plan, layer, &weights);
  }
  // The head then uses the embedding's table.
  const bool has_both = first_layer == 0 && last_layer == plan.num_layers();
  if (has_both && plan.model.transformer().tied_embeddings()) {
    const StageProgram& first = *plan.programs[0];
    const StageOp& embedding = first.ops(ProgramPass::kForward)[0];
    constexpr int64_t kAlignment = 8;
    const int64_t table = embedding.inner * embedding.columns;
    weights.resize(weights.size() -
                   (table + kAlignment - 1) / kAlignment * kAlignment);
  }
  return weights;
}

std::vector<std::vector<double>> CutWeights(const ExecutionPlan& plan,
                                            absl::Span<const double> whole) {
  std::vector<std::vector<double>> stages;
  auto begin = whole.begin();
  for (const auto& program : plan.programs) {
    const int64_t size = program->buffers[kWeightsBuffer].num_elements;
    const int64_t part = std::min<int64_t>(size, whole.end() - begin);
    stages.emplace_back(begin, begin + part);
    stages.back().resize(size, 0);
    begin += part;
  }
  const TiedTable& tied = plan.tied;
  std::copy_n(whole.begin() + tied.first_offset, tied.num_elements,
              stages.back().begin() + tied.last_offset);
  return stages;
}

uint64_t DropoutSeed(const ExecutionPlan& plan, int64_t microbatch) {
  const Philox4 random = Draw(plan, Stream::kDropout, microbatch);
  return uint64_t{random.words[0]} << 32 | random.words[1];
}

}  // namespace weir::calibrate
