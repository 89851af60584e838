// SPDX-License-Identifier: Apache-2.0
#include "results/import/chakra_trace.h"

#include <algorithm>
#include <cstdint>
#include <istream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "results/import/chakra.pb.h"
#include "results/import/recorded_run.h"

namespace weir::results {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::IstreamInputStream;

// Times above this are no microseconds since 1970.
constexpr double kMostMicroseconds =
    kMaxRecordedSeconds / kSecondsPerMicrosecond;

double NumberOf(const chakra::Attribute& attribute) {
  switch (attribute.value_case()) {
    case chakra::Attribute::kInt32Val:
      return attribute.int32_val();
    case chakra::Attribute::kInt64Val:
      return static_cast<double>(attribute.int64_val());
    case chakra::Attribute::kUint32Val:
      return attribute.uint32_val();
    case chakra::Attribute::kUint64Val:
      return static_cast<double>(attribute.uint64_val());
    default:
      return -1;
  }
}

enum class Read { kMessage, kEnd, kCut };

// Reads a length and a message.
absl::StatusOr<Read> ReadMessage(TraceSource* source, IstreamInputStream* bytes,
                                 int64_t number,
                                 google::protobuf::MessageLite* message) {
  CodedInputStream in(bytes);
  const void* data = nullptr;
  int size = 0;
  if (!in.GetDirectBufferPointer(&data, &size)) return Read::kEnd;
  uint32_t length = 0;
  if (!in.ReadVarint32(&length)) return Read::kCut;
  if (length > TraceSource::kMaxItemBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source->label(), ": message ", number, " has ", length,
                     " bytes, expected at most ", TraceSource::kMaxItemBytes,
                     " in a Chakra execution trace"));
  }
  std::string text;
  if (!in.ReadString(&text, static_cast<int>(length))) return Read::kCut;
  if (!message->ParseFromString(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(source->label(), ": message ", number,
                     " is damaged, expected an operation of a Chakra "
                     "execution trace"));
  }
  source->EndItem();
  return Read::kMessage;
}

ChromeEvent EventOf(const chakra::Node& node) {
  ChromeEvent event;
  event.name = node.name();
  event.phase = 'X';
  event.category = "gpu_user_annotation";
  for (const chakra::Attribute& attribute : node.attr()) {
    if (attribute.name() == "is_cpu_op" && attribute.bool_val()) {
      event.category = "user_annotation";
    }
  }
  event.process = "chakra";
  event.start_microseconds = static_cast<double>(node.start_time_micros());
  event.microseconds = static_cast<double>(node.duration_micros());
  return event;
}

}  // namespace

bool IsChakra(absl::string_view bytes) {
  // The length of the metadata, the tag of its version, the version's length.
  size_t at = 0;
  uint64_t length = 0;
  for (int shift = 0; at < bytes.size() && shift < 28; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (bytes.size() < at + 2 || length < 3 || bytes[at] != 0x0a) return false;
  const auto version = static_cast<unsigned char>(bytes[at + 1]);
  if (version == 0 || version > 64 || version + 2U > length ||
      bytes.size() < at + 2 + version) {
    return false;
  }
  const absl::string_view text = bytes.substr(at + 2, version);
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
           c == '-' || c == '_' || c == '+';
  });
}

absl::StatusOr<ChromeTrace> ReadChakraTrace(
    TraceSource* source, const std::function<void(const ChromeEvent&)>& take) {
  std::istream stream(source);
  IstreamInputStream bytes(&stream);
  ChromeTrace trace;
  chakra::GlobalMetadata metadata;
  absl::StatusOr<Read> read = ReadMessage(source, &bytes, 1, &metadata);
  for (const chakra::Attribute& attribute : metadata.attr()) {
    if (attribute.name() != "rank" || NumberOf(attribute) < 0) continue;
    TraceValue& rank = trace.properties["distributedInfo.rank"];
    rank.is_number = true;
    rank.number = NumberOf(attribute);
  }
  chakra::Node node;
  while (read.ok() && *read == Read::kMessage) {
    read = ReadMessage(source, &bytes, trace.num_events + 2, &node);
    if (!read.ok() || *read != Read::kMessage) break;
    ++trace.num_events;
    const ChromeEvent event = EventOf(node);
    if (event.start_microseconds > kMostMicroseconds ||
        event.microseconds > kMostMicroseconds) {
      return absl::InvalidArgumentError(absl::StrCat(
          source->label(), ": operation ", node.id(), " starts at ",
          node.start_time_micros(), " us and takes ", node.duration_micros(),
          " us, expected at most ", kMostMicroseconds));
    }
    if (node.duration_micros() > 0) take(event);
  }
  // Says why the bytes ended early.
  if (!source->status().ok()) return source->status();
  if (!read.ok()) return read.status();
  trace.cut_off = *read == Read::kCut || source->cut_off();
  return trace;
}

}  // namespace weir::results
