#include "engine/runtime/cuda/nccl_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/cuda_stream.h"
#include "engine/runtime/host/rendezvous.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

using host::Collective;
using host::CollectiveOp;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return ncclFloat64;
    case DType::float32:
      return ncclFloat32;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float16:
      return ncclFloat16;
  }
  return ncclFloat64;
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::avg:
      return ncclAvg;
    case ReduceOp::max:
      return ncclMax;
  }
  return ncclSum;
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
                     std::shared_ptr<Gpu> gpu, host::StreamLog& log)
    : CollectiveGroup(std::move(members), log),
      clique_(std::move(clique)),
      gpu_(std::move(gpu)),
      signal_(gpu_, static_cast<std::int64_t>(sizeof(float)), Placement::device) {
  ZP_CHECK(size() == 1 || clique_ != nullptr, "a group of several ranks without NCCL");
  ZP_CUDA(cudaStreamSynchronize(gpu_->compute()));
}

Work NcclGroup::issue(Stream& stream, const Collective& collective) {
  check_and_note(stream, collective);
  throw_if_failed();
  gpu_->make_current();
  const bool is_batched = is_batching_ && size() > 1 && collective.op == CollectiveOp::reduce;
  if (is_batched) {
    if (!is_left_out_) put_in_batch(stream, collective);
    issued_.push_back({collective.op, collective.input.dtype(), collective.input.elements, {}});
    return {static_cast<std::int64_t>(issued_.size()) - 1};
  }
  const cudaStream_t queue = native(stream);
  if (size() == 1)
    run_alone(queue, collective);
  else if (is_left_out_)
    stand_in(queue, collective);
  else
    run(queue, collective);
  const bool has_data = collective.op != CollectiveOp::barrier;
  issued_.push_back({collective.op, has_data ? collective.input.dtype() : DType::float32,
                     collective.input.elements, stream.record()});
  return {static_cast<std::int64_t>(issued_.size()) - 1};
}

// NCCL takes an input that is its place in the output, or shares nothing with it.
void NcclGroup::run(cudaStream_t queue, const Collective& of) {
  if (of.op == CollectiveOp::barrier) {
    clique_->call(rank(), [&](ncclComm_t comm) {
      return ncclAllReduce(signal_.data(), signal_.data(), 1, ncclFloat32, ncclSum, comm, queue);
    });
    return;
  }
  const void* const input = data_of(of.input, queue);
  void* const output = data_of(of.output, queue);
  const auto count = static_cast<std::size_t>(std::min(of.input.elements, of.output.elements));
  if (count == 0) return;
  clique_->call(rank(), [&](ncclComm_t comm) {
    return launch(of, {input, output, count, type_of(of.input.dtype())}, comm, queue);
  });
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
    if (is_behind && last.root == of.root && last.dtype == of.input.dtype() &&
        last.reduce == of.reduce) {
      last.count += count;
      return;
    }
  }
  batch_.push_back({data, count, of.input.dtype(), of.reduce, of.root});
}

// Before the group's end NCCL has queued nothing, so that the completion of all is behind it.
void NcclGroup::end_batch() {
  is_batching_ = false;
  if (batch_.empty()) return;
  const std::vector<Batched> batch = std::exchange(batch_, {});
  const cudaStream_t queue = native(*batch_stream_);
  clique_->call(rank(), [&](ncclComm_t comm) {
    ncclResult_t result = ncclGroupStart();
    for (const Batched& of : batch)
      if (result == ncclSuccess)
        result = ncclReduce(of.data, of.data, of.count, type_of(of.dtype), op_of(of.reduce),
                            of.root, comm, queue);
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
  });
  const StreamEvent completion = batch_stream_->record();
  for (std::size_t i = batch_begin_; i < issued_.size(); ++i) issued_[i].completion = completion;
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
void NcclGroup::stand_in(cudaStream_t queue, const Collective& of) {
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
  ZP_CHECK(std::cmp_less(work.sequence, issued_.size()), "a work that the group did not issue");
  return issued_[static_cast<std::size_t>(work.sequence)].completion;
}

void NcclGroup::wait(Work work, Stream& stream) {
  throw_if_failed();
  if (work.sequence >= 0) stream.wait(completion(work));
}

bool NcclGroup::is_completed(Work work) {
  throw_if_failed();
  return gpu_->query(completion(work));
}

std::optional<std::string> NcclGroup::pending() {
  while (oldest_ < issued_.size() && gpu_->query(issued_[oldest_].completion)) ++oldest_;
  if (oldest_ == issued_.size()) return std::nullopt;
  const Issued& of = issued_[oldest_];
  return fmt::format("{} group [{}], collective {}: {} of {} {}", host::group_name(kind()),
                     fmt::join(ranks(), ", "), oldest_, host::collective_name(of.op), of.elements,
                     dtype_name(of.dtype));
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
