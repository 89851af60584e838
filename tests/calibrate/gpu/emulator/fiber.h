// SPDX-License-Identifier: Apache-2.0
// A function with its own stack that can be suspended and resumed (a fiber).
#ifndef WEIR_TESTS_CALIBRATE_GPU_EMULATOR_FIBER_H_
#define WEIR_TESTS_CALIBRATE_GPU_EMULATOR_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace weir::emulator {

class Fiber {
 public:
  explicit Fiber(size_t stack_bytes);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the next Enter begin with `function`, which must not return. The
  // previous function is dropped without running its destructors.
  void Start(std::function<void()> function);
  void Enter();  // returns when the function calls Leave
  void Leave();  // called from inside the function

 private:
  static void Begin();

  size_t stack_bytes_;
  std::unique_ptr<char[]> stack_;
  std::function<void()> function_;
  bool started_ = false;
  ucontext_t inside_context_, outside_context_;
  jmp_buf inside_, outside_;
};

}  // namespace weir::emulator

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_FIBER_H_
