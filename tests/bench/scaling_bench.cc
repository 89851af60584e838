// SPDX-License-Identifier: Apache-2.0
// Measures how the cost of a command grows. Runs build/release/bin/weir (or the
// program named first) for a series of sizes, and prints CPU time, peak memory
// and the exponents of both from a least-squares fit over the logarithms. The
// cost of starting the program is measured and subtracted. Further arguments
// select series by name:
//
//   scaling_bench [PATH-OF-WEIR] [NAME...]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace weir {
namespace {

struct Series {
  const char* name;
  const char* command;  // contains the size as N
  int first, last;      // sizes, each 4 times the previous
};

// One entry per line, so that branches merge.
// clang-format off
constexpr Series kSeries[] = {
    {"simulate-replicas", "simulate --model gpt2 --cluster dgx-h100 --nodes N/2 --schedule 1f1b --pp 4 --mbs 1 --dp N --gbs 4xN", 64, 16384},
    {"fast-replicas", "simulate --method fast --model gpt2 --cluster dgx-h100 --nodes N/2 --schedule 1f1b --pp 4 --mbs 1 --dp N --gbs 4xN", 64, 16384},
    {"simulate-stages", "simulate --schedule gpipe --costs f=1,b=2,c=0.1 --pp N --microbatches 4", 1024, 65536},
    {"fast-stages", "simulate --method fast --schedule gpipe --costs f=1,b=2,c=0.1 --pp N --microbatches 4", 1024, 65536},
    {"simulate-microbatches", "simulate --schedule 1f1b --costs f=1,b=2,c=0.1 --pp 4 --microbatches N", 4096, 1048576},
    {"fast-microbatches", "simulate --method fast --schedule 1f1b --costs f=1,b=2,c=0.1 --pp 4 --microbatches N", 4096, 1048576},
    {"fast-both", "simulate --method fast --schedule 1f1b --costs f=1,b=2,c=0.1 --pp N --microbatches 4xN", 64, 1024},
    {"lint-microbatches", "schedule lint 1f1b --pp 4 --microbatches N", 4096, 262144},
    {"lint-stages", "schedule lint 1f1b --pp N --microbatches 4", 256, 16384},
    {"semantics-microbatches", "schedule semantics 1f1b --pp 4 --microbatches N", 4096, 1048576},
    {"simulate-chunks", "simulate --schedule interleaved-1f1b --costs f=1,b=2,c=0.1 --pp 4 --chunks N --microbatches 8", 64, 16384},
    {"fast-chunks", "simulate --method fast --schedule interleaved-1f1b --costs f=1,b=2,c=0.1 --pp 4 --chunks N --microbatches 8", 64, 16384},
    {"simulate-tensor", "simulate --model {wide} --cluster dgx-h100 --nodes N/2 --schedule 1f1b --pp 4 --tp N --mbs 1 --gbs 4", 16, 4096},
    {"fast-tensor", "simulate --method fast --model {wide} --cluster dgx-h100 --nodes N/2 --schedule 1f1b --pp 4 --tp N --mbs 1 --gbs 4", 16, 4096},
    {"simulate-layers", "simulate --model {deep} --cluster dgx-h100 --nodes 1 --schedule 1f1b --pp 4 --mbs 1 --gbs 32", 156, 9984},
    {"simulate-graph", "simulate --model {graph} --cluster dgx-h100 --nodes 1 --schedule 1f1b --pp 4 --microbatches 8", 39, 9984},
    {"plan-layers", "plan --model {deep} --cluster dgx-h100 --nodes 16 --schedule 1f1b --pp 4,8 --mbs 1 --tp 1 --gbs 128", 39, 9984},
    {"plan-gpus", "plan --model gpt2-medium --cluster dgx-h100 --nodes N/8 --schedule 1f1b --pp 4,8 --mbs 1 --tp 1,2 --gbs N", 128, 8192},
    {"plan-microbatches", "plan --model llama-2-7b --cluster dgx-h100 --nodes 8 --gbs N", 4000, 1024000},
    {"plan-candidates", "plan --model gpt2 --cluster dgx-h100 --nodes 2 --schedule 1f1b --gbs 20160 --mbs {sizes}", 1, 64},
    {"plan-graph", "plan --algorithm pipedream --graph {graph} --machines 4 --bandwidth 1e9", 39, 9984},
    {"synthesize-passes", "schedule synthesize --costs f=1,i=1.1,w=0.8,c=1 --method local --moves 100 --pp 4 --microbatches N", 512, 32768},
    {"semantics-stages", "schedule semantics 1f1b --pp N --microbatches 4", 1024, 65536},
};
// clang-format on

struct Cost {
  double seconds = 0, mebibytes = 0;
  bool ok = false;
};

std::string Transformer(int num_layers, int hidden_size, int num_heads) {
  return absl::Substitute(
      "transformer { num_layers: $0 hidden_size: $1 num_heads: $2 "
      "vocabulary_size: 50304 num_positions: 2048 "
      "default_sequence_length: 512 causal: true }\n",
      num_layers, hidden_size, num_heads);
}

// Returns a chain in the format of PipeDream's profiles.
std::string Graph(int num_nodes) {
  std::string text;
  for (int i = 0; i < num_nodes; ++i) {
    const int varies = i % 7;
    absl::SubstituteAndAppend(
        &text,
        "node$0 -- Linear() -- forward_compute_time=1.$1, "
        "backward_compute_time=2.$1, activation_size=100$1.0, "
        "parameter_size=400$1.0\n",
        i, varies);
  }
  for (int i = 1; i < num_nodes; ++i) {
    absl::SubstituteAndAppend(&text, "\tnode$0 -- node$1\n", i - 1, i);
  }
  return text;
}

// Returns the first `count` divisors of 20160, which has 84.
std::string Divisors(int count) {
  std::vector<int> divisors;
  for (int i = 1; static_cast<int>(divisors.size()) < count; ++i) {
    if (20160 % i == 0) divisors.push_back(i);
  }
  return absl::StrJoin(divisors, ",");
}

// Holds the input files of one run.
class Inputs {
 public:
  Inputs() {
    char name[] = "/tmp/scaling_bench.XXXXXX";
    if (mkdtemp(name) != nullptr) folder_ = name;
  }
  ~Inputs() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  std::string Write(const std::string& name, const std::string& text) const {
    std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::string folder_;
};

// Returns the words of the command with the size filled in for "N", "4xN",
// "N/2" and "N/8", a list of `size` microbatch sizes for "{sizes}", a model of
// `size` layers for "{deep}", a model with 4096 attention heads for "{wide}",
// and a profile of `size` nodes for "{graph}".
std::vector<std::string> WordsOf(const Series& series, int size,
                                 const Inputs& inputs) {
  const auto file = [&](absl::string_view token, const std::string& name,
                        const std::string& text) {
    return absl::StrContains(series.command, token) ? inputs.Write(name, text)
                                                    : "";
  };
  const std::string text = absl::StrReplaceAll(
      series.command,
      {{"4xN", absl::StrCat(4LL * size)},
       {" N/2", absl::StrCat(" ", size / 2)},
       {" N/8", absl::StrCat(" ", size / 8)},
       {" N", absl::StrCat(" ", size)},
       {"{sizes}", absl::StrContains(series.command, "{sizes}")
                       ? Divisors(size)
                       : std::string()},
       {"{deep}", file("{deep}", "deep.textproto", Transformer(size, 256, 4))},
       {"{wide}",
        file("{wide}", "wide.textproto", Transformer(8, 32768, 4096))},
       {"{graph}", file("{graph}", "graph.txt", Graph(size))}});
  return absl::StrSplit(text, ' ');
}

Cost Run(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    execv(program.c_str(), arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) < 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
  };
  Cost cost;
  cost.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  cost.mebibytes = usage.ru_maxrss / 1024.0;
  cost.ok = WIFEXITED(status) && WEXITSTATUS(status) <= 1;
  return cost;
}

// Returns the slope of the logarithms by least squares.
double Exponent(const std::vector<double>& sizes,
                const std::vector<double>& costs) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double a = std::log(sizes[i]), b = std::log(std::max(costs[i], 1e-9));
    ++n, x += a, y += b, xx += a * a, xy += a * b;
  }
  return n < 2 ? NAN : (n * xy - x * y) / (n * xx - x * x);
}

