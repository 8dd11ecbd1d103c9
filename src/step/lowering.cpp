// SPDX-License-Identifier: Apache-2.0
// Model -> Workload: shapes, the forward pass, reverse-mode differentiation over layers, and the
// update, for each distinct step of an epoch. What a layer is stands in src/layers/.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "../layers/contexts.h"
#include "crossover/training.h"
#include "optimizer.h"

namespace crossover {
namespace {

struct Parameter {
  Id value = none, gradient = none;
  Id operand = none;  ///< what layers read: the value, or its copy in 16 bits
  bool stays_f32 = false;
  bool is_frozen = false;
};

/// What makes one step of an epoch differ from another.
struct Variant {
  std::int64_t rows;   ///< trained in the step
  std::int64_t batch;  ///< of all ranks
  bool first;          ///< of its accumulation: gradients are overwritten, not added to
  bool update;         ///< last of its accumulation: parameters change
};

class Lowering {
 public:
  /// `before`: of the copies before this one, whose rows it reads and whose losses it goes on with.
  Lowering(const Model& model, const TrainingOptions& options, bool trains, std::int64_t copy = 0,
           Workload before = {})
      : model_(model),
        options_(options),
        trains_(trains),
        type_(storage_of(options.precision)),
        loss_scale_(type_ == Type::f16 ? options.loss_scale : 1),
        copy_(copy),
        workload_(std::move(before)) {}

  Workload run() {
    validate();
    const std::int64_t batches = (options_.rows - 1) / options_.batch + 1;
    const int first_rank = options_.in_turn ? 0 : options_.rank;
    const int last_rank = options_.in_turn ? options_.ranks - 1 : options_.rank;
    workload_.order.clear();
    workload_.order.resize(static_cast<std::size_t>(batches * (last_rank - first_rank + 1)));
    add_tensors();
    auto run = workload_.order.begin();
    std::int64_t first_row = 0;
    for (std::int64_t at = 0; at < batches; ++at) {
      const std::int64_t batch = std::min(options_.batch, options_.rows - at * options_.batch);
      const bool begins = at % options_.accumulate == 0;
      const bool ends = (at + 1) % options_.accumulate == 0 || at + 1 == batches;
      for (int rank = first_rank; rank <= last_rank; ++rank) {
        const std::int64_t rows = rows_of_rank(batch, rank, options_.ranks);
        *run++ = {.step = step_of({.rows = rows,
                                   .batch = batch,
                                   .first = begins && rank == first_rank,
                                   .update = ends && rank == last_rank}),
                  .first_row = first_row};
        first_row += rows;
      }
    }
    if (options_.shuffle) {
      workload_.epoch =
          add({.name = "epoch", .shape = {1}, .type = Type::i32, .role = Role::state});
    }
    return std::move(workload_);
  }

 private:
  void validate() const {
    require(options_.rows > 0, "rows must be at least one");
    require(options_.batch > 0, "the batch must be at least one");
    require(options_.accumulate > 0, "the number of accumulated steps must be at least one");
    require(options_.precision != Precision::f16 ||
                (options_.loss_scale > 0 && std::isfinite(options_.loss_scale)),
            "the loss scale must be a positive number");
    require(0 <= options_.rank && options_.rank < options_.ranks,
            "a rank is one from 0 to the number of ranks less one");
    require(options_.batch >= options_.ranks, "a batch of " + std::to_string(options_.batch) +
                                                  " has no row for each of " +
                                                  std::to_string(options_.ranks) + " ranks");
    const std::int64_t last = options_.rows % options_.batch;
    require(last == 0 || last >= options_.ranks,
            "the last batch has " + std::to_string(last) + " of " + std::to_string(options_.rows) +
                " rows, not one for each of " + std::to_string(options_.ranks) +
                " ranks; choose another --batch");
    require(
        options_.copies == 1 || (options_.copies > 1 && options_.ranks == 1 && !options_.shuffle),
        "copies train in one process, on rows as they lie, and are one at least");
    require(!model_.layers.empty(), "the model has no layers");
    require(model_.labels.size() <= 1, "a sample has one label, or one for each time step");
    require(classifies() || model_.labels.empty(), std::string("the loss ") +
                                                       crossover::name_of(model_.loss) +
                                                       " takes no places of a sequence");
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      for (const Value input : model_.layers[i].inputs) {
        require(input >= 0 && static_cast<std::size_t>(input) <= i,
                "a layer reads a value not made before it");
      }
    }
  }

