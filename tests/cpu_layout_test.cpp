// SPDX-License-Identifier: Apache-2.0
// Tensors that do not lie plain in the CPU's memory: permuted, or blocked and padded.
#include <gtest/gtest.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <variant>

#include "../src/cpu/backend/plan.h"
#include "../src/cpu/base/threads.h"
#include "../src/cpu/operations/operations.h"
#include "../src/cpu/plan/primitives.h"
#include "../src/cpu/run/program.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

using cpu::Layout;
using Tag = dnnl::memory::format_tag;

/// Both have two dimensions. AB16b16a pads each to a multiple of 16. Images and weights of
/// convolutions, which have four, lie with channels last, or in padded blocks of them.
Layout layout_of(const Tensor& tensor, Tag tag) {
  if (tensor.shape.size() == 4) {
    return Layout(
        {tensor.shape, cpu::onednn_type(tensor.type), tag == Tag::ba ? Tag::acdb : Tag::aBcd16b});
  }
  const std::int64_t last = tensor.shape.back();
  return Layout({{elements(tensor.shape) / last, last}, cpu::onednn_type(tensor.type), tag});
}

/// Weights of groups have an extent more for oneDNN, which no layout above has.
std::set<Id> weights_of_groups(const Workload& workload) {
  std::set<Id> all;
  const auto add = [&](const auto& op, Id images, std::initializer_list<Id> weights) {
    if (groups_of(workload[images], workload[op.w]) != 1) {
      all.insert(weights);
    }
  };
  for (const Op& op : workload.steps.front().ops) {
    if (const auto* forward = std::get_if<Convolution>(&op)) {
      add(*forward, forward->x, {forward->w});
    } else if (const auto* grad = std::get_if<ConvolutionGrad>(&op)) {
      add(*grad, grad->image(), {grad->w, grad->dw});
    }
  }
  return all;
}

std::map<Id, Layout> all_in(const Workload& workload, Tag tag) {
  const std::set<Id> of_groups = weights_of_groups(workload);
  std::map<Id, Layout> layouts;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const Tensor& tensor = workload.tensors[i];
    if (tensor.role != Role::data && tensor.role != Role::input && tensor.shape.size() > 1 &&
        !of_groups.contains(static_cast<Id>(i))) {
      layouts[static_cast<Id>(i)] = layout_of(tensor, tag);
    }
  }
  return layouts;
}

TEST(CpuLayout, KnowsThePlainOne) {
  const Tensor tensor{.name = "x", .shape = {3, 5}};
  EXPECT_TRUE(layout_of(tensor, Tag::ab).is_plain());
  EXPECT_FALSE(layout_of(tensor, Tag::ba).is_plain());
  EXPECT_EQ(layout_of(tensor, Tag::ba).bytes(tensor), 3 * 5 * 4);
  EXPECT_EQ(layout_of(tensor, Tag::AB16b16a).bytes(tensor), 16 * 16 * 4);
}

TEST(CpuLayout, RefusesATensorOfAnotherSizeOrType) {
  const Layout layout = layout_of({.name = "x", .shape = {3, 5}}, Tag::ba);
  EXPECT_THROW(static_cast<void>(layout.bytes({.name = "y", .shape = {3, 4}})),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(layout.bytes({.name = "y", .shape = {3, 5}, .type = Type::i32})),
               std::invalid_argument);
}

TEST(CpuTensors, SpeakThePlainLayoutWhateverLiesInMemory) {
  const Tensor tensor{.name = "w", .shape = {3, 5}, .role = Role::parameter};
  for (const Tag tag : {Tag::ab, Tag::ba, Tag::AB16b16a}) {
    const Layout layout = layout_of(tensor, tag);
    cpu::Tensors tensors({tensor}, {layout}, {.offset = {0}, .bytes = layout.bytes(tensor)}, 1);
    std::vector<float> values(15);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i + 1);
    }
    tensors.upload(0, std::as_bytes(std::span(values)));
    std::vector<float> back(15);
    tensors.download(0, std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, values);
    // Element [0, 1] lies next to [0, 0] in the plain layout only.
    const auto* memory = reinterpret_cast<const float*>(tensors.operand(0).at({}));
    EXPECT_EQ(memory[1] == values[1], tag == Tag::ab);
  }
}

class CpuLayouts : public testing::TestWithParam<OperationCase> {};

