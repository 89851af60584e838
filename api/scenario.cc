// SPDX-License-Identifier: Apache-2.0
#include "weir/scenario.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "api/keep_assets.h"
#include "api/status.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/proto_json.h"
#include "base/textproto.h"
#include "scenarios/costs.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario.pb.h"

namespace weir::api {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

weir::Scenario MessageOf(const std::string& label, const std::string& text) {
  weir::Scenario message;
  ThrowUnlessOk(ParseProtoText(label, text, &message));
  return message;
}

// Clears the lists of `target` that `changes` has, at every depth.
void ClearLists(const Message& changes, Message* target) {
  const auto* reflection = changes.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(changes, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      reflection->ClearField(target, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
               reflection->HasField(*target, field)) {
      ClearLists(reflection->GetMessage(changes, field),
                 reflection->MutableMessage(target, field));
    }
  }
}

}  // namespace

Scenario Scenario::Load(const std::string& preset_or_path) {
  KeepAssets();
  return Scenario(
      preset_or_path,
      PrintTextProto(ValueOrThrow(scenarios::LoadScenario(preset_or_path))));
}

Scenario Scenario::Parse(const std::string& text, const std::string& label) {
  return Scenario(label, PrintTextProto(MessageOf(label, text)));
}

Scenario Scenario::FromCosts(const PipelineShape& shape,
                             const CostModel& model) {
  constexpr double kMost = 1 << 20;
  Problems problems("pipeline");
  problems.CheckRange("num_ranks", shape.num_ranks, 1, kMost);
  problems.CheckRange("num_chunks", shape.num_chunks, 1, kMost);
  problems.CheckRange("num_microbatches", shape.num_microbatches, 1, kMost);
  ThrowUnlessOk(problems.ToStatus());
  problems.CheckRange("num_ranks x num_chunks",
                      1.0 * shape.num_ranks * shape.num_chunks, 1, kMost);
  ThrowUnlessOk(problems.ToStatus());

  weir::Scenario message;
  message.set_name("given costs");
  message.set_schedule(shape.schedule);
  message.set_num_microbatches(shape.num_microbatches);
  message.mutable_parallelism()->set_pipeline(shape.num_ranks);
  message.mutable_parallelism()->set_chunks(shape.num_chunks);
  GivenCosts& costs = *message.mutable_costs();
  costs.set_hop_seconds(shape.hop_seconds);
  const int num_stages = shape.num_ranks * shape.num_chunks;
  for (int i = 0; i < num_stages; ++i) {
    const StageCosts price = model({.stage = i, .num_stages = num_stages});
    GivenCosts::Stage& stage = *costs.add_stages();
    stage.set_forward_seconds(price.forward_seconds);
    stage.set_backward_input_seconds(price.backward_input_seconds);
    stage.set_backward_weight_seconds(price.backward_weight_seconds);
    stage.set_activation_bytes(price.activation_bytes);
  }
  scenarios::CheckCosts(problems, "costs.", costs);
  ThrowUnlessOk(problems.ToStatus());
  return Scenario("pipeline", PrintTextProto(message));
}

Scenario& Scenario::Set(const std::string& text) {
  const weir::Scenario changes = MessageOf("Scenario::Set", text);
  weir::Scenario message = MessageOf(label_, text_);
  ClearLists(changes, &message);
  message.MergeFrom(changes);
  text_ = PrintTextProto(message);
  return *this;
}

Scenario& Scenario::SetSchedule(const std::string& name) {
  weir::Scenario message = MessageOf(label_, text_);
  message.set_schedule(name);
  text_ = PrintTextProto(message);
  return *this;
}

std::vector<std::string> ScenarioPresets() {
  KeepAssets();
  return ListAssets("scenarios/presets");
}

std::vector<std::string> ModelPresets() {
  KeepAssets();
  return ListAssets("models/presets");
}

std::vector<std::string> ClusterPresets() {
  KeepAssets();
  return ListAssets("scenarios/cluster/presets");
}

}  // namespace weir::api
