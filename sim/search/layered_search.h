#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "sim/search/code_bitmap.h"

namespace zeroproof {

struct LayeredCounts {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t layers = 0;         // the longest shortest path, in events
  std::uint64_t frontier_peak = 0;  // states of two neighbouring layers
  std::uint64_t store_bytes = 0;    // bitmap and frontiers at their largest
  bool has_exhausted = false;
};

// Where a worker puts successors; `expand` may append at most kSuccessorsMax a state.
class SuccessorBuffer {
 public:
  static constexpr std::size_t kStates = 64;
  static constexpr std::size_t kSuccessorsMax = 640;

  explicit SuccessorBuffer(const CodeBitmap& met) : met_(met), codes_(kStates * kSuccessorsMax) {}
  void add(std::uint64_t code) {
    met_.prefetch(code);
    codes_[size_++] = code;
  }
  std::size_t size() const { return size_; }
  const std::uint64_t* data() const { return codes_.data(); }
  void clear() { size_ = 0; }

 private:
  const CodeBitmap& met_;
  std::vector<std::uint64_t> codes_;
  std::size_t size_ = 0;
};

// Breadth-first search over numbered states, layer by layer, on one or more workers. A Space has
//   std::uint64_t code_space() const;
//   std::uint64_t initial() const;
//   class Worker;   // what one worker finds; made by make_worker(), merged by merge(Worker&)
//   void Worker::expand(std::uint64_t code, std::uint64_t depth, SuccessorBuffer& successors);
// All states of a layer are met before the next layer begins, so the first finding of a kind is a
// shortest one. Counts and findings are the same for every number of workers. `should_stop` is
// asked after each layer; may be empty.
template <class Space>
class LayeredSearch {
 public:
  LayeredSearch(Space& space, std::size_t workers) : space_(space), met_(space.code_space()) {
    for (std::size_t i = 0; i < workers; ++i) sides_.emplace_back(space_.make_worker(), met_);
  }

  LayeredCounts run(const std::function<bool()>& should_stop = {}) {
    met_.insert(space_.initial());
    std::vector<std::vector<std::uint64_t>> layer(sides_.size());
    layer[0].push_back(space_.initial());
    counts_.states = 1;
    std::uint64_t size = 1;
    for (; size != 0 && !(should_stop && should_stop()); ++counts_.layers) {
      expand(layer, size);
      std::uint64_t next = 0;
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        layer[i].swap(sides_[i].next);
        sides_[i].next.clear();
        next += layer[i].size();
      }
      counts_.states += next;
      counts_.frontier_peak = std::max(counts_.frontier_peak, size + next);
      size = next;
    }
    if (counts_.layers != 0) --counts_.layers;
    counts_.has_exhausted = size == 0;
    finish();
    return counts_;
  }

 private:
  struct Side {
    Side(typename Space::Worker worker_, const CodeBitmap& met)
        : worker(std::move(worker_)), successors(met) {}
    typename Space::Worker worker;
    SuccessorBuffer successors;
    std::vector<std::uint64_t> next;
    std::uint64_t transitions = 0;
  };
  using Layer = std::vector<std::vector<std::uint64_t>>;

  static constexpr std::uint64_t kWorthSharing = 4096;  // states; below, threads cost more

  void expand(const Layer& layer, std::uint64_t size) {
    const std::size_t count = size < kWorthSharing ? 1 : sides_.size();
    const auto part = [&](std::size_t index) {
      const std::uint64_t first = size * index / count;
      const std::uint64_t last = size * (index + 1) / count;
      std::uint64_t before = 0;
      for (const auto& piece : layer) {
        const std::uint64_t from = std::clamp(first, before, before + piece.size()) - before;
        const std::uint64_t to = std::clamp(last, before, before + piece.size()) - before;
        expand_piece(sides_[index], piece.data() + from, piece.data() + to, count > 1);
        before += piece.size();
      }
    };
    std::vector<std::thread> others;
    for (std::size_t index = 1; index < count; ++index) others.emplace_back(part, index);
    part(0);
    for (std::thread& other : others) other.join();
  }

  void expand_piece(Side& side, const std::uint64_t* from, const std::uint64_t* to,
                    bool is_shared) {
    while (from != to) {
      const std::uint64_t* const stop =
          from + std::min<std::ptrdiff_t>(to - from, SuccessorBuffer::kStates);
      side.successors.clear();
      for (; from != stop; ++from) side.worker.expand(*from, counts_.layers, side.successors);
      side.transitions += side.successors.size();
      if (is_shared) {
        keep_new(side, [this](std::uint64_t code) { return met_.insert_shared(code); });
      } else {
        keep_new(side, [this](std::uint64_t code) { return met_.insert(code); });
      }
    }
  }

  // Written without a branch on what is new: it cannot be predicted.
  template <class Insert>
  static void keep_new(Side& side, Insert insert) {
    const std::size_t kept = side.next.size();
    side.next.resize(kept + side.successors.size());
    std::uint64_t* out = side.next.data() + kept;
    const std::uint64_t* const codes = side.successors.data();
    for (std::size_t i = 0; i < side.successors.size(); ++i) {
      *out = codes[i];
      out += insert(codes[i]) ? 1 : 0;
    }
    side.next.resize(static_cast<std::size_t>(out - side.next.data()));
  }

  void finish() {
    for (Side& side : sides_) {
      counts_.transitions += side.transitions;
      space_.merge(side.worker);
    }
    counts_.transitions += space_.violating_transitions();
    counts_.store_bytes = met_.bytes() + counts_.frontier_peak * sizeof(std::uint64_t);
  }

  Space& space_;
  CodeBitmap met_;
  std::vector<Side> sides_;
  LayeredCounts counts_;
};

}  // namespace zeroproof
