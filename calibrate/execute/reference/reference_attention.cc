// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/execute/reference/op_tensors.h"

namespace weir::calibrate {
namespace {

// One head of one sequence, with the positions of its rows in the packed
// tensors.
struct Head {
  int64_t first_token, row;  // index of (sequence, head) in the statistics
  int64_t query, key, value, output;  // columns

  Head(const StageOp& op, int64_t sequence, int64_t head) {
    const int64_t d = op.head_size;
    const int64_t kv_head = head / (op.heads / op.kv_heads);
    first_token = sequence * op.sequence_length;
    row = sequence * op.heads + head;
    query = head * d;
    key = (op.heads + kv_head) * d;
    value = (op.heads + op.kv_heads + kv_head) * d;
    output = head * d;
  }
};

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void AddTo(double* to, double factor, const double* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

int64_t NumSeen(const StageOp& op, int64_t query) {
  return op.causal ? query + 1 : op.sequence_length;
}

template <typename Function>
void ForEachHead(const StageOp& op, Function function) {
  for (int64_t sequence = 0; sequence < op.sequences; ++sequence) {
    for (int64_t head = 0; head < op.heads; ++head) {
      function(Head(op, sequence, head));
    }
  }
}

// Computes the scaled scores of query i.
void Scores(const StageOp& op, const Head& head, Rows<const double> packed,
            int64_t i, std::vector<double>* scores) {
  const double scale = 1 / std::sqrt(double(op.head_size));
  const double* query = packed[head.first_token + i] + head.query;
  for (int64_t j = 0; j < NumSeen(op, i); ++j) {
    (*scores)[j] = scale * Dot(query, packed[head.first_token + j] + head.key,
                               op.head_size);
  }
}

}  // namespace

void ReferenceRotary(const StageOp& op, const OpTensors& tensors) {
  const Rows<double> packed = tensors.Out(0);
  const int64_t d = op.head_size, half = d / 2;
  const double sign = op.kind == OpKind::kRotaryForward ? 1 : -1;
  for (int64_t i = 0; i < op.sequences * op.sequence_length; ++i) {
    const double position = static_cast<double>(i % op.sequence_length);
    for (int64_t j = 0; j < half; ++j) {
      const double angle =
          sign * position * std::pow(double{op.rotary_base}, -2.0 * j / d);
      const double c = std::cos(angle), s = std::sin(angle);
      for (int64_t head = 0; head < op.heads + op.kv_heads; ++head) {
        double& x = packed[i][head * d + j];
        double& y = packed[i][head * d + j + half];
        const double turned = x * c - y * s;
        y = y * c + x * s;
        x = turned;
      }
    }
  }
}

void ReferenceAttentionForward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> packed = tensors.In(0);
  const Rows<double> o = tensors.Out(0), statistics = tensors.Out(1);
  const int64_t s = op.sequence_length;
  std::vector<double> p(s);
  ForEachHead(op, [&](const Head& head) {
    for (int64_t i = 0; i < s; ++i) {
      const int64_t seen = NumSeen(op, i);
      Scores(op, head, packed, i, &p);
      const double largest = *std::max_element(p.begin(), p.begin() + seen);
      double sum = 0;
      for (int64_t j = 0; j < seen; ++j) sum += std::exp(p[j] - largest);
      for (int64_t j = 0; j < seen; ++j) p[j] = std::exp(p[j] - largest) / sum;
      std::fill(p.begin() + seen, p.end(), 0.0);
      double* output = o[head.first_token + i] + head.output;
      std::fill(output, output + op.head_size, 0.0);
      for (int64_t j = 0; j < seen; ++j) {
        AddTo(output, p[j], packed[head.first_token + j] + head.value,
              op.head_size);
      }
      if (op.fused) {
        statistics[head.row][i] = largest + std::log(sum);
      } else {
        std::copy(p.begin(), p.end(), statistics[head.row * s + i]);
      }
    }
  });
}

void ReferenceAttentionBackward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> d_o = tensors.In(0), o = tensors.In(1);
  const Rows<const double> packed = tensors.In(2), statistics = tensors.In(3);
  const Rows<double> d_packed = tensors.Out(0), scratch = tensors.Out(1);
  const int64_t s = op.sequence_length, d = op.head_size;
  const double scale = 1 / std::sqrt(double(d));
  const int64_t width = (op.heads + 2 * op.kv_heads) * d;
  for (int64_t i = 0; i < op.sequences * s; ++i) {
    std::fill(d_packed[i], d_packed[i] + width, 0.0);
  }
  std::vector<double> p(s), d_p(s);
  ForEachHead(op, [&](const Head& head) {
    for (int64_t i = 0; i < s; ++i) {
      const int64_t seen = NumSeen(op, i), token = head.first_token + i;
      if (op.fused) {
        Scores(op, head, packed, i, &p);
        const double log_sum = statistics[head.row][i];
        for (int64_t j = 0; j < seen; ++j) p[j] = std::exp(p[j] - log_sum);
      } else {
        std::copy_n(statistics[head.row * s + i], s, p.begin());
      }
      const double* d_output = d_o[token] + head.output;
      const double row = Dot(d_output, o[token] + head.output, d);
      if (op.fused && scratch) scratch[head.row][i] = row;
      for (int64_t j = 0; j < s; ++j) {
        if (j >= seen) {
          if (!op.fused && scratch) scratch[head.row * s + i][j] = 0;
          continue;
        }
        const int64_t other = head.first_token + j;
        const double d_score =
            scale * p[j] * (Dot(d_output, packed[other] + head.value, d) - row);
        if (!op.fused && scratch) scratch[head.row * s + i][j] = d_score;
        AddTo(d_packed[token] + head.query, d_score, packed[other] + head.key,
              d);
        AddTo(d_packed[other] + head.key, d_score, packed[token] + head.query,
              d);
        AddTo(d_packed[other] + head.value, p[j], d_output, d);
      }
    }
  });
}

}  // namespace weir::calibrate
