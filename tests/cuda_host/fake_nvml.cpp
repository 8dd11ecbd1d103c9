// SPDX-License-Identifier: Apache-2.0
// A made-up libnvidia-ml.so.1 for test_bench_gpu.py. Two of them: a driver of today whose GPU is
// held back, and one (FAKE_NVML_OLD) that knows few functions, whose GPU is well.
#include <cstring>

#ifdef FAKE_NVML_OLD
#define FAKE_NVML_REASONS nvmlDeviceGetCurrentClocksThrottleReasons
constexpr unsigned sm_mhz = 1980;
constexpr unsigned long long reasons = 0x1;  // idle
#else
#define FAKE_NVML_REASONS nvmlDeviceGetCurrentClocksEventReasons
constexpr unsigned sm_mhz = 1410;
constexpr unsigned long long reasons = 0x1 | 0x4 | 0x20;  // idle, power cap, temperature
#endif

namespace {

constexpr int success = 0;
constexpr int not_found = 6;
int gpu = 0;
bool is_open = false;

int answer(void* of, unsigned* to, unsigned number) {
  if (!is_open || of != &gpu) {
    return not_found;
  }
  *to = number;
  return success;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  is_open = true;
  return success;
}
int nvmlShutdown() {
  is_open = false;
  return success;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** handle) {
  *handle = &gpu;
  return std::strcmp(id, "0000:00:00.0") == 0 ? success : not_found;  // the emulated one's
}
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::strncpy(text, "580.65.06", length);
  return success;
}
int nvmlDeviceGetClockInfo(void* of, unsigned type, unsigned* mhz) {
  return answer(of, mhz, type == 1 ? sm_mhz : 3201);
}
int nvmlDeviceGetMaxClockInfo(void* of, unsigned type, unsigned* mhz) {
  return answer(of, mhz, type == 1 ? 1980 : 3201);
}
int FAKE_NVML_REASONS(void* of, unsigned long long* bits) {
  *bits = reasons;
  return of == &gpu ? success : not_found;
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetEnforcedPowerLimit(void* of, unsigned* milliwatts) {
  return answer(of, milliwatts, 700000);
}
int nvmlDeviceGetMemoryInfo(void* of, unsigned long long* total_free_used) {
  total_free_used[0] = 150754820096;
  return of == &gpu ? success : not_found;
}
int nvmlDeviceGetPersistenceMode(void* of, int* mode) {
  *mode = 1;
  return of == &gpu ? success : not_found;
}
int nvmlDeviceGetEccMode(void* of, int* current, int* pending) {
  *current = 1;
  *pending = 0;
  return of == &gpu ? success : not_found;
}
/// 100 J more at each call.
int nvmlDeviceGetTotalEnergyConsumption(void* of, unsigned long long* millijoules) {
  static unsigned long long so_far = 5'000'000;
  *millijoules = so_far += 100'000;
  return of == &gpu ? success : not_found;
}
int nvmlDeviceGetTemperature(void* of, unsigned /*sensor*/, unsigned* celsius) {
  return answer(of, celsius, 42);
}
#endif

}  // extern "C"
