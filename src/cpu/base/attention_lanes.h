// SPDX-License-Identifier: Apache-2.0
// Attention over short sequences, of several at once: each lane of a vector is a sequence. A score
// is a vector then, so that nothing is summed across lanes, padded or computed of keys that a query
// does not see.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "product_tiles.h"
#include "vector.h"

namespace crossover::cpu {

// ---- To lanes and back.

/// Of both rows of a pair, `stride` apart, what stays where it is and what changes places.
template <std::size_t stride, bool second, std::size_t... lane>
inline Floats exchanged(Floats a, Floats b, std::index_sequence<lane...> /*lanes*/) {
  if constexpr (second) {
    return __builtin_shufflevector(a, b, ((lane & stride) != 0 ? lanes + lane : lane + stride)...);
  } else {
    return __builtin_shufflevector(a, b, ((lane & stride) != 0 ? lanes + lane - stride : lane)...);
  }
}

template <std::size_t stride = lanes / 2>
[[gnu::always_inline]] inline void transpose(std::array<Floats, lanes>& rows) {
  constexpr auto all_lanes = std::make_index_sequence<lanes>();
#pragma GCC unroll 16
  for (std::size_t i = 0; i < lanes; ++i) {
    if ((i & stride) == 0) {
      const Floats a = rows[i];
      const Floats b = rows[i + stride];
      rows[i] = exchanged<stride, false>(a, b, all_lanes);
      rows[i + stride] = exchanged<stride, true>(a, b, all_lanes);
    }
  }
  if constexpr (stride > 1) {
    transpose<stride / 2>(rows);
  }
}

/// So many columns of the rows of a block's sequences, one for each lane, behind one another. Where
/// there are fewer rows than lanes, the last stands for those. Compiled once, as it is long.
[[gnu::noinline]] inline void to_lanes(RowsAt<const float> from, std::int64_t rows,
                                       std::int64_t columns, float* to) {
  for_each_vector(columns, [&](auto part, std::int64_t first) {
    std::array<Floats, lanes> tile;  // NOLINT(*-member-init): each is written
    const float* row = from.at + first;
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < lanes; ++r) {
      tile[static_cast<std::size_t>(r)] = load(part, row);
      row += r + 1 < rows ? from.stride : 0;
    }
    transpose(tile);
#pragma GCC unroll 16
    for (std::size_t c = 0; c < lanes; ++c) {
      if (c < part.size()) {
        store(WholeVector{}, tile[c], to + (first + static_cast<std::int64_t>(c)) * lanes);
      }
    }
  });
}

/// The way back.
[[gnu::noinline]] inline void from_lanes(const float* from, std::int64_t rows, std::int64_t columns,
                                         RowsAt<float> to) {
  for_each_vector(columns, [&](auto part, std::int64_t first) {
    std::array<Floats, lanes> tile;  // NOLINT(*-member-init): each is written
    const float* column = from + first * lanes;
#pragma GCC unroll 16
    for (std::size_t c = 0; c < lanes; ++c) {
      tile[c] = load(WholeVector{}, column);
      column += c + 1 < part.size() ? lanes : 0;
    }
    transpose(tile);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < lanes; ++r) {
      if (r < rows) {
        store(part, tile[static_cast<std::size_t>(r)], to.at + r * to.stride + first);
      }
    }
  });
}

// ---- A head of as many sequences as there are lanes.

/// Vectors, whose rows lie `stride` floats apart.
struct LanesAt {
  float* at;
  std::int64_t stride;

  [[nodiscard]] Floats operator()(std::int64_t row, std::int64_t column) const {
    return load(WholeVector{}, at + row * stride + column * lanes);
  }
  void set(std::int64_t row, std::int64_t column, Floats value) const {
    store(WholeVector{}, value, at + row * stride + column * lanes);
  }
};

/// Columns, or rows, whose sums stay in registers together.
inline constexpr std::int64_t together = 4;

/// Calls work(width), which is a constant where it is narrow: then loops over it are gone. Such a
/// constant has no columns beside those that are summed together.
template <class Work>
inline void with_width(std::int64_t width, const Work& work) {
  switch (width) {
    case 4:
      return work(std::integral_constant<std::int64_t, 4>{});
    case 8:
      return work(std::integral_constant<std::int64_t, 8>{});
    default:
      return work(width);
  }
}

