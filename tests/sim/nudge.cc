// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nudge.h"

#include <vector>

#include "absl/strings/match.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace weir::sim {
namespace {

using google::protobuf::FieldDescriptor;

bool IsRateOrLatency(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE &&
         (absl::StrContains(field.name(), "bytes_per_second") ||
          absl::EndsWith(field.name(), "latency_seconds"));
}

void Nudge(std::mt19937* random, google::protobuf::Message* message) {
  const auto& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        Nudge(random, reflection.MutableMessage(message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        Nudge(random, reflection.MutableRepeatedMessage(message, field, i));
      }
    } else if (IsRateOrLatency(*field)) {
      const double part = std::uniform_real_distribution<>(-1, 1)(*random);
      reflection.SetDouble(
          message, field,
          reflection.GetDouble(*message, field) * (1 + 1e-13 * part));
    }
  }
}

}  // namespace

void NudgeRates(std::mt19937* random, Cluster* cluster) {
  Nudge(random, cluster);
}

}  // namespace weir::sim
