// SPDX-License-Identifier: Apache-2.0
// Checks that results which a FastSimulator or Bounder caches for one scenario
// are not used for others: each field of a scenario is changed on its own, and
// the answer must equal that of a fresh object.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "sim/bounds/bound.h"
#include "sim/fast/fast_simulator.h"

namespace weir::sim::fast_cache_test {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Answer {
  bool came = false;
  int code = 0;
  double seconds = 0, any_order_seconds = 0, peaks = 0;

  bool operator==(const Answer&) const = default;
};

// A scenario with one changed field, and the name of the field.
struct Variant {
  std::string field;
  scenarios::ResolvedScenario scenario;
};

// Calls `use` after each change of a scalar field of the message, and then
// restores the field. Doubles change in the ninth digit, integers by one and by
// a factor of two, Booleans and enums to every other value.
class EachField {
 public:
  EachField(Message* root, std::function<void(const std::string&)> use)
      : root_(root), use_(std::move(use)) {}

  void Run() { Visit(root_, ""); }

 private:
  void Visit(Message* message, const std::string& path) {
    const auto* descriptor = message->GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const std::string name = path + "." + field->name();
      if (field->is_repeated()) {
        VisitAll(message, field, name);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const auto* reflection = message->GetReflection();
        if (reflection->HasField(*message, field)) {
          Visit(reflection->MutableMessage(message, field), name);
        }
      } else {
        Change(message, field, name);
      }
    }
  }

  void VisitAll(Message* message, const FieldDescriptor* field,
                const std::string& name) {
    const auto* reflection = message->GetReflection();
    const int size = reflection->FieldSize(*message, field);
    // The first and the last element are sufficient.
    for (int k = 0; k < size; k += std::max(size - 1, 1)) {
      const std::string one = name + "[" + std::to_string(k) + "]";
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Visit(reflection->MutableRepeatedMessage(message, field, k), one);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
        const uint32_t was = reflection->GetRepeatedUInt32(*message, field, k);
        reflection->SetRepeatedUInt32(message, field, k, was + 1);
        use_(one);
        reflection->SetRepeatedUInt32(message, field, k, was);
      }
    }
  }

  void Change(Message* message, const FieldDescriptor* field,
              const std::string& name) {
    const auto* reflection = message->GetReflection();
    const bool was_there =
        !field->has_presence() || reflection->HasField(*message, field);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const double was = reflection->GetDouble(*message, field);
        reflection->SetDouble(message, field,
                              was == 0 ? 1e-3 : was * (1 + 1e-8));
        use_(name);
        reflection->SetDouble(message, field, was);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const uint32_t was = reflection->GetUInt32(*message, field);
        for (const uint32_t other : {was + 1, 2 * was}) {
          reflection->SetUInt32(message, field, other);
          use_(name);
        }
        reflection->SetUInt32(message, field, was);
        break;
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool was = reflection->GetBool(*message, field);
        reflection->SetBool(message, field, !was);
        use_(name);
        reflection->SetBool(message, field, was);
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int was = reflection->GetEnumValue(*message, field);
        for (int i = 0; i < field->enum_type()->value_count(); ++i) {
          const int other = field->enum_type()->value(i)->number();
          if (other == was) continue;
          reflection->SetEnumValue(message, field, other);
          use_(name);
        }
        reflection->SetEnumValue(message, field, was);
        break;
      }
      default:
        break;  // strings are names of data in other messages
    }
    if (!was_there) reflection->ClearField(message, field);
  }

  Message* root_;
  std::function<void(const std::string&)> use_;
};

