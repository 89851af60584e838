// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weir::calibrate {
// Not in an anonymous namespace: GCC 14 crashes on a struct with pointers to
// functions of such types, if it is not in the main file (unity builds).
namespace nvml {

// From NVIDIA's documentation of NVML; its ABI is stable.
using NvmlReturn = int;  // 0: success
using NvmlDevice = void*;
struct NvmlMemory {
  uint64_t total, free, used;
};
struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct NvmlFieldValue {
  unsigned field, scope;
  int64_t timestamp, latency_microseconds;
  unsigned type;  // of `value`
  NvmlReturn code;
  union {
    unsigned number;
    uint64_t large_number;
  } value;
};

}  // namespace nvml

namespace {

using nvml::NvmlDevice;
using nvml::NvmlFieldValue;
using nvml::NvmlMemory;
using nvml::NvmlPci;
using nvml::NvmlReturn;

// NVML_FI_DEV_POWER_INSTANT, in milliwatts. nvmlDeviceGetPowerUsage is the mean
// of the last second on most GPUs, which is longer than a measurement.
constexpr unsigned kInstantPower = 186;
constexpr unsigned kUnsignedInt = 1;
constexpr unsigned kMostLinks = 18, kRemoteSwitch = 2;
constexpr unsigned kSmClock = 1;
constexpr unsigned kGpuTemperature = 0;
constexpr uint64_t kSwPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20,
                   kHwThermal = 0x40, kHwPowerBrake = 0x80;

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  NvmlDevice device = nullptr;
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*by_bus_id)(const char*, NvmlDevice*) = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  // Each of these may be missing.
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*application_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*default_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*fields)(NvmlDevice, int, NvmlFieldValue*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*reasons)(NvmlDevice, uint64_t*) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlReturn (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*remote_type)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*remote_pci)(NvmlDevice, unsigned, NvmlPci*) = nullptr;
  std::string bus_id;
  bool initialized = false;

  ~Library() {
    if (initialized && shutdown != nullptr) shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  template <typename Function>
  bool Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }
  void FindAll();
  double Watts() const;

  // Returns 0 if the function is missing or fails.
  template <typename Function, typename... Arguments>
  unsigned Query(Function function, Arguments... arguments) const {
    unsigned value = 0;
    if (function == nullptr || function(device, arguments..., &value) != 0) {
      return 0;
    }
    return value;
  }
};

void Nvml::Library::FindAll() {
  Find("nvmlShutdown", &shutdown);
  Find("nvmlErrorString", &error_string);
  Find("nvmlSystemGetDriverVersion", &driver_version);
  Find("nvmlDeviceGetClockInfo", &clock);
  Find("nvmlDeviceGetApplicationsClock", &application_clock);
  Find("nvmlDeviceGetDefaultApplicationsClock", &default_clock);
  Find("nvmlDeviceGetFieldValues", &fields);
  Find("nvmlDeviceGetPowerUsage", &power);
  Find("nvmlDeviceGetEnforcedPowerLimit", &power_limit);
  Find("nvmlDeviceGetTemperature", &temperature);
  // Renamed in driver 535.
  if (!Find("nvmlDeviceGetCurrentClocksEventReasons", &reasons)) {
    Find("nvmlDeviceGetCurrentClocksThrottleReasons", &reasons);
  }
  Find("nvmlDeviceGetMemoryInfo", &memory);
  Find("nvmlDeviceGetNvLinkState", &link_state);
  Find("nvmlDeviceGetNvLinkRemoteDeviceType", &remote_type);
  Find("nvmlDeviceGetNvLinkRemotePciInfo_v2", &remote_pci);
}

