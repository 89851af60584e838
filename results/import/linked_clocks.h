// SPDX-License-Identifier: Apache-2.0
// Sets of clocks that orders of events link.
#ifndef WEIR_RESULTS_IMPORT_LINKED_CLOCKS_H_
#define WEIR_RESULTS_IMPORT_LINKED_CLOCKS_H_

#include <vector>

namespace weir::results {

class LinkedClocks {
 public:
  explicit LinkedClocks(int num_clocks);

  void Link(int a, int b);

  // Returns the clocks of each set, those of the first clock first.
  std::vector<std::vector<int>> Sets();

 private:
  int FirstOf(int clock);

  std::vector<int> parent_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_LINKED_CLOCKS_H_
