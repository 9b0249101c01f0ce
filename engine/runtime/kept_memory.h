#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace zeroproof {

// Memory of a device that tensors gave back, kept by size for those to come: each call of the
// device's pool costs the host microseconds, and ranks wait for each other in it. What is kept and
// what is in use are never more than was in use at once: before that the oldest leaves.
class KeptMemory {
 public:
  // What another queue than that in whose order memory is given has done with it, up to a point.
  struct Use {
    std::size_t queue;
    std::int64_t marks;  // of the queue, at its last use
  };
  using Uses = std::vector<Use>;

  // Where memory comes from.
  class Pool {
   public:
    virtual ~Pool() = default;
    virtual void* take(std::size_t bytes) = 0;  // null: there is no room
    virtual void give_back(void* data, const Uses& pending_uses) = 0;
    // True too where the work that follows is ordered after it.
    virtual bool is_over(const Use& use) = 0;
  };

  // `pool` must outlive it.
  explicit KeptMemory(Pool& pool) : pool_(pool) {}
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // Null: there is no room.
  void* take(std::size_t bytes);
  // What take() gave for so many bytes.
  void give_back(void* data, std::size_t bytes, Uses pending_uses);
  // It went back to the pool by another way.
  void forget(std::size_t bytes);
  // Gives all that is kept back; the most used at once starts again from what is in use now.
  void clear();

 private:
  struct Block {
    void* data;
    std::int64_t age;  // when it came, in numbers of blocks
    Uses pending_uses;
  };
  using Blocks = std::deque<Block>;  // the oldest first
  // Of one size. Of the ready blocks the newest goes first, since caches may hold it.
  struct Shelf {
    Blocks ready;
    Blocks late;  // after work of other queues
  };

  void* find(std::size_t bytes);
  void drop_oldest();
  bool drop_oldest(Blocks Shelf::*of);

  Pool& pool_;
  std::map<std::size_t, Shelf> shelves_;
  std::size_t used_ = 0;
  std::size_t kept_ = 0;
  std::size_t most_ = 0;  // used at once
  std::int64_t next_age_ = 0;
};

}  // namespace zeroproof
