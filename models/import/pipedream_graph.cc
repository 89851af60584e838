// SPDX-License-Identifier: Apache-2.0
#include "models/import/pipedream_graph.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "models/model_limits.h"

namespace weir::models {
namespace {

// A graph with the line numbers of its edges.
struct Graph : ProfileGraph {
  std::vector<std::vector<int>> reader_lines;  // in the order of `readers`
};

constexpr absl::string_view kForward = "forward_compute_time";
constexpr absl::string_view kBackward = "backward_compute_time";
constexpr absl::string_view kActivation = "activation_size";
constexpr absl::string_view kParameter = "parameter_size";

std::string At(int line) { return absl::StrCat("line ", line, ":"); }

std::string Quote(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 60)), "\"");
}

bool ParseNumber(absl::string_view text, double* number) {
  return absl::SimpleAtod(absl::StripAsciiWhitespace(text), number);
}

// Parses "12.5" or a list "[9; 3; 3]", whose entries are summed.
bool ParseSizes(absl::string_view text, double* sum) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "[")) return ParseNumber(text, sum);
  if (!absl::ConsumeSuffix(&text, "]")) return false;
  *sum = 0;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    double size = 0;
    if (!ParseNumber(part, &size) || !(size >= 0)) return false;
    *sum += size;
  }
  return true;
}

bool ParseNodeNumber(absl::string_view text, uint64_t* number) {
  text = absl::StripAsciiWhitespace(text);
  return absl::ConsumePrefix(&text, "node") && !text.empty() &&
         absl::ascii_isdigit(text[0]) && absl::SimpleAtoi(text, number);
}

class Reader {
 public:
  explicit Reader(Problems* problems) : problems_(*problems) {}

  void ReadLine(absl::string_view line, int number) {
    line_ = number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty()) return;
    if (absl::ascii_isspace(line[0])) {
      ReadEdge(content);
    } else {
      ReadNode(content);
    }
  }

  // Runs at the end, because edges may precede the nodes they name.
  void ResolveEdges() {
    graph_.readers.resize(graph_.nodes.size());
    graph_.reader_lines.resize(graph_.nodes.size());
    graph_.inputs.resize(graph_.nodes.size());
    for (const auto& [from, to, line] : edges_) {
      const int* tail = Find(from, line);
      const int* head = Find(to, line);
      if (tail == nullptr || head == nullptr) continue;
      graph_.readers[*tail].push_back(*head);
      graph_.reader_lines[*tail].push_back(line);
      graph_.inputs[*head].push_back(*tail);
    }
  }

  Graph TakeGraph() { return std::move(graph_); }

 private:
  struct NamedEdge {
    uint64_t from, to;
    int line;
  };

  const int* Find(uint64_t number, int line) {
    const auto found = node_of_number_.find(number);
    if (found != node_of_number_.end()) return &found->second;
    problems_.Add(At(line), absl::StrCat("node", number, " is not defined"));
    return nullptr;
  }

  void ReadEdge(absl::string_view content) {
    const std::vector<absl::string_view> ends = absl::StrSplit(content, " -- ");
    NamedEdge edge{0, 0, line_};
    if (ends.size() != 2 || !ParseNodeNumber(ends[0], &edge.from) ||
        !ParseNodeNumber(ends[1], &edge.to)) {
      problems_.Add(At(line_), absl::StrCat("found ", Quote(content),
                                            ", expected nodeA -- nodeB"));
      return;
    }
    edges_.push_back(edge);
  }

  void ReadNode(absl::string_view content) {
    const size_t first = content.find(" -- ");
    const size_t costs = content.find(absl::StrCat(" -- ", kForward, "="));
    uint64_t number = 0;
    if (costs == absl::string_view::npos ||
        !ParseNodeNumber(content.substr(0, first), &number)) {
      problems_.Add(
          At(line_),
          absl::StrCat("found ", Quote(content), ", expected nodeK -- name -- ",
                       kForward, "=ms, ", kBackward, "=ms, ", kActivation,
                       "=bytes, ", kParameter, "=bytes"));
      return;
    }
    const int index = static_cast<int>(graph_.nodes.size());
    if (!node_of_number_.emplace(number, index).second) {
      problems_.Add(At(line_),
                    absl::StrCat("node", number, " is defined a second time"));
      return;
    }
    MeasuredLayer layer;
    // Without a name the two separators are the same.
    const absl::string_view name =
        costs > first ? content.substr(first + 4, costs - first - 4) : "";
    // Protobuf strings must be UTF-8; everything but plain ASCII is escaped.
    const std::string description = absl::CHexEscape(name);
    layer.set_name(absl::StrCat("node", number, " ", description));
    ReadCosts(content.substr(costs + 4), &layer);
    if (absl::StartsWith(name, "Input")) {
      layer.set_forward_seconds(0);
      layer.set_backward_seconds(0);
    }
    graph_.nodes.push_back({number, description, layer});
  }

  void ReadCosts(absl::string_view text, MeasuredLayer* layer) {
    // Partitioned graphs append " -- stage_id=S".
    text = text.substr(0, text.find(" -- "));
    std::map<absl::string_view, absl::string_view> values;
    for (absl::string_view part : absl::StrSplit(text, ',')) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      values[absl::StripAsciiWhitespace(pair.first)] = pair.second;
    }
    layer->set_forward_seconds(Value(values, kForward, kMaxSeconds * 1e3) /
                               1e3);
    layer->set_backward_seconds(Value(values, kBackward, kMaxSeconds * 1e3) /
                                1e3);
    layer->set_activation_bytes(Value(values, kActivation, kMaxBytes));
    layer->set_parameter_bytes(Value(values, kParameter, kMaxBytes));
  }

  double Value(const std::map<absl::string_view, absl::string_view>& values,
               absl::string_view key, double high) {
    const auto found = values.find(key);
    if (found == values.end()) {
      problems_.Add(At(line_), absl::StrCat(key, " is missing"));
      return 0;
    }
    double value = 0;
    const bool parsed = key == kActivation ? ParseSizes(found->second, &value)
                                           : ParseNumber(found->second, &value);
    if (parsed && value >= 0 && value <= high) return value;
    problems_.Add(At(line_),
                  absl::StrCat(key, " is ", Quote(found->second),
                               ", expected a number from 0 to ", high));
    return 0;
  }

  Problems& problems_;
  Graph graph_;
  std::map<uint64_t, int> node_of_number_;
  std::vector<NamedEdge> edges_;
  int line_ = 0;
};