void Measure(const std::string& program, const Series& series,
             const Cost& start) {
  std::vector<double> sizes, seconds, mebibytes;
  for (int64_t size = series.first; size <= series.last; size *= 4) {
    const Inputs inputs;
    const Cost cost =
        Run(program, WordsOf(series, static_cast<int>(size), inputs));
    std::printf("  %-24s %9ld %10.3f s %10.1f MiB%s\n", series.name, size,
                cost.seconds, cost.mebibytes, cost.ok ? "" : " refused");
    std::fflush(stdout);
    // Costs close to the start-up cost carry no information.
    if (!cost.ok || cost.seconds < 2 * start.seconds) continue;
    sizes.push_back(static_cast<double>(size));
    seconds.push_back(cost.seconds - start.seconds);
    mebibytes.push_back(cost.mebibytes - start.mebibytes);
  }
  if (sizes.size() < 2) {
    std::printf("%-26s hardly more than starting the program\n", series.name);
    return;
  }
  std::printf("%-26s time n^%.2f, memory n^%.2f\n", series.name,
              Exponent(sizes, seconds), Exponent(sizes, mebibytes));
}

int Main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  std::string program = "build/release/bin/weir";
  if (!names.empty() && names.front().find('/') != std::string::npos) {
    program = names.front();
    names.erase(names.begin());
  }
  const Cost start = Run(program, {"--version"});
  if (!start.ok) {
    std::fprintf(stderr, "scaling_bench: cannot run %s\n", program.c_str());
    return EXIT_FAILURE;
  }
  for (const Series& series : kSeries) {
    if (names.empty() ||
        std::find(names.begin(), names.end(), series.name) != names.end()) {
      Measure(program, series, start);
    }
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
