// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/measure_fabric.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "calibrate/fabric/transport.h"

namespace weir::calibrate {
namespace {

constexpr int kNumWarmUps = 5;
constexpr int kNumRepeats = 20;
constexpr int kFewestRepeats = 3;

// A timed operation: the request without bytes and repeats.
struct Timed {
  Request request;
  bool is_mean = false;  // over the ranks; otherwise the slowest
};

// Some ranks with a communicator between them.
class Session {
 public:
  Session(Leader* leader, std::vector<int> ranks, double timeout_seconds)
      : leader_(leader),
        ranks_(std::move(ranks)),
        budget_seconds_(timeout_seconds / 4) {}

  absl::Status Join(absl::string_view text) {
    Request make;
    make.set_what(Request::MAKE_ID);
    make.set_text(absl::StrCat("creating an id for ", text));
    ASSIGN_OR_RETURN(const std::vector<Answer> made,
                     leader_->SendAndWait({{ranks_[0], make}}));
    ASSIGN_OR_RETURN(before_, Barrier(text));
    Request join;
    join.set_what(Request::JOIN);
    join.set_text(absl::StrCat("joining ", text));
    join.set_id(made[0].id());
    join.set_num_ranks(ranks_.size());
    ASSIGN_OR_RETURN(const std::vector<Answer> joined, SendToAllAndWait(join));
    init_bytes_ = Growth(joined);
    return absl::OkStatus();
  }

  absl::Status Leave(absl::string_view text) {
    Request leave;
    leave.set_what(Request::LEAVE);
    leave.set_text(absl::StrCat("leaving ", text));
    return SendToAllAndWait(leave).status();
  }

  // Returns the time of a single run, which also sets up connections.
  absl::StatusOr<double> First(const Timed& timed, double bytes) {
    ASSIGN_OR_RETURN(const double seconds, Run(timed, bytes, 1));
    last_seconds_ = 0;  // does not predict the next size
    return seconds;
  }

  // Returns the seconds, or nullopt if it would take too long. `larger` is the
  // factor from the previous size.
  absl::StatusOr<std::optional<double>> Time(const Timed& timed, double bytes,
                                             double larger) {
    if (last_seconds_ * larger * kFewestRepeats > budget_seconds_) {
      return std::nullopt;
    }
    int warm_ups = kNumWarmUps;
    if (last_seconds_ * larger * kNumWarmUps > budget_seconds_) warm_ups = 1;
    ASSIGN_OR_RETURN(const double warm, Run(timed, bytes, warm_ups));
    if (warm * kFewestRepeats > budget_seconds_ * 2) return std::nullopt;
    RETURN_IF_ERROR(Barrier(timed.request.text()).status());
    const int repeats =
        warm * kNumRepeats < budget_seconds_
            ? kNumRepeats
            : std::max(kFewestRepeats,
                       static_cast<int>(budget_seconds_ / warm));
    ASSIGN_OR_RETURN(const double seconds, Run(timed, bytes, repeats));
    last_seconds_ = seconds;
    return std::optional<double>(seconds);
  }

  // Begins a new series of sizes.
  void Restart() { last_seconds_ = 0; }

  double init_bytes() const { return init_bytes_; }
  // Memory taken on the first rank since before it joined.
  double used_bytes() const { return used_bytes_; }

 private:
  absl::StatusOr<std::vector<Answer>> SendToAllAndWait(const Request& request) {
    std::vector<Order> orders;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      orders.push_back({ranks_[i], request});
      orders.back().request.set_rank(i);
    }
    return leader_->SendAndWait(std::move(orders));
  }

  absl::StatusOr<std::vector<Answer>> Barrier(absl::string_view text) {
    Request request;
    request.set_what(Request::ANSWER);
    request.set_text(std::string(text));
    return SendToAllAndWait(request);
  }

  double Growth(const std::vector<Answer>& answers) const {
    return answers[0].memory_bytes() - before_[0].memory_bytes();
  }

