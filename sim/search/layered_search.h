#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
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

  SuccessorBuffer(const CodeBitmap& met, std::size_t part, std::size_t parts)
      : met_(met), part_(part), sent_(parts), codes_(kStates * kSuccessorsMax) {}

  // Of the worker's own part of the states.
  void add(std::uint64_t code) {
    met_.prefetch(code);
    codes_[size_++] = code;
  }
  // Of that part, which may be another worker's.
  void send(std::size_t part, std::uint64_t code) {
    if (part == part_) return add(code);
    sent_[part].push_back(code);
    ++sent_count_;
  }
  std::size_t size() const { return size_; }
  const std::uint64_t* data() const { return codes_.data(); }
  void clear() { size_ = 0; }

  std::uint64_t sent_count() const { return sent_count_; }  // ever
  std::vector<std::uint64_t>& sent_to(std::size_t part) { return sent_[part]; }

 private:
  const CodeBitmap& met_;
  std::size_t part_;
  std::vector<std::vector<std::uint64_t>> sent_;
  std::uint64_t sent_count_ = 0;
  std::vector<std::uint64_t> codes_;
  std::size_t size_ = 0;
};

// Breadth-first search over numbered states, layer by layer, on one or more workers. A Space has
//   std::uint64_t code_space() const;
//   std::uint64_t initial() const;
//   std::size_t split(std::size_t workers);       // into how many parts, at most so many
//   std::size_t part_of(std::uint64_t code) const;
//   class Worker;   // what one worker finds; made by make_worker(), merged by merge(Worker&)
//   void Worker::expand(std::uint64_t code, std::uint64_t depth, SuccessorBuffer& successors);
// Each state belongs to one part, and each part to one worker, which alone looks whether it was met
// (no byte of the bitmap has codes of two parts); what workers find for each other they exchange
// after each layer. So parts that few moves lead out of are worth most. All states of a layer are
// met before the next layer begins, so the first finding of a kind is a shortest one. Counts and
// findings are the same for every number of workers. `should_stop` is asked after each layer; may
// be empty.
template <class Space>
class LayeredSearch {
 public:
  LayeredSearch(Space& space, std::size_t workers) : space_(space), met_(space.code_space()) {
    const std::size_t parts = space.split(workers);
    for (std::size_t part = 0; part < parts; ++part)
      sides_.push_back(std::make_unique<Side>(space, met_, part, parts));
  }

  LayeredCounts run(const std::function<bool()>& should_stop = {}) {
    Side& first = *sides_[space_.part_of(space_.initial())];
    met_.insert(space_.initial());
    first.layer.push_back(space_.initial());
    counts_.states = 1;
    std::uint64_t size = 1;
    for (; size != 0 && !(should_stop && should_stop()); ++counts_.layers) {
      expand(size);
      exchange();
      std::uint64_t next = 0;
      for (const auto& side : sides_) {
        side->layer.swap(side->next);
        side->next.clear();
        next += side->layer.size();
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
    Side(Space& space, const CodeBitmap& met, std::size_t part, std::size_t parts)
        : worker(space.make_worker()), successors(met, part, parts) {}
    typename Space::Worker worker;
    SuccessorBuffer successors;
    std::vector<std::uint64_t> layer;
    std::vector<std::uint64_t> next;
    std::uint64_t transitions = 0;
  };

  static constexpr std::uint64_t kWorthSharing = 4096;  // states; below, threads cost more

  void expand(std::uint64_t size) {
    std::vector<std::thread> others;
    for (std::size_t part = 1; part < sides_.size(); ++part) {
      if (size < kWorthSharing) {
        expand(*sides_[part]);
      } else {
        others.emplace_back([this, part] { expand(*sides_[part]); });
      }
    }
    expand(*sides_[0]);
    for (std::thread& other : others) other.join();
  }

  void expand(Side& side) {
    const std::uint64_t* from = side.layer.data();
    const std::uint64_t* const to = from + side.layer.size();
    while (from != to) {
      const std::uint64_t* const stop =
          from + std::min<std::ptrdiff_t>(to - from, SuccessorBuffer::kStates);
      side.successors.clear();
      for (; from != stop; ++from) side.worker.expand(*from, counts_.layers, side.successors);
      side.transitions += side.successors.size();
      keep_new(side);
    }
  }

  // Written without a branch on what is new: it cannot be predicted.
  void keep_new(Side& side) {
    const std::size_t kept = side.next.size();
    side.next.resize(kept + side.successors.size());
    std::uint64_t* out = side.next.data() + kept;
    const std::uint64_t* const codes = side.successors.data();
    for (std::size_t i = 0; i < side.successors.size(); ++i) {
      *out = codes[i];
      out += met_.insert(codes[i]) ? 1 : 0;
    }
    side.next.resize(static_cast<std::size_t>(out - side.next.data()));
  }

  void exchange() {
    for (const auto& from : sides_)
      for (std::size_t part = 0; part < sides_.size(); ++part) {
        std::vector<std::uint64_t>& codes = from->successors.sent_to(part);
        for (const std::uint64_t code : codes)
          if (met_.insert(code)) sides_[part]->next.push_back(code);
        codes.clear();
      }
  }

  void finish() {
    for (const auto& side : sides_) {
      counts_.transitions += side->transitions + side->successors.sent_count();
      space_.merge(side->worker);
    }
    counts_.transitions += space_.violating_transitions();
    counts_.store_bytes = met_.bytes() + counts_.frontier_peak * sizeof(std::uint64_t);
  }

  Space& space_;
  CodeBitmap met_;
  std::vector<std::unique_ptr<Side>> sides_;
  LayeredCounts counts_;
};

}  // namespace zeroproof
