// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::sim::timer_queue_test {

// Draws from few times, so that many are equal, pushed together or one after
// another.
TEST(TimerQueueTest, EveryTaskComesOutOnceByTime) {
  std::mt19937 random(3);
  TimerQueue queue;
  std::vector<double> seconds;
  std::vector<int> popped;
  double now = 0;
  std::vector<TimerQueue::Timer> due;
  for (int i = 0; i < 20000 || !queue.empty(); ++i) {
    if (i < 20000 && random() % 2 == 0) {
      const double time = now + static_cast<double>(random() % 20);
      for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
        queue.Push(time, static_cast<int32_t>(seconds.size()));
        seconds.push_back(time);
      }
    } else if (!queue.empty()) {
      due.clear();
      const double first = queue.first_seconds();
      ASSERT_GE(first, now);
      now = first;
      queue.Pop(&due);
      ASSERT_FALSE(due.empty());
      for (const TimerQueue::Timer& timer : due) {
        ASSERT_EQ(timer.seconds, now);
        ASSERT_EQ(seconds[timer.task], now);
        popped.push_back(timer.task);
      }
    }
  }
  std::sort(popped.begin(), popped.end());
  ASSERT_EQ(popped.size(), seconds.size());
  for (size_t i = 0; i < popped.size(); ++i) ASSERT_EQ(popped[i], i);
}

}  // namespace weir::sim::timer_queue_test
