// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/attention_sample.h"

#include <algorithm>
#include <cmath>

#include "calibrate/gpu/host/difference.h"

namespace weir::calibrate {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// One head of one sequence.
class Head {
 public:
  Head(const StageOp& op, int64_t sequence, int64_t head)
      : op_(op), sequence_(sequence), head_(head) {}

  int64_t kv_head() const { return head_ / (op_.heads / op_.kv_heads); }
  // `what`: 0 queries, 1 keys, 2 values.
  Vector Packed(const HostTensor& packed, int64_t token, int what) const {
    const int64_t before = what == 0   ? head_
                           : what == 1 ? op_.heads + kv_head()
                                       : op_.heads + op_.kv_heads + kv_head();
    return Row(packed, token, before);
  }
  Vector Output(const HostTensor& output, int64_t token) const {
    return Row(output, token, head_);
  }
  int64_t NumKeys(int64_t query) const {
    return op_.causal ? query + 1 : op_.sequence_length;
  }
  double Score(const HostTensor& packed, const Vector& query,
               int64_t key) const {
    return Dot(query, Packed(packed, key, 1)) / std::sqrt(op_.head_size);
  }
  // `saved` is a backward input: logarithms of sums (fused), or probabilities.
  double Probability(const HostTensor& packed, const HostTensor& saved,
                     const Vector& query_vector, int64_t query,
                     int64_t key) const {
    const int64_t row = sequence_ * op_.heads + head_;
    if (!op_.fused) return saved.At(row * op_.sequence_length + query, key);
    return std::exp(Score(packed, query_vector, key) - saved.At(row, query));
  }
  double Statistic(const HostTensor& statistics, int64_t query) const {
    return statistics.At(sequence_ * op_.heads + head_, query);
  }

 private:
  Vector Row(const HostTensor& tensor, int64_t token,
             int64_t heads_before) const {
    Vector row(op_.head_size);
    for (int j = 0; j < op_.head_size; ++j) {
      row[j] = tensor.At(sequence_ * op_.sequence_length + token,
                         heads_before * op_.head_size + j);
    }
    return row;
  }

  const StageOp& op_;
  const int64_t sequence_, head_;
};

void AddAll(const Vector& got, const Vector& expected, Difference* difference) {
  for (size_t j = 0; j < got.size(); ++j) difference->Add(got[j], expected[j]);
}

void AddScaled(double factor, const Vector& vector, Vector* sum) {
  for (size_t j = 0; j < vector.size(); ++j) (*sum)[j] += factor * vector[j];
}

void ForwardQuery(const StageOp& op, const OpCopies& copies, const Head& head,
                  int64_t query, Difference* output, Difference* statistic) {
  const HostTensor& packed = copies.inputs[0];
  const Vector q = head.Packed(packed, query, 0);
  Vector weights(head.NumKeys(query));
  for (size_t key = 0; key < weights.size(); ++key) {
    weights[key] = head.Score(packed, q, static_cast<int64_t>(key));
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  Vector expected(op.head_size);
  for (size_t key = 0; key < weights.size(); ++key) {
    AddScaled(weights[key] / sum,
              head.Packed(packed, static_cast<int64_t>(key), 2), &expected);
  }
  AddAll(head.Output(copies.outputs[0], query), expected, output);
  if (op.fused) {
    statistic->Add(head.Statistic(copies.outputs[1], query),
                   largest + std::log(sum));
  }
}

void BackwardQuery(const StageOp& op, const OpCopies& copies, const Head& head,
                   int64_t query, Difference* difference) {
  const std::vector<HostTensor>& in = copies.inputs;
  const Vector q = head.Packed(in[2], query, 0);
  const Vector d_output = head.Output(in[0], query);
  const double mean = Dot(d_output, head.Output(in[1], query));
  Vector expected(op.head_size);
  for (int64_t key = 0; key < head.NumKeys(query); ++key) {
    const double d_probability = Dot(d_output, head.Packed(in[2], key, 2));
    const double d_score =
        head.Probability(in[2], in[3], q, query, key) * (d_probability - mean);
    AddScaled(d_score / std::sqrt(op.head_size), head.Packed(in[2], key, 1),
              &expected);
  }
  AddAll(head.Packed(copies.outputs[0], query, 0), expected, difference);
}

// Compares the gradients of a key and its value, summed over all heads that
// share it.
void BackwardKey(const StageOp& op, const OpCopies& copies, int64_t sequence,
                 int64_t kv_head, int64_t key, Difference* d_key,
                 Difference* d_value) {
  const std::vector<HostTensor>& in = copies.inputs;
  const int64_t group = op.heads / op.kv_heads;
  Vector expected_key(op.head_size), expected_value(op.head_size);
  for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    const Head head(op, sequence, h);
    const Vector value = head.Packed(in[2], key, 2);
    for (int64_t query = op.causal ? key : 0; query < op.sequence_length;
         ++query) {
      const Vector q = head.Packed(in[2], query, 0);
      const Vector d_output = head.Output(in[0], query);
      const double p = head.Probability(in[2], in[3], q, query, key);
      const double mean = Dot(d_output, head.Output(in[1], query));
      const double d_score = p * (Dot(d_output, value) - mean);
      AddScaled(d_score / std::sqrt(op.head_size), q, &expected_key);
      AddScaled(p, d_output, &expected_value);
    }
  }
  const Head head(op, sequence, kv_head * group);
  AddAll(head.Packed(copies.outputs[0], key, 1), expected_key, d_key);
  AddAll(head.Packed(copies.outputs[0], key, 2), expected_value, d_value);
}

}  // namespace

double AttentionSampleError(const StageOp& op, const OpCopies& copies,
                            int num_samples) {
  // `first` compares o or dq, `second` statistics or dk, `third` dv.
  Difference first, second, third;
  const std::vector<int64_t> tokens = PickSome(op.sequence_length, num_samples);
  for (size_t i = 0; i < tokens.size(); ++i) {
    // Steps without a common factor select different heads in different
    // sequences.
    const int64_t sequence = static_cast<int64_t>(i) % op.sequences;
    const int64_t h = static_cast<int64_t>(7 * i + 3) % op.heads;
    const Head head(op, sequence, h);
    if (op.kind == OpKind::kAttentionForward) {
      ForwardQuery(op, copies, head, tokens[i], &first, &second);
    } else {
      BackwardQuery(op, copies, head, tokens[i], &first);
      BackwardKey(op, copies, sequence, head.kv_head(), tokens[i], &second,
                  &third);
    }
  }
  return std::max({first.relative(), second.relative(), third.relative()});
}

}  // namespace weir::calibrate