// Returns the present power; the mean of the last second if the driver knows no
// other; 0 if it knows none.
double Nvml::Library::Watts() const {
  NvmlFieldValue instant{};
  instant.field = kInstantPower;
  if (fields != nullptr && fields(device, 1, &instant) == 0 &&
      instant.code == 0) {
    return 1e-3 * (instant.type == kUnsignedInt
                       ? instant.value.number
                       : static_cast<double>(instant.value.large_number));
  }
  return 1e-3 * Query(power);
}

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const std::string& library,
                                                 const std::string& bus_id) {
  const auto unavailable = [&](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat("clocks, power and temperature are unknown: ", why));
  };
  auto opened = std::make_unique<Library>();
  opened->handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened->handle == nullptr) return unavailable(dlerror());
  opened->FindAll();
  if (!opened->Find("nvmlInit_v2", &opened->init) ||
      !opened->Find("nvmlDeviceGetHandleByPciBusId_v2", &opened->by_bus_id)) {
    return unavailable(absl::StrCat(library, " is too old"));
  }
  const auto words = [&](NvmlReturn code) {
    return opened->error_string != nullptr ? opened->error_string(code)
                                           : "unknown error";
  };
  if (NvmlReturn code = opened->init(); code != 0) {
    return unavailable(absl::StrCat("nvmlInit: ", words(code)));
  }
  opened->initialized = true;
  opened->bus_id = bus_id;
  if (NvmlReturn code = opened->by_bus_id(bus_id.c_str(), &opened->device);
      code != 0) {
    return unavailable(
        absl::StrCat("NVML does not show GPU ", bus_id, ": ", words(code)));
  }
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = std::move(opened);
  return nvml;
}

Nvml::~Nvml() = default;

DeviceState Nvml::Sample() const {
  const Library& nvml = *library_;
  DeviceState state;
  state.multiprocessor_hertz = 1e6 * nvml.Query(nvml.clock, kSmClock);
  state.watts = nvml.Watts();
  state.celsius = nvml.Query(nvml.temperature, kGpuTemperature);
  uint64_t reasons = 0;
  if (nvml.reasons != nullptr && nvml.reasons(nvml.device, &reasons) == 0) {
    state.power_capped = (reasons & (kSwPowerCap | kHwPowerBrake)) != 0;
    state.thermal_slowdown =
        (reasons & (kHwSlowdown | kSwThermal | kHwThermal)) != 0;
  }
  return state;
}

std::string Nvml::driver_version() const {
  char version[96] = "";
  if (library_->driver_version == nullptr ||
      library_->driver_version(version, sizeof version) != 0) {
    return "";
  }
  return version;
}

std::string Nvml::clocks() const {
  const Library& nvml = *library_;
  const unsigned set = nvml.Query(nvml.application_clock, kSmClock);
  const unsigned usual = nvml.Query(nvml.default_clock, kSmClock);
  if (set == 0 || set == usual) return "default";
  return absl::StrCat("application clocks at ", set, " MHz");
}

double Nvml::power_limit_watts() const {
  return 1e-3 * library_->Query(library_->power_limit);
}

std::string Nvml::LinkBetween(absl::string_view bus_id,
                              absl::string_view other) {
  // NVML writes the domain with eight digits, CUDA with four.
  const auto plain = [](absl::string_view address) {
    constexpr size_t kLength = 12;
    if (address.size() > kLength) {
      address.remove_prefix(address.size() - kLength);
    }
    return absl::AsciiStrToLower(address);
  };
  const std::string a = plain(bus_id);
  const std::string b = plain(other);
  return absl::StrCat(std::min(a, b), "-", std::max(a, b));
}

std::vector<std::string> Nvml::link_addresses() const {
  const Library& nvml = *library_;
  std::set<std::string> addresses;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    if (nvml.Query(nvml.link_state, link) == 0) continue;
    NvmlPci pci{};
    const bool known = nvml.remote_pci != nullptr &&
                       nvml.remote_pci(nvml.device, link, &pci) == 0;
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    // Virtual machines hide the type of their switches.
    if (nvml.Query(nvml.remote_type, link) == kRemoteSwitch ||
        (known && absl::StartsWithIgnoreCase(pci.bus_id, "ffff"))) {
      addresses.insert("nvswitch");
    } else if (known) {
      addresses.insert(LinkBetween(nvml.bus_id, pci.bus_id));
    }
  }
  return {addresses.begin(), addresses.end()};
}

double Nvml::memory_in_use_bytes() const {
  NvmlMemory memory{};
  if (library_->memory == nullptr ||
      library_->memory(library_->device, &memory) != 0) {
    return 0;
  }
  return static_cast<double>(memory.used);
}

}  // namespace weir::calibrate
