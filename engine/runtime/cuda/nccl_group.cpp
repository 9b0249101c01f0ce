#include "engine/runtime/cuda/nccl_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/cuda_stream.h"
#include "engine/runtime/cuda/nccl_types.h"
#include "engine/runtime/host/rendezvous.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

using host::Collective;
using host::CollectiveOp;

// Gathers of less take as long by copies as by NCCL.
constexpr std::size_t kCopiedBytesMin = std::size_t{1} << 20;
// On several hosts: less is one round of NCCL's rather than three steps.
constexpr std::size_t kHostSumBytesMin = std::size_t{4} << 10;
constexpr int kNoRoot = -1;  // on this host
// Buckets that a backward fills, 25 to 50 MB, have the time of the next one. What is smaller is the
// rest at its end, what is larger one parameter: for those somebody waits.
constexpr std::size_t kFewLanesBytesMin = std::size_t{24} << 20;
constexpr std::size_t kFewLanesBytesMax = std::size_t{48} << 20;

bool is_reduction(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce ||
         op == CollectiveOp::reduce_scatter;
}

struct Message {
  const void* input;
  void* output;
  std::size_t count;
  ncclDataType_t type;
};

ncclResult_t launch(const Collective& of, const Message& m, ncclComm_t comm, cudaStream_t queue) {
  const ncclRedOp_t op = op_of(of.reduce);
  switch (of.op) {
    case CollectiveOp::all_reduce:
      return ncclAllReduce(m.input, m.output, m.count, m.type, op, comm, queue);
    case CollectiveOp::reduce:
      return ncclReduce(m.input, m.output, m.count, m.type, op, of.root, comm, queue);
    case CollectiveOp::reduce_scatter:
      return ncclReduceScatter(m.input, m.output, m.count, m.type, op, comm, queue);
    case CollectiveOp::all_gather:
      return ncclAllGather(m.input, m.output, m.count, m.type, comm, queue);
    case CollectiveOp::broadcast:
      return ncclBroadcast(m.input, m.output, m.count, m.type, of.root, comm, queue);
    case CollectiveOp::barrier:
      break;
  }
  return ncclInvalidArgument;
}

void* data_of(const Span& span, cudaStream_t queue) {
  if (span.is_empty()) return nullptr;
  DeviceBuffer* const buffer = buffer_of(*span.tensor);
  ZP_CHECK(buffer != nullptr, "a collective of elements that the host keeps");
  buffer->use_on(queue);
  return strided(span).data;
}

}  // namespace

NcclGroup::NcclGroup(host::GroupMembers members, std::shared_ptr<NcclClique> clique,
                     std::shared_ptr<Gpu> gpu, CopyStaging& staging, CudaCollectives collectives,
                     host::StreamLog& log)
    : CollectiveGroup(std::move(members), log),
      clique_(std::move(clique)),
      gpu_(std::move(gpu)),
      collectives_(collectives),
      signal_(gpu_, static_cast<std::int64_t>(sizeof(float)), Placement::device) {
  ZP_CHECK(size() == 1 || clique_ != nullptr, "a group of several ranks without NCCL");
  ZP_CUDA(cudaStreamSynchronize(gpu_->compute()));
  if (clique_ == nullptr) return;
  const WhileWaiting while_waiting = [this](std::int64_t waited_ms) {
    throw_if_failed();
    if (gpu_->while_waiting) gpu_->while_waiting(waited_ms);
  };
  if (Peers* const peers = clique_->peers())
    peers_.emplace(rank(), size(), *peers, *gpu_, staging, while_waiting);
  if (NcclClique::Hosts* const hosts = clique_->hosts())
    local_.emplace(hosts->own.rank, hosts->local_size, *hosts->local, *gpu_, staging,
                   while_waiting);
}

Work NcclGroup::issue(Stream& stream, const Collective& collective) {
  check_and_note(stream, collective);
  throw_if_failed();
  gpu_->make_current();
  const bool is_batched =
      is_batching_ && size() > 1 && !is_left_out_ &&
      (collective.op == CollectiveOp::reduce || collective.op == CollectiveOp::broadcast);
  issued_.forget([this](StreamEvent of) { return gpu_->is_recycled(of); });
  if (is_batched) {
    put_in_batch(stream, collective);
    return {issued_.add(collective)};
  }
  const cudaStream_t queue = native(stream);
  // Known before it runs: ranks that wait for each other in there name it.
  const std::int64_t number = issued_.add(collective);
  if (size() == 1)
    run_alone(queue, collective);
  else if (is_left_out_)
    fake_collective(queue, collective);
  else
    run(queue, collective);
  const StreamEvent done = stream.record();
  issued_.complete(number, done);
  note_completion(done);
  return {number};
}