  void require(bool condition, const std::string& what) const {
    if (!condition) {
      throw std::invalid_argument("model '" + model_.name + "': " + what);
    }
  }

  Id add(Tensor tensor) {
    if (copy_ > 0) {
      tensor.name += " of copy " + std::to_string(copy_ + 1);
    }
    return workload_.add(std::move(tensor));
  }

  /// The one that all copies have.
  Id shared(Tensor tensor) {
    return copy_ > 0 ? find(workload_, tensor.name) : add(std::move(tensor));
  }

  Id activation(std::string name, const Shape& shape, Type type) {
    return add({.name = std::move(name), .shape = shape, .type = type, .role = Role::activation});
  }

  static Shape batched(std::int64_t rows, const Shape& sample) {
    Shape shape{rows};
    shape.insert(shape.end(), sample.begin(), sample.end());
    return shape;
  }

  static Shape with_batch(std::int64_t rows, Shape shape) {
    std::replace(shape.begin(), shape.end(), any_batch, rows);
    return shape;
  }

  [[nodiscard]] bool classifies() const { return model_.loss == LossFunction::cross_entropy; }

  /// Of one sample: its labels or its targets.
  [[nodiscard]] Shape shape_of_wanted() const {
    return classifies() ? model_.labels : Shape{model_.classes};
  }

  [[nodiscard]] Shape shape_of_logits() const {
    Shape shape = model_.labels;  // time first
    shape.insert(shape.end(), {any_batch, model_.classes});
    return shape;
  }

  /// Of a batch of all ranks those of this one.
  [[nodiscard]] std::int64_t own_rows(std::int64_t batch) const {
    return rows_of_rank(batch, options_.rank, options_.ranks);
  }

  /// Of the whole data.
  [[nodiscard]] std::int64_t own_rows() const {
    if (options_.in_turn) {
      return options_.rows;
    }
    const std::int64_t full = options_.rows / options_.batch;
    const std::int64_t last = options_.rows % options_.batch;
    return full * own_rows(options_.batch) + (last > 0 ? own_rows(last) : 0);
  }

  // ---- tensors that all steps share

  void add_tensors() {
    inputs_ = shared({.name = "inputs",
                      .shape = batched(own_rows(), model_.sample),
                      .type = model_.sample_type,
                      .role = Role::data});
    if (!trains_) {
      infer_shapes();
      store_as_read();
      return;
    }
    wanted_ = shared({.name = classifies() ? "labels" : "targets",
                      .shape = batched(own_rows(), shape_of_wanted()),
                      .type = classifies() ? Type::i32 : Type::f32,
                      .role = Role::data});
    loss_ = shared({.name = "loss",
                    .shape = {static_cast<std::int64_t>(workload_.order.size()) * options_.copies},
                    .role = Role::loss});
    infer_shapes();
    for (Parameter& parameter : parameters_) {
      if (parameter.is_frozen) {
        continue;
      }
      Tensor gradient = workload_[parameter.value];
      gradient.name = "d" + gradient.name;
      gradient.role = Role::gradient;
      parameter.gradient = add(std::move(gradient));
    }
    add_copies();
    optimizer_.emplace(options_.optimizer, trained(&Parameter::value),
                       trained(&Parameter::gradient), workload_);
  }

