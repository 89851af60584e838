// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/fake/fake_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::fake {
namespace {

struct Use {
  const char *begin, *end;
  bool writes;
  int stream;
  uint64_t at;
};

struct Block {
  int64_t num_bytes;
  std::vector<Use> uses;
};

std::map<const char*, Block>& Blocks() {
  static auto& blocks = *new std::map<const char*, Block>;
  return blocks;
}

Block* BlockOf(const char* begin, int64_t num_bytes) {
  auto after = Blocks().upper_bound(begin);
  if (after == Blocks().begin()) return nullptr;
  auto& [base, block] = *--after;
  return begin + num_bytes <= base + block.num_bytes ? &block : nullptr;
}

void AddFault(const std::string& fault) {
  if (calibrate::Gpu().faults.size() < 20)
    calibrate::Gpu().faults.push_back(fault);
}

void Check(const Access& access, int stream, const Order& order,
           const Block& block) {
  const auto* begin = static_cast<const char*>(access.begin);
  for (const Use& use : block.uses) {
    if (use.stream == stream || (!use.writes && !access.writes)) continue;
    if (use.end <= begin || begin + access.num_bytes <= use.begin) continue;
    const auto seen = order.find(use.stream);
    if (seen != order.end() && seen->second >= use.at) continue;
    AddFault(absl::StrCat("stream ", stream, " ",
                          access.writes ? "writes" : "reads", " what stream ",
                          use.stream, use.writes ? " writes" : " reads"));
  }
}

void Remember(const Access& access, int stream, uint64_t at, Block* block) {
  const auto* begin = static_cast<const char*>(access.begin);
  const Use use = {begin, begin + access.num_bytes, access.writes, stream, at};
  for (Use& old : block->uses) {
    if (old.begin == use.begin && old.end == use.end &&
        old.writes == use.writes && old.stream == use.stream) {
      old.at = at;
      return;
    }
  }
  block->uses.push_back(use);
}

}  // namespace

void Merge(const Order& from, Order* into) {
  for (const auto& [stream, at] : from) {
    uint64_t& mine = (*into)[stream];
    mine = std::max(mine, at);
  }
}

bool Note(int stream, const Accesses& accesses, Order* order) {
  Merge(SeenByHost(), order);
  const uint64_t at = ++(*order)[stream];
  bool all_there = true;
  for (const Access& access : accesses) {
    if (access.num_bytes == 0) continue;
    Block* block =
        BlockOf(static_cast<const char*>(access.begin), access.num_bytes);
    if (block == nullptr) {
      all_there = false;
      AddFault(absl::StrCat("stream ", stream, " uses ", access.num_bytes,
                            " bytes that were not allocated"));
      continue;
    }
    Check(access, stream, *order, *block);
    Remember(access, stream, at, block);
  }
  return all_there;
}

void NoteTaken(const void* memory, int64_t num_bytes, int stream,
               Order* order) {
  Blocks()[static_cast<const char*>(memory)] = {num_bytes, {}};
  if (order != nullptr) Note(stream, {Writes(memory, num_bytes)}, order);
}

void NoteGivenBack(const void* memory, int stream, Order* order) {
  const auto found = Blocks().find(static_cast<const char*>(memory));
  if (found == Blocks().end()) {
    AddFault("memory is freed that was not allocated");
    return;
  }
  if (order != nullptr) {
    Note(stream, {Writes(memory, found->second.num_bytes)}, order);
  }
  Blocks().erase(found);
}

bool IsThere(const void* memory, int64_t num_bytes) {
  return BlockOf(static_cast<const char*>(memory), num_bytes) != nullptr;
}

Order& SeenByHost() {
  thread_local Order seen;
  return seen;
}

void ForgetAll() {
  for (auto& [base, block] : Blocks()) block.uses.clear();
}

}  // namespace weir::fake
