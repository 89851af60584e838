// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir {
namespace {

// File names for the signal handler, which may neither allocate nor lock. A
// signal does not remove a file for which no slot was free.
constexpr int kNumSlots = 16;
constexpr int kMaxAttempts = 100;

struct Slot {
  std::atomic<bool> taken = false;
  // The process that owns the file, 0 while the name is incomplete. A forked
  // child has a copy of the slots and must not remove its parent's files.
  std::atomic<pid_t> owner = 0;
  char path[PATH_MAX];
};
static_assert(std::atomic<pid_t>::is_always_lock_free);

Slot slots[kNumSlots];

int TakeSlot(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (int i = 0; i < kNumSlots; ++i) {
    if (slots[i].taken.exchange(true)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].owner = getpid();
    return i;
  }
  return -1;
}

void FreeSlot(int slot) {
  if (slot < 0) return;
  slots[slot].owner = 0;
  slots[slot].taken = false;
}

absl::Status Errno() {
  return absl::InvalidArgumentError(std::strerror(errno));
}

std::string RandomName() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) bits = 0;
  return absl::StrFormat(".weir-%016x.tmp", bits);
}

}  // namespace

absl::StatusOr<TemporaryFile> TemporaryFile::Create(const std::string& target) {
  TemporaryFile file;
  file.target_ = target;
  const std::filesystem::path folder =
      std::filesystem::path(target).parent_path();
  for (int i = 0; i < kMaxAttempts; ++i) {
    const std::string path = folder / RandomName();
    // Take the slot before the file exists, so that a signal always finds it.
    file.slot_ = TakeSlot(path);
    file.fd_ = open(path.c_str(),
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file.fd_ >= 0) {
      file.path_ = path;
      struct stat replaced;
      if (stat(target.c_str(), &replaced) == 0) {
        fchmod(file.fd_, replaced.st_mode & 0777);
      }
      return file;
    }
    FreeSlot(std::exchange(file.slot_, -1));
    if (errno != EEXIST && errno != EINTR) break;
  }
  return Errno();
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::exchange(other.path_, {})),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, -1)) {}

TemporaryFile::~TemporaryFile() {
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
  FreeSlot(slot_);
}

absl::Status TemporaryFile::Commit() {
  if (fsync(fd_) != 0) return Errno();
  // NFS reports a full disk here.
  if (close(std::exchange(fd_, -1)) != 0) return Errno();
  if (rename(path_.c_str(), target_.c_str()) != 0) return Errno();
  path_.clear();
  SyncFolderOf(target_);
  return absl::OkStatus();
}

void RemoveTemporaryFiles() {
  for (Slot& slot : slots) {
    if (slot.owner == getpid()) unlink(slot.path);
  }
}

void SyncFolderOf(const std::string& path) {
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  const int fd = open(parent.empty() ? "." : parent.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void IgnoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace weir
