// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/placement.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::scenarios {
namespace {

// Computes the number of GPUs as a double, because it may overflow an int.
absl::Status CheckDegrees(absl::string_view where, int tensor, int data,
                          int pipeline, int num_gpus_available) {
  Problems problems(where);
  problems.CheckRange("tensor", tensor, 1, num_gpus_available);
  problems.CheckRange("data", data, 1, num_gpus_available);
  problems.CheckRange("pipeline", pipeline, 1, num_gpus_available);
  const double needed = 1.0 * tensor * data * pipeline;
  if (problems.empty() && needed > num_gpus_available) {
    problems.Add("",
                 absl::StrFormat(
                     "tensor %d x data %d x pipeline %d needs %.0f GPUs, but "
                     "the cluster has %d (--nodes sets the number of nodes)",
                     tensor, data, pipeline, needed, num_gpus_available));
  }
  return problems.ToStatus();
}

}  // namespace

absl::StatusOr<Placement> PlaceInOrder(absl::string_view where,
                                       absl::string_view order, int tensor,
                                       int data, int pipeline,
                                       int num_gpus_available) {
  RETURN_IF_ERROR(
      CheckDegrees(where, tensor, data, pipeline, num_gpus_available));
  const bool data_first = order == "tp-dp-pp";
  if (!data_first && order != "tp-pp-dp") {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": order is \"", order,
                     "\", expected \"tp-dp-pp\" or \"tp-pp-dp\""));
  }
  Placement placement{tensor, data, pipeline, {}};
  placement.gpus.reserve(placement.num_gpus());
  for (int replica = 0; replica < data; ++replica) {
    for (int rank = 0; rank < pipeline; ++rank) {
      const int group =
          data_first ? rank * data + replica : replica * pipeline + rank;
      for (int tensor_rank = 0; tensor_rank < tensor; ++tensor_rank)
        placement.gpus.push_back(group * tensor + tensor_rank);
    }
  }
  return placement;
}

absl::StatusOr<Placement> PlaceAsGiven(absl::string_view where,
                                       const std::vector<int>& gpus, int tensor,
                                       int data, int pipeline,
                                       int num_gpus_available) {
  RETURN_IF_ERROR(
      CheckDegrees(where, tensor, data, pipeline, num_gpus_available));
  Placement placement{tensor, data, pipeline, gpus};
  Problems problems(where);
  if (gpus.size() != static_cast<size_t>(placement.num_gpus())) {
    problems.Add(
        "", absl::StrFormat(
                "gpus lists %d GPUs, expected tensor %d x data %d x "
                "pipeline %d = %d",
                gpus.size(), tensor, data, pipeline, placement.num_gpus()));
  }
  std::vector<bool> taken(num_gpus_available);
  for (size_t i = 0; i < gpus.size(); ++i) {
    const std::string field = absl::StrFormat("gpus[%d]", i);
    if (gpus[i] < 0 || gpus[i] >= num_gpus_available) {
      problems.CheckRange(field, gpus[i], 0, num_gpus_available - 1);
    } else if (taken[gpus[i]]) {
      problems.Add(field, absl::StrCat("is GPU ", gpus[i],
                                       " again, expected each GPU once"));
    } else {
      taken[gpus[i]] = true;
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return placement;
}

}  // namespace weir::scenarios
