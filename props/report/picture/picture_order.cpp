#include "props/report/picture/picture_order.h"

#include <algorithm>

namespace zeroproof {
namespace {

class Orderer {
 public:
  Orderer(Picture& picture, const std::vector<PictureCollective>& collectives) : picture_(picture) {
    waits_for_.resize(picture.events.size());
    for (const PictureCollective& collective : collectives) {
      for (const std::uint32_t complete : collective.completes) waits_for_[complete] = &collective;
    }
    queues_.resize(picture.processes.size());
    for (std::uint32_t i = 0; i < picture.events.size(); ++i) {
      queues_[picture.events[i].process].events.push_back(i);
    }
    is_placed_.assign(picture.events.size(), 0);
  }

  void run() {
    while (true) {
      bool has_moved = false;
      for (Queue& queue : queues_) {
        while (!queue.is_empty() && is_ready(queue.front())) {
          place(queue);
          has_moved = true;
        }
      }
      if (has_moved) continue;
      Queue* first = nullptr;  // all wait: the last one goes on
      for (Queue& queue : queues_) {
        if (!queue.is_empty() && (first == nullptr || queue.tick < first->tick)) first = &queue;
      }
      if (first == nullptr) return;
      place(*first);
    }
  }

 private:
  struct Queue {
    std::vector<std::uint32_t> events;
    std::size_t next = 0;
    std::uint64_t tick = 0;  // of the last event; ticks begin with 1

    bool is_empty() const { return next == events.size(); }
    std::uint32_t front() const { return events[next]; }
  };

  bool is_ready(std::uint32_t event) const {
    const PictureCollective* collective = waits_for_[event];
    return collective == nullptr ||
           std::all_of(collective->issues.begin(), collective->issues.end(),
                       [&](std::uint32_t issue) { return is_placed_[issue] != 0; });
  }

  void place(Queue& queue) {
    const std::uint32_t event = queue.front();
    ++queue.next;
    ++queue.tick;
    if (const PictureCollective* collective = waits_for_[event]) {
      for (const std::uint32_t issue : collective->issues) {
        queue.tick = std::max(queue.tick, picture_.events[issue].tick + 1);
      }
    }
    picture_.events[event].tick = queue.tick;
    is_placed_[event] = 1;
  }

  Picture& picture_;
  std::vector<const PictureCollective*> waits_for_;  // by event
  std::vector<Queue> queues_;                        // by process
  std::vector<std::uint8_t> is_placed_;
};

}  // namespace

void order_picture(Picture& picture, const std::vector<PictureCollective>& collectives) {
  Orderer(picture, collectives).run();
}

}  // namespace zeroproof