// NCCL takes an input that is its place in the output, or shares no byte with it.
void NcclGroup::run(cudaStream_t queue, const Collective& of) {
  if (of.op == CollectiveOp::barrier) return meet(queue);
  const bool is_gathered =
      of.op == CollectiveOp::all_gather && is_copied(static_cast<std::size_t>(of.input.bytes()));
  if (is_gathered && gather_by_copies(queue, of)) return;
  const bool is_reduced = is_summed(of.op, static_cast<std::size_t>(of.input.bytes()));
  if (is_reduced && reduce_by_copies(queue, of)) return;
  const void* const input = data_of(of.input, queue);
  void* const output = data_of(of.output, queue);
  const auto count = static_cast<std::size_t>(std::min(of.input.elements, of.output.elements));
  if (count == 0) return;
  const NcclChannels lanes = lanes_for(queue, of.op, static_cast<std::size_t>(of.input.bytes()));
  order_communicators(queue, lanes);
  const Watchdog::Wait wait(gpu_->watchdog, "a call of NCCL");
  clique_->call(rank(), lanes, [&](ncclComm_t comm) {
    return launch(of, {input, output, count, type_of(of.input.dtype())}, comm, queue);
  });
}

// No rank goes on on this queue before all are here.
void NcclGroup::meet(cudaStream_t queue) {
  if (peers_) return peers_->barrier(queue);
  order_communicators(queue, NcclChannels::all);
  const Watchdog::Wait wait(gpu_->watchdog, "a call of NCCL");
  clique_->call(rank(), NcclChannels::all, [&](ncclComm_t comm) {
    return ncclAllReduce(signal_.data(), signal_.data(), 1, ncclFloat32, ncclSum, comm, queue);
  });
}

NcclChannels NcclGroup::lanes_for(cudaStream_t queue, CollectiveOp op, std::size_t bytes) const {
  const bool is_beside = queue != gpu_->compute_handle() && is_reduction(op);
  const bool is_middling = bytes >= kFewLanesBytesMin && bytes <= kFewLanesBytesMax;
  return is_beside && is_middling ? NcclChannels::limited : NcclChannels::all;
}

// NCCL runs what one communicator is asked for in that order, on whatever streams; kernels of two
// communicators on two streams start in any order, another one on each GPU, and may take each
// other's multiprocessors while they wait for their peers. All ranks issue in one order, so each
// change of the communicator waits for what was issued before it.
void NcclGroup::order_communicators(cudaStream_t queue, NcclChannels lanes) {
  if (lanes != last_lanes_ && !last_of_nccl_.is_none()) gpu_->wait(queue, last_of_nccl_);
  last_lanes_ = lanes;
  has_called_nccl_ = true;
}

void NcclGroup::note_completion(StreamEvent event) {
  if (std::exchange(has_called_nccl_, false)) last_of_nccl_ = event;
}

bool NcclGroup::is_copied(std::size_t bytes) const {
  return peers_ && bytes >= kCopiedBytesMin;
}

bool NcclGroup::is_summed_by_copies(CollectiveOp op) const {
  return peers_ && collectives_ == CudaCollectives::copies && is_reduction(op) &&
         PeerCollectives::can_sum(size());
}

bool NcclGroup::gather_by_copies(cudaStream_t queue, const Collective& of) {
  const auto* const input = static_cast<const std::byte*>(data_of(of.input, queue));
  auto* const output = static_cast<std::byte*>(data_of(of.output, queue));
  const auto bytes = static_cast<std::size_t>(of.input.bytes());
  std::vector<PeerCollectives::Piece> pieces;
  for (int root = 0; root < size(); ++root)
    pieces.push_back({root, input, output + static_cast<std::size_t>(root) * bytes, bytes});
  return peers_->copy(queue, host::description(of), pieces);
}

bool NcclGroup::reduce_by_copies(cudaStream_t queue, const Collective& of) {
  const auto* const input = static_cast<const std::byte*>(data_of(of.input, queue));
  auto* const output = static_cast<std::byte*>(data_of(of.output, queue));
  if (of.input.is_empty()) return true;
  const PeerCollectives::Reduction reduction{of.op,
                                             of.reduce,
                                             of.input.dtype(),
                                             of.root,
                                             input,
                                             output,
                                             static_cast<std::size_t>(of.input.elements)};
  return run_reductions(queue, host::description(of), {reduction});
}

