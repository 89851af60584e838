// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/rank_work.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::calibrate::rank_work_test {

using testing::ElementsAre;
using testing::IsEmpty;

// Records its calls.
class LoggingCommunicator : public Communicator {
 public:
  explicit LoggingCommunicator(std::vector<std::string>* calls)
      : calls_(calls) {}

  absl::StatusOr<double> TimeCollective(models::CollectiveKind kind,
                                        double bytes,
                                        int num_repeats) override {
    calls_->push_back(absl::StrCat(Name(kind), " ", bytes, " ", num_repeats));
    return 0.25;
  }
  absl::StatusOr<double> TimePair(PairMode mode, int from, int to, double bytes,
                                  int num_repeats) override {
    const char* const name = mode == PairMode::kOneWay     ? "one_way"
                             : mode == PairMode::kBothWays ? "both_ways"
                                                           : "ping_pong";
    calls_->push_back(
        absl::StrCat(name, " ", from, " ", to, " ", bytes, " ", num_repeats));
    return 0.5;
  }

 private:
  std::vector<std::string>* const calls_;
};

class LoggingTransport : public Transport {
 public:
  explicit LoggingTransport(std::vector<std::string>* calls) : calls_(calls) {}

  const Provenance& provenance() const override { return provenance_; }
  std::string gpu_address() const override { return "0000:01:00.0"; }
  std::vector<std::string> switch_addresses() const override { return {}; }
  double memory_in_use_bytes() override { return 1e9; }
  absl::StatusOr<std::string> MakeId() override { return "id"; }
  absl::StatusOr<std::unique_ptr<Communicator>> Join(absl::string_view, int,
                                                     int) override {
    return std::make_unique<LoggingCommunicator>(calls_);
  }

 private:
  std::vector<std::string>* const calls_;
  const Provenance provenance_;
};

class RankWorkTest : public testing::Test {
 protected:
  RankWorkTest()
      : work_(RankLaunch(), TransportRequest(),
              [this](const TransportRequest&)
                  -> absl::StatusOr<std::unique_ptr<Transport>> {
                return std::make_unique<LoggingTransport>(&calls_);
              }) {}

  Answer Perform(Request::Do what) {
    Request request;
    request.set_what(what);
    return work_.Perform(request);
  }
  void Join() {
    ASSERT_EQ(Perform(Request::PREPARE).error(), "");
    ASSERT_EQ(Perform(Request::JOIN).error(), "");
  }

  std::vector<std::string> calls_;
  RankWork work_;
};

TEST_F(RankWorkTest, TimesEveryModeOfAPair) {
  Join();
  Request request;
  request.set_what(Request::TIME_PAIR);
  request.set_from(2);
  request.set_to(5);
  request.set_bytes(64);
  request.set_num_repeats(3);
  for (const Request::PairMode mode :
       {Request::ONE_WAY, Request::BOTH_WAYS, Request::PING_PONG}) {
    request.set_pair_mode(mode);
    const Answer answer = work_.Perform(request);
    EXPECT_EQ(answer.error(), "");
    EXPECT_EQ(answer.seconds(), 0.5);
  }
  EXPECT_THAT(calls_, ElementsAre("one_way 2 5 64 3", "both_ways 2 5 64 3",
                                  "ping_pong 2 5 64 3"));
}

TEST_F(RankWorkTest, TimesEveryCollective) {
  Join();
  Request request;
  request.set_what(Request::TIME_COLLECTIVE);
  request.set_bytes(1024);
  request.set_num_repeats(2);
  for (const Request::Collective collective :
       {Request::ALL_REDUCE, Request::ALL_GATHER, Request::REDUCE_SCATTER,
        Request::ALL_TO_ALL}) {
    request.set_collective(collective);
    const Answer answer = work_.Perform(request);
    EXPECT_EQ(answer.error(), "");
    EXPECT_EQ(answer.seconds(), 0.25);
  }
  EXPECT_THAT(calls_,
              ElementsAre("all_reduce 1024 2", "all_gather 1024 2",
                          "reduce_scatter 1024 2", "all_to_all 1024 2"));
}

TEST_F(RankWorkTest, ReportsUnknownModesAndCollectives) {
  Join();
  EXPECT_EQ(Perform(Request::TIME_PAIR).error(),
            "rank 0 requests an operation with pair_mode 0, expected 1 to 3");
  EXPECT_EQ(Perform(Request::TIME_COLLECTIVE).error(),
            "rank 0 requests an operation with collective 0, expected 1 to 4");
  Request request;
  request.set_what(Request::TIME_COLLECTIVE);
  request.set_collective(static_cast<Request::Collective>(7));
  request.set_pair_mode(Request::ONE_WAY);
  EXPECT_EQ(work_.Perform(request).error(),
            "rank 0 requests an operation with collective 7, expected 1 to 4");
  EXPECT_EQ(Perform(static_cast<Request::Do>(99)).error(),
            "rank 0 requests an unknown operation");
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(RankWorkTest, ReportsOperationsOutOfOrder) {
  EXPECT_EQ(Perform(Request::MAKE_ID).error(),
            "rank 0 requests MAKE_ID before PREPARE");
  EXPECT_EQ(Perform(Request::JOIN).error(),
            "rank 0 requests JOIN before PREPARE");
  ASSERT_EQ(Perform(Request::PREPARE).error(), "");
  EXPECT_EQ(Perform(Request::TIME_PAIR).error(),
            "rank 0 requests TIME_PAIR before JOIN");
  ASSERT_EQ(Perform(Request::JOIN).error(), "");
  ASSERT_EQ(Perform(Request::LEAVE).error(), "");
  EXPECT_EQ(Perform(Request::TIME_COLLECTIVE).error(),
            "rank 0 requests TIME_COLLECTIVE before JOIN");
  EXPECT_THAT(calls_, IsEmpty());
}

}  // namespace weir::calibrate::rank_work_test
