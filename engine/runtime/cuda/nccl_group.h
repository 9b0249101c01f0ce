#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/cuda/nccl_clique.h"
#include "engine/runtime/cuda/peer_collectives.h"
#include "engine/runtime/host/collective_group.h"
#include "engine/runtime/host/issued_collectives.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"

namespace zeroproof::cuda {

// One rank's end of a group whose collectives NCCL does, or between GPUs that reach each other's
// memory copies. Sums by copies have the bits of the host runtime; NCCL's have them of exact data,
// and of other data within rounding. `log` and `staging` must outlive it.
class NcclGroup final : public host::CollectiveGroup {
 public:
  // Without a clique for a group of one rank.
  NcclGroup(host::GroupMembers members, std::shared_ptr<NcclClique> clique,
            std::shared_ptr<Gpu> gpu, CopyStaging& staging, CudaCollectives collectives,
            host::StreamLog& log);
  ~NcclGroup() override = default;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  bool compares_contents() const override { return false; }
  void announce(std::span<const ContentPart>) override {}
  // Reductions and broadcasts: what is contiguous and has one root is one, and all are
  // one launch.
  void begin_batch() override { is_batching_ = true; }
  void end_batch() override;
  // From now on no data is sent: the rank's own part stands in for what others would send.
  void set_communication_disabled() { is_left_out_ = true; }
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string& reason) override;
  std::optional<std::string> failure() override;
  // The oldest collective that has not completed, with its number; none: all have.
  std::optional<std::string> pending();
  // The same as far as somebody has looked, from any thread: it may have completed meanwhile.
  std::optional<std::string> oldest_known() const;
  void throw_if_failed();

 private:
  // A reduction or a broadcast of a batch, in place.
  struct Batched {
    host::CollectiveOp op;
    std::byte* data;
    std::size_t count;
    DType dtype;
    ReduceOp reduce;
    int root;
    std::size_t bytes() const { return count * static_cast<std::size_t>(item_bytes(dtype)); }
  };

  Work issue(Stream& stream, const host::Collective& collective) override;
  void put_in_batch(Stream& stream, const host::Collective& of);
  void run(cudaStream_t queue, const host::Collective& of);
  void run_batch(cudaStream_t queue, const std::vector<Batched>& batch);
  void run_nccl_batch(cudaStream_t queue, const std::vector<Batched>& batch, std::size_t bytes);
  bool is_copied(std::size_t bytes) const;
  bool is_summed_by_copies(host::CollectiveOp op) const;
  void meet(cudaStream_t queue);
  // False: see PeerCollectives::copy().
  bool gather_by_copies(cudaStream_t queue, const host::Collective& of);
  bool reduce_by_copies(cudaStream_t queue, const host::Collective& of);
  bool is_summed_on_hosts(host::CollectiveOp op, std::size_t bytes) const;
  // One way or the other: by copies between all ranks, or on several hosts.
  bool is_summed(host::CollectiveOp op, std::size_t bytes) const;
  bool run_reductions(cudaStream_t queue, const std::string& call,
                      std::vector<PeerCollectives::Reduction> all);
  bool reduce_on_hosts(cudaStream_t queue, const std::string& call,
                       std::vector<PeerCollectives::Reduction> all);
  NcclChannels lanes_for(cudaStream_t queue, host::CollectiveOp op, std::size_t bytes) const;
  void order_communicators(cudaStream_t queue, NcclChannels lanes);
  void note_completion(StreamEvent event);
  void run_alone(cudaStream_t queue, const host::Collective& of);
  void fake_collective(cudaStream_t queue, const host::Collective& of);

  StreamEvent completion(Work work) const;  // none: it has completed

  std::shared_ptr<NcclClique> clique_;
  std::shared_ptr<Gpu> gpu_;
  CudaCollectives collectives_;
  std::optional<PeerCollectives> peers_;  // none: no peer access
  std::optional<PeerCollectives> local_;  // of this host's ranks, where the group has several
  DeviceBuffer signal_;                   // of barriers by NCCL
  host::IssuedCollectives issued_;
  bool is_left_out_ = false;
  bool is_batching_ = false;
  Stream* batch_stream_ = nullptr;
  std::vector<Batched> batch_;
  std::int64_t batch_begin_ = 0;  // the first of issued_ in it
  // What NCCL was asked for last, and its completion.
  NcclChannels last_lanes_ = NcclChannels::all;
  StreamEvent last_of_nccl_;
  bool has_called_nccl_ = false;  // and its completion is not recorded yet
};

}  // namespace zeroproof::cuda
