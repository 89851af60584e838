// SPDX-License-Identifier: Apache-2.0
// Files for users to edit: textprotos with a comment on each kind of field.
#ifndef WEIR_CLI_WEIR_COMMENTED_TEXTPROTO_H_
#define WEIR_CLI_WEIR_COMMENTED_TEXTPROTO_H_

#include <google/protobuf/message.h>

#include <string>

namespace weir::cli {

// Returns the message as ParseTextProto reads it, after a header that names its
// type. Fields that users usually edit have a comment where they first appear.
std::string CommentedTextProto(const google::protobuf::Message& message);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_COMMENTED_TEXTPROTO_H_
