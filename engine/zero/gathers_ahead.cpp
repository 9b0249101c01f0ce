#include "engine/zero/gathers_ahead.h"

#include <algorithm>
#include <utility>

namespace zeroproof {
namespace {

// So many pieces are queued before the module that needs them: not all at once, since the host
// queues the modules' own work in between.
constexpr std::size_t kPiecesAhead = 2;

// The elements of a slice that one gather may have.
std::int64_t part_elements(const ZeroContext& context) {
  return std::max<std::int64_t>(context.config.allgather_bucket_size, 1);
}

}  // namespace

GathersAhead::GathersAhead(ZeroContext& context, std::deque<FlatGroup>& groups,
                           const FlatSlots& slots)
    : context_(context), groups_(groups), slots_(slots) {
  for (FlatGroup& group : groups_) cut(group);
  for (const ZeroParameter& parameter : context_.parameters)
    ends_[&parameter.tensor.impl()] = end_of(parameter);
  mark_first();
  queued_ = awaited_ = pieces_.size();
  for (const nn::NamedModule& named : context_.module.named_modules())
    if (!named.module->own_parameters().empty()) observe(*named.module);
}

GathersAhead::~GathersAhead() {
  try {
    wait_up_to(pieces_.size());
  } catch (...) {  // the runtime has failed, which its next use will report
  }
  for (HookHandle& handle : handles_) handle.remove();
  for (nn::Module* module : observed_) module->set_parameter_observer({});
}

void GathersAhead::cut(FlatGroup& group) {
  const std::int64_t elements = group.own().elements;
  const std::int64_t most = part_elements(context_);
  for (int owner = 0; owner < group.partition().ranks(); ++owner)
    for (std::int64_t begin = 0; begin < elements; begin += most)
      pieces_.push_back({&group, owner, {begin, std::min(most, elements - begin)}, false});
}

std::size_t GathersAhead::end_of(const ZeroParameter& parameter) const {
  const FlatSlot& slot = slot_of(slots_, parameter);
  if (slot.group == nullptr) return 0;
  const auto needs = [&](const Piece& piece) {
    return piece.group == slot.group &&
           intersect(slot.group->partition().owned(slot.index, piece.owner),
                     {slot.group->partition().slice(piece.owner).begin + piece.part.begin,
                      piece.part.elements})
                   .elements > 0;
  };
  const auto last = std::find_if(pieces_.rbegin(), pieces_.rend(), needs);
  return static_cast<std::size_t>(pieces_.rend() - last);
}

// Its pieces end where it does, and begin with its group.
void GathersAhead::mark_first() {
  for (const ZeroParameter& parameter : context_.parameters) {
    const std::size_t end = ends_.at(&parameter.tensor.impl());
    if (end == 0) continue;
    const FlatGroup* const group = pieces_[end - 1].group;
    for (std::size_t i = 0; i < end; ++i) pieces_[i].is_first = pieces_[i].group == group;
    firsts_ = end;
    return;
  }
}

void GathersAhead::observe(nn::Module& module) {
  std::size_t end = 0;
  for (const Tensor* own : module.own_parameters()) end = std::max(end, end_of(*own));
  if (end == 0) return;
  handles_.push_back(module.register_forward_pre_hook([this, end](const TensorList&) {
    need(end);
    return TensorList();
  }));
  module.set_parameter_observer([this](const Tensor& read) { need(end_of(read)); });
  observed_.push_back(&module);
}

std::size_t GathersAhead::end_of(const Tensor& read) const {
  const auto at = ends_.find(&read.impl());
  return at == ends_.end() ? 0 : at->second;
}

void GathersAhead::need(std::size_t end) {
  begin();
  queue_up_to(end + kPiecesAhead);
  wait_up_to(end);
}

void GathersAhead::update(const GradientDivisor& divisor) {
  finish();
  awaited_ = 0;
  try {
    for (FlatGroup& group : groups_) update(group, divisor);
  } catch (...) {
    finish();  // what is on the way keeps its memory
    throw;
  }
  finish();
  is_left_ = true;
}

void GathersAhead::update(FlatGroup& group, const GradientDivisor& divisor) {
  const Span gradient = group.step_gradient();
  const std::int64_t elements = group.own().elements;
  const std::int64_t most = part_elements(context_);
  group.begin_update();
  for (std::int64_t begin = 0; begin < elements; begin += most) {
    const FlatRange part{begin, std::min(most, elements - begin)};
    group.update_part(gradient, divisor, part);
    for (Piece& piece : pieces_) {
      if (!piece.is_first || piece.group != &group || piece.part != part) continue;
      stream().wait(context_.compute());
      gather(piece);
    }
  }
}

void GathersAhead::begin() {
  if (!std::exchange(is_left_, false)) return;
  stream().wait(context_.compute());
  queued_ = awaited_ = 0;
  queue_up_to(firsts_ + kPiecesAhead);
}

void GathersAhead::finish() {
  queue_up_to(pieces_.size());
  wait_up_to(pieces_.size());
}

void GathersAhead::queue_up_to(std::size_t end) {
  for (; queued_ < std::min(end, pieces_.size()); ++queued_)
    if (!pieces_[queued_].is_first) gather(pieces_[queued_]);
}

// One collective a piece, so that a wait for it does not wait for later pieces.
void GathersAhead::gather(Piece& piece) {
  const std::int64_t begin = piece.group->partition().slice(piece.owner).begin + piece.part.begin;
  const Span values = Span::of(piece.group->flat(), begin, piece.part.elements);
  context_.data.together([&] {
    piece.work = context_.data.broadcast(stream(), values, piece.owner, {.is_async = true});
  });
}

void GathersAhead::wait_up_to(std::size_t end) {
  for (; awaited_ < end; ++awaited_) {
    const Work work = std::exchange(pieces_[awaited_].work, {});
    if (work.sequence >= 0) context_.data.wait(work, context_.compute());
  }
}

void GathersAhead::forget() {
  for (Piece& piece : pieces_) context_.data.forget(std::exchange(piece.work, {}));
  queued_ = awaited_ = pieces_.size();
  expect();
}

}  // namespace zeroproof
