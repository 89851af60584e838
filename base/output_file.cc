// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// The header line of a table can be long, because it contains every swept
// field.
constexpr size_t kHeadBytes = 64 << 10;

std::string Head(const std::string& path) {
  const absl::StatusOr<int> fd = OpenRegularFile(path, O_RDONLY);
  if (!fd.ok()) return "";
  std::string head(kHeadBytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    const ssize_t n = read(*fd, head.data() + size, head.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  close(*fd);
  head.resize(size);
  return head;
}

// Returns the last kMarkBytes bytes of a regular file.
std::string Tail(const std::string& path) {
  const absl::StatusOr<int> fd = OpenRegularFile(path, O_RDONLY);
  if (!fd.ok()) return "";
  const off_t size = lseek(*fd, 0, SEEK_END);
  const auto length = std::min<off_t>(size, kMarkBytes);
  std::string tail(static_cast<size_t>(std::max<off_t>(length, 0)), '\0');
  const ssize_t n = pread(*fd, tail.data(), tail.size(), size - length);
  close(*fd);
  tail.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return tail;
}

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
  return bytes;
}

// The header of SQLite's file format has the big-endian application_id at byte
// 68.
bool IsOwnDatabase(absl::string_view head) {
  constexpr absl::string_view kMagic("SQLite format 3\0", 16);
  if (!absl::StartsWith(head, kMagic)) return false;
  uint32_t id = 0;
  for (const char byte : head.substr(68, 4)) {
    id = id << 8 | static_cast<unsigned char>(byte);
  }
  return id == kSqliteApplicationId;
}

bool HasMark(absl::string_view head) {
  return absl::StrContains(head.substr(0, kMarkBytes), kOutputMark);
}

absl::Status CheckReplaceable(const std::string& path,
                              const ReplaceOptions& options) {
  if (IsReplaceable(path, options)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeLine(path),
      ": was not written by weir; choose another file, or --force to "
      "overwrite it"));
}

}  // namespace

std::string MarkText(absl::string_view text) {
  return absl::StrCat("# ", kOutputMark, "\n", text);
}

std::string MarkJson(absl::string_view object) {
  absl::string_view rest = object;
  absl::ConsumePrefix(&rest, "{");
  const absl::string_view space = rest.substr(0, rest.find_first_not_of(" \n"));
  return absl::StrCat("{", space, "\"generator\":", space.empty() ? "" : " ",
                      "\"", kOutputMark, "\",", rest);
}

std::string MarkSvg(absl::string_view svg) {
  size_t at = 0;
  if (absl::StartsWith(svg, "<?xml")) {
    const size_t end = svg.find("?>");
    at = end == absl::string_view::npos ? 0 : end + 2;
  }
  return absl::StrCat(svg.substr(0, at), "\n<!-- ", kOutputMark, " -->",
                      svg.substr(at));
}

std::string MarkPdf(absl::string_view pdf) {
  return absl::StrCat(pdf, "% ", kOutputMark, "\n");
}

std::string MarkPng(absl::string_view png) {
  // Signature and header chunk (PNG specification, sections 5.2 and 11.2.2).
  constexpr size_t kHeaderBytes = 8 + 25;
  const std::string text =
      absl::StrCat("tEXtComment", absl::string_view("\0", 1), kOutputMark);
  const auto sum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()),
            static_cast<uInt>(text.size())));
  return absl::StrCat(png.substr(0, kHeaderBytes),
                      BigEndian(static_cast<uint32_t>(text.size() - 4)), text,
                      BigEndian(sum), png.substr(kHeaderBytes));
}

bool IsReplaceable(const std::string& path, const ReplaceOptions& options) {
  if (options.force) return true;
  std::error_code error;
  // A device, a pipe or no file. Writing reports an error if the path cannot be
  // examined.
  if (!fs::is_regular_file(path, error)) return true;
  const std::string head = Head(path);
  if (head.empty() && fs::file_size(path, error) == 0) return true;
  if (HasMark(head) || IsOwnDatabase(head)) return true;
  if (absl::StartsWith(head, "%PDF-") && HasMark(Tail(path))) return true;
  if (options.is_own_line &&
      options.is_own_line(absl::string_view(head).substr(0, head.find('\n')))) {
    return true;
  }
  return !options.companion.empty() && HasMark(Head(options.companion));
}

absl::Status CheckOutput(const std::string& path,
                         const ReplaceOptions& options) {
  RETURN_IF_ERROR(CheckWritable(path));
  return CheckReplaceable(path, options);
}

absl::Status CheckOutputs(const std::vector<OutputFile>& files) {
  Problems problems("command line");
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (files[i].path.empty() || files[j].path.empty() ||
          !IsSameOutput(files[i].path, files[j].path)) {
        continue;
      }
      problems.Add(files[i].option,
                   absl::StrCat("is ", files[i].path, ", the same file as ",
                                files[j].option, "; choose another file"));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  for (const OutputFile& file : files) {
    RETURN_IF_ERROR(CheckOutput(file.path, file.replace));
  }
  return absl::OkStatus();
}

absl::Status WriteOutput(const std::string& path, absl::string_view contents,
                         const ReplaceOptions& options) {
  std::error_code error;
  const bool same = fs::is_regular_file(path, error) &&
                    fs::file_size(path, error) == contents.size() &&
                    ReadFile(path, contents.size()).value_or("") == contents;
  if (!same) RETURN_IF_ERROR(CheckReplaceable(path, options));
  return WriteFile(path, contents);
}

}  // namespace weir