/// visit(column, the sum over [begin, end) of factor(i) b(i, column)) for each column.
template <class Width, class Factor, class Visit>
inline void sum_rows(std::int64_t begin, std::int64_t end, Width columns, const Factor& factor,
                     const LanesAt& b, const Visit& visit) {
  std::int64_t c = 0;
  for (; c + together <= columns; c += together) {
    Floats sums[together] = {};  // NOLINT(*-avoid-c-arrays)
    for (std::int64_t i = begin; i < end; ++i) {
      const Floats by = factor(i);
#pragma GCC unroll 4
      for (std::int64_t of = 0; of < together; ++of) {
        sums[of] += by * b(i, c + of);
      }
    }
#pragma GCC unroll 4
    for (std::int64_t of = 0; of < together; ++of) {
      visit(c + of, sums[of]);
    }
  }
  if constexpr (std::is_same_v<Width, std::int64_t>) {
    for (; c < columns; ++c) {
      Floats sum{};
      for (std::int64_t i = begin; i < end; ++i) {
        sum += factor(i) * b(i, c);
      }
      visit(c, sum);
    }
  }
}

/// visit(row, the sum over columns of a(at, column) b(row, column)) for each row of b.
template <class Width, class Visit>
inline void multiply_row(const LanesAt& a, std::int64_t at, const LanesAt& b, std::int64_t rows,
                         Width columns, const Visit& visit) {
  std::int64_t r = 0;
  for (; r + together <= rows; r += together) {
    Floats sums[together] = {};  // NOLINT(*-avoid-c-arrays)
    for (std::int64_t c = 0; c < columns; ++c) {
      const Floats of_a = a(at, c);
#pragma GCC unroll 4
      for (std::int64_t of = 0; of < together; ++of) {
        sums[of] += of_a * b(r + of, c);
      }
    }
#pragma GCC unroll 4
    for (std::int64_t of = 0; of < together; ++of) {
      visit(r + of, sums[of]);
    }
  }
  for (; r < rows; ++r) {
    Floats sum{};
    for (std::int64_t c = 0; c < columns; ++c) {
      sum += a(at, c) * b(r, c);
    }
    visit(r, sum);
  }
}

struct AttentionShape {
  std::int64_t time, batch, heads, width, d;
  bool causal;

  /// Keys that a query sees, and the first query that sees a key.
  [[nodiscard]] std::int64_t keys_of(std::int64_t query) const { return causal ? query + 1 : time; }
  [[nodiscard]] std::int64_t first_of(std::int64_t key) const { return causal ? key : 0; }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(d)); }
};

/// Memory of one thread.
class AttentionScratch {
 public:
  explicit AttentionScratch(float* at) : at_(at) {}
  float* take(std::int64_t floats) { return std::exchange(at_, at_ + floats); }

 private:
  float* at_;
};

struct HeadOfLanes : AttentionShape {
  /// y, and the logarithms of the sums [time]; `scores` has room for [1, time]. `columns` are d.
  template <class Width>
  void forward(Width columns, const LanesAt& q, const LanesAt& k, const LanesAt& v,
               const LanesAt& scores, const LanesAt& y, float* log_sums) const {
    const float factor = scale();
    for (std::int64_t t = 0; t < time; ++t) {
      Floats largest = all(-__builtin_inff());
      multiply_row(q, t, k, keys_of(t), columns, [&](std::int64_t key, Floats sum) {
        const Floats score = sum * factor;
        largest = where(score > largest, score, largest);
        scores.set(0, key, score);
      });
      Floats sum{};
      for (std::int64_t key = 0; key < keys_of(t); ++key) {
        const Floats e = exponential(scores(0, key) - largest);
        scores.set(0, key, e);
        sum += e;
      }
      const Floats inverse = 1.0F / sum;
      sum_rows(
          0, keys_of(t), columns, [&](std::int64_t key) { return scores(0, key); }, v,
          [&](std::int64_t i, Floats result) { y.set(t, i, result * inverse); });
      store(WholeVector{}, largest + logarithm(sum), log_sums + t * lanes);
    }
  }

