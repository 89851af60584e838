// SPDX-License-Identifier: Apache-2.0
#include "results/import/trace_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir::results {

class TraceSource::Impl {
 public:
  Impl(std::string label, int fd, absl::string_view text, ReadProgress progress)
      : label_(std::move(label)),
        fd_(fd),
        text_(text),
        progress_(std::move(progress)),
        raw_(kBufferBytes),
        plain_(kBufferBytes) {
    struct stat file;
    if (fd_ >= 0 && fstat(fd_, &file) == 0) {
      size_ = static_cast<double>(file.st_size);
    }
  }
  ~Impl() {
    if (inflating_) inflateEnd(&stream_);
    if (fd_ >= 0) close(fd_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Returns the next bytes; empty at the end.
  std::pair<char*, size_t> Next() {
    size_t count = 0;
    if (!ended_) count = is_first_ ? First() : (inflating_ ? Inflate() : Raw());
    is_first_ = false;
    item_bytes_ += count;
    if (item_bytes_ > kMaxItemBytes + kBufferBytes) {
      Fail(absl::StrCat("a name, value or line is longer than ",
                        kMaxItemBytes >> 20, " MiB, expected a trace"));
      count = 0;
    }
    ended_ = count == 0;
    return {plain_.data(), count};
  }

  const std::string& label() const { return label_; }
  bool is_compressed() const { return inflating_; }
  bool ended() const { return ended_; }
  bool cut_off() const { return cut_off_; }
  const absl::Status& status() const { return status_; }
  void EndItem() { item_bytes_ = 0; }

 private:
  static constexpr size_t kBufferBytes = size_t{256} << 10;

  void Fail(absl::string_view why) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(label_, ": ", why));
    }
  }

  // Reads bytes of the file; 0 at the end.
  size_t Read(char* to, size_t size) {
    size_t count = 0;
    if (fd_ < 0) {
      count = std::min(size, text_.size());
      std::memcpy(to, text_.data(), count);
      text_.remove_prefix(count);
      return count;
    }
    ssize_t got;
    do {
      got = read(fd_, to, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
      Fail(absl::StrCat("cannot be read: ", std::strerror(errno)));
      return 0;
    }
    read_ += static_cast<double>(got);
    if (progress_ && size_ > 0) progress_(std::min(read_ / size_, 1.0));
    return static_cast<size_t>(got);
  }

  size_t Raw() { return Read(plain_.data(), plain_.size()); }

  size_t First() {
    const size_t count = Read(raw_.data(), raw_.size());
    const bool is_gzip = count >= 2 && raw_[0] == '\x1f' && raw_[1] == '\x8b';
    if (!is_gzip) {
      std::memcpy(plain_.data(), raw_.data(), count);
      return count;
    }
    std::memset(&stream_, 0, sizeof(stream_));
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) {
      Fail("zlib cannot start");
      return 0;
    }
    inflating_ = true;
    stream_.next_in = reinterpret_cast<Bytef*>(raw_.data());
    stream_.avail_in = static_cast<uInt>(count);
    return Inflate();
  }

  size_t Inflate() {
    stream_.next_out = reinterpret_cast<Bytef*>(plain_.data());
    stream_.avail_out = static_cast<uInt>(plain_.size());
    while (stream_.avail_out == plain_.size()) {
      if (stream_.avail_in == 0) {
        stream_.next_in = reinterpret_cast<Bytef*>(raw_.data());
        stream_.avail_in = static_cast<uInt>(Read(raw_.data(), raw_.size()));
        if (stream_.avail_in == 0) {
          cut_off_ = status_.ok() && !member_ended_;
          break;
        }
      }
      if (member_ended_) {
        if (inflateReset(&stream_) != Z_OK) break;
        member_ended_ = false;
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        member_ended_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        Fail(absl::StrCat("the compressed data is damaged: ",
                          stream_.msg == nullptr ? "zlib" : stream_.msg));
        break;
      }
    }
    return plain_.size() - stream_.avail_out;
  }

  std::string label_;
  int fd_;
  absl::string_view text_;
  ReadProgress progress_;
  double size_ = 0, read_ = 0;  // bytes of the file
  std::vector<char> raw_, plain_;
  z_stream stream_;
  bool inflating_ = false, member_ended_ = false, cut_off_ = false;
  bool is_first_ = true, ended_ = false;
  size_t item_bytes_ = 0;
  absl::Status status_;
};

TraceSource::TraceSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceSource::~TraceSource() = default;

absl::StatusOr<std::unique_ptr<TraceSource>> TraceSource::Open(
    const std::string& path, ReadProgress progress) {
  ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, O_RDONLY));
  return std::unique_ptr<TraceSource>(new TraceSource(
      std::make_unique<Impl>(path, fd, "", std::move(progress))));
}

std::unique_ptr<TraceSource> TraceSource::FromText(absl::string_view label,
                                                   absl::string_view bytes) {
  return std::unique_ptr<TraceSource>(new TraceSource(
      std::make_unique<Impl>(std::string(label), -1, bytes, nullptr)));
}

const std::string& TraceSource::label() const { return impl_->label(); }
absl::string_view TraceSource::Peek() {
  sgetc();
  return absl::string_view(gptr(), static_cast<size_t>(egptr() - gptr()));
}
bool TraceSource::is_compressed() const { return impl_->is_compressed(); }
void TraceSource::EndItem() { impl_->EndItem(); }
bool TraceSource::at_end() const { return impl_->ended() && gptr() == egptr(); }
const absl::Status& TraceSource::status() const { return impl_->status(); }
bool TraceSource::cut_off() const { return impl_->cut_off(); }

TraceSource::int_type TraceSource::underflow() {
  if (gptr() == egptr()) {
    const auto [data, count] = impl_->Next();
    setg(data, data, data + count);
    if (count == 0) return traits_type::eof();
  }
  return traits_type::to_int_type(*gptr());
}

absl::StatusOr<std::string> ReadTextOrGzip(const std::string& path) {
  // Unlike TraceSource::Open, also reads pipes.
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const std::unique_ptr<TraceSource> source =
      TraceSource::FromText(path, bytes);
  std::string text;
  std::vector<char> part(size_t{64} << 10);
  for (;;) {
    const std::streamsize count =
        source->sgetn(part.data(), static_cast<std::streamsize>(part.size()));
    RETURN_IF_ERROR(source->status());
    if (count == 0) break;
    text.append(part.data(), static_cast<size_t>(count));
    source->EndItem();
    if (text.size() > kMaxTextFileBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": holds more than ", kMaxTextFileBytes >> 20,
                       " MiB, expected a smaller file"));
    }
  }
  if (source->cut_off()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": the compressed data is cut off, expected a "
                     "complete file"));
  }
  return text;
}

}  // namespace weir::results
