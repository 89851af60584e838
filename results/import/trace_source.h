// SPDX-License-Identifier: Apache-2.0
// A trace file as a stream of bytes, which is decompressed on the way and never
// held as a whole.
#ifndef WEIR_RESULTS_IMPORT_TRACE_SOURCE_H_
#define WEIR_RESULTS_IMPORT_TRACE_SOURCE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <streambuf>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::results {

// Called now and then with the fraction of the file that was read, 0 to 1.
using ReadProgress = std::function<void(double)>;

// Reads a regular file, or text in memory, through zlib if it begins as gzip
// does. Several gzip members in a row are one text.
class TraceSource : public std::streambuf {
 public:
  // Names, values and lines that are longer than this end the input with an
  // error. Without a limit, a compressed file of 10 MB could fill the memory.
  static constexpr size_t kMaxItemBytes = size_t{16} << 20;

  // Returns NotFound if the file does not exist, InvalidArgument if it is no
  // regular file.
  static absl::StatusOr<std::unique_ptr<TraceSource>> Open(
      const std::string& path, ReadProgress progress = nullptr);
  static std::unique_ptr<TraceSource> FromText(absl::string_view label,
                                               absl::string_view bytes);
  ~TraceSource() override;
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;

  // The path, for messages.
  const std::string& label() const;
  // Returns the next bytes without taking them; empty at the end.
  absl::string_view Peek();
  // Returns true if the bytes are those of a compressed file. Requires: Peek()
  // was called.
  bool is_compressed() const;
  // Tells that an item ended, for kMaxItemBytes.
  void EndItem();
  // Returns true after the last byte was taken, whatever the status.
  bool at_end() const;
  // Returns why the input ended early: a file that cannot be read, damaged
  // compressed data, or an item that is too long.
  const absl::Status& status() const;
  // Returns true if compressed data ended before its end mark, as after a copy
  // that was interrupted; status() is OK then.
  bool cut_off() const;

 protected:
  int_type underflow() override;

 private:
  class Impl;
  explicit TraceSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Returns the whole text of a file, decompressed if it is gzip. Returns the
// errors of ReadFile and TraceSource, and InvalidArgument if the text is cut
// off or larger than kMaxTextFileBytes.
absl::StatusOr<std::string> ReadTextOrGzip(const std::string& path);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_TRACE_SOURCE_H_
