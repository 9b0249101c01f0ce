#include "engine/runtime/host/process_rendezvous.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/runtime/host/elements.h"
#include "engine/runtime/process/byte_strings.h"

namespace zeroproof::host {
namespace {

static_assert(std::endian::native == std::endian::little, "parts travel as they lie in memory");

// What one rank brings, apart from its elements: op, reduce, root, dtype, elements of the output.
using PartHeader = std::array<std::int64_t, 5>;

template <class T>
std::string bytes_of(const T* from, std::size_t count) {
  return {reinterpret_cast<const char*>(from), count * sizeof(T)};
}

std::string packed(const Collective& of) {
  PartHeader header{static_cast<std::int64_t>(of.op), static_cast<std::int64_t>(of.reduce),
                    of.root};
  std::vector<double> elements;
  if (of.op != CollectiveOp::barrier) {
    header[3] = static_cast<std::int64_t>(of.input.dtype());
    header[4] = of.output.elements;
    for_each_element(of.input, [&](double x) { elements.push_back(x); });
  }
  return pack({bytes_of(&header, 1), bytes_of(elements.data(), elements.size())});
}

// Another rank's part, on memory of its own.
struct Part {
  Tensor input;
  Tensor output;
  Collective collective;
};

std::optional<Part> unpacked(const std::string& message) {
  const auto parts = unpack(message);
  PartHeader header{};
  if (!parts || parts->size() != 2 || (*parts)[0].size() != sizeof header) return std::nullopt;
  std::memcpy(header.data(), (*parts)[0].data(), sizeof header);
  Part part;
  part.collective.op = static_cast<CollectiveOp>(header[0]);
  part.collective.reduce = static_cast<ReduceOp>(header[1]);
  part.collective.root = static_cast<int>(header[2]);
  if (part.collective.op == CollectiveOp::barrier) return part;
  std::vector<double> elements((*parts)[1].size() / sizeof(double));
  std::memcpy(elements.data(), (*parts)[1].data(), elements.size() * sizeof(double));
  const auto dtype = static_cast<DType>(header[3]);
  const auto count = static_cast<std::int64_t>(elements.size());
  part.input = Tensor::of(elements, {count}, dtype);
  part.output = Tensor::full({header[4]}, 0.0, dtype);
  part.collective.input = Span::of(part.input);
  part.collective.output = Span::of(part.output);
  return part;
}

}  // namespace

ProcessRendezvous::ProcessRendezvous(std::shared_ptr<Job> job, std::string name,
                                     std::vector<int> ranks, bool has_garbage)
    : job_(std::move(job)),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      has_garbage_(has_garbage),
      number_(job_->next_number()) {}

void ProcessRendezvous::meet(int rank, std::int64_t sequence, const Collective& collective) {
  throw_if_failed();
  const auto mine = static_cast<std::size_t>(rank);
  const std::string what = title(sequence, collective);
  job_->set(key_of(sequence, mine), packed(collective));
  std::vector<std::optional<Part>> parts(ranks_.size());
  std::vector<const Collective*> all(ranks_.size(), &collective);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (r == mine) continue;
    parts[r] = unpacked(job_->wait(key_of(sequence, r), ranks_[r], what));
    if (!parts[r])
      fail(fmt::format("{}, and the part of rank {} of the group is damaged", what, r));
    all[r] = &parts[r]->collective;
  }
  for (std::size_t r = 1; r < all.size(); ++r)
    if (!is_same_kind(*all[0], *all[r]))
      fail(
          fmt::format("{}, collective {}: rank 0 of the group issued {}, but rank {} of the group "
                      "issued {}",
                      name_, sequence, description(*all[0]), r, description(*all[r])));
  run_collective(all, scratch_, has_garbage_);
  // Who has come to this one has read all of the one before.
  if (sequence > 0) job_->remove(key_of(sequence - 1, mine));
}

void ProcessRendezvous::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = reason;
  is_aborted_ = true;
}

std::optional<std::string> ProcessRendezvous::failure() {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return failure_;
  }
  return job_->failure();
}

void ProcessRendezvous::throw_if_failed() {
  const auto text = failure();
  if (!text) return;
  const std::lock_guard lock(mutex_);
  if (failure_.empty() || is_aborted_) throw GroupAborted(*text);
  throw RuntimeFault(*text);
}

std::string ProcessRendezvous::key_of(std::int64_t sequence, std::size_t rank) const {
  return fmt::format("collective/{}/{}/{}", number_, sequence, rank);
}

std::string ProcessRendezvous::title(std::int64_t sequence, const Collective& collective) const {
  return fmt::format("{}, collective {}: {}", name_, sequence, description(collective));
}

void ProcessRendezvous::fail(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = text;
  }
  throw RuntimeFault(text);
}

}  // namespace zeroproof::host