  struct Gradients {
    LanesAt q, k, v;
  };
  /// `p` and `ds` have room for [time, time].
  template <class Width>
  void backward(Width columns, const LanesAt& q, const LanesAt& k, const LanesAt& v,
                const LanesAt& y, const LanesAt& dy, const float* log_sums, const LanesAt& p,
                const LanesAt& ds, const Gradients& to) const {
    const float factor = scale();
    for (std::int64_t t = 0; t < time; ++t) {
      const Floats log_sum = load(WholeVector{}, log_sums + t * lanes);
      multiply_row(q, t, k, keys_of(t), columns, [&](std::int64_t key, Floats sum) {
        p.set(t, key, exponential(sum * factor - log_sum));
      });
      Floats expected{};
      for (std::int64_t i = 0; i < columns; ++i) {
        expected += dy(t, i) * y(t, i);
      }
      multiply_row(dy, t, v, keys_of(t), columns, [&](std::int64_t key, Floats dp) {
        ds.set(t, key, p(t, key) * (dp - expected) * factor);
      });
      sum_rows(
          0, keys_of(t), columns, [&](std::int64_t key) { return ds(t, key); }, k,
          [&](std::int64_t i, Floats dq) { to.q.set(t, i, dq); });
    }
    for (std::int64_t key = 0; key < time; ++key) {
      sum_rows(
          first_of(key), time, columns, [&](std::int64_t t) { return ds(t, key); }, q,
          [&](std::int64_t i, Floats dk) { to.k.set(key, i, dk); });
      sum_rows(
          first_of(key), time, columns, [&](std::int64_t t) { return p(t, key); }, dy,
          [&](std::int64_t i, Floats dv) { to.v.set(key, i, dv); });
    }
  }
};

// ---- All heads of all sequences.

/// Cut into items: some heads whose numbers fill a vector, of a block of sequences.
class LanesOfHeads {
 public:
  explicit LanesOfHeads(const AttentionShape& of)
      : of_(of), together_(std::clamp<std::int64_t>(lanes / of.d, 1, of.heads)) {}

  /// Whether a head's numbers, of which each lane has its own, stay in the first caches, and few
  /// lanes are empty. Measured from 8 to 64 places with heads of 4 to 128 numbers, with AVX-512 and
  /// AVX2: up to these bounds it took less time, beyond them soon more.
  [[nodiscard]] bool pays_forward() const { return pays(512); }
  [[nodiscard]] bool pays_backward() const { return pays(256); }
  [[nodiscard]] std::int64_t items() const { return blocks() * groups(); }
  [[nodiscard]] std::int64_t floats_forward() const { return 4 * part() + 2 * of_.time * lanes; }
  [[nodiscard]] std::int64_t floats_backward() const {
    return 8 * part() + (2 * of_.time + 1) * of_.time * lanes;
  }

  void forward(std::int64_t item, const float* qkv, float* y, float* log_sums,
               AttentionScratch scratch) const {
    const Item at(*this, item);
    const std::array<float*, 3> of_qkv = at.take(qkv, scratch);
    float* const of_y = scratch.take(part());
    const LanesAt scores{scratch.take(of_.time * lanes), 0};
    float* const sums = scratch.take(of_.time * lanes);
    at.for_each_head([&](std::int64_t head, std::int64_t first) {
      with_width(of_.d, [&](auto width) {
        head_of_lanes().forward(width, at.lanes_at(of_qkv[0], first), at.lanes_at(of_qkv[1], first),
                                at.lanes_at(of_qkv[2], first), scores, at.lanes_at(of_y, first),
                                sums);
      });
      from_lanes(sums, at.rows(), of_.time, at.sums_at(log_sums, head));
    });
    at.put(of_y, y, of_.width, 0);
  }

