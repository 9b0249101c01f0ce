#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/zero/state_visitor.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// Gradients of one communication dtype that wait for their reduction, one after the other in a
// flat buffer; with overlap there are two, so that one fills while the other is reduced
// (docs/spec/zero.md 2.16). A parameter that comes again before the reduction joins its own place.
class IpgBucket {
 public:
  struct Entry {
    ZeroParameter* parameter = nullptr;
    std::int64_t begin = 0;
    std::int32_t oversized = -1;  // its own gradient stands in for a place in the buffer
  };

  // `capacity` elements a buffer; allocated by the first set_up().
  IpgBucket(ZeroContext& context, DType communication_dtype, std::int64_t capacity);

  DType communication_dtype() const { return communication_dtype_; }
  void set_up();

  bool has_oversized() const { return !oversized_.empty(); }
  bool is_empty() const { return entry_count_ == 0; }
  std::int64_t elements() const { return elements_; }
  std::span<const Entry> entries() const { return {entry_places_.data(), entry_count_}; }
  bool is_full_for(std::int64_t elements) const;
  bool holds(const ZeroParameter& parameter) const { return place_of(parameter) >= 0; }

  // The short way in for a hook: a gradient that fits after the others is copied and given up.
  // False, without an effect, where that takes more: no room, a parameter that is here already,
  // several streams or buffers. As a call of its own it would cost a hook 2 ns more.
  [[gnu::always_inline]] bool try_append_fast(ZeroParameter& parameter, Tensor& grad) {
    const std::int64_t begin = elements_;
    const std::int64_t elements = parameter.elements;
    if (begin + elements > direct_max_) return false;
    if (elements == 0) return false;
    if (place_of(parameter) >= 0) return false;
    if (entry_count_ == entry_places_.size()) return false;
    fill_entry(parameter);
    kernels_.copy(compute_, Span::of(buffers_.front().values, begin, elements),
                  Span::of(grad, 0, elements));
    grad = Tensor();
    return true;
  }

  // A new entry; the caller has made room. Returns where its values are.
  Span append(ZeroParameter& parameter, const Tensor& grad);
  // Adds to the entry that the parameter has.
  void add(const ZeroParameter& parameter, const Tensor& grad);
  // Of a .grad that stayed where it was: what it has now is the entry, whether autograd added in
  // place or made another tensor (create_graph).
  void rebind_grad(const ZeroParameter& parameter, const Tensor& grad);
  // The values of an entry, for their reduction.
  Span values(const Entry& entry) const;
  Span filled() const;  // the buffer's part

  // Before the reduction reads: the reduction stream waits for every stream that wrote.
  void order_before_reduction();
  // The entries are reduced, on the reduction stream; the other buffer is next.
  void finish_reduction();
  void clear();  // forgets what it has

  // The entries and their values. Which of two buffers is in use does not matter.
  void visit_state(StateVisitor& visitor) const;

 private:
  struct Buffer {
    Tensor values;
    StreamEvent reduced;  // its last reduction is done after this
  };

  void fill_entry(ZeroParameter& parameter) {
    place_of(parameter) = static_cast<std::int32_t>(entry_count_);
    entry_places_[entry_count_++] = {.parameter = &parameter, .begin = elements_, .oversized = -1};
    elements_ += parameter.elements;
  }
  std::int32_t& place_of(const ZeroParameter& parameter) {
    return places_[static_cast<std::size_t>(parameter.id.value)];
  }
  std::int32_t place_of(const ZeroParameter& parameter) const {
    return places_[static_cast<std::size_t>(parameter.id.value)];
  }
  StreamIndex current_producer() const;
  Stream& producer();
  void record_reduction_event();
  Tensor reducible(const ZeroParameter& parameter, const Tensor& grad);

  ZeroContext& context_;
  DType communication_dtype_;
  DType dtype_;  // of the buffers, and of what is reduced outside them
  std::int64_t capacity_;
  std::int64_t elements_max_;
  bool has_overlap_;
  std::int64_t direct_max_ = 0;  // elements that take() may fill; 0 before set_up()
  Device device_;
  bool is_contiguous_;
  Stream& compute_;
  Kernels& kernels_;
  std::array<Buffer, 2> buffers_;
  std::size_t index_ = 0;
  std::int64_t elements_ = 0;
  std::vector<Entry> entry_places_;  // more than one a parameter with H13 only
  std::size_t entry_count_ = 0;      // of them in use
  TensorList oversized_;
  std::vector<std::int32_t> places_;    // by ParamId: its entry; -1: none
  std::vector<StreamIndex> producers_;  // streams that wrote since the last reduction
};

}  // namespace zeroproof
