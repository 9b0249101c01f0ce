#include "engine/runtime/cuda/peer_collectives.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {
namespace {

using host::CollectiveOp;

// Copies of smaller slices take longer than a kernel that reads them.
constexpr std::size_t kCopiedBytesMin{kCopiedSliceBytesMin};
constexpr std::size_t kGrain = 64;  // elements or bytes; so that slices begin where vectors do

// Several by one call of the driver's, whose lock other ranks want too.
void copy_together(cudaStream_t queue, const std::vector<CopyRange>& ranges) {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<std::size_t> bytes;
  for (const CopyRange& of : ranges) {
    to.push_back(of.to);
    from.push_back(of.from);
    bytes.push_back(static_cast<std::size_t>(of.bytes));
  }
  cudaMemcpyAttributes all{};
  all.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  ZP_CUDA(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), ranges.size(), &all, &first, 1,
                               queue));
}

}  // namespace

bool PeerCollectives::can_sum(int ranks) {
  return ranks <= kSummedRanksMax;
}

PeerCollectives::PeerCollectives(int rank, int size, Peers& peers, Gpu& gpu, CopyStaging& staging,
                                 WhileWaiting while_waiting)
    : rank_(rank),
      size_(size),
      peers_(peers),
      gpu_(gpu),
      staging_(staging),
      while_waiting_(std::move(while_waiting)) {
  gpu_.pool().add_reader(this, [this] { peers_.wait_for_others(rank_, while_waiting_); });
}

PeerCollectives::~PeerCollectives() {
  gpu_.pool().remove_reader(this);
}

// Twice, so that whatever meets next has a number that differs from the last one's.
void PeerCollectives::barrier(cudaStream_t queue) {
  exchange("barrier", {});
  for (const int number : {0, 1}) peers_.barrier().meet(rank_, queue, number);
  peers_.finish(rank_);
}

PeerCollectives::PeerAddresses PeerCollectives::exchange(const std::string& call,
                                                         Peers::Addresses mine) {
  return peers_.exchange(rank_, call, std::move(mine), while_waiting_);
}

// What is captured knows no copies by one call.
void PeerCollectives::copy_bytes(cudaStream_t queue, std::vector<CopyRange> ranges) const {
  std::erase_if(ranges, [](const CopyRange& range) { return range.bytes == 0; });
  std::int64_t bytes = 0;
  for (const CopyRange& range : ranges) bytes = std::max(bytes, range.bytes);
  if (std::cmp_less(bytes, kCopiedBytesMin)) {
    ZP_CUDA(launch_copies(queue, ranges));
    return;
  }
  if (ranges.size() > 1 && !gpu_.is_capturing()) return copy_together(queue, ranges);
  for (const CopyRange& of : ranges)
    ZP_CUDA(cudaMemcpyAsync(of.to, of.from, static_cast<std::size_t>(of.bytes),
                            cudaMemcpyDeviceToDevice, queue));
}

bool PeerCollectives::copy(cudaStream_t queue, const std::string& call,
                           const std::vector<Piece>& pieces) {
  Peers::Addresses mine;
  for (const Piece& piece : pieces) mine.push_back(piece.from);
  const PeerAddresses all = exchange(call, std::move(mine));
  if (all.empty()) return false;
  peers_.barrier().meet(rank_, queue, 0);
  if (is_spread(pieces))
    spread(queue, pieces.front(), all);
  else
    copy_pieces(queue, pieces, all);
  peers_.finish(rank_);
  return true;
}

void PeerCollectives::copy_pieces(cudaStream_t queue, const std::vector<Piece>& pieces,
                                  const PeerAddresses& all) {
  std::vector<CopyRange> ranges;
  for (std::size_t turn = 0; turn < pieces.size(); ++turn) {
    // Not all from the same one at first.
    const std::size_t i = (turn + static_cast<std::size_t>(rank_)) % pieces.size();
    const Piece& piece = pieces[i];
    const void* const from = all[static_cast<std::size_t>(piece.root)].at(i);
    if (from != piece.to && piece.bytes > 0)
      ranges.push_back({piece.to, from, static_cast<std::int64_t>(piece.bytes)});
  }
  copy_bytes(queue, ranges);
  peers_.barrier().meet(rank_, queue, 1);
}

// One root alone would be read by all at once.
bool PeerCollectives::is_spread(const std::vector<Piece>& pieces) const {
  if (pieces.size() != 1 || size_ < 3 || pieces.front().from != pieces.front().to) return false;
  return pieces.front().bytes / static_cast<std::size_t>(size_ - 1) >= kCopiedBytesMin;
}

// Each rank copies a share from the root, then the other shares from those that have them.
void PeerCollectives::spread(cudaStream_t queue, const Piece& piece, const PeerAddresses& all) {
  const auto shares = static_cast<std::size_t>(size_ - 1);
  const std::size_t share = ((piece.bytes + shares - 1) / shares + kGrain - 1) / kGrain * kGrain;
  const auto share_of = [&](int owner, int from) {
    const std::size_t begin = std::min(
        piece.bytes, static_cast<std::size_t>(owner < piece.root ? owner : owner - 1) * share);
    const auto* const source =
        static_cast<const std::byte*>(all[static_cast<std::size_t>(from)].front());
    return CopyRange{piece.to + begin, source + begin,
                     static_cast<std::int64_t>(std::min(share, piece.bytes - begin))};
  };
  if (rank_ != piece.root) copy_bytes(queue, {share_of(rank_, piece.root)});
  peers_.barrier().meet(rank_, queue, 1);
  std::vector<CopyRange> others;
  for (int step = 1; step < size_ && rank_ != piece.root; ++step) {
    const int peer = (rank_ + step) % size_;
    if (peer != piece.root) others.push_back(share_of(peer, peer));
  }
  copy_bytes(queue, others);
  peers_.barrier().meet(rank_, queue, 2);
}