  /// In 16 bits layers read copies of the parameters, but for those that they read in f32.
  void add_copies() {
    for (Parameter& parameter : parameters_) {
      parameter.operand = parameter.value;
      if (type_ != Type::f32 && !parameter.stays_f32) {
        const Tensor& value = workload_[parameter.value];
        parameter.operand =
            activation(value.name + " " + to_string(type_), Shape(value.shape), type_);
      }
    }
  }

  /// What nobody trains needs no copy in f32.
  void store_as_read() {
    for (Parameter& parameter : parameters_) {
      parameter.operand = parameter.value;
      if (!parameter.stays_f32) {
        workload_[parameter.value].type = type_;
      }
    }
  }

  /// The loss reads f32, which a last layer that can do so gives itself, if its parameters are not
  /// another's.
  [[nodiscard]] bool gives_f32(std::size_t layer) const {
    return layer + 1 == model_.layers.size() && model_.layers[layer].shared == no_layer &&
           std::visit(
               [](const auto& kind) {
                 return requires { kind.result_may_be_f32; };
               },
               model_.layers[layer].kind);
  }

  /// That of a layer's result.
  [[nodiscard]] Type type_of(std::size_t layer) const {
    return model_.gives_tokens(static_cast<Value>(layer) + 1) ? Type::i32
           : gives_f32(layer)                                 ? Type::f32
                                                              : type_;
  }

  [[nodiscard]] std::string name_of(std::size_t layer) const {
    const std::string& own = model_.layers[layer].name;
    return own.empty() ? "layer " + std::to_string(layer) : own;
  }

  /// Shapes through the network; creates each layer's parameters and states on the way.
  void infer_shapes() {
    shapes_ = {batched(any_batch, model_.sample)};
    is_asked_ = {false};  // nobody asks for the gradient of the data
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      std::vector<Shape> inputs;
      for (const Value input : model_.layers[i].inputs) {
        inputs.push_back(shapes_[static_cast<std::size_t>(input)]);
      }
      LayerShapes shapes(model_.name, name_of(i), std::move(inputs), trains_);
      shapes_.push_back(
          std::visit([&](const auto& kind) { return kind.infer(shapes); }, model_.layers[i].kind));
      std::vector<LayerParameter> declared = shapes.take_parameters();
      std::vector<std::size_t>& own = layer_parameters_.emplace_back();
      if (model_.layers[i].shared != no_layer) {
        own = shared_parameters(i, declared);
        declared.clear();
      }
      bool has_own = false;
      for (LayerParameter& parameter : declared) {
        if (parameter.tied != no_layer) {
          own.push_back(tied_parameter(i, parameter));
          continue;
        }
        own.push_back(parameters_.size());
        const bool stays_f32 = parameter.read_as == ReadAs::f32 ||
                               (parameter.read_as == ReadAs::result && gives_f32(i));
        parameters_.push_back({.value = add(std::move(parameter.tensor)),
                               .stays_f32 = stays_f32,
                               .is_frozen = model_.layers[i].frozen});
        has_own = true;
      }
      require(
          has_own || !model_.layers[i].frozen,
          name_of(i) + " is not to be trained (requires_grad), and has no parameters of its own");
      is_asked_.push_back(is_trained(i));
      std::vector<Id>& states = layer_states_.emplace_back();
      for (Tensor& state : is_passed_by(i) ? std::vector<Tensor>() : shapes.take_states()) {
        states.push_back(add(std::move(state)));
      }
    }
    Shape sample = shapes_.back();
    std::erase(sample, any_batch);
    require(shapes_.back() == shape_of_logits(),
            "the last layer gives " + to_string(sample) + " a sample, not one number for each of " +
                std::to_string(model_.classes) + (classifies() ? " classes" : " targets") +
                (model_.labels.empty() ? "" : " and time step"));
  }

  /// Whether gradients go through the layer, to parameters of its own or of those before it.
  [[nodiscard]] bool is_trained(std::size_t layer) const {
    const std::vector<std::size_t>& own = layer_parameters_[layer];
    const std::vector<Value>& inputs = model_.layers[layer].inputs;
    return std::any_of(own.begin(), own.end(),
                       [&](std::size_t p) { return !parameters_[p].is_frozen; }) ||
           std::any_of(inputs.begin(), inputs.end(),
                       [&](Value v) { return is_asked_[static_cast<std::size_t>(v)]; });
  }

