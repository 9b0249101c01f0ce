#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/runtime/cuda/copy_staging.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/cuda/peers.h"
#include "engine/runtime/host/collective.h"

namespace zeroproof::cuda {

// One rank's end of collectives that read the peers' memory: by the GPUs' copy engines, which take
// no multiprocessor, or where little is moved by one kernel. Sums are made in rank order, by one
// kernel of the rank that owns the slice, with the bits of the host runtime.
class PeerCollectives {
 public:
  // Of ranks that reduce together; more leave sums to NCCL.
  static bool can_sum(int ranks);

  // All must outlive it.
  PeerCollectives(int rank, int size, Peers& peers, Gpu& gpu, CopyStaging& staging,
                  WhileWaiting while_waiting);
  ~PeerCollectives();
  PeerCollectives(const PeerCollectives&) = delete;
  PeerCollectives& operator=(const PeerCollectives&) = delete;

  void barrier(cudaStream_t queue);

  // What one rank has, on its way to all.
  struct Piece {
    int root;
    const std::byte* from;  // on the root
    std::byte* to;
    std::size_t bytes;
  };
  // False, on every rank alike and before work is queued: some rank's memory cannot be reached.
  bool copy(cudaStream_t queue, const std::string& call, const std::vector<Piece>& pieces);

  // In place but for reduce_scatter, whose output may be the own slice of its input.
  struct Reduction {
    host::CollectiveOp op;
    ReduceOp reduce;
    DType dtype;
    int root;
    const std::byte* input;
    std::byte* output;
    std::size_t elements;  // of the input
    std::size_t item() const { return static_cast<std::size_t>(item_bytes(dtype)); }
  };
  // Each rank sums a slice; a rank that wants the others then copies them. False as of copy().
  // `between` adds to the sums of a slice what others than these ranks have, before that.
  using Between = std::function<void(std::size_t of, std::byte* data, std::size_t elements)>;
  bool reduce(cudaStream_t queue, const std::string& call, const std::vector<Reduction>& all,
              const Between& between = nullptr);

 private:
  using PeerAddresses = std::vector<Peers::Addresses>;
  struct Slice {
    std::size_t begin;
    std::size_t elements;
  };
  struct Source {  // of a reduction, by rank
    const std::byte* input;
    const std::byte* output;
  };
  using Sources = std::vector<Source>;

  PeerAddresses exchange(const std::string& call, Peers::Addresses mine);
  bool is_spread(const std::vector<Piece>& pieces) const;
  void copy_pieces(cudaStream_t queue, const std::vector<Piece>& pieces, const PeerAddresses& all);
  void spread(cudaStream_t queue, const Piece& piece, const PeerAddresses& all);
  void copy_bytes(cudaStream_t queue, std::vector<CopyRange> ranges) const;
  Slice slice_of(const Reduction& of, int rank) const;
  using Inputs = std::vector<const std::byte*>;  // of one slice, by rank
  void sum_own_slice(cudaStream_t queue, const Reduction& of, const Sources& sources);
  void sum_by_copies(cudaStream_t queue, const Reduction& of, std::size_t elements,
                     std::byte* output, Inputs inputs);
  Inputs stage(cudaStream_t queue, const Inputs& inputs, std::size_t bytes);
  void sum(cudaStream_t queue, const Reduction& of, std::size_t elements, std::byte* output,
           const Inputs& inputs);
  void collect_slices(cudaStream_t queue, const Reduction& of, const Sources& sources);

  int rank_;
  int size_;
  Peers& peers_;
  Gpu& gpu_;
  CopyStaging& staging_;
  WhileWaiting while_waiting_;
};

}  // namespace zeroproof::cuda
