// SPDX-License-Identifier: Apache-2.0
// Measures how the cost of a command grows: runs the weir beside it (or the one
// that is named first) with one size after the other, and prints CPU time, peak
// memory and the exponents of both by least squares over the logarithms. What
// starting the program costs is measured and taken off. Further arguments
// choose series by their names:
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
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace weir {
namespace {

struct Series {
  const char* name;
  const char* command;  // N: the size
  int first, last;      // sizes, by factors of 4
};

// One per line, so that lines merge.
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
    {"semantics-stages", "schedule semantics 1f1b --pp N --microbatches 4", 1024, 65536},
};
// clang-format on

struct Cost {
  double seconds = 0, mebibytes = 0;
  bool ok = false;
};

// "4xN" and "N/2" stand for what they say, "N" for the size itself.
std::vector<std::string> WordsOf(const Series& series, int size) {
  const std::string text = absl::StrReplaceAll(
      series.command, {{"4xN", absl::StrCat(4LL * size)},
                       {" N/2", absl::StrCat(" ", size / 2)},
                       {" N", absl::StrCat(" ", size)}});
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
  for (long size = series.first; size <= series.last; size *= 4) {
    const Cost cost = Run(program, WordsOf(series, static_cast<int>(size)));
    std::printf("  %-24s %9ld %10.3f s %10.1f MiB%s\n", series.name, size,
                cost.seconds, cost.mebibytes, cost.ok ? "" : " refused");
    std::fflush(stdout);
    // What costs no more than the start says nothing.
    if (!cost.ok || cost.seconds < 2 * start.seconds) continue;
    sizes.push_back(static_cast<double>(size));
    seconds.push_back(cost.seconds - start.seconds);
    mebibytes.push_back(cost.mebibytes - start.mebibytes);
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