  /// A dropout, which drops nothing of what is not trained.
  [[nodiscard]] bool is_passed_by(std::size_t layer) const {
    return !trains_ && std::holds_alternative<DropoutLayer>(model_.layers[layer].kind);
  }

  /// Those of the layer that it names, which are to be like those that it has declared.
  [[nodiscard]] std::vector<std::size_t> shared_parameters(
      std::size_t layer, const std::vector<LayerParameter>& declared) const {
    const auto with = static_cast<std::size_t>(model_.layers[layer].shared);
    bool fits = with < layer && !declared.empty() &&
                model_.layers[with].kind.index() == model_.layers[layer].kind.index() &&
                layer_parameters_[with].size() == declared.size();
    for (std::size_t i = 0; fits && i < declared.size(); ++i) {
      const Parameter& parameter = parameters_[layer_parameters_[with][i]];
      const LayerParameter& own = declared[i];
      fits = own.tied == no_layer && workload_[parameter.value].shape == own.tensor.shape;
    }
    require(fits, name_of(layer) + " shares the parameters of " + name_of(with) +
                      ", which is no layer before it of the same type and sizes");
    return layer_parameters_[with];
  }

  /// The table of the embedding that the layer is tied to.
  [[nodiscard]] std::size_t tied_parameter(std::size_t layer,
                                           const LayerParameter& parameter) const {
    const auto to = static_cast<std::size_t>(parameter.tied);
    const bool is_embedding =
        to < layer && std::holds_alternative<EmbeddingLayer>(model_.layers[to].kind);
    const Shape& wanted = parameter.tensor.shape;
    require(
        is_embedding && workload_[parameters_[layer_parameters_[to].front()].value].shape == wanted,
        name_of(layer) + " is tied to " + name_of(to) +
            ", which is no embedding before it with a table of " + to_string(wanted));
    return layer_parameters_[to].front();
  }

  // ---- one step

  /// The activations of one batch size; steps that differ in accumulation only share them.
  struct Batch {
    Id inputs = none;        ///< the view; the value 0 itself where no Cast is needed
    std::vector<Id> values;  ///< by Value
    Id wanted = none, logits = none, dlogits = none;
    std::vector<std::vector<Id>> saved;  ///< by layer: what backward() finds again
  };

  int step_of(const Variant& variant) {
    const auto [at, is_new] =
        steps_.try_emplace({variant.rows, variant.batch, variant.first, variant.update},
                           static_cast<int>(workload_.steps.size()));
    if (is_new) {
      ops_.clear();
      batch_ = &batch_of(variant.rows);
      set_layer_tensors();
      forward();
      if (trains_) {
        backward(variant);
      }
      if (trains_ && variant.update) {
        ops_.push_back(optimizer_->update(workload_, 1 / loss_scale_));
        if (options_.zero_gradients) {
          ops_.emplace_back(Zero{.tensors = trained(&Parameter::gradient)});
        }
      }
      workload_.steps.push_back({std::move(ops_)});
    }
    return at->second;
  }

