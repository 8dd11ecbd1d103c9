// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace crossover::cpu::fused {

// ---- Memory

namespace {

std::int64_t round_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

}  // namespace

float* Memory::matrix(Arena& arena, Id id, std::int64_t ld) {
  const Shape& shape = tensors_[static_cast<std::size_t>(id)].shape;
  const std::int64_t columns = shape.back();
  auto* at = arena.take<float>(round_up(columns, tile) * ld + floats_of_line);
  stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at),
                                           .rows = leading(shape),
                                           .columns = columns,
                                           .row_stride = 1,
                                           .column_stride = ld};
  return at;
}

float* Memory::rows(Arena& arena, Id id, std::int64_t ld) {
  const Shape& shape = tensors_[static_cast<std::size_t>(id)].shape;
  auto* at = arena.take<float>(leading(shape) * ld);
  stored_[static_cast<std::size_t>(id)] = {.at = reinterpret_cast<std::byte*>(at),
                                           .rows = leading(shape),
                                           .columns = shape.back(),
                                           .row_stride = ld,
                                           .column_stride = 1};
  return at;
}

void Memory::upload(Id id, std::span<const std::byte> from) const {
  const Tensor& tensor = tensors_.at(static_cast<std::size_t>(id));
  if (tensor.role == Role::gradient && stored_[static_cast<std::size_t>(id)].at == nullptr) {
    return;  // it lives in registers, and each step computes it anew
  }
  const Stored& to = place(id, from.size());
  if (to.rows == 0) {
    std::memcpy(to.at, from.data(), from.size());
    return;
  }
  const auto* plain = reinterpret_cast<const float*>(from.data());
  auto* stored = reinterpret_cast<float*>(to.at);
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t column = 0; column < to.columns; ++column) {
      stored[row * to.row_stride + column * to.column_stride] = plain[row * to.columns + column];
    }
  }
}

void Memory::upload_row(Id id, std::int64_t row, std::span<const std::byte> from) const {
  const Stored& to = stored_[static_cast<std::size_t>(id)];
  if (to.rows == 0) {
    std::memcpy(to.at + row * std::ssize(from), from.data(), from.size());
    return;
  }
  const auto* plain = reinterpret_cast<const float*>(from.data());
  auto* stored = reinterpret_cast<float*>(to.at) + row * to.row_stride;
  for (std::int64_t column = 0; column < to.columns; ++column) {
    stored[column * to.column_stride] = plain[column];
  }
}

void Memory::download(Id id, std::span<std::byte> to) const {
  const Stored& from = place(id, to.size());
  if (from.rows == 0) {
    std::memcpy(to.data(), from.at, to.size());
    return;
  }
  const auto* stored = reinterpret_cast<const float*>(from.at);
  auto* plain = reinterpret_cast<float*>(to.data());
  for (std::int64_t row = 0; row < from.rows; ++row) {
    for (std::int64_t column = 0; column < from.columns; ++column) {
      plain[row * from.columns + column] =
          stored[row * from.row_stride + column * from.column_stride];
    }
  }
}

const Stored& Memory::place(Id id, std::size_t size) const {
  const Tensor& tensor = tensors_.at(static_cast<std::size_t>(id));
  const Stored& stored = stored_[static_cast<std::size_t>(id)];
  if (stored.at == nullptr || static_cast<std::int64_t>(size) != bytes(tensor)) {
    throw std::invalid_argument("tensor '" + tensor.name + "' can't be copied in " +
                                std::to_string(size) + " bytes");
  }
  return stored;
}

// ---- Steps

namespace {

/// Binds tensors once, however many steps have them.
class Binder {
 public:
  Binder(const Workload& workload, Arena& arena, Memory& memory)
      : workload_(workload), arena_(arena), memory_(memory) {}

  float* matrix(Id id, std::int64_t ld) {
    return once(id, [&] { return memory_.matrix(arena_, id, ld); });
  }
  float* rows(Id id, std::int64_t ld) {
    return once(id, [&] { return memory_.rows(arena_, id, ld); });
  }
  template <class T = float>
  T* plain(Id id) {
    return once(id, [&] { return memory_.plain<T>(arena_, id); });
  }
  const Tensor& operator[](Id id) const { return workload_[id]; }

