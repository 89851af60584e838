// SPDX-License-Identifier: Apache-2.0
// Replays on the host, and the schedules that all replays must support.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTIONS_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTIONS_H_

#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate {

// Replays with ranks as threads or one after another.
inline absl::StatusOr<ExecutionRecord> TryReplay(const ExecutionPlan& plan,
                                                 bool threads) {
  const auto device = MakeHostDevice(plan, {.concurrent = threads});
  return ExecuteSchedule(plan, device.get());
}

inline ExecutionRecord Executed(const ExecutionPlan& plan, bool threads) {
  auto record = TryReplay(plan, threads);
  EXPECT_TRUE(record.ok()) << plan.schedule.name << ": " << record.status();
  return record.ok() ? *std::move(record) : ExecutionRecord();
}

struct NamedShape {
  std::string name;
  schedules::ScheduleSpec spec;

  friend void PrintTo(const NamedShape& shape, std::ostream* out) {
    *out << shape.name;
  }
};

// Returns every kind, with the options that change which weights are read or
// where stages are placed.
inline std::vector<NamedShape> AllShapes() {
  std::vector<NamedShape> shapes;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    const std::string name(kind.name);
    for (const schedules::ScheduleSpec& spec :
         {schedules::ScheduleSpec{4, 4, 1, 3},
          schedules::ScheduleSpec{4, 4, 1, 1},
          schedules::ScheduleSpec{4, 8, 1, 1},
          schedules::ScheduleSpec{4, 8, 2, 1},
          schedules::ScheduleSpec{4, 16, 2, 1}}) {
      if (!kind.check(spec).ok()) continue;
      shapes.push_back({name, spec});
      break;
    }
  }
  const schedules::ScheduleSpec batch = {4, 8, 1, 1}, stream = {4, 4, 1, 4};
  for (const char* name :
       {"gpipe:backward-order=forward", "chimera:pipelines=4",
        "chimera:concatenation=forward-doubling",
        "chimera:concatenation=backward-halving", "dapple-pa:memory-limit=2"}) {
    shapes.push_back({name, batch});
  }
  for (const char* name :
       {"pipedream:vertical-sync=yes", "pipedream:replicas=2-1-1",
        "pipemare:correction=none", "pipemare:order=1f1b",
        "pipelined-backprop:mitigation=linear-prediction",
        "pipelined-backprop:mitigation=spike-compensation",
        "timeprest:ahead=minibatch"}) {
    shapes.push_back({name, stream});
  }
  return shapes;
}

inline std::string TestName(const std::string& name) {
  std::string text;
  for (char c : name)
    text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTIONS_H_
