#include "engine/runtime/cuda/host_peers.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/process/byte_strings.h"
#include "engine/runtime/process_board.h"
#include "model/number_in.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::cuda {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kFirstSegment = 1;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The flags of a group's barrier come after its board.
std::size_t board_bytes(std::size_t ranks) {
  return whole_pages(ProcessBoard::bytes_of(static_cast<int>(ranks)));
}

std::size_t flag_bytes(std::size_t ranks) {
  return whole_pages(PeerBarrier::flag_count(ranks) * sizeof(std::uint32_t));
}

PeerBarrier::Flags flags_in(const std::shared_ptr<SharedRegion>& region, std::size_t ranks) {
  std::byte* const begin = region->data() + board_bytes(ranks);
  ZP_CUDA(cudaHostRegister(begin, flag_bytes(ranks),
                           cudaHostRegisterPortable | cudaHostRegisterMapped));
  return {reinterpret_cast<std::uint32_t*>(begin),
          [region](std::uint32_t* flags) { cudaHostUnregister(flags); }};
}

// Memory that a peer has mapped is never freed before the end, so no rank waits for readers.
class ProcessPeers final : public Peers {
 public:
  using Others = std::vector<std::shared_ptr<PeerSegments>>;

  ProcessPeers(int rank, std::vector<std::shared_ptr<Gpu>> gpus,
               const std::shared_ptr<SharedRegion>& region, Others others)
      : rank_(rank),
        own_(gpus[static_cast<std::size_t>(rank)]->pool().segments()),
        others_(std::move(others)),
        board_(region, rank, static_cast<int>(gpus.size())),
        barrier_(gpus, flags_in(region, gpus.size())) {}

  std::vector<Addresses> exchange(int, const std::string& call, Addresses mine,
                                  const WhileWaiting& while_waiting) override {
    ProcessBoard::Addresses shared;
    for (const void* const data : mine) shared.push_back(own_->address_of(data));
    const auto all = board_.exchange(call, shared, while_waiting);
    const auto is_unshared = [](const SharedAddress& of) {
      return of.segment == SharedAddress::kUnshared;
    };
    for (const ProcessBoard::Addresses& of : all)
      if (std::ranges::any_of(of, is_unshared)) return {};
    std::vector<Addresses> out(all.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (std::cmp_equal(rank, rank_)) continue;
      for (const SharedAddress& of : all[rank]) out[rank].push_back(others_[rank]->pointer(of));
    }
    out[static_cast<std::size_t>(rank_)] = std::move(mine);
    return out;
  }
  void finish(int) override {}
  void wait_for_others(int, const WhileWaiting&) override {}
  PeerBarrier& barrier() override { return barrier_; }

 private:
  int rank_;
  std::shared_ptr<SharedSegments> own_;
  Others others_;  // by rank of the group
  ProcessBoard board_;
  PeerBarrier barrier_;
};

}  // namespace

