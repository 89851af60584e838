// SPDX-License-Identifier: Apache-2.0
// Generates protobuf messages of any type by reflection.
#ifndef WEIR_TESTS_FUZZ_GENERATE_MESSAGE_H_
#define WEIR_TESTS_FUZZ_GENERATE_MESSAGE_H_

#include <google/protobuf/message.h>

#include "tests/fuzz/choices.h"

namespace weir::fuzz {

// Sets some of the fields: finite numbers, valid UTF-8, known enumerators, up
// to three entries of repeated fields, messages up to `depth` levels down.
void FillMessage(google::protobuf::Message* message, Choices* choices,
                 int depth = 3);

// Sets one field of the message or of a submessage to any value of its type,
// including NaN, infinity, negative numbers and unknown enumerators.
void SpoilMessage(google::protobuf::Message* message, Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_MESSAGE_H_