  void backward(std::int64_t item, const float* qkv, const float* y, const float* log_sums,
                const float* dy, float* dqkv, AttentionScratch scratch) const {
    const Item at(*this, item);
    const std::array<float*, 3> of_qkv = at.take(qkv, scratch);
    float* const of_y = scratch.take(part());
    at.get(y, of_.width, 0, of_y);
    float* const of_dy = scratch.take(part());
    at.get(dy, of_.width, 0, of_dy);
    const std::array<float*, 3> gradients{scratch.take(part()), scratch.take(part()),
                                          scratch.take(part())};
    const std::int64_t matrix = of_.time * of_.time * lanes;
    const LanesAt p{scratch.take(matrix), of_.time * lanes};
    const LanesAt ds{scratch.take(matrix), of_.time * lanes};
    float* const sums = scratch.take(of_.time * lanes);
    at.for_each_head([&](std::int64_t head, std::int64_t first) {
      to_lanes(at.sums_at(log_sums, head), at.rows(), of_.time, sums);
      with_width(of_.d, [&](auto width) {
        head_of_lanes().backward(
            width, at.lanes_at(of_qkv[0], first), at.lanes_at(of_qkv[1], first),
            at.lanes_at(of_qkv[2], first), at.lanes_at(of_y, first), at.lanes_at(of_dy, first),
            sums, p, ds,
            {at.lanes_at(gradients[0], first), at.lanes_at(gradients[1], first),
             at.lanes_at(gradients[2], first)});
      });
    });
    for (std::int64_t i = 0; i < 3; ++i) {
      at.put(gradients[static_cast<std::size_t>(i)], dqkv, 3 * of_.width, i * of_.width);
    }
  }

 private:
  [[nodiscard]] bool pays(std::int64_t most) const {
    return of_.time <= 32 && of_.time * of_.d <= most && 2 * of_.batch >= lanes;
  }
  [[nodiscard]] std::int64_t blocks() const { return (of_.batch + lanes - 1) / lanes; }
  [[nodiscard]] std::int64_t groups() const { return (of_.heads + together_ - 1) / together_; }
  [[nodiscard]] std::int64_t columns() const { return together_ * of_.d; }
  /// Floats of what an item has of queries, keys, values or results: [time, columns, lanes].
  [[nodiscard]] std::int64_t part() const { return of_.time * columns() * lanes; }
  [[nodiscard]] HeadOfLanes head_of_lanes() const { return {of_}; }

  class Item {
   public:
    Item(const LanesOfHeads& all, std::int64_t item)
        : all_(all),
          of_(all.of_),
          sequence_(item / all.groups() * lanes),
          rows_(std::min<std::int64_t>(lanes, of_.batch - sequence_)),
          head_(item % all.groups() * all.together_),
          heads_(std::min(all.together_, of_.heads - head_)) {}

    /// Its columns of a tensor [time, batch, width], from `first` on, and the way back.
    void get(const float* from, std::int64_t width, std::int64_t first, float* to) const {
      for (std::int64_t t = 0; t < of_.time; ++t) {
        to_lanes({from + place(t, width, first), width}, rows_, heads_ * of_.d,
                 to + t * all_.columns() * lanes);
      }
    }
    void put(const float* from, float* to, std::int64_t width, std::int64_t first) const {
      for (std::int64_t t = 0; t < of_.time; ++t) {
        from_lanes(from + t * all_.columns() * lanes, rows_, heads_ * of_.d,
                   {to + place(t, width, first), width});
      }
    }

    /// Queries, keys and values.
    std::array<float*, 3> take(const float* qkv, AttentionScratch& scratch) const {
      std::array<float*, 3> parts{};
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i] = scratch.take(all_.part());
        get(qkv, 3 * of_.width, static_cast<std::int64_t>(i) * of_.width, parts[i]);
      }
      return parts;
    }

    /// visit(head, its first column).
    template <class Visit>
    void for_each_head(const Visit& visit) const {
      for (std::int64_t i = 0; i < heads_; ++i) {
        visit(head_ + i, i * of_.d);
      }
    }
    [[nodiscard]] LanesAt lanes_at(float* part, std::int64_t column) const {
      return {part + column * lanes, all_.columns() * lanes};
    }
    /// The sums [time] of a head in [batch, heads, time], and of the next sequences behind them.
    template <class T>
    [[nodiscard]] RowsAt<T> sums_at(T* all_sums, std::int64_t head) const {
      return {all_sums + (sequence_ * of_.heads + head) * of_.time, of_.heads * of_.time};
    }
    [[nodiscard]] std::int64_t rows() const { return rows_; }

   private:
    [[nodiscard]] std::int64_t place(std::int64_t t, std::int64_t width, std::int64_t first) const {
      return (t * of_.batch + sequence_) * width + first + head_ * of_.d;
    }

    const LanesOfHeads& all_;
    const AttentionShape& of_;
    std::int64_t sequence_, rows_, head_, heads_;
  };

  AttentionShape of_;
  std::int64_t together_;
};

}  // namespace crossover::cpu
