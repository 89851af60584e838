// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/launch.h"

#include <map>
#include <ostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::calibrate::launch_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Environment Of(const Variables& variables) {
  return [variables](const char* name) -> const char* {
    static thread_local std::string value;
    const auto found = variables.find(name);
    if (found == variables.end()) return nullptr;
    value = found->second;
    return value.c_str();
  };
}

TEST(ReadLaunchTest, WithoutALauncherThereIsOneRank) {
  const auto launch = ReadLaunch(Of({}));
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->launcher, "none");
  EXPECT_EQ(launch->rank, 0);
  EXPECT_EQ(launch->num_ranks, 1);
  EXPECT_FALSE(launch->node.empty());
}

struct Case {
  std::string name;
  Variables variables;
  std::string launcher;
  int local_rank;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LauncherTest : public ::testing::TestWithParam<Case> {};

TEST_P(LauncherTest, SaysWhichRankThisIs) {
  const auto launch = ReadLaunch(Of(GetParam().variables));
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->launcher, GetParam().launcher);
  EXPECT_EQ(launch->rank, 5);
  EXPECT_EQ(launch->num_ranks, 8);
  EXPECT_EQ(launch->local_rank, GetParam().local_rank);
}

INSTANTIATE_TEST_SUITE_P(
    All, LauncherTest,
    ::testing::Values(
        Case{"Torchrun",
             {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}},
             "torchrun",
             1},
        Case{"OpenMpi",
             {{"OMPI_COMM_WORLD_RANK", "5"},
              {"OMPI_COMM_WORLD_SIZE", "8"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
              {"PMIX_RANK", "5"}},
             "Open MPI",
             1},
        Case{"Pmi", {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}, "PMI", -1},
        Case{"Srun",
             {{"SLURM_PROCID", "5"},
              {"SLURM_STEP_NUM_TASKS", "8"},
              {"SLURM_NTASKS", "16"},
              {"SLURM_LOCALID", "1"}},
             "Slurm",
             1},
        Case{"MpirunInAJob",  // srun started mpirun's daemon on the node
             {{"OMPI_COMM_WORLD_RANK", "5"},
              {"OMPI_COMM_WORLD_SIZE", "8"},
              {"SLURM_PROCID", "1"},
              {"SLURM_STEP_NUM_TASKS", "2"}},
             "Open MPI",
             -1},
        Case{"TwoThatAgree",
             {{"RANK", "5"},
              {"WORLD_SIZE", "8"},
              {"OMPI_COMM_WORLD_RANK", "5"},
              {"OMPI_COMM_WORLD_SIZE", "8"}},
             "torchrun",
             -1}),
    [](const auto& info) { return info.param.name; });

TEST(ReadLaunchTest, SlurmSaysNodeAndTopology) {
  const auto launch =
      ReadLaunch(Of({{"SLURM_PROCID", "0"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_STEP_NUM_NODES", "1"},
                     {"SLURMD_NODENAME", "n7"},
                     {"SLURM_TOPOLOGY_ADDR", "s.l.n7"},
                     {"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.node"}}));
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->node, "n7");
  EXPECT_EQ(launch->topology_address, "s.l.n7");
  EXPECT_EQ(launch->num_local, 2);
}

struct BadCase {
  std::string name;
  Variables variables;
  std::string message;
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.name; }

class BadLaunchTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadLaunchTest, NamesVariableFoundAndExpected) {
  const auto launch = ReadLaunch(Of(GetParam().variables));
  ASSERT_FALSE(launch.ok());
  EXPECT_EQ(launch.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(launch.status().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadLaunchTest,
    ::testing::Values(
        BadCase{"RankBeyondSize",
                {{"RANK", "8"}, {"WORLD_SIZE", "8"}},
                "environment: RANK is \"8\", expected a whole number from 0 to "
                "7"},
        BadCase{"NoNumber",
                {{"RANK", "one"}, {"WORLD_SIZE", "8"}},
                "environment: RANK is \"one\", expected a whole number from 0 "
                "to 7"},
        BadCase{"SizeMissing",
                {{"OMPI_COMM_WORLD_RANK", "1"}},
                "environment: OMPI_COMM_WORLD_SIZE is missing while "
                "OMPI_COMM_WORLD_RANK is 1, expected the number of ranks"},
        BadCase{"TwoThatDisagree",
                {{"RANK", "0"},
                 {"WORLD_SIZE", "8"},
                 {"OMPI_COMM_WORLD_RANK", "5"},
                 {"OMPI_COMM_WORLD_SIZE", "8"}},
                "environment: RANK is 0 and OMPI_COMM_WORLD_RANK is 5, "
                "expected equal values (unset the stale one)"},
        BadCase{"BatchScriptWithoutSrun",
                {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}},
                "environment: SLURM_STEP_NUM_TASKS is missing and SLURM_NTASKS "
                "is 8, expected to be started by srun"},
        BadCase{"PmixAlone",
                {{"PMIX_RANK", "3"}},
                "environment: PMIX_RANK is 3 but the number of ranks is "
                "unknown, expected RANK and WORLD_SIZE too"}),
    [](const auto& info) { return info.param.name; });

absl::StatusOr<std::string> NoProgram(const std::vector<std::string>&) {
  return absl::UnavailableError("not there");
}

RankLaunch LaunchBy(const std::string& launcher) {
  RankLaunch launch;
  launch.launcher = launcher;
  launch.rank = 1;
  launch.num_ranks = 4;
  return launch;
}

TEST(FindRendezvousTest, MasterAddressWins) {
  const auto found = FindRendezvous(
      LaunchBy("Slurm"), "",
      Of({{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "2950"}}), NoProgram);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->hosts, ElementsAre("n1"));
  EXPECT_THAT(found->ports, ElementsAre(2950));
}

