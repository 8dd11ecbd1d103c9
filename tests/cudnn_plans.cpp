// SPDX-License-Identifier: Apache-2.0
// Prints which of the real cuDNN's plans the networks of the catalogue get on GPUs that are not
// here: tests/test_cudnn_plans.py compares it with the table in fixtures/.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../src/cuda/libraries/library.h"
#include "../src/cuda/plan/plan.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/training.h"

namespace crossover::cuda {
namespace {

struct Gpu {
  const char* name;
  int generation;
  int multiprocessors, threads_of_each, shared_bytes, cache_bytes;
  std::int64_t memory_bytes;
};

constexpr std::int64_t gib = std::int64_t{1} << 30;
/// A well-known one of each generation.
constexpr std::array gpus{
    Gpu{"Tesla T4", 75, 40, 1024, 65536, 4 << 20, 15 * gib},
    Gpu{"NVIDIA GeForce RTX 3090", 86, 82, 1536, 101376, 6 << 20, 24 * gib},
    Gpu{"NVIDIA GeForce RTX 4090", 89, 128, 1536, 101376, 72 << 20, 24 * gib},
    Gpu{"NVIDIA H200", 90, 132, 2048, 232448, 60 << 20, 140 * gib},
    Gpu{"NVIDIA B200", 100, 148, 2048, 232448, 126 << 20, 179 * gib},
    Gpu{"NVIDIA GeForce RTX 5090", 120, 170, 1536, 101376, 96 << 20, 32 * gib}};

/// As cuDNN 9.19 writes it.
std::string described(const Gpu& gpu) {
  constexpr int warp = 32;
  constexpr int old = 75;
  std::ostringstream json;
  json << R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
       << R"("regsPerBlock":65536,"multiProcessorCount":)" << gpu.multiprocessors
       << R"(,"warpSize":)" << warp << R"(,"maxSharedMemoryPerBlock":49152,)"
       << R"("maxSharedMemoryPerBlockOptin":)" << gpu.shared_bytes
       << R"(,"reservedSharedMemoryPerBlock":)" << (gpu.generation == old ? 0 : 1024)
       << R"(,"maxRegistersPerSM":65536,"maxCtasPerSM":)" << gpu.threads_of_each / 64
       << R"(,"maxThreadsPerBlock":1024,"maxThreadsPerSM":)" << gpu.threads_of_each
       << R"(,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":)"
       << gpu.memory_bytes
       << R"(,"smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":)" << gpu.cache_bytes
       << R"(,"deviceName":")" << gpu.name << R"(","cudaDeviceId":0,"deviceVer":)"
       << gpu.generation * 10 << R"(,"driverVer":13000,"version":91900})";
  return json.str();
}
/// What a form is asked for, without its extents.
std::string kind(const SdpaForm& form) { return short_name(form); }
std::string kind(const ConvolutionForm& form) {
  std::string text = short_name(form.pass);
  text += form.bias ? " + bias" : "";
  text += form.relu ? " + relu" : "";
  return text + (form.type == form.result ? "" : " in " + to_string(form.result));
}

/// The first of the library's algorithms that it makes: what a Program takes, if it runs.
template <class Arguments, class Form>
std::unique_ptr<Prepared<Arguments>> first_made(Library<Arguments>& library, const Form& form) {
  std::string why;
  for (int algorithm = 0; algorithm < library.algorithms(form); ++algorithm) {
    try {
      Arguments of{};
      of.form = form;
      return library.make(of, algorithm);
    } catch (const std::runtime_error& refused) {
      why = refused.what();
    }
  }
  throw std::runtime_error(to_string(form) + ": " + why);
}

/// Of all forms of a kind.
struct Plans {
  std::map<std::string, int> engines;
  std::int64_t workspace_bytes = 0;
};

void print(const std::string& title, const std::map<std::string, Plans>& by_kind) {
  for (const auto& [name, plans] : by_kind) {
    constexpr int kind_width = 24;
    std::cout << title << std::left << std::setw(kind_width) << name << std::right;
    for (const auto& [engine, count] : plans.engines) {
      std::cout << ' ' << count << 'x' << engine;
    }
    constexpr double mib = 1 << 20;
    std::cout << "; " << static_cast<double>(plans.workspace_bytes) / mib << " MiB\n";
  }
}

bool has_use_for_cudnn(const Workload& workload) {
  const auto is_one = [](const Op& op) {
    return std::holds_alternative<Convolution>(op) || std::holds_alternative<Attention>(op);
  };
  return std::any_of(workload.steps.begin(), workload.steps.end(), [&](const Step& step) {
    return std::any_of(step.ops.begin(), step.ops.end(), is_one);
  });
}

/// Of each form of the plan's launches of a kind.
template <class Launched, class Arguments>
void add_plans(const LaunchPlan& plan, Library<Arguments>& library,
               std::map<std::string, Plans>& by_kind) {
  std::set<decltype(Launched::form)> forms;
  for (const Launched& launch : launches_of<Launched>(plan)) {
    forms.insert(launch.form);
  }
  for (const auto& form : forms) {
    const auto made = first_made(library, form);
    Plans& plans = by_kind[kind(form)];
    ++plans.engines[made->name()];
    plans.workspace_bytes = std::max(plans.workspace_bytes, made->workspace_bytes());
  }
}

void print_network(const std::string& name, Precision precision, std::int64_t memory_bytes,
                   ConvolutionLibrary& library, SdpaLibrary& sdpas) {
  const Task task = find_model(name);
  const Workload workload =
      make_planned_gpu()->optimize(training_epoch(task.model, {.rows = task.batch,
                                                               .batch = task.batch,
                                                               .optimizer = task.optimizer,
                                                               .precision = precision}));
  if (!has_use_for_cudnn(workload)) {
    return;
  }
  const LaunchPlan plan = make_plan(
      workload, {.precision = precision}, [](const ProductForm& /*form*/) { return true; },
      [&](const ConvolutionForm& form) { return library.algorithms(form) > 0; }, {}, true,
      memory_bytes, [&](const SdpaForm& form) { return sdpas.algorithms(form) > 0; });
  std::map<std::string, Plans> by_kind;
  add_plans<ConvolutionLaunch>(plan, library, by_kind);
  add_plans<SdpaLaunch>(plan, sdpas, by_kind);
  print("  " + name + " " + to_string(precision) + " ", by_kind);
}

/// Of long sequences, 128 heads of 64: a gradient that repeats to the bit needs a number a score.
void print_long_attention(Precision precision, SdpaLibrary& library) {
  constexpr std::int64_t batch = 16;
  constexpr std::int64_t heads = 8;
  constexpr std::int64_t width = 64;
  for (const std::int64_t time : {1024, 2048, 4096}) {
    std::map<std::string, Plans> by_kind;
    for (const auto& [is_gradient, repeats] :
         {std::pair{false, true}, {true, true}, {true, false}}) {
      const SdpaForm form{.gradient = is_gradient,
                          .time = time,
                          .batch = batch,
                          .heads = heads,
                          .d = width,
                          .causal = true,
                          .type = storage_of(precision),
                          .repeats = repeats};
      Plans& plans = by_kind[kind(form) + (repeats ? "" : ", does not repeat")];
      try {
        const auto made = first_made(library, form);
        ++plans.engines[made->name()];
        plans.workspace_bytes = made->workspace_bytes();
      } catch (const std::runtime_error& /*none is made*/) {
        ++plans.engines["none"];
      }
    }
    print("  T " + std::to_string(time) + " " + to_string(precision) + " ", by_kind);
  }
}

void print_gpu(const Gpu& gpu) {
  constexpr int tens = 10;
  std::cout << "sm_" << gpu.generation << ", " << gpu.name << ", cuDNN " << cudnn_version() << '\n'
            << std::fixed << std::setprecision(1);
  cudaDeviceProp properties{};
  properties.major = gpu.generation / tens;
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    if (!missing_for_products(properties, precision).empty()) {
      continue;
    }
    const auto library = make_cudnn_library_for(described(gpu), precision, gpu.memory_bytes);
    const auto sdpas = make_sdpa_library_for(described(gpu), precision, gpu.memory_bytes);
    for (const Family& family : catalogue()) {
      for (const std::string& name : family.names) {
        print_network(name, precision, gpu.memory_bytes, *library, *sdpas);
      }
    }
    if (precision == Precision::bf16 || precision == Precision::f16) {
      print_long_attention(precision, *sdpas);
    }
  }
}

}  // namespace
}  // namespace crossover::cuda

/// What cudnn-frontend asks the CUDA runtime when it checks attention, whatever device it was told.
int generation_asked_for = 0;
extern "C" cudaError_t __wrap_cudaGetDevice(int* device) {  // NOLINT(*-identifier*)
  *device = 0;
  return cudaSuccess;
}
// NOLINTNEXTLINE(*-identifier*)
extern "C" cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* of, int /*device*/) {
  constexpr int tens = 10;
  *of = {};
  of->major = generation_asked_for / tens;
  of->minor = generation_asked_for % tens;
  return cudaSuccess;
}

/// Of the generation that is named ("90"): cuDNN keeps what it learns of the first GPU, so each has
/// a process of its own.
int main(int count, char** words) {
  using namespace crossover::cuda;
  const std::string asked = count > 1 ? words[1] : "";
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& one) {
    return std::to_string(one.generation) == asked;
  });
  if (gpu == gpus.end()) {
    std::cerr << "which generation of GPUs? 75, 86, 89, 90, 100 or 120\n";
    return 2;
  }
  generation_asked_for = gpu->generation;
  print_gpu(*gpu);
  return 0;
}
