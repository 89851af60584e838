// SPDX-License-Identifier: Apache-2.0
// Fits of the figures of single kernels, with the formulas of
// calibrate/pricing/. Each writes PATH_left_out.csv with the rows of a table,
// predicted by a fit that has not seen their group, and PATH_fit.txt with the
// values of a fit to all rows; nothing without rows. All return the errors of
// WriteFile.
#ifndef WEIR_TOOLS_ACCURACY_KERNEL_FITS_H_
#define WEIR_TOOLS_ACCURACY_KERNEL_FITS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/profile/device_profile.pb.h"
#include "tools/accuracy/kernel_tables.h"

namespace weir {

inline constexpr double kManyTiles = 4;  // of queries, per multiprocessor

// Returns the tiles of 128 queries of an attention.
double NumTiles(const AttentionRow& row);

// Plain attention without a tail; with one (DeviceProfile.attention_tail);
// latent attention.
enum class AttentionForm { kWithoutTail, kWithTail, kLatent };

// Fits the efficiency of each head size, the ramp, the tail and a fixed time.
// Leaves out sequence lengths. Also writes WAVES_PATH_left_out.csv with the
// rows of at least one and less than kManyTiles tiles per multiprocessor,
// unless waves_path is empty.
absl::Status WriteAttention(const std::string& path,
                            const std::string& waves_path,
                            const DeviceProfile& profile,
                            const std::vector<AttentionRow>& rows,
                            AttentionForm form);

// Fits grouped_gemm_time, bandwidths of the routing and of the permutations of
// the benchmark's program, and a fixed time; activations have the profile's
// bandwidth. Leaves out model shapes.
absl::Status WriteExperts(const std::string& path, const DeviceProfile& profile,
                          const std::vector<ExpertRow>& rows);

// Fits the efficiency of recurrences, a fixed time, and nothing else: passes
// over the states have the profile's bandwidth. Leaves out model shapes.
absl::Status WriteRecurrences(const std::string& path,
                              const DeviceProfile& profile,
                              const std::vector<RecurrenceRow>& rows);

// Fits convolution_efficiency and a fixed time to the rows of Mamba-2 that
// exceed the caches. Leaves out model shapes.
absl::Status WriteConvolutions(const std::string& path,
                               const DeviceProfile& profile,
                               const std::vector<RecurrenceRow>& rows);

// Fits TokenExchange to rows inside a node (leaves out model shapes), or its
// figures for several nodes (leaves out sizes).
absl::Status WriteDeepEp(const std::string& path, const DeviceProfile& profile,
                         const std::vector<ExchangeRow>& rows, bool dispatch);

// Fits another program's all-to-all in a rack: a fixed time, a time per peer,
// per token and per copy of a token, and the bytes of all copies over a rate.
// Leaves out numbers of GPUs.
absl::Status WriteRackExchanges(const std::string& path,
                                const std::vector<ExchangeRow>& rows);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_KERNEL_FITS_H_
