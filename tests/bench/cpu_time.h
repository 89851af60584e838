// SPDX-License-Identifier: Apache-2.0
// CPU time and memory of a benchmark that runs partly in child processes.
#ifndef WEIR_TESTS_BENCH_CPU_TIME_H_
#define WEIR_TESTS_BENCH_CPU_TIME_H_

#include <sys/resource.h>

#include <algorithm>

namespace weir {

// Returns the user CPU seconds of this process and of the children that it
// waited for. The engine runs in a child, and other load on the machine does
// not count.
inline double UserSeconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage;
    getrusage(who, &usage);
    seconds += usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec;
  }
  return seconds;
}

// Returns the user and system CPU seconds of the same processes.
inline double CpuSeconds() {
  double seconds = UserSeconds();
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage;
    getrusage(who, &usage);
    seconds += usage.ru_stime.tv_sec + 1e-6 * usage.ru_stime.tv_usec;
  }
  return seconds;
}

// Returns the largest resident memory so far of this process or any of its
// children.
inline double PeakMebibytes() {
  double peak = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage;
    getrusage(who, &usage);
    peak = std::max(peak, usage.ru_maxrss / 1024.0);
  }
  return peak;
}

}  // namespace weir

#endif  // WEIR_TESTS_BENCH_CPU_TIME_H_
