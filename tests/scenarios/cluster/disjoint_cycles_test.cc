// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/disjoint_cycles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir::scenarios::disjoint_cycles_test {

std::vector<int32_t> FullMesh(int size, int lanes) {
  const int num_edges = size * size;
  std::vector<int32_t> mesh(num_edges, lanes);
  for (int i = 0; i < size; ++i) mesh[i * size + i] = 0;
  return mesh;
}

// Checks that every cycle visits every vertex once and that no edge is used too
// often.
void ExpectDisjointCycles(int size, std::vector<int32_t> lanes,
                          const std::vector<std::vector<int>>& cycles) {
  for (const std::vector<int>& cycle : cycles) {
    ASSERT_EQ(static_cast<int>(cycle.size()), size);
    EXPECT_EQ(std::set<int>(cycle.begin(), cycle.end()).size(), cycle.size());
    for (int i = 0; i < size; ++i) {
      const int a = cycle[i], b = cycle[(i + 1) % size];
      EXPECT_GE(--lanes[a * size + b], 0);
      EXPECT_GE(--lanes[b * size + a], 0);
    }
  }
}

TEST(DisjointCyclesTest, FewerThanThreeVerticesHaveNone) {
  EXPECT_TRUE(DisjointCycles(0, {}).empty());
  EXPECT_TRUE(DisjointCycles(1, {0}).empty());
  EXPECT_TRUE(DisjointCycles(2, {0, 4, 4, 0}).empty());
}

TEST(DisjointCyclesTest, TriangleHasOnePerLane) {
  for (int lanes = 1; lanes <= 4; ++lanes) {
    const auto cycles = DisjointCycles(3, FullMesh(3, lanes));
    EXPECT_EQ(static_cast<int>(cycles.size()), lanes);
    ExpectDisjointCycles(3, FullMesh(3, lanes), cycles);
  }
}

// Walecki 1892: a complete graph with an odd number of vertices decomposes into
// cycles; with an even number, all edges except a perfect matching do.
TEST(DisjointCyclesTest, CompleteGraphsReachWaleckisNumber) {
  for (int size = 3; size <= 8; ++size) {
    const auto cycles = DisjointCycles(size, FullMesh(size, 1));
    EXPECT_EQ(static_cast<int>(cycles.size()), (size - 1) / 2) << size;
    ExpectDisjointCycles(size, FullMesh(size, 1), cycles);
  }
}

TEST(DisjointCyclesTest, StarHasNone) {
  std::vector<int32_t> lanes(25);
  for (size_t i = 1; i < 5; ++i) lanes[i] = lanes[5 * i] = 9;
  EXPECT_TRUE(DisjointCycles(5, lanes).empty());
}

TEST(DisjointCyclesTest, RandomMeshesGiveDisjointCycles) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int size = 3 + round % 7;
    const int num_edges = size * size;
    std::vector<int32_t> lanes(num_edges);
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < a; ++b)
        lanes[a * size + b] = lanes[b * size + a] = random() % 3;
    }
    ExpectDisjointCycles(size, lanes, DisjointCycles(size, lanes));
  }
}

TEST(DisjointCyclesTest, LargeMeshEndsWithSomething) {
  const auto cycles = DisjointCycles(256, FullMesh(256, 4));
  EXPECT_FALSE(cycles.empty());
  ExpectDisjointCycles(256, FullMesh(256, 4), cycles);
}

}  // namespace weir::scenarios::disjoint_cycles_test
