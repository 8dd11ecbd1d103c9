// SPDX-License-Identifier: Apache-2.0
// Nothing is allocated while a Program runs. oneDNN's own calls can't be kept from it:
// dnnl_primitive_execute() files its arguments in a small map, and its matrix product packs its
// operands into buffers of its own. So allocations are told apart by who asks for them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<std::int64_t> from_onednn = 0;
std::atomic<std::int64_t> from_elsewhere = 0;

/// Called with the address that malloc() will return to.
void count(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) {
    return;
  }
  Dl_info info{};
  const bool onednn =
      dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libdnnl") != nullptr;
  ++(onednn ? from_onednn : from_elsewhere);
}

}  // namespace

// The C library's functions under other names: glibc offers them for this purpose.
extern "C" {
void* __libc_malloc(std::size_t bytes);                           // NOLINT
void* __libc_calloc(std::size_t number, std::size_t bytes);       // NOLINT
void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT

void* malloc(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;
}
}

// The library's operator new calls malloc from libstdc++; defined here, the caller is known.
void* operator new(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace crossover::test {
namespace {

class Allocation : public testing::TestWithParam<std::tuple<std::string, int, Execution>> {};

TEST_P(Allocation, HappensInNoEpochButInsideOneDnn) {
  const auto& [name, threads, execution] = GetParam();
  const Task task = find_model(name);
  const bool is_eager = execution == Execution::eager;
  const Workload workload = fuse(training_epoch(task.model, {.rows = task.rows,
                                                             .batch = task.batch,
                                                             .optimizer = task.optimizer,
                                                             .accumulate = is_eager ? 2 : 1}));
  const auto steps = static_cast<std::int64_t>(workload.order.size());
  const auto backend = make_cpu_backend();
  const auto program = backend->compile(workload, {.threads = threads, .execution = execution});
  set_data(*program, workload, task.generate(task.rows));
  restart(*program, workload);
  program->enqueue(0, steps);  // OpenMP makes its threads when they are first needed
  program->wait();

  from_onednn = from_elsewhere = 0;
  counting = true;
  program->enqueue(0, steps);
  program->wait();
  counting = false;

  EXPECT_EQ(from_elsewhere, 0);
  if (is_eager) {
    EXPECT_GT(from_onednn, 0) << "the counter sees nothing; is oneDNN linked statically?";
  }
  RecordProperty("allocations_in_onednn", static_cast<int>(from_onednn));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Allocation,
                         testing::Combine(testing::Values("disc-2", "disc-8", "disc-10", "heart"),
                                          testing::Values(1, 2),
                                          testing::Values(Execution::eager, Execution::automatic)),
                         [](const auto& parameters) {
                           std::string label = std::get<0>(parameters.param);
                           label.erase(std::remove(label.begin(), label.end(), '-'), label.end());
                           return label + "_" + std::to_string(std::get<1>(parameters.param)) +
                                  (std::get<2>(parameters.param) == Execution::eager
                                       ? "_threads"
                                       : "_threads_automatic");
                         });

TEST(Allocation, HappensInNoStepOfConvolutionsButInsideOneDnn) {
  const Workload workload =
      fuse(training_epoch(resnet(ResNetR{.blocks = 1}), {.rows = 2, .batch = 2}));
  const auto backend = make_cpu_backend();
  for (const Execution execution : {Execution::eager, Execution::winograd}) {
    std::unique_ptr<Program> program;
    try {
      program = backend->compile(workload, {.threads = 2, .execution = execution});
    } catch (const Unsupported& missing) {
      GTEST_SKIP() << missing.what();
    }
    restart(*program, workload);
    program->enqueue(0, 1);
    from_onednn = from_elsewhere = 0;
    counting = true;
    program->enqueue(0, 1);
    counting = false;
    EXPECT_EQ(from_elsewhere, 0);
  }
}

TEST(Allocation, IsNoticed) {
  from_elsewhere = 0;
  counting = true;
  const std::vector<char> memory(100);
  counting = false;
  EXPECT_GT(from_elsewhere, 0) << memory.size();
}

}  // namespace
}  // namespace crossover::test