TEST_P(CpuLayouts, ChangeNoResult) {
  const OperationCase& c = GetParam();
  if (const std::string reason = missing(c, *make_cpu_backend()); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  for (const Tag tag : {Tag::ba, Tag::AB16b16a}) {
    const std::map<Id, Layout> all = all_in(c.workload, tag);
    std::vector<std::map<Id, Layout>> choices{all};  // all tensors at once, and each alone
    for (auto one = all.begin(); !thinned() && one != all.end(); ++one) {
      choices.push_back({*one});
    }
    for (const auto& layouts : choices) {
      cpu::CpuPlan plan(c.workload, {.threads = 2}, layouts);
      expect_operation(c, *plan.instantiate(), Precision::f32);
    }
  }
}

std::vector<OperationCase> f32_cases() {
  std::vector<OperationCase> cases;
  for (OperationCase& c : operation_cases()) {
    if (stored_precision(c.workload) == Precision::f32 && !c.name.ends_with("_large")) {
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuLayouts, testing::ValuesIn(f32_cases()), labelled);

TEST(CpuPlan, CountsCopiesIntoAnotherLayoutAndTheirMemory) {
  OneOp one;
  const Id x = one.tensor("x", {3, 5});
  const Id w = one.tensor("w", {7, 5}, Role::parameter);
  const Id y = one.tensor("y", {3, 7});
  one.operation(Linear{.x = x, .w = w, .y = y});
  const auto planned = [&](const std::map<Id, Layout>& layouts) {
    cpu::CpuPlan plan(one.workload, {}, layouts);
    EXPECT_EQ(plan.instantiate()->facts().launches, plan.launches());
    return std::pair(plan.launches(), plan.bytes());
  };
  const auto plain = planned({});
  EXPECT_EQ(plain.first, 1);
  // w is read: one copy; y is written: one copy. Each copy has the size of the plain tensor, in
  // cache lines; the padded w takes 16 * 16 floats instead of 7 * 5.
  const auto permuted = planned({{y, layout_of(one.workload[y], Tag::ba)}});
  EXPECT_EQ(permuted.first, 2);
  EXPECT_EQ(permuted.second, plain.second + 128);
  const auto both = planned(
      {{y, layout_of(one.workload[y], Tag::ba)}, {w, layout_of(one.workload[w], Tag::AB16b16a)}});
  EXPECT_EQ(both.first, 3);
  EXPECT_EQ(both.second, plain.second + 128 + 192 + (1024 - 192));
}

TEST(CpuPlan, JoinsUpdatesOfWhatLiesAlike) {
  const Workload workload = training_epoch(mlp("m", {4, 6, 2}, Activation::relu),
                                           {.rows = 5, .batch = 5, .optimizer = SgdOptions{}});
  const auto launches = [&](const std::map<Id, Layout>& layouts) {
    return cpu::CpuPlan(workload, {}, layouts).launches();
  };
  const Id w = tensors_of(workload, Role::parameter).front();
  const Id dw = tensors_of(workload, Role::gradient).front();
  const Layout blocked = layout_of(workload[w], Tag::AB16b16a);
  const std::int64_t plain = launches({});
  // Forward and, for the hidden layer's weights, no dx: the weights are copied for one product.
  EXPECT_EQ(launches({{w, blocked}, {dw, blocked}}), plain + 2);
  // The gradient alone: dw is copied after its product, and before an update that is its own.
  EXPECT_EQ(launches({{dw, blocked}}), plain + 3);
}

TEST(CpuPlan, GivesSmallKernelsOneThread) {
  const auto threads = [](const Workload& workload) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const cpu::LoweredWorkload lowered = cpu::lower(workload, 3, engine);
    EXPECT_EQ(lowered.steps.size(), 1);
    EXPECT_EQ(lowered.steps[0].size(), 1);
    return lowered.steps[0][0].threads;
  };
  const auto product = [&](std::int64_t size) {
    OneOp one;
    const Id a = one.tensor("a", {size, size});
    const Id b = one.tensor("b", {size, size});
    return threads(
        one.operation(Gemm{.a = a, .b = b, .c = one.tensor("c", {size, size})}).workload);
  };
  EXPECT_EQ(product(79), 1);  // 2 * 79^3 < 10^6
  EXPECT_EQ(product(80), 3);
  const auto sum = [&](std::int64_t count) {
    OneOp one;
    const Id a = one.tensor("a", {count});
    const Id b = one.tensor("b", {count});
    return threads(one.operation(Add{.a = a, .b = b, .y = one.tensor("y", {count})}).workload);
  };
  EXPECT_EQ(sum(65535), 1);  // 256 KiB of floats
  EXPECT_EQ(sum(65536), 3);
}

TEST(CpuPlan, KeepsViewsAndTheirSourcesPlain) {
  const Workload workload = training_epoch(mlp("m", {4, 2}, Activation::relu),
                                           {.rows = 5, .batch = 5, .optimizer = SgdOptions{}});
  const Id data = tensors_of(workload, Role::data).front();
  EXPECT_THROW(cpu::CpuPlan(workload, {}, {{data, layout_of(workload[data], Tag::ba)}}),
               std::invalid_argument);
}

/// Convolution, batch norm, ReLU and pooling twice, a residual join, and a linear layer.
Model small_network() {
  constexpr Window window{.size = 3, .padding = 1};
  Model model{.name = "m", .sample = {3, 12, 12}, .classes = 10, .layers = {}};
  Value last = 0;
  const auto add = [&](LayerKind kind) { last = model.add(kind, {last}); };
  add(ConvolutionLayer{32, window});
  add(BatchNormLayer{});
  add(ActivationLayer{Activation::relu});
  add(MaxPoolLayer{{.size = 3, .stride = 2, .padding = 1}});
  const Value before = last;
  add(ConvolutionLayer{32, window, false});
  add(BatchNormLayer{});
  last = model.add(AddLayer{}, {last, before});
  add(ActivationLayer{Activation::relu});
  add(AveragePoolLayer{{.size = 2, .stride = 2}});
  add(FlattenLayer{});
  add(LinearLayer{10});
  return model;
}

TEST(CpuPlan, ReordersWhatItMustAndNothingElse) {
  const auto backend = make_cpu_backend();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    if (!backend->missing_for(precision).empty()) {
      continue;
    }
    const Workload workload = backend->optimize(
        training_epoch(small_network(),
                       {.rows = 8, .batch = 4, .optimizer = SgdOptions{}, .precision = precision}));
    cpu::CpuPlan plan(workload, {.threads = 2, .precision = precision});
    const Reorders reorders = plan.reorders();
    // In each of two steps: the flattened images, their gradient, and the second convolution's
    // weights for its backward data pass.
    EXPECT_EQ(reorders.count, 2 * 3);
    const std::int64_t size = bytes(storage_of(precision));
    const std::int64_t flattened = 4 * 32 * 3 * 3;
    EXPECT_EQ(reorders.bytes, 2 * 2 * size * (2 * flattened + 32 * 32 * 3 * 3));
    EXPECT_EQ(plan.instantiate()->facts().reorders.count, reorders.count);
  }
}

TEST(CpuPlan, TrainsImagesInAnyLayout) {
  const auto backend = make_cpu_backend();
  const Workload workload = backend->optimize(training_epoch(
      small_network(), {.rows = 10, .batch = 4, .optimizer = AdamWOptions{}, .accumulate = 2}));
  const Dataset data = uniform_rows({3, 12, 12}, 10, 10);
  const auto losses = [&](const std::map<Id, Layout>& layouts) {
    cpu::CpuPlan plan(workload, {.threads = 2}, layouts);
    const auto program = plan.instantiate();
    set_data(*program, workload, data);
    restart(*program, workload);
    program->enqueue(0, 3);
    return download(*program, workload, tensors_of(workload, Role::loss).front());
  };
  Reference reference(workload);
  set_data(reference, data);
  restart(reference);
  reference.run(0, 3);
  const std::vector<double> expected = copy(reference[tensors_of(workload, Role::loss).front()]);
  for (const auto& layouts :
       {std::map<Id, Layout>{}, all_in(workload, Tag::ba), all_in(workload, Tag::AB16b16a)}) {
    EXPECT_LE(relative_error(losses(layouts), expected), 1e-5);
  }
}

TEST(CpuPlan, CountsScratchpadsAmongItsBytes) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const cpu::Threads one_thread(1);
  for (const std::int64_t size : {30, 300, 1000}) {
    OneOp one;
    const Id a = one.tensor("a", {size, size});
    const Id b = one.tensor("b", {size, size});
    const Id c = one.tensor("c", {size, size});
    one.operation(Gemm{.a = a, .b = b, .c = c, .transpose_a = true});
    const std::int64_t scratchpad = cpu::scratchpad_bytes(cpu::describe_product(
        engine, {.m = size, .n = size, .k = size, .a_strides = {1, size}, .b_strides = {size, 1}}));
    EXPECT_EQ(cpu::CpuPlan(one.workload, {.threads = 1}).bytes(),
              plan_memory(one.workload).bytes + scratchpad);
  }
}

}  // namespace
}  // namespace crossover::test
