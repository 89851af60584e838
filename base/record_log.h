// SPDX-License-Identifier: Apache-2.0
// Seals each record of a journal with a checksum, so that a reader detects
// records that a crash or a failing disk has damaged.
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

// Returns the JSON object as a line with a new first member "crc32", the
// checksum of the original object. Requires: the object contains no line break.
std::string SealRecord(absl::string_view json_object);

struct Record {
  int number = 0;    // line number, from 1
  off_t offset = 0;  // position of its first byte
  bool is_intact = false;
  std::string text;  // without the checksum; the whole line if damaged
};

struct RecordLog {
  std::vector<Record> records;
  // Size of the complete lines in bytes. A crash can leave an incomplete line
  // after them.
  off_t num_bytes = 0;
};

// Splits a file of sealed records. Every single-bit error and every burst error
// of up to 32 bits makes a record damaged or the last one incomplete.
RecordLog ParseRecordLog(absl::string_view bytes);

// Returns true if bytes without a complete line can be the start of a record
// log.
bool IsBeginningOfRecordLog(absl::string_view bytes);

// Returns "record 3 (byte 1042) is damaged: its checksum does not match".
std::string DescribeDamage(const Record& record);

}  // namespace weir

#endif  // WEIR_BASE_RECORD_LOG_H_