bool NcclGroup::is_summed(CollectiveOp op, std::size_t bytes) const {
  return is_summed_by_copies(op) || is_summed_on_hosts(op, bytes);
}

bool NcclGroup::run_reductions(cudaStream_t queue, const std::string& call,
                               std::vector<PeerCollectives::Reduction> all) {
  if (peers_) return peers_->reduce(queue, call, all);
  return reduce_on_hosts(queue, call, std::move(all));
}

bool NcclGroup::is_summed_on_hosts(CollectiveOp op, std::size_t bytes) const {
  return local_ && collectives_ == CudaCollectives::copies && bytes >= kHostSumBytesMin &&
         (op == CollectiveOp::all_reduce || op == CollectiveOp::reduce) &&
         PeerCollectives::can_sum(clique_->hosts()->local_size);
}

// Each rank sums its slice of what its host has, then of all hosts with the ranks of its number.
bool NcclGroup::reduce_on_hosts(cudaStream_t queue, const std::string& call,
                                std::vector<PeerCollectives::Reduction> all) {
  const NcclClique::Hosts& hosts = *clique_->hosts();
  const int host = hosts.own.host;
  std::vector<int> root_hosts;
  for (PeerCollectives::Reduction& of : all) {
    const NcclClique::Hosts::Place root = hosts.places[static_cast<std::size_t>(of.root)];
    root_hosts.push_back(root.host);
    of.root = root.host == host ? root.rank : kNoRoot;
  }
  order_communicators(queue, NcclChannels::between);
  const auto between = [&](std::size_t i, std::byte* data, std::size_t elements) {
    const PeerCollectives::Reduction& of = all[i];
    const Watchdog::Wait wait(gpu_->watchdog, "a call of NCCL");
    hosts.between->call(host, NcclChannels::all, [&](ncclComm_t comm) {
      const ncclDataType_t type = type_of(of.dtype);
      const ncclRedOp_t op = op_of(of.reduce);
      return of.op == CollectiveOp::all_reduce
                 ? ncclAllReduce(data, data, elements, type, op, comm, queue)
                 : ncclReduce(data, data, elements, type, op, root_hosts[i], comm, queue);
    });
  };
  return local_->reduce(queue, call, all, between);
}

void NcclGroup::put_in_batch(Stream& stream, const Collective& of) {
  ZP_CHECK(batch_.empty() || batch_stream_ == &stream, "a batch of collectives on two streams");
  if (batch_.empty()) batch_begin_ = issued_.size();
  batch_stream_ = &stream;
  auto* const data = static_cast<std::byte*>(data_of(of.output, native(stream)));
  const auto count = static_cast<std::size_t>(of.input.elements);
  const auto item = static_cast<std::size_t>(item_bytes(of.input.dtype()));
  if (!batch_.empty()) {
    Batched& last = batch_.back();
    const bool is_behind = last.data + last.count * item == data;
    if (is_behind && last.op == of.op && last.root == of.root && last.dtype == of.input.dtype() &&
        last.reduce == of.reduce) {
      last.count += count;
      return;
    }
  }
  batch_.push_back({of.op, data, count, of.input.dtype(), of.reduce, of.root});
}

// Before the group's end NCCL has queued no work, so that the completion of all comes after it.
void NcclGroup::end_batch() {
  is_batching_ = false;
  if (batch_.empty()) return;
  const std::vector<Batched> batch = std::exchange(batch_, {});
  run_batch(native(*batch_stream_), batch);
  const StreamEvent done = batch_stream_->record();
  issued_.complete(batch_begin_, done);
  note_completion(done);
}

void NcclGroup::run_batch(cudaStream_t queue, const std::vector<Batched>& batch) {
  std::size_t bytes = 0;
  std::vector<PeerCollectives::Piece> pieces;
  std::vector<PeerCollectives::Reduction> reductions;
  std::string call = "together";
  for (const Batched& of : batch) {
    bytes += of.bytes();
    call += fmt::format(" {}({}) of {}", host::collective_name(of.op), of.root, of.count);
    if (of.op == CollectiveOp::broadcast)
      pieces.push_back({of.root, of.data, of.data, of.bytes()});
    else
      reductions.push_back({of.op, of.reduce, of.dtype, of.root, of.data, of.data, of.count});
  }
  const bool is_broadcast = pieces.size() == batch.size() && is_copied(bytes / batch.size());
  if (is_broadcast && peers_->copy(queue, call, pieces)) return;
  const bool is_reduced =
      reductions.size() == batch.size() && is_summed(CollectiveOp::reduce, bytes);
  if (is_reduced && run_reductions(queue, call, std::move(reductions))) return;
  run_nccl_batch(queue, batch, bytes);
}

