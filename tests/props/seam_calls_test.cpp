// How often the host has to queue something in an iteration of a decoder. On GPUs each record,
// wait, copy and collective is at least one call of the driver, whose lock all ranks of a process
// share.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "props/train/decoder_run.h"
#include "zeroproof/internal/engine/runtime/access.h"

namespace zeroproof::train {
namespace {

struct SeamCalls {
  std::int64_t records = 0;
  std::int64_t waits = 0;
  std::int64_t host_waits = 0;
  std::int64_t kept = 0;      // record_use
  std::int64_t accesses = 0;  // of memory, by kernels and collectives
  std::int64_t collectives = 0;
};

class SeamCounter final : public AccessObserver, public FaultPoint {
 public:
  const SeamCalls& calls() const { return calls_; }

  void on_access(const Access&) override { ++calls_.accesses; }
  void on_record(StreamId, StreamEvent) override { ++calls_.records; }
  void on_wait(StreamId, StreamEvent) override { ++calls_.waits; }
  void on_host_wait(StreamEvent) override { ++calls_.host_waits; }
  void on_record_use(StreamId, const TensorImpl&) override { ++calls_.kept; }
  void on_free(const Storage&) override {}
  void reach(EventKind kind, NameId) override {
    if (kind == EventKind::coll_issue) ++calls_.collectives;
  }

 private:
  SeamCalls calls_;
};

SeamCalls calls_of(int stage, std::int64_t steps) {
  SeamCounter counter;
  HostWorldOptions options{.world_size = 2};
  options.observers.resize(2);
  options.observers[0].accesses = &counter;
  options.observers[0].faults = &counter;
  HostWorld world(options);
  DecoderCell cell{.stage = stage, .batch = 1, .length = 8, .steps = steps};
  cell.sizes.layers = 6;
  for (const DecoderRank& rank : run_decoder(world, cell, {})) EXPECT_FALSE(rank.error);
  return counter.calls();
}

// 39 parameters; what an iteration after the first ones costs.
TEST(SeamCallsOfADecoder, Are_no_more_than_they_were) {
  constexpr std::array<SeamCalls, 4> kMost = {{
      {.records = 4, .waits = 0, .host_waits = 3, .kept = 0, .accesses = 97, .collectives = 1},
      {.records = 88, .waits = 46, .host_waits = 1, .kept = 1, .accesses = 284, .collectives = 55},
      {.records = 88, .waits = 46, .host_waits = 1, .kept = 1, .accesses = 284, .collectives = 55},
      {.records = 120,
       .waits = 128,
       .host_waits = 39,
       .kept = 146,
       .accesses = 685,
       .collectives = 40},
  }};
  for (const int stage : {0, 1, 2, 3}) {
    const SeamCalls few = calls_of(stage, 4);
    const SeamCalls many = calls_of(stage, 6);
    const SeamCalls& most = kMost.at(static_cast<std::size_t>(stage));
    const auto expect = [&](const char* what, std::int64_t SeamCalls::*of) {
      EXPECT_LE((many.*of - few.*of) / 2, most.*of) << what << ", stage " << stage;
    };
    expect("records", &SeamCalls::records);
    expect("waits", &SeamCalls::waits);
    expect("waits of the host", &SeamCalls::host_waits);
    expect("kept memory", &SeamCalls::kept);
    expect("accesses", &SeamCalls::accesses);
    expect("collectives", &SeamCalls::collectives);
  }
}

}  // namespace
}  // namespace zeroproof::train
