// SPDX-License-Identifier: Apache-2.0
// What a layer sees of the network around it while a Model becomes a Workload: the shapes that
// reach it, then for each distinct step the tensors it reads and writes. src/step/lowering.cpp
// walks the layers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "crossover/model.h"
#include "crossover/step.h"
#include "crossover/tensor.h"

namespace crossover {

/// The extent of the batch in the shapes of values, which differs from step to step.
inline constexpr std::int64_t any_batch = -1;

/// In which type a layer reads a parameter, which is f32 itself.
enum class ReadAs {
  activation,  ///< that of activations
  result,      ///< that of the layer's result, like a bias that is added to it
  f32
};

/// A trained tensor that a layer declares.
struct LayerParameter {
  Tensor tensor;
  ReadAs read_as = ReadAs::activation;
  LayerNumber tied = no_layer;  ///< the embedding whose table it is; else one of its own
};

class LayerShapes {
 public:
  /// `model` and `layer` are names for messages; `inputs` are shapes with any_batch: [any_batch,
  /// ...], or [time, any_batch, ...] of sequences (behind an EmbeddingLayer or a ToSequenceLayer).
  LayerShapes(std::string model, std::string layer, std::vector<Shape> inputs, bool trains)
      : model_(std::move(model)),
        layer_(std::move(layer)),
        inputs_(std::move(inputs)),
        trains_(trains) {}

  /// The shape of input i, of a layer that reads `count` values. Throws std::invalid_argument where
  /// it reads another number of them.
  [[nodiscard]] const Shape& input(std::size_t i = 0, std::size_t count = 1) const;

  /// Else the network is used as it is: forward_pass().
  [[nodiscard]] bool trains() const { return trains_; }

  /// How many values the layer reads.
  [[nodiscard]] std::size_t inputs() const { return inputs_.size(); }

  /// The same of a layer that reads images [any_batch, channels, height, width] only.
  [[nodiscard]] const Shape& image() const;

  /// The same of a layer that reads sequences [time, any_batch, width] only.
  [[nodiscard]] const Shape& sequence() const;

  /// What a window makes of the image, with `channels` channels. Throws std::invalid_argument where
  /// it does not fit.
  [[nodiscard]] Shape image_behind(const Window& window, std::int64_t channels) const;

  /// Throws std::invalid_argument: "model 'm': layer 2 <what>".
  void require(bool condition, const std::string& what) const;

  /// Declares the trained tensor "<layer> <name>". Parameters count in the order of these calls.
  void parameter(const std::string& name, Shape shape, Start start,
                 ReadAs read_as = ReadAs::activation);

  /// Declares that the table of an embedding layer, of that shape, is trained here as well.
  void tied_parameter(LayerNumber embedding, Shape shape);

  /// Declares the tensor "<layer> <name>", which lives from step to step and starts at zero.
  void state(const std::string& name, Shape shape, Type type);

  [[nodiscard]] std::vector<LayerParameter> take_parameters() { return std::move(parameters_); }
  [[nodiscard]] std::vector<Tensor> take_states() { return std::move(states_); }

 private:
  std::string model_, layer_;
  std::vector<Shape> inputs_;
  bool trains_;
  std::vector<LayerParameter> parameters_;
  std::vector<Tensor> states_;
};

/// Of the parameters of a layer: its weight, and its bias, if it has one.
inline constexpr std::size_t weight_at = 0;
inline constexpr std::size_t bias_at = 1;

/// The tensors of one layer in one step.
struct LayerTensors {
  std::vector<Id> inputs;
  Id result = none;
  std::vector<Id> parameters;  ///< as the layer's operations read them
  std::vector<Id> gradients;   ///< of the parameters; none of a frozen one
  std::vector<Id> states;
  std::vector<Id>* saved = nullptr;  ///< of the batch size: made once, shared by its steps
  std::int64_t number = 0;           ///< 2
  std::string name;                  ///< "layer 2"
  int ranks = 1, rank = 0;           ///< of those that share the batch
  bool trains = true;                ///< else no gradient follows
};

/// Where operations are appended, and what they read and write.
class LayerStep {
 public:
  LayerStep(Workload& workload, std::vector<Op>& ops, const LayerTensors& tensors)
      : workload_(workload), ops_(ops), tensors_(tensors) {}

