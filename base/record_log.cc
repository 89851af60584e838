// SPDX-License-Identifier: Apache-2.0
#include "base/record_log.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace weir {
namespace {

constexpr absl::string_view kBefore = "{\"crc32\":\"";
constexpr absl::string_view kAfter = "\"";
constexpr size_t kDigits = 8;

// Returns true if only the end of an object is left.
bool IsEmptyObject(absl::string_view members) {
  return absl::StripAsciiWhitespace(members) == "}";
}

// Returns true if the line is sealed and undamaged, and extracts its object.
bool Unseal(absl::string_view line, std::string* json) {
  if (!absl::ConsumePrefix(&line, kBefore) || line.size() < kDigits) {
    return false;
  }
  const absl::string_view crc = line.substr(0, kDigits);
  line.remove_prefix(kDigits);
  if (!absl::ConsumePrefix(&line, kAfter)) return false;
  if (!IsEmptyObject(line) && !absl::ConsumePrefix(&line, ",")) return false;
  *json = absl::StrCat("{", line);
  return Crc32(*json) == crc;
}

}  // namespace

std::string Crc32(absl::string_view bytes) {
  const uLong crc =
      crc32_z(crc32_z(0, nullptr, 0),
              reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return absl::StrFormat("%08x", crc);
}

std::string SealRecord(absl::string_view json_object) {
  absl::string_view members = json_object;
  absl::ConsumePrefix(&members, "{");
  return absl::StrCat(kBefore, Crc32(json_object), kAfter,
                      IsEmptyObject(members) ? "" : ",", members, "\n");
}

RecordLog ParseRecordLog(absl::string_view bytes) {
  RecordLog log;
  log.num_bytes = static_cast<off_t>(bytes.rfind('\n') + 1);  // npos: 0
  absl::string_view rest = bytes.substr(0, log.num_bytes);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const absl::string_view line = rest.substr(0, end);
    Record record;
    record.number = static_cast<int>(log.records.size()) + 1;
    record.offset = static_cast<off_t>(line.data() - bytes.data());
    record.is_intact = Unseal(line, &record.text);
    if (!record.is_intact) record.text = std::string(line);
    log.records.push_back(std::move(record));
    rest.remove_prefix(end + 1);
  }
  return log;
}

bool IsBeginningOfRecordLog(absl::string_view bytes) {
  return bytes.substr(0, kBefore.size()) == kBefore.substr(0, bytes.size());
}

std::string DescribeDamage(const Record& record) {
  return absl::StrCat("record ", record.number, " (byte ", record.offset,
                      ") is damaged: its checksum does not match");
}

}  // namespace weir