TEST(FindRendezvousTest, TorchrunsOwnPortIsLeftToItsAgent) {
  const auto found =
      FindRendezvous(LaunchBy("torchrun"), "",
                     Of({{"MASTER_ADDR", "n1"},
                         {"MASTER_PORT", "2950"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
                     NoProgram);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->ports, ElementsAre(2951));
}

TEST(FindRendezvousTest, TheAddressOfSlurmsFirstNode) {
  const RunProgram run = [](const std::vector<std::string>& command)
      -> absl::StatusOr<std::string> {
    if (command[1] == "show") {
      EXPECT_EQ(command[3], "n[1-4]");
      return "n1\nn2\nn3\nn4\n";
    }
    return "NodeName=n1 Arch=x86_64 NodeAddr=127.0.0.1 Port=17001\n";
  };
  const auto found = FindRendezvous(
      LaunchBy("Slurm"), "",
      Of({{"SLURM_STEP_NODELIST", "n[1-4]"}, {"SLURM_JOB_ID", "7"}}), run);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->hosts, ElementsAre("127.0.0.1"));
  const auto other = FindRendezvous(
      LaunchBy("Slurm"), "",
      Of({{"SLURM_STEP_NODELIST", "n[1-4]"}, {"SLURM_JOB_ID", "8"}}), run);
  EXPECT_NE(found->ports, other->ports);
  EXPECT_NE(found->token, other->token);
}

TEST(FindRendezvousTest, MpirunsAddress) {
  const auto found =
      FindRendezvous(LaunchBy("Open MPI"), "",
                     Of({{"OMPI_MCA_orte_hnp_uri",
                          "3866361856.0;tcp://10.0.0.1,192.168.0.1:52003"}}),
                     NoProgram);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->hosts, ElementsAre("10.0.0.1", "192.168.0.1"));
}

TEST(FindRendezvousTest, RanksOfOneNodeMeetOnTheLoopbackInterface) {
  RankLaunch launch = LaunchBy("PMI");
  launch.num_local = 4;
  const auto found = FindRendezvous(launch, "", Of({}), NoProgram);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->hosts, ElementsAre("127.0.0.1"));
  EXPECT_TRUE(found->all_local);
}

TEST(FindRendezvousTest, SaysWhatToSetWhereNothingHelps) {
  EXPECT_THAT(std::string(FindRendezvous(LaunchBy("PMI"), "", Of({}), NoProgram)
                              .status()
                              .message()),
              AllOf(HasSubstr("--rendezvous FILE"), HasSubstr("MASTER_ADDR")));
  EXPECT_THAT(std::string(FindRendezvous(LaunchBy("torchrun"), "",
                                         Of({{"MASTER_ADDR", "n1"}}), NoProgram)
                              .status()
                              .message()),
              HasSubstr("MASTER_PORT is missing, expected a port"));
  EXPECT_THAT(
      std::string(FindRendezvous(LaunchBy("Slurm"), "", Of({}), NoProgram)
                      .status()
                      .message()),
      HasSubstr("cannot ask scontrol"));
}

TEST(FindRendezvousTest, TheUsersTokenWins) {
  const auto found = FindRendezvous(LaunchBy("torchrun"), "",
                                    Of({{"MASTER_ADDR", "n1"},
                                        {"MASTER_PORT", "2950"},
                                        {"WEIR_NETWORK_TOKEN", "secret"}}),
                                    NoProgram);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->token, "secret");
}

TEST(RunAndReadTest, ReadsWhatAProgramPrints) {
  const auto text = RunAndRead({"echo", "n1"});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "n1\n");
  EXPECT_FALSE(RunAndRead({"false"}).ok());
  EXPECT_FALSE(RunAndRead({"/no/such/program"}).ok());
}

}  // namespace weir::calibrate::launch_test
