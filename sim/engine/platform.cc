// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/platform.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "sim/engine/simgrid_platform.h"

// The module, from simgrid_module.cc, which the build writes.
extern "C" {
extern const char weir_simgrid_module[];
extern const char weir_simgrid_module_end[];
}

namespace weir::sim {
namespace {

using MakeSharedFlows = SharedFlows*();

absl::Status LoadError(absl::string_view reason) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot load SimGrid: ", reason));
}

// Writes the module to a file in memory and loads it.
absl::StatusOr<MakeSharedFlows*> LoadModule() {
  const int file = memfd_create("weir-simgrid", MFD_CLOEXEC);
  if (file < 0) return LoadError(std::strerror(errno));
  const char* begin = weir_simgrid_module;
  while (begin < weir_simgrid_module_end) {
    const ssize_t size = write(file, begin, weir_simgrid_module_end - begin);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      const int error = errno;
      close(file);
      return LoadError(std::strerror(error));
    }
    begin += size;
  }
  // Never unloaded.
  void* module = dlopen(absl::StrCat("/proc/self/fd/", file).c_str(),
                        RTLD_NOW | RTLD_LOCAL);
  close(file);
  if (module == nullptr) return LoadError(dlerror());
  void* function = dlsym(module, "weir_make_simgrid_platform");
  if (function == nullptr) return LoadError(dlerror());
  return reinterpret_cast<MakeSharedFlows*>(function);
}

const absl::StatusOr<MakeSharedFlows*>& Module() {
  static const auto* const module =
      new absl::StatusOr<MakeSharedFlows*>(LoadModule());
  return *module;
}

}  // namespace

absl::Status LoadSimGrid() { return Module().status(); }

Platform::Platform() = default;
Platform::~Platform() = default;

void Platform::SetNetwork(std::span<const scenarios::Link> links,
                          std::span<const GpuPair> pairs) {
  network_ = links;
  pairs_ = pairs;
  if (flows_ != nullptr) flows_->SetNetwork(links, pairs);
}

void Platform::StartFlow(int32_t pair, double bytes, int32_t flow,
                         double seconds) {
  if (flows_ == nullptr) {
    const absl::Status loaded = LoadSimGrid();
    if (!loaded.ok()) throw std::runtime_error(std::string(loaded.message()));
    flows_.reset((**Module())());
    flows_->SetNetwork(network_, pairs_);
  }
  flows_->StartFlow(pair, bytes, flow, seconds);
}

int Platform::num_flows() const {
  return flows_ == nullptr ? 0 : flows_->num_flows();
}
void Platform::SetAlarm(double seconds) { flows_->SetAlarm(seconds); }
void Platform::StopAlarm() {
  if (flows_ != nullptr) flows_->StopAlarm();
}
void Platform::Run(Listener* listener) { flows_->Run(listener); }

}  // namespace weir::sim