  absl::StatusOr<double> Run(const Timed& timed, double bytes, int repeats) {
    Request request = timed.request;
    request.set_bytes(bytes);
    request.set_num_repeats(repeats);
    request.set_text(
        absl::StrCat("timing ", request.text(), " of ", FormatBytes(bytes)));
    ASSIGN_OR_RETURN(const std::vector<Answer> answers,
                     SendToAllAndWait(request));
    used_bytes_ = Growth(answers);
    double sum = 0;
    double slowest = 0;
    for (const Answer& answer : answers) {
      sum += answer.seconds();
      slowest = std::max(slowest, answer.seconds());
    }
    const double seconds =
        timed.is_mean ? sum / static_cast<double>(answers.size()) : slowest;
    if (!(seconds > 0)) {
      return absl::InternalError(absl::StrCat(request.text(), " took ", seconds,
                                              " s, expected more than 0"));
    }
    return seconds;
  }

  Leader* const leader_;
  const std::vector<int> ranks_;
  const double budget_seconds_;
  std::vector<Answer> before_;
  double init_bytes_ = 0;
  double used_bytes_ = 0;
  double last_seconds_ = 0;
};

Request::Collective CollectiveOf(models::CollectiveKind kind) {
  switch (kind) {
    case models::CollectiveKind::kAllReduce:
      return Request::ALL_REDUCE;
    case models::CollectiveKind::kAllGather:
      return Request::ALL_GATHER;
    case models::CollectiveKind::kReduceScatter:
      return Request::REDUCE_SCATTER;
    case models::CollectiveKind::kAllToAll:
      return Request::ALL_TO_ALL;
    case models::CollectiveKind::kSendReceive:
      break;  // timed as pairs
  }
  return Request::COLLECTIVE_UNSPECIFIED;
}

Timed PairOf(Request::PairMode mode, int from, int to, absl::string_view text) {
  Timed timed;
  timed.request.set_what(Request::TIME_PAIR);
  timed.request.set_pair_mode(mode);
  timed.request.set_from(from);
  timed.request.set_to(to);
  timed.request.set_text(std::string(text));
  return timed;
}

class Measurer {
 public:
  Measurer(Leader* leader, const MeasureOptions& options,
           NetworkMeasurements* measured)
      : leader_(leader), options_(options), measured_(measured) {}

