// SPDX-License-Identifier: Apache-2.0
// Tests CBC in a child process: known problems, its answer if nothing is
// proven, and that no process or file is left.
#include "plan/synthesis/mip.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/child_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/partition.h"

namespace weir::plan::mip_test {

using State = MipResult::State;
using ::testing::HasSubstr;

#define SKIP_WITHOUT_CBC()                          \
  if (FindProgram("cbc").empty()) {                 \
    GTEST_SKIP() << "cbc is not here (coinor-cbc)"; \
  }

MipResult Solved(const MipModel& model, const MipOptions& options = {}) {
  const absl::StatusOr<MipResult> result = SolveMip(model, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : MipResult{};
}

// Returns true if the process ends or becomes a zombie within two seconds.
bool EndsSoon(pid_t process) {
  for (int i = 0; i < 200; ++i) {
    std::ifstream stat(absl::StrCat("/proc/", process, "/stat"));
    std::string pid, name, state;
    if (!(stat >> pid >> name >> state) || state == "Z") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Uses a separate folder for scratch files, to check which files are left.
class MipTest : public ::testing::Test {
 protected:
  MipTest()
      : folder_(::testing::TempDir() + "weir_mip_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  ~MipTest() override { std::filesystem::remove_all(folder_); }

  size_t NumLeft() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder_)) {
      ++n;
    }
    return n;
  }
  // Returns a script that misbehaves as a solver.
  std::string Script(const std::string& body) const {
    std::string path =
        folder_ + "/../weir_mip_script_" + std::to_string(getpid());
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    chmod(path.c_str(), 0700);
    return path;
  }

  std::string folder_;
};

MipModel Knapsack() {
  MipModel model;
  const std::vector<double> worth = {60, 100, 120}, weight = {10, 20, 30};
  std::vector<std::pair<int, double>> terms;
  for (int i = 0; i < 3; ++i) {
    terms.emplace_back(model.AddVariable({0, 1, true, -worth[i]}), weight[i]);
  }
  model.AddRow(terms, -kInfinity, 50);
  return model;
}

TEST_F(MipTest, FindsTheBestKnapsackAndSaysItIsProven) {
  SKIP_WITHOUT_CBC();
  const MipResult result = Solved(Knapsack());
  EXPECT_EQ(result.state, State::kOptimal);
  EXPECT_EQ(result.values, (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(result.objective, -220);
  EXPECT_EQ(result.bound, -220);
  EXPECT_EQ(Describe(result), "optimal, proven");
  EXPECT_EQ(NumLeft(), 0u);
}

TEST_F(MipTest, BoundsOfEveryKindArriveAsTheyAre) {
  SKIP_WITHOUT_CBC();
  MipModel model;
  const int free = model.AddVariable({-kInfinity, kInfinity, false, 1});
  const int below = model.AddVariable({-kInfinity, 3, true, -2});
  const int whole = model.AddVariable({2.5, kInfinity, true, 1});
  const int exact = model.AddVariable({0.1234567890123456, 7, false, 1});
  const int unused = model.AddVariable({-4, -1, false, 0});
  model.AddRow({{free, 1}, {below, 1}}, -12, 40);
  model.AddRow({{whole, 1}, {below, -1}}, 0.25, 0.75 + 4);
  const MipResult result = Solved(model);
  ASSERT_EQ(result.state, State::kOptimal);
  EXPECT_DOUBLE_EQ(result.values[free], -15);
  EXPECT_DOUBLE_EQ(result.values[below], 3);
  EXPECT_DOUBLE_EQ(result.values[whole], 4);
  // CBC writes eight digits.
  EXPECT_NEAR(result.values[exact], 0.1234567890123456, 1e-8);
  EXPECT_GE(result.values[unused], -4);
  EXPECT_LE(result.values[unused], -1);
}

TEST_F(MipTest, SaysWhatIsInfeasibleAndWhatHasNoLeastValue) {
  SKIP_WITHOUT_CBC();
  MipModel model;
  const int x = model.AddVariable({0, 10, true, 1});
  const int y = model.AddVariable({0, 10, true, 1});
  model.AddRow({{x, 2}, {y, 2}}, 3, 3);  // feasible only without whole numbers
  EXPECT_EQ(Solved(model).state, State::kInfeasible);
  model.AddRow({{x, 1}}, 11);  // infeasible even without them
  EXPECT_EQ(Solved(model).state, State::kInfeasible);
  EXPECT_FALSE(Solved(model).has_values());

  MipModel endless;
  endless.AddVariable({-kInfinity, kInfinity, false, 1});
  endless.AddRow({{0, 1}}, -kInfinity, 5);
  EXPECT_EQ(SolveMip(endless).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MipTest, RefusesModelsThatAreMalformed) {
  MipModel crossed;
  crossed.AddVariable({2, 1, false, 0});
  EXPECT_EQ(SolveMip(crossed).status().code(),
            absl::StatusCode::kInvalidArgument);
  MipModel absent;
  absent.AddRow({{0, 1}}, 1);
  EXPECT_EQ(SolveMip(absent).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Random knapsack-like rows, compared with the best of all 2^10 choices.
TEST_F(MipTest, EqualsBruteForceOnRandomProblems) {
  SKIP_WITHOUT_CBC();
  std::mt19937 random(7);
  for (int round = 0; round < 25; ++round) {
    constexpr int kVariables = 10;
    MipModel model;
    for (int i = 0; i < kVariables; ++i) {
      model.AddVariable({0, 1, true, static_cast<double>(random() % 41) - 20});
    }
    for (int r = 0; r < 4; ++r) {
      std::vector<std::pair<int, double>> terms;
      for (int i = 0; i < kVariables; ++i) {
        terms.emplace_back(i, static_cast<double>(random() % 21) - 10);
      }
      model.AddRow(terms, -15, static_cast<double>(random() % 10));
    }
    double best = kInfinity;
    for (int bits = 0; bits < 1 << kVariables; ++bits) {
      std::vector<double> values;
      double cost = 0;
      for (int i = 0; i < kVariables; ++i) {
        values.push_back(bits >> i & 1);
        cost += values.back() * model.variables[i].cost;
      }
      if (LargestViolation(model, values) == 0) best = std::min(best, cost);
    }
    const MipResult result = Solved(model);
    ASSERT_EQ(result.state,
              best == kInfinity ? State::kInfeasible : State::kOptimal);
    EXPECT_EQ(result.objective, best);
  }
}

// Returns the program that minimizes the largest stage. x[i][s]: layer i is in
// stage s or later.
MipModel PartitionModel(const std::vector<double>& seconds, int num_stages) {
  MipModel model;
  const int n = static_cast<int>(seconds.size());
  const int largest = model.AddVariable({0, kInfinity, false, 1});
  std::vector<std::vector<int>> x(n);
  for (int i = 0; i < n; ++i) {
    for (int s = 0; s <= num_stages; ++s) {
      const bool first = s == 0 || i == n - 1, never = s == num_stages;
      x[i].push_back(
          model.AddVariable({first && !never ? 1.0 : 0.0,
                             never || (i == 0 && s > 0) ? 0.0 : 1.0, true, 0}));
      if (s > 0) model.AddRow({{x[i][s - 1], 1}, {x[i][s], -1}}, 0);
      if (i > 0) model.AddRow({{x[i][s], 1}, {x[i - 1][s], -1}}, 0);
    }
  }
  for (int s = 0; s < num_stages; ++s) {
    std::vector<std::pair<int, double>> time = {{largest, 1}}, count;
    for (int i = 0; i < n; ++i) {
      time.insert(time.end(),
                  {{x[i][s], -seconds[i]}, {x[i][s + 1], seconds[i]}});
      count.insert(count.end(), {{x[i][s], 1}, {x[i][s + 1], -1}});
    }
    model.AddRow(time, 0);
    model.AddRow(count, 1);
  }
  return model;
}

TEST_F(MipTest, CutsChainsAsTheDynamicProgramDoes) {
  SKIP_WITHOUT_CBC();
  std::mt19937 random(3);
  for (int round = 0; round < 25; ++round) {
    const int n = 4 + static_cast<int>(random() % 8);
    const int num_stages = 2 + static_cast<int>(random() % 3);
    std::vector<double> seconds;
    for (int i = 0; i < n; ++i) {
      seconds.push_back(1 + static_cast<double>(random() % 1000) / 8);
    }
    const auto partition = models::PartitionBalanced(seconds, num_stages);
    ASSERT_TRUE(partition.ok());
    double largest = 0;
    for (int s = 0; s < num_stages; ++s) {
      double sum = 0;
      for (int i = partition->first[s]; i < partition->first[s + 1]; ++i) {
        sum += seconds[i];
      }
      largest = std::max(largest, sum);
    }
    const MipResult result = Solved(PartitionModel(seconds, num_stages));
    ASSERT_EQ(result.state, State::kOptimal);
    EXPECT_NEAR(result.objective, largest, 1e-9 * largest);
  }
}

// Returns a number partitioning problem with an unmanageable search tree.
MipModel Hard(int num_variables) {
  MipModel model;
  std::mt19937 random(5);
  std::vector<std::pair<int, double>> terms;
  double sum = 0;
  const int above = model.AddVariable({0, kInfinity, false, 1});
  const int below = model.AddVariable({0, kInfinity, false, 1});
  for (int i = 0; i < num_variables; ++i) {
    const double size = 1e5 + static_cast<double>(random() % 900001);
    terms.emplace_back(model.AddBoolean(), size);
    sum += size;
  }
  terms.emplace_back(above, -1);
  terms.emplace_back(below, 1);
  const double half = std::floor(sum / 2) + 0.5;  // never reached exactly
  model.AddRow(terms, half, half);
  return model;
}

TEST_F(MipTest, SaysWhenTheTimeWasUpAndNothingIsProven) {
  SKIP_WITHOUT_CBC();
  const MipResult result = Solved(Hard(60), {.seconds = 1});
  EXPECT_EQ(result.state, State::kFeasible);
  EXPECT_TRUE(result.has_values());
  EXPECT_LT(result.bound, result.objective);
  EXPECT_GE(result.bound, 0);
  EXPECT_THAT(Describe(result), HasSubstr("not proven"));
}

TEST_F(MipTest, TakesAStartAndIsNeverWorse) {
  SKIP_WITHOUT_CBC();
  MipModel model = Hard(60);
  std::vector<double> start(model.variables.size(), 0);
  start[1] = model.rows[0].lower;  // nothing chosen: all is below
  const MipResult result = Solved(model, {.seconds = 1, .start = start});
  ASSERT_TRUE(result.has_values());
  EXPECT_LE(result.objective, start[1]);
}

TEST_F(MipTest, KillsASolverThatIgnoresItsTimeWithAllItsChildren) {
  const std::string pid_file = folder_ + "/pid";
  const std::string script =
      Script(absl::StrCat("sleep 1000 & echo $! >", pid_file, "; sleep 1000"));
  const auto result = SolveMip(
      Knapsack(), {.seconds = 0.2, .grace_seconds = 0.2, .solver = script});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->was_killed);
  EXPECT_EQ(result->state, State::kUnknown);
  EXPECT_EQ(Describe(*result), "no result within the time limit");
  pid_t grandchild = 0;
  std::ifstream(pid_file) >> grandchild;
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(EndsSoon(grandchild));
  std::filesystem::remove(pid_file);
  EXPECT_EQ(NumLeft(), 0u);
  std::filesystem::remove(script);
}

TEST_F(MipTest, TheSolverDiesWithItsParent) {
  const std::string pid_file = folder_ + "/pid";
  const std::string script =
      Script(absl::StrCat("echo $$ >", pid_file, "; exec sleep 1000"));
  const pid_t parent = fork();
  if (parent == 0) {
    (void)SolveMip(Knapsack(), {.seconds = 1000, .solver = script});
    _exit(0);
  }
  pid_t child = 0;
  for (int i = 0; i < 500 && child == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream(pid_file) >> child;
  }
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(EndsSoon(child));
  std::filesystem::remove(pid_file);
  EXPECT_EQ(NumLeft(), 0u);
  std::filesystem::remove(script);
}

TEST_F(MipTest, ASolverThatDiesIsAnErrorThatSaysSo) {
  const std::string script = Script("echo out of memory; kill -9 $$");
  const auto result = SolveMip(Knapsack(), {.solver = script});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("exit code 137"));
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("out of memory"));
  EXPECT_EQ(NumLeft(), 0u);
  std::filesystem::remove(script);
}

TEST_F(MipTest, WithoutASolverItSaysWhatToInstall) {
  const auto result = SolveMip(Knapsack(), {.solver = "no-such-cbc"});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("Debian: coinor-cbc"));
}

}  // namespace weir::plan::mip_test
