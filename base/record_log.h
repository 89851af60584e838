// SPDX-License-Identifier: Apache-2.0
// Records with a checksum each, for journals that outlive crashes and may come
// from a disk that has lost or changed bits.
#ifndef WEIR_BASE_RECORD_LOG_H_
#define WEIR_BASE_RECORD_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// Returns the CRC-32 (IEEE 802.3) of the bytes as eight hexadecimal digits.
std::string Crc32(absl::string_view bytes);

// Returns a line with the JSON object, whose new first member "crc32" is the
// checksum of what the object was before. REQUIRES: it has a member and no line
// end.
std::string SealRecord(absl::string_view json_object);

struct Record {
  int number = 0;    // of the line, from 1
  off_t offset = 0;  // of its first byte
  bool is_intact = false;
  std::string text;  // as it was sealed; all of it if it is damaged
};

struct RecordLog {
  std::vector<Record> records;
  // Size of the complete lines. An incomplete last line was being written when
  // the program ended.
  off_t num_bytes = 0;
};

// Splits a file of sealed records. Every change of one bit, and every burst of
// up to 32 bits, makes a record damaged or the last one incomplete.
RecordLog ParseRecordLog(absl::string_view bytes);

// Whether a file without any whole line may be the beginning of a record log.
bool IsBeginningOfRecordLog(absl::string_view bytes);

// "record 3 (byte 1042) is damaged: its checksum does not match".
std::string DescribeDamage(const Record& record);

}  // namespace weir

#endif  // WEIR_BASE_RECORD_LOG_H_