  Batch& batch_of(std::int64_t size) {
    const auto [at, is_new] = batches_.try_emplace(size);
    Batch& batch = at->second;
    if (is_new) {
      batch.inputs = add({.name = "x",
                          .shape = batched(size, model_.sample),
                          .type = model_.sample_type,
                          .role = Role::input,
                          .source = inputs_});
      const bool read_as_they_are = type_ == Type::f32 || !is_float(model_.sample_type);
      batch.values.push_back(read_as_they_are ? batch.inputs
                                              : activation("x " + to_string(type_),
                                                           batched(size, model_.sample), type_));
      if (trains_) {
        batch.wanted = add({.name = "y",
                            .shape = batched(size, shape_of_wanted()),
                            .type = workload_[wanted_].type,
                            .role = Role::input,
                            .source = wanted_});
      }
      for (std::size_t i = 0; i < model_.layers.size(); ++i) {
        const auto input = static_cast<std::size_t>(model_.layers[i].inputs.front());
        batch.values.push_back(
            is_passed_by(i)
                ? batch.values[input]
                : activation(name_of(i) + " result", with_batch(size, shapes_[i + 1]), type_of(i)));
      }
      batch.saved.resize(model_.layers.size());
      batch.logits = workload_[batch.values.back()].type == Type::f32
                         ? batch.values.back()
                         : activation("logits", with_batch(size, shapes_.back()), Type::f32);
      if (trains_) {
        batch.dlogits = activation("dlogits", with_batch(size, shapes_.back()), type_);
      } else {
        require(workload_[batch.logits].role == Role::activation, "nothing is computed");
        workload_[batch.logits].name = "outputs";
      }
    }
    return batch;
  }

  [[nodiscard]] Id value(Value v) const { return batch_->values[static_cast<std::size_t>(v)]; }