std::string host_name() {
  if (const char* const given = std::getenv("NCCL_HOSTID")) return given;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

// What a process shows the others: where its segments are, and what it wrote into the first.
struct HostPeers::Greeting {
  std::string place;  // empty: it shares no memory
  std::uint64_t offset = 0;
  std::uint64_t token = 0;

  std::string text(const std::string& host) const {
    return pack({place, std::to_string(offset), std::to_string(token), host});
  }
  // None: of another host, of a process that shares no memory, or damaged.
  static std::optional<Greeting> parse(const std::string& text, const std::string& host) {
    const auto of = unpack(text);
    if (!of || of->size() != 4 || of->front().empty() || of->back() != host) return std::nullopt;
    const auto offset = number_in<std::uint64_t>(of->at(1));
    const auto token = number_in<std::uint64_t>(of->at(2));
    if (!offset || !token) return std::nullopt;
    return Greeting{.place = of->front(), .offset = *offset, .token = *token};
  }
};

HostPeers::HostPeers(Job& job, int ordinal)
    : ordinal_(ordinal),
      segments_(std::make_shared<SharedSegments>(ordinal)),
      others_(static_cast<std::size_t>(job.size())) {
  const Greeting mine = greet();
  const std::string host = host_name();
  const auto greetings = job.all_gather(mine.text(host));
  std::string reached;
  for (int rank = 0; rank < job.size(); ++rank) {
    const auto of = Greeting::parse(greetings[static_cast<std::size_t>(rank)], host);
    const bool is_reached =
        !mine.place.empty() && of && (rank == job.rank() || can_reach(rank, *of));
    reached += is_reached ? '1' : '0';
  }
  reaches_ = job.all_gather(reached);
  for (std::string& of : reaches_) of.resize(reached.size(), '0');  // a damaged one reaches none
  for (int rank = 0; rank < job.size(); ++rank)
    if (rank != job.rank() && reach_each_other({rank, job.rank()}))
      has_peers_ = true;
    else
      others_[static_cast<std::size_t>(rank)] = nullptr;
}

bool HostPeers::reach_each_other(const std::vector<int>& ranks) const {
  return std::ranges::all_of(ranks, [&](int from) {
    const std::string& reached = reaches_[static_cast<std::size_t>(from)];
    return std::ranges::all_of(
        ranks, [&](int to) { return reached.at(static_cast<std::size_t>(to)) == '1'; });
  });
}

std::vector<std::vector<int>> HostPeers::hosts_of(const std::vector<int>& ranks) const {
  std::vector<std::vector<int>> hosts;
  for (const int rank : ranks) {
    const auto own = std::ranges::find_if(hosts, [&](std::vector<int> host) {
      host.push_back(rank);
      return reach_each_other(host);
    });
    if (own == hosts.end())
      hosts.push_back({rank});
    else
      own->push_back(rank);
  }
  return hosts;
}

// The token is no other process's, nor an earlier one's.
HostPeers::Greeting HostPeers::greet() {
  try {
    ZP_CUDA(cudaSetDevice(ordinal_));
    if (!PeerBarrier::is_available()) return {};
    constexpr std::size_t kSomeRanks = 2;
    flags_in(make_region(kSomeRanks), kSomeRanks);
    Greeting mine{.place = segments_->place()};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    mine.token = (static_cast<std::uint64_t>(now) << 16U) ^ static_cast<std::uint64_t>(::getpid());
    void* const place = segments_->take(sizeof mine.token, [](StreamEvent) {});
    if (place == nullptr) return {};
    ZP_CUDA(cudaMemcpy(place, &mine.token, sizeof mine.token, cudaMemcpyHostToDevice));
    const SharedAddress address = segments_->address_of(place);
    mine.offset = address.offset;
    return address.segment == kFirstSegment ? mine : Greeting{};
  } catch (const RuntimeFault&) {
    cudaGetLastError();
    return {};
  }
}

bool HostPeers::can_reach(int rank, const Greeting& of) {
  try {
    auto segments = std::make_shared<PeerSegments>(of.place, ordinal_);
    std::uint64_t token = 0;
    ZP_CUDA(cudaMemcpy(&token, segments->pointer({kFirstSegment, of.offset}), sizeof token,
                       cudaMemcpyDeviceToHost));
    others_[static_cast<std::size_t>(rank)] = std::move(segments);
    return token == of.token;
  } catch (const RuntimeFault&) {
    cudaGetLastError();
    return false;
  }
}

std::shared_ptr<SharedRegion> HostPeers::make_region(std::size_t ranks) {
  return std::make_shared<SharedRegion>(board_bytes(ranks) + flag_bytes(ranks));
}

std::shared_ptr<SharedRegion> HostPeers::open_region(const std::string& place, std::size_t ranks) {
  return std::make_shared<SharedRegion>(place, board_bytes(ranks) + flag_bytes(ranks));
}

std::unique_ptr<Peers> HostPeers::peers(const std::vector<int>& ranks, int rank,
                                        std::shared_ptr<Gpu> gpu,
                                        const std::shared_ptr<SharedRegion>& region) const {
  std::vector<std::shared_ptr<Gpu>> gpus(ranks.size());
  gpus[static_cast<std::size_t>(rank)] = std::move(gpu);
  ProcessPeers::Others others;
  for (const int of : ranks) others.push_back(others_[static_cast<std::size_t>(of)]);
  return std::make_unique<ProcessPeers>(rank, std::move(gpus), region, std::move(others));
}

}  // namespace zeroproof::cuda