std::vector<Variant> VariantsOf(const Scenario& scenario, bool of_files) {
  std::vector<Variant> variants;
  Scenario asked = scenario;
  EachField(&asked, [&](const std::string& field) {
    auto resolved = scenarios::ResolveScenario("test", asked);
    if (resolved.ok()) variants.push_back({field, *std::move(resolved)});
  }).Run();
  for (const char* schedule : {"gpipe", "zb-h1", "pipedream-2bw", "chimera"}) {
    asked.set_schedule(schedule);
    auto resolved = scenarios::ResolveScenario("test", asked);
    if (resolved.ok()) variants.push_back({schedule, *std::move(resolved)});
  }
  asked.set_schedule(scenario.schedule());
  asked.mutable_parallelism()->set_order("tp-pp-dp");
  auto other = scenarios::ResolveScenario("test", asked);
  if (other.ok()) variants.push_back({"order", *std::move(other)});
  auto resolved = scenarios::ResolveScenario("test", scenario);
  if (!resolved.ok() || resolved->given_costs || !of_files) return variants;
  const auto add = [&](const std::string& field) {
    if (!scenarios::ValidateCluster("test", resolved->cluster).ok()) return;
    variants.push_back({field, *resolved});
  };
  EachField(&resolved->cluster, add).Run();
  EachField(&resolved->device, add).Run();
  EachField(&resolved->runtime, add).Run();
  std::swap(resolved->placement.gpus[0], resolved->placement.gpus[1]);
  add("placement");
  resolved->other_devices = {resolved->device};
  resolved->other_devices[0].mutable_kernel_seconds()->set_value(1e-3);
  resolved->gpu_device.assign(scenarios::NumGpus(resolved->cluster), 0);
  for (int gpu : {0, 1}) {
    resolved->gpu_device[gpu] = 1;
    add("gpu_device");
    resolved->gpu_device[gpu] = 0;
  }
  return variants;
}

// Runs `ask` in a child process, so that its caches are discarded.
Answer InChild(const std::function<Answer()>& ask, Answer* shared) {
  *shared = Answer();
  const pid_t child = fork();
  if (child == 0) {
    *shared = ask();
    shared->came = true;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return *shared;
}

Answer FastAnswer(FastSimulator* ranker,
                  const scenarios::ResolvedScenario& scenario) {
  Answer answer;
  const auto run = ranker->Estimate(scenario);
  answer.code = static_cast<int>(run.status().code());
  if (!run.ok()) return answer;
  answer.seconds = run->batch_seconds;
  for (double peak : run->peak_bytes) answer.peaks += peak;
  return answer;
}

Answer BoundAnswer(Bounder* bounder,
                   const scenarios::ResolvedScenario& scenario) {
  Answer answer;
  const auto bound = bounder->Bound(scenario);
  answer.code = static_cast<int>(bound.status().code());
  if (!bound.ok()) return answer;
  answer.seconds = bound->batch_seconds;
  answer.any_order_seconds = bound->any_order_seconds;
  for (double peak : bound->peak_bytes) answer.peaks += peak;
  return answer;
}

// `ask` evaluates scenarios one after another and returns the last answer.
void Compare(const scenarios::ResolvedScenario& base,
             const std::vector<Variant>& variants,
             const std::function<Answer(
                 const std::vector<const scenarios::ResolvedScenario*>&)>& ask,
             int least_told_apart) {
  auto* shared =
      static_cast<Answer*>(mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const Answer first = InChild([&] { return ask({&base}); }, shared);
  ASSERT_TRUE(first.came);
  int num_told_apart = 0;
  for (const Variant& variant : variants) {
    const scenarios::ResolvedScenario& scenario = variant.scenario;
    const Answer alone = InChild([&] { return ask({&scenario}); }, shared);
    if (!alone.came) continue;
    const Answer after = InChild(
        [&] {
          return ask({&base, &scenario});
        },
        shared);
    EXPECT_TRUE(after == alone)
        << variant.field << ": " << after.seconds << " s, " << after.peaks
        << " bytes after the base, alone " << alone.seconds << " s, "
        << alone.peaks << " bytes; base " << first.seconds;
    num_told_apart += !(alone == first);
  }
  munmap(shared, sizeof(Answer));
  EXPECT_GE(num_told_apart, least_told_apart);
}

struct Base {
  const char* text;
  int least_told_apart;
};

std::vector<Base> Bases() {
  return {
      {R"(schedule: "1f1b" cluster: "dgx-h100" num_nodes: 2
          parallelism { tensor: 2 data: 2 pipeline: 2 expert: 2
                        sequence_parallel: true }
          batch { microbatch_size: 1 global_batch_size: 16
                  sequence_length: 256 }
          transformer { num_layers: 4 hidden_size: 512 num_heads: 8
                        vocabulary_size: 8192 num_positions: 512 causal: true
                        tied_embeddings: true num_experts: 4
                        experts_per_token: 2 })",
       60},
      {R"(schedule: "1f1b" cluster: "p3-16xlarge" num_nodes: 2
          parallelism { tensor: 2 data: 2 pipeline: 4 chunks: 1 }
          batch { microbatch_size: 1 global_batch_size: 48
                  sequence_length: 256 }
          training { distributed_optimizer: true precision: FP32 }
          communication { transfers: BLOCKING gradient_reduction:
                          REDUCTION_OVERLAPPED }
          transformer { num_layers: 8 hidden_size: 512 num_heads: 8
                        vocabulary_size: 8192 num_positions: 512 causal: true
                        })",
       40},
      {R"(schedule: "1f1b" cluster: "dgx-a100" num_nodes: 2
          parallelism { data: 2 pipeline: 2 }
          batch { microbatch_size: 1 global_batch_size: 16
                  sequence_length: 256
                  packed_sequences { log_normal { mean: 60 deviation: 40 } } }
          training { flash_attention: true }
          transformer { num_layers: 4 hidden_size: 512 num_heads: 8
                        vocabulary_size: 8192 num_positions: 512 causal: true
                        })",
       40},
      {R"(schedule: "pipedream-2bw"
          parallelism { pipeline: 3 } num_microbatches: 6
          costs { stages { forward_seconds: 0.3
                              backward_input_seconds: 0.3
                              backward_weight_seconds: 0.2
                              prediction_seconds: 0.1 codec_seconds: 0.1
                              activation_bytes: 3 }
                     hop_seconds: 0.12345678 })",
       5},
      {R"(schedule: "zb-h1"
          parallelism { pipeline: 3 } num_microbatches: 60
          costs { stages { forward_seconds: 0.3
                              backward_input_seconds: 0.3
                              backward_weight_seconds: 0.2
                              activation_bytes: 3 }
                     hop_seconds: 0.12345678 })",
       5},
  };
}