 private:
  template <class Make>
  auto once(Id id, const Make& make) -> decltype(make()) {
    const auto at = bound_.find(id);
    if (at != bound_.end()) {
      return static_cast<decltype(make())>(at->second);
    }
    const auto made = make();
    bound_.emplace(id, made);
    return made;
  }

  const Workload& workload_;
  Arena& arena_;
  Memory& memory_;
  std::map<Id, void*> bound_;
};

/// Where the optimizer's lists have a parameter.
std::size_t index_of(const std::vector<Id>& ids, Id id) {
  return static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
}

/// A layer's parameters and what belongs to them.
Layer bind_parameters(const DenseLayer& from, const DenseStep& step, bool by_rows, bool keep,
                      Binder& bind) {
  Layer layer{.in = from.in,
              .out = from.out,
              .ld = by_rows ? whole_lines(from.out) : leading_dimension(from.out),
              .activation = from.activation,
              .x_activation = from.x_activation};
  layer.weights = bind.matrix(from.w, layer.ld);
  layer.bias = bind.plain(from.bias);
  if (keep && !step.updates_in_place()) {
    layer.dw = bind.matrix(from.dw, layer.ld);
    layer.dbias = bind.plain(from.dbias);
  }
  if (step.update) {
    const std::size_t w = index_of(step.update->parameters, from.w);
    const std::size_t bias = index_of(step.update->parameters, from.bias);
    const std::vector<std::vector<Id>>& states = step.update->states;
    layer.m = states.empty() ? nullptr : bind.matrix(states[0][w], layer.ld);
    layer.v = states.size() < 2 ? nullptr : bind.matrix(states[1][w], layer.ld);
    layer.bias_m = states.empty() ? nullptr : bind.plain(states[0][bias]);
    layer.bias_v = states.size() < 2 ? nullptr : bind.plain(states[1][bias]);
  }
  return layer;
}

/// Of how many numbers a step's loss is the mean.
std::int64_t summed_losses(const DenseStep& step) {
  return step.loss.function == LossFunction::cross_entropy ? step.batch
                                                           : step.batch * step.classes();
}

Batch batch_of(std::int64_t rows, bool by_rows) {
  return {.rows = rows, .stride = by_rows ? 0 : whole_lines(rows), .by_rows = by_rows};
}

/// A matrix of the samples that is no tensor.
float* take_matrix(std::int64_t features, const Batch& batch, Arena& arena) {
  return arena.take<float>(batch.by_rows ? batch.rows * whole_lines(features)
                                         : (features + tile) * batch.stride);
}

/// The matrices of the samples from `first` on by matrix(id, features).
template <class Matrix>
Samples bind_samples(const DenseStep& from, const std::vector<Layer>& parameters,
                     std::int64_t first, const Batch& batch, bool keep, Arena& arena,
                     const Matrix& matrix) {
  Samples samples{.first = first, .batch = batch, .layers = parameters};
  samples.inputs = take_matrix(from.layers[0].in, batch, arena);
  const float* x = samples.inputs;
  const float* x_slope = nullptr;
  float* dx = nullptr;
  float* dx_rows = nullptr;
  for (std::size_t i = 0; i < samples.layers.size(); ++i) {
    const DenseLayer& of = from.layers[i];
    Layer& layer = samples.layers[i];
    layer.x = x;
    layer.y = matrix(of.y, of.out);
    if (of.sum != none) {
      layer.slope = take_matrix(of.out, batch, arena);
    }
    layer.sum = keep && of.sum != none ? matrix(of.sum, of.out) : nullptr;
    layer.product = keep && of.product != none ? matrix(of.product, of.in) : nullptr;
    layer.x_slope = x_slope;
    layer.dx = dx;
    layer.dx_rows = dx_rows;
    dx = matrix(of.dy, of.out);
    layer.dy = dx;
    // Of hidden layers that fill a vector; by rows, dy lies so itself.
    const bool rows_too = i + 1 < samples.layers.size() && layer.out >= floats_of_line;
    dx_rows = rows_too && !batch.by_rows ? arena.take<float>(batch.stride * whole_lines(layer.out))
                                         : nullptr;
    layer.dy_rows = dx_rows;
    x = layer.y;
    x_slope = layer.slope;
  }
  samples.loss = {
      .function = from.loss.function,
      .classes = from.classes(),
      .logits = x,
      .dlogits = dx,
      .factor = static_cast<float>(from.loss.scale / static_cast<double>(summed_losses(from)))};
  return samples;
}

/// The batch in parts, each with matrices of its own: were they parts of one matrix, what a core
/// fetches ahead of one part would be taken from the core that writes the next.
std::vector<Samples> cut_samples(const DenseStep& from, std::vector<Layer> parameters, int parts,
                                 Arena& arena) {
  for (Layer& layer : parameters) {
    const auto take = [&](std::int64_t stride) {
      return PartialSums{
          .first = arena.take<float>(parts * stride), .stride = stride, .parts = parts};
    };
    layer.dw_sums = take(whole_lines(layer.in * layer.ld));
    layer.dbias_sums = take(whole_lines(layer.out));
  }
  std::vector<Samples> samples;
  for (int part = 0; part < parts; ++part) {
    for (Layer& layer : parameters) {
      layer.dw_sums.own = layer.dbias_sums.own = part;
    }
    const Part rows = part_of(from.batch, floats_of_line, part, parts);
    const Batch batch = batch_of(rows.end - rows.begin, false);
    samples.push_back(bind_samples(
        from, parameters, rows.begin, batch, false, arena,
        [&](Id /*id*/, std::int64_t features) { return take_matrix(features, batch, arena); }));
  }
  return samples;
}

Optimizer bind_optimizer(const DenseStep& step, Binder& bind) {
  if (!step.update) {
    return {.rate = -1};  // the gradients are the updates
  }
  const crossover::Update& update = *step.update;
  const UpdateTerms terms{.gradient_factor = update.gradient_factor};
  if (const auto* sgd = std::get_if<SgdOptions>(&update.rule)) {
    return {.rate = sgd->factors<float>(terms).learning_rate};
  }
  if (const auto* momentum = std::get_if<MomentumOptions>(&update.rule)) {
    const auto factors = momentum->factors<float>(terms);
    return {.rate = factors.learning_rate,
            .momentum = factors.momentum,
            .gradient_factor = factors.gradient_factor};
  }
  static_assert(std::variant_size_v<crossover::Optimizer> == 3, "kernels.h has no other rule");
  const auto decay_of = [&](Id id) { return update.decay_of(index_of(update.parameters, id)); };
  const DenseLayer& first = step.layers.front();
  for (const DenseLayer& layer : step.layers) {
    if (decay_of(layer.w) != decay_of(first.w) || decay_of(layer.bias) != decay_of(first.bias)) {
      throw Unsupported("fused execution takes one weight decay for all layers");
    }
  }
  UpdateTerms of_weights = terms;
  UpdateTerms of_biases = terms;
  of_weights.weight_decay = decay_of(first.w);
  of_biases.weight_decay = decay_of(first.bias);
  return {.time = bind.plain<std::int32_t>(update.step),
          .adamw = std::get<AdamWOptions>(update.rule),
          .of_weights = of_weights,
          .of_biases = of_biases};
}

/// A part of a step is worth cutting from so many multiply-adds on (about 1 us).
constexpr double least_work = 50'000;

double multiply_adds(std::int64_t rows, const Layer& layer) {
  return static_cast<double>(rows) * static_cast<double>(layer.in) * static_cast<double>(layer.out);
}

/// A phase is shared, by features, where it is long against the wait before and after it.
std::vector<Phase> phases_by_features(const Samples& all, int threads) {
  const auto pays = [&](double work) { return threads > 1 && work >= least_work; };
  const auto rows = static_cast<double>(all.batch.rows);
  const auto work = [&](std::int64_t layer) {
    return multiply_adds(all.batch.rows, all.layers[static_cast<std::size_t>(layer)]);
  };
  const std::int64_t layers = std::ssize(all.layers);
  std::vector<Phase> phases;
  phases.push_back({Phase::Kind::gather, 0, pays(rows * static_cast<double>(all.layers[0].in))});
  for (std::int64_t i = 0; i < layers; ++i) {
    phases.push_back({Phase::Kind::forward, i, pays(work(i))});
  }
  constexpr double of_a_class = 20;  // an exponential, and passes
  phases.push_back(
      {Phase::Kind::loss, 0, pays(of_a_class * rows * static_cast<double>(all.loss.classes))});
  for (std::int64_t i = layers - 1; i >= 0; --i) {
    phases.push_back({Phase::Kind::backward, i, pays(2 * work(i))});
  }
  for (std::size_t i = 1; i < phases.size(); ++i) {
    phases[i].wait = phases[i].shared || phases[i - 1].shared;
  }
  return phases;
}

/// Each thread has its samples up to the gradients; then it updates some of the weights.
std::vector<Phase> phases_by_samples(std::int64_t layers) {
  std::vector<Phase> phases;
  const auto add = [&](Phase::Kind kind, std::int64_t layer, bool wait = false) {
    phases.push_back({.kind = kind, .layer = layer, .shared = true, .wait = wait});
  };
  add(Phase::Kind::gather, 0);
  for (std::int64_t i = 0; i < layers; ++i) {
    add(Phase::Kind::forward, i);
  }
  add(Phase::Kind::loss, 0);
  for (std::int64_t i = layers - 1; i > 0; --i) {
    add(Phase::Kind::gradient, i);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    add(Phase::Kind::sum, i);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    add(Phase::Kind::update, i, i == 0);  // for the sums
  }
  return phases;
}

/// Steps follow one another in any order: the first phase of each waits for all that any may leave
/// behind.
void wait_between(std::vector<FusedStep>& steps) {
  const bool left = std::any_of(steps.begin(), steps.end(),
                                [](const FusedStep& step) { return step.phases.back().shared; });
  for (FusedStep& step : steps) {
    step.phases.front().wait = left || step.phases.front().shared;
  }
}

/// Into how many chunks to cut the samples of a thread. What a chunk needs should fit in half of a
/// second cache, and its samples fill tiles.
int chunks_of(const DenseStep& step, const std::vector<Layer>& layers, int threads) {
  constexpr std::int64_t half_of_cache = 256 << 10;
  constexpr std::int64_t fewest_samples = 8 * floats_of_line;
  std::int64_t floats_of_sample = layers.front().in;
  for (const Layer& layer : layers) {
    const int matrices = derivative_takes_input(layer.activation) ? 3 : 2;  // y, dy, slope
    floats_of_sample += matrices * layer.out + whole_lines(layer.out);      // dy_rows
  }
  const std::int64_t samples = std::max(
      fewest_samples, half_of_cache / static_cast<std::int64_t>(sizeof(float)) / floats_of_sample);
  return static_cast<int>(std::max<std::int64_t>(1, step.batch / (threads * samples)));
}

/// Whether each thread should have samples, in so many chunks: there are enough, and the gradients,
/// which are then summed over all of them, are fewer than the activations, which the threads
/// exchange, or a cache loses, otherwise.
bool samples_pay(const DenseStep& step, const std::vector<Layer>& layers, int threads, int chunks) {
  const int parts = threads * chunks;
  std::int64_t gradients = 0;
  std::int64_t activations = 0;
  double work = 0;
  for (const Layer& layer : layers) {
    gradients += layer.in * layer.out;
    activations += step.batch * layer.out;
    work += multiply_adds(step.batch, layer);
  }
  return parts > 1 && step.batch > floats_of_line * (parts - 1) &&
         gradients * chunks <= activations && work >= least_work;
}

/// Of each thread's samples so many chunks; 0 where the batch is better not cut by samples.
int chunks_that_pay(const DenseStep& step, const std::vector<Layer>& layers, int threads) {
  for (const int chunks : {chunks_of(step, layers, threads), 1}) {
    if (samples_pay(step, layers, threads, chunks)) {
      return chunks;
    }
  }
  return 0;
}

/// Whether samples should lie by rows: they are few, and the layers wide enough for what each
/// sample costs beside its products, as sums over lanes do. By rows, the number of vectors of
/// weights counts; else each weight is multiplied by a vector of samples. In units of such a
/// product.
bool rows_pay(const DenseStep& step) {
  constexpr std::int64_t of_sample = 64;
  constexpr std::int64_t of_vector = 2;
  std::int64_t by_rows = of_sample * step.batch;
  std::int64_t by_features = 0;
  for (const DenseLayer& layer : step.layers) {
    by_rows += of_vector * layer.in * lines_of(layer.out);
    by_features += layer.in * leading_dimension(layer.out);
  }
  return step.batch <= few_samples && by_rows <= by_features;
}

}  // namespace

