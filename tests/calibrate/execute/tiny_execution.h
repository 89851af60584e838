// SPDX-License-Identifier: Apache-2.0
// Models that train in microseconds, and replays of them.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_TINY_EXECUTION_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_TINY_EXECUTION_H_

#include <gtest/gtest.h>

#include <string>

#include "calibrate/execute/execution_plan.h"
#include "schedules/registry.h"
#include "tests/calibrate/execute/reference/small_models.h"

namespace weir::calibrate {

// Returns a model with learned positions, LayerNorm, GELU, biases and tied
// embeddings.
inline Model TinyGpt(int num_layers) {
  Model model;
  Transformer& t = *model.mutable_transformer();
  t.set_num_layers(num_layers);
  t.set_hidden_size(8);
  t.set_num_heads(2);
  t.set_num_kv_heads(2);
  t.set_head_size(4);
  t.set_feed_forward_size(12);
  t.set_vocabulary_size(13);
  t.set_num_positions(6);
  t.set_attention_bias(true);
  t.set_attention_output_bias(true);
  t.set_feed_forward_bias(true);
  t.set_tied_embeddings(true);
  t.set_causal(true);
  return model;
}

// Returns a request with one layer per stage, two sequences of four tokens, and
// dropout.
inline ExecutionRequest TinyRequest(schedules::Schedule schedule,
                                    bool llama = false) {
  ExecutionRequest request;
  request.model =
      llama ? SmallLlama(schedule.num_stages) : TinyGpt(schedule.num_stages);
  request.schedule = std::move(schedule);
  request.spec.work.microbatch_size = 2;
  request.spec.work.sequence_length = 4;
  request.spec.format = ElementFormat::kFp32;
  request.spec.dropout = 0.1F;
  return request;
}

inline schedules::Schedule Generated(const std::string& name,
                                     const schedules::ScheduleSpec& spec) {
  auto schedule = schedules::GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << name << ": " << schedule.status();
  return schedule.ok() ? *std::move(schedule) : schedules::Schedule();
}

inline ExecutionPlan PlanOf(const ExecutionRequest& request) {
  auto plan = MakeExecutionPlan(request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ExecutionPlan();
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_TINY_EXECUTION_H_
