#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "zeroproof/internal/engine/runtime/access.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// P46, P47 and P48 over the accesses of one rank: two accesses of the same elements on different
// streams, one of them a write, must be ordered by waits, whatever order they ran in this time.
// Vector clocks: a stream knows what it waited for, and what the host knew when it queued the
// work. A stream of id none is the host itself. Views share their storage, and that is what is
// used and freed, by its owner's own word (on_free); memory of the model, which no Memory gave
// out, was freed where it is noticed, before the next call.
// Not thread-safe. Memory is bounded by the live storages and the distinct parts that are used.
class StreamOrderCheck final : public AccessObserver {
 public:
  // `home`: whose pool all memory comes from and goes back to.
  explicit StreamOrderCheck(StreamId home = StreamId{0}) : home_(home) {}

  // How findings call a tensor ("ipg buffer 0"); else "a tensor". Until it is freed.
  void name(const TensorImpl& tensor, std::string name) {
    memory_of(tensor).name = std::move(name);
  }

  void on_access(const Access& access) override;
  void on_record(StreamId stream, StreamEvent event) override;
  void on_wait(StreamId stream, StreamEvent event) override;
  void on_host_wait(StreamEvent event) override;
  void on_record_use(StreamId stream, const TensorImpl& tensor) override;
  void on_free(const Storage& storage) override;

  // Everything is over: memory that went since the last call was freed. Call once, or never.
  void finish() { find_freed(); }

  // P46, P47, P48, in this order. A finding's `lc` is the number of the access, from 1.
  std::vector<Verdict> verdicts() const;

 private:
  using Clock = std::vector<std::int64_t>;  // by actor: 0 the host, then the streams
  struct Use {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::size_t actor = 0;
    std::int64_t epoch = 0;  // of the actor's own clock
    std::uint64_t number = 0;
    bool is_write = false;
  };
  struct Memory {
    std::weak_ptr<const Storage> storage;  // its address is not used again while this is here
    const Storage* address = nullptr;
    std::string name;
    std::vector<Use> uses;
    std::set<std::size_t> recorded;  // actors
  };

  static std::size_t actor_of(StreamId stream);
  Clock& clock_of(std::size_t actor);
  void advance(std::size_t actor);
  static bool is_ordered(const Use& use, std::size_t actor, const Clock& clock);
  Memory& memory_of(const TensorImpl& tensor);
  void find_freed();
  void free(const Memory& memory);
  void judge(const Memory& memory, const Use& earlier, const Use& later);
  void add(std::size_t property, std::uint64_t number, std::string text);

  std::vector<Clock> clocks_;
  std::map<StreamEvent, Clock> events_;
  StreamId home_;
  // By age, so that no address decides an order.
  std::map<const Storage*, std::uint64_t> numbers_;
  std::map<std::uint64_t, Memory> memory_;
  std::vector<std::uint64_t> unannounced_;  // those of the model
  std::uint64_t next_number_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t frees_ = 0;
  std::array<std::vector<Finding>, 3> findings_;
  std::array<std::uint64_t, 3> counts_ = {};
};

}  // namespace zeroproof