Update Optimizer::next() const {
  if (time == nullptr) {
    return {.rate = rate, .momentum = momentum, .gradient_factor = gradient_factor};
  }
  const auto now = [t = ++*time](UpdateTerms terms) {
    terms.step = t;
    return terms;
  };
  return {.of_weights = adamw.factors<float>(now(of_weights)),
          .of_biases = adamw.factors<float>(now(of_biases))};
}

Part part_of(std::int64_t count, std::int64_t unit, std::int64_t part, std::int64_t parts) {
  if (parts == 1) {
    return {0, count};  // without divisions, which small steps would notice
  }
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * part / parts * unit),
          std::min(count, units * (part + 1) / parts * unit)};
}

bool lie_by_rows(const std::vector<DenseStep>& training) {
  return std::all_of(training.begin(), training.end(), rows_pay);
}

std::vector<FusedStep> bind_steps(const Workload& workload, const std::vector<DenseStep>& training,
                                  int threads, bool keep, Arena& arena, Memory& memory) {
  const bool by_rows = lie_by_rows(training);
  Binder bind(workload, arena, memory);
  std::vector<FusedStep> steps;
  for (const DenseStep& from : training) {
    const Id data = workload[from.inputs()].source;
    const std::int64_t rows_ld = whole_lines(workload[data].shape[0]);
    const auto bind_data = [&](Id id) {
      return by_rows ? bind.plain(id) : bind.matrix(id, rows_ld);
    };
    FusedStep step;
    step.data_ld = by_rows ? from.layers.front().in : rows_ld;
    step.data = bind_data(data);
    const Id wanted = workload[from.loss.wanted].source;
    if (from.loss.function == LossFunction::cross_entropy) {
      step.labels = bind.plain<std::int32_t>(wanted);
    } else {
      step.targets_ld = by_rows ? from.classes() : rows_ld;
      step.targets = bind_data(wanted);
    }
    step.summed_losses = summed_losses(from);
    step.losses = bind.plain(from.loss.loss);
    std::vector<Layer> parameters;
    for (const DenseLayer& layer : from.layers) {
      parameters.push_back(bind_parameters(layer, from, by_rows, keep, bind));
    }
    step.optimizer = bind_optimizer(from, bind);
    const int chunks = keep ? 0 : chunks_that_pay(from, parameters, threads);
    if (chunks > 0) {
      step.chunks = chunks;
      step.samples = cut_samples(from, std::move(parameters), threads * chunks, arena);
      step.phases = phases_by_samples(std::ssize(from.layers));
    } else {
      const Batch batch = batch_of(from.batch, by_rows);
      step.samples.push_back(
          bind_samples(from, parameters, 0, batch, keep, arena, [&](Id id, std::int64_t features) {
            return by_rows ? bind.rows(id, whole_lines(features)) : bind.matrix(id, batch.stride);
          }));
      step.phases = phases_by_features(step.samples.front(), threads);
    }
    steps.push_back(std::move(step));
  }
  wait_between(steps);
  return steps;
}

}  // namespace crossover::cpu::fused
