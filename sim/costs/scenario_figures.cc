// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/scenario_figures.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibrate/profile/figures.h"

namespace weir::sim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A number of a cluster, and all fields that contain it.
struct LinkNumber {
  std::string path;
  double value = 0;
  std::vector<std::pair<Message*, const FieldDescriptor*>> places;
};

// Works group by group; repeated fields inside a node are the same kind of
// link.
void CollectLinks(Message* message, const std::string& prefix,
                  std::vector<LinkNumber>* numbers) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      const double value = reflection.GetDouble(*message, field);
      auto at = std::find_if(
          numbers->begin(), numbers->end(), [&](const LinkNumber& known) {
            return known.path == path && known.value == value;
          });
      if (at == numbers->end()) at = numbers->insert(at, {path, value, {}});
      at->places.push_back({message, field});
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CollectLinks(reflection.MutableMessage(message, field), path + ".",
                   numbers);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      const bool group = field->name() == "groups";
      CollectLinks(
          reflection.MutableRepeatedMessage(message, field, i),
          group ? absl::StrCat(path, "[", i, "].") : absl::StrCat(path, "[]."),
          numbers);
    }
  }
}

ScenarioFigure FigureOf(const Cluster& cluster, const LinkNumber& number) {
  ScenarioFigure figure;
  figure.owner = cluster.name();
  figure.path = number.path;
  figure.value = number.value;
  const bool latency = absl::EndsWith(number.path, "latency_seconds");
  figure.kind = latency ? Figure::ASSUMED : Figure::DATASHEET;
  figure.source = "cluster description";
  return figure;
}

// Counts are not varied: one multiprocessor cannot change by 1 %, and with the
// same peak, more of them are slower each.
bool IsCount(absl::string_view path) {
  return absl::StartsWith(path.substr(path.rfind('.') + 1), "num_");
}

// All parameters, which are those of the messages in `scenario`.
struct Found {
  std::vector<ScenarioFigure> figures;
  std::vector<Figure*> in_profiles;  // the first of `figures`
  std::vector<LinkNumber> links;     // the rest of `figures`
};

Found Find(scenarios::ResolvedScenario* scenario) {
  Found found;
  const auto add = [&](const std::string& owner, Message* message) {
    for (const calibrate::NamedFigure& named : calibrate::FiguresOf(message)) {
      if (IsCount(named.path)) continue;
      const Figure& figure = *named.figure;
      found.figures.push_back({owner, named.path, figure.value(), figure.kind(),
                               figure.source(), named.format});
      found.in_profiles.push_back(named.figure);
    }
  };
  if (scenario->given_costs) return found;
  add(scenario->device.name(), &scenario->device);
  for (DeviceProfile& device : scenario->other_devices) {
    add(device.name(), &device);
  }
  add(scenario->runtime.name(), &scenario->runtime);
  CollectLinks(&scenario->cluster, "", &found.links);
  for (const LinkNumber& number : found.links) {
    found.figures.push_back(FigureOf(scenario->cluster, number));
  }
  return found;
}

// Scales all rates of a measured link, which its figure represents.
void ScaleLinkOf(const Figure* figure, double factor,
                 scenarios::ResolvedScenario* scenario) {
  for (LinkClass& link : *scenario->device.mutable_links()) {
    if (&link.figure() != figure) continue;
    for (TransferPiece& piece : *link.mutable_pieces()) {
      piece.set_bytes_per_second(piece.bytes_per_second() * factor);
    }
  }
}

}  // namespace

std::vector<ScenarioFigure> FiguresOf(
    const scenarios::ResolvedScenario& scenario) {
  scenarios::ResolvedScenario copy = scenario;
  return Find(&copy).figures;
}

scenarios::ResolvedScenario WithFigure(
    const scenarios::ResolvedScenario& scenario, int index, double factor) {
  scenarios::ResolvedScenario changed = scenario;
  const Found found = Find(&changed);
  const int num_in_profiles = static_cast<int>(found.in_profiles.size());
  if (index < num_in_profiles) {
    Figure* figure = found.in_profiles[index];
    figure->set_value(figure->value() * factor);
    ScaleLinkOf(figure, factor, &changed);
    return changed;
  }
  const LinkNumber& number = found.links[index - num_in_profiles];
  for (const auto& [message, field] : number.places) {
    message->GetReflection()->SetDouble(message, field, number.value * factor);
  }
  return changed;
}

}  // namespace weir::sim