  [[nodiscard]] Id x(std::size_t i = 0) const { return tensors_.inputs.at(i); }
  [[nodiscard]] std::size_t inputs() const { return tensors_.inputs.size(); }
  [[nodiscard]] Id y() const { return tensors_.result; }
  [[nodiscard]] Id parameter(std::size_t i = 0) const { return tensors_.parameters.at(i); }
  [[nodiscard]] Id state(std::size_t i = 0) const { return tensors_.states.at(i); }
  [[nodiscard]] const Tensor& tensor(Id id) const { return workload_[id]; }

  /// Of the layer; no other has the same.
  [[nodiscard]] std::int64_t number() const { return tensors_.number; }

  /// As in TrainingOptions.
  [[nodiscard]] int ranks() const { return tensors_.ranks; }
  [[nodiscard]] int rank() const { return tensors_.rank; }

  void emit(Op op) { ops_.push_back(std::move(op)); }

 protected:
  [[nodiscard]] Workload& workload() { return workload_; }
  [[nodiscard]] const LayerTensors& tensors() const { return tensors_; }

 private:
  Workload& workload_;
  std::vector<Op>& ops_;
  const LayerTensors& tensors_;
};

class LayerForward : public LayerStep {
 public:
  using LayerStep::LayerStep;

  [[nodiscard]] bool trains() const { return tensors().trains; }

  /// A tensor "<layer> <name>" that backward() finds again as saved(), in the order of the calls:
  /// statistics, masks, gates.
  Id save(const std::string& name, const Shape& shape, Type type);

 private:
  std::size_t saved_ = 0;
};

class LayerBackward : public LayerStep {
 public:
  /// `asked[i]`: whether somebody needs the gradient of input i. `adds[i]`: the gradient of
  /// parameter i is added to, not overwritten.
  LayerBackward(Workload& workload, std::vector<Op>& ops, const LayerTensors& tensors,
                std::vector<bool> asked, Id dy, std::vector<bool> adds, Type gradient_type)
      : LayerStep(workload, ops, tensors),
        asked_(std::move(asked)),
        dy_(dy),
        adds_(std::move(adds)),
        gradient_type_(gradient_type) {}

  [[nodiscard]] Id dy() const { return dy_; }
  [[nodiscard]] Id saved(std::size_t i = 0) const { return tensors().saved->at(i); }

  /// Else parameter i is frozen, and nobody reads its gradient.
  [[nodiscard]] bool is_trained(std::size_t i = 0) const {
    return tensors().gradients.at(i) != none;
  }

  /// Where the layer must write the gradient of parameter i: once. None where it is frozen.
  Id gradient(std::size_t i = 0);

  /// The same of an operation that computes it all the same: then it writes where nobody reads.
  Id gradient_or_scratch(std::size_t i = 0);

  /// The same of an operation that adds to a gradient by itself where adds_to(i).
  [[nodiscard]] Id accumulated_gradient(std::size_t i) const { return tensors().gradients.at(i); }
  [[nodiscard]] bool adds_to(std::size_t i) const { return adds_.at(i); }

  /// A new tensor for the gradient of input i, which the layer must write; none where nobody asks.
  Id dx(std::size_t i = 0);

  /// A new tensor "<layer> <name>", which nothing reads behind the layer.
  Id scratch(const std::string& name, const Shape& shape, Type type);

  /// The gradient of input i is a tensor that exists already.
  void pass(std::size_t i, Id gradient);

  /// The gradients that the layer has given: input and tensor.
  [[nodiscard]] const std::vector<std::pair<std::size_t, Id>>& given() const { return given_; }

  /// Adds what the layer wrote as gradients to those of the steps, or of the layers, before: its
  /// last operations.
  void finish();

 private:
  std::vector<bool> asked_;
  Id dy_;
  std::vector<bool> adds_;
  Type gradient_type_;
  std::vector<std::pair<std::size_t, Id>> given_;
  std::vector<std::pair<Id, Id>> to_add_;  ///< a gradient of this step, and the sum it belongs to
};

}  // namespace crossover