void NcclGroup::run_nccl_batch(cudaStream_t queue, const std::vector<Batched>& batch,
                               std::size_t bytes) {
  const NcclChannels lanes = lanes_for(queue, batch.front().op, bytes);
  order_communicators(queue, lanes);
  const Watchdog::Wait wait(gpu_->watchdog, "a call of NCCL");
  clique_->call(rank(), lanes, [&](ncclComm_t comm) {
    ncclResult_t result = ncclGroupStart();
    for (const Batched& of : batch) {
      if (result != ncclSuccess) break;
      const ncclDataType_t type = type_of(of.dtype);
      result = of.op == CollectiveOp::broadcast
                   ? ncclBroadcast(of.data, of.data, of.count, type, of.root, comm, queue)
                   : ncclReduce(of.data, of.data, of.count, type, op_of(of.reduce), of.root, comm,
                                queue);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
  });
}

void NcclGroup::run_alone(cudaStream_t queue, const Collective& of) {
  if (of.op == CollectiveOp::barrier || of.input.is_empty()) return;
  const void* const input = data_of(of.input, queue);
  void* const output = data_of(of.output, queue);
  if (input == output) return;
  ZP_CUDA(cudaMemcpyAsync(output, input, static_cast<std::size_t>(of.input.bytes()),
                          cudaMemcpyDeviceToDevice, queue));
}

// So that what follows has numbers of the right size.
void NcclGroup::fake_collective(cudaStream_t queue, const Collective& of) {
  const bool is_gather = of.op == CollectiveOp::all_gather;
  if (!is_gather && of.op != CollectiveOp::reduce_scatter) return;
  const std::int64_t bytes = std::min(of.input.bytes(), of.output.bytes());
  if (bytes == 0) return;
  const auto* const input = static_cast<const std::byte*>(data_of(of.input, queue));
  auto* const output = static_cast<std::byte*>(data_of(of.output, queue));
  for (int part = 0; part < (is_gather ? size() : 1); ++part) {
    std::byte* const to = output + (is_gather ? part * bytes : 0);
    const std::byte* const from = input + (is_gather ? 0 : rank() * bytes);
    if (from != to)
      ZP_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                              queue));
  }
}

StreamEvent NcclGroup::completion(Work work) const {
  const auto of = issued_.find(work.sequence);
  return of ? of->completion : StreamEvent{};
}

void NcclGroup::wait(Work work, Stream& stream) {
  throw_if_failed();
  if (work.sequence < 0) return;
  if (const StreamEvent of = completion(work); !of.is_none()) stream.wait(of);
}

bool NcclGroup::is_completed(Work work) {
  throw_if_failed();
  const StreamEvent of = completion(work);
  return of.is_none() || gpu_->query(of);
}

std::optional<std::string> NcclGroup::pending() {
  issued_.forget([this](StreamEvent of) { return gpu_->query(of); });
  return oldest_known();
}

std::optional<std::string> NcclGroup::oldest_known() const {
  const auto oldest = issued_.oldest();
  if (!oldest) return std::nullopt;
  const auto& [number, of] = *oldest;
  std::string text = fmt::format("{} group [{}], collective {}: {} of {} {}",
                                 host::group_name(kind()), fmt::join(ranks(), ", "), number,
                                 host::collective_name(of.op), of.elements, dtype_name(of.dtype));
  if (!peers_) return text;
  std::vector<int> absent = clique_->peers()->barrier().absent();
  for (int& rank : absent) rank = ranks()[static_cast<std::size_t>(rank)];
  if (!absent.empty())
    text += fmt::format("; the GPU of rank {} has not come to it", fmt::join(absent, ", "));
  return text;
}

void NcclGroup::abort(const std::string& reason) {
  if (clique_) clique_->abort(reason);
}

std::optional<std::string> NcclGroup::failure() {
  return clique_ ? clique_->failure(rank()) : std::nullopt;
}

void NcclGroup::throw_if_failed() {
  const std::optional<std::string> text = failure();
  if (!text) return;
  notice(*text);
  if (clique_->is_aborted()) throw host::GroupAborted(*text);
  throw RuntimeFault(*text);
}

}  // namespace zeroproof::cuda