bool PeerCollectives::reduce(cudaStream_t queue, const std::string& call,
                             const std::vector<Reduction>& all, const Between& between) {
  Peers::Addresses mine;
  for (const Reduction& of : all) mine.insert(mine.end(), {of.input, of.output});
  const PeerAddresses addresses = exchange(call, std::move(mine));
  if (addresses.empty()) return false;
  const auto sources = [&](std::size_t i) {
    Sources out;
    for (const Peers::Addresses& of : addresses)
      out.push_back({static_cast<const std::byte*>(of.at(2 * i)),
                     static_cast<const std::byte*>(of.at(2 * i + 1))});
    return out;
  };
  peers_.barrier().meet(rank_, queue, 0);
  for (std::size_t i = 0; i < all.size(); ++i) sum_own_slice(queue, all[i], sources(i));
  for (std::size_t i = 0; between && i < all.size(); ++i) {
    const Slice own = slice_of(all[i], rank_);
    if (own.elements > 0) between(i, all[i].output + own.begin * all[i].item(), own.elements);
  }
  peers_.barrier().meet(rank_, queue, 1);
  const auto is_scattered = [](const Reduction& of) {
    return of.op == CollectiveOp::reduce_scatter;
  };
  if (!std::ranges::all_of(all, is_scattered)) {
    for (std::size_t i = 0; i < all.size(); ++i) collect_slices(queue, all[i], sources(i));
    peers_.barrier().meet(rank_, queue, 2);
  }
  peers_.finish(rank_);
  return true;
}

PeerCollectives::Slice PeerCollectives::slice_of(const Reduction& of, int rank) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t place = static_cast<std::size_t>(rank);
  std::size_t share = (of.elements + ranks - 1) / ranks;
  if (of.op != CollectiveOp::reduce_scatter) share = (share + kGrain - 1) / kGrain * kGrain;
  const std::size_t begin = std::min(of.elements, place * share);
  return {begin, std::min(share, of.elements - begin)};
}

void PeerCollectives::sum_own_slice(cudaStream_t queue, const Reduction& of,
                                    const Sources& sources) {
  const Slice slice = slice_of(of, rank_);
  if (slice.elements == 0) return;
  const std::size_t begin = slice.begin * of.item();
  Inputs inputs;
  for (const Source& source : sources) inputs.push_back(source.input + begin);
  std::byte* const output = of.output + (of.op == CollectiveOp::reduce_scatter ? 0 : begin);
  if (slice.elements * of.item() < kCopiedBytesMin)
    sum(queue, of, slice.elements, output, inputs);
  else
    sum_by_copies(queue, of, slice.elements, output, std::move(inputs));
}

// As much at once as the staging takes.
void PeerCollectives::sum_by_copies(cudaStream_t queue, const Reduction& of, std::size_t elements,
                                    std::byte* output, Inputs inputs) {
  const std::size_t room = CopyStaging::kBytes / of.item() / (inputs.size() - 1) / kGrain * kGrain;
  while (elements > 0) {
    const std::size_t now = std::min(room, elements);
    const std::size_t bytes = now * of.item();
    sum(queue, of, now, output, stage(queue, inputs, bytes));
    for (const std::byte*& input : inputs) input += bytes;
    output += bytes;
    elements -= now;
  }
}

// Where the first bytes of every input are on this GPU. Each rank begins with another peer, so that
// no GPU is read by all at once.
PeerCollectives::Inputs PeerCollectives::stage(cudaStream_t queue, const Inputs& inputs,
                                               std::size_t bytes) {
  Inputs staged = inputs;
  std::byte* next = staging_.of(queue);
  std::vector<CopyRange> ranges;
  for (int step = 1; step < size_; ++step) {
    const auto peer = static_cast<std::size_t>((rank_ + step) % size_);
    ranges.push_back({next, inputs[peer], static_cast<std::int64_t>(bytes)});
    staged[peer] = next;
    next += (bytes + kGrain - 1) / kGrain * kGrain;
  }
  copy_bytes(queue, ranges);
  return staged;
}

void PeerCollectives::sum(cudaStream_t queue, const Reduction& of, std::size_t elements,
                          std::byte* output, const Inputs& inputs) {
  RankSum sum;
  std::ranges::copy(inputs, sum.inputs.begin());
  sum.output = output;
  sum.elements = static_cast<std::int64_t>(elements);
  sum.dtype = of.dtype;
  sum.reduce = of.reduce;
  sum.ranks = size_;
  ZP_CUDA(launch_rank_sum(queue, sum));
}

void PeerCollectives::collect_slices(cudaStream_t queue, const Reduction& of,
                                     const Sources& sources) {
  const bool is_wanted =
      of.op == CollectiveOp::all_reduce || (of.op == CollectiveOp::reduce && of.root == rank_);
  if (!is_wanted) return;
  std::vector<CopyRange> ranges;
  for (int step = 1; step < size_; ++step) {
    const int peer = (rank_ + step) % size_;
    const Slice slice = slice_of(of, peer);
    const std::size_t begin = slice.begin * of.item();
    if (slice.elements > 0)
      ranges.push_back({of.output + begin, sources[static_cast<std::size_t>(peer)].output + begin,
                        static_cast<std::int64_t>(slice.elements * of.item())});
  }
  copy_bytes(queue, ranges);
}

}  // namespace zeroproof::cuda
