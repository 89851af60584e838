// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/gemm_shape.h"

#include <tuple>

#include "tests/calibrate/execute/reference/op_case.h"
#include "tests/calibrate/gpu/column_major_host.h"

namespace weir::calibrate::gemm_shape_test {

constexpr int64_t kM = 5, kN = 7, kK = 3, kPadding = 2;

// The parameters are: transpose a, transpose b, accumulate, gaps between rows.
class GemmShapeTest
    : public testing::TestWithParam<std::tuple<bool, bool, bool, bool>> {
 protected:
  StageOp Op() const {
    const auto [transpose_a, transpose_b, accumulate, padded] = GetParam();
    const int64_t gap = padded ? kPadding : 0;
    StageOp op;
    op.rows = kM;
    op.columns = kN;
    op.inner = kK;
    op.transpose_a = transpose_a;
    op.transpose_b = transpose_b;
    op.accumulate = accumulate;
    op.inputs = {{0, 0, gap == 0 ? 0 : (transpose_a ? kM : kK) + gap},
                 {1, 0, gap == 0 ? 0 : (transpose_b ? kK : kN) + gap},
                 {}};
    op.outputs = {{2, 0, gap == 0 ? 0 : kN + gap}, {}};
    return op;
  }
};

TEST_P(GemmShapeTest, TheLibrarysGemmIsTheReferences) {
  const StageOp op = Op();
  const Numbers a = Normal(100, 1), b = Normal(100, 2), before = Normal(100, 3);
  Numbers expected = before, actual = before;
  RunReference(op, {a.data(), b.data(), nullptr}, {expected.data(), nullptr});
  // The library takes b first.
  MultiplyColumnMajor(InColumnMajor(GemmShapeOf(op)), 1, op.accumulate,
                      b.data(), a.data(), actual.data());
  ExpectSame(actual, expected, 1e-14);
  for (size_t i = 0; i < before.size(); ++i) {  // gaps are unchanged
    if (expected[i] == before[i]) {
      EXPECT_EQ(actual[i], before[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmShapeTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Bool(), testing::Bool()));

TEST(GemmShapeTest, DimensionsAreThoseThatCublasLtChecks) {
  // y[t, n] = x[t, k] W[n, k]^T is C(n, t) = W^T X in column-major terms: W is
  // stored k x n and transposed, x is stored k x t and not transposed.
  StageOp op;
  op.rows = 8192;
  op.columns = 16384;
  op.inner = 4096;
  op.transpose_b = true;
  op.inputs.resize(3);
  op.outputs.resize(2);
  const ColumnMajorGemm gemm = InColumnMajor(GemmShapeOf(op));
  EXPECT_EQ(gemm.first.rows, 4096);
  EXPECT_EQ(gemm.first.columns, 16384);
  EXPECT_EQ(gemm.first.leading, 4096);
  EXPECT_TRUE(gemm.first.transposed);
  EXPECT_EQ(gemm.second.rows, 4096);
  EXPECT_EQ(gemm.second.columns, 8192);
  EXPECT_EQ(gemm.second.leading, 4096);
  EXPECT_FALSE(gemm.second.transposed);
  EXPECT_EQ(gemm.result.rows, 16384);
  EXPECT_EQ(gemm.result.columns, 8192);
  EXPECT_EQ(gemm.result.leading, 16384);
}

}  // namespace weir::calibrate::gemm_shape_test
