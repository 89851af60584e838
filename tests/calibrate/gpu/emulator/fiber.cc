// SPDX-License-Identifier: Apache-2.0
// _FORTIFY_SOURCE would refuse jumps between stacks.
#undef _FORTIFY_SOURCE
#include "tests/calibrate/gpu/emulator/fiber.h"

#include <utility>

namespace weir::emulator {
namespace {

// AddressSanitizer understands swapcontext, but not jumps between stacks. Jumps
// make no system call and are ten times as fast.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kJump = false;
#else
constexpr bool kJump = true;
#endif

Fiber* starting = nullptr;

}  // namespace

Fiber::Fiber(size_t stack_bytes)
    : stack_bytes_(stack_bytes), stack_(new char[stack_bytes]) {}

void Fiber::Start(std::function<void()> function) {
  function_ = std::move(function);
  started_ = false;
}

void Fiber::Begin() {
  Fiber* self = starting;
  self->function_();
}

void Fiber::Enter() {
  if (kJump && _setjmp(outside_) != 0) return;
  if (started_) {
    if (kJump) _longjmp(inside_, 1);
    swapcontext(&outside_context_, &inside_context_);
    return;
  }
  started_ = true;
  starting = this;
  getcontext(&inside_context_);
  inside_context_.uc_stack.ss_sp = stack_.get();
  inside_context_.uc_stack.ss_size = stack_bytes_;
  inside_context_.uc_link = nullptr;
  makecontext(&inside_context_, &Fiber::Begin, 0);
  swapcontext(&outside_context_, &inside_context_);
}

void Fiber::Leave() {
  if (!kJump) {
    swapcontext(&inside_context_, &outside_context_);
  } else if (_setjmp(inside_) == 0) {
    _longjmp(outside_, 1);
  }
}

}  // namespace weir::emulator
