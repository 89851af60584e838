// SPDX-License-Identifier: Apache-2.0
// Execution traces of MLCommons Chakra: a message of metadata, then one for
// each operation of a rank, each after its length.
#ifndef WEIR_RESULTS_IMPORT_CHAKRA_TRACE_H_
#define WEIR_RESULTS_IMPORT_CHAKRA_TRACE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/import/chrome_events.h"
#include "results/import/trace_source.h"

namespace weir::results {

// Returns true if the bytes begin as metadata with a version does.
bool IsChakra(absl::string_view bytes);

// Calls `take` with every node that has a time, as an event of
// "gpu_user_annotation", or of "user_annotation" if its attribute is_cpu_op is
// true. The attribute "rank" of the metadata, if any, becomes the property
// "distributedInfo.rank". Returns InvalidArgument, with the number of the
// message, for messages that are damaged or have more than
// TraceSource::kMaxItemBytes.
absl::StatusOr<ChromeTrace> ReadChakraTrace(
    TraceSource* source, const std::function<void(const ChromeEvent&)>& take);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CHAKRA_TRACE_H_
