// SPDX-License-Identifier: Apache-2.0
// The only source that uses cuDNN, by the graphs of NVIDIA's cudnn-frontend. A graph is a
// convolution with what is fused to it, or attention, or its gradient; its plans come from cuDNN's
// heuristic and are built when asked for. Executing one allocates a little on the host: the
// frontend packs the addresses anew at each call.
#include "library.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../base/runtime.h"
#include "../plan/plan.h"
#include "crossover/backend.h"

namespace crossover::cuda {
namespace {

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

/// Of the tensors of a graph.
enum Uid : std::int64_t { uid_x = 1, uid_w, uid_y, uid_bias };
enum SdpaUid : std::int64_t {
  uid_q = 1,
  uid_k,
  uid_v,
  uid_o,
  uid_sums,
  uid_do,
  uid_dq,
  uid_dk,
  uid_dv
};

fe::DataType_t data_type(Type type) {
  switch (type) {
    case Type::bf16:
      return fe::DataType_t::BFLOAT16;
    case Type::f16:
      return fe::DataType_t::HALF;
    case Type::f32:
    case Type::i32:  // which no convolution takes, nor
    case Type::u8:
      break;
  }
  return fe::DataType_t::FLOAT;
}

/// Throws DeviceFailed and OutOfMemory where that is why, else what the library says.
[[noreturn]] void fail(const std::string& what) {
  const cudaError_t status = cudaPeekAtLastError();
  if (status != cudaSuccess) {
    CROSSOVER_CUDA_CHECK(status);
  }
  throw std::runtime_error("cuDNN: " + what);
}

void check_frontend(fe::error_t status) {
  if (status.is_bad()) {
    fail(status.get_message());
  }
}

void check_cudnn(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_ALLOC_FAILED) {
    throw OutOfMemory(std::string("cuDNN: ") + cudnnGetErrorString(status));
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    fail(cudnnGetErrorString(status));
  }
}

class Handle {
 public:
  Handle() { check_cudnn(cudnnCreate(&handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { static_cast<void>(cudnnDestroy(handle_)); }
  [[nodiscard]] cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

using Extents = std::vector<std::int64_t>;

/// Of [n, c, h, w], as cuDNN says it whatever the order in memory.
Extents strides(const Extents& of, Layout layout) {
  return layout == Layout::plain ? Extents{of[1] * of[2] * of[3], of[2] * of[3], of[3], 1}
                                 : Extents{of[1] * of[2] * of[3], 1, of[3] * of[1], of[1]};
}

void describe(graph::Tensor_attributes& tensor, Uid uid, const Extents& extents, Type type,
              const ConvolutionForm& form) {
  tensor.set_uid(uid)
      .set_dim(extents)
      .set_stride(strides(extents, form.layout))
      .set_data_type(data_type(type))
      .set_alignment(form.alignment);
}

void set_result(const Tensor& result, Uid uid, const Extents& extents,
                const ConvolutionForm& form) {
  describe(result->set_output(true), uid, extents, form.result, form);
}

template <class Attributes>
Attributes with_window(const ConvolutionForm& form) {
  return Attributes()
      .set_padding({form.padding.down, form.padding.across})
      .set_stride({form.stride.down, form.stride.across})
      .set_dilation({form.dilation.down, form.dilation.across});
}

void describe(graph::Graph& to, const ConvolutionForm& form) {
  const Extents x{form.batch, form.in, form.height, form.width};
  const Extents w{form.out, form.in / form.groups, form.size.down, form.size.across};
  const Extents y{form.batch, form.out, form.positions_down, form.positions_across};
  const auto operand = [&](Uid uid, const Extents& extents) {
    graph::Tensor_attributes of;
    describe(of, uid, extents, form.type, form);
    return to.tensor(of);
  };
  switch (form.pass) {
    case ConvolutionPass::forward: {
      Tensor result = to.conv_fprop(operand(uid_x, x), operand(uid_w, w),
                                    with_window<graph::Conv_fprop_attributes>(form));
      const auto pointwise = [](fe::PointwiseMode_t mode) {
        return graph::Pointwise_attributes().set_mode(mode);
      };
      if (form.bias) {
        const Tensor bias = operand(uid_bias, {1, form.out, 1, 1});
        result = to.pointwise(result, bias, pointwise(fe::PointwiseMode_t::ADD));
      }
      if (form.relu) {
        result = to.pointwise(result, pointwise(fe::PointwiseMode_t::RELU_FWD));
      }
      set_result(result, uid_y, y, form);
      return;
    }
    case ConvolutionPass::dx:
      set_result(to.conv_dgrad(operand(uid_y, y), operand(uid_w, w),
                               with_window<graph::Conv_dgrad_attributes>(form)),
                 uid_x, x, form);
      return;
    case ConvolutionPass::dw:
      set_result(to.conv_wgrad(operand(uid_y, y), operand(uid_x, x),
                               with_window<graph::Conv_wgrad_attributes>(form)),
                 uid_w, w, form);
      return;
  }
}

using Addresses = std::unordered_map<std::int64_t, void*>;

Addresses addresses(const CalledConvolution& of) {
  Addresses all{{uid_x, of.x.at}, {uid_w, of.w.at}, {uid_y, of.y.at}};
  if (of.bias.at != nullptr) {
    all.emplace(uid_bias, of.bias.at);
  }
  return all;
}

/// One head's numbers at one time lie together, those of a tensor of `parts` such heads (3 in qkv)
/// behind each other.
void describe(graph::Tensor_attributes& tensor, SdpaUid uid, std::int64_t parts,
              const SdpaForm& form) {
  const std::int64_t row = parts * form.width();
  tensor.set_uid(uid)
      .set_dim({form.batch, form.heads, form.time, form.d})
      .set_stride({row, form.d, form.batch * row, 1})
      .set_data_type(data_type(form.type));
}

void describe_sums(graph::Tensor_attributes& tensor, const SdpaForm& form) {
  tensor.set_uid(uid_sums)
      .set_dim({form.batch, form.heads, form.time, 1})
      .set_stride({form.heads * form.time, form.time, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

void describe(graph::Graph& to, const SdpaForm& form) {
  constexpr std::int64_t packed = 3;
  const auto operand = [&](SdpaUid uid, std::int64_t parts) {
    graph::Tensor_attributes of;
    describe(of, uid, parts, form);
    return to.tensor(of);
  };
  const float scale = 1 / std::sqrt(static_cast<float>(form.d));
  const Tensor q = operand(uid_q, packed);
  const Tensor k = operand(uid_k, packed);
  const Tensor v = operand(uid_v, packed);
  if (!form.gradient) {
    auto how = graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(scale);
    if (form.causal) {
      how.set_causal_mask(true);
    }
    const auto [o, sums] = to.sdpa(q, k, v, how);
    describe(o->set_output(true), uid_o, 1, form);
    describe_sums(sums->set_output(true), form);
    return;
  }
  graph::Tensor_attributes of_sums;
  describe_sums(of_sums, form);
  auto how = graph::SDPA_backward_attributes().set_attn_scale(scale).set_deterministic_algorithm(
      form.repeats);
  if (form.causal) {
    how.set_causal_mask(true);
  }
  const auto [dq, dk, dv] =
      to.sdpa_backward(q, k, v, operand(uid_o, 1), operand(uid_do, 1), to.tensor(of_sums), how);
  describe(dq->set_output(true), uid_dq, packed, form);
  describe(dk->set_output(true), uid_dk, packed, form);
  describe(dv->set_output(true), uid_dv, packed, form);
}

Addresses addresses(const CalledSdpa& of) {
  const auto part = [&](void* packed, std::int64_t number) -> void* {
    const std::int64_t begin = number * of.form.width() * bytes(of.form.type);
    return static_cast<std::byte*>(packed) + begin;
  };
  Addresses all{{uid_q, part(of.qkv.at, 0)},
                {uid_k, part(of.qkv.at, 1)},
                {uid_v, part(of.qkv.at, 2)},
                {uid_o, of.y.at},
                {uid_sums, of.log_sums}};
  if (of.form.gradient) {
    all.insert({{uid_do, of.dy.at},
                {uid_dq, part(of.dqkv.at, 0)},
                {uid_dk, part(of.dqkv.at, 1)},
                {uid_dv, part(of.dqkv.at, 2)}});
  }
  return all;
}

std::int64_t workspace_for(const ConvolutionForm& /*form*/, std::int64_t memory_bytes) {
  return workspace_for_cudnn(memory_bytes);
}
std::int64_t workspace_for(const SdpaForm& form, std::int64_t memory_bytes) {
  return workspace_for_sdpa(form, memory_bytes);
}

/// Engines that round more than the precision says.
std::vector<fe::NumericalNote_t> coarse(Precision precision) {
  std::vector<fe::NumericalNote_t> notes{
      fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION, fe::NumericalNote_t::FFT,
      fe::NumericalNote_t::WINOGRAD_TILE_6x6, fe::NumericalNote_t::WINOGRAD_TILE_13x13};
  if (precision == Precision::f32) {  // tensor cores would take its factors as tf32
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
  } else {
    notes.push_back(fe::NumericalNote_t::WINOGRAD);
  }
  if (precision == Precision::f32 || precision == Precision::tf32) {
    notes.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  return notes;
}

/// Winograd's smallest tiles round f32 as the plain sum does, so that both devices may take them;
/// not for dw. Sums of dw may be added in any order, as frameworks let them by default: on an H200
/// the engines that repeat to the bit took up to four times as long.
std::vector<fe::NumericalNote_t> unwanted(Precision precision, const ConvolutionForm& form) {
  std::vector<fe::NumericalNote_t> notes = coarse(precision);
  notes.push_back(form.pass == ConvolutionPass::dw ? fe::NumericalNote_t::WINOGRAD
                                                   : fe::NumericalNote_t::NONDETERMINISTIC);
  return notes;
}

std::vector<fe::NumericalNote_t> unwanted(Precision precision, const SdpaForm& form) {
  std::vector<fe::NumericalNote_t> notes = coarse(precision);
  if (form.repeats) {
    notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  }
  return notes;
}

/// Engines that round more than they say, by name. Of cuDNN 9.19's for dw in f32 the 17th, which
/// has no note, was off by 0.0045 of a sum of 262,144 terms on an H200, where the others were by
/// 1e-6.
std::vector<std::string> unwanted_engines(const ConvolutionForm& form) {
  return form.pass == ConvolutionPass::dw ? std::vector<std::string>{"eng17"}
                                          : std::vector<std::string>{};
}
std::vector<std::string> unwanted_engines(const SdpaForm& /*form*/) { return {}; }

template <class Arguments>
class CudnnPlan : public Prepared<Arguments> {
 public:
  /// Unsupported where it needs more than the limit: what cuDNN is told of that leaves out what the
  /// frontend's own kernels need.
  CudnnPlan(cudnnHandle_t handle, std::shared_ptr<graph::Graph> of, int index, std::int64_t limit)
      : handle_(handle), graph_(std::move(of)), index_(index) {
    check_frontend(graph_->build_plan_at_index(index_));
    check_frontend(graph_->get_workspace_size_plan_at_index(index_, workspace_bytes_));
    if (workspace_bytes_ > limit) {
      throw Unsupported("cuDNN: the plan needs a workspace of " + std::to_string(workspace_bytes_) +
                        " bytes, more than " + std::to_string(limit));
    }
  }

  /// "eng41": without the settings of the engine, which differ from version to version.
  [[nodiscard]] std::string name() const override {
    std::string tag;
    check_frontend(graph_->get_plan_name_at_index(index_, tag));
    const std::size_t begin = std::min(tag.find("eng"), tag.size());
    return tag.substr(begin, tag.find('_', begin) - begin);
  }

  [[nodiscard]] std::int64_t workspace_bytes() const override { return workspace_bytes_; }

  void execute(cudaStream_t stream, const Arguments& of,
               const Workspace& workspace) const override {
    if (workspace.bytes < workspace_bytes_) {
      throw std::logic_error("a plan of cuDNN's is given less workspace than it needs");
    }
    check_cudnn(cudnnSetStream(handle_, stream));
    Addresses all = addresses(of);
    check_frontend(graph_->execute_plan_at_index(handle_, all, workspace.at, index_));
  }

 private:
  cudnnHandle_t handle_;
  std::shared_ptr<graph::Graph> graph_;
  int index_;
  std::int64_t workspace_bytes_ = 0;
};

template <class Arguments>
class CudnnLibrary : public Library<Arguments> {
 public:
  using typename Library<Arguments>::Form;

  CudnnLibrary(Precision precision, std::int64_t memory_bytes, const std::string& device = "")
      : precision_(precision), memory_bytes_(memory_bytes) {
    if (!device.empty()) {
      auto properties = std::make_shared<fe::DeviceProperties>();
      check_frontend(properties->deserialize({device.begin(), device.end()}));
      device_ = std::move(properties);
    }
  }

  [[nodiscard]] int algorithms(const Form& form) override {
    if (std::is_same_v<Form, SdpaForm> && cudnn_version().empty()) {
      return 0;
    }
    const std::shared_ptr<graph::Graph>& of = graph_for(form);
    return of ? static_cast<int>(of->get_execution_plan_count()) : 0;
  }

  [[nodiscard]] std::unique_ptr<Prepared<Arguments>> make(const Arguments& of,
                                                          int algorithm) override {
    return std::make_unique<CudnnPlan<Arguments>>(handle(), graph_for(of.form), algorithm,
                                                  workspace_for(of.form, memory_bytes_));
  }

 private:
  /// Made when it is first asked for: networks without such operations need none. Null where the
  /// device is described.
  [[nodiscard]] cudnnHandle_t handle() {
    if (device_) {
      return nullptr;
    }
    if (!handle_) {
      static_cast<void>(nvrtc_version());  // which cuDNN finds by its name from here on
      handle_ = std::make_unique<Handle>();
    }
    return handle_->get();
  }

  /// Null where the library has no plan.
  [[nodiscard]] const std::shared_ptr<graph::Graph>& graph_for(const Form& form) {
    const auto [at, is_new] = graphs_.try_emplace(form);
    if (!is_new) {
      return at->second;
    }
    auto of = std::make_shared<graph::Graph>();
    of->set_io_data_type(data_type(form.type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (device_) {
      of->set_device_properties(device_);
    }
    describe(*of, form);
    const auto is_good = [](const fe::error_t& status) { return status.is_good(); };
    if (is_good(of->validate()) && is_good(of->build_operation_graph(handle())) &&
        is_good(of->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}))) {
      of->deselect_numeric_notes(unwanted(precision_, form))
          .deselect_engines(unwanted_engines(form))
          .deselect_workspace_greater_than(workspace_for(form, memory_bytes_));
      if (is_good(of->check_support())) {
        at->second = std::move(of);
      }
    }
    return at->second;
  }

  Precision precision_;
  std::int64_t memory_bytes_;
  std::shared_ptr<const fe::DeviceProperties> device_;  ///< null: the one that is here
  std::unique_ptr<Handle> handle_;
  std::map<Form, std::shared_ptr<graph::Graph>> graphs_;
};

}  // namespace

std::string cudnn_version() try {
  constexpr std::size_t major = 10000;
  constexpr std::size_t minor = 100;
  const std::size_t version = cudnnGetVersion();
  return std::to_string(version / major) + "." + std::to_string(version % major / minor) + "." +
         std::to_string(version % minor);
} catch (const Unsupported&) {  // it is not on this machine
  return "";
}

std::string nvrtc_version() {
  constexpr int major_factor = 1000;
  void* const library =
      open_library("libnvrtc.so." + std::to_string(CUDART_VERSION / major_factor));
  using Version = int (*)(int*, int*);
  const auto version =
      library == nullptr ? nullptr : reinterpret_cast<Version>(dlsym(library, "nvrtcVersion"));
  int major = 0;
  int minor = 0;
  return version != nullptr && version(&major, &minor) == 0
             ? std::to_string(major) + "." + std::to_string(minor)
             : "";
}

std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision precision,
                                                       std::int64_t memory_bytes) {
  return std::make_unique<CudnnLibrary<CalledConvolution>>(precision, memory_bytes);
}

std::unique_ptr<ConvolutionLibrary> make_cudnn_library_for(const std::string& device,
                                                           Precision precision,
                                                           std::int64_t memory_bytes) {
  return std::make_unique<CudnnLibrary<CalledConvolution>>(precision, memory_bytes, device);
}

std::unique_ptr<SdpaLibrary> make_sdpa_library(Precision precision, std::int64_t memory_bytes) {
  return std::make_unique<CudnnLibrary<CalledSdpa>>(precision, memory_bytes);
}

std::unique_ptr<SdpaLibrary> make_sdpa_library_for(const std::string& device, Precision precision,
                                                   std::int64_t memory_bytes) {
  return std::make_unique<CudnnLibrary<CalledSdpa>>(precision, memory_bytes, device);
}

}  // namespace crossover::cuda