  /// What each layer reads and writes in this step.
  void set_layer_tensors() {
    layers_.clear();
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      LayerTensors& tensors = layers_.emplace_back();
      tensors.number = static_cast<std::int64_t>(i);
      tensors.name = name_of(i);
      tensors.trains = trains_;
      tensors.ranks = options_.in_turn ? 1 : options_.ranks;
      tensors.rank = options_.in_turn ? 0 : options_.rank;
      for (const Value input : model_.layers[i].inputs) {
        tensors.inputs.push_back(value(input));
      }
      tensors.result = value(static_cast<Value>(i) + 1);
      for (const std::size_t p : layer_parameters_[i]) {
        tensors.parameters.push_back(parameters_[p].operand);
        tensors.gradients.push_back(parameters_[p].gradient);
      }
      tensors.states = layer_states_[i];
      tensors.saved = &batch_->saved[i];
    }
  }

  void cast(Id from, Id to) {
    if (from != to) {
      ops_.emplace_back(Cast{.x = from, .y = to});
    }
  }

  void forward() {
    for (const Parameter& parameter : parameters_) {
      cast(parameter.value, parameter.operand);
    }
    cast(batch_->inputs, value(0));
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      if (is_passed_by(i)) {
        continue;
      }
      LayerForward step(workload_, ops_, layers_[i]);
      std::visit([&](const auto& kind) { kind.forward(step); }, model_.layers[i].kind);
    }
    cast(batch_->values.back(), batch_->logits);
  }

  void backward(const Variant& variant) {
    gradient_.assign(model_.layers.size() + 1, std::nullopt);
    // The gradients of parameters that are added to.
    std::vector<bool> written(parameters_.size(), options_.zero_gradients || !variant.first);
    gradient_.back() = batch_->dlogits;
    const double part = static_cast<double>(variant.rows) / static_cast<double>(variant.batch);
    ops_.push_back(loss(part * loss_scale_ / static_cast<double>(options_.accumulate)));
    const bool sums = variant.update && options_.ranks > 1 && !options_.in_turn;
    GradientBuckets buckets(layer_parameters_, gradients(), options_);
    for (std::size_t i = model_.layers.size(); i-- > 0;) {
      if (!gradient_[i + 1] || !is_asked_[i + 1]) {
        continue;  // nothing that leads to the loss reads this layer, or nothing here is trained
      }
      const Layer& layer = model_.layers[i];
      std::vector<bool> asked;
      for (const Value input : layer.inputs) {
        asked.push_back(is_asked_[static_cast<std::size_t>(input)]);
      }
      std::vector<bool> adds;
      for (const std::size_t p : layer_parameters_[i]) {
        adds.push_back(written[p]);
        written[p] = true;
      }
      LayerBackward step(workload_, ops_, layers_[i], asked, *gradient_[i + 1], adds, type_);
      std::visit([&](const auto& kind) { kind.backward(step); }, layer.kind);
      step.finish();
      for (const auto& [input, gradient] : step.given()) {
        contribute(layer.inputs[input], gradient);
      }
      if (sums) {
        buckets.add_complete(i, workload_, ops_);
      }
    }
    if (sums) {
      buckets.add_rest(ops_);
    }
  }

  [[nodiscard]] Op loss(double scale) const {
    if (classifies()) {
      return SoftmaxCrossEntropy{.logits = batch_->logits,
                                 .labels = batch_->wanted,
                                 .loss = loss_,
                                 .dlogits = batch_->dlogits,
                                 .scale = scale};
    }
    return ElementwiseLoss{.logits = batch_->logits,
                           .targets = batch_->wanted,
                           .loss = loss_,
                           .dlogits = batch_->dlogits,
                           .function = model_.loss,
                           .scale = scale};
  }

  /// A value that several layers read collects the sum of their gradients.
  void contribute(Value v, Id gradient) {
    std::optional<Id>& sum = gradient_[static_cast<std::size_t>(v)];
    if (sum) {
      const Tensor& read = workload_[value(v)];
      const Id total = activation("d" + read.name, Shape(read.shape), type_);
      ops_.emplace_back(Add{.a = *sum, .b = gradient, .y = total});
      gradient = total;
    }
    sum = gradient;
  }

  [[nodiscard]] std::vector<Id> trained(Id Parameter::*member) const {
    std::vector<Id> ids;
    for (const Parameter& parameter : parameters_) {
      if (!parameter.is_frozen) {
        ids.push_back(parameter.*member);
      }
    }
    return ids;
  }

  /// By parameter.
  [[nodiscard]] std::vector<Id> gradients() const {
    std::vector<Id> ids;
    for (const Parameter& parameter : parameters_) {
      ids.push_back(parameter.gradient);
    }
    return ids;
  }

  const Model& model_;
  const TrainingOptions& options_;
  const bool trains_;  ///< else it is the forward pass alone, of a network that is used
  const Type type_;    ///< of activations and their gradients
  const double loss_scale_;
  const std::int64_t copy_;
  Workload workload_;
  Id inputs_ = none, wanted_ = none, loss_ = none;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<std::size_t>> layer_parameters_;  ///< by layer, into parameters_
  std::vector<std::vector<Id>> layer_states_;               ///< by layer
  std::optional<OptimizerStates> optimizer_;
  std::vector<Shape> shapes_;   ///< by Value, with any_batch
  std::vector<bool> is_asked_;  ///< by Value: a parameter in or before it is trained
  std::map<std::tuple<std::int64_t, std::int64_t, bool, bool>, int> steps_;  ///< by Variant
  std::map<std::int64_t, Batch> batches_;

  // The step in the making.
  std::vector<Op> ops_;
  Batch* batch_ = nullptr;
  std::vector<LayerTensors> layers_;
  std::vector<std::optional<Id>> gradient_;  ///< by Value
};

}  // namespace

std::int64_t rows_of_rank(std::int64_t batch, int rank, int ranks) {
  return (batch - rank + ranks - 1) / ranks;
}

Workload training_epoch(const Model& model, const TrainingOptions& options) {
  Workload all = Lowering(model, options, true).run();
  std::vector<std::vector<Run>> orders{all.order};
  for (std::int64_t copy = 1; copy < options.copies; ++copy) {
    all = Lowering(model, options, true, copy, std::move(all)).run();
    orders.push_back(all.order);
  }
  all.order.clear();
  for (std::size_t run = 0; run < orders.front().size(); ++run) {
    for (const std::vector<Run>& of_copy : orders) {
      all.order.push_back(of_copy[run]);
    }
  }
  return all;
}

Workload forward_pass(const Model& model, std::int64_t batch, Precision precision) {
  const TrainingOptions options{.rows = batch, .batch = batch, .precision = precision};
  return Lowering(model, options, false).run();
}

}  // namespace crossover
