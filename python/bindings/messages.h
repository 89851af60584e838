// SPDX-License-Identifier: Apache-2.0
// Converts between dataclasses and protocol buffers. Attributes have the names
// of fields; None is an absent field, and enums are text ("full" or
// "RECOMPUTE_FULL" for RECOMPUTE_FULL).
#ifndef WEIR_PYTHON_BINDINGS_MESSAGES_H_
#define WEIR_PYTHON_BINDINGS_MESSAGES_H_

#include <google/protobuf/message.h>
#include <pybind11/pybind11.h>

#include <string>

namespace weir::python {

// Sets the fields of an empty message to the attributes of `object`. Throws
// StatusError with `label`, the path of the attribute, the value found and what
// is expected.
void FillMessage(const std::string& label, pybind11::handle object,
                 google::protobuf::Message* message);

// Returns an instance of the class that `classes` has for the message. Its name
// is that of the message, with that of the outer message before it:
// GivenCostsStage.
pybind11::object ObjectOf(const google::protobuf::Message& message,
                          pybind11::handle classes);

}  // namespace weir::python

#endif  // WEIR_PYTHON_BINDINGS_MESSAGES_H_