  absl::Status Run() {
    // Groups come first, so that memory taken once per process shows in the
    // first communicator.
    for (const GroupPlan& group : options_.groups) {
      RETURN_IF_ERROR(MeasureGroup(group));
      RETURN_IF_ERROR(options_.keep(*measured_));
    }
    if (measured_->positions.size() == 1) {
      RETURN_IF_ERROR(MeasurePair(LinkClass::SAME_GPU, {0, 0}));
      return options_.keep(*measured_);
    }
    for (const auto& [distance, pairs] : SamplePairs(
             measured_->positions, options_.pairs_per_class, options_.seed)) {
      for (const RankPair& pair : pairs) {
        RETURN_IF_ERROR(MeasurePair(distance, pair));
        RETURN_IF_ERROR(options_.keep(*measured_));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MeasurePair(LinkClass::Distance distance, const RankPair& pair) {
    const std::string text =
        absl::StrCat("ranks ", pair.from, " and ", pair.to);
    const bool self = pair.from == pair.to;
    std::vector<int> ranks = {pair.from};
    if (!self) ranks.push_back(pair.to);
    Session session(leader_, ranks, options_.timeout_seconds);
    RETURN_IF_ERROR(session.Join(text));
    const int to = self ? 0 : 1;
    const Timed one_way =
        PairOf(Request::ONE_WAY, 0, to, absl::StrCat("one way, ", text));
    PairTimes times;
    times.distance = distance;
    times.from = pair.from;
    times.to = pair.to;
    ASSIGN_OR_RETURN(times.first_seconds, session.First(one_way, kLeastBytes));
    times.memory = {session.init_bytes(),
                    session.used_bytes() - session.init_bytes()};
    // All modes of a size are measured directly after each other, so that drift
    // affects them equally.
    const Timed modes[] = {
        one_way,
        PairOf(Request::BOTH_WAYS, 0, to,
               absl::StrCat("bidirectional, ", text)),
        PairOf(Request::PING_PONG, 0, to, absl::StrCat("ping-pong, ", text))};
    double before = kLeastBytes;
    for (const double bytes :
         TransferSizes(options_.num_channels, options_.max_bytes)) {
      std::optional<double> seconds[3];
      for (int i = 0; i < 3; ++i) {
        // A ping-pong is the slowest mode and predicts the time of the next
        // size.
        ASSIGN_OR_RETURN(seconds[i],
                         session.Time(modes[i], bytes, bytes / before));
        if (!seconds[i].has_value()) break;
      }
      if (!seconds[2].has_value()) {
        Remark(absl::StrCat(text, ": no message of ", FormatBytes(bytes),
                            " or more: too slow for --timeout"));
        break;
      }
      times.rows.push_back({bytes, *seconds[0], *seconds[1], *seconds[2] / 2});
      before = bytes;
    }
    measured_->pairs.push_back(std::move(times));
    return session.Leave(text);
  }

  absl::Status MeasureGroup(const GroupPlan& group) {
    const std::string text = absl::StrCat("a group of ", group.text);
    Session session(leader_, group.ranks, options_.timeout_seconds);
    RETURN_IF_ERROR(session.Join(text));
    GroupMemory memory{
        group, measured_->memory.empty(), Farthest(group), {}, 0};
    bool first = true;
    for (const models::CollectiveKind kind :
         {models::CollectiveKind::kAllReduce,
          models::CollectiveKind::kAllGather,
          models::CollectiveKind::kReduceScatter,
          models::CollectiveKind::kAllToAll}) {
      ASSIGN_OR_RETURN(CollectiveTimes times,
                       MeasureCollective(kind, group, &session));
      if (first) {
        memory.collective = {session.init_bytes(),
                             session.used_bytes() - session.init_bytes()};
      }
      if (first) {
        // With one peer; an all-to-all would connect to all of them.
        const double before = session.used_bytes();
        const Timed pair =
            PairOf(Request::ONE_WAY, 0, 1, absl::StrCat("one way in ", text));
        RETURN_IF_ERROR(session.First(pair, kLeastBytes).status());
        memory.first_pair_bytes = session.used_bytes() - before;
      }
      first = false;
      measured_->collectives.push_back(std::move(times));
    }
    measured_->memory.push_back(std::move(memory));
    return session.Leave(text);
  }

  absl::StatusOr<CollectiveTimes> MeasureCollective(models::CollectiveKind kind,
                                                    const GroupPlan& group,
                                                    Session* session) {
    Timed timed;
    timed.is_mean = true;
    timed.request.set_what(Request::TIME_COLLECTIVE);
    timed.request.set_collective(CollectiveOf(kind));
    timed.request.set_text(absl::StrCat(Name(kind), " over ", group.text));
    CollectiveTimes times;
    times.kind = kind;
    times.group = group;
    times.distance = Farthest(group);
    session->Restart();
    ASSIGN_OR_RETURN(times.first_seconds, session->First(timed, kLeastBytes));
    for (const double bytes : CollectiveSizes(options_.max_bytes)) {
      // Every rank needs its own block.
      if (bytes < 16.0 * static_cast<double>(group.ranks.size())) continue;
      ASSIGN_OR_RETURN(const std::optional<double> seconds,
                       session->Time(timed, bytes, 2));
      if (!seconds.has_value()) {
        Remark(absl::StrCat(timed.request.text(), ": not of ",
                            FormatBytes(bytes),
                            " or more: too slow for --timeout"));
        break;
      }
      times.rows.push_back({bytes, *seconds});
    }
    return times;
  }

  LinkClass::Distance Farthest(const GroupPlan& group) const {
    LinkClass::Distance farthest = LinkClass::DISTANCE_UNSPECIFIED;
    for (const int rank : group.ranks) {
      for (const int other : group.ranks) {
        if (rank == other) continue;
        farthest = std::max(farthest, DistanceOf(measured_->positions[rank],
                                                 measured_->positions[other]));
      }
    }
    return farthest;
  }

  void Remark(std::string remark) {
    measured_->remarks.push_back(std::move(remark));
  }

  Leader* const leader_;
  const MeasureOptions& options_;
  NetworkMeasurements* const measured_;
};

}  // namespace

absl::Status MeasureNetwork(Leader* leader, const MeasureOptions& options,
                            NetworkMeasurements* measured) {
  return Measurer(leader, options, measured).Run();
}

}  // namespace weir::calibrate