class FastCacheTest : public testing::TestWithParam<int> {
 protected:
  FastCacheTest() {
    const absl::Status parsed =
        ParseTextProto("test", Bases()[GetParam()].text, &scenario_);
    EXPECT_TRUE(parsed.ok()) << parsed;
    auto resolved = scenarios::ResolveScenario("test", scenario_);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    base_ = *std::move(resolved);
  }

  Scenario scenario_;
  scenarios::ResolvedScenario base_;
};

TEST_P(FastCacheTest, AFastSimulatorAnswersAsIfNothingWasAskedBefore) {
  Compare(
      base_, VariantsOf(scenario_, true),
      [](const std::vector<const scenarios::ResolvedScenario*>& asked) {
        FastSimulator ranker;
        Answer answer;
        for (const auto* one : asked) answer = FastAnswer(&ranker, *one);
        return answer;
      },
      Bases()[GetParam()].least_told_apart);
}

// A Bounder requires that the model, cluster and device have the contents of
// the names in the scenario, so only fields of the scenario vary.
TEST_P(FastCacheTest, ABounderAnswersAsIfNothingWasAskedBefore) {
  Compare(
      base_, VariantsOf(scenario_, false),
      [](const std::vector<const scenarios::ResolvedScenario*>& asked) {
        Bounder bounder;
        Answer answer;
        for (const auto* one : asked) answer = BoundAnswer(&bounder, *one);
        return answer;
      },
      Bases()[GetParam()].least_told_apart / 4);
}

INSTANTIATE_TEST_SUITE_P(Bases, FastCacheTest, testing::Range(0, 5));

}  // namespace weir::sim::fast_cache_test
