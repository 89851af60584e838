// SPDX-License-Identifier: Apache-2.0
// A fake NVML with one GPU at bus 0000:3B:00.0, for tests.
#include <cstdint>
#include <cstring>

namespace {
int device;
int num_users = 0;
}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NVML's names.

int nvmlInit_v2() {
  ++num_users;
  return 0;
}
int nvmlShutdown() {
  --num_users;
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 6 ? "Not Found" : "Unknown Error";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** found) {
  if (std::strcmp(bus_id, "0000:3B:00.0") != 0) return 6;
  *found = &device;
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "580.65.06", length);
  return 0;
}
int nvmlDeviceGetTemperature(void* asked, unsigned sensor, unsigned* celsius) {
  if (asked != &device || sensor != 0) return 2;
  *celsius = 61;
  return 0;
}
int nvmlDeviceGetClockInfo(void* asked, unsigned type, unsigned* megahertz) {
  if (asked != &device || type != 1) return 2;
  *megahertz = 1755;
  return 0;
}

#ifdef FAKE_OLD_NVML
// Before driver 535, the function has its old name and there is no power meter.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, uint64_t* bits) {
  *bits = 0x40;  // hardware thermal slowdown
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned*) { return 3; }
int nvmlDeviceGetApplicationsClock(void*, unsigned, unsigned* megahertz) {
  *megahertz = 1305;
  return 0;
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(void*, uint64_t* bits) {
  *bits = 0x4;  // software power cap
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 512000;  // the mean of the last second
  return 0;
}
struct FieldValue {
  unsigned field, scope;
  int64_t timestamp, latency;
  unsigned type;
  int code;
  uint64_t value;
};
static_assert(sizeof(FieldValue) == 40);
int nvmlDeviceGetFieldValues(void* asked, int count, FieldValue* values) {
  if (asked != &device) return 2;
  for (int i = 0; i < count; ++i) {
    const bool is_known = values[i].field == 186 && values[i].scope == 0;
    values[i].code = is_known ? 0 : 3;
    values[i].type = 1;  // unsigned int; the rest of the value is undefined
    values[i].value = 0xDEADBEEF00000000 + 698500;
  }
  return 0;
}
int nvmlDeviceGetApplicationsClock(void*, unsigned, unsigned* megahertz) {
  *megahertz = 1980;
  return 0;
}
#endif

int nvmlDeviceGetDefaultApplicationsClock(void*, unsigned,
                                          unsigned* megahertz) {
  *megahertz = 1980;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, uint64_t* total_free_used) {
  total_free_used[0] = 1000;
  total_free_used[1] = 400;
  total_free_used[2] = 600;
  return 0;
}

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