// Returns the order of the nodes; shorter than the graph if there is a cycle.
std::vector<int> TopologicalOrder(const ProfileGraph& graph) {
  using Entry = std::pair<uint64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  std::vector<size_t> waiting;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    waiting.push_back(graph.inputs[node].size());
    if (waiting[node] == 0) ready.emplace(graph.nodes[node].number, node);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (int reader : graph.readers[node]) {
      if (--waiting[reader] == 0) {
        ready.emplace(graph.nodes[reader].number, reader);
      }
    }
  }
  return order;
}

// Reports a cycle and the line that closes it.
void AddCycle(const Graph& graph, const std::vector<int>& order,
              Problems* problems) {
  std::vector<int> back(graph.nodes.size(), -1);
  std::vector<int> back_line(graph.nodes.size(), 0);
  std::vector<bool> ordered(graph.nodes.size(), false);
  for (int node : order) ordered[node] = true;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (ordered[node]) continue;
    for (size_t i = 0; i < graph.readers[node].size(); ++i) {
      back[graph.readers[node][i]] = static_cast<int>(node);
      back_line[graph.readers[node][i]] = graph.reader_lines[node][i];
    }
  }
  // Every remaining node has a remaining predecessor, so walking back must
  // reach a cycle.
  int node = 0;
  while (ordered[node]) ++node;
  std::vector<bool> seen(graph.nodes.size(), false);
  while (!seen[node]) {
    seen[node] = true;
    node = back[node];
  }
  std::string path = absl::StrCat("node", graph.nodes[node].number);
  int walker = node;
  int steps = 0;
  do {
    walker = back[walker];
    if (++steps <= 8) {
      path = absl::StrCat("node", graph.nodes[walker].number, " -- ", path);
    }
  } while (walker != node);
  if (steps > 8) path = absl::StrCat("... ", path);
  problems->Add(At(back_line[node]), absl::StrCat("closes a cycle: ", path));
}

// Sets the bytes that cross the cut after each layer: outputs that later layers
// read, each counted once.
void SetCuts(const ProfileGraph& graph, const std::vector<int>& order,
             MeasuredModel* measured) {
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[order[i]] = static_cast<int>(i);
  std::vector<double> change(order.size() + 1, 0);
  std::vector<double> own(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    int last_reader = -1;
    for (int reader : graph.readers[order[i]]) {
      last_reader = std::max(last_reader, place[reader]);
    }
    if (last_reader < 0) continue;
    own[i] = measured->layers(static_cast<int>(i)).activation_bytes();
    change[last_reader] += own[i];
  }
  double alive = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    alive += own[i] - change[i];
    measured->mutable_layers(static_cast<int>(i))
        ->set_cut_bytes(std::max(0.0, alive));
  }
}

}  // namespace

absl::StatusOr<ProfileGraph> ParseProfileGraph(absl::string_view label,
                                               absl::string_view text) {
  Problems problems(label);
  Reader reader(&problems);
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    reader.ReadLine(line, ++line_number);
  }
  reader.ResolveEdges();
  Graph graph = reader.TakeGraph();
  if (graph.nodes.size() > kMaxLayers) {
    problems.Add("", absl::StrCat("has ", graph.nodes.size(),
                                  " nodes, expected at most ", kMaxLayers));
  }
  const std::vector<int> order = TopologicalOrder(graph);
  if (order.size() < graph.nodes.size()) AddCycle(graph, order, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  return std::move(static_cast<ProfileGraph&>(graph));
}

absl::StatusOr<Model> ParsePipeDreamGraph(absl::string_view label,
                                          absl::string_view text) {
  ASSIGN_OR_RETURN(const ProfileGraph graph, ParseProfileGraph(label, text));
  const std::vector<int> order = TopologicalOrder(graph);
  Model model;
  for (int node : order) {
    *model.mutable_measured()->add_layers() = graph.nodes[node].costs;
  }
  SetCuts(graph, order, model.mutable_measured());
  return model;
}

}  // namespace weir::models
