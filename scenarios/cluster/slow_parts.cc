// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/slow_parts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/text.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios {
namespace {

bool IsSpeed(double speed) { return speed > 0 && speed <= 1; }

absl::StatusOr<SlowPart> ParseSlowPart(absl::string_view text) {
  const auto expected = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", EscapeLine(text),
        ", expected gpu17=0.8, gpus=0.9, link:node3.nic2=0.5 or leaf:2=0.5"));
  };
  SlowPart part;
  const size_t at = text.rfind('=');
  double speed = 0;
  if (at == absl::string_view::npos ||
      !absl::SimpleAtod(text.substr(at + 1), &speed)) {
    return expected();
  }
  if (!IsSpeed(speed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", EscapeLine(text),
                     ", expected a speed above 0 and at most 1 (0.8: 80 %)"));
  }
  part.set_speed(speed);
  absl::string_view what = text.substr(0, at);
  uint32_t number = 0;
  if (absl::ConsumePrefix(&what, "link:")) {
    if (what.empty()) return expected();
    part.set_link(std::string(what));
  } else if (absl::ConsumePrefix(&what, "leaf")) {
    absl::ConsumePrefix(&what, ":");
    if (!absl::SimpleAtoi(what, &number)) return expected();
    part.set_leaf(number);
  } else if (what == "gpus") {
    part.set_all_gpus(true);
  } else if (absl::ConsumePrefix(&what, "gpu")) {
    absl::ConsumePrefix(&what, ":");
    if (!absl::SimpleAtoi(what, &number)) return expected();
    part.set_gpu(number);
  } else {
    return expected();
  }
  return part;
}

}  // namespace

bool NamesLink(absl::string_view name, absl::string_view link) {
  return name == link || name == link.substr(0, link.rfind('.'));
}

void CheckLinkName(const std::string& field, const std::string& name,
                   const Network& network, Problems* problems) {
  std::vector<std::string> known;
  for (const Link& link : network.links()) {
    if (NamesLink(name, link.name)) return;
    known.push_back(link.name.substr(0, link.name.rfind('.')));
  }
  problems->Add(field, absl::StrCat("is ", EscapeLine(name),
                                    ", expected a link of the cluster such as ",
                                    known.empty() ? "node0.nic0" : known.back(),
                                    DidYouMean(name, known)));
}

absl::StatusOr<std::vector<SlowPart>> ParseSlowParts(absl::string_view text) {
  std::vector<SlowPart> parts;
  for (absl::string_view one : absl::StrSplit(text, ',')) {
    auto part = ParseSlowPart(one);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return parts;
}

absl::Status CheckSlowParts(absl::string_view label, const Cluster& cluster) {
  if (cluster.slow().empty()) return absl::OkStatus();
  Problems problems(label);
  const Network network(cluster);
  const int num_nodes = NumNodes(cluster);
  for (int i = 0; i < cluster.slow_size(); ++i) {
    const SlowPart& part = cluster.slow(i);
    const std::string field = absl::StrCat("slow[", i, "]");
    if (!IsSpeed(part.speed())) {
      problems.Add(field + ".speed",
                   absl::StrCat("is ", part.speed(),
                                ", expected a number above 0, at most 1"));
    }
    switch (part.part_case()) {
      case SlowPart::kGpu:
        if (part.gpu() >= static_cast<uint32_t>(NumGpus(cluster))) {
          problems.Add(field + ".gpu",
                       absl::StrCat("is ", part.gpu(), ", expected 0 to ",
                                    NumGpus(cluster) - 1));
        }
        break;
      case SlowPart::kLink:
        CheckLinkName(field + ".link", part.link(), network, &problems);
        break;
      case SlowPart::kLeaf: {
        const auto per_leaf =
            static_cast<int>(cluster.fabric().nodes_per_leaf());
        const int num_leaves =
            per_leaf == 0 ? 0 : (num_nodes - 1) / per_leaf + 1;
        if (num_leaves < 2) {
          problems.Add(field + ".leaf",
                       absl::StrCat("is ", part.leaf(),
                                    ", but the cluster has one leaf switch "
                                    "and no links to a spine, expected "
                                    "several (--nodes-per-leaf)"));
        } else if (part.leaf() >= static_cast<uint32_t>(num_leaves)) {
          problems.Add(field + ".leaf",
                       absl::StrCat("is ", part.leaf(), ", expected 0 to ",
                                    num_leaves - 1));
        }
        break;
      }
      case SlowPart::kAllGpus:
        if (!part.all_gpus()) {
          problems.Add(field + ".all_gpus", "is false, expected true");
        }
        break;
      case SlowPart::PART_NOT_SET:
        problems.Add(field, "is empty, expected gpu, link, leaf or all_gpus");
        break;
    }
  }
  return problems.ToStatus();
}

std::map<int, double> SlowGpus(const Cluster& cluster) {
  std::map<int, double> speeds;
  for (const SlowPart& part : cluster.slow()) {
    if (!part.has_gpu()) continue;
    const auto [at, added] =
        speeds.emplace(static_cast<int>(part.gpu()), part.speed());
    if (!added) at->second *= part.speed();
  }
  return speeds;
}

double SpeedOfAllGpus(const Cluster& cluster) {
  double speed = 1;
  for (const SlowPart& part : cluster.slow()) {
    if (part.has_all_gpus()) speed *= part.speed();
  }
  return speed;
}

bool HasSlowLeaf(const Cluster& cluster) {
  return std::any_of(cluster.slow().begin(), cluster.slow().end(),
                     [](const SlowPart& part) { return part.has_leaf(); });
}

double SpeedOfLeaf(const Cluster& cluster, int leaf) {
  double speed = 1;
  for (const SlowPart& part : cluster.slow()) {
    if (part.has_leaf() && static_cast<int>(part.leaf()) == leaf) {
      speed *= part.speed();
    }
  }
  return speed;
}

void SlowLinks(const Cluster& cluster, std::vector<Link>* links) {
  for (const SlowPart& part : cluster.slow()) {
    if (!part.has_link()) continue;
    for (Link& link : *links) {
      if (NamesLink(part.link(), link.name))
        link.bytes_per_second *= part.speed();
    }
  }
}

}  // namespace weir::scenarios
